"""Half-sample planes of a reference picture (8.4.2.2.1), and its borders."""

import numpy as np

from ..standard.jit import helper, kernel
from .vector import (
    add,
    clip_to_u8,
    load_u8x16,
    load_u16x16,
    plus,
    shift_right_s,
    store,
    sub,
    times,
    widen,
    widen_signed,
)


@kernel
def extend_borders(plane, pad):
    """Fill the border of `pad` samples round a plane (uint8[H+2*pad, W+2*pad]) with the nearest sample inside."""
    height, width = plane.shape
    for y in range(pad, height - pad):  # sample by sample: assignments of slices take seconds to compile
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
    """8-241, 8-242: a - 5 b + 20 c + 20 d - 5 e + f, before rounding; lanes as wide as the operands'."""
    return add(sub(add(a, f), times(add(b, e), 5)), times(add(c, d), 20))


@kernel
def interpolate(luma, pad, row0, row1):
    """8.4.2.2.1: half-sample planes b, h, j (1, 2, 3) of luma: uint8[4, H+2*pad, W+2*pad] from plane 0.

    Fills the sample rows of macroblock rows [row0, row1), the border rows with the first and the last one, at the whole
    padded width. Plane 0 must be final with its borders; reads outside it take the nearest sample.
    """
    height, width = luma.shape[1], luma.shape[2]
    plane = height * width
    first = 0 if row0 == 0 else pad + 16 * row0
    last = height if 16 * row1 == height - 2 * pad else pad + 16 * row1
    # a row of samples and one of vertical intermediates (h1 in the standard), each with 8 more on both sides
    row = np.empty(width + 32, np.uint8)
    vertical = np.empty(width + 32, np.int16)
    for y in range(first, last):
        at = y * width
        row[8 : 8 + width] = luma[0, y]
        row[:8] = luma[0, y, 0]
        row[8 + width :] = luma[0, y, width - 1]
        y0, y1, y2 = max(y - 2, 0) * width, max(y - 1, 0) * width, at
        y3, y4, y5 = min(y + 1, height - 1) * width, min(y + 2, height - 1) * width, min(y + 3, height - 1) * width
        for x in range(0, width, 16):
            h1 = six_tap(
                widen(load_u8x16(luma, y0 + x)),
                widen(load_u8x16(luma, y1 + x)),
                widen(load_u8x16(luma, y2 + x)),
                widen(load_u8x16(luma, y3 + x)),
                widen(load_u8x16(luma, y4 + x)),
                widen(load_u8x16(luma, y5 + x)),
            )
            store(vertical, 8 + x, h1)
            store(luma, 2 * plane + at + x, clip_to_u8(shift_right_s(plus(h1, 16), 5)))
            b1 = six_tap(
                widen(load_u8x16(row, x + 6)),
                widen(load_u8x16(row, x + 7)),
                widen(load_u8x16(row, x + 8)),
                widen(load_u8x16(row, x + 9)),
                widen(load_u8x16(row, x + 10)),
                widen(load_u8x16(row, x + 11)),
            )
            store(luma, plane + at + x, clip_to_u8(shift_right_s(plus(b1, 16), 5)))
        vertical[:8] = vertical[8]
        vertical[8 + width :] = vertical[7 + width]
        for x in range(0, width, 16):
            # pairs of intermediates still fit into 16 bits, their weighted sum does not
            outer = widen_signed(add(load_u16x16(vertical, x + 6), load_u16x16(vertical, x + 11)))
            middle = widen_signed(add(load_u16x16(vertical, x + 7), load_u16x16(vertical, x + 10)))
            inner = widen_signed(add(load_u16x16(vertical, x + 8), load_u16x16(vertical, x + 9)))
            j1 = add(sub(outer, times(middle, 5)), times(inner, 20))
            store(luma, 3 * plane + at + x, clip_to_u8(shift_right_s(plus(j1, 512), 10)))
