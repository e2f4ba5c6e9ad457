"""Full search on the GPU: launches full_search.cu."""

from typing import Any

from ..cpu_simd.bundles import SearchResult, SearchStart
from ..cpu_simd.decisions import ALL_PARTITIONS, EVERY, QUICK, QUIET
from .runtime.device import DeviceArray

ACROSS, DOWN = 12, 4  # RW and NP of the kernel


def full_search(
    source: DeviceArray,  # uint8[H, W]
    reference: DeviceArray,  # uint8[H + 2 pad, W + 2 pad], integer samples
    pad: int,
    start: SearchStart,
    qp: DeviceArray,  # uint8[n_mb]
    merange: int,
    row0: int,
    row1: int,
    found: SearchResult,
    partition_mask: int = ALL_PARTITIONS,
    subme: int = EVERY,
    stream: Any = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.full_search.full_search, which also searches sizes not wanted."""
    if not 1 <= merange <= 64:
        raise ValueError(f"merange {merange}: 1 to 64")
    height, width = reference.shape
    # a kernel with constant range 16 is a tenth faster
    kernel, warps = ("full_search_16", 1) if merange == 16 else ("full_search", 2)
    rows = -(-2 * merange // (DOWN * warps)) * DOWN * warps + 15
    words = rows * ACROSS + (8 - rows * ACROSS) % 32
    arguments = [source, source.shape[1], reference, width, height, pad, *start, qp, merange, row0, 1 << 14]
    arguments += [QUIET if subme <= QUICK else 0, *found]
    grid = (source.shape[1] // 16, row1 - row0)
    source.device.launch("full_search", kernel, grid, (32 * warps,), arguments, stream, shared=16 * words)
