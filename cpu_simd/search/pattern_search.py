"""Integer motion search along patterns: diamond, hexagon, uneven multi-hexagon, for all 41 partitions at once."""
# Samples of 8 bits only: differences of bytes, SADs of 16 bits.

from collections import namedtuple

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import Sample
from ..decisions.common import COST_NOT_REFINED, LAMBDA, QUICK, QUIET
from ..decisions.search import (
    ALL_PARTITIONS,
    AT_ACROSS,
    AT_DIAMOND,
    AT_DOWN,
    AT_HEXAGON,
    AT_MULTI_HEXAGON,
    AT_SQUARE,
    DIA,
    EVERY,
    FIRST_LARGE,
    SEARCH_POINTS,
    UMH,
    UMH_ENOUGH,
)
from ..simd.blocks import splat_i32x16
from ..simd.lanes import make_shuffle
from ..simd.search import keep_smallest, octet_sads, octet_sads_portable, pack_sums
from ..simd.vector import PORTABLE, SIMD_LEVEL, add, add_sat_u, load_2_u8x16, load_u8x16, load_u8x32, splat_u16x16, store
from .full_search import Costs, Smallest, is_quiet, large_alone, motion_costs, search_weight
from .step_search import LANE, arrange, compare, sums_of_quadrants

# Input: pack_sums of the upper half's sums (lanes 0, 4, 8, 12: left and right of even rows, of odd rows) and the lower half's
_even_rows, _odd_rows = make_shuffle([0, 4, 1, 5]), make_shuffle([8, 12, 9, 13])

# What the candidates of a macroblock are compared with.
Looking = namedtuple("Looking", (
    "arranged",  # Sample[256], source samples: see step_search.arrange, or in raster order where 8x8 is the least size
    "reference",  # Sample[H + 2 pad, W + 2 pad]
    "corner",  # offset of candidate (0, 0)
    "size",  # candidates a side
    "costs",  # Costs of the window
    "smallest",  # Smallest: keys uint16[48], steps uint16[48], 128 * y + x (step_search.look)
))  # fmt: skip


@helper
def _half(arranged, first, reference, row, stride, native):
    """u64x4: SADs of 16x8 samples, those from `first` on in `arranged`: left and right of even rows, of odd rows."""
    if native:
        total = octet_sads(load_u8x32(arranged, first), load_2_u8x16(reference, row, row + stride))
        for y in range(2, 8, 2):
            rows = load_2_u8x16(reference, row + y * stride, row + (y + 1) * stride)
            total = add(total, octet_sads(load_u8x32(arranged, first + 16 * y), rows))
    else:
        total = octet_sads_portable(load_u8x32(arranged, first), load_2_u8x16(reference, row, row + stride))
        for y in range(2, 8, 2):
            rows = load_2_u8x16(reference, row + y * stride, row + (y + 1) * stride)
            total = add(total, octet_sads_portable(load_u8x32(arranged, first + 16 * y), rows))
    return total


@helper
def _compare_large(looking, x, y, native):
    """step_search.compare for the partitions from 8x8 on."""
    reference, (best, position) = looking.reference, looking.smallest
    stride = reference.shape[1]
    row = looking.corner + y * stride + x
    upper = _half(looking.arranged, 0, reference, row, stride, native)
    lower = _half(looking.arranged, 128, reference, row + 8 * stride, stride, native)
    sums = pack_sums(upper, lower, lower, lower)
    sums = sums_of_quadrants(add(_even_rows(sums, sums), _odd_rows(sums, sums)))
    motion = splat_u16x16(min(65535, looking.costs.x[x] + looking.costs.y[y]))
    keep_smallest(best, position, 2, add_sat_u(sums, motion), splat_u16x16(y << 7 | x))


@helper
def _look(looking, x, y, large, native):
    """Compares candidate (x, y), if it lies in the window, with the best so far."""
    if 0 <= x < looking.size and 0 <= y < looking.size:
        if large is not None:
            _compare_large(looking, x, y, native)
        else:
            compare(looking.arranged, looking.reference, looking.corner, x, y, looking.costs, looking.smallest, native)


@helper
def _look_round(looking, middle, first, count, scale, large, native):
    """Compares the candidates SEARCH_POINTS[first : first + count], times scale, round one, 128 * y + x."""
    x, y = middle & 127, middle >> 7
    for n in range(first, first + count):
        _look(looking, x + scale * SEARCH_POINTS[n, 0], y + scale * SEARCH_POINTS[n, 1], large, native)


@helper
def _best(looking):
    """The best candidate so far for 16x16, 128 * y + x."""
    return np.int64(looking.smallest.steps[40])


@helper
def _follow_hexagons(looking, large, native):
    """Hexagons round the best so far, each with its three new points, until none is better; then the eight neighbours."""
    before = _best(looking)
    _look_round(looking, before, AT_HEXAGON + 1, 6, 1, large, native)
    after = _best(looking)
    while after != before:
        for n in range(AT_HEXAGON + 1, AT_HEXAGON + 7):
            if after - before == 128 * SEARCH_POINTS[n, 1] + SEARCH_POINTS[n, 0]:
                _look_round(looking, after, n - 1, 3, 1, large, native)
                break
        before, after = after, _best(looking)
    _look_round(looking, after, AT_SQUARE, 8, 1, large, native)


@helper
def _follow_diamonds(looking, large, native):
    """Diamonds round the best so far until none is better."""
    before = np.int64(-1)
    after = _best(looking)
    while after != before:
        _look_round(looking, after, AT_DIAMOND, 4, 1, large, native)
        before, after = after, _best(looking)


