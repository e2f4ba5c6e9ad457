"""Transform, quantisation and scaling of 8x8 luma blocks (8.5.13) with SIMD.

Samples lie as in transform.py: rows of sixteen, two quadrants side by side. Levels lie transposed within each quadrant: level
(x, y) of quadrant q at 128 * (q >> 1) + 8 * (q & 1) + 16 * x + y, since both directions of a transform work on vectors with
one transposition between.

Vectors have sixteen lanes, two quadrants, or eight, one of them.
"""
# Samples of 8 bits only: coefficients of 16 bits.

import numpy as np

from ...jit.kernel import helper
from ...standard.cavlc import MAX_LEVEL
from ...standard.macroblock import BLOCK_TO_RASTER
from ...standard.tables import ZIGZAG_8x8
from ..decisions.quantise import ROUNDING
from ..layout import SCALING_FACTORS_8x8, SCALING_MF_8x8
from ..simd.blocks import (
    load_u16x8,
    min_s,
    multiply_wide,
    narrow_saturated,
    nonzero_groups,
    shift_right,
    transpose_8x8,
    with_sign,
)
from ..simd.lanes import bit_count, bit_length, nonzero_lanes
from ..simd.vector import (
    absolute,
    add,
    bit_or,
    clip_to_u8,
    load_u8x8,
    load_u8x16,
    load_u16x16,
    max_s,
    mul,
    plus,
    shift_right_s,
    splat_like,
    splat_u16x16,
    store,
    sub,
    widen,
    widen_signed,
)
from .transform import COEFFICIENTS, RATIOS, is_beyond, larger, may_have_levels, scaled_high

