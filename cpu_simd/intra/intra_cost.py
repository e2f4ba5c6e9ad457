"""True costs of intra macroblocks: squared error of the reconstruction, and bits of CABAC by frozen states, in 1 / 256 bit.

Not part of the standard. Where a context depends on neighbours, its bits are the mean over their values. Bits that all
compared types have in common are left out.
"""

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import (
    CODED_BLOCK_BASE,
    CTX_CBP_CHROMA,
    CTX_CBP_LUMA,
    CTX_INTRA_CHROMA,
    CTX_PREV_INTRA_MODE,
    CTX_REM_INTRA_MODE,
)
from ...standard.sample_format import MB_SAMPLES
from ..costs.cabac_bits import CHROMA_AC, CHROMA_DC, LUMA_4x4, LUMA_AC_16x16, LUMA_DC_16x16, levels_bits
from ..decisions.common import RD_MOST
from ..decisions.intra import INTRA_ERROR, INTRA_TYPE_CONTEXTS
from ..layout import CB_AC, CB_DC, LUMA_DC
from ..residual.transform_choice import bits_8x8, mean_bits
from ..simd.blocks import join
from ..simd.lanes import nonzero_lanes, squares_of_pairs, sum_of_lanes
from ..simd.vector import add, load_4_u8x4, load_u8x8, load_u8x16, load_u16x16, splat_i32x8, store, sub, widen

COST_MAX = 1 << 40  # more than any cost

# What costs of one macroblock are measured with.
Scale = namedtuple("Scale", (
    "slice_type",  # I_SLICE, P_SLICE of cabac_bits.py
    "bits",  # int32[N_BITS], of cabac_bits.fill_bits
    "block",  # int16[64], scratch
    "costs",  # int64[9], scratch
))  # fmt: skip


@helper
def cost_of(error, bits, qp):
    """Cost of a squared error and of bits."""
    return min(error * INTRA_ERROR[qp] >> 16, RD_MOST) + bits


@helper
def _squares(a, b):
    return squares_of_pairs(sub(widen(a), widen(b)))


@helper
def error_16x16(source, rec, at, stride):
    """Squared error of a macroblock's luma: a buffer of rows of sixteen against the plane rec from flat offset `at` on."""
    total = splat_i32x8(0)
    for i in range(16):
        total = add(total, _squares(load_u8x16(source, 16 * i), load_u8x16(rec, at + i * stride)))
    return np.int64(sum_of_lanes(total))


@helper
def error_chroma(source, out):
    """The same of both chroma planes, in buffers of transform.py."""
    total = splat_i32x8(0)
    for i in range(256, MB_SAMPLES, 16):
        total = add(total, _squares(load_u8x16(source, i), load_u8x16(out, i)))
    return np.int64(sum_of_lanes(total))


@helper
def error_8x8(source, at, rec, rec_at, stride):
    """The same of an 8x8 block, from source[at] on."""
    total = splat_i32x8(0)
    for i in range(0, 8, 2):
        source_rows = join(load_u8x8(source, at + 16 * i), load_u8x8(source, at + 16 * i + 16))
        total = add(total, _squares(source_rows, join(load_u8x8(rec, rec_at), load_u8x8(rec, rec_at + stride))))
        rec_at += 2 * stride
    return np.int64(sum_of_lanes(total))


@helper
def error_4x4(samples, rec, at, stride):
    """The same of a 4x4 block; samples: u8x16 of the source."""
    return np.int64(sum_of_lanes(_squares(samples, load_4_u8x4(rec, at, at + stride, at + 2 * stride, at + 3 * stride))))


@helper
def mode_bits(bits, mode, predicted):
    """7.3.5.1: bits of prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode, or those of 8x8 blocks."""
    if mode == predicted:
        return np.int64(bits[2 * CTX_PREV_INTRA_MODE + 1])
    rem = mode - (1 if mode > predicted else 0)
    total = np.int64(bits[2 * CTX_PREV_INTRA_MODE])
    for i in range(3):
        total += np.int64(bits[2 * CTX_REM_INTRA_MODE + (rem >> i & 1)])
    return total


