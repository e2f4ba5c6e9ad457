"""Best intra type and modes of each macroblock in a P frame and their cost, estimated from source samples in any order."""
# Samples of 8 bits only: 64 samples a vector.

from collections import namedtuple

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import BLOCK_TO_RASTER
from ...standard.sample_format import SAMPLE_MIDDLE, Sample
from ..costs.bit_costs import intra_4x4_type_bits, intra_16x16_type_bits, mode_4x4_bits
from ..costs.cost import strip_satd
from ..decisions.common import BITS_INTRA, INTER_IS_CHEAPER, LAMBDA, QUICK, QUIET
from ..decisions.intra import MODE_DC, AS_8x8, AS_16x16, BITS_ESTIMATED_4x4, BITS_ESTIMATED_8x8, N_MODES_4x4
from ..simd.block_modes import columns_of_blocks, left_of_blocks, load_4_u8x16, mode_satds
from ..simd.block_rows import load_layer
from ..simd.blocks import min_s
from ..simd.lanes import lane_numbers, sums_of_4, where_bits, where_less
from ..simd.vector import (
    add,
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
)
from .intra_8x8 import best_mode_8x8
from .intra_prediction import Around
from .intra_prediction_8x8 import EDGE_8x8, predict_8x8

LEAST, LEAST_MODE, COSTS_4x4 = 144, 160, 176
UNUSABLE = 32767
RANK_4x4 = np.array([1, 4, 0, 2, 6, 7, 8, 3, 5])  # by Intra4x4PredMode: 2, 0, 3, 7, 1, 8, 4, 5, 6
# 6.4.11.4: blocks (raster) whose block above right comes earlier in decoding order
_HAS_RIGHT = 0x575F

# What the estimate of one macroblock after the other needs.
Scratch = namedtuple("Scratch", (
    "current",  # int16[256], the macroblock
    "edges",  # int64[2, 17], the row above, the column to the left
    "edge",  # Sample[EDGE_8x8]
    "costs",  # int16[COSTS_4x4], see _satds_4x4
    "samples",  # Sample[256], the macroblock
    "predictions",  # Sample[576]
    "modes",  # int64[16], of Intra_4x4; then the result
    "modes_8x8",  # int64[16]
))  # fmt: skip


@helper
def _satds_4x4(source, x0, y0, around, costs):
    """SATD of each Intra_4x4 mode of the blocks of the macroblock at (x0, y0) from source samples, raster order.

    around: Around. costs: int16[COSTS_4x4]: those of nine modes, UNUSABLE without the
    samples; the least ones, and their modes, from LEAST and LEAST_MODE on.
    """
    width = source.shape[1]
    at = y0 * width + x0
    above, before = at - width if y0 > 0 else at, 1 if x0 > 0 else 0
    row_0, row_1 = load_layer(source, at, width), load_layer(source, at + width, width)
    row_2, row_3 = load_layer(source, at + 2 * width, width), load_layer(source, at + 3 * width, width)
    samples = columns_of_blocks(row_0) + columns_of_blocks(row_1) + columns_of_blocks(row_2) + columns_of_blocks(row_3)
    l0 = left_of_blocks(row_0, load_layer(source, at - before, width))
    l1 = left_of_blocks(row_1, load_layer(source, at + width - before, width))
    l2 = left_of_blocks(row_2, load_layer(source, at + 2 * width - before, width))
    l3 = left_of_blocks(row_3, load_layer(source, at + 3 * width - before, width))
    a, b, c = at + 3 * width, at + 7 * width, at + 11 * width
    over = load_4_u8x16(source, above, a, b, c)
    corner = left_of_blocks(over, load_4_u8x16(source, above - before, a - before, b - before, c - before))
    t0, t1, t2, t3 = columns_of_blocks(over)
    t4, t5, t6, t7 = columns_of_blocks(load_4_u8x16(source, above + 4, a + 4, b + 4, c + 4))
    right = _HAS_RIGHT if x0 + 16 < width else _HAS_RIGHT & ~8
    t4, t5 = where_bits(right, t4, t3), where_bits(right, t5, t3)
    t6, t7 = where_bits(right, t6, t3), where_bits(right, t7, t3)
    has_left, has_top = 0xFFFF if around.left else 0xEEEE, 0xFFFF if around.top else 0xFFF0
    has_corner = has_left & has_top & (0xFFFF if around.corner else 0xFFFE)
    left = add(add(widen(l0), widen(l1)), add(widen(l2), widen(l3)))
    top = add(add(widen(t0), widen(t1)), add(widen(t2), widen(t3)))
    dc = where_bits(has_top, shift_right_s(plus(top, 2), 2), splat_u16x16(SAMPLE_MIDDLE))
    dc = where_bits(has_left, shift_right_s(plus(left, 2), 2), dc)
    dc = where_bits(has_left & has_top, shift_right_s(plus(add(left, top), 4), 3), dc)
    satds = mode_satds(samples, (l3, l3, l2, l1, l0, corner, t0, t1, t2, t3, t4, t5, t6, t7, t7), dc)
    least, modes = satds[MODE_DC], splat_u16x16(MODE_DC)
    store(costs, 16 * MODE_DC, least)
    least, modes = _weigh(satds[0], 0, has_top, least, modes, costs)
    least, modes = _weigh(satds[3], 3, has_top, least, modes, costs)
    least, modes = _weigh(satds[7], 7, has_top, least, modes, costs)
    least, modes = _weigh(satds[1], 1, has_left, least, modes, costs)
    least, modes = _weigh(satds[8], 8, has_left, least, modes, costs)
    least, modes = _weigh(satds[4], 4, has_corner, least, modes, costs)
    least, modes = _weigh(satds[5], 5, has_corner, least, modes, costs)
    least, modes = _weigh(satds[6], 6, has_corner, least, modes, costs)
    store(costs, LEAST, least)
    store(costs, LEAST_MODE, modes)


