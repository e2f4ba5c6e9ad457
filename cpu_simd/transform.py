"""Transforms, quantisation and scaling of 4x4 blocks (8.5) with SIMD.

A macroblock's samples and levels lie in flat buffers of 24 rows of sixteen: 16 rows of luma, then 8 rows that hold Cb
in columns 0..7 and Cr in 8..15. Four rows are a "strip" of four 4x4 blocks: strips 0..3 are luma, 4 and 5 chroma.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cavlc import MAX_LEVEL
from ..standard.tables import QP_CHROMA, QUANT_MF, NORM_ADJUST_4x4, level_scale_4x4
from .decisions import ROUNDING
from .simd.blocks import (
    count_nonzero,
    forward_columns,
    forward_rows,
    inverse_columns,
    inverse_rows,
    load_i32x16,
    multiply_wide,
    narrow,
    narrow_saturated,
    nonzero_groups,
    shift_right,
    splat_i32x16,
    store_block,
    with_sign,
)
from .simd.vector import (
    absolute,
    add,
    bit_or,
    clip_to_u8,
    load_u8x16,
    load_u16x16,
    mul,
    plus,
    shift_right_s,
    splat_u16x16,
    store,
    sub,
    widen,
    widen_signed,
)

RATIOS = 384  # in a macroblock's buffer of levels: |coefficient| / step of each, in units of 1 / 64

LEVEL_SCALE = level_scale_4x4()  # int32[6, 16]: [qP % 6, raster], flat scaling lists

# Forward multipliers and scaling factors of a block in raster order, int16[qP % 6, 16]. LevelScale is a multiple of 16
# with flat lists, so 8.5.12.1 reduces to level * normAdjust << (qP / 6), and its right shift is exact.
MF_BLOCK = QUANT_MF.astype(np.int16)
SCALE_BLOCK = NORM_ADJUST_4x4.astype(np.int16)


def _strip(blocks):
    """[..., 16 positions of a block] -> [..., 4 rows * 16]: the same values for the four blocks of a strip."""
    return np.ascontiguousarray(np.tile(blocks.reshape(-1, 4, 4), (1, 1, 4)).reshape(-1, 64))


# The same for a strip: MF int16[12, 64], row qP % 6, and row 6 + qP % 6 with zeros for the DC; SCALE int16[6, 64]
_MF_AC = MF_BLOCK.copy()
_MF_AC[:, 0] = 0
MF_STRIP = _strip(np.concatenate([MF_BLOCK, _MF_AC]))
SCALE_STRIP = _strip(SCALE_BLOCK)


@helper
def chroma_qp(qp, chroma_qp_offset):
    """8.5.8: QP_C of a luma QP and chroma_qp_index_offset."""
    return np.int64(QP_CHROMA[min(51, max(0, qp + chroma_qp_offset))])


@helper
def _ratios(coefficients, factors, shift):
    """|coefficient| / step of sixteen coefficients, in units of 1 / 64, at most 32767."""
    return narrow_saturated(shift_right(multiply_wide(absolute(coefficients), factors), shift - 6))


@helper
def _quantise(coefficients, factors, rounding, shift):
    """Levels of sixteen coefficients: (|W| * MF + f) >> shift with the sign of W; not part of the standard.

    |W| <= 9180, MF <= 13107 and f <= 2^23 / 3 keep the sum within 31 bits and the levels below 1633.
    """
    scaled = shift_right(add(multiply_wide(absolute(coefficients), factors), rounding), shift)
    return with_sign(narrow(scaled), coefficients)


@helper
def quantise_strips(source, predicted, strip0, strip1, ac_only, qp, dead_zone, levels, dc):
    """Forward transform and quantisation of strips [strip0, strip1): source, predicted uint8[384] -> levels int16[768].

    ac_only: 1 leaves the DC coefficients out (levels 0); dc int32[96] receives them, strip * 16 + 4 * block. From
    element RATIOS on, levels receives |coefficient| / step. Returns a bit mask of the blocks with levels, 4 * strip + block.
    """
    shift = 15 + qp // 6
    rounding = splat_i32x16((dead_zone << shift) // ROUNDING)
    table = (6 * ac_only + qp % 6) * 64
    f0, f1 = load_u16x16(MF_STRIP, table), load_u16x16(MF_STRIP, table + 16)
    f2 = load_u16x16(MF_STRIP, table + 32)
    coded = 0
    for strip in range(strip0, strip1):
        at = 64 * strip
        x0 = forward_rows(sub(widen(load_u8x16(source, at)), widen(load_u8x16(predicted, at))))
        x1 = forward_rows(sub(widen(load_u8x16(source, at + 16)), widen(load_u8x16(predicted, at + 16))))
        x2 = forward_rows(sub(widen(load_u8x16(source, at + 32)), widen(load_u8x16(predicted, at + 32))))
        x3 = forward_rows(sub(widen(load_u8x16(source, at + 48)), widen(load_u8x16(predicted, at + 48))))
        s, t, u, v = add(x0, x3), add(x1, x2), sub(x1, x2), sub(x0, x3)
        first = add(s, t)
        store(dc, 16 * strip, widen_signed(first))
        second, third, fourth = add(add(v, v), u), sub(s, t), sub(v, add(u, u))
        store(levels, RATIOS + at, _ratios(first, f0, shift))
        store(levels, RATIOS + at + 16, _ratios(second, f1, shift))
        store(levels, RATIOS + at + 32, _ratios(third, f2, shift))
        store(levels, RATIOS + at + 48, _ratios(fourth, f1, shift))
        x0 = _quantise(first, f0, rounding, shift)
        x1 = _quantise(second, f1, rounding, shift)
        x2 = _quantise(third, f2, rounding, shift)
        x3 = _quantise(fourth, f1, rounding, shift)
        store(levels, at, x0)
        store(levels, at + 16, x1)
        store(levels, at + 32, x2)
        store(levels, at + 48, x3)
        coded |= nonzero_groups(bit_or(bit_or(x0, x1), bit_or(x2, x3))) << (4 * strip)
    return coded


@helper
def _add_residual(predicted, residual):
    """8.5.12.2, 8.5.14: Clip1(prediction + ((residual + 32) >> 6)) of sixteen samples."""
    return clip_to_u8(add(widen_signed(widen(predicted)), shift_right_s(plus(residual, 32), 6)))


@helper
def reconstruct_strips(levels, dc, predicted, strip0, strip1, qp, out):
    """8.5.12, 8.5.14: scaling, inverse transform, reconstruction of strips [strip0, strip1) into out uint8[384].

    levels int16[384]; dc int32[96]: scaled DC values to be added at strip * 16 + 4 * block, all else 0.
    """
    table = 64 * (qp % 6)
    power = splat_u16x16(1 << (qp // 6))
    f0, f1 = mul(load_u16x16(SCALE_STRIP, table), power), mul(load_u16x16(SCALE_STRIP, table + 16), power)
    for strip in range(strip0, strip1):
        at = 64 * strip
        x0 = inverse_rows(add(multiply_wide(load_u16x16(levels, at), f0), load_i32x16(dc, 16 * strip)))
        x1 = inverse_rows(multiply_wide(load_u16x16(levels, at + 16), f1))
        x2 = inverse_rows(multiply_wide(load_u16x16(levels, at + 32), f0))
        x3 = inverse_rows(multiply_wide(load_u16x16(levels, at + 48), f1))
        s, t = add(x0, x2), sub(x0, x2)
        u, v = sub(shift_right_s(x1, 1), x3), add(x1, shift_right_s(x3, 1))
        store(out, at, _add_residual(load_u8x16(predicted, at), add(s, v)))
        store(out, at + 16, _add_residual(load_u8x16(predicted, at + 16), add(t, u)))
        store(out, at + 32, _add_residual(load_u8x16(predicted, at + 32), sub(t, u)))
        store(out, at + 48, _add_residual(load_u8x16(predicted, at + 48), sub(s, v)))


@helper
def quantise_block(source, predicted, qp, dead_zone):
    """Levels of one 4x4 block (u8x16, raster) and |coefficient| / step as in quantise_strips, both in raster order."""
    shift = 15 + qp // 6
    coefficients = forward_columns(forward_rows(sub(widen(source), widen(predicted))))
    rounding = splat_i32x16((dead_zone << shift) // ROUNDING)
    factors = load_u16x16(MF_BLOCK, 16 * (qp % 6))
    return _quantise(coefficients, factors, rounding, shift), _ratios(coefficients, factors, shift)


@helper
def reconstruct_block(quantised, predicted, qp, rec, rec_at, stride):
    """8.5.12, 8.5.14: reconstruction of one 4x4 block from its levels (raster) to the plane rec from offset rec_at on."""
    if count_nonzero(quantised) == 0:
        store_block(rec, rec_at, stride, predicted)
    else:
        factors = mul(load_u16x16(SCALE_BLOCK, 16 * (qp % 6)), splat_u16x16(1 << (qp // 6)))
        scaled = multiply_wide(quantised, factors)
        store_block(rec, rec_at, stride, _add_residual(predicted, inverse_columns(inverse_rows(scaled))))


@helper
def quantise_dc(value, qp, dead_zone):
    """Level of a DC coefficient after the second transform (twice the step of position 0 of a 4x4 block).

    Only these levels can exceed MAX_LEVEL.
    """
    shift = 16 + qp // 6
    level = min((abs(value) * int(QUANT_MF[qp % 6, 0]) + (dead_zone << shift) // ROUNDING) >> shift, MAX_LEVEL)
    return -level if value < 0 else level


@helper
def hadamard_4x4(c):
    """8.5.10: the 4x4 Hadamard transform f = A c A, in place; c int64[16], raster."""
    for i in range(4):
        s, t = c[4 * i] + c[4 * i + 1], c[4 * i] - c[4 * i + 1]
        u, v = c[4 * i + 2] + c[4 * i + 3], c[4 * i + 2] - c[4 * i + 3]
        c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3] = s + u, s - u, t - v, t + v
    for j in range(4):
        s, t = c[j] + c[4 + j], c[j] - c[4 + j]
        u, v = c[8 + j] + c[12 + j], c[8 + j] - c[12 + j]
        c[j], c[4 + j], c[8 + j], c[12 + j] = s + u, s - u, t - v, t + v


@helper
def transform_luma_dc(c):
    """Intra16x16 DC: transforms c (int64[16], the DC of each block in raster order) in place."""
    hadamard_4x4(c)
    for i in range(16):
        # Halving rounds away from zero for both signs.
        half = (abs(c[i]) + 1) >> 1
        c[i] = -half if c[i] < 0 else half


@helper
def scale_luma_dc(c, qp):
    """8.5.10: levels of the Intra16x16 DC block (int64[16], raster) -> scaled DC of each block, in place."""
    hadamard_4x4(c)
    factor = int(LEVEL_SCALE[qp % 6, 0])
    for i in range(16):
        if qp >= 36:
            c[i] = (c[i] * factor) << (qp // 6 - 6)
        else:
            c[i] = (c[i] * factor + (1 << (5 - qp // 6))) >> (6 - qp // 6)


@helper
def hadamard_2x2(c, at):
    """8.5.11.1: the 2x2 transform of chroma DC, in place; c int64, four values from `at` on, raster."""
    s, t = c[at] + c[at + 1], c[at] - c[at + 1]
    u, v = c[at + 2] + c[at + 3], c[at + 2] - c[at + 3]
    c[at], c[at + 1], c[at + 2], c[at + 3] = s + u, t + v, s - u, t - v


@helper
def code_chroma_dc(c, at, qp_c, dead_zone):
    """Transforms and quantises the chroma DC values c[at..at + 3] (int64, raster); they become levels."""
    hadamard_2x2(c, at)
    for i in range(at, at + 4):
        c[i] = quantise_dc(c[i], qp_c, dead_zone)


@helper
def scale_chroma_dc(c, at, qp_c):
    """8.5.11.2: levels c[at..at + 3] of a chroma DC block -> scaled DC of each block, in place."""
    hadamard_2x2(c, at)
    factor = int(LEVEL_SCALE[qp_c % 6, 0])
    for i in range(at, at + 4):
        c[i] = ((c[i] * factor) << (qp_c // 6)) >> 5
