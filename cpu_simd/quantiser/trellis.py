"""Trellis quantisation for CABAC: levels of a block by distortion and bits; not part of the standard.

A coefficient's level is |coefficient| / step rounded to the nearest integer, or one less. The walk goes from the last
coefficient to the first, as levels are coded (7.3.5.3.3). A node is what the contexts of coeff_abs_level_minus1 depend on
(9.3.3.1.3), and keeps its cheapest choice of levels:

    node 0       no level so far             after a level of 0: the same node
    node 1 to 3  one, two, three or more     after a level of 1: 0 -> 1 -> 2 -> 3 -> 3; 4 to 7 are left as they are
                 levels, all of them 1
    node 4 to 7  one, two, three, four or    after a larger one: 0, 1, 2, 3 -> 4 -> 5 -> 6 -> 7 -> 7
                 more levels above 1

Costs are in units of 1 / 256 bit. In units of the step, distortion is the same at all positions of all blocks with flat
scaling lists, so that the ratio |coefficient| / step says it; with others `factor_at` has the square of the step.
The twin for GPUs is cuda_src/quantiser/trellis.cuh.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import ABS_LEVEL_BASE
from ...standard.cavlc import MAX_LEVEL
from ...standard.tables import ZIGZAG_4x4
from ..costs.cabac_bits import CHROMA_AC, CHROMA_DC, EMPTY, LAST, ONE_BIT, OTHER, TABLE_QP, LUMA_8x8
from ..decisions.common import RD_CHROMA_LEAST, RD_CHROMA_WEIGHT
from ..decisions.quantise import LARGEST_RATIO, RDO_ONE, TRELLIS_MOST, UNREACHABLE, TRELLIS_8x8
from ..layout import SCALING_WEIGHTS, WEIGHTS_SET, WEIGHTS_8x8
from ..residual.transform import CB, LUMA, RATIOS
from ..residual.transform_8x8 import PLACE_8x8, QUADRANT_8x8, SCAN_8x8, nonzero_8x8
from ..simd.blocks import less, load_block, nonzero_groups, zigzag
from ..simd.lanes import bit_count, bit_length, nonzero_lanes
from ..simd.vector import absolute, bit_or, load_u16x16, splat_u16x16, store
from .rdo_quant import OFFSET

LONGEST = 64  # coefficients of a block; in choose_levels' buffer the place of the ratios
AS_SENT = np.arange(16, dtype=np.int32)  # the scan of chroma DC: raster


@helper
def _cheaper(cost_a, path_a, cost_b, path_b):
    """The node with the lower cost, the first on a tie."""
    if cost_b < cost_a:
        return cost_b, path_b
    return cost_a, path_a


@helper
def _rest(bits, context, size):
    """9.3.2.3: bits of the bins of a magnitude >= 2 from the second on."""
    ones = np.int64(bits[2 * context + 1])
    if size < 15:
        return (size - 2) * ones + np.int64(bits[2 * context])
    return 13 * ones + ONE_BIT * (2 * bit_length(size - 14) - 1)


@helper
def _larger(bits, context, size, extra):
    """As _rest for a magnitude >= 3 or the one below it with `extra`, whichever costs less; and whether it is the lower."""
    keep = _rest(bits, context, size)
    less = _rest(bits, context, size - 1) + extra
    if less < keep:
        return less, np.int64(1)
    return keep, np.int64(0)


@helper
def _after_larger(bits, base, last_context, size, extra, i, costs, paths, has_large):
    """Nodes 4 to 7 after a level >= 3, or the one below it with `extra`, at scan position i: four costs, then four paths.

    costs, paths: before, with the bits of significance, last and sign.
    """
    c0, c1, c2, c3, c4, c5, c6, c7 = costs
    p0, p1, p2, p3, p4, p5, p6, p7 = paths
    if has_large:
        big = np.int64(bits[2 * base + 1])
        rest, less = _larger(bits, last_context, size, extra)
        c7, p7 = c7 + big + rest, p7 | less << i
        rest, less = _larger(bits, base + 8, size, extra)
        c7, p7 = _cheaper(c7, p7, c6 + big + rest, p6 | less << i)
        rest, less = _larger(bits, base + 7, size, extra)
        c6, p6 = c5 + big + rest, p5 | less << i
        rest, less = _larger(bits, base + 6, size, extra)
        c5, p5 = c4 + big + rest, p4 | less << i
    rest, less = _larger(bits, base + 5, size, extra)
    c4, p4 = c3 + np.int64(bits[2 * base + 9]), p3
    c4, p4 = _cheaper(c4, p4, c2 + np.int64(bits[2 * base + 7]), p2)
    c4, p4 = _cheaper(c4, p4, c1 + np.int64(bits[2 * base + 5]), p1)
    c4, p4 = _cheaper(c4, p4, c0 + np.int64(bits[2 * base + 3]), p0)
    return c4 + rest, c5, c6, c7, p4 | less << i, p5, p6, p7


@helper
def _after_two(bits, base, last_context, extra, lower, costs, paths, has_large):
    """Nodes 1 to 7 after a level of two, or one with `extra`, whose path bit is `lower`: seven costs, then seven paths.

    costs, paths: before, with the bits of significance, last and sign.
    """
    c0, c1, c2, c3, c4, c5, c6, c7 = costs
    p0, p1, p2, p3, p4, p5, p6, p7 = paths
    one, big = extra + np.int64(bits[2 * base]), np.int64(bits[2 * base + 1])
    if has_large:
        c7, p7 = _cheaper(c7 + big + np.int64(bits[2 * last_context]), p7, c7 + one, p7 | lower)
        c7, p7 = _cheaper(c7, p7, c6 + big + np.int64(bits[2 * base + 16]), p6)
        c6, p6 = _cheaper(c5 + big + np.int64(bits[2 * base + 14]), p5, c6 + one, p6 | lower)
        c5, p5 = _cheaper(c4 + big + np.int64(bits[2 * base + 12]), p4, c5 + one, p5 | lower)
    rest = np.int64(bits[2 * base + 10])
    c4, p4 = c4 + one, p4 | lower
    c4, p4 = _cheaper(c4, p4, c3 + np.int64(bits[2 * base + 9]) + rest, p3)
    c4, p4 = _cheaper(c4, p4, c2 + np.int64(bits[2 * base + 7]) + rest, p2)
    c4, p4 = _cheaper(c4, p4, c1 + np.int64(bits[2 * base + 5]) + rest, p1)
    c4, p4 = _cheaper(c4, p4, c0 + np.int64(bits[2 * base + 3]) + rest, p0)
    c3, p3 = _cheaper(c3 + np.int64(bits[2 * base + 8]), p3, c2 + np.int64(bits[2 * base + 6]), p2)
    c2, c1 = c1 + np.int64(bits[2 * base + 4]), c0 + np.int64(bits[2 * base + 2])
    return c1 + extra, c2 + extra, c3 + extra, c4, c5, c6, c7, p0 | lower, p1 | lower, p3 | lower, p4, p5, p6, p7


@helper
def weights_of(scaling, category, plane):
    """Where the weights of a block begin in the table of scaling.py; plane: LUMA, CB or CR."""
    at = SCALING_WEIGHTS + (WEIGHTS_SET if scaling.first else 0)
    return at + (WEIGHTS_8x8 if category == LUMA_8x8 else 16 * plane)


@helper
def factor_at(factor, scaling, at):
    """The cost of distortion where a step is scaling.table[at] / 16 times that of a flat list, by the error of samples."""
    if scaling.has_scaling_lists:
        weight = np.int64(scaling.table[at])
        return min(factor * weight * weight >> 8, TRELLIS_MOST)
    return factor


@helper
def choose_levels(block, at, count, category, bits, factor, scaling, weights):
    """_choose for `count` coefficients (4, 15, 16, 64) from `at` on."""
    mask = nonzero_lanes(block, at)
    large = less(splat_u16x16(1), load_u16x16(block, at))
    if count < 64:
        mask &= (1 << count) - 1
    else:
        for i in range(16, 64, 16):
            mask |= nonzero_lanes(block, at + i) << i
            large = bit_or(large, less(splat_u16x16(1), load_u16x16(block, at + i)))
    if nonzero_groups(large) == 0:
        return _choose_ones(block, at, mask, category, bits, factor, scaling, weights)
    return _choose(block, at, mask, category, bits, factor, scaling, weights)


@helper
def _after_one(bits, base, last, other, extra, lower, costs, paths):
    """Nodes 0 to 3 after a level of one, or none with `extra`, whose path bit is `lower`: four costs, then four paths.

    last, other: bits of significance, last and sign after node 0 and others; costs, paths: before.
    """
    c0, c1, c2, c3 = costs
    p0, p1, p2, p3 = paths
    c3, p3 = _cheaper(c3 + other + np.int64(bits[2 * base + 8]), p3, c3 + extra, p3 | lower)
    c3, p3 = _cheaper(c3, p3, c2 + other + np.int64(bits[2 * base + 6]), p2)
    c2, p2 = _cheaper(c1 + other + np.int64(bits[2 * base + 4]), p1, c2 + extra, p2 | lower)
    c1, p1 = _cheaper(c0 + last + np.int64(bits[2 * base + 2]), p0, c1 + extra, p1 | lower)
    return c0 + extra, c1, c2, c3, p0 | lower, p1, p2, p3


@helper
def _choose_ones(block, at, mask, category, bits, factor, scaling, weights):
    """_choose for levels of one, with which nodes 4 to 7 are not reached."""
    base = np.int64(ABS_LEVEL_BASE[category])
    lasts, others = np.int64(LAST[category]), np.int64(OTHER[category])
    c0 = p0 = p1 = p2 = p3 = np.int64(0)
    c1 = c2 = c3 = np.int64(UNREACHABLE)
    while mask != 0:
        i = bit_length(mask) - 1
        lower = np.int64(1) << i
        mask ^= lower
        last, other = np.int64(bits[lasts + i]) + ONE_BIT, np.int64(bits[others + i]) + ONE_BIT
        extra = np.int64(block[LONGEST + at + i]) - RDO_ONE + RDO_ONE // 2
        extra *= factor if weights < 0 else factor_at(factor, scaling, weights + at + i)
        c0, c1, c2, c3, p0, p1, p2, p3 = _after_one(bits, base, last, other, extra, lower, (c0, c1, c2, c3), (p0, p1, p2, p3))
    cost, path = _cheaper(c0 + np.int64(bits[EMPTY + category]), p0, c1, p1)
    cost, path = _cheaper(cost, path, c2, p2)
    return _cheaper(cost, path, c3, p3)[1]


@helper
def _choose(block, at, mask, category, bits, factor, scaling, weights):
    """Levels of one block by rate and distortion. Returns the positions to be lowered by one, as a bit mask (bit 0: `at`).

    block: int16[2 * LONGEST] in scan order: magnitudes of the levels, rounded to the nearest, and from LONGEST on
    |coefficient| / step in units of 1 / RDO_ONE, of each from `at` on; mask: positions of levels that are not 0, others are
    not read. category: ctxBlockCat; bits: of cabac_bits.fill_bits; factor: cost of distortion (TRELLIS_INTER,
    TRELLIS_INTRA); weights: where those of scan position 0 are in scaling.table, -1: `factor` has them.
    """
    base = np.int64(ABS_LEVEL_BASE[category])
    last_context = base + (8 if category == CHROMA_DC else 9)  # after four and more larger levels
    lasts, others = np.int64(LAST[category]), np.int64(OTHER[category])
    c0 = p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = np.int64(0)
    c1 = c2 = c3 = c4 = c5 = c6 = c7 = np.int64(UNREACHABLE)
    has_large = False  # whether nodes 4 to 7 are in use
    while mask != 0:
        i = bit_length(mask) - 1
        mask ^= np.int64(1) << i
        size = np.int64(block[at + i])
        # bits of a last level, with those of zeros below it, and of another one, less those of a zero; and the sign
        last, other = np.int64(bits[lasts + i]) + ONE_BIT, np.int64(bits[others + i]) + ONE_BIT
        lower = np.int64(1) << i
        extra = np.int64(block[LONGEST + at + i]) - RDO_ONE * size + RDO_ONE // 2  # distortion, 1 / 32 squared step
        cost_of_error = factor if weights < 0 else factor_at(factor, scaling, weights + at + i)
        if size == 1:
            extra *= cost_of_error
            if has_large:
                one = other + np.int64(bits[2 * base])
                c7, p7 = _cheaper(c7 + one, p7, c7 + extra, p7 | lower)
                c6, p6 = _cheaper(c6 + one, p6, c6 + extra, p6 | lower)
                c5, p5 = _cheaper(c5 + one, p5, c5 + extra, p5 | lower)
                c4, p4 = _cheaper(c4 + one, p4, c4 + extra, p4 | lower)
            c0, c1, c2, c3, p0, p1, p2, p3 = _after_one(
                bits, base, last, other, extra, lower, (c0, c1, c2, c3), (p0, p1, p2, p3)
            )
            continue
        costs = c0 + last, c1 + other, c2 + other, c3 + other, c4 + other, c5 + other, c6 + other, c7 + other
        paths = p0, p1, p2, p3, p4, p5, p6, p7
        if size == 2:
            c1, c2, c3, c4, c5, c6, c7, p1, p2, p3, p4, p5, p6, p7 = _after_two(
                bits, base, last_context, extra * cost_of_error, lower, costs, paths, has_large
            )
        else:
            sure = extra >= RDO_ONE // 2 or block[LONGEST + at + i] == LARGEST_RATIO
            extra = np.int64(UNREACHABLE) if sure else extra * cost_of_error
            c4, c5, c6, c7, p4, p5, p6, p7 = _after_larger(bits, base, last_context, size, extra, i, costs, paths, has_large)
            c1 = c2 = c3 = np.int64(UNREACHABLE)
        c0 = np.int64(UNREACHABLE)
        has_large = True
    cost, path = _cheaper(c0 + np.int64(bits[EMPTY + category]), p0, c1, p1)
    for c, p in ((c2, p2), (c3, p3), (c4, p4), (c5, p5), (c6, p6), (c7, p7)):
        cost, path = _cheaper(cost, path, c, p)
    return path


@helper
def factor_of(category, qp, rounding):
    """The cost of distortion in a block with the quantiser `qp`: chroma's squared step is not that of luma."""
    if category == LUMA_8x8:
        return rounding.factor * TRELLIS_8x8 >> 2
    if category != CHROMA_DC and category != CHROMA_AC:
        return rounding.factor
    finer = np.int64(rounding.bits[TABLE_QP]) - qp
    return rounding.factor * np.int64(RD_CHROMA_WEIGHT[max(0, finer + RD_CHROMA_LEAST)]) >> 8