@helper
def _weigh(satds, mode, usable, least, modes, costs):
    """The least SATDs and their modes with another mode, which is usable in the blocks of a bit mask."""
    satds = where_bits(usable, satds, splat_u16x16(UNUSABLE))
    store(costs, 16 * mode, satds)
    return min_s(satds, least), where_less(satds, least, splat_u16x16(mode), modes)


@helper
def _macroblock_4x4(source, x0, y0, around, lam, limit, costs, modes):
    """Cost of the macroblock at (x0, y0) as Intra_4x4, with early exit above `limit`; the modes in raster order -> modes.

    around: Around; costs: int16[COSTS_4x4], scratch. Of modes that cost the same the
    first of RANK_4x4 is chosen.
    """
    _satds_4x4(source, x0, y0, around, costs)
    cost = lam * (BITS_ESTIMATED_4x4 + intra_4x4_type_bits())
    for block in range(16):  # decoding order: quadrant by quadrant
        k = np.int64(BLOCK_TO_RASTER[block])
        a = modes[k - 1] if k & 3 else 2
        b = modes[k - 4] if k >> 2 else 2
        likely = min(a, b)
        mode = np.int64(costs[LEAST_MODE + k])
        value = np.int64(costs[LEAST + k]) + lam * mode_4x4_bits(-1, likely)
        other = np.int64(costs[16 * likely + k]) + lam * mode_4x4_bits(likely, likely)
        if other < value or (other == value and RANK_4x4[likely] < RANK_4x4[mode]):
            mode, value = likely, other
        modes[k] = mode
        cost += value
        if cost > limit:
            break
    return cost


@helper
def _macroblock_8x8(source, x0, y0, around, lam, limit, samples, edge, predictions, modes):
    """As _macroblock_4x4 for Intra_8x8: its cost, early exit above `limit`, modes + AS_8x8 -> modes.

    samples: Sample[256], the macroblock; edge: Sample[EDGE_8x8], predictions: Sample[576], scratch.
    """
    cost = lam * (BITS_ESTIMATED_8x8 + intra_4x4_type_bits())
    for q in range(4):
        bx, by = q & 1, q >> 1
        k = 8 * by + 2 * bx
        x, y = x0 + 8 * bx, y0 + 8 * by
        right = (by == 0 or bx == 0) and x + 8 < source.shape[1]
        left, top = around.left or bx > 0, around.top or by > 0
        usable = predict_8x8(source, x, y, left, top, right, (1 << N_MODES_4x4) - 1, edge, predictions)
        a = modes[k - 1] - AS_8x8 if bx else 2
        b = modes[k - 4] - AS_8x8 if by else 2
        mode, value = best_mode_8x8(samples, 128 * by + 8 * bx, predictions, usable, min(a, b), lam)
        for i in (k, k + 1, k + 4, k + 5):
            modes[i] = AS_8x8 + mode
        cost += value
        if cost > limit:
            break
    return cost


