"""Converts RGB frames of display size, of any layout and type, to I420 in BT.709 limited range: twin of
cuda_src/source/convert.py.

Formulas and roundings are in the docstring of cuda_src/source/convert.py; both devices give the same samples. Each row is
first gathered to contiguous colours of 8 bits, from which luma and chroma are computed.
"""
# Samples of 8 bits only: colours of 8 bits.

from typing import Any, NamedTuple

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import SAMPLE_MIDDLE, Sample
from ..layout import RGB_DTYPES

UINT8, FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = RGB_DTYPES
# Scaled samples outside of these are not those of the range that was assumed: a tenth beyond 0..255
LEAST_SAMPLE, MOST_SAMPLE = np.float32(-25.5), np.float32(280.5)
_TO_FLOAT16 = np.float32(2.0**112)  # bits of a float16 at the place of a float32's are too small by this factor


class HostRgb(NamedTuple):
    """Samples of an RGB frame on the host. Distances are in elements and may be negative."""

    samples: Any  # [n], contiguous memory that holds the frame: uint8, uint16 (float16, bfloat16), float32 or float64
    red: int  # index of the first sample of each colour
    green: int
    blue: int
    step: int  # from column to column
    pitch: int  # from row to row
    low: Any  # float32: the value of black
    scale: Any  # float32: 255 / (value of white - low)
    outside: Any  # int32[1] out: 1 if a sample is far outside of the range, or no number


@helper
def _copy(line, colour, width):
    for x in range(width):
        colour[x] = line[x]


@helper
def _gather(rgb, row, colours, width):
    """Row `row` as contiguous colours: [3, >= width]."""
    line, step = rgb.samples, rgb.step
    at = row * rgb.pitch
    r, g, b = at + rgb.red, at + rgb.green, at + rgb.blue
    if step == 3 and g == r + 1 and b == r + 2:
        pixels = line[r : r + 3 * width]
        for x in range(width):
            colours[0, x], colours[1, x], colours[2, x] = pixels[3 * x], pixels[3 * x + 1], pixels[3 * x + 2]
    elif step == 4 and g == r + 1 and b == r + 2:
        pixels = line[r : r + 4 * width - 1]
        for x in range(width):
            colours[0, x], colours[1, x], colours[2, x] = pixels[4 * x], pixels[4 * x + 1], pixels[4 * x + 2]
    elif step == 1:
        _copy(line[r : r + width], colours[0], width)
        _copy(line[g : g + width], colours[1], width)
        _copy(line[b : b + width], colours[2], width)
    else:
        for x in range(width):
            colours[0, x], colours[1, x], colours[2, x] = line[r + step * x], line[g + step * x], line[b + step * x]


@helper
def _quantise(values, low, scale, width, out):
    """float32[n] to uint8[n]; returns whether a sample is far outside of the range, or no number."""
    outside = False
    for x in range(width):
        scaled = (values[x] - low) * scale
        outside |= not (scaled >= LEAST_SAMPLE and scaled <= MOST_SAMPLE)
        scaled = scaled if scaled > np.float32(0) else np.float32(0)
        scaled = scaled if scaled < np.float32(255) else np.float32(255)
        out[x] = Sample(np.int32(scaled + np.float32(0.5)))
    return outside


@helper
def _of_float16(bits, width, words, values):
    """float16 as bits to float32; words: uint32 view of `values`."""
    for x in range(width):
        words[x] = (np.uint32(bits[x]) & np.uint32(0x7FFF)) << np.uint32(13)
    for x in range(width):
        magnitude = values[x] * _TO_FLOAT16
        values[x] = -magnitude if bits[x] >= np.uint16(0x8000) else magnitude
    for x in range(width):
        if (bits[x] & np.uint16(0x7C00)) == np.uint16(0x7C00):  # infinite, or no number
            words[x] |= np.uint32(0x7F800000)


@helper
def _of_bfloat16(bits, width, words):
    """bfloat16 as bits to float32; words: uint32 view of the values."""
    for x in range(width):
        words[x] = np.uint32(bits[x]) << np.uint32(16)


@helper
def _luma(colours, width, out):
    r, g, b = colours[0], colours[1], colours[2]
    for x in range(width):
        weighted = np.int32(11966) * np.int32(r[x]) + np.int32(40254) * np.int32(g[x]) + np.int32(4064) * np.int32(b[x])
        out[x] = Sample((weighted + np.int32((16 << 16) + (1 << 15))) >> np.int32(16))


