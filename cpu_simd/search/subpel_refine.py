"""Half- and quarter-sample refinement of the 41 integer vectors of every macroblock."""

from collections import namedtuple

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ..costs.bit_costs import mvd_bits
from ..costs.block_costs import Layers, fill_layers, half_satds, predict_layers, sads, sads_of_octets, satds
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from ..decisions.common import COST_NOT_REFINED, LAMBDA, QUICK, QUIET, SAD, SATD
from ..decisions.search import (
    ALL_PARTITIONS,
    EVERY,
    REFINE_MARGIN_HALVES,
    REFINE_MARGIN_4x4,
    REFINE_MARGIN_8x4,
    REFINE_MARGIN_8x8,
)
from ..layout import PARTITIONS
from ..simd.blocks import join, load_i32x16, splat_i32x16
from ..simd.lanes import bit_length, equal_lanes, make_shuffle, where_bits, where_less
from ..simd.vector import add, aligned, splat_i32x8, store

# The 41 partitions as lanes of three SIMD vectors: 0..15 the 4x4 blocks; 16..31 8x4 and 4x8; 32..40 8x8, 16x8, 8x16 and
# 16x16, from lane LARGE of the third vector on. Sets of partitions are bit masks.
LARGE = 7
WHOLE, ROWS, COLUMNS, QUADRANTS = 1 << 40, 3 << 36, 3 << 38, 15 << 32
SMALL = (1 << 32) - 1  # those below 8x8
UPPER, LOWER = (
    sum(1 << k for k, (_, y, _, h) in enumerate(PARTITIONS.tolist()) if y < first + 8 and y + h > first) for first in (0, 8)
)  # the partitions that overlap each half of the macroblock

COST_MAX, COST_MIN = (1 << 31) - 1, -1 << 31  # above every cost; below every cost


# What a level of subme does; not part of the standard.
Effort = namedtuple("Effort", (
    "half",  # 1: vectors of half samples
    "half_metric",  # SAD or SATD
    "quarter",  # 1: vectors of quarter samples
    "quarter_metric",
    "every",  # all partitions that are wanted, and not only those that may win
    "quiet",  # lambdas below which the undivided macroblock is not divided
))  # fmt: skip


# By subme: 0 integer vectors; 1 half; 2 half and quarter by SAD; 3 quarter step by SATD; 4 and more both by SATD
_SUBME = ((0, SAD, 0, SAD), (1, SAD, 0, SAD), (1, SAD, 1, SAD), (1, SAD, 1, SATD), (1, SATD, 1, SATD))

# The centre first, then its eight neighbours in raster order: on equal cost the earlier one stays.
NEIGHBOURS = np.array([(0, 0), (-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)], np.int64)


# Lanes of the two halves of each partition: 8x4 and 4x8 from 4x4; 8x8 from 8x4; 16x8, 8x16 and half of 16x16 from 8x8.
_NONE = 16  # a lane of zeros
_small_1 = make_shuffle((0, 4, 2, 6, 8, 12, 10, 14, 0, 1, 2, 3, 8, 9, 10, 11))
_small_2 = make_shuffle((1, 5, 3, 7, 9, 13, 11, 15, 4, 5, 6, 7, 12, 13, 14, 15))
_quadrant_1 = make_shuffle((*[_NONE] * LARGE, 0, 2, 4, 6, *[_NONE] * 5))
_quadrant_2 = make_shuffle((*[_NONE] * LARGE, 1, 3, 5, 7, *[_NONE] * 5))
_large_1 = make_shuffle((*[_NONE] * LARGE, 7, 8, 9, 10, 7, 9, 7, 8, 7))
_large_2 = make_shuffle((*[_NONE] * (LARGE + 4), 8, 10, 9, 10, 8))
_whole = make_shuffle((*[_NONE] * (LARGE + 8), LARGE + 5))
_octets_1 = make_shuffle((*[_NONE] * LARGE, 0, 2, 8, 10, *[_NONE] * 5))  # of sads_of_octets
_octets_2 = make_shuffle((*[_NONE] * LARGE, 4, 6, 12, 14, *[_NONE] * 5))


@helper
def sums_of_middle(small):
    """Sums of the 8x4 and 4x8 partitions from those of the 4x4 blocks."""
    return add(_small_1(small, small), _small_2(small, small))


