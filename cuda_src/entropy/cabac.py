"""CABAC on the GPU, all macroblocks, then all bins at once: launches cabac_*.cu, cabac.cu."""

from collections import namedtuple
from functools import cache

import numpy as np

from ...cpu_simd.bundles import Macroblocks, Planes
from ...cpu_simd.layout import ENTRY_BYTES, MOST_BINS
from ...standard.cabac_contexts import INITIAL_M_N, NEXT_LPS, RANGE_LPS
from ..runtime.array import DType, Stream
from ..runtime.device import Device, DeviceArray

KERNELS = (
    "make_bins", "place_bins", "gather_bins",
    "count_contexts", "sum_contexts", "sort_bins", "walk_states", "map_ranges", "compose_chunks", "add_codes",
    "code_bin_by_bin", "write_bytes",
)  # fmt: skip

CHUNK = 2048  # bins, at most
SEGMENT = 32  # bins from one possible start of a segment to the next
SEGMENTS = CHUNK // SEGMENT
COLUMNS = 320  # contexts, without those of fields
PIECE = 32  # bins whose states a thread finds
SORTED_CHUNKS = COLUMNS * PIECE // CHUNK  # room of a slice for contexts that begin at a piece
SPARE_CELLS = 8  # of a slice, of 16 bits
RANGES = 256
THREADS, SUMMERS, WALKERS, MAPPERS, COMPOSERS, ADDERS, WRITERS = 256, 1024, 128, 4 * SEGMENTS, 1024, 128, 256
SMALL = 2048  # entries of a frame in which each has a chunk
BLOCKS = 8  # a multiprocessor, of kernels whose blocks take what there is in turn
WARPS, MOST_KEPT = 8, 256  # entries of a block of threads; bins of an entry that are kept
WORDS = 512  # approximate words of a slice that a block of threads writes

# The slices of a frame.
Slices = namedtuple("Slices", (
    "first_mb",  # int32[n_mb]: address of the first macroblock of the slice that has a macroblock
    "starts",  # int32[n + 1]: first macroblock of each slice; n_mb
    "frame_params",  # int32[>= HEADER_BITS + n]: SliceQPY, cabac_init_idc, bits of the header of each slice
    "n_ref",
    "mb_width",
    "n_ref1",  # entries of list 1; 0 or None: no B slices
), defaults=(None,))  # fmt: skip

# What write_slices tells of each slice.
Sizes = namedtuple("Sizes", (
    "bits",  # int32[>= n], with the header; -1: more than its place has room for
    "bins",  # int32[>= n]
))  # fmt: skip

