"""Transforms, quantisation and scaling of 4x4 blocks (8.5) with SIMD.

A macroblock's samples and levels lie in flat buffers of 24 rows of sixteen: 16 rows of luma, then 8 rows that hold Cb
in columns 0..7 and Cr in 8..15. Four rows are a "strip" of four 4x4 blocks: strips 0..3 are luma, 4 and 5 chroma.
"""
# Samples of 8 bits only: coefficients of 16 bits.

from collections import namedtuple

import numpy as np

from ...jit.intrinsics import outlined
from ...jit.kernel import helper
from ...standard.cavlc import MAX_LEVEL
from ...standard.tables import QP_CHROMA
from ..decisions.quantise import MOST_RESIDUAL, ROUNDING
from ..layout import (
    SCALING_FACTORS,
    SCALING_FACTORS_BLOCK,
    SCALING_FACTORS_CHROMA,
    SCALING_MF,
    SCALING_MF_BLOCK,
    SCALING_MF_CHROMA,
)
from ..simd.blocks import (
    count_nonzero,
    forward_columns,
    forward_rows,
    inverse_columns,
    inverse_rows,
    less,
    load_i32x16,
    min_s,
    multiply_high,
    multiply_wide,
    narrow,
    narrow_saturated,
    nonzero_groups,
    shift_right,
    splat_i32x16,
    store_block,
    with_sign,
)
from ..simd.lanes import dct_rows
from ..simd.vector import (
    absolute,
    add,
    bit_or,
    clip_to_u8,
    load_u8x16,
    load_u16x16,
    max_s,
    mul,
    plus,
    shift_left,
    shift_right_s,
    splat_like,
    splat_u16x16,
    store,
    sub,
    widen,
    widen_signed,
)

LUMA, CB, CR = range(3)

# The table of the scaling lists as helpers take it.
ScalingLists = namedtuple("ScalingLists", (
    "table",  # int16[SCALING_SIZE], of scaling.py
    "first",  # 0 for intra, SCALING_SET for inter macroblocks
    "finer",  # its element SCALING_FINER
    "has_scaling_lists",  # None if all scaling lists are flat: kernels are compiled without others; or 1
))  # fmt: skip

RATIOS = 384  # in a macroblock's buffer of levels: |coefficient| / step of each, in units of 1 / 64
COEFFICIENTS = 768  # in such a buffer: coefficients of the forward transform
BUFFER = 1152  # elements of such a buffer


@helper
def dc_multiplier(scaling, plane, qp):
    """The multiplier of position 0 of a 4x4 block; plane: LUMA, CB or CR."""
    at = SCALING_MF if plane == LUMA else SCALING_MF_CHROMA + 8 * (plane == CR)
    return np.int64(scaling.table[scaling.first + at + 64 * (qp % 6)])