@helper
def sums_of_large(middle):
    """Sums of the partitions from 8x8 on, from lane LARGE on, from those of the 8x4 and 4x8 partitions."""
    zero = splat_i32x16(0)
    return _with_halves(add(_quadrant_1(middle, zero), _quadrant_2(middle, zero)))


@helper
def sums_of_octets(octets):
    """sums_of_large from sads_of_octets."""
    zero = splat_i32x16(0)
    return _with_halves(add(_octets_1(octets, zero), _octets_2(octets, zero)))


@helper
def _with_halves(quadrants):
    """The quadrants in lanes LARGE to LARGE + 3, and their sums in those behind."""
    zero = splat_i32x16(0)
    halves = add(_large_1(quadrants, zero), _large_2(quadrants, zero))
    return add(halves, _whole(halves, zero))


def quiet_below(subme):
    """The lambdas below which an undivided macroblock is quiet, see QUIET."""
    return QUIET if subme <= QUICK else 0


@helper
def worth_refining(cost, mb, lam, partition_mask, effort):
    """Bit mask of the partitions to refine in macroblock mb: those that may win, all if effort.every.

    partition_mask: partition sizes wanted (see ALL_PARTITIONS); cost: int32[n_mb, 41], of integer vectors.
    """
    every, quiet = effort.every, effort.quiet
    wanted = np.int64(WHOLE)
    whole = np.int64(cost[mb, 40])
    if whole < quiet * lam:
        return wanted
    if partition_mask & 2:
        if every or np.int64(cost[mb, 36]) + cost[mb, 37] < whole + REFINE_MARGIN_HALVES * lam:
            wanted |= ROWS
        if every or np.int64(cost[mb, 38]) + cost[mb, 39] < whole + REFINE_MARGIN_HALVES * lam:
            wanted |= COLUMNS
    if partition_mask & 4:
        quarters = np.int64(cost[mb, 32]) + cost[mb, 33] + cost[mb, 34] + cost[mb, 35]
        if every or quarters < whole + REFINE_MARGIN_8x8 * lam:
            wanted |= QUADRANTS
            if partition_mask & 8:
                for q in range(4):
                    wanted |= quadrant_worth_refining(cost, mb, lam, partition_mask, q, every)
    return wanted


@helper
def quadrant_worth_refining(cost, mb, lam, partition_mask, q, every):
    """worth_refining for the 8x4, 4x8 and 4x4 partitions of quadrant q."""
    whole = np.int64(cost[mb, 32 + q])
    wanted = np.int64(0)
    if every or np.int64(cost[mb, 16 + 2 * q]) + cost[mb, 17 + 2 * q] < whole + REFINE_MARGIN_8x4 * lam:
        wanted |= 3 << 16 + 2 * q
    if every or np.int64(cost[mb, 24 + 2 * q]) + cost[mb, 25 + 2 * q] < whole + REFINE_MARGIN_8x4 * lam:
        wanted |= 3 << 24 + 2 * q
    if not partition_mask & 16:
        return wanted
    b = (q >> 1) * 8 + (q & 1) * 2
    if every or np.int64(cost[mb, b]) + cost[mb, b + 1] + cost[mb, b + 4] + cost[mb, b + 5] < whole + REFINE_MARGIN_4x4 * lam:
        wanted |= 0x33 << b
    return wanted


@helper
def _satds(wanted, target, a, b, stride):
    """satds at the offsets a, b; zeros for a half that no wanted partition overlaps."""
    inlined()
    luma, current = target.luma, target.current
    if not wanted & LOWER:
        return join(half_satds(current, 0, luma, a, b, stride), splat_i32x8(0))
    if not wanted & UPPER:
        return join(splat_i32x8(0), half_satds(current, 1, luma, a, b, stride))
    return satds(current, predict_layers(luma, a, b, stride))


