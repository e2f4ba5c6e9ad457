"""Costs of the macroblocks of source frames in half size: from earlier frames, later ones, both, and by intra prediction.

Not part of the standard. A macroblock is a block of 8x8 samples of half-size planes (half_size.py). Vectors are in source
samples, which are half samples there. Costs are SATD + bits: a lambda of 1.
"""
# Samples of 8 bits only: 64 samples a vector.

import numpy as np

from ...jit.kernel import closed_kernel, helper, quick_kernel
from ...standard.sample_format import SAMPLE_MAX, Sample
from ..costs.bit_costs import mvd_bits
from ..costs.block_costs import Layers, fill_8x8_layers, satds_8x8
from ..costs.cost import strip_satd
from ..decisions.lookahead import CAMERA_SCALE, LOOK_BLOCK, LOOK_INTRA, LOOK_PAD, LOOK_STILL, LOOK_VECTOR, NO_BITS
from ..decisions.search import COARSE_SCALE
from ..inter.mv_prediction import median
from ..intra.intra_prediction_8x8 import EDGE_8x8, predict_8x8
from ..search.coarse_search import VECTORS, coarse_vector, make_quads, vector_costs
from ..search.search_centre import MEANS_SLACK, clamp, whole_motion
from ..search.subpel_refine import NEIGHBOURS
from ..simd.blocks import join, splat_i32x16
from ..simd.lanes import equal_lanes, sum_of_lanes, where_bits
from ..simd.vector import aligned, average, load_u8x8, sub, widen

# In the order in which they are tried; in a quick search _BESIDE a vector, and the vectors of the macroblocks _BEFORE
_AROUND = NEIGHBOURS[1:].copy()
_BESIDE, _BEFORE = NEIGHBOURS[[2, 4, 5, 7]], NEIGHBOURS[[2, 4]]
_DIRECT_SHIFT = 8  # of the position of a B frame between two others
# motion of a macroblock of a B frame: none from both, that of the later frame's macroblock, the vectors of both searches;
# from one frame alone
LOOK_BOTH_STILL, LOOK_BOTH_DIRECT, LOOK_BOTH_FOUND, LOOK_LIST_0, LOOK_LIST_1 = range(5)


@helper
def _pair(samples, at, distance):
    """Row of eight samples at `at` and that `distance` further: half a row of four 4x4 blocks each."""
    return join(load_u8x8(samples, at), load_u8x8(samples, at + distance))


@helper
def _block(samples, at, stride):
    """The 8x8 samples at samples[at]: rows 0 to 3, each with the row four below it."""
    return (
        widen(_pair(samples, at, 4 * stride)),
        widen(_pair(samples, at + stride, 4 * stride)),
        widen(_pair(samples, at + 2 * stride, 4 * stride)),
        widen(_pair(samples, at + 3 * stride, 4 * stride)),
    )


@helper
def _satd(current, samples, at, stride):
    """SATD of a block of _block against the 8x8 samples at samples[at]."""
    rows = _block(samples, at, stride)
    d0, d1, d2, d3 = sub(rows[0], current[0]), sub(rows[1], current[1]), sub(rows[2], current[2]), sub(rows[3], current[3])
    return sum_of_lanes(strip_satd(d0, d1, d2, d3))


@helper
def _mean(a, at_a, b, at_b, distance):
    """widen(_pair) of the mean of two predictions."""
    return widen(average(_pair(a, at_a, distance), _pair(b, at_b, distance)))


@helper
def _satd_of_mean(current, a, at_a, b, at_b, stride):
    """_satd against the rounded mean of two blocks."""
    d0 = sub(_mean(a, at_a, b, at_b, 4 * stride), current[0])
    d1 = sub(_mean(a, at_a + stride, b, at_b + stride, 4 * stride), current[1])
    d2 = sub(_mean(a, at_a + 2 * stride, b, at_b + 2 * stride, 4 * stride), current[2])
    d3 = sub(_mean(a, at_a + 3 * stride, b, at_b + 3 * stride, 4 * stride), current[3])
    return sum_of_lanes(strip_satd(d0, d1, d2, d3))


@helper
def _moved(origin, x, y, plane_size, stride):
    """Offset of the block at `origin` of plane G, moved by (x, y) source samples."""
    return origin + ((y & 1) * 2 + (x & 1)) * plane_size + (y >> 1) * stride + (x >> 1)