@helper
def dc_scale(scaling, plane, qp):
    """8.5.9: LevelScale4x4(qp % 6, 0, 0); plane: LUMA, CB or CR."""
    at = SCALING_FACTORS if plane == LUMA else SCALING_FACTORS_CHROMA + 8 * (plane == CR)
    return np.int64(scaling.table[scaling.first + at + 64 * (qp % 6)]) << (0 if scaling.has_scaling_lists else 4)


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

    |W| <= 9180, MF <= 32767 and f <= 2^23 / 2 keep the sum within 31 bits. The levels are below 1633 with flat scaling lists,
    below 16 * 1633 with others.
    """
    scaled = shift_right(add(multiply_wide(absolute(coefficients), factors), rounding), shift)
    return with_sign(narrow(scaled), coefficients)


@helper
def _clipped(levels):
    """Sixteen levels, at most MAX_LEVEL and at least -MAX_LEVEL; pcm_is_cheaper finds those."""
    return with_sign(min_s(absolute(levels), splat_u16x16(MAX_LEVEL)), levels)


@helper
def _clip(levels, first, end):
    """_clipped in place, elements [first, end)."""
    outlined()
    for at in range(first, end, 16):
        store(levels, at, _clipped(load_u16x16(levels, at)))


@helper
def _factors(strip0, ac_only, qp, scaling):
    """Multipliers of the four rows of a strip."""
    mf, table = scaling.table, scaling.first + (SCALING_MF if strip0 < 4 else SCALING_MF_CHROMA) + (6 * ac_only + qp % 6) * 64
    first, second = load_u16x16(mf, table), load_u16x16(mf, table + 16)
    return first, second, load_u16x16(mf, table + 32), load_u16x16(mf, table + 48)


@helper
def _forward_row(source, predicted, at):
    return dct_rows(sub(widen(load_u8x16(source, at)), widen(load_u8x16(predicted, at))))


@helper
def _forward_strip(source, predicted, at):
    """Forward transform of the strip that begins at sample `at`: the four rows of coefficients of its blocks."""
    x0, x1 = _forward_row(source, predicted, at), _forward_row(source, predicted, at + 16)
    x2, x3 = _forward_row(source, predicted, at + 32), _forward_row(source, predicted, at + 48)
    s, t, u, v = add(x0, x3), add(x1, x2), sub(x1, x2), sub(x0, x3)
    return add(s, t), add(add(v, v), u), sub(s, t), sub(v, add(u, u))


@helper
def _store_ratios(coefficients, factors, shift, at, levels):
    """Ratios of the strip whose levels begin at levels[at]."""
    store(levels, RATIOS + at, _ratios(coefficients[0], factors[0], shift))
    store(levels, RATIOS + at + 16, _ratios(coefficients[1], factors[1], shift))
    store(levels, RATIOS + at + 32, _ratios(coefficients[2], factors[2], shift))
    store(levels, RATIOS + at + 48, _ratios(coefficients[3], factors[3], shift))


@helper
def _store_levels(coefficients, factors, rounding, shift, at, levels):
    """Levels of a strip to levels[at...]; returns a bit mask of its blocks with levels."""
    x0 = _quantise(coefficients[0], factors[0], rounding, shift)
    x1 = _quantise(coefficients[1], factors[1], rounding, shift)
    x2 = _quantise(coefficients[2], factors[2], rounding, shift)
    x3 = _quantise(coefficients[3], factors[3], rounding, shift)
    store(levels, at, x0)
    store(levels, at + 16, x1)
    store(levels, at + 32, x2)
    store(levels, at + 48, x3)
    return nonzero_groups(bit_or(bit_or(x0, x1), bit_or(x2, x3)))


@helper
def scaled_high(coefficients, factors):
    """|coefficient| * factor >> 14, rounded down; 4 * |coefficient| has 16 bits in both transforms."""
    return multiply_high(shift_left(absolute(coefficients), 2), factors)


@helper
def may_have_levels(most, shift, dead_zone):
    """Whether a level may differ from 0 where `most` has the largest of scaled_high, lane by lane."""
    least = (1 << shift) - (dead_zone << shift) // ROUNDING >> 14
    return nonzero_groups(less(splat_like(most, least - 1), most)) != 0


@helper
def quantise_strips(source, predicted, strip0, strip1, ac_only, qp, dead_zone, with_ratios, scaling, levels, dc):
    """Transform and quantisation of strips [strip0, strip1): source, predicted Sample[MB_SAMPLES] -> levels int16[768].

    The strips are all of luma or all of chroma. ac_only: 1 leaves the DC coefficients out (levels 0); dc int32[96] receives
    them, strip * 16 + 4 * block. with_ratios: whether levels receives |coefficient| / step, from element RATIOS on. Returns a
    bit mask of the blocks with levels, 4 * strip + block.
    """
    shift = 15 + qp // 6 - scaling.finer
    rounding, factors = splat_i32x16((dead_zone << shift) // ROUNDING), _factors(strip0, ac_only, qp, scaling)
    coded = 0
    for strip in range(strip0, strip1):
        coefficients = _forward_strip(source, predicted, 64 * strip)
        store(dc, 16 * strip, widen_signed(coefficients[0]))
        if with_ratios:
            _store_ratios(coefficients, factors, shift, 64 * strip, levels)
        coded |= _store_levels(coefficients, factors, rounding, shift, 64 * strip, levels) << (4 * strip)
    if scaling.has_scaling_lists:
        _clip(levels, 64 * strip0, 64 * strip1)
    return coded


@helper
def forward_strips(source, predicted, strip0, strip1, ac_only, qp, dead_zone, scaling, levels):
    """The forward transform of quantise_strips alone, to element COEFFICIENTS of levels int16[BUFFER] and on.

    Returns whether any level may differ from 0: never False if one does.
    """
    f0, f1, f2, f3 = _factors(strip0, ac_only, qp, scaling)
    most = splat_u16x16(0)
    for strip in range(strip0, strip1):
        at = COEFFICIENTS + 64 * strip
        first, second, third, fourth = _forward_strip(source, predicted, 64 * strip)
        store(levels, at, first)
        store(levels, at + 16, second)
        store(levels, at + 32, third)
        store(levels, at + 48, fourth)
        most = max_s(
            most,
            max_s(
                max_s(scaled_high(first, f0), scaled_high(second, f1)), max_s(scaled_high(third, f2), scaled_high(fourth, f3))
            ),
        )
    return may_have_levels(most, 15 + qp // 6 - scaling.finer, dead_zone)


@helper
def quantise_kept(strip0, strip1, ac_only, qp, dead_zone, with_ratios, scaling, levels):
    """The quantisation of quantise_strips alone, after forward_strips."""
    shift = 15 + qp // 6 - scaling.finer
    rounding, factors = splat_i32x16((dead_zone << shift) // ROUNDING), _factors(strip0, ac_only, qp, scaling)
    coded = 0
    for strip in range(strip0, strip1):
        at = COEFFICIENTS + 64 * strip
        first, second = load_u16x16(levels, at), load_u16x16(levels, at + 16)
        coefficients = first, second, load_u16x16(levels, at + 32), load_u16x16(levels, at + 48)
        if with_ratios:
            _store_ratios(coefficients, factors, shift, 64 * strip, levels)
        coded |= _store_levels(coefficients, factors, rounding, shift, 64 * strip, levels) << (4 * strip)
    if scaling.has_scaling_lists:
        _clip(levels, 64 * strip0, 64 * strip1)
    return coded


@helper
def is_beyond(residual):
    """Whether any of these residual samples, 32 bits, has a magnitude above MOST_RESIDUAL."""
    largest = narrow_saturated(absolute(residual))
    return nonzero_groups(less(splat_like(largest, MOST_RESIDUAL), largest)) != 0


@helper
def larger(a, b):
    """Values of which the magnitude is at least that of both, 32 bits."""
    return max_s(absolute(a), absolute(b))


@helper
def _residual(values):
    """8.5.12.2: residual samples of what the inverse transform gives."""
    return shift_right_s(plus(values, 32), 6)


@helper
def _add_residual(predicted, residual):
    """8.5.14: Clip1(prediction + residual) of sixteen samples."""
    return clip_to_u8(add(widen_signed(widen(predicted)), residual))


@helper
def _reconstruct_strip(x0, x1, x2, x3, predicted, at, out):
    """8.5.12.2, 8.5.14: inverse transform and reconstruction of a strip from its four rows of scaled coefficients.

    Returns the larger magnitudes of its residual.
    """
    x0, x1, x2, x3 = inverse_rows(x0), inverse_rows(x1), inverse_rows(x2), inverse_rows(x3)
    s, t = add(x0, x2), sub(x0, x2)
    u, v = sub(shift_right_s(x1, 1), x3), add(x1, shift_right_s(x3, 1))
    r0, r1, r2, r3 = _residual(add(s, v)), _residual(add(t, u)), _residual(sub(t, u)), _residual(sub(s, v))
    store(out, at, _add_residual(load_u8x16(predicted, at), r0))
    store(out, at + 16, _add_residual(load_u8x16(predicted, at + 16), r1))
    store(out, at + 32, _add_residual(load_u8x16(predicted, at + 32), r2))
    store(out, at + 48, _add_residual(load_u8x16(predicted, at + 48), r3))
    return larger(larger(r0, r1), larger(r2, r3))


@helper
def _scaled(levels, factors, qp):
    """8.5.12.1: sixteen scaled coefficients, 32 bits, from levels and LevelScale4x4, 16 bits."""
    down = max(0, 4 - qp // 6)
    product = multiply_wide(mul(levels, splat_u16x16(1 << max(0, qp // 6 - 4))), factors)
    return shift_right(add(product, splat_i32x16((1 << down) >> 1)), down)


@helper
def _reconstruct_by_lists(levels, dc, predicted, strip0, strip1, qp, scaling, out):
    """reconstruct_strips with scaling lists that are not flat."""
    outlined()
    most = splat_i32x16(0)
    scaling_table, table = (
        scaling.table,
        scaling.first + (SCALING_FACTORS if strip0 < 4 else SCALING_FACTORS_CHROMA) + 64 * (qp % 6),
    )
    for at in range(64 * strip0, 64 * strip1, 64):
        x0 = add(_scaled(load_u16x16(levels, at), load_u16x16(scaling_table, table), qp), load_i32x16(dc, at >> 2))
        x1 = _scaled(load_u16x16(levels, at + 16), load_u16x16(scaling_table, table + 16), qp)
        x2 = _scaled(load_u16x16(levels, at + 32), load_u16x16(scaling_table, table + 32), qp)
        x3 = _scaled(load_u16x16(levels, at + 48), load_u16x16(scaling_table, table + 48), qp)
        most = larger(most, _reconstruct_strip(x0, x1, x2, x3, predicted, at, out))
    return is_beyond(most)


@helper
def reconstruct_strips(levels, dc, predicted, strip0, strip1, qp, scaling, out):
    """8.5.12, 8.5.14: scaling, inverse transform, reconstruction of strips [strip0, strip1) into out Sample[MB_SAMPLES].

    The strips are all of luma or all of chroma. levels int16[384]; dc int32[96]: scaled DC values to be added at strip * 16 +
    4 * block, all else 0. Returns whether any residual sample is beyond MOST_RESIDUAL.
    """
    if scaling.has_scaling_lists:
        return _reconstruct_by_lists(levels, dc, predicted, strip0, strip1, qp, scaling, out)
    most = splat_i32x16(0)
    # LevelScale is a multiple of 16: 8.5.12.1 reduces to level * normAdjust << (qP / 6), and its right shift is exact
    table = scaling.first + SCALING_FACTORS + 64 * (qp % 6)
    power = splat_u16x16(1 << (qp // 6))
    f0 = mul(load_u16x16(scaling.table, table), power)
    f1 = mul(load_u16x16(scaling.table, table + 16), power)
    for at in range(64 * strip0, 64 * strip1, 64):
        x0 = add(multiply_wide(load_u16x16(levels, at), f0), load_i32x16(dc, at >> 2))
        x1 = multiply_wide(load_u16x16(levels, at + 16), f1)
        x2 = multiply_wide(load_u16x16(levels, at + 32), f0)
        x3 = multiply_wide(load_u16x16(levels, at + 48), f1)
        most = larger(most, _reconstruct_strip(x0, x1, x2, x3, predicted, at, out))
    return is_beyond(most)


@helper
def quantise_block(source, predicted, qp, dead_zone, scaling):
    """Levels of one 4x4 block (u8x16, raster) and |coefficient| / step as in quantise_strips, both in raster order."""
    shift = 15 + qp // 6 - scaling.finer
    coefficients = forward_columns(forward_rows(sub(widen(source), widen(predicted))))
    rounding = splat_i32x16((dead_zone << shift) // ROUNDING)
    factors = load_u16x16(scaling.table, scaling.first + SCALING_MF_BLOCK + 16 * (qp % 6))
    quantised = _quantise(coefficients, factors, rounding, shift)
    if scaling.has_scaling_lists:
        quantised = _clipped(quantised)
    return quantised, _ratios(coefficients, factors, shift)


@helper
def reconstruct_block(quantised, predicted, qp, scaling, rec, rec_at, stride):
    """8.5.12, 8.5.14: reconstruction of one 4x4 block from its levels (raster) to the plane rec from offset rec_at on."""
    if count_nonzero(quantised) == 0:
        store_block(rec, rec_at, stride, predicted)
    else:
        factors = load_u16x16(scaling.table, scaling.first + SCALING_FACTORS_BLOCK + 16 * (qp % 6))
        if scaling.has_scaling_lists:
            scaled = _scaled(quantised, factors, qp)
        else:
            scaled = multiply_wide(quantised, mul(factors, splat_u16x16(1 << (qp // 6))))
        store_block(rec, rec_at, stride, _add_residual(predicted, _residual(inverse_columns(inverse_rows(scaled)))))


@helper
def quantise_dc(value, qp, dead_zone, multiplier, finer):
    """Level of a DC coefficient after the second transform (twice the step of position 0 of a 4x4 block).

    multiplier, finer: of scaling.py. Levels are at most MAX_LEVEL.
    """
    shift = 16 + qp // 6 - finer
    level = min((abs(value) * multiplier + (dead_zone << shift) // ROUNDING) >> shift, MAX_LEVEL)
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
def scale_luma_dc(c, qp, scaling):
    """8.5.10: levels of the Intra16x16 DC block (int64[16], raster) -> scaled DC of each block, in place."""
    hadamard_4x4(c)
    factor = dc_scale(scaling, LUMA, qp)
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
def scale_chroma_dc(c, at, qp_c, scaling):
    """8.5.11.2: levels c[at..at + 3] of a chroma DC block (Cb at 0, Cr at 4) -> scaled DC of each block, in place."""
    hadamard_2x2(c, at)
    factor = dc_scale(scaling, CB + (at >> 2), qp_c)
    for i in range(at, at + 4):
        c[i] = ((c[i] * factor) << (qp_c // 6)) >> 5
