"""Vectors of the neighbours and of the other partitions, tried for every partition after the search; all macroblocks at once.

The search knows neither the predictors of vectors nor what the neighbours found, so its vectors scatter where several are
nearly as good. Not part of the standard.
"""

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.kernel import closed_kernel, helper
from ..bundles import SearchResult
from ..costs.bit_costs import mvd_bits
from ..costs.block_costs import Layers, fill_layers, predict_layers, satds
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from ..decisions.common import LAMBDA
from ..decisions.search import ALL_PARTITIONS, FIRST_LARGE, N_VECTORS
from ..inter.mv_cache import Area, inside
from ..inter.mv_prediction import median
from ..simd.blocks import load_i32x16, splat_i32x16
from ..simd.lanes import equal_lanes, where_bits, where_less
from ..simd.vector import add, aligned, store
from .full_search import large_alone
from .subpel_refine import LARGE, NEIGHBOURS, sums_of_large, sums_of_middle

ALL_LARGE = (1 << 9) - 1  # lanes LARGE to 15


@helper
def try_vectors(target, origin, vectors, n, lam, px, py, search_result):
    """Moves each partition of one macroblock to vectors[i], i < n, where that costs less; on a tie the earlier one stays.

    origin: offset of the macroblock's corner in plane G; vectors: int64[>= n, 2]; (px, py): predictor; search_result:
    SearchResult of one macroblock, in place.
    """
    current, luma, offsets = target
    cost, mv = search_result
    stride, at_large = luma.shape[2], 32 - LARGE
    small_cost, middle_cost, large_cost = load_i32x16(cost, 0), load_i32x16(cost, 16), load_i32x16(cost, at_large)
    small_mv, middle_mv, large_mv = load_i32x16(mv, 0), load_i32x16(mv, 32), load_i32x16(mv, 2 * at_large)
    for i in range(n):
        x, y = vectors[i, 0], vectors[i, 1]
        base = origin + (y >> 2) * stride + (x >> 2)
        a, b = base + offsets[0, (y & 3) * 4 + (x & 3)], base + offsets[1, (y & 3) * 4 + (x & 3)]
        bits, vector = splat_i32x16(lam * mvd_bits(x, y, px, py)), splat_i32x16(y << 16 | x & 0xFFFF)
        small = satds(current, predict_layers(luma, a, b, stride))
        middle = sums_of_middle(small)
        large = add(sums_of_large(middle), bits)
        small, middle = add(small, bits), add(middle, bits)
        small_mv = where_less(small, small_cost, vector, small_mv)
        small_cost = where_less(small, small_cost, small, small_cost)
        middle_mv = where_less(middle, middle_cost, vector, middle_mv)
        middle_cost = where_less(middle, middle_cost, middle, middle_cost)
        large_mv = where_less(large, large_cost, vector, large_mv)
        large_cost = where_less(large, large_cost, large, large_cost)
    store(cost, at_large, large_cost)  # also LARGE entries of the middle group, which the next line overwrites
    store(cost, 16, middle_cost)
    store(cost, 0, small_cost)
    store(mv, 2 * at_large, large_mv)
    store(mv, 32, middle_mv)
    store(mv, 0, small_mv)


@helper
def try_on_large(target, origin, vectors, n, lam, px, py, search_result):
    """try_vectors for the partitions from 8x8 on alone."""
    current, luma, offsets = target
    cost, mv = search_result
    stride, at_large = luma.shape[2], 32 - LARGE
    large_cost, large_mv = load_i32x16(cost, at_large), load_i32x16(mv, 2 * at_large)
    for i in range(n):
        x, y = vectors[i, 0], vectors[i, 1]
        vector = splat_i32x16(y << 16 | x & 0xFFFF)
        if equal_lanes(large_mv, vector) >> LARGE == ALL_LARGE:  # its costs are there
            continue
        base = origin + (y >> 2) * stride + (x >> 2)
        a, b = base + offsets[0, (y & 3) * 4 + (x & 3)], base + offsets[1, (y & 3) * 4 + (x & 3)]
        bits = splat_i32x16(lam * mvd_bits(x, y, px, py))
        large = add(sums_of_large(sums_of_middle(satds(current, predict_layers(luma, a, b, stride)))), bits)
        large_mv = where_less(large, large_cost, vector, large_mv)
        large_cost = where_less(large, large_cost, large, large_cost)
    store(cost, at_large, large_cost)  # also lanes of the middle group, which are not read
    store(mv, 2 * at_large, large_mv)


