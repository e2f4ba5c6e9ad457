"""8.5: scaling and inverse transforms of residual blocks, added to the prediction in the picture."""

import numpy as np

from ..standard.jit import helper
from .outline import inlined, outlined


@helper
def clip1(value):
    """5.7: Clip1 for 8 bits a sample."""
    return min(255, max(0, value))


@helper
def scale_4x4(levels, base, scale, qp, has_dc, d):
    """8.5.12.1: scaling of a 4x4 block into d int32[16]; with has_dc its DC is scaled already."""
    inlined()
    first = levels[base]
    if qp >= 24:
        for i in range(16):
            d[i] = (levels[base + i] * scale[i]) << (qp // 6 - 4)
    else:
        shift = 4 - qp // 6
        for i in range(16):
            d[i] = (levels[base + i] * scale[i] + (1 << (shift - 1))) >> shift
    if has_dc:
        d[0] = first


@helper
def add_4x4(plane, y0, x0, d):
    """8.5.12.2, 8.5.14: inverse 4x4 transform of d int32[16], added to the picture."""
    inlined()
    for i in range(0, 16, 4):
        e0 = d[i] + d[i + 2]
        e1 = d[i] - d[i + 2]
        e2 = (d[i + 1] >> 1) - d[i + 3]
        e3 = d[i + 1] + (d[i + 3] >> 1)
        d[i] = e0 + e3
        d[i + 1] = e1 + e2
        d[i + 2] = e1 - e2
        d[i + 3] = e0 - e3
    for j in range(4):
        g0 = d[j] + d[8 + j]
        g1 = d[j] - d[8 + j]
        g2 = (d[4 + j] >> 1) - d[12 + j]
        g3 = d[4 + j] + (d[12 + j] >> 1)
        plane[y0, x0 + j] = clip1(np.int64(plane[y0, x0 + j]) + ((g0 + g3 + 32) >> 6))
        plane[y0 + 1, x0 + j] = clip1(np.int64(plane[y0 + 1, x0 + j]) + ((g1 + g2 + 32) >> 6))
        plane[y0 + 2, x0 + j] = clip1(np.int64(plane[y0 + 2, x0 + j]) + ((g1 - g2 + 32) >> 6))
        plane[y0 + 3, x0 + j] = clip1(np.int64(plane[y0 + 3, x0 + j]) + ((g0 - g3 + 32) >> 6))


@helper
def add_residual_4x4(plane, y0, x0, levels, base, scale, qp, has_dc, d):
    """8.5.12: scaling and transform of a 4x4 block, added to the picture; its levels are cleared."""
    outlined()
    scale_4x4(levels, base, scale, qp, has_dc, d)
    for i in range(16):
        levels[base + i] = 0
    add_4x4(plane, y0, x0, d)


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
def transform_8(d, at, step):
    """8.5.13.2: the one-dimensional 8-point transform of d[at + k * step], in place."""
    outlined()
    d0, d1, d2, d3 = d[at], d[at + step], d[at + 2 * step], d[at + 3 * step]
    d4, d5, d6, d7 = d[at + 4 * step], d[at + 5 * step], d[at + 6 * step], d[at + 7 * step]
    e0, e1 = d0 + d4, d5 - d3 - d7 - (d7 >> 1)
    e2, e3 = d0 - d4, d1 + d7 - d3 - (d3 >> 1)
    e4, e5 = (d2 >> 1) - d6, d7 - d1 + d5 + (d5 >> 1)
    e6, e7 = d2 + (d6 >> 1), d3 + d5 + d1 + (d1 >> 1)
    f0, f1 = e0 + e6, e1 + (e7 >> 2)
    f2, f3 = e2 + e4, e3 + (e5 >> 2)
    f4, f5 = e2 - e4, (e3 >> 2) - e5
    f6, f7 = e0 - e6, e7 - (e1 >> 2)
    d[at] = f0 + f7
    d[at + step] = f2 + f5
    d[at + 2 * step] = f4 + f3
    d[at + 3 * step] = f6 + f1
    d[at + 4 * step] = f6 - f1
    d[at + 5 * step] = f4 - f3
    d[at + 6 * step] = f2 - f5
    d[at + 7 * step] = f0 - f7


@helper
def add_residual_8x8(plane, y0, x0, levels, base, scale, qp, d):
    """8.5.13: scaling and transform of an 8x8 block, added to the picture; its levels are cleared; d int32[64]."""
    outlined()
    if qp >= 36:
        for i in range(64):
            d[i] = (levels[base + i] * scale[i]) << (qp // 6 - 6)
    else:
        shift = 6 - qp // 6
        for i in range(64):
            d[i] = (levels[base + i] * scale[i] + (1 << (shift - 1))) >> shift
    for i in range(64):
        levels[base + i] = 0
    for i in range(8):
        transform_8(d, 8 * i, 1)
    for j in range(8):
        transform_8(d, j, 8)
    for y in range(8):
        for x in range(8):
            plane[y0 + y, x0 + x] = clip1(np.int64(plane[y0 + y, x0 + x]) + ((d[8 * y + x] + 32) >> 6))
