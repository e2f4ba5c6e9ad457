"""Source frames in half the width and height, with half-sample planes, and in a quarter, and how sharp they are: what the
lookahead sees.

Not part of the standard. A sample of plane G is the mean of 2x2 source samples; those of b, h and j are the same a source
sample to the right, below, and both. So the sample at (x, y) / 2 of the half-size frame is the mean at (x, y) of the source.
"""
# Samples of 8 bits only: pairs of bytes.

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import Sample
from ..bundles import HalfSize
from ..decisions.lookahead import LOOK_PAD
from ..layout import COARSE_PAD
from ..search.search_centre import mean_of_16
from ..simd.lanes import make_shuffle
from ..simd.vector import average, load_u8x16, load_u8x32, splat_u8x16, store

_ROW_SLACK = 64  # samples behind a row that vectors may read
_even, _odd = (make_shuffle([*range(first, 32, 2)]) for first in (0, 1))


def half_size_arrays(mb_width: int, mb_height: int) -> HalfSize:
    """Arrays for a frame of so many macroblocks."""
    planes = np.empty((4, 8 * mb_height + 2 * LOOK_PAD, 8 * mb_width + 2 * LOOK_PAD), Sample)
    coarse = np.empty((4 * mb_height + 2 * COARSE_PAD, 4 * mb_width + 2 * COARSE_PAD), Sample)
    return HalfSize(planes, coarse, np.empty((mb_height, mb_width), Sample))


@helper
def _fill(samples, at, count, value):
    """`count` samples, at least sixteen, from samples[at] on become `value`."""
    sixteen = splat_u8x16(np.int64(value))
    for x in range(0, count - 15, 16):
        store(samples, at + x, sixteen)
    store(samples, at + count - 16, sixteen)


@helper
def _mean_row(luma, y, row):
    """Rounded means of rows y and y + 1 of luma, which continue beyond its edges -> row."""
    height, width = luma.shape
    a, b = min(y, height - 1) * width, min(y + 1, height - 1) * width
    x = 0
    while x + 16 <= width:
        store(row, x, average(load_u8x16(luma, a + x), load_u8x16(luma, b + x)))
        x += 16
    for i in range(x, width):
        row[i] = (np.int64(luma[min(y, height - 1), i]) + np.int64(luma[min(y + 1, height - 1), i]) + 1) >> 1
    _fill(row, width, row.size - width, row[width - 1])


@helper
def _halve(row, first, width, out, to):
    """Rounded means of samples first + 2 x and the next one of a row -> out[to + x], x < width rounded up to 16."""
    for x in range(0, width, 16):
        pairs = load_u8x32(row, first + 2 * x)
        store(out, to + x, average(_even(pairs, pairs), _odd(pairs, pairs)))


@helper
def _extend(plane, pad, y0, y1):
    """Continues rows [y0, y1) of a frame inside plane, which has a border of pad samples."""
    height, width = plane.shape
    for y in range(pad + y0, pad + y1):
        _fill(plane, y * width, pad, plane[y, pad])
        _fill(plane, y * width + width - pad, pad, plane[y, width - pad - 1])
    for y in range(pad):
        if y0 == 0:
            for x in range(width):
                plane[y, x] = plane[pad, x]
        if y1 == height - 2 * pad:
            for x in range(width):
                plane[height - 1 - y, x] = plane[height - pad - 1, x]


@closed_kernel
def half_size(luma, row0, row1, out):
    """Not part of the standard: the half-size frame of source luma, Sample[H, W] of display size -> out, HalfSize.

    Writes macroblock rows [row0, row1); the first and the last write the rows of the borders too. Rounding is that of means
    of two, first vertically. The frame continues beyond its right and lower edges up to whole macroblocks.
    """
    planes, coarse, tiny = out
    stride, plane_size = planes.shape[2], planes.shape[1] * planes.shape[2]
    width = stride - 2 * LOOK_PAD
    upper, lower = np.empty(2 * width + _ROW_SLACK, Sample), np.empty(2 * width + _ROW_SLACK, Sample)
    for y in range(8 * row0, 8 * row1):
        at = (LOOK_PAD + y) * stride + LOOK_PAD
        _mean_row(luma, 2 * y, upper)
        _mean_row(luma, 2 * y + 1, lower)
        _halve(upper, 0, width, planes, at)
        _halve(upper, 1, width, planes, plane_size + at)
        _halve(lower, 0, width, planes, 2 * plane_size + at)
        _halve(lower, 1, width, planes, 3 * plane_size + at)
    for plane in range(4):
        _extend(planes[plane], LOOK_PAD, 8 * row0, 8 * row1)
    coarse_stride = coarse.shape[1]
    for y in range(4 * row0, 4 * row1):
        above = (LOOK_PAD + 2 * y) * stride + LOOK_PAD
        for x in range(0, width, 16):
            store(upper, x, average(load_u8x16(planes, above + x), load_u8x16(planes, above + stride + x)))
        _halve(upper, 0, width // 2, coarse, (COARSE_PAD + y) * coarse_stride + COARSE_PAD)
    _extend(coarse, COARSE_PAD, 4 * row0, 4 * row1)
    for my in range(row0, row1):
        for mx in range(width // 8):
            tiny[my, mx] = mean_of_16(coarse, COARSE_PAD + 4 * mx, COARSE_PAD + 4 * my)


@closed_kernel
def sharpness(luma):
    """Not part of the standard: sharpness of luma, Sample[H, W]. Twice what samples differ from the mean of their neighbours
    across and down: the sum over all samples but those at the edges.
    """
    height, width = luma.shape
    total = np.int64(0)
    for y in range(1, height - 1):
        of_row = np.int32(0)
        for x in range(1, width - 1):
            middle = 2 * np.int32(luma[y, x])
            across = middle - np.int32(luma[y, x - 1]) - np.int32(luma[y, x + 1])
            down = middle - np.int32(luma[y - 1, x]) - np.int32(luma[y + 1, x])
            of_row += np.int32(abs(across) + abs(down))
        total += of_row
    return total