@helper
def _try(target, origin, vectors, n, lam, px, py, large, mb_result):
    """try_vectors; large: see full_search.large_alone."""
    if large is None:
        try_vectors(target, origin, vectors, n, lam, px, py, mb_result)
    else:
        try_on_large(target, origin, vectors, n, lam, px, py, mb_result)


@helper
def _whole(mb, again, whole_mv, mv):
    """The vector of undivided macroblock mb before this round."""
    if again:
        return np.int64(whole_mv[mb, 0]), np.int64(whole_mv[mb, 1])
    return np.int64(mv[mb, 40, 0]), np.int64(mv[mb, 40, 1])


@helper
def _predictor(mb, mx, mb_width, again, whole_mv, mv):
    """8.4.1.3.1 with the neighbours' undivided vectors, slices apart: an estimate of what predicts vectors here."""
    zero = np.int64(0), np.int64(0)
    a = _whole(mb - 1, again, whole_mv, mv) if mx > 0 else zero
    if mb < mb_width:
        return a
    b = _whole(mb - mb_width, again, whole_mv, mv)
    c = zero
    if mx < mb_width - 1:
        c = _whole(mb - mb_width + 1, again, whole_mv, mv)
    elif mx > 0:
        c = _whole(mb - mb_width - 1, again, whole_mv, mv)
    return median(a[0], b[0], c[0]), median(a[1], b[1], c[1])


@helper
def _append(x, y, x0, y0, area, seen, vectors, n):
    """Stores (x, y) as vectors[n] if it is legal and not among those before: (seen, how many there are).

    seen: the vectors before, as lanes.
    """
    key, (first, last) = splat_i32x16(y << 16 | x & 0xFFFF), seen
    before = (equal_lanes(first, key) | equal_lanes(last, key) << 16) & (1 << n) - 1
    vectors[n, 0], vectors[n, 1] = x, y  # without a branch, which nothing predicts
    seen = where_bits(1 << n, key, first), where_bits(1 << n >> 16, key, last)
    return seen, n + (inside(x, y, x0, y0, area) and before == 0)


@helper
def _collect(mb, mx, my, px, py, again, whole_mv, search_result, mb_result, area, vectors):
    """The vectors to try for macroblock mb -> vectors; how many there are. mb_result: SearchResult of the macroblock."""
    mb_width, mb_height = area.width // 16, area.height // 16
    x0, y0 = 16 * mx, 16 * my
    seen, n = _append(px, py, x0, y0, area, (splat_i32x16(0), splat_i32x16(0)), vectors, 0)
    for k in range(1, 9):
        dx, dy = NEIGHBOURS[k, 0], NEIGHBOURS[k, 1]
        if 0 <= mx + dx < mb_width and 0 <= my + dy < mb_height:
            x, y = _whole(mb + dy * mb_width + dx, again, whole_mv, search_result.mv)
            seen, n = _append(x, y, x0, y0, area, seen, vectors, n)
    for k in range(41 if again else 32, 41):
        x, y = np.int64(mb_result.mv[0, k, 0]), np.int64(mb_result.mv[0, k, 1])
        seen, n = _append(x, y, x0, y0, area, seen, vectors, n)
    return n


@helper
def _collect_around(cx, cy, x0, y0, area, vectors):
    """The legal vectors a quarter sample around (cx, cy) -> vectors; how many there are."""
    n = 0
    for k in range(1, 9):
        x, y = cx + NEIGHBOURS[k, 0], cy + NEIGHBOURS[k, 1]
        if inside(x, y, x0, y0, area):
            vectors[n, 0], vectors[n, 1], n = x, y, n + 1
    return n


