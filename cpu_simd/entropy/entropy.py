"""Stage write_slices: slice data (7.3.4) from macroblock arrays; merges slice headers, checks for emulation prevention.

scheduler/arrays.py has the state arrays, their indices and units.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper, quick_kernel
from ..layout import ENTRY_BYTES, HEADER_BITS
from ..simd.lanes import zero_pairs
from .cabac import N_STATES
from .cabac_slice import BINS_ROOM, Scratch, put_cabac_slice
from .cavlc import bit_position, close_sink, open_sink, put, put_ue
from .cavlc_macroblock import put_macroblock
from .macroblock_syntax import skip_type


@closed_kernel
def write_slices(
    slice_first_mb, slice_starts, frame_params, entries, mb_width, source, macroblocks, tools, slice_data, slice_counts
):
    """7.3.4: slice_data() and the stop bit of all slices, without emulation prevention; by CABAC if the tools say so.

    slice_first_mb: int32[n_mb]; slice_starts: int32[> n]: address of the first macroblock of each slice, then n_mb;
    frame_params: int32[>= HEADER_BITS + n], see layout.py; headers have fewer than 2048 bits, with CABAC a multiple of 8.
    Bundles: Entries; Planes source, for I_PCM; Macroblocks, CodingTools. slice_data: uint8[mb_height (mb_width + 1)
    ENTRY_BYTES]: a slice begins at entry row0 (mb_width + 1), with mb_ends slice n at entry first_mb + n; the bits of its
    header are 0. slice_counts: SliceCounts; a size of -1: a macroblock takes more than ENTRY_BYTES, with CABAC the slice more
    than its place without SPARE bytes (cabac_slice.py).
    """
    slice_qp = np.int64(frame_params[0])
    n_ref, n_ref1 = entries
    sizes, n_bins, mb_ends = slice_counts
    sink = np.zeros(3, np.int64)
    cabac = bool(tools.cabac)
    n_mb = len(slice_first_mb)
    scratch = Scratch(
        np.empty(BINS_ROOM if cabac else 0, np.uint16), np.empty(N_STATES, np.uint8), np.empty(4, np.int64),
        (np.empty((n_mb if cabac and n_ref > 0 else 0, 16, 2), np.int16),
         np.empty((n_mb if cabac and n_ref1 else 0, 16, 2), np.int16)),
    )  # fmt: skip
    n, first_mb = 0, np.int64(0)
    while first_mb < n_mb:
        end_mb = np.int64(slice_starts[n + 1])
        place, end = first_mb + first_mb // mb_width, end_mb + end_mb // mb_width
        if mb_ends is not None:  # None is known while Numba finds types
            place, end = first_mb + n, end_mb + n + 1
        out = slice_data[place * ENTRY_BYTES : end * ENTRY_BYTES]
        header = np.int64(frame_params[HEADER_BITS + n])
        for i in range((header >> 3) + 1):
            out[i] = 0
        if cabac:
            sizes[n], n_bins[n] = put_cabac_slice(
                out, header, first_mb, end_mb, mb_width, entries, frame_params, tools, source, macroblocks, scratch, mb_ends
            )
        else:
            open_sink(out, header, sink)
            mode = tools.transform_8x8_mode
            sizes[n] = put_slice(out, sink, first_mb, end_mb, mb_width, entries, slice_qp, source, macroblocks, mode, mb_ends)
        n, first_mb = n + 1, end_mb


@helper
def put_slice(out, sink, first_mb, end_mb, mb_width, entries, slice_qp, source, macroblocks, transform_8x8_mode, mb_ends):
    """7.3.4, 7.3.2.11: macroblocks first_mb .. end_mb - 1 and the stop bit. Returns the bit position after it, or -1.

    entries: Entries; mb_ends: see SliceCounts.
    """
    n_ref, n_ref1 = entries
    skip = skip_type(n_ref1)
    previous_qp = slice_qp
    skip_run = 0
    for mb in range(first_mb, end_mb):
        if macroblocks.mb_type[mb] == skip:
            skip_run += 1
            if mb_ends is not None:  # None is known while Numba finds types
                mb_ends[mb] = bit_position(sink)
            continue
        limit = bit_position(sink) + 8 * ENTRY_BYTES
        if n_ref > 0:
            put_ue(out, sink, skip_run)
            skip_run = 0
        previous_qp = put_macroblock(
            out, sink, limit, mb, first_mb, mb_width, entries, previous_qp, source, macroblocks, transform_8x8_mode
        )
        if bit_position(sink) > limit:
            return -1
        if mb_ends is not None:
            mb_ends[mb] = bit_position(sink)
    if skip_run > 0:
        put_ue(out, sink, skip_run)
    put(out, sink, 1, 1)
    return close_sink(out, sink)


@quick_kernel
def begin_slice(data, header, size):
    """7.4.1: ORs the header into slice data; returns whether the `size` bytes then need emulation prevention.

    data: uint8[], may be longer than `size`; the last of the `size` bytes is not 0 (stop bit), and the header's bits are 0.
    header: uint8[].
    """
    for i in range(len(header)):
        data[i] |= header[i]
    i = 0
    while i + 33 <= size:
        if zero_pairs(data, i) != 0:
            for j in range(i, min(i + 32, size - 2)):
                if data[j] == 0 and data[j + 1] == 0 and data[j + 2] <= 3:
                    return True
        i += 32
    for j in range(i, size - 2):
        if data[j] == 0 and data[j + 1] == 0 and data[j + 2] <= 3:
            return True
    return False
