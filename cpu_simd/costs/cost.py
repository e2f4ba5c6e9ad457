"""Cost terms of decisions: SAD and SATD of strips of four 4x4 blocks, predicted at quarter samples."""

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ..decisions.common import SATD
from ..simd.lanes import hadamard_rows
from ..simd.vector import absolute, add, average, load_u8x16, load_u16x16, max_s, sub, widen

# Table 8-12: row 4 * fy + fx has the two stored samples whose rounded average is the sample at (fx, fy) quarters.
# A row is (plane, dx, dy) twice, planes G, b, h, j being 0..3; a sample that is stored itself is listed twice.
_G, _B, _H, _J = (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)
_RIGHT, _BELOW, _M, _S = (0, 1, 0), (0, 0, 1), (2, 1, 0), (1, 0, 1)
QUARTER_SAMPLES = np.array(
    [
        [_G + _G, _G + _B, _B + _B, _B + _RIGHT],  # G a b c
        [_G + _H, _B + _H, _B + _J, _B + _M],  #     d e f g
        [_H + _H, _H + _J, _J + _J, _J + _M],  #     h i j k
        [_H + _BELOW, _H + _S, _J + _S, _M + _S],  # n p q r
    ],
    np.int64,
).reshape(16, 6)

# A source macroblock, and the planes that predict it at quarter samples.
Target = namedtuple("Target", (
    "current",  # its luma: int16[256], or Layers (block_costs.py)
    "luma",  # Sample[..., 4, H + 2 pad, W + 2 pad], planes G, b, h, j
    "offsets",  # int64[2, 16], see quarter_offsets
))  # fmt: skip


@helper
def quarter_offsets(plane_size, stride, samples, offsets):
    """offsets: int64[2, 16], from the integer sample's offset in plane G to the two samples of QUARTER_SAMPLES."""
    for f in range(16):
        for i in range(2):
            plane, dx, dy = samples[f, 3 * i], samples[f, 3 * i + 1], samples[f, 3 * i + 2]
            offsets[i, f] = plane * plane_size + dy * stride + dx


@helper
def strip_satd(d0, d1, d2, d3):
    """SATD of a row of four 4x4 blocks from their four rows of differences (u16x16), as sixteen partial sums.

    SATD is half the sum of the absolute Hadamard coefficients. Since |a + b| + |a - b| = 2 max(|a|, |b|), the last
    butterfly is a maximum, and the half is exact.
    """
    d0, d1, d2, d3 = hadamard_rows(d0), hadamard_rows(d1), hadamard_rows(d2), hadamard_rows(d3)
    even = max_s(absolute(add(d0, d1)), absolute(add(d2, d3)))
    odd = max_s(absolute(sub(d0, d1)), absolute(sub(d2, d3)))
    return add(even, odd)


@helper
def strip_sad(d0, d1, d2, d3):
    """SAD of a row of four 4x4 blocks from their four rows of differences (u16x16), as sixteen partial sums."""
    return add(add(absolute(d0), absolute(d1)), add(absolute(d2), absolute(d3)))


@helper
def row_16(luma, a, b, at):
    """u16x16: rounded average of the sixteen samples at offsets a + at and b + at of luma."""
    return widen(average(load_u8x16(luma, a + at), load_u8x16(luma, b + at)))


@helper
def strip_16(current, strip, luma, a, b, stride, metric):
    """Distortion of strip 0..3 (16x4) of a macroblock predicted at offsets a, b of the strip: sixteen partial sums.

    current: int16[256], the source macroblock.
    """
    at = strip * 64
    d0 = sub(row_16(luma, a, b, 0), load_u16x16(current, at))
    d1 = sub(row_16(luma, a, b, stride), load_u16x16(current, at + 16))
    d2 = sub(row_16(luma, a, b, 2 * stride), load_u16x16(current, at + 32))
    d3 = sub(row_16(luma, a, b, 3 * stride), load_u16x16(current, at + 48))
    if metric == SATD:
        return strip_satd(d0, d1, d2, d3)
    return strip_sad(d0, d1, d2, d3)
