"""Full search on the GPU: launches full_search.cu."""

from typing import Any

from ..cpu_simd.bundles import SearchResult, SearchStart
from ..cpu_simd.decisions import ALL_PARTITIONS, EVERY, QUICK, QUIET, SMALL_PARTITIONS
from .runtime.device import DeviceArray

ACROSS = 12  # RW of the kernel
DOWN, DOWN_LARGE = 4, 8  # NP of the kernel, for all partitions and for those from 8x8 on


def full_search(
    source: DeviceArray,  # uint8[H, W]
    reference: DeviceArray,  # uint8[H + 2 pad, W + 2 pad], integer samples
    pad: int,
    start: SearchStart,
    qp: DeviceArray,  # uint8[n_mb]
    merange: int,
    row0: int,
    row1: int,
    search_result: SearchResult,
    partition_mask: int = ALL_PARTITIONS,
    subme: int = EVERY,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.full_search.full_search, but for sizes not wanted."""
    if not 1 <= merange <= 64:
        raise ValueError(f"merange {merange}: 1 to 64")
    height, width = reference.shape
    large = not partition_mask & SMALL_PARTITIONS
    down = DOWN_LARGE if large else DOWN
    warps = 1 if merange == 16 else 2
    # a kernel with constant range 16 is a tenth faster
    kernel = "full_search" + "_large" * large + "_16" * (merange == 16)
    rows = -(-2 * merange // (down * warps)) * down * warps + 15
    words = rows * ACROSS + (8 - rows * ACROSS) % 32
    arguments = [source, source.shape[1], reference, width, height, pad, *start, qp, merange, row0, 1 << 14]
    arguments += [QUIET if subme <= QUICK else 0, *search_result]
    grid = (source.shape[1] // 16, row1 - row0)
    source.device.launch("full_search", kernel, grid, (32 * warps,), arguments, stream, shared=16 * words)
