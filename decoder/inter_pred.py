"""8.4.2: inter prediction samples: fractional luma and chroma interpolation, and weighted prediction."""

import numpy as np

from ..standard.jit import helper
from .outline import outlined

# Scratch of one macroblock's prediction: rows, columns of at most 16x16 samples with margins (2 before, 3 behind).
SCRATCH_ROWS, SCRATCH_COLUMNS = 24, 32


@helper
def fetch(plane, y0, x0, height, width, scratch):
    """8.4.2.2.1: samples [y0, y0 + height) x [x0, x0 + width), coordinates clamped to the plane, into scratch."""
    outlined()
    last_y, last_x = plane.shape[0] - 1, plane.shape[1] - 1
    for y in range(height):
        row = min(last_y, max(0, y0 + y))
        for x in range(width):
            scratch[y, x] = plane[row, min(last_x, max(0, x0 + x))]


@helper
def tap6(a, b, c, d, e, f):
    """8.4.2.2.1: the (1, -5, 20, 20, -5, 1) filter."""
    return np.int32(np.int32(a + f) + np.int32(20 * np.int32(c + d)) - np.int32(5 * np.int32(b + e)))


@helper
def clip_half(value):
    """8.4.2.2.1: rounding and clipping of one filter's result."""
    return np.uint8(min(np.int32(255), max(np.int32(0), np.int32(np.int32(value + np.int32(16)) >> np.int32(5)))))


@helper
def copy_block(source, sy, sx, height, width, out, oy, ox):
    """Samples G as they are."""
    outlined()
    for y in range(height):
        for x in range(width):
            out[oy + y, ox + x] = source[sy + y, sx + x]


@helper
def half_horizontal(source, sy, sx, height, width, out, oy, ox):
    """8.4.2.2.1: samples b, half a sample to the right of G."""
    outlined()
    for y in range(height):
        row = source[sy + y]
        for x in range(width):
            i = sx + x
            value = tap6(
                np.int32(row[i - 2]), np.int32(row[i - 1]), np.int32(row[i]),
                np.int32(row[i + 1]), np.int32(row[i + 2]), np.int32(row[i + 3]),
            )  # fmt: skip
            out[oy + y, ox + x] = clip_half(value)


@helper
def half_vertical(source, sy, sx, height, width, out, oy, ox):
    """8.4.2.2.1: samples h, half a sample below G."""
    outlined()
    for y in range(height):
        j = sy + y
        for x in range(width):
            i = sx + x
            value = tap6(
                np.int32(source[j - 2, i]), np.int32(source[j - 1, i]), np.int32(source[j, i]),
                np.int32(source[j + 1, i]), np.int32(source[j + 2, i]), np.int32(source[j + 3, i]),
            )  # fmt: skip
            out[oy + y, ox + x] = clip_half(value)


@helper
def half_centre(source, sy, sx, height, width, out, oy, ox, rows):
    """8.4.2.2.1: samples j, half a sample right of and below G; rows int32[SCRATCH_ROWS, 16] holds b1."""
    outlined()
    for y in range(height + 5):
        row = source[sy + y - 2]
        for x in range(width):
            i = sx + x
            rows[y, x] = tap6(
                np.int32(row[i - 2]), np.int32(row[i - 1]), np.int32(row[i]),
                np.int32(row[i + 1]), np.int32(row[i + 2]), np.int32(row[i + 3]),
            )  # fmt: skip
    for y in range(height):
        for x in range(width):
            value = tap6(rows[y, x], rows[y + 1, x], rows[y + 2, x], rows[y + 3, x], rows[y + 4, x], rows[y + 5, x])
            value = np.int32(np.int32(value + np.int32(512)) >> np.int32(10))
            out[oy + y, ox + x] = np.uint8(min(np.int32(255), max(np.int32(0), value)))


@helper
def average_with(source, sy, sx, height, width, out, oy, ox):
    """8.4.2.2.1: quarter samples: the rounded-up mean of `out` and another block."""
    outlined()
    for y in range(height):
        for x in range(width):
            total = np.int32(out[oy + y, ox + x]) + np.int32(source[sy + y, sx + x]) + np.int32(1)
            out[oy + y, ox + x] = np.uint8(np.int32(total) >> np.int32(1))