@helper
def _refine_all(target, start, lam, wanted, step, neighbours, mb, search_result):
    """A step where partitions below 8x8 are wanted, see refine_step."""
    current, luma, offsets = target
    origin, px, py = start
    length, metric, centre_too = step
    cost, mv = search_result
    stride = luma.shape[2]
    at = 41 * mb
    at_large = at + 32 - LARGE
    small_cost, middle_cost, large_cost = load_i32x16(cost, at), load_i32x16(cost, at + 16), load_i32x16(cost, at_large)
    small_mv, middle_mv, large_mv = load_i32x16(mv, 2 * at), load_i32x16(mv, 2 * at + 32), load_i32x16(mv, 2 * at_large)
    new_small_mv, new_middle_mv, new_large_mv = small_mv, middle_mv, large_mv
    far, never = splat_i32x16(COST_MAX), splat_i32x16(COST_MIN)
    rest = wanted
    while rest != 0:
        k = bit_length(rest & -rest) - 1
        x0, y0 = np.int64(mv[mb, k, 0]), np.int64(mv[mb, k, 1])
        vector = splat_i32x16(y0 << 16 | x0 & 0xFFFF)
        same = equal_lanes(small_mv, vector) | equal_lanes(middle_mv, vector) << 16
        same = (same | equal_lanes(large_mv, vector) >> LARGE << 32) & rest
        rest ^= same
        small, middle, large = same & 0xFFFF, same >> 16 & 0xFFFF, same >> 32 << LARGE
        best_small = where_bits(small, far if centre_too else small_cost, never)
        best_middle = where_bits(middle, far if centre_too else middle_cost, never)
        best_large = where_bits(large, far if centre_too else large_cost, never)
        for n in range(0 if centre_too else 1, 9):
            x, y = x0 + length * neighbours[n, 0], y0 + length * neighbours[n, 1]
            base = origin + (y >> 2) * stride + (x >> 2)
            a, b = base + offsets[0, (y & 3) * 4 + (x & 3)], base + offsets[1, (y & 3) * 4 + (x & 3)]
            if metric == SATD:
                total = _satds(same, target, a, b, stride)
            else:
                total = sads(current, predict_layers(luma, a, b, stride))
            bits = splat_i32x16(lam * mvd_bits(x, y, px, py))
            vector = splat_i32x16(y << 16 | x & 0xFFFF)
            halves = sums_of_middle(total)
            if same & SMALL:
                total = add(total, bits)
                new_small_mv = where_less(total, best_small, vector, new_small_mv)
                best_small = where_less(total, best_small, total, best_small)
                total = add(halves, bits)
                new_middle_mv = where_less(total, best_middle, vector, new_middle_mv)
                best_middle = where_less(total, best_middle, total, best_middle)
            total = add(sums_of_large(halves), bits)
            new_large_mv = where_less(total, best_large, vector, new_large_mv)
            best_large = where_less(total, best_large, total, best_large)
        small_cost = where_bits(small, best_small, small_cost)
        middle_cost = where_bits(middle, best_middle, middle_cost)
        large_cost = where_bits(large, best_large, large_cost)
    store(cost, at_large, large_cost)  # also LARGE entries of the middle group, which the next line overwrites
    store(cost, at + 16, middle_cost)
    store(cost, at, small_cost)
    store(mv, 2 * at_large, new_large_mv)
    store(mv, 2 * at + 32, new_middle_mv)
    store(mv, 2 * at, new_small_mv)


@helper
def _sums_of_large(wanted, target, a, b, stride, metric):
    """sums_of_large of the macroblock predicted at offsets a, b; by SATD see _satds."""
    if metric == SAD:
        return sums_of_octets(sads_of_octets(target.current, predict_layers(target.luma, a, b, stride)))
    return sums_of_large(sums_of_middle(_satds(wanted, target, a, b, stride)))


@helper
def _refine_large(target, start, lam, wanted, step, neighbours, mb, search_result):
    """A step where partitions from 8x8 on alone are wanted, see refine_step."""
    offsets = target.offsets
    origin, px, py = start
    length, metric, centre_too = step
    cost, mv = search_result
    stride = target.luma.shape[2]
    at = 41 * mb + 32 - LARGE
    costs, vectors = load_i32x16(cost, at), load_i32x16(mv, 2 * at)
    new_vectors, far, never = vectors, splat_i32x16(COST_MAX), splat_i32x16(COST_MIN)
    rest = wanted
    while rest != 0:
        k = bit_length(rest & -rest) - 1
        x0, y0 = np.int64(mv[mb, k, 0]), np.int64(mv[mb, k, 1])
        same = equal_lanes(vectors, splat_i32x16(y0 << 16 | x0 & 0xFFFF)) >> LARGE << 32 & rest
        rest ^= same
        best = where_bits(same >> 32 << LARGE, far if centre_too else costs, never)
        for n in range(0 if centre_too else 1, 9):
            x, y = x0 + length * neighbours[n, 0], y0 + length * neighbours[n, 1]
            base = origin + (y >> 2) * stride + (x >> 2)
            a, b = base + offsets[0, (y & 3) * 4 + (x & 3)], base + offsets[1, (y & 3) * 4 + (x & 3)]
            total = _sums_of_large(same, target, a, b, stride, metric)
            total = add(total, splat_i32x16(lam * mvd_bits(x, y, px, py)))
            new_vectors = where_less(total, best, splat_i32x16(y << 16 | x & 0xFFFF), new_vectors)
            best = where_less(total, best, total, best)
        costs = where_bits(same >> 32 << LARGE, best, costs)
    store(cost, at, costs)  # LARGE entries of the middle group stay as they are
    store(mv, 2 * at, new_vectors)


