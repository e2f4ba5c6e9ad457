"""Paper 004: the search of 41 partitions as its Algorithm 1 has it, and refinement in seven streams; launches loop.cu."""

from collections.abc import Sequence

from h264lite.cuda_src.runtime.array import DeviceArray, Stream

MODULE = "papers/loop"
SEARCHES = {  # kernel, and bytes of the window for a range
    "anew": ("search_anew", lambda reach: (2 * reach + 15) ** 2),
    "whole": ("search_whole", lambda reach: (2 * reach + 15) ** 2),
    "tiles": ("search_tiles", lambda reach: 32 * 32),
}
COUNTS = (16, 8, 8, 4, 2, 2, 1)  # partitions of a size: 4x4, 8x4, 4x8, 8x8, 16x8, 8x16, 16x16
LAYERS, MOST = 3, 16  # of the one launch: partitions 0.., 16.., 32..


def search(
    name: str,
    source: DeviceArray,  # uint8[H, W]
    reference: DeviceArray,  # uint8[H + 2 pad, W + 2 pad]
    pad: int,
    reach: int,
    cost: DeviceArray,  # int32[n_mb, 41]
    mv: DeviceArray,  # int16[n_mb, 41, 2], quarter samples
    stream: Stream | None = None,
) -> None:
    """full_search about the zero vector with lambda 0. anew: each partition's SAD by itself; whole, tiles: the window."""
    if reach % 8 or not 8 <= reach <= min(64, pad):
        raise ValueError(f"reach {reach}: 8, 16, ... 64, at most the border of {pad}")
    kernel, window = SEARCHES[name]
    arguments = [source, source.shape[1], reference, reference.shape[1], pad, reach, cost, mv]
    grid = (source.shape[1] // 16, source.shape[0] // 16)
    source.device.launch(MODULE, kernel, grid, (16, 16), arguments, stream, shared=window(reach))


def refine(
    source: DeviceArray,  # uint8[H, W]
    luma: DeviceArray,  # uint8[4, H + 2 pad, W + 2 pad]
    pad: int,
    mv: DeviceArray,  # int16[n_mb, 41, 2], quarter samples; must reach no further than pad - 4 samples
    cost: DeviceArray,  # int32[n_mb, 41]: SADs
    refined: DeviceArray,  # int16[n_mb, 41, 2]
    streams: Sequence[Stream] = (),
    stream: Stream | None = None,
) -> None:
    """25 candidates about each vector. streams: seven, a kernel each, and `stream`, or the first, waits; none: one kernel."""
    gpu, (_, height, stride) = source.device, luma.shape
    grid = (source.shape[1] // 16, source.shape[0] // 16)
    first, last = [source, luma, stride, height, pad], [mv, cost, refined]
    if not streams:
        gpu.launch(MODULE, "refine_all", (*grid, LAYERS), (25, MOST), [*first, *last], stream)
        return
    stream = stream or streams[0]
    begun = gpu.record(gpu.event(), stream)
    for mode, (mode_stream, count) in enumerate(zip(streams, COUNTS, strict=True)):
        gpu.wait(mode_stream, begun)
        gpu.launch(MODULE, "refine_mode", grid, (25, count), [*first, sum(COUNTS[:mode]), *last], mode_stream)
        gpu.wait(stream, gpu.record(gpu.event(), mode_stream))
