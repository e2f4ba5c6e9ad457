"""8.4.2: inter prediction samples: fractional luma and chroma interpolation, and weighted prediction.

A block at work is flat, Sample[BLOCK]: rows of STRIDE or CHROMA_STRIDE samples, of which the first `width` count. Whole
rows are computed, what lies between them too: one loop over a block is what the compiler makes vectors of. Planes are
flat as well, those of all pictures in one array; positions in them are uint64, which spares the test for negative ones.
"""
# Samples of 8 bits only: six taps in 16 bits.

from typing import NamedTuple

import numpy as np

from ..jit.intrinsics import inlined, outlined
from ..jit.kernel import helper
from ..standard.macroblock import B_8x8, P_8x8
from ..standard.sample_format import SAMPLE_MAX
from .errors import E_NO_REFERENCE
from .layout import (
    P_CHROMA_DENOM,
    P_LUMA_DENOM,
    P_WEIGHTING,
    WEIGHT_DEFAULT,
    WEIGHT_EXPLICIT,
    WEIGHT_IMPLICIT,
    partition_size,
)
from .unaligned import copy8, copy16

STRIDE = 24  # 16 samples, and the margins of the 6-tap filter: 2 before, 3 behind
CHROMA_STRIDE = 16  # 8 samples, and one behind
BLOCK = 24 * STRIDE  # 21 rows, and what loops over whole rows read behind them
ORIGIN = 2 * STRIDE + 2  # of the block within its margins


# 8.4.2.2.2: weights of samples A, B, C, D by 8 * yFrac + xFrac. int16, so that vectors of 16 bits come of them.
CHROMA_WEIGHTS = np.array(
    [((8 - x) * (8 - y), x * (8 - y), (8 - x) * y, x * y) for y in range(8) for x in range(8)], np.int16
)


class Work(NamedTuple):
    """Scratch of one macroblock's prediction."""

    source: np.ndarray  # Sample[BLOCK], a block of the reference with its margins
    first: np.ndarray  # Sample[BLOCK], prediction from list 0, or from the only list
    second: np.ndarray  # Sample[BLOCK], from list 1
    other: np.ndarray  # Sample[BLOCK], the second half-sample block of a quarter-sample one
    rows: np.ndarray  # int16[BLOCK], b1


@helper
def fetch(plane, base, height, width, y0, x0, rows, columns, out):
    """8.4.2.2.1: `rows` rows of STRIDE or CHROMA_STRIDE samples from (x0, y0), coordinates clamped to the plane, into `out`.

    The plane of height x width samples begins at plane[base].
    """
    outlined()
    if x0 >= 0 and y0 >= 0 and x0 + columns <= width and y0 + rows <= height:
        at = np.uint64(base + y0 * width + x0)
        to = np.uint64(0)
        for _ in range(rows):
            copy16(out, to, plane, at)
            if columns == STRIDE:
                copy8(out, to + np.uint64(16), plane, at + np.uint64(16))
            at += np.uint64(width)
            to += np.uint64(columns)
        return
    for y in range(rows):
        at = base + min(height - 1, max(0, y0 + y)) * width
        for x in range(columns):
            out[np.uint64(y * columns + x)] = plane[np.uint64(at + min(width - 1, max(0, x0 + x)))]


@helper
def tap6(a, b, c, d, e, f):
    """8.4.2.2.1: the (1, -5, 20, 20, -5, 1) filter of samples, in 16 bits."""
    return np.int16(np.int16(a + f) + np.int16(20 * np.int16(c + d)) - np.int16(5 * np.int16(b + e)))


@helper
def six_taps(source, at, step):
    """8.4.2.2.1: b1 or h1 between source[at] and source[at + step]."""
    return tap6(
        np.int16(source[at - step - step]),
        np.int16(source[at - step]),
        np.int16(source[at]),
        np.int16(source[at + step]),
        np.int16(source[at + step + step]),
        np.int16(source[at + step + step + step]),
    )


@helper
def half_samples(source, first, step, size, out):
    """8.4.2.2.1: `size` samples b (step 1) or h (step STRIDE), the first right of or below source[first]."""
    outlined()
    origin = np.uint64(first)
    if step == 1:
        for i in range(size):
            value = six_taps(source, origin + np.uint64(i), np.uint64(1))
            out[np.uint64(i)] = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(np.int16(value + np.int16(16)) >> 5)))
    else:
        for i in range(size):
            value = six_taps(source, origin + np.uint64(i), np.uint64(STRIDE))
            out[np.uint64(i)] = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(np.int16(value + np.int16(16)) >> 5)))


