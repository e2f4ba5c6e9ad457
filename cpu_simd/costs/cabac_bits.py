"""Bits of CABAC bins in decisions, from states that depend on slice type and QP alone; not part of the standard.

Units are 1 / 256 bit. The states are those that slices settle to: a line by QP for each context, measured by
benchmarks/cabac_states.py, in the form of `m` and `n` of 9.3.1.1. The twin for GPUs is cuda_src/costs/cabac_bits.cuh.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    CODED_BLOCK_BASE,
    CTX_CBP_LUMA,
    CTX_REF_IDX,
    CTX_SUB_MB_TYPE_P,
    LAST_BASE,
    N_CONTEXTS,
    SIGNIFICANT_BASE,
    LAST_INC_8x8,
    SIGNIFICANT_INC_8x8,
)
from ...standard.macroblock import SUB_4x8, SUB_8x4, SUB_8x8
from ..cabac_typical import ONE_BIT, STATE_BITS, TYPICAL_M_N
from ..simd.lanes import bit_length

I_SLICE, P_SLICE, B_SLICE = 0, 1, 2  # rows of TYPICAL_M_N
# ctxBlockCat (Table 9-42)
LUMA_DC_16x16, LUMA_AC_16x16, LUMA_4x4, CHROMA_DC, CHROMA_AC, LUMA_8x8 = range(6)

EMPTY = 2 * N_CONTEXTS  # elements of a table of bits from which on those of empty blocks stand, by ctxBlockCat
TABLE_QP = EMPTY + 6  # the element with the QP of the table
# By ctxBlockCat, with an element for each scan position of a block:
_SIZES = np.array([16, 15, 16, 4, 15, 64])
LAST = TABLE_QP + 1 + np.cumsum(2 * _SIZES) - 2 * _SIZES  # the last level is there: all flags, as if the others were 0
OTHER = LAST + _SIZES  # what another level there adds to that
N_BITS = TABLE_QP + 1 + 2 * int(_SIZES.sum())


@helper
def fill_bits(bits, slice_type, qp):
    """Bits by slice type (I_SLICE, P_SLICE, B_SLICE) and SliceQP_Y: bits int32[N_BITS], element ctxIdx << 1 | bin.

    From EMPTY on: coded_block_flag of a block without levels less that of one with levels, the mean of its contexts; for 8x8
    blocks coded_block_pattern. At TABLE_QP: qp. From LAST and OTHER on: significance of levels.
    """
    for k in range(N_CONTEXTS):
        m, n = np.int64(TYPICAL_M_N[slice_type, k, 0]), np.int64(TYPICAL_M_N[slice_type, k, 1])
        state = min(126, max(1, (m * qp >> 4) + n))
        bits[2 * k] = STATE_BITS[state, 0]
        bits[2 * k + 1] = STATE_BITS[state, 1]
    for category in range(6):
        first = CTX_CBP_LUMA if category == LUMA_8x8 else np.int64(CODED_BLOCK_BASE[category])
        total = np.int64(0)
        for k in range(2 * first, 2 * first + 8, 2):
            total += np.int64(bits[k]) - np.int64(bits[k + 1])
        bits[EMPTY + category] = total >> 2
        _fill_significance(bits, category)
    bits[TABLE_QP] = qp


@helper
def _fill_significance(bits, category):
    """The elements from LAST and OTHER on of one ctxBlockCat."""
    size, zeros = np.int64(_SIZES[category]), np.int64(0)
    for i in range(size):
        significant, last = significance_contexts(category, min(i, size - 2))
        zero, one = np.int64(bits[2 * significant]), np.int64(bits[2 * significant + 1])
        is_end = i == size - 1
        bits[LAST[category] + i] = zeros + (0 if is_end else one + np.int64(bits[2 * last + 1]))
        bits[OTHER[category] + i] = 0 if is_end else one + np.int64(bits[2 * last]) - zero
        zeros += zero


@helper
def significance_contexts(category, i):
    """9.3.3.1.3: ctxIdx of significant_coeff_flag and last_significant_coeff_flag at levelListIdx i of a frame macroblock."""
    significant, last = np.int64(SIGNIFICANT_BASE[category]), np.int64(LAST_BASE[category])
    if category == LUMA_8x8:
        return significant + np.int64(SIGNIFICANT_INC_8x8[i]), last + np.int64(LAST_INC_8x8[i])
    if category == CHROMA_DC:
        i = min(i, 2)
    return significant + i, last + i


@helper
def large_level_bits(bits, context, size):
    """9.3.2.3: bits of a magnitude of 2 and more without the first bin, and of its sign; context: of its other bins."""
    ones = min(size - 2, 13)
    total = ONE_BIT + ones * np.int64(bits[2 * context + 1])
    if size < 15:
        return total + np.int64(bits[2 * context])
    return total + ONE_BIT * (2 * bit_length(size - 14) - 1)


@helper
def levels_bits(bits, category, levels, at, mask):
    """7.3.5.3.3: bits of residual_block_cabac() of levels from levels[at] on, in scan order, without coded_block_flag.

    bits: of fill_bits; category: ctxBlockCat; mask: of the levels that are not 0, without any the result is 0.
    """
    if mask == 0:
        return np.int64(0)
    base, others = np.int64(ABS_LEVEL_BASE[category]), np.int64(OTHER[category])
    most = 3 if category == CHROMA_DC else 4
    last = bit_length(mask) - 1
    total = np.int64(bits[LAST[category] + last]) - np.int64(bits[others + last])
    first, greater = 1, 0
    while mask != 0:
        i = bit_length(mask) - 1
        mask ^= np.int64(1) << i
        total += np.int64(bits[others + i])
        size = abs(np.int64(levels[at + i]))
        if size == 1:
            total += np.int64(bits[2 * (base + first)]) + ONE_BIT
            if first:
                first = min(first + 1, 4)
        else:
            total += np.int64(bits[2 * (base + first) + 1]) + large_level_bits(bits, base + 5 + greater, size)
            first, greater = 0, min(greater + 1, most)
    return total


@helper
def mvd_bits(bits, first, value, around):
    """9.3.3.1.1.7: bits of one component; first: CTX_MVD_X or CTX_MVD_Y; around: sum of the neighbours' magnitudes."""
    size = abs(value)
    context = first + (0 if around < 3 else 1 if around <= 32 else 2)
    if size == 0:
        return np.int64(bits[2 * context])
    total = ONE_BIT + np.int64(bits[2 * context + 1])
    for i in range(1, min(size, 9)):
        total += np.int64(bits[2 * (first + min(2 + i, 6)) + 1])
    if size < 9:
        return total + np.int64(bits[2 * (first + min(2 + size, 6))])
    suffix = bit_length((size - 9 >> 3) + 1) - 1  # 9.3.2.3: Exp-Golomb of order 3
    return total + ONE_BIT * (2 * suffix + 4)


@helper
def ref_idx_bits(bits, ref, inc):
    """9.3.3.1.1.6: bits of ref_idx_l0; inc: 1 if the block to the left has ref_idx > 0, plus 2 for the one above."""
    total = np.int64(0)
    for _ in range(ref):
        total += np.int64(bits[2 * (CTX_REF_IDX + inc) + 1])
        inc = (inc >> 2) + 4
    return total + np.int64(bits[2 * (CTX_REF_IDX + inc)])


@helper
def sub_type_bits(bits, sub_mb_type):
    """Table 9-38: bits of sub_mb_type of a P macroblock."""
    first = 2 * CTX_SUB_MB_TYPE_P
    if sub_mb_type == SUB_8x8:
        return np.int64(bits[first + 1])
    total = np.int64(bits[first])
    if sub_mb_type == SUB_8x4:
        return total + np.int64(bits[first + 2])
    return total + np.int64(bits[first + 3]) + np.int64(bits[first + 4 + (1 if sub_mb_type == SUB_4x8 else 0)])