@closed_kernel
def _rounds(source, luma, pad, qp, max_mv_y, again, row0, row1, predictor, whole_mv, search_result, large):
    """Implements neighbour_vectors and, with `again`, neighbour_vectors_again; large: see full_search.large_alone."""
    first = 0 if large is None else FIRST_LARGE
    height, width = source.shape
    mb_width, stride = width // 16, luma.shape[2]
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[1] * stride, stride, QUARTER_SAMPLES, offsets)
    layers = Layers(aligned(256), aligned(512).view(np.int16))
    target, area = Target(layers, luma, offsets), Area(width, height, pad, max_mv_y)
    vectors = np.empty((N_VECTORS + 1, 2), np.int64)  # one more is written to
    mb_result = SearchResult(np.empty((1, 41), np.int32), np.empty((1, 41, 2), np.int16))
    for mb in range(row0 * mb_width, row1 * mb_width):
        mx, my, lam = mb % mb_width, mb // mb_width, LAMBDA[qp[mb]]
        x0, y0 = 16 * mx, 16 * my
        fill_layers(source, y0 * width + x0, width, layers)
        origin = (y0 + pad) * stride + x0 + pad
        ox, oy = np.int64(predictor[mb, 0]), np.int64(predictor[mb, 1])
        px, py = _predictor(mb, mx, mb_width, again, whole_mv, search_result.mv)
        for k in range(first, 41):
            x, y = np.int64(search_result.mv[mb, k, 0]), np.int64(search_result.mv[mb, k, 1])
            if k == 40:
                x, y = _whole(mb, again, whole_mv, search_result.mv)
            mb_result.mv[0, k, 0], mb_result.mv[0, k, 1] = x, y
            mb_result.cost[0, k] = search_result.cost[mb, k] + lam * (mvd_bits(x, y, px, py) - mvd_bits(x, y, ox, oy))
        n = _collect(mb, mx, my, px, py, again, whole_mv, search_result, mb_result, area, vectors)
        _try(target, origin, vectors, n, lam, px, py, large, mb_result)
        if again:
            n = _collect_around(np.int64(mb_result.mv[0, 40, 0]), np.int64(mb_result.mv[0, 40, 1]), x0, y0, area, vectors)
            _try(target, origin, vectors, n, lam, px, py, large, mb_result)
        predictor[mb, 0], predictor[mb, 1] = px, py
        for k in range(first, 41):
            search_result.cost[mb, k] = mb_result.cost[0, k]
        for k in range(first, 41 if again else 40):
            search_result.mv[mb, k, 0], search_result.mv[mb, k, 1] = mb_result.mv[0, k, 0], mb_result.mv[0, k, 1]
        if not again:
            whole_mv[mb, 0], whole_mv[mb, 1] = mb_result.mv[0, 40, 0], mb_result.mv[0, 40, 1]


@Prepared
def neighbour_vectors(
    source, luma, pad, qp, max_mv_y, row0, row1, predictor, whole_mv, search_result, partition_mask=ALL_PARTITIONS
):
    """First round (not part of the standard): vectors by those of the neighbours, between subpel_refine and decisions.

    source: Sample[H, W]; luma: Sample[4, H+2*pad, W+2*pad], planes G, b, h, j; qp: uint8[n_mb], QP_Y; max_mv_y: limit of
    vertical vectors in luma samples; [row0, row1): macroblock rows. In place: predictor, int16[n_mb, 2]; search_result.

    The predictor becomes that of the neighbours' undivided macroblocks, with which all costs are taken. Then every partition
    tries, in this order, the predictor, the undivided vectors of the eight neighbours in raster order, and the vectors of the
    macroblock's partitions from 8x8 on: the least SATD + lam * bits wins, on a tie the earlier one.

    partition_mask: sizes wanted; without 8x4, 4x8 and 4x4 these stay as they are.

    The undivided vector goes to whole_mv: int16[n_mb, 2], and not yet to search_result, where other threads read that of the
    search.
    """
    large = large_alone(partition_mask)
    return [(_rounds, (source, luma, pad, qp, max_mv_y, 0, row0, row1, predictor, whole_mv, search_result, large))]


@closed_kernel
def _undivided(first_mb, end_mb, whole_mv, mv):
    """The undivided vectors of macroblocks [first_mb, end_mb) into those of their partitions, mv."""
    for mb in range(first_mb, end_mb):
        mv[mb, 40, 0], mv[mb, 40, 1] = whole_mv[mb, 0], whole_mv[mb, 1]


@Prepared
def neighbour_vectors_again(
    source, luma, pad, qp, max_mv_y, row0, row1, predictor, whole_mv, search_result, partition_mask=ALL_PARTITIONS
):
    """Second round: as neighbour_vectors with the undivided vectors of whole_mv, so that vectors go two macroblocks far.

    In place of the vectors of its own partitions, the macroblock tries at the end what lies a quarter sample around its best
    undivided vector. All vectors are in search_result then.

    Without 8x4, 4x8 and 4x4, as in B frames, there is no second trial: 0.13 % more bits there for 5 % of the time.
    """
    large = large_alone(partition_mask)
    if large:
        mb_width = source.shape[1] // 16
        return [(_undivided, (row0 * mb_width, row1 * mb_width, whole_mv, search_result.mv))]
    return [(_rounds, (source, luma, pad, qp, max_mv_y, 1, row0, row1, predictor, whole_mv, search_result, large))]
