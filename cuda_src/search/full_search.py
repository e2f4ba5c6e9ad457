"""Full search on the GPU: launches full_search.cu."""

from ...cpu_simd.bundles import SearchResult, SearchStart
from ...cpu_simd.decisions.common import QUICK, QUIET
from ...cpu_simd.decisions.search import ALL_PARTITIONS, EVERY, SMALL_PARTITIONS
from ..runtime.array import DeviceArray, Stream

ACROSS = 12  # words of a window row in a strip
DOWN, DOWN_LARGE = 4, 8  # candidates of a thread at once, for all partitions and for those from 8x8 on
# By whether partitions are those from 8x8 on and whether the range is 16, which is a tenth faster as a constant: kernel,
# warps of a block, candidates of a thread at once
KERNELS = {
    (False, False): ("full_search", 2, DOWN),
    (False, True): ("full_search_16", 1, DOWN),
    (True, False): ("full_search_large", 2, DOWN_LARGE),
    (True, True): ("full_search_large_16", 1, DOWN_LARGE),
}


def full_search(
    source: DeviceArray,  # Sample[H, W]
    reference: DeviceArray,  # Sample[H + 2 pad, W + 2 pad], integer samples
    pad: int,
    start: SearchStart,
    qp: DeviceArray,  # uint8[n_mb]
    merange: int,
    row0: int,
    row1: int,
    search_result: SearchResult,
    partition_mask: int = ALL_PARTITIONS,
    subme: int = EVERY,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.full_search.full_search, but for sizes not wanted."""
    if not 1 <= merange <= 64:
        raise ValueError(f"merange {merange}: 1 to 64")
    height, width = reference.shape
    kernel, warps, down = KERNELS[not partition_mask & SMALL_PARTITIONS, merange == 16]
    rows = -(-2 * merange // (down * warps)) * down * warps + 15
    words = rows * ACROSS + (8 - rows * ACROSS) % 32
    arguments = [source, source.shape[1], reference, width, height, pad, *start, qp, merange, row0, 1 << 14]
    arguments += [QUIET if subme <= QUICK else 0, *search_result]
    grid = (source.shape[1] // 16, row1 - row0)
    source.device.launch("search/full_search", kernel, grid, (32 * warps,), arguments, stream, shared=16 * words)
