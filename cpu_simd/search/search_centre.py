"""Centre of each macroblock's search window, from data available before the frame is coded."""
# Samples of 8 bits only: differences of bytes.

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import Sample
from ..costs.bit_costs import mvd_bits
from ..costs.block_costs import load_layers, octets_of
from ..decisions.common import LAMBDA
from ..decisions.lookahead import CAMERA_SCALE, CAMERA_X, CAMERA_Y
from ..decisions.search import COARSE_SCALE, MOST_DISTANCE, SMALLEST_WINDOW
from ..layout import COARSE_PAD
from ..simd.blocks import bit_and, narrow
from ..simd.lanes import sum_of_lanes, sums_of_lanes
from ..simd.search import octet_sads
from ..simd.vector import (
    add,
    aligned,
    load_u8x16,
    load_u8x32,
    plus,
    shift_right_s,
    splat_u64x4,
    store,
    widen,
)
from .coarse_search import VECTORS, coarse_vector, make_quads, vector_costs

MEANS_SLACK = 32  # samples that whole_motion may read behind a frame
_ROWS_AT_ONCE = 6  # of whole_motion, which then looks whether it has more than the best so far
_FIRST_LANES = np.array([255] * 32 + [0] * 32, np.uint8)  # masks of 0 to 32 lanes


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

    source: Sample[H, W]; reference: Sample[H+2*pad, W+2*pad]; [row0, row1): macroblock rows; coarse: the bundle.
    """
    return [
        (_subsample, (source, 0, 0, row0, row1, coarse.source)),
        (_subsample, (reference, pad, pad, row0, row1, coarse.reference)),
    ]


@helper
def macroblock_sad(block, reference, at, stride):
    """SAD of a macroblock (load_layers) and that at reference[at]: of all samples, since a branch takes longer."""
    inlined()
    return sum_of_lanes(octets_of(block, load_layers(reference, at, stride)))


@helper
def _cost_at(block, reference, origin, x, y, lam):
    """SAD of a macroblock at a vector in samples and lam * bits of the vector."""
    inlined()
    stride = reference.shape[1]
    return macroblock_sad(block, reference, origin + y * stride + x, stride) + lam * mvd_bits(4 * x, 4 * y, 0, 0)


@helper
def clamp(value, low, high):
    """value limited to [low, high]; low if low > high."""
    return max(low, min(high, value))


@helper
def whole_motion(here, there, height, width):
    """Motion between two frames of means, Sample[height * width + MEANS_SLACK]: the least mean difference of what both share.

    That is at least half the width and height; on a tie the first, rows from above, no motion before all. Returns (x, y).
    """
    range_x, range_y = min(CAMERA_X, width // 2), min(CAMERA_Y, height // 2)
    best_x, best_y, least, area = 0, 0, np.int64(0), np.int64(0)
    x = y = 0
    for n in range((2 * range_y + 1) * (2 * range_x + 1) + 1):
        x0, common = max(0, -x), (np.int64(height) - abs(y)) * (width - abs(x))
        wide = (width - abs(x) - 1) & -32
        of_rest = load_u8x32(_FIRST_LANES, 32 + wide - width + abs(x))
        total, v, end = np.int64(0), max(0, -y), min(height, height - y)
        while v < end and (n == 0 or total * area < least * common):
            sums = splat_u64x4(0)
            for row in range(v, min(v + _ROWS_AT_ONCE, end)):
                at, to = row * width + x0, (row + y) * width + x0 + x
                for u in range(0, wide, 32):
                    sums = add(sums, octet_sads(load_u8x32(here, at + u), load_u8x32(there, to + u)))
                a, b = load_u8x32(here, at + wide), load_u8x32(there, to + wide)
                sums = add(sums, octet_sads(bit_and(a, of_rest), bit_and(b, of_rest)))
            total, v = total + sum_of_lanes(sums), v + _ROWS_AT_ONCE
        if n == 0 or total * area < least * common:
            best_x, best_y, least, area = x, y, total, common
        x, y = (x + 1, y) if n else (-range_x, -range_y)
        if x > range_x:
            x, y = -range_x, y + 1
    return best_x, best_y


@closed_kernel
def camera(coarse, camera):
    """Motion of the whole frame from the reference, coarsely (not part of the standard), for search_centre.

    coarse: the bundle, from subsample; camera (out): int16[2], coarse samples, a multiple of a macroblock's.
    """
    height, width = coarse.source.shape[0] // 4 - COARSE_PAD // 2, coarse.source.shape[1] // 4 - COARSE_PAD // 2
    means = np.empty((2, height * width + MEANS_SLACK), Sample)
    for my in range(height):
        for mx in range(width):
            means[0, my * width + mx] = mean_of_16(coarse.source, COARSE_PAD + 4 * mx, COARSE_PAD + 4 * my)
            means[1, my * width + mx] = mean_of_16(coarse.reference, COARSE_PAD + 4 * mx, COARSE_PAD + 4 * my)
    x, y = whole_motion(means[0], means[1], height, width)
    camera[0], camera[1] = x * (CAMERA_SCALE // COARSE_SCALE), y * (CAMERA_SCALE // COARSE_SCALE)


@closed_kernel
def search_centre(source, reference, pad, coarse, previous, qp, merange, max_mv_y, row0, row1, start):
    """Centre of the search window and predictor of the search for each macroblock (not part of the standard).

    source: Sample[H, W]; reference: Sample[H+2*pad, W+2*pad]; bundles: Coarse from subsample, PreviousMotion; qp:
    uint8[n_mb], QP_Y; max_mv_y: limit of vertical vectors, luma samples; [row0, row1): macroblock rows. Writes SearchStart.

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
    cost = aligned(2 * VECTORS).view(np.uint16)
    quads = make_quads(mb_width)
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
        coarse_x, coarse_y = coarse_vector(coarse_source, coarse_reference, mx, my, cost, quads, camera_x, camera_y)
        coarse_x, coarse_y = camera_x + coarse_x, camera_y + coarse_y
        block = load_layers(source, y0 * width + x0, width)
        origin = (y0 + pad) * stride + x0 + pad
        best_x, best_y = clamp(0, low_x, high_x), clamp(0, low_y, high_y)
        lowest = _cost_at(block, reference, origin, best_x, best_y, lam)
        if previous_ref_idx[mb, 0] >= 0:
            steps = np.int64(distances[previous_ref_idx[mb, 0]])
            if 0 < steps and max(steps, abs(distance)) <= MOST_DISTANCE:  # a vector to a later frame is not continued
                x = clamp((np.int64(previous_mv[mb, 0, 0]) * distance // steps + 2) >> 2, low_x, high_x)
                y = clamp((np.int64(previous_mv[mb, 0, 1]) * distance // steps + 2) >> 2, low_y, high_y)
                value = _cost_at(block, reference, origin, x, y, lam)
                if value < lowest:
                    lowest, best_x, best_y = value, x, y
        for j in range(3):
            y = clamp(COARSE_SCALE * coarse_y + 2 * (j - 1), low_y, high_y)
            for i in range(3):
                x = clamp(COARSE_SCALE * coarse_x + 2 * (i - 1), low_x, high_x)
                value = _cost_at(block, reference, origin, x, y, lam)
                better = value < lowest
                lowest = value if better else lowest
                best_x, best_y = x if better else best_x, y if better else best_y
        centre[mb, 0], centre[mb, 1] = best_x, best_y
        predictor[mb, 0], predictor[mb, 1] = 4 * best_x, 4 * best_y
