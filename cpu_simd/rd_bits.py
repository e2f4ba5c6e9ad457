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
    CTX_TRANSFORM_8x8,
    LAST_BASE,
    N_CONTEXTS,
    SIGNIFICANT_BASE,
    LAST_INC_8x8,
    SIGNIFICANT_INC_8x8,
)
from .cabac_bits import CHROMA_AC, CHROMA_DC, P_SLICE, STATE_BITS, LUMA_4x4, LUMA_8x8
from .cabac_typical import TYPICAL_M_N
from .decisions import N_QP
from .simd.lanes import bit_length

RD_BIT = 256  # a bit
# A row of RD_BITS: for each kind of block RD_KIND elements, significance in 8x8 blocks, bits of coded_block_pattern.
RD_LUMA, RD_AC, RD_DC, RD_8x8 = range(4)
_CATEGORIES = (LUMA_4x4, 16), (CHROMA_AC, 15), (CHROMA_DC, 4), (LUMA_8x8, 64)  # ctxBlockCat and levels of the kinds
RD_ONE = 0  # [5]: a level of one with its sign, by the context of the first bin
RD_MORE = 5  # [5]: the first bin of a larger level, by its context
RD_LARGE = 10  # [5, 16]: its other bins and its sign, by the context of these and the magnitude
RD_FLAG = 90  # [4, 2]: coded_block_flag, by ctxIdxInc
RD_LAST = 98  # [16]: the last level is at this position: significance of all positions as if the others were 0
RD_OTHER = 114  # [16]: what another level at this position adds to that
RD_KIND = 130
RD_LAST_8x8, RD_OTHER_8x8 = 4 * RD_KIND, 4 * RD_KIND + 64  # [64] each, in place of RD_LAST and RD_OTHER of RD_8x8
RD_PATTERN = 4 * RD_KIND + 128  # [4, 2]: the bit of a quadrant in coded_block_pattern, by ctxIdxInc
RD_CHROMA = RD_PATTERN + 8  # [3]: the chroma part
RD_TRANSFORM = RD_CHROMA + 3  # [2]: transform_size_8x8_flag
RD_WORDS = RD_TRANSFORM + 2
RD_LARGEST = 15  # from here on the bits of larger levels are those of this magnitude and of an Exp-Golomb code


def _context_bits() -> np.ndarray:
    """int64[N_QP, N_CONTEXTS, 2]: bits of either bin in P slices, as cabac_bits.fill_bits has them."""
    m, n = TYPICAL_M_N[P_SLICE, :N_CONTEXTS].astype(np.int64).T
    states = np.clip((m * np.arange(N_QP)[:, None] >> 4) + n, 1, 126)
    return STATE_BITS[states].astype(np.int64)


def _significance(bits: np.ndarray, category: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """int64[N_QP, size] twice: of the last level, and what another one adds, by its position."""
    positions = np.arange(size - 1)
    if category == LUMA_8x8:
        inc, last_inc = SIGNIFICANT_INC_8x8[positions], LAST_INC_8x8[positions]
    else:
        inc = last_inc = np.minimum(positions, 2) if category == CHROMA_DC else positions
    significant, last = bits[:, SIGNIFICANT_BASE[category] + inc], bits[:, LAST_BASE[category] + last_inc]
    zeros = significant[:, :, 0]
    of_last = np.concatenate([np.zeros((N_QP, 1), np.int64), np.cumsum(zeros, 1)], 1)
    of_last[:, :-1] += significant[:, :, 1] + last[:, :, 1]
    other = np.concatenate([significant[:, :, 1] + last[:, :, 0] - zeros, np.zeros((N_QP, 1), np.int64)], 1)
    return of_last, other


def _kind(bits: np.ndarray, category: int, size: int) -> np.ndarray:
    """int64[N_QP, RD_KIND] of the blocks of a ctxBlockCat."""
    row = np.zeros((N_QP, RD_KIND), np.int64)
    if size <= 16:
        row[:, RD_LAST : RD_LAST + size], row[:, RD_OTHER : RD_OTHER + size] = _significance(bits, category, size)
    first = bits[:, ABS_LEVEL_BASE[category] : ABS_LEVEL_BASE[category] + 5]
    row[:, RD_ONE : RD_ONE + 5] = first[:, :, 0] + RD_BIT
    row[:, RD_MORE : RD_MORE + 5] = first[:, :, 1]
    magnitude = np.arange(2, RD_LARGEST + 1)
    for k in range(5):
        zero, one = bits[:, ABS_LEVEL_BASE[category] + 5 + min(k, 3 if category == CHROMA_DC else 4)].T[:, :, None]
        end = np.where(magnitude < RD_LARGEST, zero, RD_BIT)
        row[:, RD_LARGE + 16 * k + 2 : RD_LARGE + 16 * k + 16] = RD_BIT + (magnitude - 2) * one + end
    if category != LUMA_8x8:
        base = CODED_BLOCK_BASE[category]
        row[:, RD_FLAG : RD_FLAG + 8] = bits[:, base : base + 4].reshape(N_QP, 8)
    return row


def _table() -> np.ndarray:
    """See RD_BITS. The neighbours' chroma and transforms are taken for coded, and 8x8, on one side: ctxIdxInc 1."""
    bits = _context_bits()
    pattern = bits[:, CTX_CBP_LUMA : CTX_CBP_LUMA + 4].reshape(N_QP, 8)
    any_chroma, ac = bits[:, CTX_CBP_CHROMA + 1], bits[:, CTX_CBP_CHROMA + 4 + 1]
    chroma = np.stack([any_chroma[:, 0], any_chroma[:, 1] + ac[:, 0], any_chroma[:, 1] + ac[:, 1]], 1)
    kinds = [_kind(bits, *category) for category in _CATEGORIES]
    parts = [*kinds, *_significance(bits, LUMA_8x8, 64), pattern, chroma, bits[:, CTX_TRANSFORM_8x8 + 1]]
    return np.concatenate(parts, 1).astype(np.int32)


RD_BITS = _table()  # int32[N_QP, RD_WORDS]


@helper
def level_block_bits(qp, kind, levels, at, mask):
    """7.3.5.3.3: bits of residual_block_cabac() without coded_block_flag of a block of kind RD_*.

    levels: its levels in scan order from `at` on; mask: bit i: level i is not 0; not 0.
    """
    base = RD_KIND * kind
    of_last, of_other = (RD_LAST_8x8, RD_OTHER_8x8) if kind == RD_8x8 else (base + RD_LAST, base + RD_OTHER)
    last = bit_length(mask) - 1
    total = np.int64(RD_BITS[qp, of_last + last])
    rest, first, greater = mask, 1, 0
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        if i != last:
            total += np.int64(RD_BITS[qp, of_other + i])
        size = abs(np.int64(levels[at + i]))
        if size == 1:
            total += np.int64(RD_BITS[qp, base + RD_ONE + first])
            if first:
                first = min(first + 1, 4)
        else:
            total += np.int64(RD_BITS[qp, base + RD_MORE + first])
            total += np.int64(RD_BITS[qp, base + RD_LARGE + 16 * greater + min(size, RD_LARGEST)])
            if size > RD_LARGEST:
                total += RD_BIT * (2 * bit_length(size - RD_LARGEST + 1) - 2)
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


@helper
def transform_size_bits(qp, flag):
    """9.3.3.1.1.10: bits of transform_size_8x8_flag."""
    return np.int64(RD_BITS[qp, RD_TRANSFORM + flag])
