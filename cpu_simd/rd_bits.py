"""Bits of CABAC of the residual of a P macroblock as tables by QP, for rd_candidates on both devices; not part of the standard.

The bits are those of cabac_bits.py in units of 1 / 256 bit. cuda_src/runtime/compiler.py writes RD_BITS to rd_bits.cuh.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    CODED_BLOCK_BASE,
    CTX_CBP_CHROMA,
    CTX_CBP_LUMA,
    LAST_BASE,
    N_CONTEXTS,
    SIGNIFICANT_BASE,
)
from .cabac_bits import CHROMA_AC, CHROMA_DC, LUMA_4x4, P_SLICE, STATE_BITS
from .cabac_typical import TYPICAL_M_N
from .decisions import N_QP
from .simd.lanes import bit_length

RD_BIT = 256  # a bit
# A row of RD_BITS: for each kind of block RD_KIND elements, then bits of coded_block_pattern.
RD_LUMA, RD_AC, RD_DC = range(3)
_CATEGORIES = (LUMA_4x4, 16), (CHROMA_AC, 15), (CHROMA_DC, 4)  # ctxBlockCat and levels of the kinds
RD_LAST = 0  # [16]: the last level is at this position: significance of all positions as if the others were 0
RD_OTHER = 16  # [16]: what another level at this position adds to that
RD_ONE = 32  # [5]: a level of one with its sign, by the context of the first bin
RD_MORE = 37  # [5]: the first bin of a larger level, by its context
RD_LARGE = 42  # [5, 16]: its other bins and its sign, by the context of these and the magnitude
RD_FLAG = 122  # [4, 2]: coded_block_flag, by ctxIdxInc
RD_KIND = 130
RD_PATTERN = 3 * RD_KIND  # [4, 2]: the bit of a quadrant in coded_block_pattern, by ctxIdxInc
RD_CHROMA = RD_PATTERN + 8  # [3]: the chroma part
RD_WORDS = RD_CHROMA + 3
LARGEST_MAGNITUDE = 15  # from here on the bits of larger levels are those of this magnitude and of an Exp-Golomb code


def _context_bits() -> np.ndarray:
    """int64[N_QP, N_CONTEXTS, 2]: bits of either bin in P slices, as cabac_bits.fill_bits has them."""
    m, n = TYPICAL_M_N[P_SLICE, :N_CONTEXTS].astype(np.int64).T
    states = np.clip((m * np.arange(N_QP)[:, None] >> 4) + n, 1, 126)
    return STATE_BITS[states].astype(np.int64)


def _kind(bits: np.ndarray, category: int, size: int) -> np.ndarray:
    """int64[N_QP, RD_KIND] of the blocks of a ctxBlockCat."""
    row = np.zeros((N_QP, RD_KIND), np.int64)
    inc = np.minimum(np.arange(size - 1), 2) if category == CHROMA_DC else np.arange(size - 1)
    significant, last = bits[:, SIGNIFICANT_BASE[category] + inc], bits[:, LAST_BASE[category] + inc]
    zeros = significant[:, :, 0]
    row[:, RD_LAST + 1 : RD_LAST + size] = np.cumsum(zeros, 1)
    row[:, RD_LAST : RD_LAST + size - 1] += significant[:, :, 1] + last[:, :, 1]
    row[:, RD_OTHER : RD_OTHER + size - 1] = significant[:, :, 1] + last[:, :, 0] - zeros
    first = bits[:, ABS_LEVEL_BASE[category] : ABS_LEVEL_BASE[category] + 5]
    row[:, RD_ONE : RD_ONE + 5] = first[:, :, 0] + RD_BIT
    row[:, RD_MORE : RD_MORE + 5] = first[:, :, 1]
    for k in range(5):
        ones, zero = np.moveaxis(bits[:, ABS_LEVEL_BASE[category] + 5 + min(k, 3 if category == CHROMA_DC else 4)], 1, 0)[::-1]
        for magnitude in range(2, 16):
            end = zero if magnitude < LARGEST_MAGNITUDE else RD_BIT
            row[:, RD_LARGE + 16 * k + magnitude] = RD_BIT + min(magnitude - 2, 13) * ones + end
    row[:, RD_FLAG : RD_FLAG + 8] = bits[:, CODED_BLOCK_BASE[category] : CODED_BLOCK_BASE[category] + 4].reshape(N_QP, 8)
    return row


def _table() -> np.ndarray:
    """See RD_BITS. The neighbours' chroma is taken for coded on one side: ctxIdxInc 1."""
    bits = _context_bits()
    pattern = bits[:, CTX_CBP_LUMA : CTX_CBP_LUMA + 4].reshape(N_QP, 8)
    any_chroma, ac = bits[:, CTX_CBP_CHROMA + 1], bits[:, CTX_CBP_CHROMA + 4 + 1]
    chroma = np.stack([any_chroma[:, 0], any_chroma[:, 1] + ac[:, 0], any_chroma[:, 1] + ac[:, 1]], 1)
    return np.concatenate([*(_kind(bits, *category) for category in _CATEGORIES), pattern, chroma], 1).astype(np.int16)


RD_BITS = _table()  # int16[N_QP, RD_WORDS]


@helper
def level_block_bits(qp, kind, levels, at, mask):
    """7.3.5.3.3: bits of residual_block_cabac() without coded_block_flag of a block of RD_LUMA, RD_AC or RD_DC.

    levels: its levels in scan order from `at` on; mask: bit i: level i is not 0; not 0.
    """
    base = RD_KIND * kind
    last = bit_length(mask) - 1
    total = np.int64(RD_BITS[qp, base + RD_LAST + last])
    rest, first, greater = mask, 1, 0
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        if i != last:
            total += np.int64(RD_BITS[qp, base + RD_OTHER + i])
        size = abs(np.int64(levels[at + i]))
        if size == 1:
            total += np.int64(RD_BITS[qp, base + RD_ONE + first])
            if first:
                first = min(first + 1, 4)
        else:
            total += np.int64(RD_BITS[qp, base + RD_MORE + first])
            total += np.int64(RD_BITS[qp, base + RD_LARGE + 16 * greater + min(size, LARGEST_MAGNITUDE)])
            if size > LARGEST_MAGNITUDE:
                total += RD_BIT * (2 * bit_length(size - LARGEST_MAGNITUDE + 1) - 2)
            first, greater = 0, min(greater + 1, 4)
    return total


@helper
def block_flag_bits(qp, kind, inc, coded):
    """9.3.3.1.1.9: bits of coded_block_flag; inc: flag of the block to the left + 2 * above."""
    return np.int64(RD_BITS[qp, RD_KIND * kind + RD_FLAG + 2 * inc + coded])


@helper
def luma_pattern_bits(qp, luma):
    """9.3.3.1.1.4: bits of the luma of coded_block_pattern; the neighbours are taken for like the adjacent quadrants."""
    total = np.int64(0)
    for q in range(4):
        inc = 3 - (luma >> (q ^ 1) & 1) - 2 * (luma >> (q ^ 2) & 1)
        total += np.int64(RD_BITS[qp, RD_PATTERN + 2 * inc + (luma >> q & 1)])
    return total


@helper
def chroma_pattern_bits(qp, chroma):
    """9.3.3.1.1.4: bits of the chroma part of coded_block_pattern, 0 to 2."""
    return np.int64(RD_BITS[qp, RD_CHROMA + chroma])