@helper
def _strip(current, at, p0, p1, p2, p3):
    """SATD of four rows of the macroblock, from current[at] on, against their predictions."""
    a, b, c, d = sums_of_4(
        strip_satd(
            sub(p0, load_u16x16(current, at)),
            sub(p1, load_u16x16(current, at + 16)),
            sub(p2, load_u16x16(current, at + 32)),
            sub(p3, load_u16x16(current, at + 48)),
        )
    )
    return a + b + c + d


@helper
def _satd_16x16(current, base, step_x, step_y, limit):
    """SATD of the macroblock (int16[256]) against (base + step_x * x + step_y * y) >> 5 clipped: Intra_16x16 plane.

    Early exit when it reaches `limit`.
    """
    columns = mul(lane_numbers(), splat_u16x16(step_x))
    total = np.int64(0)
    for strip in range(4):
        at = strip * 64
        value = base + step_y * 4 * strip
        p0 = widen(clip_to_u8(shift_right_s(add(columns, splat_u16x16(value)), 5)))
        p1 = widen(clip_to_u8(shift_right_s(add(columns, splat_u16x16(value + step_y)), 5)))
        p2 = widen(clip_to_u8(shift_right_s(add(columns, splat_u16x16(value + 2 * step_y)), 5)))
        p3 = widen(clip_to_u8(shift_right_s(add(columns, splat_u16x16(value + 3 * step_y)), 5)))
        total += _strip(current, at, p0, p1, p2, p3)
        if total >= limit:
            break
    return total


@helper
def _macroblock_16x16(source, x0, y0, around, lam, limit, current, edges):
    """8.3.3 on source samples: mode and cost of the macroblock at (x0, y0) as Intra_16x16; DC and `limit` if none is below.

    around: Around; edges: int64[2, 17], scratch.
    """
    left, top, _, corner = around
    total = np.int64(0)
    for i in range(16):
        if top:
            edges[0, 1 + i] = source[y0 - 1, x0 + i]
            total += edges[0, 1 + i]
        if left:
            edges[1, 1 + i] = source[y0 + i, x0 - 1]
            total += edges[1, 1 + i]
    count = 16 * left + 16 * top
    dc = (total + (count >> 1)) // count if count else SAMPLE_MIDDLE
    bits = lam * intra_16x16_type_bits(MODE_DC)
    mode, cost = MODE_DC, min(limit, _satd_16x16(current, 32 * dc, 0, 0, limit - bits) + bits)
    if top:
        above = widen(load_u8x16(source, (y0 - 1) * source.shape[1] + x0))
        bits = lam * intra_16x16_type_bits(0)
        value = _satd_rows(current, above, edges, False, cost - bits) + bits
        if value < cost:
            mode, cost = 0, value
    if left:
        bits = lam * intra_16x16_type_bits(1)
        value = _satd_rows(current, splat_u16x16(0), edges, True, cost - bits) + bits
        if value < cost:
            mode, cost = 1, value
    if corner:
        edges[0, 0] = edges[1, 0] = source[y0 - 1, x0 - 1]
        h, v = 0, 0
        for i in range(1, 9):
            h += i * (edges[0, 8 + i] - edges[0, 8 - i])
            v += i * (edges[1, 8 + i] - edges[1, 8 - i])
        b, c = (5 * h + 32) >> 6, (5 * v + 32) >> 6
        base = 16 * (edges[0, 16] + edges[1, 16]) + 16 - 7 * b - 7 * c
        bits = lam * intra_16x16_type_bits(3)
        value = _satd_16x16(current, base, b, c, cost - bits) + bits
        if value < cost:
            mode, cost = 3, value
    return mode, cost


@helper
def _satd_rows(current, above, edges, horizontal, limit):
    """SATD of the macroblock predicted from the row above or (horizontal) the left column; early exit at `limit`."""
    total = np.int64(0)
    p0 = p1 = p2 = p3 = above
    for strip in range(4):
        at = strip * 64
        if horizontal:
            p0 = splat_u16x16(edges[1, 4 * strip + 1])
            p1 = splat_u16x16(edges[1, 4 * strip + 2])
            p2 = splat_u16x16(edges[1, 4 * strip + 3])
            p3 = splat_u16x16(edges[1, 4 * strip + 4])
        total += _strip(current, at, p0, p1, p2, p3)
        if total >= limit:
            break
    return total


