"""Mean and contrast of half-size frames on the GPU: launches levels.cu."""

from ...cpu_simd.bundles import HalfSize
from ..runtime.array import DeviceArray, Stream

THREADS = 256


def count_samples(
    frame: HalfSize,
    counts: DeviceArray,  # int32[SAMPLE_MAX + 1], added to
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: samples of the half-size frame by their value, without the border."""
    mb_height, mb_width = frame.tiny.shape
    counts.device.launch(
        "lookahead/levels", "count_samples", (mb_height,), (THREADS,), [frame.planes, mb_width, counts], stream
    )


def replace_samples(
    frame: HalfSize,
    levels: DeviceArray,  # Sample[SAMPLE_MAX + 1]: by value, what takes its place
    out: HalfSize,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: the frame with other levels -> out."""
    for samples, target in zip(frame, out):
        arguments = [samples, levels, samples.size, target]
        levels.device.launch(
            "lookahead/levels", "replace_samples", (-(-samples.size // THREADS),), (THREADS,), arguments, stream
        )
