"""Intra prediction (8.3): predicted samples of every mode, in buffers of rows or blocks of sixteen samples."""
# Samples of 8 bits only: edges as bytes of a vector.

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ...standard.sample_format import SAMPLE_MIDDLE
from ..decisions.intra import MEAN, NEEDS_ALL, NEEDS_LEFT, NEEDS_TOP
from ..simd.blocks import join, splat_u8x16
from ..simd.lanes import lane_numbers, make_shuffle
from ..simd.vector import (
    add,
    average,
    clip_to_u8,
    load_u8x8,
    load_u8x16,
    mul,
    plus,
    shift_right_s,
    splat_u16x16,
    store,
    widen,
)

# Whether the macroblocks round one are available for prediction.
Around = namedtuple("Around", (
    "left",
    "top",
    "right",  # above right
    "corner",  # above left; beside an available left and top it is missing where a slice begins there
))  # fmt: skip

# Predicted samples of all modes; scratch.
Predictions = namedtuple("Predictions", (
    "samples",  # Sample[1024]
    "edge",  # Sample[EDGE_8x8], see predict_4x4 and predict_8x8
    "kept",  # uint8[KEPT], see keep_luma in intra_8x8.py
))  # fmt: skip

# --- Intra_4x4 --------------------------------------------------------------------------------------------------------
# Every sample of a directional mode is a rounded mean of two or a (1, 2, 1) filter of three consecutive edge samples.
# Order of the edge: 0 = copy of sample 1, 1..4 = left column from bottom to top, 5 = corner, 6..13 = the row above and
# above right, 14 = copy of sample 13.
CORNER, TOP = 5, 6


def _place(mode: int, x: int, y: int) -> int:
    """8.3.1.2.4 - 8.3.1.2.9: index of the filtered sample or mean that Intra_4x4 mode 3..8 predicts at (x, y)."""
    if mode == 3:  # diagonal down left
        return TOP + 1 + x + y
    if mode == 4:  # diagonal down right
        return CORNER + x - y
    if mode == 5:  # vertical right
        if 2 * x - y < -1:
            return TOP - y
        if 2 * x - y == -1:
            return CORNER
        return (0 if y % 2 else MEAN) + CORNER + x - (y >> 1)
    if mode == 6:  # horizontal down
        if 2 * y - x < -1:
            return 4 + x
        if 2 * y - x == -1:
            return CORNER
        return 5 - (y - (x >> 1)) if x % 2 else MEAN + 4 - (y - (x >> 1))
    if mode == 7:  # vertical left
        return TOP + 1 + x + (y >> 1) if y % 2 else MEAN + TOP + x + (y >> 1)
    if x + 2 * y > 5:  # horizontal up; the filtered sample 0 is the lowest one of the left column
        return 0
    return (0 if x % 2 else MEAN) + 3 - (y + (x >> 1))