@helper
def _look_wide(looking, merange, enough, large, native):
    """A diamond; unless 16x16 then costs less than `enough`, cross, 5x5 and sixteen points of umh, each round the best."""
    _look_round(looking, _best(looking), AT_DIAMOND, 4, 1, large, native)
    if looking.smallest.keys[40] < enough:
        return
    middle = _best(looking)
    for scale in range(3, merange, 2):
        _look_round(looking, middle, AT_ACROSS, 2, scale, large, native)
    for scale in range(3, merange // 2, 2):
        _look_round(looking, middle, AT_DOWN, 2, scale, large, native)
    _look_round(looking, _best(looking), AT_SQUARE, 24, 1, large, native)
    middle = _best(looking)
    for scale in range(1, merange // 4 + 1):
        _look_round(looking, middle, AT_MULTI_HEXAGON, 16, scale, large, native)


@helper
def _look_round_quadrants(looking, large, native):
    """The eight neighbours of the best candidate of each 8x8 quadrant, where it is another than that of 16x16."""
    whole = _best(looking)
    for k in range(32, 36):
        middle = np.int64(looking.smallest.steps[k])
        if middle != whole:
            _look_round(looking, middle, AT_SQUARE, 8, 1, large, native)


@helper
def _take_samples(source, at, stride, arranged, large):
    """Arranges the samples of a macroblock for _look."""
    if large is not None:
        for y in range(16):
            store(arranged, 16 * y, load_u8x16(source, at + y * stride))
    else:
        arrange(source, at, stride, arranged)


@closed_kernel
def _search_rows(source, reference, pad, start, qp, pattern, row0, row1, search_result, limits, lane, native):
    """Implements pattern_search. limits: large_alone, and QUIET or 0."""
    me, merange = pattern
    large, quiet = limits
    first = 0 if large is None else FIRST_LARGE
    centre, predictor = start
    cost, mv = search_result
    mb_width = source.shape[1] // 16
    stride = reference.shape[1]
    size = 2 * merange
    x_bits, y_bits = np.empty(128, np.int64), np.empty(128, np.int64)
    costs = Costs(np.empty(128, np.int64), np.empty(128, np.int64))
    smallest = Smallest(np.empty(48, np.uint16), np.empty(48, np.uint16))
    arranged = np.empty(256, Sample)
    for mb in range(row0 * mb_width, row1 * mb_width):
        lam = LAMBDA[qp[mb]]
        weight = search_weight(lam)
        sx, sy = mb % mb_width * 16, mb // mb_width * 16
        left, top = int(centre[mb, 0]) - merange, int(centre[mb, 1]) - merange
        corner = (sy + top + pad) * stride + sx + left + pad
        at = sy * source.shape[1] + sx
        if quiet > 0 and is_quiet(
            source, at, reference, corner + merange * stride + merange, mb, lam, quiet, start, search_result
        ):
            continue
        motion_costs(left, int(predictor[mb, 0]), weight, size, x_bits, costs.x)
        motion_costs(top, int(predictor[mb, 1]), weight, size, y_bits, costs.y)
        _take_samples(source, at, source.shape[1], arranged, large)
        middle = merange << 7 | merange
        for k in range(3):
            store(smallest.keys, 16 * k, splat_u16x16(65535))
            store(smallest.steps, 16 * k, splat_u16x16(middle))
        looking = Looking(arranged, reference, corner, size, costs, smallest)
        _look(looking, merange, merange, large, native)
        _look(looking, -left, -top, large, native)
        if me == DIA:
            _follow_diamonds(looking, large, native)
        else:
            if me == UMH:
                _look_wide(looking, merange, UMH_ENOUGH * lam, large, native)
            _follow_hexagons(looking, large, native)
        _look_round_quadrants(looking, large, native)
        if large is not None:
            store(cost, 41 * mb, splat_i32x16(COST_NOT_REFINED))
            store(cost, 41 * mb + 16, splat_i32x16(COST_NOT_REFINED))
        for k in range(first, 41):
            number = np.int64(smallest.steps[lane[k]])
            dx, dy = number & 127, number >> 7
            cost[mb, k] = np.int64(smallest.keys[lane[k]]) + (lam - weight) * (x_bits[dx] + y_bits[dy])
            mv[mb, k, 0] = 4 * (left + dx)
            mv[mb, k, 1] = 4 * (top + dy)


@Prepared
def pattern_search(
    source, reference, pad, start, qp, pattern, row0, row1, search_result, partition_mask=ALL_PARTITIONS, subme=EVERY,
    level=SIMD_LEVEL,
):  # fmt: skip
    """Integer search along a pattern with motion cost (not part of the standard).

    Arguments, window, costs, quiet macroblocks and sizes not wanted as in full_search, but only some candidates of the window
    are compared: its centre and the vector 0, then rounds, each round the best so far for 16x16.
    pattern: (me, merange); by me
    - DIA: its four neighbours (a diamond), until none is better;
    - HEX: the six points of a hexagon, then the three new ones of the hexagon round the best, until none is better; then its
      eight neighbours;
    - UMH: a diamond; unless 16x16 then costs less than UMH_ENOUGH lambdas, a cross of every second candidate, from 3 on below
      merange across and below half of it down, 5x5, and sixteen points times 1 to merange / 4; then as HEX.
    At the end come the eight neighbours of the best of each 8x8 quadrant, where that is another than the best of 16x16.
    Each of the 41 partitions keeps the best of all compared candidates, on equal cost the earlier one; their order is that
    of SEARCH_POINTS.
    """
    limits = large_alone(partition_mask), QUIET if subme <= QUICK else 0
    arguments = source, reference, pad, start, qp, pattern, row0, row1, search_result, limits, LANE, level != PORTABLE
    return [(_search_rows, arguments)]
