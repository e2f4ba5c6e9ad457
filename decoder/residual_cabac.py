"""9.3: CABAC parsing of a block of transform coefficient levels (7.3.5.3.3)."""

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from ..standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    CODED_BLOCK_BASE,
    LAST_BASE,
    SIGNIFICANT_BASE,
    LAST_INC_8x8,
    SIGNIFICANT_INC_8x8,
)
from .bitreader import fail
from .cabac import bypass, bypass_exp_golomb, decision
from .errors import E_LEVEL

# ctxBlockCat (Table 9-42)
CAT_LUMA_DC, CAT_LUMA_AC, CAT_LUMA_4x4, CAT_CHROMA_DC, CAT_CHROMA_AC, CAT_LUMA_8x8 = range(6)


@helper
def coded_block_flag(data, s, c, category, coded_a, coded_b):
    """9.3.3.1.1.9: coded_block_flag, from that of the blocks to the left and above (0 or 1)."""
    return decision(data, s, c, np.int64(CODED_BLOCK_BASE[category]) + coded_a + 2 * coded_b)


@helper
def abs_level(data, s, c, base, equal_1, greater_1, category):
    """9.3.3.1.3, 9.3.2.3: coeff_abs_level_minus1 + 1; equal_1, greater_1: levels of the block so far."""
    inc = 0 if greater_1 else min(4, 1 + equal_1)
    if not decision(data, s, c, base + inc):
        return np.int64(1)
    context = base + 5 + min(3 if category == CAT_CHROMA_DC else 4, greater_1)
    value = 2
    while value < 15 and decision(data, s, c, context):
        value += 1
    if value == 15:
        more = bypass_exp_golomb(data, s, 0)
        value = value + more if more >= 0 else np.int64(32768)
    if value > 32767:
        fail(s, E_LEVEL)
        return np.int64(1)
    return np.int64(value)


@helper
def residual_block_cabac(data, s, c, category, size, levels, base, scan, positions):
    """7.3.5.3.3: residual_block_cabac() behind coded_block_flag; levels go to base + scan[index]; how many there are.

    positions int64[64]: scratch.
    """
    outlined()
    significant, last = np.int64(SIGNIFICANT_BASE[category]), np.int64(LAST_BASE[category])
    count = 0
    i = 0
    while i < size - 1:
        inc_significant, inc_last = i, i
        if category == CAT_LUMA_8x8:
            inc_significant, inc_last = np.int64(SIGNIFICANT_INC_8x8[i]), np.int64(LAST_INC_8x8[i])
        elif category == CAT_CHROMA_DC:
            inc_significant = inc_last = min(i, 2)
        if decision(data, s, c, significant + inc_significant):
            positions[count] = i
            count += 1
            if decision(data, s, c, last + inc_last):
                break
        i += 1
    if i == size - 1:
        positions[count] = i
        count += 1
    first = np.int64(ABS_LEVEL_BASE[category])
    equal_1 = greater_1 = 0
    for k in range(count - 1, -1, -1):
        value = abs_level(data, s, c, first, equal_1, greater_1, category)
        if value == 1:
            equal_1 += 1
        else:
            greater_1 += 1
        levels[base + scan[positions[k]]] = -value if bypass(data, s) else value
    return count