@helper
def type_bits(scale, element, value):
    """Tables 9-36, 9-37: bits of a bin of mb_type; element: 0 not I_NxN, 1 levels of luma AC, 2 and 3 Intra16x16PredMode."""
    return np.int64(scale.bits[2 * np.int64(INTRA_TYPE_CONTEXTS[scale.slice_type, element]) + value])


@helper
def pattern_bits(bits, coded):
    """9.3.3.1.1.4: bits of one bit of the luma part of coded_block_pattern."""
    return mean_bits(bits, CTX_CBP_LUMA, 1 if coded else 0)


@helper
def block_bits(scale, category, first, size):
    """Bits of coded_block_flag and of the levels in scale.block from `first` on, `size` of them in scan order."""
    mask = nonzero_lanes(scale.block, first) & (1 << size) - 1
    total = levels_bits(scale.bits, category, scale.block, first, mask)
    return total + mean_bits(scale.bits, np.int64(CODED_BLOCK_BASE[category]), 1 if mask else 0)


@helper
def levels_bits_4x4(scale, levels, at):
    """block_bits of Intra_4x4 levels at flat offset `at`."""
    store(scale.block, 0, load_u16x16(levels, at))
    return block_bits(scale, LUMA_4x4, 0, 16)


@helper
def levels_bits_8x8(scale, quantised, q, coded):
    """Bits of quadrant q of quantised (int16[768], see transform_8x8.py) with its bit of coded_block_pattern."""
    if not coded:
        return pattern_bits(scale.bits, False)
    return pattern_bits(scale.bits, True) + bits_8x8(quantised, q, scale.bits, scale.block)


@helper
def cost_16x16(scale, mb, mode, error, cbp, qp, residual):
    """Cost of the luma of Intra_16x16 macroblock mb with its mb_type."""
    levels = residual.levels
    for i in range(16):
        scale.block[i] = levels[mb, LUMA_DC, i]
    total = block_bits(scale, LUMA_DC_16x16, 0, 16)
    for n in range(16):
        if cbp:
            for i in range(16):
                scale.block[i] = levels[mb, n, i]
            total += block_bits(scale, LUMA_AC_16x16, 1, 15)
    total += type_bits(scale, 0, 1) + type_bits(scale, 1, 1 if cbp else 0)
    total += type_bits(scale, 2, mode >> 1) + type_bits(scale, 3, mode & 1)
    return cost_of(error, total, qp)


@helper
def cost_chroma(scale, mb, mode, error, pattern, qp, residual):
    """Cost of the chroma of macroblock mb with intra_chroma_pred_mode and its part of coded_block_pattern (0, 1, 2)."""
    bits, levels = scale.bits, residual.levels
    total = mean_bits(bits, CTX_CBP_CHROMA, 1 if pattern else 0)
    if pattern:
        total += mean_bits(bits, CTX_CBP_CHROMA + 4, pattern >> 1)
        for plane in range(2):
            for i in range(4):
                scale.block[i] = levels[mb, CB_DC + plane, i]
            total += block_bits(scale, CHROMA_DC, 0, 4)
    for n in range(CB_AC, CB_AC + 8):
        if pattern == 2:
            for i in range(16):
                scale.block[i] = levels[mb, n, i]
            total += block_bits(scale, CHROMA_AC, 1, 15)
    total += np.int64(bits[2 * CTX_INTRA_CHROMA + 2 + (1 if mode else 0)])  # where one neighbour has a mode that is not 0
    for n in range(1, 3):
        if mode >= n:
            total += np.int64(bits[2 * CTX_INTRA_CHROMA + 6 + (1 if mode > n else 0)])
    return cost_of(error, total, qp)


@helper
def next_mode(costs):
    """The mode of the lowest cost, the first on a tie, which then counts as tried; -1: none is left."""
    mode = np.int64(0)
    for i in range(1, 9):
        if costs[i] < costs[mode]:
            mode = np.int64(i)
    if costs[mode] >= COST_MAX:
        return np.int64(-1)
    costs[mode] = COST_MAX
    return mode