@helper
def lower_levels(quantised, at, first, category, factor, rounding, block, plane):
    """Lowers levels of the 4x4 block at quantised[at], rows of sixteen; returns whether any are left.

    quantised: int16[768] of quantise_strips, rounded up from one half on; first: 1 leaves the DC out; block: scratch,
    with category and factor as choose_levels has them; plane: LUMA, CB or CR.
    """
    bits, scaling = rounding.bits, rounding.scaling
    store(block, 0, absolute(zigzag(load_block(quantised, at))))
    store(block, LONGEST, zigzag(load_block(quantised, RATIOS + at)))
    path = choose_levels(block, first, 16 - first, category, bits, factor, scaling, weights_of(scaling, category, plane))
    path <<= first
    left = nonzero_lanes(block, 0)
    while path != 0:
        i = bit_length(path) - 1
        path ^= 1 << i
        k = at + OFFSET[i]
        quantised[k] -= 1 if quantised[k] > 0 else -1
        if quantised[k] == 0:
            left ^= 1 << i
    return left != 0


@helper
def lower_blocks(quantised, coded, first_block, end_block, first, category, factor, rounding, block):
    """lower_levels for blocks [first_block, end_block) set in `coded` (bit 4 * strip + block); those with levels left."""
    for k in range(first_block, end_block):
        at = 64 * (k >> 2) + 4 * (k & 3)
        plane = LUMA if k < 16 else CB + (k >> 1 & 1)
        if coded >> k & 1 and not lower_levels(quantised, at, first, category, factor, rounding, block, plane):
            coded &= ~(1 << k)
    return coded