@helper
def half_centre(source, size, out, b1):
    """8.4.2.2.1: `size` samples j of the block at source[ORIGIN]; b1 int16[BLOCK]: scratch."""
    outlined()
    for i in range(size + 5 * STRIDE):
        b1[np.uint64(i)] = six_taps(source, np.uint64(i + 2), np.uint64(1))
    for i in range(size):
        a, b = np.int32(b1[np.uint64(i)]), np.int32(b1[np.uint64(i + STRIDE)])
        c, d = np.int32(b1[np.uint64(i + 2 * STRIDE)]), np.int32(b1[np.uint64(i + 3 * STRIDE)])
        e, f = np.int32(b1[np.uint64(i + 4 * STRIDE)]), np.int32(b1[np.uint64(i + 5 * STRIDE)])
        value = np.int32(np.int32(a + f) + np.int32(20 * np.int32(c + d)) - np.int32(5 * np.int32(b + e)))
        value = np.int32(np.int32(value + np.int32(512)) >> np.int32(10))
        out[np.uint64(i)] = min(np.int32(SAMPLE_MAX), max(np.int32(0), value))


@helper
def average(out, source, first, size):
    """8.4.2.2.1, 8.4.2.3.1: the rounded-up mean of a block and another that begins at source[first], in place."""
    outlined()
    origin = np.uint64(first)
    for i in range(size):
        total = np.int16(np.int16(out[np.uint64(i)]) + np.int16(source[origin + np.uint64(i)]) + np.int16(1))
        out[np.uint64(i)] = np.int16(total >> 1)


@helper
def predict_luma(plane, base, plane_height, plane_width, y, x, rows, mvx, mvy, work, out):
    """8.4.2.2.1, Table 8-12: `rows` rows of luma at (x, y), moved by (mvx, mvy) quarter samples."""
    inlined()
    y, x = y + (mvy >> 2), x + (mvx >> 2)
    dx, dy = mvx & 3, mvy & 3
    if dx == 0 and dy == 0:
        fetch(plane, base, plane_height, plane_width, y, x, rows, STRIDE, out)  # G
        return
    source, other = work.source, work.other
    fetch(plane, base, plane_height, plane_width, y - 2, x - 2, rows + 5, STRIDE, source)
    size = rows * STRIDE
    below, right = ORIGIN + (dy >> 1) * STRIDE, ORIGIN + (dx >> 1)
    if dy == 0:
        half_samples(source, ORIGIN, 1, size, out)  # b
        if dx != 2:
            average(out, source, right, size)  # a, c
    elif dx == 0:
        half_samples(source, ORIGIN, STRIDE, size, out)  # h
        if dy != 2:
            average(out, source, below, size)  # d, n
    elif dx == 2 or dy == 2:
        half_centre(source, size, out, work.rows)  # j
        if dy != 2 or dx != 2:
            vertical = dy == 2
            half_samples(source, right if vertical else below, STRIDE if vertical else 1, size, other)
            average(out, other, 0, size)  # f, q, i, k
    else:
        half_samples(source, below, 1, size, out)
        half_samples(source, right, STRIDE, size, other)
        average(out, other, 0, size)  # e, g, p, r


@helper
def predict_chroma(plane, base, plane_height, plane_width, y, x, rows, mvx, mvy, source, out):
    """8.4.2.2.2: `rows` rows of chroma at (x, y), moved by (mvx, mvy) eighths of a chroma sample."""
    inlined()
    y, x = y + (mvy >> 3), x + (mvx >> 3)
    dx, dy = mvx & 7, mvy & 7
    if dx == 0 and dy == 0:
        fetch(plane, base, plane_height, plane_width, y, x, rows, CHROMA_STRIDE, out)
        return
    fetch(plane, base, plane_height, plane_width, y, x, rows + 1, CHROMA_STRIDE, source)
    k = 8 * dy + dx
    a, b, c, d = CHROMA_WEIGHTS[k, 0], CHROMA_WEIGHTS[k, 1], CHROMA_WEIGHTS[k, 2], CHROMA_WEIGHTS[k, 3]
    for i in range(rows * CHROMA_STRIDE):
        at = np.uint64(i)
        upper = np.int16(np.int16(a * np.int16(source[at])) + np.int16(b * np.int16(source[at + np.uint64(1)])))
        below = at + np.uint64(CHROMA_STRIDE)
        lower = np.int16(np.int16(c * np.int16(source[below])) + np.int16(d * np.int16(source[below + np.uint64(1)])))
        out[at] = np.int16(np.int16(np.int16(upper + lower) + np.int16(32)) >> 6)