@helper
def _satds_around(layers, samples, origin, x, y, around, k, plane_size, stride, sums):
    """satds_8x8 for around[k] ... around[k + 3], two source samples from (x, y) each -> sums."""
    a = _moved(origin, x + 2 * around[k, 0], y + 2 * around[k, 1], plane_size, stride)
    b = _moved(origin, x + 2 * around[k + 1, 0], y + 2 * around[k + 1, 1], plane_size, stride)
    c = _moved(origin, x + 2 * around[k + 2, 0], y + 2 * around[k + 2, 1], plane_size, stride)
    d = _moved(origin, x + 2 * around[k + 3, 0], y + 2 * around[k + 3, 1], plane_size, stride)
    satds_8x8(layers, samples, a, b, c, d, stride, sums)


@helper
def _satds_of_tried(layers, samples, origin, tried, first, n, plane_size, stride, sums):
    """satds_8x8 for the vectors tried[first] ... tried[first + 3], of n -> sums."""
    i, j, k = min(first + 1, n - 1), min(first + 2, n - 1), min(first + 3, n - 1)
    a = _moved(origin, tried[first, 0], tried[first, 1], plane_size, stride)
    b = _moved(origin, tried[i, 0], tried[i, 1], plane_size, stride)
    c = _moved(origin, tried[j, 0], tried[j, 1], plane_size, stride)
    satds_8x8(layers, samples, a, b, c, _moved(origin, tried[k, 0], tried[k, 1], plane_size, stride), stride, sums)


@helper
def _inside(x, y, mx, my, mb_width, mb_height):
    """Whether macroblock (mx, my) moved by (x, y) source samples stays within the borders of the reference."""
    left, top = 8 * mx + (x >> 1), 8 * my + (y >> 1)
    return (
        left >= -LOOK_PAD and left + 8 <= 8 * mb_width + LOOK_PAD and top >= -LOOK_PAD and top + 8 <= 8 * mb_height + LOOK_PAD
    )