@helper
def lower_8x8(quantised, coded, rounding, block):
    """lower_levels for the quadrants of quantise_8x8 set in `coded`; returns those with levels left."""
    scaling = rounding.scaling
    for q in range(4):
        if coded >> q & 1 == 0:
            continue
        at = QUADRANT_8x8[q]
        rest, mask, sizes = nonzero_8x8(quantised, q), np.int64(0), np.int64(0)
        left = bit_count(rest)
        while rest != 0:
            k = bit_length(rest) - 1
            rest ^= np.int64(1) << k
            i, k = SCAN_8x8[k], at + 16 * (k >> 3) + (k & 7)
            size = abs(np.int64(quantised[k]))
            block[i], block[LONGEST + i] = size, quantised[RATIOS + k]
            mask |= np.int64(1) << i
            sizes |= size
        factor, weights = factor_of(LUMA_8x8, 0, rounding), weights_of(scaling, LUMA_8x8, LUMA)
        if sizes == 1:
            path = _choose_ones(block, 0, mask, LUMA_8x8, rounding.bits, factor, scaling, weights)
        else:
            path = _choose(block, 0, mask, LUMA_8x8, rounding.bits, factor, scaling, weights)
        while path != 0:
            i = bit_length(path) - 1
            path ^= 1 << i
            k = at + PLACE_8x8[i]
            quantised[k] -= 1 if quantised[k] > 0 else -1
            left -= quantised[k] == 0
        if left == 0:
            coded &= ~(1 << q)
    return coded


