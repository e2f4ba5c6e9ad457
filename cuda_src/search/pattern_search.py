"""Search along patterns on the GPU: launches pattern_search.cu."""

from ...cpu_simd.bundles import SearchResult, SearchStart
from ...cpu_simd.decisions.common import QUICK, QUIET
from ...cpu_simd.decisions.search import ALL_PARTITIONS, EVERY, SMALL_PARTITIONS
from ..runtime.array import DeviceArray, Stream

WARPS = 4  # of the kernel


def pattern_search(
    source: DeviceArray,  # Sample[H, W]
    reference: DeviceArray,  # Sample[H + 2 pad, W + 2 pad], integer samples
    pad: int,
    start: SearchStart,
    qp: DeviceArray,  # uint8[n_mb]
    pattern: tuple[int, int],
    row0: int,
    row1: int,
    search_result: SearchResult,
    partition_mask: int = ALL_PARTITIONS,
    subme: int = EVERY,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.search.pattern_search.pattern_search, but for sizes not wanted."""
    me, merange = pattern
    if not 1 <= merange <= 64:
        raise ValueError(f"merange {merange}: 1 to 64")
    mb_width = source.shape[1] // 16
    n_mb = (row1 - row0) * mb_width
    arguments = [source, source.shape[1], reference, reference.shape[1], pad, *start, qp, merange, me]
    arguments += [
        int(not partition_mask & SMALL_PARTITIONS),
        QUIET if subme <= QUICK else 0,
        row0 * mb_width,
        n_mb,
        *search_result,
    ]
    source.device.launch("search/pattern_search", "pattern_search", (-(-n_mb // WARPS),), (32 * WARPS,), arguments, stream)