@helper
def interpolate_luma(source, sy, sx, dx, dy, height, width, out, oy, ox, rows, other):
    """8.4.2.2.1, Table 8-12: the block at (sx, sy) and fraction (dx, dy) of a plane with its margins, into `out`.

    rows int32[SCRATCH_ROWS, 16], other uint8[SCRATCH_ROWS, SCRATCH_COLUMNS]: scratch.
    """
    outlined()
    if dx == 0 and dy == 0:
        copy_block(source, sy, sx, height, width, out, oy, ox)  # G
    elif dy == 0:
        half_horizontal(source, sy, sx, height, width, out, oy, ox)  # b
        if dx != 2:
            average_with(source, sy, sx + (dx >> 1), height, width, out, oy, ox)  # a, c
    elif dx == 0:
        half_vertical(source, sy, sx, height, width, out, oy, ox)  # h
        if dy != 2:
            average_with(source, sy + (dy >> 1), sx, height, width, out, oy, ox)  # d, n
    elif dx == 2 or dy == 2:
        half_centre(source, sy, sx, height, width, out, oy, ox, rows)  # j
        if dy != 2:
            half_horizontal(source, sy + (dy >> 1), sx, height, width, other, 0, 0)  # f, q
            average_with(other, 0, 0, height, width, out, oy, ox)
        elif dx != 2:
            half_vertical(source, sy, sx + (dx >> 1), height, width, other, 0, 0)  # i, k
            average_with(other, 0, 0, height, width, out, oy, ox)
    else:
        half_horizontal(source, sy + (dy >> 1), sx, height, width, out, oy, ox)  # e, g, p, r
        half_vertical(source, sy, sx + (dx >> 1), height, width, other, 0, 0)
        average_with(other, 0, 0, height, width, out, oy, ox)


@helper
def predict_luma(plane, y, x, height, width, mvx, mvy, out, oy, ox, scratch, rows, other):
    """8.4.2.2.1: luma prediction of the block at (x, y) moved by (mvx, mvy) quarter samples."""
    sx, sy = x + (mvx >> 2), y + (mvy >> 2)
    dx, dy = mvx & 3, mvy & 3
    if sx >= 2 and sy >= 2 and sx + width + 3 <= plane.shape[1] and sy + height + 3 <= plane.shape[0]:
        interpolate_luma(plane, sy, sx, dx, dy, height, width, out, oy, ox, rows, other)
    else:
        fetch(plane, sy - 2, sx - 2, height + 5, width + 5, scratch)
        interpolate_luma(scratch, 2, 2, dx, dy, height, width, out, oy, ox, rows, other)


@helper
def interpolate_chroma(source, sy, sx, dx, dy, height, width, out, oy, ox):
    """8.4.2.2.2: bilinear interpolation, (dx, dy) in eighths of a sample."""
    outlined()
    a, b = np.int32((8 - dx) * (8 - dy)), np.int32(dx * (8 - dy))
    c, d = np.int32((8 - dx) * dy), np.int32(dx * dy)
    for y in range(height):
        top, bottom = source[sy + y], source[sy + y + 1]
        for x in range(width):
            i = sx + x
            upper = np.int32(a * np.int32(top[i])) + np.int32(b * np.int32(top[i + 1]))
            lower = np.int32(c * np.int32(bottom[i])) + np.int32(d * np.int32(bottom[i + 1]))
            out[oy + y, ox + x] = np.uint8(np.int32(upper + lower + 32) >> np.int32(6))


@helper
def predict_chroma(plane, y, x, height, width, mvx, mvy, out, oy, ox, scratch):
    """8.4.2.2.2: chroma prediction of the block at (x, y) moved by (mvx, mvy) eighths of a chroma sample."""
    sx, sy = x + (mvx >> 3), y + (mvy >> 3)
    dx, dy = mvx & 7, mvy & 7
    if sx >= 0 and sy >= 0 and sx + width + 1 <= plane.shape[1] and sy + height + 1 <= plane.shape[0]:
        interpolate_chroma(plane, sy, sx, dx, dy, height, width, out, oy, ox)
    else:
        fetch(plane, sy, sx, height + 1, width + 1, scratch)
        interpolate_chroma(scratch, 0, 0, dx, dy, height, width, out, oy, ox)


@helper
def weigh_one(out, oy, ox, height, width, log_denom, weight, offset):
    """8.4.2.3.2: explicit weighted prediction from one list, in place."""
    outlined()
    for y in range(height):
        for x in range(width):
            value = np.int64(out[oy + y, ox + x]) * weight
            if log_denom >= 1:
                value = (value + (1 << (log_denom - 1))) >> log_denom
            out[oy + y, ox + x] = min(255, max(0, value + offset))


@helper
def weigh_two(out, oy, ox, second, height, width, log_denom, weight0, weight1, offset):
    """8.4.2.3.2: weighted prediction from both lists, `second` (at 0, 0) joined into `out`; offset (o0 + o1 + 1) >> 1."""
    outlined()
    for y in range(height):
        for x in range(width):
            value = np.int64(out[oy + y, ox + x]) * weight0 + np.int64(second[y, x]) * weight1
            value = ((value + (1 << log_denom)) >> (log_denom + 1)) + offset
            out[oy + y, ox + x] = min(255, max(0, value))
