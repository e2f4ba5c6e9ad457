"""Best intra type and modes of each macroblock in a P frame and their cost, estimated from source samples in any order."""

import numpy as np

from ..jit.kernel import closed_kernel, helper
from .bit_costs import intra_4x4_type_bits, intra_16x16_type_bits, mode_4x4_bits
from .cost import strip_satd
from .decisions import (
    BITS_INTRA,
    LAMBDA,
    NOT_WORTH,
    QUICK,
    QUIET,
    AS_8x8,
    AS_16x16,
    BITS_ESTIMATED_4x4,
    BITS_ESTIMATED_8x8,
)
from .intra_8x8 import best_mode_8x8
from .intra_prediction import N_MODES_4x4
from .intra_prediction_8x8 import EDGE_8x8, predict_8x8
from .simd.lanes import block_satd, lane_numbers, make_shuffle, sums_of_4
from .simd.vector import (
    add,
    average,
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

# Order of the samples round a 4x4 block: L3 L3 L2 L1 L0 corner T0 .. T7 T7. Every directional mode picks from the three-tap
# filter at each of them and from the mean of each and the next (HALVED, 16 lanes further).
HALVED = 16
_L, _CORNER, _T = 4, 5, 6  # L[i] at _L - i, T[i] at _T + i


def _vertical_right(x, y):
    if 2 * x - y < -1:
        return _L + 2 - y
    return _CORNER + x - (y >> 1) + (HALVED if y % 2 == 0 else 0)


def _horizontal_down(x, y):
    if 2 * y - x < -1:
        return _T - 2 + x
    return (_L - y + (x >> 1) + HALVED) if x % 2 == 0 else _CORNER - y + (x >> 1)


def _horizontal_up(x, y):
    if x + 2 * y > 5:
        return HALVED  # mean of L3 and L3
    return _L - 1 - y - (x >> 1) + (HALVED if x % 2 == 0 else 0)


def _picks(place):
    return make_shuffle([place(x, y) for y in range(4) for x in range(4)])


# 8.3.1.2.1 to 8.3.1.2.9
_vertical = _picks(lambda x, y: _T + x)
_horizontal = _picks(lambda x, y: _L - y)
_down_left = _picks(lambda x, y: _T + 1 + x + y)
_down_right = _picks(lambda x, y: _CORNER + x - y)
_right = _picks(_vertical_right)
_down = _picks(_horizontal_down)
_vertical_left = _picks(lambda x, y: _T + x + (y >> 1) + (HALVED if y % 2 == 0 else 1))
_up = _picks(_horizontal_up)

DC = 2  # of Intra4x4PredMode and of Intra16x16PredMode


@helper
def _mode_cost(block, prediction, mode, predicted, lam):
    """SATD + lam * bits of one Intra_4x4 mode."""
    return block_satd(sub(block, widen(prediction))) + lam * mode_4x4_bits(mode, predicted)


@helper
def _block_4x4(source, x, y, top, right, predicted, lam, edge, rows):
    """Mode and cost of the best Intra_4x4 prediction from source samples of the block at (x, y).

    top, right: whether the samples above, above right are available; predicted: the mode that costs one bit;
    edge: uint8[32], rows: uint8[16], scratch.
    """
    left = x > 0
    for i in range(4):
        edge[5 - i] = source[y + i, x - 1] if left else 128
        edge[7 + i] = source[y - 1, x + i] if top else 128
        edge[11 + i] = source[y - 1, x + 4 + i] if top and right else edge[10]
        for j in range(4):
            rows[4 * i + j] = source[y + i, x + j]
    for i in range(4):
        if top and not right:
            edge[11 + i] = edge[10]
    edge[1] = edge[2]
    edge[6] = source[y - 1, x - 1] if left and top else 128
    edge[15] = edge[14]
    edge[16] = edge[14]
    block = widen(load_u8x16(rows, 0))
    samples = load_u8x16(edge, 1)
    before, after = widen(load_u8x16(edge, 0)), load_u8x16(edge, 2)
    centre = widen(samples)
    filtered = clip_to_u8(shift_right_s(plus(add(add(before, widen(after)), add(centre, centre)), 2), 2))
    halved = average(samples, after)
    total, count = 0, 0
    for i in range(4):
        if left:
            total += np.int64(edge[5 - i])
            count += 1
        if top:
            total += np.int64(edge[7 + i])
            count += 1
    dc = (total + (count >> 1)) // count if count else 128
    mode = DC
    cost = block_satd(sub(block, splat_u16x16(dc))) + lam * mode_4x4_bits(DC, predicted)
    if top:
        c = _mode_cost(block, _vertical(samples, samples), 0, predicted, lam)
        if c < cost:
            mode, cost = 0, c
        c = _mode_cost(block, _down_left(filtered, halved), 3, predicted, lam)
        if c < cost:
            mode, cost = 3, c
        c = _mode_cost(block, _vertical_left(filtered, halved), 7, predicted, lam)
        if c < cost:
            mode, cost = 7, c
    if left:
        c = _mode_cost(block, _horizontal(samples, samples), 1, predicted, lam)
        if c < cost:
            mode, cost = 1, c
        c = _mode_cost(block, _up(filtered, halved), 8, predicted, lam)
        if c < cost:
            mode, cost = 8, c
    if left and top:
        c = _mode_cost(block, _down_right(filtered, halved), 4, predicted, lam)
        if c < cost:
            mode, cost = 4, c
        c = _mode_cost(block, _right(filtered, halved), 5, predicted, lam)
        if c < cost:
            mode, cost = 5, c
        c = _mode_cost(block, _down(filtered, halved), 6, predicted, lam)
        if c < cost:
            mode, cost = 6, c
    return mode, cost


@helper
def _macroblock_4x4(source, x0, y0, mb_top, lam, limit, edge, rows, modes):
    """Cost of the macroblock at (x0, y0) as Intra_4x4, with early exit above `limit`; the modes in raster order -> modes.

    mb_top: whether the macroblock above is available.
    """
    width = source.shape[1]
    cost = lam * (BITS_ESTIMATED_4x4 + intra_4x4_type_bits())
    for k in range(16):  # decoding order: quadrant by quadrant
        bx = (k & 1) + (k >> 1 & 2)
        by = (k >> 1 & 1) + (k >> 2 & 2)
        x, y = x0 + 4 * bx, y0 + 4 * by
        a = modes[4 * by + bx - 1] if bx else 2
        b = modes[4 * by + bx - 4] if by else 2
        top = mb_top or by > 0
        # 6.4.11.4: inside the macroblock, the block above right may come later in decoding order
        right = by == 0 or (bx < 3 and not (bx == 1 and by & 1))
        right = right and x + 4 < width
        mode, value = _block_4x4(source, x, y, top, right, min(a, b), lam, edge, rows)
        modes[4 * by + bx] = mode
        cost += value
        if cost > limit:
            break
    return cost


@helper
def _macroblock_8x8(source, x0, y0, mb_top, lam, limit, samples, edge, predictions, modes):
    """As _macroblock_4x4 for Intra_8x8: its cost, early exit above `limit`, modes + AS_8x8 -> modes.

    samples: uint8[256], the macroblock; edge: uint8[EDGE_8x8], predictions: uint8[576], scratch.
    """
    cost = lam * (BITS_ESTIMATED_8x8 + intra_4x4_type_bits())
    for q in range(4):
        bx, by = q & 1, q >> 1
        k = 8 * by + 2 * bx
        x, y = x0 + 8 * bx, y0 + 8 * by
        right = (by == 0 or bx == 0) and x + 8 < source.shape[1]
        usable = predict_8x8(
            source, x, y, x > 0, mb_top or by > 0, right, (1 << N_MODES_4x4) - 1, edge, predictions
        )
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
def _macroblock_16x16(source, x0, y0, top, lam, limit, current, edges):
    """8.3.3 on source samples: mode and cost of the macroblock at (x0, y0) as Intra_16x16; DC and `limit` if none is below.

    top: whether the macroblock above is available; edges: int64[2, 17], scratch.
    """
    left = x0 > 0
    total = np.int64(0)
    for i in range(16):
        if top:
            edges[0, 1 + i] = source[y0 - 1, x0 + i]
            total += edges[0, 1 + i]
        if left:
            edges[1, 1 + i] = source[y0 + i, x0 - 1]
            total += edges[1, 1 + i]
    count = 16 * left + 16 * top
    dc = (total + (count >> 1)) // count if count else 128
    bits = lam * intra_16x16_type_bits(DC)
    mode, cost = DC, min(limit, _satd_16x16(current, 32 * dc, 0, 0, limit - bits) + bits)
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
    if left and top:
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


@closed_kernel
def intra_estimate(source, qp, search_cost, n_ref, slice_first_mb, tools, row0, row1, intra_cost, intra_modes):
    """Type and modes of the best intra prediction of each macroblock in a P slice, and its cost (not part of the standard).

    source: uint8[H, W]; qp: uint8[n_mb], QP_Y; search_cost: int32[>= n_ref, n_mb, 41] of subpel_refine; slice_first_mb:
    int32[mb_height]; tools: CodingTools, I_8x8 needs transform_8x8_mode and intra_8x8; [row0, row1): macroblock rows; writes
    intra_cost: int32[n_mb], SATD + lam * bits, and intra_modes: uint8[n_mb, 16], used by `intra` if mode decision chooses
    intra: sixteen Intra4x4PredModes in raster order, or AS_8x8 + Intra8x8PredMode of the quadrant of each 4x4 block, or
    sixteen times AS_16x16 + Intra16x16PredMode. They are NOT_WORTH and AS_16x16 + DC unless intra_cost + lam * BITS_INTRA is
    below the cost of the undivided macroblock in its best reference, and where that is below lam * (QUIET + BITS_INTRA), up
    to subme QUICK. Neighbouring samples are those of the source, so macroblocks are independent; only modes whose samples are
    available for Intra prediction in coding (6.4.11, 8.3.1.2) are considered.
    """
    mb_width = source.shape[1] // 16
    current = np.empty(256, np.int16)
    edges = np.zeros((2, 17), np.int64)
    edge, rows = np.zeros(EDGE_8x8, np.uint8), np.zeros(16, np.uint8)
    samples, predictions = np.zeros(256, np.uint8), np.zeros(576, np.uint8)
    modes, modes_8x8 = np.zeros(16, np.int64), np.zeros(16, np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        mx, my = mb % mb_width, mb // mb_width
        x0, y0 = 16 * mx, 16 * my
        top = mb - mb_width >= slice_first_mb[my]
        lam = LAMBDA[qp[mb]]
        limit = np.int64(NOT_WORTH)
        for r in range(n_ref):
            limit = min(limit, np.int64(search_cost[r, mb, 40]) - lam * BITS_INTRA)
        if tools.subme <= QUICK and limit < QUIET * lam:
            intra_cost[mb], intra_modes[mb] = NOT_WORTH, AS_16x16 + DC
            continue
        for y in range(16):
            row = load_u8x16(source, (y0 + y) * source.shape[1] + x0)
            store(samples, y * 16, row)
            store(current, y * 16, widen(row))
        mode, cost = _macroblock_16x16(source, x0, y0, top, lam, limit, current, edges)
        cost_8x8 = cost
        if tools.transform_8x8_mode and tools.intra_8x8:
            value = _macroblock_8x8(source, x0, y0, top, lam, cost, samples, edge, predictions, modes_8x8)
            cost_8x8 = min(cost, value)
        cost_4x4 = _macroblock_4x4(source, x0, y0, top, lam, cost_8x8, edge, rows, modes)
        if cost_4x4 >= cost_8x8:
            for k in range(16):
                modes[k] = modes_8x8[k] if cost_8x8 < cost else AS_16x16 + mode
        cost = min(cost_4x4, cost_8x8)
        worth = cost < limit
        intra_cost[mb] = cost if worth else NOT_WORTH
        for k in range(16):
            intra_modes[mb, k] = modes[k] if worth else AS_16x16 + DC
