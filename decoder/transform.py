"""8.5: scaling and inverse transforms of residual blocks, added to the prediction in the picture."""

import numpy as np

from ..standard.jit import helper
from .outline import outlined


@helper
def clip1(value):
    """5.7: Clip1 for 8 bits a sample."""
    return min(255, max(0, value))


@helper
def scale_block(levels, base, scale, shift, count, d):
    """8.5.12.1, 8.5.13.1: d[:count] = levels * scale * 2 ** shift, rounded; the levels, from `base` on, are cleared."""
    outlined()
    left, right = np.int32(max(0, shift)), np.int32(max(0, -shift))
    half = np.int32((1 << right) >> 1)
    for i in range(count):
        at = np.uint64(base + i)
        value = np.int32(np.int32(levels[at]) * np.int32(scale[np.uint64(i)]))
        d[np.uint64(i)] = np.int32(np.int32(np.int32(value << left) + half) >> right)
        levels[at] = 0


@helper
def add_sample(plane, at, value):
    """8.5.14: a residual sample, in 64ths, added to the picture."""
    plane[at] = clip1(np.int64(plane[at]) + ((value + 32) >> 6))


@helper
def add_residual_4x4(plane, at, stride, levels, base, scale, qp, has_dc, d):
    """8.5.12: scaling and transform of a 4x4 block, added to plane[at] and on; its levels are cleared; d int32[64].

    plane: flat, rows `stride` apart; has_dc: the DC is scaled already.
    """
    outlined()
    first = levels[base]
    scale_block(levels, base, scale, qp // 6 - 4, 16, d)
    if has_dc:
        d[0] = first
    for i in range(0, 16, 4):
        k = np.uint64(i)
        d0, d1, d2, d3 = d[k], d[k + np.uint64(1)], d[k + np.uint64(2)], d[k + np.uint64(3)]
        e0, e1, e2, e3 = d0 + d2, d0 - d2, (d1 >> 1) - d3, d1 + (d3 >> 1)
        d[k], d[k + np.uint64(1)], d[k + np.uint64(2)], d[k + np.uint64(3)] = e0 + e3, e1 + e2, e1 - e2, e0 - e3
    at, step = np.uint64(at), np.uint64(stride)
    for j in range(4):
        k = np.uint64(j)
        d0, d1, d2, d3 = d[k], d[k + np.uint64(4)], d[k + np.uint64(8)], d[k + np.uint64(12)]
        g0, g1, g2, g3 = d0 + d2, d0 - d2, (d1 >> 1) - d3, d1 + (d3 >> 1)
        add_sample(plane, at + k, g0 + g3)
        add_sample(plane, at + step + k, g1 + g2)
        add_sample(plane, at + step + step + k, g1 - g2)
        add_sample(plane, at + step + step + step + k, g0 - g3)


@helper
def luma_dc(levels, scale, qp, c):
    """8.5.10: scaled DC of an Intra_16x16 macroblock, in place at position 0 of its 16 blocks; c int32[16]."""
    outlined()
    for block in range(16):  # luma4x4BlkIdx to raster
        y = (block >> 3) * 2 + (block >> 1 & 1)
        x = (block >> 2 & 1) * 2 + (block & 1)
        c[4 * y + x] = levels[16 * block]
    for step, stride in ((1, 4), (4, 1)):
        for i in range(0, 4 * stride, stride):
            a, b = c[i] + c[i + step], c[i] - c[i + step]
            e, f = c[i + 2 * step] + c[i + 3 * step], c[i + 2 * step] - c[i + 3 * step]
            c[i] = a + e
            c[i + step] = a - e
            c[i + 2 * step] = b - f
            c[i + 3 * step] = b + f
    for block in range(16):
        y = (block >> 3) * 2 + (block >> 1 & 1)
        x = (block >> 2 & 1) * 2 + (block & 1)
        value = c[4 * y + x] * scale[0]
        if qp >= 36:
            value <<= qp // 6 - 6
        else:
            value = (value + (1 << (5 - qp // 6))) >> (6 - qp // 6)
        levels[16 * block] = value


@helper
def chroma_dc(levels, base, scale, qp):
    """8.5.11.1, 8.5.11.2: scaled DC of the four blocks of a chroma plane, in place at the blocks' position 0."""
    outlined()
    c0, c1 = np.int64(levels[base]), np.int64(levels[base + 16])
    c2, c3 = np.int64(levels[base + 32]), np.int64(levels[base + 48])
    factor, shift = np.int64(scale[0]), qp // 6
    levels[base] = (((c0 + c1 + c2 + c3) * factor) << shift) >> 5
    levels[base + 16] = (((c0 - c1 + c2 - c3) * factor) << shift) >> 5
    levels[base + 32] = (((c0 + c1 - c2 - c3) * factor) << shift) >> 5
    levels[base + 48] = (((c0 - c1 - c2 + c3) * factor) << shift) >> 5


@helper
def transform_8(d, first, step):
    """8.5.13.2: the one-dimensional 8-point transform of d[first + k * step], in place."""
    outlined()
    at, step = np.uint64(first), np.uint64(step)
    two = step + step
    four = two + two
    d0, d1, d2, d3 = d[at], d[at + step], d[at + two], d[at + two + step]
    d4, d5, d6, d7 = d[at + four], d[at + four + step], d[at + four + two], d[at + four + two + step]
    e0, e1 = d0 + d4, d5 - d3 - d7 - (d7 >> 1)
    e2, e3 = d0 - d4, d1 + d7 - d3 - (d3 >> 1)
    e4, e5 = (d2 >> 1) - d6, d7 - d1 + d5 + (d5 >> 1)
    e6, e7 = d2 + (d6 >> 1), d3 + d5 + d1 + (d1 >> 1)
    f0, f1 = e0 + e6, e1 + (e7 >> 2)
    f2, f3 = e2 + e4, e3 + (e5 >> 2)
    f4, f5 = e2 - e4, (e3 >> 2) - e5
    f6, f7 = e0 - e6, e7 - (e1 >> 2)
    d[at], d[at + step], d[at + two], d[at + two + step] = f0 + f7, f2 + f5, f4 + f3, f6 + f1
    d[at + four], d[at + four + step] = f6 - f1, f4 - f3
    d[at + four + two], d[at + four + two + step] = f2 - f5, f0 - f7


@helper
def add_residual_8x8(plane, at, stride, levels, base, scale, qp, d):
    """8.5.13: scaling and transform of an 8x8 block, added to plane[at] and on; its levels are cleared; d int32[64]."""
    outlined()
    scale_block(levels, base, scale, qp // 6 - 6, 64, d)
    for i in range(8):
        transform_8(d, 8 * i, 1)
    for j in range(8):
        transform_8(d, j, 8)
    for y in range(8):
        row = np.uint64(at + y * stride)
        for x in range(8):
            add_sample(plane, row + np.uint64(x), d[np.uint64(8 * y + x)])
