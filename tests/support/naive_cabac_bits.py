"""9.3.2, 9.3.3.1 plainly: bins of blocks of levels, and what they cost by a table of bits."""

from collections.abc import Iterable

import numpy as np
from h264lite.standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    LAST_BASE,
    SIGNIFICANT_BASE,
    LAST_INC_8x8,
    SIGNIFICANT_INC_8x8,
)

Bin = tuple[int | None, int]  # ctxIdx, None for a bypass bin; value


def suffix_bins(value: int, k: int) -> list[Bin]:
    """9.3.2.3: the Exp-Golomb suffix of order k."""
    bins: list[Bin] = []
    while value >= 1 << k:
        bins.append((None, 1))
        value -= 1 << k
        k += 1
    bins.append((None, 0))
    return bins + [(None, value >> i & 1) for i in range(k - 1, -1, -1)]


def residual_bins(category: int, levels: np.ndarray) -> list[Bin]:
    """7.3.5.3.3: residual_block_cabac() without coded_block_flag; levels in scan order."""
    last = max(np.flatnonzero(levels), default=-1)
    bins: list[Bin] = []
    for i in range(min(last + 1, len(levels) - 1)):
        inc_significant = SIGNIFICANT_INC_8x8[i] if category == 5 else min(i, 2) if category == 3 else i
        inc_last = LAST_INC_8x8[i] if category == 5 else min(i, 2) if category == 3 else i
        bins.append((SIGNIFICANT_BASE[category] + inc_significant, int(levels[i] != 0)))
        if levels[i]:
            bins.append((LAST_BASE[category] + inc_last, int(i == last)))
    base = ABS_LEVEL_BASE[category]
    equal_1 = greater_1 = 0
    for level in levels[::-1]:
        if level == 0:
            continue
        size = abs(int(level))
        bins.append((base + (0 if greater_1 else min(4, 1 + equal_1)), int(size > 1)))
        context = base + 5 + min(4 - (category == 3), greater_1)
        bins += [(context, 1)] * min(max(size - 2, 0), 13)
        if 2 <= size < 15:
            bins.append((context, 0))
        if size >= 15:
            bins += suffix_bins(size - 15, 0)
        bins.append((None, int(level < 0)))
        equal_1 += size == 1
        greater_1 += size > 1
    return bins


def bits_of_bins(bins: Iterable[Bin], bits: np.ndarray) -> int:
    """Bits in units of 1 / 256 by the table of cabac_bits.fill_bits."""
    return sum(256 if context is None else int(bits[2 * context + value]) for context, value in bins)
