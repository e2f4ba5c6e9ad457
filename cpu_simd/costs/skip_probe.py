"""Skip test: whether a macroblock's luma residual for a vector quantises to nothing worth coding."""

import numpy as np

from ...jit.kernel import helper
from ..decisions.quantise import BUDGET, DEAD_ZONE_INTER, ROUNDING
from ..simd.lanes import dct_rows, sums_of_4, where_above
from ..simd.vector import absolute, add, load_u16x16, splat_u16x16, sub
from .cost import row_16

# Score of a level of one at each position of a 4x4 block: levels are not worth coding if the sum is below BUDGET and none
# exceeds one. (The residual stage scores by runs, which is the same for single levels.)
LEVEL_SCORES = np.array([[3, 2, 1, 1], [2, 1, 1, 0], [2, 1, 0, 0], [0, 0, 0, 0]], np.int64)


@helper
def probe_tables(qp, quant, scores, tables):
    """Fills tables: int16[3, 4, 16], rows of four adjacent blocks: largest absolute coefficients that quantise to 0 and to 1,
    and WORTH. quant: QUANT_MF, [qp % 6, position]; scores: int64[4, 4].
    """
    shift = 15 + qp // 6
    rounding = (DEAD_ZONE_INTER << shift) // ROUNDING
    for y in range(4):
        for x in range(4):
            factor = np.int64(quant[qp % 6, 4 * y + x])
            zero = min(32767, ((1 << shift) - rounding - 1) // factor)
            one = min(32767, ((2 << shift) - rounding - 1) // factor)
            for block in range(0, 16, 4):
                tables[0, y, block + x], tables[1, y, block + x], tables[2, y, block + x] = zero, one, scores[y, x]


@helper
def quantises_to_zero(target, at, x, y, tables):
    """True if the residual of a Target against the prediction at vector (x, y) is not worth coding.

    at: offset of the macroblock's corner in plane G of its luma: Sample[n_slots, 4, Hp, Wp]; tables: int16[3, 4, 16] of
    probe_tables.
    """
    current, ref_luma, offsets = target
    stride = ref_luma.shape[3]
    base = at + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    a, b = base + offsets[0, f], base + offsets[1, f]
    score = 0
    for strip in range(4):
        row, current_at = 4 * strip * stride, 64 * strip
        r0 = dct_rows(sub(row_16(ref_luma, a, b, row), load_u16x16(current, current_at)))
        r1 = dct_rows(sub(row_16(ref_luma, a, b, row + stride), load_u16x16(current, current_at + 16)))
        r2 = dct_rows(sub(row_16(ref_luma, a, b, row + 2 * stride), load_u16x16(current, current_at + 32)))
        r3 = dct_rows(sub(row_16(ref_luma, a, b, row + 3 * stride), load_u16x16(current, current_at + 48)))
        outer, inner, fall, rise = add(r0, r3), add(r1, r2), sub(r0, r3), sub(r1, r2)
        scores = add(_score(add(outer, inner), tables, 0), _score(add(add(fall, fall), rise), tables, 1))
        scores = add(scores, add(_score(sub(outer, inner), tables, 2), _score(sub(fall, add(rise, rise)), tables, 3)))
        s0, s1, s2, s3 = sums_of_4(scores)
        score += s0 + s1 + s2 + s3
        if score >= BUDGET:
            return False
    return True


@helper
def _score(coefficients, tables, row):
    """Scores of a row of coefficients of four blocks, lane by lane: BUDGET or more for a level above one."""
    size = absolute(coefficients)
    scores = where_above(size, load_u16x16(tables, 16 * row), load_u16x16(tables, 128 + 16 * row))
    return add(scores, where_above(size, load_u16x16(tables, 64 + 16 * row), splat_u16x16(BUDGET)))
