"""8.5: scaling and inverse transforms of residual blocks.

All 4x4 blocks of a macroblock are transformed at once, a lane each, so that loops over them become vectors. Levels and
coefficients lie as [position in the block, raster][block]: 16 luma blocks in raster order, or 4 of Cb and 4 of Cr (and 8
that are not there). Residual samples lie as [row of the block][block][column]: a row of a macroblock, or of its chroma, is
16 or 8 in a row. Coefficients are 16 bits wide, as the standard allows (8.5.12.1).
"""
# Samples of 8 bits only: coefficients of 16 bits.

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from ..standard.sample_format import SAMPLE_MAX
from .unaligned import add8, add16

LANES = 16
BLOCKS = 16 * LANES  # levels, coefficients or samples of the blocks transformed at once
COEFFICIENTS = BLOCKS + LANES  # size of the scratch `d`, int16: scaled coefficients, then scaled DC until it takes its place
ROW = 4 * LANES  # residual samples of a row of all blocks


@helper
def scale_levels(levels, base, factors, half, shift, size, d):
    """8.5.12.1, 8.5.13.1: d[:size] = scaled levels from `base` on, which are cleared; factors as of scaling.py."""
    outlined()
    for i in range(size):
        at, k = np.uint64(base + i), np.uint64(i)
        d[k] = np.int32(np.int32(np.int32(levels[at]) * np.int32(factors[k])) + np.int32(half)) >> np.int32(shift)
        levels[at] = 0


@helper
def butterfly(d, first, step):
    """8.5.12.2: the one-dimensional transform of d[first + k * step], in place."""
    at0, at1, at2, at3 = first, first + np.uint64(step), first + np.uint64(2 * step), first + np.uint64(3 * step)
    d0, d1, d2, d3 = d[at0], d[at1], d[at2], d[at3]
    e0, e1 = np.int16(d0 + d2), np.int16(d0 - d2)
    e2, e3 = np.int16(np.int16(d1 >> 1) - d3), np.int16(d1 + np.int16(d3 >> 1))
    d[at0], d[at1], d[at2], d[at3] = np.int16(e0 + e3), np.int16(e1 + e2), np.int16(e1 - e2), np.int16(e0 - e3)


@helper
def rounded(value):
    """8.5.12.2: a residual sample from its 64ths."""
    return np.int16(np.int16(value + np.int16(32)) >> 6)


@helper
def transform_blocks(d, rest):
    """8.5.12.2: LANES blocks of scaled coefficients d into residual samples, rest int16[BLOCKS]."""
    outlined()
    for i in range(LANES):
        for y in range(4):
            butterfly(d, np.uint64(i + 4 * LANES * y), LANES)
    for i in range(4 * LANES):
        butterfly(d, np.uint64(i), 4 * LANES)
    for y in range(4):
        for i in range(LANES):
            at, to = np.uint64(ROW * y + i), np.uint64(ROW * y + 4 * i)
            rest[to] = rounded(d[at])
            rest[to + np.uint64(1)] = rounded(d[at + np.uint64(LANES)])
            rest[to + np.uint64(2)] = rounded(d[at + np.uint64(2 * LANES)])
            rest[to + np.uint64(3)] = rounded(d[at + np.uint64(3 * LANES)])


@helper
def luma_residual(levels, factors, is_16x16, d, rest):
    """8.5.1, 8.5.2: residual samples of a macroblock's 16 luma blocks; levels int16[LEVELS_PER_MB], which are cleared."""
    if is_16x16:
        luma_dc(levels, np.int64(factors[0]), d)
    scale_levels(levels, 0, factors, 8, 4, BLOCKS, d)
    if is_16x16:
        for i in range(16):
            d[i] = d[BLOCKS + i]
    transform_blocks(d, rest)


