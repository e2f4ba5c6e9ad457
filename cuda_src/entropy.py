"""Slice data on the GPU: launches entropy.cu, or cabac.py with CABAC."""

from typing import Any

import numpy as np

from ..cpu_simd.bundles import CodingTools, Macroblocks, Planes
from ..cpu_simd.layout import ENTRY_BYTES
from .cabac import Sizes, Slices, write_cabac_slices
from .runtime.device import DeviceArray

WARPS, SCAN, PACK = 8, 1024, 256
WORDS = 512  # approximate words of a slice that a block of threads writes


def write_slices(
    slice_first_mb: DeviceArray,  # int32[mb_height]
    slice_rows: DeviceArray,  # int32[n + 1]: first macroblock row of each slice; mb_height
    frame_params: DeviceArray,  # int32[>= HEADER_BITS + n]: SliceQPY, cabac_init_idc, bits of the header of each slice
    n_ref: int,
    n_ref1: int | None,  # entries of list 1; None: there are no B frames
    mb_width: int,
    source: Planes,  # for I_PCM
    macroblocks: Macroblocks,
    tools: CodingTools,
    slice_data: DeviceArray,  # uint8[mb_height (mb_width + 1) ENTRY_BYTES]; may be the host's memory
    slice_sizes: DeviceArray,  # int32[>= n]: bits of each slice with its header, without emulation prevention; -1: too many
    slice_bins: DeviceArray,  # int32[>= n]: bins of each slice, with CABAC only
    stream: Any = None,
) -> None:
    """7.3.4: twin of cpu_simd.entropy.write_slices: all slices, each from its first row's place in slice_data on.

    The bits of their headers are 0, and emulation prevention is left to the reader of the bytes.
    """
    if tools.cabac:
        frame, sizes = Slices(slice_first_mb, slice_rows, frame_params, n_ref, mb_width), Sizes(slice_sizes, slice_bins)
        write_cabac_slices(frame, source, macroblocks, tools.transform_8x8_mode, slice_data, sizes, stream)
        return
    device, mb_height, slices = source.y.device, slice_first_mb.shape[0], slice_rows.shape[0] - 1
    entries = mb_height * (mb_width + 1)
    lengths = device.scratch("slice lengths", (entries,), np.uint32, stream)
    positions = device.scratch("slice positions", (entries,), np.uint32, stream)
    words = device.scratch("slice words", (entries, ENTRY_BYTES), np.uint8, stream)
    arguments = [slice_first_mb, frame_params, n_ref, mb_width, entries, *source, *macroblocks[:-2]]
    arguments += [tools.transform_8x8_mode or 0, lengths, words]
    device.launch("entropy", "code_macroblocks", (-(-entries // WARPS),), (32 * WARPS,), arguments, stream)
    arguments = [slice_rows, frame_params, mb_width, lengths, positions, slice_sizes]
    device.launch("entropy", "place_macroblocks", (slices,), (SCAN,), arguments, stream)
    grid = (max(1, 4 * entries // WORDS // slices), slices)
    arguments = [slice_rows, frame_params, mb_width, lengths, positions, slice_sizes, words, slice_data]
    device.launch("entropy", "pack_slices", grid, (PACK,), arguments, stream)