@helper
def lower_block(quantised, ratios, category, rounding, block):
    """The levels of a 4x4 block (u16x16, raster, rounded up from one half on) after the choice; ratios: of quantise_block."""
    store(block, 0, absolute(zigzag(quantised)))
    store(block, LONGEST, zigzag(ratios))
    store(block, 32, quantised)
    scaling = rounding.scaling
    path = choose_levels(block, 0, 16, category, rounding.bits, rounding.factor, scaling, weights_of(scaling, category, LUMA))
    while path != 0:
        i = bit_length(path) - 1
        path ^= 1 << i
        k = 32 + ZIGZAG_4x4[i]
        block[k] -= 1 if block[k] > 0 else -1
    return load_u16x16(block, 32)


@helper
def choose_dc(values, at, scan, count, qp, category, multiplier, rounding, block):
    """Levels of a DC block in place: values int64 from `at` on, `count` of them after the second transform, raster.

    scan: raster position by scan index; multiplier: see scaling.py; rounding: Rounding of macroblock_coding.py; block: as in
    lower_levels.
    """
    shift = 16 + qp // 6 - rounding.scaling.finer
    for i in range(count):
        scaled = abs(values[at + scan[i]]) * multiplier
        block[i] = min((scaled + (1 << shift - 1)) >> shift, MAX_LEVEL)
        block[LONGEST + i] = min(scaled >> shift - 6, LARGEST_RATIO)
    plane = CB + (at >> 2) if category == CHROMA_DC else LUMA
    factor = factor_at(factor_of(category, qp, rounding), rounding.scaling, weights_of(rounding.scaling, category, plane))
    path = choose_levels(block, 0, count, category, rounding.bits, factor, rounding.scaling, -1)
    for i in range(count):
        level = np.int64(block[i]) - (path >> i & 1)
        k = at + scan[i]
        values[k] = -level if values[k] < 0 else level
