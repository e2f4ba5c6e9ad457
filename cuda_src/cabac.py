"""CABAC on the GPU, all macroblocks, then all bins at once: launches cabac_bins.cu, cabac_states.cu, cabac.cu."""

from collections import namedtuple
from functools import cache
from typing import Any

import numpy as np

from ..cpu_simd.bundles import Macroblocks, Planes
from ..cpu_simd.layout import ENTRY_BYTES
from ..standard.cabac_contexts import INITIAL_M_N, NEXT_LPS, RANGE_LPS
from .runtime.device import Device, DeviceArray

# Sizes of cabac.cuh
CHUNK, COLUMNS, PIECE, SEGMENTS, SORTED_CHUNKS, SPARE_CELLS = 2048, 320, 32, 64, 5, 8
RANGES = 256
THREADS, SUMMERS, WALKERS, MAPPERS, COMPOSERS, ADDERS, WRITERS = 256, 1024, 128, 256, 1024, 128, 256
BLOCKS = 4  # a multiprocessor, of kernels whose blocks take what there is in turn
WARPS, MOST = 8, 256  # entries of a block of threads; bins of an entry that are kept
WORDS = 512  # approximate words of a slice that a block of threads writes

# The bins of a frame. An entry is a macroblock, or what follows a row; a slice has the chunks of its entries.
Bins = namedtuple("Bins", (
    "symbols",  # uint16[entries, CHUNK]: in coding order from the slice's first place on, after I_PCM from the next chunk on
    "chunk_bins",  # int32[entries]: bins of each chunk
    "chunk_begins",  # int32[entries]: -1, 0: begins the slice, 1 + mb: follows the samples of I_PCM of macroblock mb
    "n_chunks",  # int32[slices]: chunks of each slice
))  # fmt: skip


@cache
def next_states() -> np.ndarray:
    """uint32[2048]: the states after each of four bins, a byte each, by state << 4 | bins, the first the lowest bit."""
    state, bins = np.arange(2048) >> 4, np.arange(2048) & 15
    result = np.zeros(2048, np.uint32)
    for i in range(4):
        index, mps = state >> 1, state & 1
        is_mps = (bins >> i & 1) == mps
        after_lps = NEXT_LPS[index] << 1 | (mps ^ (index == 0))
        state = np.where(is_mps, np.where(index < 62, index + 1, index) << 1 | mps, after_lps)
        result |= (state << 8 * i).astype(np.uint32)
    return result


@cache
def ranges() -> np.ndarray:
    """uint32[65]: rangeTabLPS of a pStateIdx, a byte for each qCodIRangeIdx; 0 for bypass bins."""
    return np.append(
        (RANGE_LPS.astype(np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)).sum(1, dtype=np.uint32), np.uint32(0)
    )


def places_of(device: Device, mb_width: int, mb_height: int, stream: Any) -> Bins:
    """Scratch memory for the bins of a frame of any slices."""
    entries = mb_height * (mb_width + 1)
    return Bins(
        device.scratch("bins", (entries, CHUNK), np.uint16, stream),
        device.scratch("chunk bins", (entries,), np.int32, stream),
        device.scratch("chunk begins", (entries,), np.int32, stream),
        device.scratch("chunks", (mb_height,), np.int32, stream),
    )