@closed_kernel
def lookahead_camera(current, reference, camera):
    """Motion of the whole frame, coarsely -> camera: int16[2], in samples of quarter-size frames.

    current, reference: HalfSize. The least mean difference of what both frames have in common, which is at least half the
    width and height; the first on a tie, rows from above, with no motion before all.
    """
    height, width = current.tiny.shape
    means = np.empty((2, height * width + MEANS_SLACK), Sample)
    for my in range(height):
        for mx in range(width):
            means[0, my * width + mx], means[1, my * width + mx] = current.tiny[my, mx], reference.tiny[my, mx]
    best_x, best_y = whole_motion(means[0], means[1], height, width)
    camera[0], camera[1] = best_x * (CAMERA_SCALE // COARSE_SCALE), best_y * (CAMERA_SCALE // COARSE_SCALE)


@closed_kernel
def lookahead_search(current, reference, camera, row0, row1, vector, quick=False):
    """First round for macroblock rows [row0, row1), from whole samples; all macroblocks at once.

    current, reference: HalfSize; camera: of lookahead_camera; vector (out): int16[n_mb, 2], source samples. Candidates are
    0, the best vector around that of the camera by SAD of quarter-size frames, then a half-size sample around the better one:
    the least SATD + bits against 0, the first on a tie. quick: only four around it.
    """
    around = _BESIDE if quick else _AROUND
    planes, others = current.planes, reference.planes
    stride, plane_size = planes.shape[2], planes.shape[1] * planes.shape[2]
    mb_height, mb_width = current.tiny.shape
    cost = aligned(2 * VECTORS).view(np.uint16)
    quads = make_quads(mb_width)
    vector_costs(1, cost)
    layers, sums = Layers(aligned(0), aligned(512).view(np.int16)), np.empty(16, np.int32)
    for mb in range(row0 * mb_width, row1 * mb_width):
        mx, my = mb % mb_width, mb // mb_width
        origin = (LOOK_PAD + 8 * my) * stride + LOOK_PAD + 8 * mx
        block = _block(planes, origin, stride)
        best_x, best_y, least = np.int64(0), np.int64(0), np.int64(_satd(block, others, origin, stride))
        if least >= LOOK_STILL:
            least += NO_BITS
            # the macroblock stays within the frame there, so that the search stays within the borders
            cx, cy = clamp(camera[0], -4 * mx, 4 * (mb_width - 1 - mx)), clamp(camera[1], -4 * my, 4 * (mb_height - 1 - my))
            x, y = coarse_vector(current.coarse, reference.coarse, mx, my, cost, quads, cx, cy)
            x, y = COARSE_SCALE * (cx + x), COARSE_SCALE * (cy + y)
            if x != 0 or y != 0:
                value = _satd(block, others, _moved(origin, x, y, plane_size, stride), stride) + mvd_bits(2 * x, 2 * y, 0, 0)
                if value < least:
                    best_x, best_y, least = x, y, value
            centre_x, centre_y = best_x, best_y
            fill_8x8_layers(planes, origin, stride, layers)
            for k in range(around.shape[0]):
                x, y = centre_x + 2 * around[k, 0], centre_y + 2 * around[k, 1]
                if k & 3 == 0:
                    _satds_around(layers, others, origin, centre_x, centre_y, around, k, plane_size, stride, sums)
                value = np.int64(sums[4 * (k & 3)]) + mvd_bits(2 * x, 2 * y, 0, 0)
                if value < least:
                    best_x, best_y, least = x, y, value
        vector[mb, 0], vector[mb, 1] = best_x, best_y


@helper
def _predictor(mb, mx, mb_width, vector):
    """8.4.1.3.1 with the first round's vectors to the left, above, above right; 0 where there is none."""
    zero = np.int64(0), np.int64(0)
    a = (np.int64(vector[mb - 1, 0]), np.int64(vector[mb - 1, 1])) if mx > 0 else zero
    if mb < mb_width:
        return a
    b = np.int64(vector[mb - mb_width, 0]), np.int64(vector[mb - mb_width, 1])
    c = zero
    if mx < mb_width - 1:
        c = np.int64(vector[mb - mb_width + 1, 0]), np.int64(vector[mb - mb_width + 1, 1])
    return median(a[0], b[0], c[0]), median(a[1], b[1], c[1])


@helper
def _add(x, y, seen, tried, n):
    """Stores (x, y) as tried[n] if it is not among those before: (seen, how many there are). seen: those before, as lanes."""
    key = splat_i32x16(y << 16 | x & 0xFFFF)
    is_new = equal_lanes(seen, key) & (1 << n) - 1 == 0
    tried[n, 0], tried[n, 1] = x, y  # without a branch, which nothing predicts
    return where_bits(1 << n, key, seen), n + is_new


@helper
def _collect(mb, mx, my, mb_width, mb_height, vector, neighbours, tried):
    """0, the macroblock's own vector and those of its neighbours, different ones -> tried; how many."""
    seen, n = _add(0, 0, splat_i32x16(0), tried, 0)
    seen, n = _add(np.int64(vector[mb, 0]), np.int64(vector[mb, 1]), seen, tried, n)
    for k in range(neighbours.shape[0]):
        dx, dy = neighbours[k, 0], neighbours[k, 1]
        if 0 <= mx + dx < mb_width and 0 <= my + dy < mb_height:
            other = mb + dy * mb_width + dx
            x, y = np.int64(vector[other, 0]), np.int64(vector[other, 1])
            if _inside(x, y, mx, my, mb_width, mb_height):
                seen, n = _add(x, y, seen, tried, n)
    return n


@closed_kernel
def lookahead_refine(current, reference, vector, row0, row1, mv, cost, quick=False):
    """Second round for macroblock rows [row0, row1), down to half samples; all macroblocks at once.

    vector: int16[n_mb, 2], of lookahead_search for all rows. Out: mv int16[n_mb, 2], source samples; cost uint16[n_mb], SATD
    + bits against the predictor of the first round's vectors. Candidates are 0, the own vector, those of the neighbours in
    raster order, then a source sample around the best: the least cost, the first on a tie. quick: the neighbours
    above and to the left alone, and four source samples around.
    """
    neighbours, around = (_BEFORE, _BESIDE) if quick else (_AROUND, _AROUND)
    planes, others = current.planes, reference.planes
    stride, plane_size = planes.shape[2], planes.shape[1] * planes.shape[2]
    mb_height, mb_width = current.tiny.shape
    tried = np.empty((11, 2), np.int64)  # one more than there are is written to
    layers, sums = Layers(aligned(0), aligned(512).view(np.int16)), np.empty(16, np.int32)
    for mb in range(row0 * mb_width, row1 * mb_width):
        mx, my = mb % mb_width, mb // mb_width
        origin = (LOOK_PAD + 8 * my) * stride + LOOK_PAD + 8 * mx
        best_x, best_y, least = np.int64(0), np.int64(0), np.int64(1 << 20)
        if vector[mb, 0] == 0 and vector[mb, 1] == 0:
            still = np.int64(_satd(_block(planes, origin, stride), others, origin, stride))
            if still < LOOK_STILL:
                least = still
        if least >= LOOK_STILL:
            px, py = _predictor(mb, mx, mb_width, vector)
            count = _collect(mb, mx, my, mb_width, mb_height, vector, neighbours, tried)
            fill_8x8_layers(planes, origin, stride, layers)
            for n in range(count):
                x, y = tried[n, 0], tried[n, 1]
                if n & 3 == 0:
                    _satds_of_tried(layers, others, origin, tried, n, count, plane_size, stride, sums)
                value = np.int64(sums[4 * (n & 3)]) + mvd_bits(2 * x, 2 * y, 2 * px, 2 * py)
                if value < least:
                    best_x, best_y, least = x, y, value
            count = 0
            for k in range(around.shape[0]):
                x, y = best_x + around[k, 0], best_y + around[k, 1]
                if _inside(x, y, mx, my, mb_width, mb_height):
                    tried[count, 0], tried[count, 1], count = x, y, count + 1
            for n in range(count):
                x, y = tried[n, 0], tried[n, 1]
                if n & 3 == 0:
                    _satds_of_tried(layers, others, origin, tried, n, count, plane_size, stride, sums)
                value = np.int64(sums[4 * (n & 3)]) + mvd_bits(2 * x, 2 * y, 2 * px, 2 * py)
                if value < least:
                    best_x, best_y, least = x, y, value
            least += (LOOK_VECTOR if best_x != 0 or best_y != 0 else 0) - NO_BITS
        mv[mb, 0], mv[mb, 1] = best_x, best_y
        cost[mb] = least + LOOK_BLOCK


@helper
def _predict_plane(plane, x, y, out, to):
    """8.3.4.4 for the 8x8 block at (x, y) -> out[to...], rows of eight."""
    across, down = np.int64(0), np.int64(0)
    for k in range(4):
        across += (k + 1) * (np.int64(plane[y - 1, x + 4 + k]) - np.int64(plane[y - 1, x + 2 - k]))
        down += (k + 1) * (np.int64(plane[y + 4 + k, x - 1]) - np.int64(plane[y + 2 - k, x - 1]))
    a = 16 * (np.int64(plane[y + 7, x - 1]) + np.int64(plane[y - 1, x + 7]))
    b, c = (34 * across + 32) >> 6, (34 * down + 32) >> 6
    for v in range(8):
        for u in range(8):
            out[to + 8 * v + u] = min(SAMPLE_MAX, max(0, (a + b * (u - 3) + c * (v - 3) + 16) >> 5))


@closed_kernel
def lookahead_intra(current, row0, row1, cost):
    """Cost of macroblock rows [row0, row1) by intra prediction from source samples -> cost: uint16[n_mb].

    current: HalfSize. The least SATD of the modes of 8.3.2.2, all of whose neighbours count as available, and of 8.3.4.4.
    """
    plane = current.planes[0]
    stride = plane.shape[1]
    mb_width = current.tiny.shape[1]
    edge, out = np.empty(EDGE_8x8, Sample), np.empty(640, Sample)
    layers, sums = Layers(aligned(0), aligned(512).view(np.int16)), np.empty(16, np.int32)
    for mb in range(row0 * mb_width, row1 * mb_width):
        x, y = LOOK_PAD + 8 * (mb % mb_width), LOOK_PAD + 8 * (mb // mb_width)
        fill_8x8_layers(plane, y * stride + x, stride, layers)
        predict_8x8(plane, x, y, True, True, True, 511, edge, out)
        _predict_plane(plane, x, y, out, 576)
        least = np.int32(1 << 20)
        for mode in range(0, 640, 256):
            last = min(mode + 192, 576)
            satds_8x8(layers, out, mode, mode + 64, min(mode + 128, last), last, 8, sums)
            least = min(min(least, min(sums[0], sums[4])), min(sums[8], sums[12]))
        cost[mb] = least + LOOK_INTRA + LOOK_BLOCK


@helper
def _both(frames, position, motions, mb):
    """Cost of macroblock mb of a B frame, and by which motion: one of the LOOK_* below, the first on a tie. Arguments as of
    lookahead_both.
    """
    current, earlier, later = frames
    (mv0, cost0), (mv1, cost1), (direct, _) = motions
    planes, before, after = current.planes, earlier.planes, later.planes
    stride, plane_size = planes.shape[2], planes.shape[1] * planes.shape[2]
    mb_height, mb_width = current.tiny.shape
    mx, my = mb % mb_width, mb // mb_width
    origin = (LOOK_PAD + 8 * my) * stride + LOOK_PAD + 8 * mx
    block = _block(planes, origin, stride)
    least, pred_mode = np.int64(_satd_of_mean(block, before, origin, after, origin, stride)), LOOK_BOTH_STILL
    dx, dy = np.int64(direct[mb, 0]), np.int64(direct[mb, 1])
    if dx != 0 or dy != 0:
        x, y = scaled_direct(dx, position), scaled_direct(dy, position)
        if _inside(x - dx, y - dy, mx, my, mb_width, mb_height):  # the other one ends between here and a place inside
            at_0 = _moved(origin, x, y, plane_size, stride)
            at_1 = _moved(origin, x - dx, y - dy, plane_size, stride)
            value = np.int64(_satd_of_mean(block, before, at_0, after, at_1, stride))
            if value < least:
                least, pred_mode = value, LOOK_BOTH_DIRECT
    x0, y0, x1, y1 = np.int64(mv0[mb, 0]), np.int64(mv0[mb, 1]), np.int64(mv1[mb, 0]), np.int64(mv1[mb, 1])
    if x0 != 0 or y0 != 0 or x1 != 0 or y1 != 0:
        at_0, at_1 = _moved(origin, x0, y0, plane_size, stride), _moved(origin, x1, y1, plane_size, stride)
        value = np.int64(_satd_of_mean(block, before, at_0, after, at_1, stride)) + LOOK_VECTOR
        if value < least:
            least, pred_mode = value, LOOK_BOTH_FOUND
    least += LOOK_BLOCK
    if np.int64(cost0[mb]) < least:
        least, pred_mode = np.int64(cost0[mb]), LOOK_LIST_0
    if np.int64(cost1[mb]) < least:
        least, pred_mode = np.int64(cost1[mb]), LOOK_LIST_1
    return least, pred_mode


@helper
def scaled_direct(d, position):
    """The part of a vector's component from the later frame to the earlier one that leads to a B frame between them."""
    return (d * position + (1 << (_DIRECT_SHIFT - 1))) >> _DIRECT_SHIFT


@closed_kernel
def lookahead_both(frames, position, motions, row0, row1, cost):
    """Cost of macroblock rows [row0, row1) of a B frame between two frames -> cost: uint16[n_mb].

    frames: HalfSize of the B frame, of the earlier, of the later frame; position: int, distance from the earlier frame to the
    B frame over that to the later one, in 1 / 256; motions: of the B frame from the earlier one, from the later one, of the
    later frame from the earlier one, each (mv, cost) of lookahead_refine. The least of no motion; of the vectors of the later
    frame's macroblock, scaled; of each list; of both lists.
    """
    mb_width = frames[0].tiny.shape[1]
    for mb in range(row0 * mb_width, row1 * mb_width):
        cost[mb] = _both(frames, position, motions, mb)[0]


@closed_kernel
def lookahead_used(frames, position, motions, row0, row1, cost, vectors, lists):
    """As lookahead_both, and the motion with this cost -> vectors: int16[n_mb, 4], (x, y) from the earlier and from the later
    frame, source samples; lists: uint8[n_mb], 1 for the earlier frame, 2 for the later one, 3 for both.
    """
    mb_width = frames[0].tiny.shape[1]
    mv0, mv1, direct = motions[0][0], motions[1][0], motions[2][0]
    for mb in range(row0 * mb_width, row1 * mb_width):
        cost[mb], pred_mode = _both(frames, position, motions, mb)
        lists[mb] = 1 if pred_mode == LOOK_LIST_0 else 2 if pred_mode == LOOK_LIST_1 else 3
        for i in range(2):
            first, second = np.int64(mv0[mb, i]), np.int64(mv1[mb, i])
            if pred_mode == LOOK_BOTH_STILL:
                first, second = np.int64(0), np.int64(0)
            elif pred_mode == LOOK_BOTH_DIRECT:
                first = scaled_direct(np.int64(direct[mb, i]), position)
                second = first - np.int64(direct[mb, i])
            vectors[mb, i], vectors[mb, 2 + i] = first, second


@quick_kernel
def sum_inside(costs, others, mb_width):
    """Sum of the lesser of two costs of each macroblock, uint16[n_mb]; without those at the border, if there are others."""
    mb_height = costs.size // mb_width
    border, total = 1 if mb_width > 2 and mb_height > 2 else 0, np.int64(0)
    for y in range(border, mb_height - border):
        for mb in range(y * mb_width + border, (y + 1) * mb_width - border):
            total += min(np.int64(costs[mb]), np.int64(others[mb]))
    return total