@helper
def weigh_one(out, size, log_denom, weight, offset):
    """8.4.2.3.2: explicit weighted prediction from one list, in place."""
    outlined()
    rounding = 1 << log_denom >> 1
    for i in range(size):
        value = ((np.int32(out[np.uint64(i)]) * weight + rounding) >> log_denom) + offset
        out[np.uint64(i)] = min(SAMPLE_MAX, max(0, value))


@helper
def weigh_two(out, second, size, log_denom, weight0, weight1, offset):
    """8.4.2.3.2: weighted prediction from both lists, `second` joined into `out`; offset: (o0 + o1 + 1) >> 1."""
    outlined()
    for i in range(size):
        value = np.int32(out[np.uint64(i)]) * weight0 + np.int32(second[np.uint64(i)]) * weight1
        value = ((value + (1 << log_denom)) >> (log_denom + 1)) + offset
        out[np.uint64(i)] = min(SAMPLE_MAX, max(0, value))


@helper
def weigh(p, references, ref0, ref1, c, out, second, size):
    """8.4.2.3: joins or weighs predictions of component c (0 Y, 1 Cb, 2 Cr) of a block; a list not used: ref -1."""
    outlined()
    mode = p[P_WEIGHTING]
    weights = references.weights
    log_denom = p[P_LUMA_DENOM] if c == 0 else p[P_CHROMA_DENOM]
    if ref0 >= 0 and ref1 >= 0:
        if mode == WEIGHT_DEFAULT or (mode == WEIGHT_IMPLICIT and references.implicit[ref0, ref1] == 32):
            average(out, second, 0, size)
        elif mode == WEIGHT_IMPLICIT:
            weight1 = np.int64(references.implicit[ref0, ref1])
            weigh_two(out, second, size, 5, 64 - weight1, weight1, 0)
        else:
            offset = (np.int64(weights[0, ref0, c, 1]) + np.int64(weights[1, ref1, c, 1]) + 1) >> 1
            weight0, weight1 = np.int64(weights[0, ref0, c, 0]), np.int64(weights[1, ref1, c, 0])
            weigh_two(out, second, size, log_denom, weight0, weight1, offset)
    elif mode == WEIGHT_EXPLICIT:
        k = 0 if ref0 >= 0 else 1
        ref = max(ref0, ref1)
        weight, offset = np.int64(weights[k, ref, c, 0]), np.int64(weights[k, ref, c, 1])
        if weight != 1 << log_denom or offset != 0:
            weigh_one(out, size, log_denom, weight, offset)


@helper
def put(plane, to, plane_width, rows, width, source, at, stride):
    """`rows` rows of `width` samples from source[at], `stride` apart, to plane[to]."""
    outlined()
    to, at, to_step, step = np.uint64(to), np.uint64(at), np.uint64(plane_width), np.uint64(stride)
    for _ in range(rows):
        if width == 16:
            copy16(plane, to, source, at)
        elif width == 8:
            copy8(plane, to, source, at)
        else:
            for i in range(width):
                plane[to + np.uint64(i)] = source[at + np.uint64(i)]
        to += to_step
        at += step


@helper
def whole_samples(y, x, height, width, rows, columns, mvx, mvy, shift):
    """Whether a block moves by whole samples within the plane; mvx, mvy in 2 ** -shift samples."""
    y, x = y + (mvy >> shift), x + (mvx >> shift)
    inside = x >= 0 and y >= 0 and x + columns <= width and y + rows <= height
    return inside and (mvx | mvy) & ((1 << shift) - 1) == 0