_vertical = make_shuffle([TOP + p % 4 for p in range(16)])
_horizontal = make_shuffle([4 - p // 4 for p in range(16)])
_3, _4, _5, _6, _7, _8 = (make_shuffle([_place(mode, p % 4, p // 4) for p in range(16)]) for mode in range(3, 9))


@helper
def predict_4x4(rec, x, y, left, top, corner, above_right, wanted, edge, out):
    """8.3.1.2: mode m of the 4x4 block at (x, y) -> out[16 * m...] (Sample[144]); returns a bit mask of the usable modes.

    wanted: bit mask of the modes to predict; edge Sample[32]: scratch, the edge from index 1 on. The output of other modes
    is undefined.
    """
    total = 0
    usable = 1 << 2
    if left:
        usable |= NEEDS_LEFT
        for i in range(4):
            edge[5 - i] = rec[y + i, x - 1]
            total += np.int64(edge[5 - i])
        edge[0] = edge[2]
        edge[1] = edge[2]
    if top:
        usable |= NEEDS_TOP
        for i in range(4):
            edge[7 + i] = rec[y - 1, x + i]
            total += np.int64(edge[7 + i])
        for i in range(4, 8):
            edge[7 + i] = rec[y - 1, x + i] if above_right else rec[y - 1, x + 3]
        edge[15] = edge[14]
        edge[16] = edge[14]
    if corner:
        usable |= NEEDS_ALL
        edge[6] = rec[y - 1, x - 1]
    if left and top:
        total = (total + 4) >> 3
    elif left or top:
        total = (total + 2) >> 2
    else:
        total = SAMPLE_MIDDLE
    samples, after = load_u8x16(edge, 1), load_u8x16(edge, 2)
    mean = average(samples, after)
    wide = widen(samples)
    wide = add(add(wide, wide), add(widen(load_u8x16(edge, 0)), widen(after)))
    filtered = clip_to_u8(shift_right_s(plus(wide, 2), 2))
    if wanted & 1 << 0:
        store(out, 0, _vertical(samples, samples))
    if wanted & 1 << 1:
        store(out, 16, _horizontal(samples, samples))
    if wanted & 1 << 2:
        store(out, 32, splat_u8x16(total))
    if wanted & 1 << 3:
        store(out, 48, _3(filtered, mean))
    if wanted & 1 << 4:
        store(out, 64, _4(filtered, mean))
    if wanted & 1 << 5:
        store(out, 80, _5(filtered, mean))
    if wanted & 1 << 6:
        store(out, 96, _6(filtered, mean))
    if wanted & 1 << 7:
        store(out, 112, _7(filtered, mean))
    if wanted & 1 << 8:
        store(out, 128, _8(filtered, mean))
    return usable


# --- Intra_16x16 ------------------------------------------------------------------------------------------------------
@helper
def _gradients(rec, x0, y0, half):
    """H and V of the plane prediction of a block of 2 * half samples a side (8.3.3.4, 8.3.4.4)."""
    h, v = 0, 0
    for i in range(half):
        h += (i + 1) * (np.int64(rec[y0 - 1, x0 + half + i]) - np.int64(rec[y0 - 1, x0 + half - 2 - i]))
        v += (i + 1) * (np.int64(rec[y0 + half + i, x0 - 1]) - np.int64(rec[y0 + half - 2 - i, x0 - 1]))
    return h, v


@helper
def _mean(rec, x, y, n, left, top, n_left):
    """The rounded mean of n samples above (x, y) if `top` and of n_left samples to the left if `left`, or SAMPLE_MIDDLE."""
    total, count = 0, 0
    if top:
        count += n
        for i in range(n):
            total += np.int64(rec[y - 1, x + i])
    if left:
        count += n_left
        for i in range(n_left):
            total += np.int64(rec[y + i, x - 1])
    return (total + (count >> 1)) // count if count else SAMPLE_MIDDLE


@helper
def predict_16x16(rec, x0, y0, left, top, wanted, out):
    """8.3.3.1 - 8.3.3.4: Intra_16x16 mode m of the macroblock at (x0, y0) -> out[256 * m...] (Sample[1024]).

    wanted: bit mask of the modes to predict; all must be usable.
    """
    if wanted & 1 << 2:
        dc = splat_u8x16(_mean(rec, x0, y0, 16, left, top, 16))
        for i in range(0, 256, 16):
            store(out, 512 + i, dc)
    if wanted & 1 << 0:
        above = load_u8x16(rec, (y0 - 1) * rec.shape[1] + x0)
        for i in range(0, 256, 16):
            store(out, i, above)
    if wanted & 1 << 1:
        for i in range(16):
            store(out, 256 + 16 * i, splat_u8x16(np.int64(rec[y0 + i, x0 - 1])))
    if wanted & 1 << 3:
        h, v = _gradients(rec, x0, y0, 8)
        b, c = (5 * h + 32) >> 6, (5 * v + 32) >> 6
        a = 16 * (np.int64(rec[y0 + 15, x0 - 1]) + np.int64(rec[y0 - 1, x0 + 15])) + 16
        slope = mul(splat_u16x16(b), lane_numbers())
        for i in range(16):  # within 16 bits: |b|, |c| <= 717
            row = add(slope, splat_u16x16(a - 7 * b + c * (i - 7)))
            store(out, 768 + 16 * i, clip_to_u8(shift_right_s(row, 5)))


_halves = make_shuffle([*range(8), *range(16, 24)])  # the first eight lanes of each operand


# --- chroma -----------------------------------------------------------------------------------------------------------
@helper
def _chroma_dc(rec, x0, y0, left, top, out, at):
    """8.3.4.1 - 8.3.4.3: DC prediction of one plane's four blocks, each from its own neighbours; out[at...]."""
    for k in range(4):
        bx, by = k & 1, k >> 1
        # Off the diagonal one neighbour is preferred: the row above for block 1, the left column for block 2.
        use_top = top and not (k == 2 and left)
        use_left = left and not (k == 1 and top)
        total = 0
        if use_top:
            for i in range(4):
                total += np.int64(rec[y0 - 1, x0 + 4 * bx + i])
        if use_left:
            for i in range(4):
                total += np.int64(rec[y0 + 4 * by + i, x0 - 1])
        if use_left and use_top:
            total = (total + 4) >> 3
        elif use_left or use_top:
            total = (total + 2) >> 2
        else:
            total = SAMPLE_MIDDLE
        for i in range(4):
            for j in range(4):
                out[at + 64 * by + 16 * i + 4 * bx + j] = total


@helper
def _chroma_plane(rec, x0, y0):
    """8.3.4.4: value at the block's first sample (with rounding) and the gradients to the right and down, times 32."""
    h, v = _gradients(rec, x0, y0, 4)
    b, c = (34 * h + 32) >> 6, (34 * v + 32) >> 6
    a = 16 * (np.int64(rec[y0 + 7, x0 - 1]) + np.int64(rec[y0 - 1, x0 + 7])) + 16
    return a - 3 * b - 3 * c, b, c


@helper
def predict_chroma(rec_u, rec_v, x0, y0, left, top, out):
    """8.3.4: usable chroma mode m of the macroblock at chroma (x0, y0) -> out[128 * m...] (Sample[512]), rows Cb, Cr."""
    _chroma_dc(rec_u, x0, y0, left, top, out, 0)
    _chroma_dc(rec_v, x0, y0, left, top, out, 8)
    if left:
        for i in range(8):
            left_u, left_v = splat_u8x16(np.int64(rec_u[y0 + i, x0 - 1])), splat_u8x16(np.int64(rec_v[y0 + i, x0 - 1]))
            store(out, 128 + 16 * i, _halves(left_u, left_v))
    if top:
        at = (y0 - 1) * rec_u.shape[1] + x0
        above = join(load_u8x8(rec_u, at), load_u8x8(rec_v, at))
        for i in range(8):
            store(out, 256 + 16 * i, above)
    if left and top:
        a0, b0, c0 = _chroma_plane(rec_u, x0, y0)
        a1, b1, c1 = _chroma_plane(rec_v, x0, y0)
        lanes = lane_numbers()
        slope_u, slope_v = mul(lanes, splat_u16x16(b0)), mul(lanes, splat_u16x16(b1))
        for i in range(8):
            row_u = clip_to_u8(shift_right_s(add(slope_u, splat_u16x16(a0 + c0 * i)), 5))
            row_v = clip_to_u8(shift_right_s(add(slope_v, splat_u16x16(a1 + c1 * i)), 5))
            store(out, 384 + 16 * i, _halves(row_u, row_v))