def make_bins(
    slice_first_mb: DeviceArray,  # int32[mb_height]
    slice_rows: DeviceArray,  # int32[n + 1]: first macroblock row of each slice; mb_height
    frame_params: DeviceArray,  # int32[>= HEADER_BITS + n]
    n_ref: int,
    mb_width: int,
    macroblocks: Macroblocks,
    transform_8x8_mode: int,
    stream: Any = None,
) -> Bins:
    """7.3.4, 7.3.5, 9.3.2: the bins of all macroblocks, as cpu_simd/cabac_macroblock.py has them. In scratch memory."""
    device, mb_height, slices = slice_rows.device, slice_first_mb.shape[0], slice_rows.shape[0] - 1
    bins = places_of(device, mb_width, mb_height, stream)
    entries = mb_height * (mb_width + 1)
    counts = device.scratch("bin counts", (entries,), np.uint32, stream)
    places = device.scratch("bin places", (entries,), np.int32, stream)
    kept = device.scratch("kept bins", (entries, MOST), np.uint16, stream)
    state = [slice_first_mb, frame_params, n_ref, mb_width, *macroblocks, transform_8x8_mode, entries]
    blocks = -(-entries // WARPS)
    device.launch("cabac_bins", "make_bins", (blocks,), (32 * WARPS,), [*state, counts, kept], stream)
    arguments = [slice_rows, mb_width, counts, places, *bins[1:]]
    device.launch("cabac_bins", "place_bins", (slices,), (SUMMERS,), arguments, stream)
    arguments = [*state, slice_rows, bins.n_chunks, counts, places, kept, bins.symbols]
    device.launch("cabac_bins", "gather_bins", (-(-blocks // slices), slices), (32 * WARPS,), arguments, stream)
    return bins


def code_bins(
    slice_rows: DeviceArray,  # int32[n + 1]: first macroblock row of each slice; mb_height
    frame_params: DeviceArray,  # int32[>= HEADER_BITS + n]
    n_ref: int,
    mb_width: int,
    bins: Bins,
    source: Planes,  # for I_PCM
    slice_data: DeviceArray,  # uint8[mb_height (mb_width + 1) ENTRY_BYTES]; may be the host's memory
    slice_sizes: DeviceArray,  # int32[>= n]: bits of each slice with its header; -1: longer than its place
    slice_bins: DeviceArray,  # int32[>= n]: bins of each slice
    stream: Any = None,
) -> None:
    """9.3.4: the slices from their bins, as cpu_simd/cabac.py has them."""
    device, slices = source.y.device, slice_rows.shape[0] - 1
    mb_height = source.y.shape[0] // 16
    entries, n_sorted = bins.chunk_bins.shape[0], bins.chunk_bins.shape[0] + SORTED_CHUNKS * mb_height

    def scratch(name: str, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        return device.scratch(f"cabac {name}", shape, dtype, stream)

    def launch(module: str, kernel: str, blocks: int, threads: int, *arguments: Any) -> None:
        device.launch(module, kernel, (blocks, slices), (threads,), arguments, stream)

    counts, totals = scratch("counts", (entries, COLUMNS), np.uint32), scratch("totals", (mb_height, COLUMNS), np.uint32)
    begins, ends = scratch("begins", (mb_height, COLUMNS), np.uint32), scratch("ends", (mb_height,), np.int32)
    ranks, codes = scratch("ranks", (entries, CHUNK), np.uint16), scratch("codes", (entries, CHUNK), np.uint8)
    ordered, states = scratch("sorted", (n_sorted, CHUNK), np.uint8), scratch("states", (n_sorted, CHUNK), np.uint8)
    columns = scratch("columns", (n_sorted, CHUNK // PIECE), np.uint16)
    prefixes, bodies = scratch("prefixes", (entries, RANGES), np.uint32), scratch("bodies", (entries, 4), np.uint32)
    segments, chunk_starts = scratch("segments", (entries, 4, SEGMENTS), np.uint32), scratch("starts", (entries, 2), np.int32)
    cells = scratch("cells", (entries * (ENTRY_BYTES // 2) + SPARE_CELLS * mb_height,), np.uint32)
    tables = device.constant("cabac next states", next_states()), device.constant("cabac m, n", INITIAL_M_N)
    range_table = device.constant("cabac ranges", ranges())

    blocks = max(1, min(BLOCKS * device.multiprocessors, entries) // slices)
    layout = slice_rows, mb_width, bins.n_chunks
    launch("cabac_states", "count_contexts", blocks, THREADS, *layout, bins.chunk_bins, bins.symbols, counts)
    launch("cabac_states", "sum_contexts", COLUMNS // 32, SUMMERS, *layout, counts, totals)
    launch("cabac_states", "sort_bins", blocks, THREADS, *layout, bins.chunk_bins, bins.symbols, counts, totals, begins, ends,
           ranks, ordered, columns)  # fmt: skip
    launch("cabac_states", "walk_states", blocks, WALKERS, slice_rows, mb_width, frame_params, n_ref, ends, begins, columns,
           *tables, ordered, states)  # fmt: skip
    launch("cabac", "map_ranges", blocks, MAPPERS, *layout, bins.chunk_bins, bins.chunk_begins, bins.symbols, counts, begins,
           ranks, states, range_table, codes, prefixes, segments, bodies)  # fmt: skip
    launch("cabac", "compose_chunks", 1, COMPOSERS, slice_rows, frame_params, mb_width, bins.n_chunks, bins.chunk_bins,
           bins.chunk_begins, prefixes, bodies, chunk_starts, cells, slice_sizes, slice_bins)  # fmt: skip
    launch("cabac", "add_codes", blocks, ADDERS, *layout, bins.chunk_bins, bins.chunk_begins, codes, range_table, prefixes,
           segments, chunk_starts, slice_sizes, *source, cells)  # fmt: skip
    writing = max(1, 4 * entries // WORDS // slices)
    launch("cabac", "write_bytes", writing, WRITERS, *layout, slice_sizes, cells, slice_data)