@helper
def inter_block(p, planes, size, slot, mv, ref_idx, references, y4, x4, rows, width, work):
    """8.4.2: prediction of a block of width x rows luma samples that moves as one; 0 or an error.

    planes: flat Y, Cb, Cr of all pictures, `size` (H, W) each picture's; (x4, y4): its first 4x4 block.
    """
    inlined()
    ref0, ref1 = np.int64(ref_idx[0, y4 >> 1, x4 >> 1]), np.int64(ref_idx[1, y4 >> 1, x4 >> 1])
    height, columns = size
    for k in range(2):
        ref = ref1 if k else ref0
        if ref >= 0 and references.slots[k, ref] < 0:
            return E_NO_REFERENCE
    plain = p[P_WEIGHTING] == WEIGHT_DEFAULT and (ref0 < 0 or ref1 < 0)
    for c in range(3):
        plane = planes[0] if c == 0 else planes[1] if c == 1 else planes[2]
        shift, stride = (1, CHROMA_STRIDE) if c else (0, STRIDE)
        h, w = height >> shift, columns >> shift
        y, x, n, m = 4 * y4 >> shift, 4 * x4 >> shift, rows >> shift, width >> shift
        to = (slot * h + y) * w + x
        for k in range(2):
            ref = ref1 if k else ref0
            if ref < 0:
                continue
            base = np.int64(references.slots[k, ref]) * h * w
            mvx, mvy = np.int64(mv[k, y4, x4, 0]), np.int64(mv[k, y4, x4, 1])
            out = work.second if k and ref0 >= 0 else work.first
            if plain and whole_samples(y, x, h, w, n, m, mvx, mvy, 2 + shift):
                put(plane, to, w, n, m, plane, base + (y + (mvy >> 2 + shift)) * w + x + (mvx >> 2 + shift), w)
                continue
            if c == 0:
                predict_luma(plane, base, h, w, y, x, n, mvx, mvy, work, out)
            else:
                predict_chroma(plane, base, h, w, y, x, n, mvx, mvy, work.source, out)
            if plain:
                put(plane, to, w, n, m, out, 0, stride)
        if not plain:
            weigh(p, references, ref0, ref1, c, work.first, work.second, n * stride)
            put(plane, to, w, n, m, work.first, 0, stride)
    return 0


@helper
def same_motion(mv, ref_idx, y4, x4, size):
    """Whether all 4x4 blocks of a square area move as its first; mv int16[2, H4, W4, 2], ref_idx int8[2, H8, W8]."""
    outlined()
    for k in range(2):
        ref = ref_idx[k, y4 >> 1, x4 >> 1]
        for y in range(y4, y4 + size, 2):
            for x in range(x4, x4 + size, 2):
                if ref_idx[k, y >> 1, x >> 1] != ref:
                    return False
        if ref < 0:
            continue
        mvx, mvy = mv[k, y4, x4, 0], mv[k, y4, x4, 1]
        for y in range(y4, y4 + size):
            for x in range(x4, x4 + size):
                if mv[k, y, x, 0] != mvx or mv[k, y, x, 1] != mvy:
                    return False
    return True


@helper
def block_size(mb_type, mv, ref_idx, y4, x4, y, x):
    """Rows and columns, in 4x4 blocks, that move as one from the block (x, y) of the macroblock at (x4, y4) on."""
    rows, columns = partition_size(mb_type)
    if rows + columns > 4:
        return rows, columns
    if mb_type != P_8x8 and mb_type != B_8x8 and y | x == 0 and same_motion(mv, ref_idx, y4, x4, 4):
        return 4, 4  # direct
    if (y | x) & 1 or not same_motion(mv, ref_idx, y4 + y, x4 + x, 2):
        return 1, 1
    return 2, 2


@helper
def predict_inter(p, planes, size, slot, mv, ref_idx, references, y4, x4, mb_type, work):
    """8.4.2: prediction of an inter macroblock, in few blocks of uniform motion; 0 or an error."""
    inlined()
    y = x = 0
    while y < 4:
        rows, columns = block_size(mb_type, mv, ref_idx, y4, x4, y, x)
        error = inter_block(p, planes, size, slot, mv, ref_idx, references, y4 + y, x4 + x, 4 * rows, 4 * columns, work)
        if error:
            return error
        y, x = next_block(y, x, rows, columns)
    return 0


@helper
def next_block(y, x, rows, columns):
    """6.4.3: where the block begins that follows one of rows x columns 4x4 blocks at (x, y), quadrant by quadrant."""
    if columns == 4:
        return y + rows, 0
    if rows == 4:
        return (0, 2) if x == 0 else (4, 0)
    if rows == 1 and not x & 1:
        return y, x + 1
    if rows == 1 and not y & 1:
        return y + 1, x - 1
    y, x = y & 2, x & 2
    return (y, 2) if x == 0 else (y + 2, 0)