@helper
def best_modes(source, mb, slice_first_mb, lam, limit, tools, scratch):
    """Cost of macroblock mb in its best intra type, which is exact below `limit`; its modes -> scratch.modes, as intra_modes.

    See intra_estimate.
    """
    current, edges, edge, costs, samples, predictions, modes, modes_8x8 = scratch
    mb_width = source.shape[1] // 16
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    first_mb = np.int64(slice_first_mb[mb])
    left, top = x0 > 0 and mb > first_mb, mb - mb_width >= first_mb
    around = Around(left, top, top and x0 + 16 < source.shape[1], left and mb - mb_width > first_mb)
    for y in range(16):
        row = load_u8x16(source, (y0 + y) * source.shape[1] + x0)
        store(samples, y * 16, row)
        store(current, y * 16, widen(row))
    mode, cost = _macroblock_16x16(source, x0, y0, around, lam, limit, current, edges)
    cost_8x8 = cost
    # without the corner alone the edge of Intra_8x8 is filtered otherwise, which is not built
    if tools.transform_8x8_mode and tools.intra_8x8 and (around.corner or not left or not top):
        value = _macroblock_8x8(source, x0, y0, around, lam, cost, samples, edge, predictions, modes_8x8)
        cost_8x8 = min(cost, value)
    cost_4x4 = _macroblock_4x4(source, x0, y0, around, lam, cost_8x8, costs, modes)
    if cost_4x4 >= cost_8x8:
        for k in range(16):
            modes[k] = modes_8x8[k] if cost_8x8 < cost else AS_16x16 + mode
    return min(cost_4x4, cost_8x8)


@closed_kernel
def intra_estimate(source, qp, search_cost, n_ref, slice_first_mb, tools, row0, row1, intra_cost, intra_modes):
    """Type and modes of the best intra prediction of each macroblock in a P slice, and its cost (not part of the standard).

    source: Sample[H, W]; qp: uint8[n_mb], QP_Y; search_cost: int32[>= n_ref, n_mb, 41] of subpel_refine; slice_first_mb:
    int32[n_mb]; tools: CodingTools, I_8x8 needs transform_8x8_mode and intra_8x8; [row0, row1): macroblock rows; writes
    intra_cost: int32[n_mb], SATD + lam * bits, and intra_modes: uint8[n_mb, 16], used by `intra` if mode decision chooses
    intra: sixteen Intra4x4PredModes in raster order, or AS_8x8 + Intra8x8PredMode of the quadrant of each 4x4 block, or
    sixteen times AS_16x16 + Intra16x16PredMode. They are INTER_IS_CHEAPER and AS_16x16 + MODE_DC unless intra_cost + lam *
    BITS_INTRA is below the cost of the undivided macroblock in its best reference, and where that is below lam * (QUIET +
    BITS_INTRA), up to subme QUICK. Neighbouring samples are those of the source, so macroblocks are independent; only modes
    whose samples are available for Intra prediction in coding (6.4.11, 8.3.1.2) are considered.
    """
    mb_width = source.shape[1] // 16
    current, edges = np.empty(256, np.int16), np.zeros((2, 17), np.int64)
    edge, costs = np.zeros(EDGE_8x8, Sample), np.zeros(COSTS_4x4, np.int16)
    samples, predictions = np.zeros(256, Sample), np.zeros(576, Sample)
    modes, modes_8x8 = np.zeros(16, np.int64), np.zeros(16, np.int64)
    scratch = Scratch(current, edges, edge, costs, samples, predictions, modes, modes_8x8)
    for mb in range(row0 * mb_width, row1 * mb_width):
        lam = LAMBDA[qp[mb]]
        limit = np.int64(INTER_IS_CHEAPER)
        for r in range(n_ref):
            limit = min(limit, np.int64(search_cost[r, mb, 40]) - lam * BITS_INTRA)
        if tools.subme <= QUICK and limit < QUIET * lam:
            intra_cost[mb], intra_modes[mb] = INTER_IS_CHEAPER, AS_16x16 + MODE_DC
            continue
        cost = best_modes(source, mb, slice_first_mb, lam, limit, tools, scratch)
        is_cheaper = cost < limit
        intra_cost[mb] = cost if is_cheaper else INTER_IS_CHEAPER
        for k in range(16):
            intra_modes[mb, k] = modes[k] if is_cheaper else AS_16x16 + MODE_DC
