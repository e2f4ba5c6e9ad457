"""Spatial direct prediction of B macroblocks and sub-macroblocks (8.4.1.2.2): motion from the neighbours, and luma."""
# Samples of 8 bits only: 64 samples a vector, weighted in 16 bits.

import numpy as np

from ...jit.kernel import helper
from ..costs.cost import strip_16
from ..layout import AVERAGE
from ..simd.blocks import low_8
from ..simd.lanes import sums_of_4
from ..simd.vector import add, average, clip_to_u8, load_u8x16, mul, plus, shift_right_s, splat_u16x16, store, widen
from .mv_cache import fill_mv_cache, predict


@helper
def min_positive(a, b):
    """8.4.1.2.2: MinPositive."""
    return min(a, b) if a >= 0 and b >= 0 else max(a, b)


@helper
def direct_reference(mv_cache):
    """8.4.1.2.2: refIdx of a list from the neighbours A, B, C of the macroblock in `mv_cache`; negative: none has one."""
    c = mv_cache[0, 5, 0]
    if c == -2:
        c = mv_cache[0, 0, 0]
    return min_positive(mv_cache[1, 0, 0], min_positive(mv_cache[0, 1, 0], c))


@helper
def direct_motion(mv_caches, still, direct):
    """8.4.1.2.2: motion of the direct quadrants of a macroblock.

    mv_caches: of both lists, loaded by load_mv_cache; still: colZeroFlag of the quadrants, a bit each. Writes direct:
    int64[2, 4], a row for each list: reference index or -1, vector (x, y) in quarter samples, the quadrants whose vector is
    zero instead, a bit each.
    """
    for k in range(2):
        ref = direct_reference(mv_caches[k])
        direct[k, 0], direct[k, 1], direct[k, 2], direct[k, 3] = max(ref, -1), 0, 0, 0
        if ref >= 0:
            direct[k, 1], direct[k, 2] = predict(mv_caches[k], 0, 0, 4, 4, ref)
        if ref == 0 and (direct[k, 1] != 0 or direct[k, 2] != 0):
            direct[k, 3] = still
    if direct[0, 0] < 0 and direct[1, 0] < 0:
        direct[0, 0], direct[1, 0] = 0, 0


@helper
def put_direct(mv_caches, q, direct):
    """Stores the motion of direct quadrant q in the mv_caches of both lists."""
    for k in range(2):
        zero = direct[k, 3] >> q & 1
        x, y = (0, 0) if zero else (direct[k, 1], direct[k, 2])
        fill_mv_cache(mv_caches[k], 2 * (q & 1), q & 2, 2, 2, direct[k, 0], x, y)


@helper
def _offsets_of(luma, slot, pad, x, y, size, vector, offsets):
    """Offsets of the two samples of luma whose average predicts the first sample of a block of size x size at (x, y).

    A block beyond the border reads the outermost border samples, as predict_inter does. vector: (x, y).
    """
    height, width = luma.shape[2], luma.shape[3]
    vx, vy = vector
    x0 = min(width - 17, max(0, x + pad + (vx >> 2)))
    y0 = min(height - size - 1, max(0, y + pad + (vy >> 2)))
    at = (4 * slot * height + y0) * width + x0
    f = (vy & 3) * 4 + (vx & 3)
    return at + offsets[0, f], at + offsets[1, f]


@helper
def _store_row(out, at, row, size):
    """Stores the first `size` (16 or 8) samples of a row."""
    if size == 16:
        store(out, at, row)
    else:
        store(out, at, low_8(row))


@helper
def _predict_block(references, direct, q, x, y, size, offsets, out):
    """8.4.2: direct luma of the block at frame position (x, y), of quadrant q where size is 8; -> out."""
    luma, slots, pad = references.luma, references.slots, references.pad
    stride, at = luma.shape[3], 128 * (q >> 1) + 8 * (q & 1)
    ref0, ref1 = direct[0, 0], direct[1, 0]
    v0 = (np.int64(0), np.int64(0)) if direct[0, 3] >> q & 1 else (direct[0, 1], direct[0, 2])
    v1 = (np.int64(0), np.int64(0)) if direct[1, 3] >> q & 1 else (direct[1, 1], direct[1, 2])
    if ref0 < 0 or ref1 < 0:
        slot, v = (np.int64(slots[references.n_ref + ref1]), v1) if ref0 < 0 else (np.int64(slots[ref0]), v0)
        a, b = _offsets_of(luma, slot, pad, x, y, size, v, offsets)
        for row in range(size):
            _store_row(out, at + 16 * row, average(load_u8x16(luma, a), load_u8x16(luma, b)), size)
            a, b = a + stride, b + stride
        return
    a, b = _offsets_of(luma, np.int64(slots[ref0]), pad, x, y, size, v0, offsets)
    c, d = _offsets_of(luma, np.int64(slots[references.n_ref + ref1]), pad, x, y, size, v1, offsets)
    weight = np.int64(references.bi_weights[ref0 * references.n_ref1 + ref1])
    if weight == AVERAGE:
        for row in range(size):
            first = average(load_u8x16(luma, a), load_u8x16(luma, b))
            second = average(load_u8x16(luma, c), load_u8x16(luma, d))
            _store_row(out, at + 16 * row, average(first, second), size)
            a, b, c, d = a + stride, b + stride, c + stride, d + stride
        return
    w0, w1 = splat_u16x16(64 - weight), splat_u16x16(weight)
    for row in range(size):
        first = widen(average(load_u8x16(luma, a), load_u8x16(luma, b)))
        second = widen(average(load_u8x16(luma, c), load_u8x16(luma, d)))
        total = add(mul(first, w0), mul(second, w1))  # at most 128 * 255: weights are -64..128
        _store_row(out, at + 16 * row, clip_to_u8(shift_right_s(plus(total, 32), 6)), size)
        a, b, c, d = a + stride, b + stride, c + stride, d + stride


@helper
def predict_direct(references, direct, x0, y0, offsets, out):
    """8.4.2: luma of the macroblock at (x0, y0) by direct prediction -> out: Sample[1, 1, 16, 16].

    direct: of direct_motion; offsets: int64[2, 16] of quarter_offsets.
    """
    zero0, zero1 = direct[0, 3], direct[1, 3]
    if (zero0 == 0 or zero0 == 15) and (zero1 == 0 or zero1 == 15):
        _predict_block(references, direct, 0, x0, y0, 16, offsets, out)
    else:
        for q in range(4):
            _predict_block(references, direct, q, x0 + 8 * (q & 1), y0 + 4 * (q & 2), 8, offsets, out)


@helper
def quadrant_distortions(current, predicted, metric, distortion):
    """SAD or SATD of the quadrants of a macroblock -> distortion: int64[4].

    current: int16[256], its luma; predicted: Sample[1, 1, 16, 16].
    """
    for half in range(2):
        left = right = 0
        for strip in range(2 * half, 2 * half + 2):
            s0, s1, s2, s3 = sums_of_4(strip_16(current, strip, predicted, 64 * strip, 64 * strip, 16, metric))
            left, right = left + s0 + s1, right + s2 + s3
        distortion[2 * half], distortion[2 * half + 1] = left, right