@helper
def chroma_residual(levels, factors, has_ac, d, rest):
    """8.5.4: residual samples of the 8 chroma blocks; without AC each block has one value."""
    outlined()
    chroma_dc(levels, factors, d)
    if has_ac:
        scale_levels(levels, BLOCKS, factors, 8, 4, BLOCKS, d)
        for i in range(8):
            d[i] = d[BLOCKS + i]
        transform_blocks(d, rest)
        return
    for i in range(32):
        value = rounded(d[BLOCKS + (i >> 2)])
        for y in range(4):
            rest[ROW * y + i] = value


@helper
def luma_dc(levels, factor, d):
    """8.5.10: scaled DC of an Intra_16x16 macroblock, from the first 16 levels to d[BLOCKS] and on."""
    outlined()
    c = d[BLOCKS:]
    for i in range(16):
        c[i] = levels[i]
    for step, stride in ((1, 4), (4, 1)):
        for i in range(0, 4 * stride, stride):
            a, b = c[i] + c[i + step], c[i] - c[i + step]
            e, f = c[i + 2 * step] + c[i + 3 * step], c[i + 2 * step] - c[i + 3 * step]
            c[i] = a + e
            c[i + step] = a - e
            c[i + 2 * step] = b - f
            c[i + 3 * step] = b + f
    for i in range(16):
        c[i] = (c[i] * factor + 32) >> 6


@helper
def chroma_dc(levels, factors, d):
    """8.5.11.1, 8.5.11.2: scaled DC of 4 Cb and 4 Cr blocks, to d[BLOCKS] and on; the levels are cleared."""
    for c in range(2):
        first, to = BLOCKS + 4 * c, BLOCKS + 4 * c
        c0, c1 = np.int64(levels[first]), np.int64(levels[first + 1])
        c2, c3 = np.int64(levels[first + 2]), np.int64(levels[first + 3])
        factor = np.int64(factors[4 * c])
        d[to] = ((c0 + c1 + c2 + c3) * factor) >> 5
        d[to + 1] = ((c0 - c1 + c2 - c3) * factor) >> 5
        d[to + 2] = ((c0 + c1 - c2 - c3) * factor) >> 5
        d[to + 3] = ((c0 - c1 - c2 + c3) * factor) >> 5
        for i in range(4):
            levels[first + i] = 0


@helper
def clip1(value):
    """5.7: Clip1 for 8 bits a sample."""
    return min(SAMPLE_MAX, max(0, value))


@helper
def add_luma(plane, at, stride, rest):
    """8.5.14: residual samples of 16 blocks added to the macroblock at plane[at], rows `stride` apart."""
    outlined()
    to, step = np.uint64(at), np.uint64(stride)
    for y in range(16):
        add16(plane, to, rest, np.uint64(ROW * (y & 3) + 16 * (y >> 2)))
        to += step


@helper
def add_chroma(plane, at, stride, rest, c):
    """8.5.14: the same for one chroma plane, c: 0 Cb, 1 Cr."""
    outlined()
    to, step = np.uint64(at), np.uint64(stride)
    for y in range(8):
        add8(plane, to, rest, np.uint64(ROW * (y & 3) + 16 * c + 8 * (y >> 2)))
        to += step


@helper
def add_block(plane, at, stride, rest, block):
    """8.5.14: the same for one 4x4 luma block, by its raster index."""
    outlined()
    for y in range(4):
        for x in range(4):
            to = np.uint64(at + y * stride + x)
            plane[to] = clip1(np.int64(plane[to]) + rest[np.uint64(ROW * y + 4 * block + x)])


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
def add_residual_8x8(plane, at, stride, levels, base, factors, d):
    """8.5.13: scaling and transform of an 8x8 block, added to plane[at] and on; its levels are cleared."""
    outlined()
    scale_levels(levels, base, factors, 32, 6, factors.size, d)
    for i in range(8):
        transform_8(d, 8 * i, 1)
    for j in range(8):
        transform_8(d, j, 8)
    for y in range(8):
        for x in range(8):
            to = np.uint64(at + y * stride + x)
            plane[to] = clip1(np.int64(plane[to]) + ((d[np.uint64(8 * y + x)] + 32) >> 6))