# The bins of a frame. An entry is a macroblock, or what follows a row.
Bins = namedtuple("Bins", (
    "symbols",  # uint16[chunks, CHUNK]: in coding order from the slice's first place on, after I_PCM from the next chunk on
    "chunk_bins",  # int32[chunks]: bins of each chunk
    "chunk_begins",  # int32[chunks]: -1, 0: begins the slice, 1 + mb: follows the samples of I_PCM of macroblock mb
    "slice_chunks",  # int32[slices, 2]: the first chunk of each slice, and the number; 0 if its bins have no room
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


def _rows(slices: Slices) -> int:
    """Macroblock rows of the frame."""
    return slices.first_mb.shape[0] // slices.mb_width


def _entries(slices: Slices) -> int:
    """Macroblocks, and one more for each row."""
    return slices.first_mb.shape[0] + _rows(slices)


def _entries_per_chunk(slices: Slices) -> int:
    """Entries that share the places of a chunk: in large frames memory counts, in small ones slices with many bins."""
    return 1 if _entries(slices) <= SMALL else 2


def _entry_arguments(slices: Slices, macroblocks: Macroblocks, transform_8x8_mode: int) -> list[object]:
    """The first arguments of kernels that make bins."""
    frame = [slices.first_mb, slices.frame_params, slices.n_ref, slices.mb_width]
    list1 = [slices.n_ref1, macroblocks.ref_idx1, macroblocks.mv1] if slices.n_ref1 else []
    return [*frame, *macroblocks[:-2], transform_8x8_mode, *list1, _entries(slices)]


def _module(slices: Slices) -> str:
    """The kernels that make bins."""
    return "entropy/cabac_bins_b" if slices.n_ref1 else "entropy/cabac_bins"


def make_bins(slices: Slices, macroblocks: Macroblocks, transform_8x8_mode: int, stream: Stream | None = None) -> Bins:
    """7.3.4, 7.3.5, 9.3.2: the bins of all macroblocks, as cpu_simd/entropy/cabac_macroblock.py has them. In scratch
    memory.
    """
    device, mb_height, n, entries = slices.starts.device, _rows(slices), slices.starts.shape[0] - 1, _entries(slices)
    shared = _entries_per_chunk(slices)
    chunks = entries // shared
    bins = Bins(
        device.scratch("bins", (chunks, CHUNK), np.uint16, stream),
        device.scratch("chunk bins", (chunks,), np.int32, stream),
        device.scratch("chunk begins", (chunks,), np.int32, stream),
        device.scratch("chunks", (mb_height, 2), np.int32, stream),
    )
    counts = device.scratch("bin counts", (entries,), np.uint32, stream)
    entry_starts = device.scratch("bin entry_starts", (entries,), np.int32, stream)
    kept = device.scratch("kept bins", (entries, MOST_KEPT), np.uint16, stream)
    state, blocks = _entry_arguments(slices, macroblocks, transform_8x8_mode), -(-entries // WARPS)
    device.launch(_module(slices), "make_bins", (blocks,), (32 * WARPS,), [*state, counts, kept], stream)
    arguments = [slices.starts, slices.mb_width, shared, counts, entry_starts, *bins[1:]]
    device.launch("entropy/cabac_bins", "place_bins", (n,), (SUMMERS,), arguments, stream)
    arguments = [*state, slices.starts, bins.slice_chunks, counts, entry_starts, kept, bins.symbols]
    device.launch(_module(slices), "gather_bins", (-(-blocks // n), n), (32 * WARPS,), arguments, stream)
    return bins


def code_bins(slices: Slices, bins: Bins, source: Planes, sizes: Sizes, stream: Stream | None = None) -> DeviceArray:
    """9.3.4: codes all slices whose bins have room. Returns cells: see cabac.cu."""
    device, mb_height, n, entries = slices.starts.device, _rows(slices), slices.starts.shape[0] - 1, _entries(slices)
    chunks = bins.symbols.shape[0]
    n_sorted = chunks + SORTED_CHUNKS * mb_height

    def scratch(name: str, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        return device.scratch(f"cabac {name}", shape, dtype, stream)

    counts, totals = scratch("counts", (chunks, COLUMNS), np.uint32), scratch("totals", (mb_height, COLUMNS), np.uint32)
    begins, ends = scratch("begins", (mb_height, COLUMNS), np.uint32), scratch("ends", (mb_height,), np.int32)
    ranks, codes = scratch("ranks", (chunks, CHUNK), np.uint16), scratch("sorted", (n_sorted, CHUNK), np.uint8)
    ordered, states = codes, scratch("states", (n_sorted, CHUNK), np.uint8)  # codes take the place of the sorted bins
    columns = scratch("columns", (n_sorted, CHUNK // PIECE), np.uint16)
    prefixes, bodies = scratch("prefixes", (chunks, RANGES), np.uint32), scratch("bodies", (chunks, 4), np.uint32)
    segments, chunk_starts = scratch("segments", (chunks, 4, SEGMENTS), np.uint32), scratch("starts", (chunks, 2), np.int32)
    cells = scratch("cells", (entries * (ENTRY_BYTES // 2) + SPARE_CELLS * mb_height,), np.uint32)
    range_table, next_table, initial = _tables(device)

    blocks = max(1, min(BLOCKS * device.multiprocessors, chunks) // n)
    starts, frame_params, n_ref, mb_width = slices[1:5]
    layout = bins.slice_chunks
    launches: tuple[tuple[str, str, int, int, tuple[object, ...]], ...] = (
        ("entropy/cabac_states", "count_contexts", blocks, THREADS, (layout, bins.chunk_bins, bins.symbols, counts)),
        ("entropy/cabac_states", "sum_contexts", COLUMNS // 32, SUMMERS, (layout, counts, totals)),
        ("entropy/cabac_states", "sort_bins", blocks, THREADS, (
            layout, bins.chunk_bins, bins.symbols, counts, totals, begins, ends, ranks, ordered, columns)),
        ("entropy/cabac_states", "walk_states", blocks, WALKERS, (
            layout, frame_params, n_ref, ends, begins, columns, next_table, initial, ordered, states)),
        ("entropy/cabac", "map_ranges", blocks, MAPPERS, (
            layout, bins.chunk_bins, bins.chunk_begins, bins.symbols, counts, begins, ranks, states, range_table, codes,
            prefixes, segments, bodies)),
        ("entropy/cabac", "compose_chunks", 1, COMPOSERS, (
            layout, starts, frame_params, mb_width, bins.chunk_bins, bins.chunk_begins, prefixes, bodies, chunk_starts, cells,
            *sizes)),
        ("entropy/cabac", "add_codes", blocks, ADDERS, (
            layout, starts, mb_width, bins.chunk_bins, bins.chunk_begins, codes, range_table, prefixes, segments,
            chunk_starts, sizes.bits, *source, cells)),
    )  # fmt: skip
    for module, kernel, across, threads, arguments in launches:
        device.launch(module, kernel, (across, n), (threads,), arguments, stream)
    return cells


def write_bytes(
    slices: Slices, cells: DeviceArray, sizes: Sizes, slice_data: DeviceArray, stream: Stream | None = None
) -> None:
    """The bytes of all slices; slice_data: uint8[mb_height (mb_width + 1) ENTRY_BYTES], may be the host's memory."""
    n = slices.starts.shape[0] - 1
    grid = max(1, 4 * _entries(slices) // WORDS // n), n
    arguments = [slices.starts, slices.mb_width, sizes.bits, cells, slice_data]
    cells.device.launch("entropy/cabac", "write_bytes", grid, (WRITERS,), arguments, stream)


def write_cabac_slices(
    slices: Slices,
    source: Planes,  # for I_PCM
    macroblocks: Macroblocks,
    transform_8x8_mode: int,
    slice_data: DeviceArray,  # uint8[mb_height (mb_width + 1) ENTRY_BYTES]; may be the host's memory
    sizes: Sizes,
    stream: Stream | None = None,
) -> None:
    """7.3.4: slices with CABAC: see cuda_src.entropy.entropy.write_slices. Those with more bins than places are coded bin by
    bin.
    """
    device, mb_height, n = slices.starts.device, _rows(slices), slices.starts.shape[0] - 1
    bins = make_bins(slices, macroblocks, transform_8x8_mode, stream)
    cells = code_bins(slices, bins, source, sizes, stream)
    state = _entry_arguments(slices, macroblocks, transform_8x8_mode)
    entry_bins = device.scratch("bins of an entry", (mb_height, MOST_BINS), np.uint16, stream)
    arguments = [*state, slices.starts, bins.slice_chunks, *_tables(device), *source, entry_bins, cells, *sizes]
    device.launch(_module(slices), "code_bin_by_bin", (n,), (32,), arguments, stream)
    write_bytes(slices, cells, sizes, slice_data, stream)


def _tables(device: Device) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """`ranges`, `next_states`, and (m, n) of 9.3.1.1 on the GPU."""
    return (
        device.constant("cabac ranges", ranges()),
        device.constant("cabac next states", next_states()),
        device.constant("cabac m, n", INITIAL_M_N),
    )