@helper
def refine_step(target, start, lam, wanted, step, neighbours, mb, search_result):
    """One step of one macroblock: every partition moves to the best of its vector and the eight around.

    target: with Layers; start: offset of the macroblock's corner in plane G, then the predictor (x, y);
    step: length in quarters; metric; whether the centre's cost must be computed (a new metric), else cost holds it;
    search_result: SearchResult, in place. Partitions with the same vector are refined together: the distortions of the 4x4
    blocks, or of the quadrants, are computed once for each candidate and summed for each partition.
    """
    if wanted & SMALL:
        _refine_all(target, start, lam, wanted, step, neighbours, mb, search_result)
    else:
        _refine_large(target, start, lam, wanted, step, neighbours, mb, search_result)


@closed_kernel
def _refine_rows(source, luma, pad, predictor, qp, effort, partition_mask, row0, row1, search_result, samples, neighbours):
    """Implements subpel_refine."""
    cost = search_result.cost
    half_metric, quarter_metric = effort.half_metric, effort.quarter_metric
    width = source.shape[1]
    mb_width = width // 16
    stride = luma.shape[2]
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[1] * stride, stride, samples, offsets)
    layers = Layers(aligned(256), aligned(512).view(np.int16))
    target = Target(layers, luma, offsets)
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0 = mb % mb_width * 16
        y0 = mb // mb_width * 16
        fill_layers(source, y0 * width + x0, width, layers)
        start = (y0 + pad) * stride + x0 + pad, np.int64(predictor[mb, 0]), np.int64(predictor[mb, 1])
        lam = LAMBDA[qp[mb]]
        wanted = worth_refining(cost, mb, lam, partition_mask, effort)
        for k in range(41):
            if not wanted >> k & 1:
                cost[mb, k] = COST_NOT_REFINED
        if effort.half:
            step = 2, half_metric, half_metric != SAD
            refine_step(target, start, lam, wanted, step, neighbours, mb, search_result)
        if effort.quarter:
            step = 1, quarter_metric, quarter_metric != half_metric
            refine_step(target, start, lam, wanted, step, neighbours, mb, search_result)


@Prepared
def subpel_refine(source, luma, pad, predictor, qp, subme, row0, row1, search_result, partition_mask=ALL_PARTITIONS):
    """Refines the integer vectors of full_search to half, then quarter samples (not part of the standard).

    source: Sample[H, W]; luma: Sample[4, H+2*pad, W+2*pad], planes G, b, h, j; predictor: int16[n_mb, 2]; qp: uint8[n_mb],
    QP_Y; [row0, row1): macroblock rows; search_result: SearchResult, in place. Each step tests the vector and its eight
    neighbours, at a distance of two quarters, then one; cost becomes distortion (SAD or SATD, see _SUBME) + lam * bits of the
    vector difference. partition_mask: sizes wanted (see ALL_PARTITIONS); others, up to subme 4 those that REFINE_MARGIN_*
    exclude, and up to subme QUICK all but the undivided one of quiet macroblocks (QUIET), get COST_NOT_REFINED. subme 0
    changes nothing.
    """
    if subme == 0:
        return []
    effort = Effort(*_SUBME[min(subme, len(_SUBME) - 1)], subme >= EVERY, quiet_below(subme))
    rows = row0, row1
    arguments = source, luma, pad, predictor, qp, effort, partition_mask, *rows, search_result, QUARTER_SAMPLES, NEIGHBOURS
    return [(_refine_rows, arguments)]
