"""Centre of each macroblock's search window, from data available before the frame is coded."""

import numpy as np

from ..jit.calls import Prepared
from ..jit.inlining import inlined
from ..jit.kernel import closed_kernel, helper
from .bit_costs import mvd_bits
from .decisions import (
    CAMERA_SCALE,
    CAMERA_X,
    CAMERA_Y,
    COARSE_SCALE,
    COARSE_X,
    COARSE_Y,
    LAMBDA,
    MOST_DISTANCE,
    SMALLEST_WINDOW,
)
from .layout import COARSE_PAD
from .simd.aligned import aligned
from .simd.blocks import narrow
from .simd.lanes import first_where, lanes_below, smallest, sum_of_lanes, sums_of_lanes
from .simd.search import WINDOW, arrange_half_row, arranged_sads, octet_sads
from .simd.vector import (
    SIMD_LEVEL,
    WIDE,
    add,
    add_sat_u,
    lane_numbers_like,
    lanes_of,
    load_2_u8x16,
    load_like,
    load_u8x16,
    load_u8x32,
    plus,
    shift_right_s,
    splat_u16x16,
    splat_u16x32,
    store,
    widen,
)

widest = splat_u16x32 if SIMD_LEVEL == WIDE else splat_u16x16  # of a candidate in each lane
COARSE_ROWS = 2 * COARSE_Y + 7  # of a window of the coarse search
COARSE_WINDOWS = COARSE_ROWS * WINDOW * (2 * COARSE_X // (32 if SIMD_LEVEL == WIDE else 16))  # bytes of its arranged rows


def coarse_shape(height, width):
    """Shape of the coarse frame of a plane of height x width samples, borders included."""
    return height // COARSE_SCALE + 2 * COARSE_PAD, width // COARSE_SCALE + 2 * COARSE_PAD


@helper
def column_sums(plane, at, stride):
    """u16x16: the column sums of four rows of sixteen samples."""
    a, b = widen(load_u8x16(plane, at)), widen(load_u8x16(plane, at + stride))
    c, d = widen(load_u8x16(plane, at + 2 * stride)), widen(load_u8x16(plane, at + 3 * stride))
    return add(add(a, b), add(c, d))


@helper
def means_of_64(plane, at, stride):
    """u8x16: the rounded means of a row of sixteen blocks of 4x4 samples."""
    a, b = column_sums(plane, at, stride), column_sums(plane, at + 16, stride)
    c, d = column_sums(plane, at + 32, stride), column_sums(plane, at + 48, stride)
    return narrow(narrow(shift_right_s(plus(sums_of_lanes(a, b, c, d), 8), 4)))


@helper
def mean_of_16(plane, x, y):
    """The rounded mean of the 4x4 samples at (x, y)."""
    total = np.int64(8)
    for r in range(4):
        for c in range(4):
            total += np.int64(plane[y + r, x + c])
    return total >> 4


@helper
def _repeat_row(coarse, row, first):
    """Copies a row to the COARSE_PAD rows from `first` on, sample by sample: Numba compiles long for copies of whole rows."""
    for y in range(first, first + COARSE_PAD):
        for x in range(coarse.shape[1]):
            coarse[y, x] = coarse[row, x]


@closed_kernel
def _subsample(plane, x0, y0, row0, row1, coarse):
    """Means of 4x4 samples of plane (frame's corner at (x0, y0)) for macroblock rows [row0, row1), borders extended."""
    height, width = coarse.shape
    inner_width = width - 2 * COARSE_PAD
    inner_height = height - 2 * COARSE_PAD
    stride = plane.shape[1]
    for y in range(4 * row0, 4 * row1):
        at, to = (y0 + 4 * y) * stride + x0, (COARSE_PAD + y) * width + COARSE_PAD
        for x in range(0, inner_width - 15, 16):
            store(coarse, to + x, means_of_64(plane, at + 4 * x, stride))
        if inner_width >= 16:  # the last sixteen, overlapping those before
            x = inner_width - 16
            store(coarse, to + x, means_of_64(plane, at + 4 * x, stride))
        else:
            for x in range(inner_width):
                coarse[COARSE_PAD + y, COARSE_PAD + x] = mean_of_16(plane, x0 + 4 * x, y0 + 4 * y)
        row = coarse[COARSE_PAD + y]
        row[:COARSE_PAD] = row[COARSE_PAD]
        row[COARSE_PAD + inner_width :] = row[COARSE_PAD + inner_width - 1]
    if row0 == 0:
        _repeat_row(coarse, COARSE_PAD, 0)
    if 4 * row1 == inner_height:
        _repeat_row(coarse, COARSE_PAD + inner_height - 1, height - COARSE_PAD)


@Prepared
def subsample(source, reference, pad, row0, row1, coarse):
    """Coarse frames for search_centre (not part of the standard): means of 4x4 samples, with borders.

    source: uint8[H, W]; reference: uint8[H+2*pad, W+2*pad]; [row0, row1): macroblock rows; coarse: the bundle.
    """
    return [
        (_subsample, (source, 0, 0, row0, row1, coarse.source)),
        (_subsample, (reference, pad, pad, row0, row1, coarse.reference)),
    ]


@helper
def vector_costs(lam, cost):
    """cost: uint16[2 * COARSE_Y * 2 * COARSE_X]: lam * bits of each vector of the coarse search; favours 0 in flat areas."""
    for dy in range(-COARSE_Y, COARSE_Y):
        for dx in range(-COARSE_X, COARSE_X):
            cost[(dy + COARSE_Y) * 2 * COARSE_X + dx + COARSE_X] = lam * mvd_bits(dx, dy, 0, 0)


@helper
def _every_second_row(source, at, stride, windows, to, first, total):
    """total plus the SADs of rows first, first + 2 ... of 8x8 samples at as many candidates side by side as it has lanes."""
    for y in range(first, 8, 2):
        a, b, _, _ = arranged_sads(source, at + y * stride, windows, to + y * WINDOW, total)
        total = add_sat_u(total, add(a, b))
    return total


@helper
def coarse_vector(source, reference, mx, my, cost, windows, centre_x=0, centre_y=0):
    """Returns the best vector (x, y), in coarse samples, of the 8x8 coarse samples round macroblock (mx, my).

    The search window lies at (centre_x, centre_y), from where the vector is counted; cost: from vector_costs; windows:
    scratch, uint8[COARSE_WINDOWS]. The first of equal candidates wins, rows from above.
    """
    stride = source.shape[1]
    lanes = lanes_of(widest(0))
    at = (COARSE_PAD + 4 * my - 2) * stride + COARSE_PAD + 4 * mx - 2
    corner = at + (centre_y - COARSE_Y) * stride + centre_x - COARSE_X
    limit, rank = np.int64(65536), np.int64(0)
    for g in range(0, 2 * COARSE_X, lanes):
        first = g // lanes * COARSE_ROWS * WINDOW
        for y in range(COARSE_ROWS):
            arrange_half_row(reference, corner + y * stride + g, windows, first + y * WINDOW, widest(0))
        # the middle row first: few of the others can cost less
        total = load_like(widest(0), cost, COARSE_Y * 2 * COARSE_X + g)
        total = _every_second_row(source, at, stride, windows, first + COARSE_Y * WINDOW, 0, total)
        total = _every_second_row(source, at, stride, windows, first + COARSE_Y * WINDOW, 1, total)
        limit = min(limit, np.int64(smallest(total)) + 1)
    for dy in range(2 * COARSE_Y):
        for g in range(0, 2 * COARSE_X, lanes):
            place, there = dy * 2 * COARSE_X + g, (g // lanes * COARSE_ROWS + dy) * WINDOW
            total = load_like(widest(0), cost, place)
            total = _every_second_row(source, at, stride, windows, there, 0, total)
            if lanes_below(total, limit) == 0:
                continue
            total = _every_second_row(source, at, stride, windows, there, 1, total)
            if lanes_below(total, limit) != 0:
                limit = np.int64(smallest(total))
                rank = place + np.int64(first_where(total, limit, lane_numbers_like(total)))
    return rank % (2 * COARSE_X) - COARSE_X, rank // (2 * COARSE_X) - COARSE_Y


@helper
def _half_sad(source, a, stride, reference, b, reference_stride):
    """SAD of 16x8 samples at two offsets, two rows at a time; every second row, so that it tells most of that of 16x16."""
    total = octet_sads(load_2_u8x16(source, a, a + 2 * stride), load_2_u8x16(reference, b, b + 2 * reference_stride))
    for _ in range(3):
        a += 4 * stride
        b += 4 * reference_stride
        rows = load_2_u8x16(source, a, a + 2 * stride)
        total = add(total, octet_sads(rows, load_2_u8x16(reference, b, b + 2 * reference_stride)))
    return sum_of_lanes(total)


@helper
def block_sad(source, at, stride, reference, reference_at, reference_stride, limit):
    """SAD of 16x16 samples at two offsets; from `limit` on at least `limit`."""
    total = _half_sad(source, at, stride, reference, reference_at, reference_stride)
    if total >= limit:
        return total
    return total + _half_sad(source, at + stride, stride, reference, reference_at + reference_stride, reference_stride)


@helper
def _row_sad(a, at_a, b, at_b, n):
    """SAD of n samples at two offsets; n: a multiple of 32."""
    inlined()
    total = np.int64(0)
    for i in range(0, n, 32):
        total += sum_of_lanes(octet_sads(load_u8x32(a, at_a + i), load_u8x32(b, at_b + i)))
    return total


@helper
def clamp(value, low, high):
    """value limited to [low, high]; low if low > high."""
    return max(low, min(high, value))


@helper
def whole_motion(here, there):
    """Motion between two frames of means, uint8[h, w]: the least mean difference of what both have in common.

    That is at least half the width and height; on a tie the first, rows from above, no motion before all. Returns (x, y).
    """
    height, width = here.shape
    range_x, range_y = min(CAMERA_X, width // 2), min(CAMERA_Y, height // 2)
    best_x, best_y, least, area = 0, 0, np.int64(0), np.int64(height) * width
    for n in range((2 * range_y + 1) * (2 * range_x + 1) + 1):
        x = (n - 1) % (2 * range_x + 1) - range_x if n else 0
        y = (n - 1) // (2 * range_x + 1) - range_y if n else 0
        x0, x1 = max(0, -x), min(width, width - x)
        common = (np.int64(height) - abs(y)) * (x1 - x0)
        most = (least * common + area - 1) // area if n else np.int64(1 << 40)  # a total from here on is not less
        total = np.int64(0)
        for v in range(max(0, -y), min(height, height - y)):
            wide, row = (x1 - x0) & -32, np.int32(0)
            if wide:
                total += _row_sad(here, v * width + x0, there, (v + y) * width + x0 + x, wide)
            for u in range(wide, x1 - x0):
                row += abs(np.int32(here[v, x0 + u]) - np.int32(there[v + y, x0 + x + u]))
            total += row
            if total >= most:
                break
        if total < most:
            best_x, best_y, least, area = x, y, total, common
    return best_x, best_y


@closed_kernel
def camera(coarse, camera):
    """Motion of the whole frame from the reference, coarsely (not part of the standard), for search_centre.

    coarse: the bundle, from subsample; camera (out): int16[2], coarse samples, a multiple of a macroblock's.
    """
    height, width = coarse.source.shape[0] // 4 - COARSE_PAD // 2, coarse.source.shape[1] // 4 - COARSE_PAD // 2
    tiny = np.empty((2, height, width), np.uint8)
    for my in range(height):
        for mx in range(width):
            tiny[0, my, mx] = mean_of_16(coarse.source, COARSE_PAD + 4 * mx, COARSE_PAD + 4 * my)
            tiny[1, my, mx] = mean_of_16(coarse.reference, COARSE_PAD + 4 * mx, COARSE_PAD + 4 * my)
    x, y = whole_motion(tiny[0], tiny[1])
    camera[0], camera[1] = x * (CAMERA_SCALE // COARSE_SCALE), y * (CAMERA_SCALE // COARSE_SCALE)


@closed_kernel
def search_centre(source, reference, pad, coarse, previous, qp, merange, max_mv_y, row0, row1, start):
    """Centre of the search window and predictor of the search for each macroblock (not part of the standard).

    source: uint8[H, W]; reference: uint8[H+2*pad, W+2*pad]; bundles: Coarse from subsample, PreviousMotion; qp: uint8[n_mb],
    QP_Y; max_mv_y: limit of vertical vectors in luma samples. [row0, row1): macroblock rows. Writes the SearchStart.

    The candidates are zero, the co-located vector of the previous frame, and the best vector of a search on the coarse
    frames around the motion of the whole frame, with its eight neighbours two samples away; the lowest SAD + lam * bits
    wins, on a tie the earlier candidate. The window, 3 samples more for interpolation, and every vector refined from it stay
    within the padded frame and the limits of the level.
    """
    height, width = source.shape
    mb_width = width // 16
    stride = reference.shape[1]
    previous_ref_idx, previous_mv, of_reference, distances, camera = previous
    distance = np.int64(of_reference[0])
    camera_x, camera_y = np.int64(camera[0]), np.int64(camera[1])
    centre, predictor = start
    coarse_source, coarse_reference = coarse
    reach = max(merange, SMALLEST_WINDOW) + 3
    cost, windows = aligned(8 * COARSE_Y * COARSE_X).view(np.uint16), aligned(COARSE_WINDOWS)
    cost_lam = np.int64(-1)  # lambda of `cost`
    for mb in range(row0 * mb_width, row1 * mb_width):
        mx, my = mb % mb_width, mb // mb_width
        x0, y0 = 16 * mx, 16 * my
        lam = LAMBDA[qp[mb]]
        if lam != cost_lam:
            vector_costs(lam, cost)
            cost_lam = lam
        low_x = max(-x0 - pad + reach, -2047 + merange)
        high_x = min(width + pad - x0 - 15 - reach, 2047 - merange)
        low_y = max(-y0 - pad + reach, min(0, merange + 1 - max_mv_y))
        high_y = min(height + pad - y0 - 15 - reach, max(0, max_mv_y - merange - 1))
        coarse_x, coarse_y = coarse_vector(coarse_source, coarse_reference, mx, my, cost, windows, camera_x, camera_y)
        coarse_x, coarse_y = camera_x + coarse_x, camera_y + coarse_y
        lowest = np.int64(1) << 40
        for n in range(11):
            if n == 0:
                x, y = 0, 0
            elif n == 1:
                if previous_ref_idx[mb, 0] < 0:
                    continue
                steps = np.int64(distances[previous_ref_idx[mb, 0]])
                if steps <= 0 or max(steps, abs(distance)) > MOST_DISTANCE:  # a vector to a later frame is not continued
                    continue
                x = (np.int64(previous_mv[mb, 0, 0]) * distance // steps + 2) >> 2
                y = (np.int64(previous_mv[mb, 0, 1]) * distance // steps + 2) >> 2
            else:
                x = COARSE_SCALE * coarse_x + 2 * ((n - 2) % 3 - 1)
                y = COARSE_SCALE * coarse_y + 2 * ((n - 2) // 3 - 1)
            x, y = clamp(x, low_x, high_x), clamp(y, low_y, high_y)
            value = lam * mvd_bits(4 * x, 4 * y, 0, 0)
            there = (y0 + y + pad) * stride + x0 + x + pad
            value += block_sad(source, y0 * width + x0, width, reference, there, stride, lowest - value)
            if value < lowest:
                lowest = value
                centre[mb, 0], centre[mb, 1] = x, y
                predictor[mb, 0], predictor[mb, 1] = 4 * x, 4 * y