# Offset of each scan position from a quadrant's first level, and those of the quadrants.
PLACE_8x8 = (ZIGZAG_8x8 % 8 * 16 + ZIGZAG_8x8 // 8).astype(np.int64)
QUADRANT_8x8 = np.array([0, 8, 128, 136], np.int64)
EVERY_FOURTH = 0x1111111111111111
SCAN_8x8 = np.empty(64, np.int64)  # scan position of the element at row 8, column of a quadrant
SCAN_8x8[PLACE_8x8 // 16 * 8 + PLACE_8x8 % 16] = np.arange(64)


@helper
def _forward(x):
    """The one-dimensional forward transform of eight vectors: the transpose of _inverse, an eighth of whole numbers."""
    s0, s1, s2, s3 = add(x[0], x[7]), add(x[1], x[6]), add(x[2], x[5]), add(x[3], x[4])
    d0, d1, d2, d3 = sub(x[0], x[7]), sub(x[1], x[6]), sub(x[2], x[5]), sub(x[3], x[4])
    a0, a1, a2, a3 = add(s0, s3), add(s1, s2), sub(s0, s3), sub(s1, s2)
    a4 = add(add(d1, d2), add(d0, shift_right_s(d0, 1)))
    a5 = sub(sub(d0, d3), add(d2, shift_right_s(d2, 1)))
    a6 = sub(add(d0, d3), add(d1, shift_right_s(d1, 1)))
    a7 = add(sub(d1, d2), add(d3, shift_right_s(d3, 1)))
    return (
        add(a0, a1), add(a4, shift_right_s(a7, 2)), add(a2, shift_right_s(a3, 1)), add(a5, shift_right_s(a6, 2)),
        sub(a0, a1), sub(a6, shift_right_s(a5, 2)), sub(shift_right_s(a2, 1), a3), sub(shift_right_s(a4, 2), a7),
    )  # fmt: skip


@helper
def _inverse(x):
    """8.5.13.2: the one-dimensional inverse transform of eight vectors."""
    e0, e2 = add(x[0], x[4]), sub(x[0], x[4])
    e1 = sub(sub(sub(x[5], x[3]), x[7]), shift_right_s(x[7], 1))
    e3 = sub(sub(add(x[1], x[7]), x[3]), shift_right_s(x[3], 1))
    e4, e6 = sub(shift_right_s(x[2], 1), x[6]), add(x[2], shift_right_s(x[6], 1))
    e5 = add(add(sub(x[7], x[1]), x[5]), shift_right_s(x[5], 1))
    e7 = add(add(add(x[3], x[5]), x[1]), shift_right_s(x[1], 1))
    f0, f2, f4, f6 = add(e0, e6), add(e2, e4), sub(e2, e4), sub(e0, e6)
    f1, f3 = add(e1, shift_right_s(e7, 2)), add(e3, shift_right_s(e5, 2))
    f5, f7 = sub(shift_right_s(e3, 2), e5), sub(e7, shift_right_s(e1, 2))
    return add(f0, f7), add(f2, f5), add(f4, f3), add(f6, f1), sub(f6, f1), sub(f4, f3), sub(f2, f5), sub(f0, f7)


@helper
def forward_8x8(rows):
    """Forward transform of eight rows of differences, 16 bits: the columns of coefficients, eight vectors.

    Within 16 bits: a coefficient of differences up to 255 is at most 64 * 255 (DC), 62 / 8 a direction for odd ones.
    """
    return _forward(transpose_8x8(_forward(rows)))


@helper
def _quantise(coefficients, factors, rounding, shift):
    """Levels of a vector: (|W| * MF + f) >> shift with the sign of W, at most MAX_LEVEL; not part of the standard.

    |W| * MF <= 64 * 255 * 32767 and f <= 2^24 / 2 keep the sum within 31 bits. With flat lists only levels at QP 0 to 3 can
    exceed MAX_LEVEL; pcm_is_cheaper finds them.
    """
    product = multiply_wide(absolute(coefficients), factors)
    level = narrow_saturated(shift_right(add(product, splat_like(product, rounding)), shift))
    return with_sign(min_s(level, splat_like(level, MAX_LEVEL)), coefficients)


@helper
def _ratios(coefficients, factors, shift):
    """|coefficient| / step, in units of 1 / 64, at most 32767."""
    return narrow_saturated(shift_right(multiply_wide(absolute(coefficients), factors), shift - 6))


@helper
def _difference(source, predicted, at):
    return sub(widen(load_u8x16(source, at)), widen(load_u8x16(predicted, at)))


@helper
def _factors(x, qp, scaling):
    return load_u16x16(scaling.table, scaling.first + SCALING_MF_8x8 + 128 * (qp % 6) + 16 * x)


@helper
def _store_levels(coefficients, x, at, qp, dead_zone, with_ratios, scaling, levels):
    """Quantises column x of two quadrants to levels from `at` on; returns its levels."""
    shift, factors = 16 + qp // 6 - scaling.finer, _factors(x, qp, scaling)
    quantised = _quantise(coefficients, factors, (dead_zone << shift) // ROUNDING, shift)
    store(levels, at + 16 * x, quantised)
    if with_ratios:
        store(levels, RATIOS + at + 16 * x, _ratios(coefficients, factors, shift))
    return quantised


@helper
def _forward_pair(source, predicted, at):
    """The columns of coefficients of the two quadrants whose samples begin at `at`."""
    return forward_8x8((
        _difference(source, predicted, at), _difference(source, predicted, at + 16),
        _difference(source, predicted, at + 32), _difference(source, predicted, at + 48),
        _difference(source, predicted, at + 64), _difference(source, predicted, at + 80),
        _difference(source, predicted, at + 96), _difference(source, predicted, at + 112),
    ))  # fmt: skip


@helper
def _store_pair(coefficients, at, qp, dead_zone, with_ratios, scaling, levels):
    """_store_levels of all columns of two quadrants; returns a bit mask of the two with levels."""
    c0, c1, c2, c3, c4, c5, c6, c7 = coefficients
    l0 = _store_levels(c0, 0, at, qp, dead_zone, with_ratios, scaling, levels)
    l1 = _store_levels(c1, 1, at, qp, dead_zone, with_ratios, scaling, levels)
    l2 = _store_levels(c2, 2, at, qp, dead_zone, with_ratios, scaling, levels)
    l3 = _store_levels(c3, 3, at, qp, dead_zone, with_ratios, scaling, levels)
    l4 = _store_levels(c4, 4, at, qp, dead_zone, with_ratios, scaling, levels)
    l5 = _store_levels(c5, 5, at, qp, dead_zone, with_ratios, scaling, levels)
    l6 = _store_levels(c6, 6, at, qp, dead_zone, with_ratios, scaling, levels)
    l7 = _store_levels(c7, 7, at, qp, dead_zone, with_ratios, scaling, levels)
    any_level = bit_or(bit_or(bit_or(l0, l1), bit_or(l2, l3)), bit_or(bit_or(l4, l5), bit_or(l6, l7)))
    groups = nonzero_groups(any_level)
    return (groups & 3 != 0) | (groups & 12 != 0) << 1


@helper
def quantise_8x8(source, predicted, qp, dead_zone, scaling, levels):
    """Forward transform and quantisation of a macroblock's luma: source, predicted Sample[MB_SAMPLES] -> levels int16[768].

    From element RATIOS on, levels receives |coefficient| / step. Returns a bit mask of the quadrants with levels.
    """
    coded = 0
    for pair in range(2):
        coefficients = _forward_pair(source, predicted, 128 * pair)
        coded |= _store_pair(coefficients, 128 * pair, qp, dead_zone, True, scaling, levels) << 2 * pair
    return coded


@helper
def forward_quadrants(source, predicted, qp, dead_zone, scaling, levels):
    """The forward transform of quantise_8x8 alone, to element COEFFICIENTS of levels int16[BUFFER] and on.

    Returns whether any level may differ from 0: never False if one does.
    """
    most = splat_u16x16(0)
    for at in range(0, 256, 128):
        c0, c1, c2, c3, c4, c5, c6, c7 = _forward_pair(source, predicted, at)
        to = COEFFICIENTS + at
        store(levels, to, c0)
        store(levels, to + 16, c1)
        store(levels, to + 32, c2)
        store(levels, to + 48, c3)
        store(levels, to + 64, c4)
        store(levels, to + 80, c5)
        store(levels, to + 96, c6)
        store(levels, to + 112, c7)
        a, b = _larger_high(c0, c1, 0, qp, scaling), _larger_high(c2, c3, 2, qp, scaling)
        c, d = _larger_high(c4, c5, 4, qp, scaling), _larger_high(c6, c7, 6, qp, scaling)
        most = max_s(most, max_s(max_s(a, b), max_s(c, d)))
    return may_have_levels(most, 16 + qp // 6 - scaling.finer, dead_zone)


@helper
def _larger_high(a, b, x, qp, scaling):
    """The larger of scaled_high of columns x and x + 1."""
    return max_s(scaled_high(a, _factors(x, qp, scaling)), scaled_high(b, _factors(x + 1, qp, scaling)))


@helper
def quantise_kept_8x8(qp, dead_zone, with_ratios, scaling, levels):
    """The quantisation of quantise_8x8 alone, after forward_quadrants; with_ratios: whether levels receives the ratios."""
    coded = 0
    for pair in range(2):
        at = COEFFICIENTS + 128 * pair
        c0, c1, c2, c3 = (
            load_u16x16(levels, at), load_u16x16(levels, at + 16), load_u16x16(levels, at + 32), load_u16x16(levels, at + 48),
        )  # fmt: skip
        at += 64
        c4, c5, c6, c7 = (
            load_u16x16(levels, at), load_u16x16(levels, at + 16), load_u16x16(levels, at + 32), load_u16x16(levels, at + 48),
        )  # fmt: skip
        coefficients = c0, c1, c2, c3, c4, c5, c6, c7
        coded |= _store_pair(coefficients, 128 * pair, qp, dead_zone, with_ratios, scaling, levels) << 2 * pair
    return coded


@helper
def _scaled(levels, factors, qp):
    """8.5.13.1: a column of scaled coefficients, 32 bits, from levels and LevelScale8x8, 16 bits."""
    product = multiply_wide(mul(levels, splat_like(levels, 1 << max(0, qp // 6 - 6))), factors)
    rounding = 1 << (5 - qp // 6) if qp < 36 else 0
    return shift_right(add(product, splat_like(product, rounding)), max(0, 6 - qp // 6))


@helper
def _add_residual(predicted, residual):
    """8.5.14: Clip1(prediction + residual)."""
    return clip_to_u8(add(widen_signed(widen(predicted)), residual))


@helper
def inverse_8x8(columns):
    """8.5.13.2: columns of scaled coefficients, 32 bits, to rows of residual samples."""
    x = transpose_8x8(_inverse(columns))
    y = _inverse((plus(x[0], 32), x[1], x[2], x[3], x[4], x[5], x[6], x[7]))
    return (
        shift_right_s(y[0], 6), shift_right_s(y[1], 6), shift_right_s(y[2], 6), shift_right_s(y[3], 6),
        shift_right_s(y[4], 6), shift_right_s(y[5], 6), shift_right_s(y[6], 6), shift_right_s(y[7], 6),
    )  # fmt: skip


@helper
def _column(levels, at, x, qp, scaling):
    """Column x of the scaled coefficients of two quadrants, whose levels begin at levels[at]."""
    factors = load_u16x16(scaling.table, scaling.first + SCALING_FACTORS_8x8 + 128 * (qp % 6) + 16 * x)
    return _scaled(load_u16x16(levels, at + 16 * x), factors, qp)


@helper
def _store_row(residual, at, predicted, out):
    store(out, at, _add_residual(load_u8x16(predicted, at), residual))


@helper
def reconstruct_8x8(levels, predicted, qp, scaling, out):
    """8.5.13, 8.5.14: scaling, inverse transform, reconstruction of a macroblock's luma, int16[256] -> out Sample[>= 256].

    Returns whether any residual sample is beyond MOST_RESIDUAL.
    """
    beyond = False
    for at in range(0, 256, 128):
        r0, r1, r2, r3, r4, r5, r6, r7 = inverse_8x8((
            _column(levels, at, 0, qp, scaling), _column(levels, at, 1, qp, scaling),
            _column(levels, at, 2, qp, scaling), _column(levels, at, 3, qp, scaling),
            _column(levels, at, 4, qp, scaling), _column(levels, at, 5, qp, scaling),
            _column(levels, at, 6, qp, scaling), _column(levels, at, 7, qp, scaling),
        ))  # fmt: skip
        _store_row(r0, at, predicted, out)
        _store_row(r1, at + 16, predicted, out)
        _store_row(r2, at + 32, predicted, out)
        _store_row(r3, at + 48, predicted, out)
        _store_row(r4, at + 64, predicted, out)
        _store_row(r5, at + 80, predicted, out)
        _store_row(r6, at + 96, predicted, out)
        _store_row(r7, at + 112, predicted, out)
        beyond |= is_beyond(larger(larger(larger(r0, r1), larger(r2, r3)), larger(larger(r4, r5), larger(r6, r7))))
    return beyond


@helper
def _difference_8(source, at, predicted, to):
    return sub(widen(load_u8x8(source, at)), widen(load_u8x8(predicted, to)))


@helper
def _store_levels_8(coefficients, x, at, qp, dead_zone, scaling, levels):
    """As _store_levels for one quadrant."""
    shift = 16 + qp // 6 - scaling.finer
    factors = load_u16x8(scaling.table, scaling.first + SCALING_MF_8x8 + 128 * (qp % 6) + 16 * x)
    store(levels, at + 16 * x, _quantise(coefficients, factors, (dead_zone << shift) // ROUNDING, shift))
    store(levels, RATIOS + at + 16 * x, _ratios(coefficients, factors, shift))


@helper
def quantise_quadrant(source, quadrant, predicted, to, qp, dead_zone, scaling, levels):
    """As quantise_8x8 for one quadrant, whose prediction is at predicted[to...], rows of eight; returns nothing."""
    at = QUADRANT_8x8[quadrant]
    c0, c1, c2, c3, c4, c5, c6, c7 = forward_8x8((
        _difference_8(source, at, predicted, to), _difference_8(source, at + 16, predicted, to + 8),
        _difference_8(source, at + 32, predicted, to + 16), _difference_8(source, at + 48, predicted, to + 24),
        _difference_8(source, at + 64, predicted, to + 32), _difference_8(source, at + 80, predicted, to + 40),
        _difference_8(source, at + 96, predicted, to + 48), _difference_8(source, at + 112, predicted, to + 56),
    ))  # fmt: skip
    _store_levels_8(c0, 0, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c1, 1, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c2, 2, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c3, 3, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c4, 4, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c5, 5, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c6, 6, at, qp, dead_zone, scaling, levels)
    _store_levels_8(c7, 7, at, qp, dead_zone, scaling, levels)


@helper
def _column_8(levels, at, x, qp, scaling):
    factors = load_u16x8(scaling.table, scaling.first + SCALING_FACTORS_8x8 + 128 * (qp % 6) + 16 * x)
    return _scaled(load_u16x8(levels, at + 16 * x), factors, qp)


@helper
def reconstruct_quadrant(levels, quadrant, predicted, to, qp, scaling, rec, rec_at, stride):
    """As reconstruct_8x8 for one quadrant, predicted at predicted[to...], to the plane rec from flat offset rec_at on."""
    at = QUADRANT_8x8[quadrant]
    r0, r1, r2, r3, r4, r5, r6, r7 = inverse_8x8((
        _column_8(levels, at, 0, qp, scaling), _column_8(levels, at, 1, qp, scaling), _column_8(levels, at, 2, qp, scaling),
        _column_8(levels, at, 3, qp, scaling), _column_8(levels, at, 4, qp, scaling), _column_8(levels, at, 5, qp, scaling),
        _column_8(levels, at, 6, qp, scaling), _column_8(levels, at, 7, qp, scaling),
    ))  # fmt: skip
    store(rec, rec_at, _add_residual(load_u8x8(predicted, to), r0))
    store(rec, rec_at + stride, _add_residual(load_u8x8(predicted, to + 8), r1))
    store(rec, rec_at + 2 * stride, _add_residual(load_u8x8(predicted, to + 16), r2))
    store(rec, rec_at + 3 * stride, _add_residual(load_u8x8(predicted, to + 24), r3))
    store(rec, rec_at + 4 * stride, _add_residual(load_u8x8(predicted, to + 32), r4))
    store(rec, rec_at + 5 * stride, _add_residual(load_u8x8(predicted, to + 40), r5))
    store(rec, rec_at + 6 * stride, _add_residual(load_u8x8(predicted, to + 48), r6))
    store(rec, rec_at + 7 * stride, _add_residual(load_u8x8(predicted, to + 56), r7))


@helper
def nonzero_8x8(quantised, quadrant):
    """Bit mask of the levels of a quadrant that are not 0: bit 8 * row + column, see SCAN_8x8."""
    at = QUADRANT_8x8[quadrant]
    shift = at & 8
    mask = np.int64(0)
    for row in range(8):
        mask |= (nonzero_lanes(quantised, at - shift + 16 * row) >> shift & 255) << 8 * row
    return mask


@helper
def scan_8x8(quantised, quadrant, mb, levels, total_coeff):
    """8.5.7, 7.3.5.3.2: levels of a quadrant of quantised int16[256] -> levels, interleaved (layout.py), and total_coeff.

    The levels must be cleared. Returns the number of levels.
    """
    at = QUADRANT_8x8[quadrant]
    rest, nonzero = nonzero_8x8(quantised, quadrant), np.int64(0)
    total = bit_count(rest)
    while rest != 0:
        k = bit_length(rest) - 1
        rest ^= np.int64(1) << k
        i = SCAN_8x8[k]
        levels[mb, 4 * quadrant + (i & 3), i >> 2] = quantised[at + 16 * (k >> 3) + (k & 7)]
        nonzero |= np.int64(1) << i
    for block in range(4):
        total_coeff[mb, BLOCK_TO_RASTER[4 * quadrant + block]] = bit_count(nonzero >> block & EVERY_FOURTH)
    return total