@helper
def _chroma(upper, lower, width, u, v):
    """A row of chroma from two rows of colours, whose columns are 2 * width."""
    r, g, b = upper[0], upper[1], upper[2]
    r1, g1, b1 = lower[0], lower[1], lower[2]
    for x in range(width):
        red = np.int32(r[2 * x]) + np.int32(r[2 * x + 1]) + np.int32(r1[2 * x]) + np.int32(r1[2 * x + 1])
        green = np.int32(g[2 * x]) + np.int32(g[2 * x + 1]) + np.int32(g1[2 * x]) + np.int32(g1[2 * x + 1])
        blue = np.int32(b[2 * x]) + np.int32(b[2 * x + 1]) + np.int32(b1[2 * x]) + np.int32(b1[2 * x + 1])
        cb = np.int32(-6596) * red - np.int32(22188) * green + np.int32(28784) * blue
        cr = np.int32(28784) * red - np.int32(26145) * green - np.int32(2639) * blue
        u[x] = Sample((cb + np.int32((SAMPLE_MIDDLE << 18) + (1 << 17))) >> np.int32(18))
        v[x] = Sample((cr + np.int32((SAMPLE_MIDDLE << 18) + (1 << 17))) >> np.int32(18))


@helper
def _store(colours, row, width, height, out):
    """Rows 2 row and 2 row + 1 of luma, and one of chroma. colours: uint8[2, 3, width + 1]."""
    for k in range(3):
        colours[0, k, width], colours[1, k, width] = colours[0, k, width - 1], colours[1, k, width - 1]
    _luma(colours[0], width, out.y[2 * row])
    if 2 * row + 1 < height:
        _luma(colours[1], width, out.y[2 * row + 1])
    _chroma(colours[0], colours[1], (width + 1) // 2, out.u[row], out.v[row])


@closed_kernel
def _load_uint8(rgb, width, height, row0, row1, out):
    colours = np.empty((2, 3, width + 1), np.uint8)
    for row in range(row0, row1):
        for j in range(2):
            _gather(rgb, min(2 * row + j, height - 1), colours[j], width)
        _store(colours, row, width, height, out)


@closed_kernel
def _load_float16(rgb, width, height, row0, row1, out):
    colours, bits = np.empty((2, 3, width + 1), np.uint8), np.empty((3, width), np.uint16)
    values, outside = np.empty(width, np.float32), False
    words = values.view(np.uint32)
    for row in range(row0, row1):
        for j in range(2):
            _gather(rgb, min(2 * row + j, height - 1), bits, width)
            for k in range(3):
                _of_float16(bits[k], width, words, values)
                outside |= _quantise(values, rgb.low, rgb.scale, width, colours[j, k])
        _store(colours, row, width, height, out)
    if outside:
        rgb.outside[0] = 1


@closed_kernel
def _load_bfloat16(rgb, width, height, row0, row1, out):
    colours, bits = np.empty((2, 3, width + 1), np.uint8), np.empty((3, width), np.uint16)
    values, outside = np.empty(width, np.float32), False
    words = values.view(np.uint32)
    for row in range(row0, row1):
        for j in range(2):
            _gather(rgb, min(2 * row + j, height - 1), bits, width)
            for k in range(3):
                _of_bfloat16(bits[k], width, words)
                outside |= _quantise(values, rgb.low, rgb.scale, width, colours[j, k])
        _store(colours, row, width, height, out)
    if outside:
        rgb.outside[0] = 1


@closed_kernel
def _load_float(rgb, width, height, row0, row1, out):
    """float32 and float64, which is rounded to float32 first."""
    colours, values, outside = np.empty((2, 3, width + 1), np.uint8), np.empty((3, width), np.float32), False
    for row in range(row0, row1):
        for j in range(2):
            _gather(rgb, min(2 * row + j, height - 1), values, width)
            for k in range(3):
                outside |= _quantise(values[k], rgb.low, rgb.scale, width, colours[j, k])
        _store(colours, row, width, height, out)
    if outside:
        rgb.outside[0] = 1


_LOADERS = dict(zip(RGB_DTYPES, (_load_uint8, _load_float16, _load_bfloat16, _load_float, _load_float)))


def load_rgb(dtype, rgb, width, height, row0, row1, out):
    """Not part of the standard: RGB to BT.709 limited range, as the docstring of cuda_src/source/convert.py says.

    dtype: one of RGB_DTYPES, of the samples; rgb: HostRgb of width x height; row0, row1: of chroma; out: Planes, each
    uint8 and at least of display size, of which the display area is written.
    """
    _LOADERS[dtype](rgb, width, height, row0, row1, out)
