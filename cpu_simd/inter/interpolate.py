"""Half-sample planes of a reference frame (8.4.2.2.1), and its borders."""
# Samples of 8 bits only: six taps in 16 bits.

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ..simd.vector import (
    add,
    clip_to_u8,
    load_u8x16,
    load_u16x16,
    plus,
    shift_right_s,
    splat_u8x16,
    store,
    sub,
    times,
    widen,
    widen_signed,
)

REACH = 4  # at this distance outside the frame and beyond, all samples of a column (or row) are equal


@closed_kernel
def extend_borders(plane, pad):
    """Fills the border of `pad` samples round a plane (Sample[H+2*pad, W+2*pad]) with the nearest sample inside."""
    height, width = plane.shape
    for y in range(pad, height - pad):  # sample by sample: slice assignments take seconds to compile
        left, right = plane[y, pad], plane[y, width - pad - 1]
        for x in range(pad):
            plane[y, x] = left
            plane[y, width - 1 - x] = right
    for y in range(pad):
        for x in range(width):
            plane[y, x] = plane[pad, x]
            plane[height - 1 - y, x] = plane[height - 1 - pad, x]


@helper
def six_tap(a, b, c, d, e, f):
    """8-241, 8-242: a - 5 b + 20 c + 20 d - 5 e + f, before rounding, in lanes of the operands' width."""
    return add(sub(add(a, f), times(add(b, e), 5)), times(add(c, d), 20))


@helper
def _copy_row(luma, to, at, width):
    for x in range(0, width, 16):
        store(luma, to + x, load_u8x16(luma, at + x))


@helper
def _repeat_sides(luma, k, y, left, right):
    """Fills columns outside [left, right) of row y of plane k with the nearest computed sample."""
    width = luma.shape[2]
    at = (k * luma.shape[1] + y) * width
    before, behind = splat_u8x16(luma[k, y, left]), splat_u8x16(luma[k, y, right - 1])
    for x in range(0, left, 16):
        store(luma, at + x, before)
    for x in range(right, width, 16):
        store(luma, at + x, behind)


@helper
def _row(luma, plane, width, y, left, right, vertical):
    """b, h and j of columns [left, right) of row y. vertical: int16[width + 32], scratch: h1 of column x at [x + 8]."""
    at = y * width
    for x in range(at + left, at + right, 16):
        h1 = six_tap(
            widen(load_u8x16(luma, x - 2 * width)),
            widen(load_u8x16(luma, x - width)),
            widen(load_u8x16(luma, x)),
            widen(load_u8x16(luma, x + width)),
            widen(load_u8x16(luma, x + 2 * width)),
            widen(load_u8x16(luma, x + 3 * width)),
        )
        store(vertical, 8 + x - at, h1)
        store(luma, 2 * plane + x, clip_to_u8(shift_right_s(plus(h1, 16), 5)))
        b1 = six_tap(
            widen(load_u8x16(luma, x - 2)),
            widen(load_u8x16(luma, x - 1)),
            widen(load_u8x16(luma, x)),
            widen(load_u8x16(luma, x + 1)),
            widen(load_u8x16(luma, x + 2)),
            widen(load_u8x16(luma, x + 3)),
        )
        store(luma, plane + x, clip_to_u8(shift_right_s(plus(b1, 16), 5)))
    for k in range(8):
        vertical[left + k] = vertical[left + 8]
        vertical[8 + right + k] = vertical[7 + right]
    for x in range(left, right, 16):
        # sums of two intermediates fit into 16 bits, their weighted sum does not
        outer = widen_signed(add(load_u16x16(vertical, x + 6), load_u16x16(vertical, x + 11)))
        middle = widen_signed(add(load_u16x16(vertical, x + 7), load_u16x16(vertical, x + 10)))
        inner = widen_signed(add(load_u16x16(vertical, x + 8), load_u16x16(vertical, x + 9)))
        j1 = add(sub(outer, times(middle, 5)), times(inner, 20))
        store(luma, 3 * plane + at + x, clip_to_u8(shift_right_s(plus(j1, 512), 10)))


@closed_kernel
def interpolate(luma, pad, row0, row1):
    """8.4.2.2.1: half-sample planes b, h, j (1, 2, 3) of luma: Sample[4, H+2*pad, W+2*pad] from plane 0.

    Fills the sample rows of macroblock rows [row0, row1) over the padded width; the first and the last macroblock row
    include the border rows. Plane 0 must be final, with its borders; pad is a multiple of 16, at least 32.
    """
    height, width = luma.shape[1], luma.shape[2]
    plane = height * width
    top, bottom = pad - REACH, height - pad + REACH
    first = top if row0 == 0 else pad + 16 * row0
    last = bottom if 16 * row1 == height - 2 * pad else pad + 16 * row1
    left, right = pad - 16, width - pad + 16
    vertical = np.empty(width + 32, np.int16)
    for y in range(first, last):
        _row(luma, plane, width, y, left, right, vertical)
        for k in range(1, 4):
            _repeat_sides(luma, k, y, left, right)
    for k in range(1, 4):
        for y in range(top if row0 == 0 else 0):
            _copy_row(luma, k * plane + y * width, k * plane + top * width, width)
        for y in range(bottom if last == bottom else height, height):
            _copy_row(luma, k * plane + y * width, k * plane + (bottom - 1) * width, width)
