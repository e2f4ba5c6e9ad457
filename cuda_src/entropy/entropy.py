"""Slice data on the GPU: launches entropy.cu, or cabac.py with CABAC."""

import numpy as np

from ...cpu_simd.bundles import CodingTools, Entries, Macroblocks, Planes, SliceCounts
from ...cpu_simd.layout import ENTRY_BYTES
from ..runtime.array import DeviceArray, Stream
from .cabac import Sizes, Slices, write_cabac_slices

WARPS, SCAN, PACK = 8, 1024, 256
WORDS = 512  # approximate words of a slice that a block of threads writes


def write_slices(
    slice_first_mb: DeviceArray,  # int32[n_mb]
    slice_starts: DeviceArray,  # int32[n + 1]: first macroblock of each slice, of whole rows; n_mb
    frame_params: DeviceArray,  # int32[>= HEADER_BITS + n]: SliceQPY, cabac_init_idc, bits of the header of each slice
    entries: Entries,
    mb_width: int,
    source: Planes,  # for I_PCM
    macroblocks: Macroblocks,
    tools: CodingTools,
    slice_data: DeviceArray,  # uint8[mb_height (mb_width + 1) ENTRY_BYTES]; may be the host's memory
    slice_counts: SliceCounts,  # without mb_ends, which the CPU writes
    stream: Stream | None = None,
) -> None:
    """7.3.4: twin of cpu_simd.entropy.entropy.write_slices: all slices, each from its first row's place in slice_data on.

    The bits of their headers are 0, and emulation prevention is left to the reader of the bytes.
    """
    n_ref, n_ref1 = entries
    if tools.cabac:
        frame = Slices(slice_first_mb, slice_starts, frame_params, n_ref, mb_width, n_ref1)
        sizes = Sizes(slice_counts.sizes, slice_counts.bins)
        write_cabac_slices(frame, source, macroblocks, tools.transform_8x8_mode, slice_data, sizes, stream)
        return
    device, mb_height, slices = source.y.device, slice_first_mb.shape[0] // mb_width, slice_starts.shape[0] - 1
    count = mb_height * (mb_width + 1)
    lengths = device.scratch("slice lengths", (count,), np.uint32, stream)
    positions = device.scratch("slice positions", (count,), np.uint32, stream)
    words = device.scratch("slice words", (count, ENTRY_BYTES), np.uint8, stream)
    arguments = [slice_first_mb, frame_params, n_ref, mb_width, count, *source, *macroblocks[:-2]]
    list1 = [n_ref1, macroblocks.ref_idx1, macroblocks.mv1] if n_ref1 else []
    arguments += [tools.transform_8x8_mode or 0, *list1, lengths, words]
    module, blocks = "entropy/entropy_b" if n_ref1 else "entropy/entropy", -(-count // WARPS)
    device.launch(module, "code_macroblocks", (blocks,), (32 * WARPS,), arguments, stream)
    arguments = [slice_starts, frame_params, mb_width, lengths, positions, slice_counts.sizes]
    device.launch("entropy/entropy", "place_macroblocks", (slices,), (SCAN,), arguments, stream)
    grid = (max(1, 4 * count // WORDS // slices), slices)
    arguments = [slice_starts, frame_params, mb_width, lengths, positions, slice_counts.sizes, words, slice_data]
    device.launch("entropy/entropy", "pack_slices", grid, (PACK,), arguments, stream)
