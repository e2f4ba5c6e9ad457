"""Colours of decoded pictures: from Y, Cb, Cr to RGB or grey by the stream's matrix and range (E.2.1), in integers.

    R = (ky (Y - black) + kr (Cr - 128) + 2 ** 19) >> 20                          and so B, by kb and Cb
    G = (ky (Y - black) + kgb (Cb - 128) + kgr (Cr - 128) + 2 ** 19) >> 20        clipped to 0..255

The k are the factors of the matrix and the range, rounded to 2 ** -20. A chroma sample counts for the four luma samples that
it lies beside, as in FFmpeg's conversion of such pictures. Grey is R, G, B without chroma.
"""
# Samples of 8 bits only: factors of colours of 8 bits.

from typing import Any, NamedTuple

import numpy as np

from ..jit.kernel import closed_kernel, helper
from ..standard.sample_format import SAMPLE_MAX, SAMPLE_MIDDLE
from .errors import Unsupported
from .picture import Frame

# Table E-5: Kr and Kb of the matrices that are linear in R, G, B
MATRICES = {1: (0.2126, 0.0722), 4: (0.3, 0.11), 5: (0.299, 0.114), 6: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
UNSPECIFIED = 2
_OTHERS = {0: "RGB", 8: "YCgCo", 10: "BT.2020 with constant luminance", 11: "Y'D'zD'x", 14: "ICtCp"}
_OF_UNSPECIFIED = 6  # BT.601: FFmpeg's choice where a stream says nothing

FORMATS = ("rgb", "bgr", "gray", "planes")


class Planes(NamedTuple):
    """Samples as they are decoded: uint8[..., H, W], and uint8[..., H / 2, W / 2] of chroma."""

    y: np.ndarray
    u: np.ndarray
    v: np.ndarray


def factors(matrix: int, full_range: bool) -> np.ndarray:
    """int32[6]: black, ky, kr, kgb, kgr, kb. Unsupported for a matrix that is not linear."""
    if matrix in _OTHERS:
        raise Unsupported(f"RGB of samples with matrix_coefficients {matrix} ({_OTHERS[matrix]}): say colormatrix=")
    red, blue = MATRICES.get(matrix, MATRICES[_OF_UNSPECIFIED])
    green = 1 - red - blue
    luma, chroma = (1.0, 1.0) if full_range else (255 / 219, 255 / 224)
    values = (luma, 2 * (1 - red) * chroma, -2 * blue * (1 - blue) / green * chroma, -2 * red * (1 - red) / green * chroma,
              2 * (1 - blue) * chroma)  # fmt: skip
    return np.array([0 if full_range else 16, *(round((1 << 20) * value) for value in values)], np.int32)


@helper
def _clipped(value):
    value = value >> np.int32(20)
    value = value if value > np.int32(0) else np.int32(0)
    return np.uint8(value if value < np.int32(SAMPLE_MAX) else np.int32(SAMPLE_MAX))


@helper
def _twice(samples, pairs, half):
    """Each sample of a row twice; pairs: uint16[half], in whose memory they lie then."""
    for x in range(half):
        pairs[x] = np.uint16(samples[x]) * np.uint16(0x0101)


@helper
def _one_term(luma, chroma, ky, kc, rest, out, width):
    """A row of red or blue. rest: what is added to all."""
    for x in range(width):
        out[x] = _clipped(ky * np.int32(luma[x]) + kc * np.int32(chroma[x]) + rest)


@helper
def _two_terms(luma, cb, cr, k, rest, out, width):
    """A row of green."""
    for x in range(width):
        out[x] = _clipped(k[0] * np.int32(luma[x]) + k[1] * np.int32(cb[x]) + k[2] * np.int32(cr[x]) + rest)


@helper
def _interleave(red, green, blue, out, width):
    for x in range(width):
        out[3 * x], out[3 * x + 1], out[3 * x + 2] = red[x], green[x], blue[x]


@helper
def _colours(luma, cb, cr, k, red, green, blue, width):
    """Rows of the colours of a row of luma; cb, cr: as wide."""
    rest, middle = np.int32(1 << 19) - k[0] * k[1], np.int32(SAMPLE_MIDDLE)
    _one_term(luma, cr, k[1], k[2], rest - middle * k[2], red, width)
    _two_terms(luma, cb, cr, (k[1], k[3], k[4]), rest - middle * (k[3] + k[4]), green, width)
    _one_term(luma, cb, k[1], k[5], rest - middle * k[5], blue, width)


@closed_kernel
def _rgb_rows(y, u, v, k, first, out):
    """uint8[H, 3 W] of planes; first: the colour of out[:, 0], 0 red or 2 blue."""
    height, width = y.shape
    u_pairs, v_pairs = np.empty(width // 2, np.uint16), np.empty(width // 2, np.uint16)
    cb, cr, colours = u_pairs.view(np.uint8), v_pairs.view(np.uint8), np.empty((3, width), np.uint8)
    for row in range(height):
        if row % 2 == 0:
            _twice(u[row // 2], u_pairs, width // 2)
            _twice(v[row // 2], v_pairs, width // 2)
        _colours(y[row], cb, cr, k, colours[first], colours[1], colours[2 - first], width)
        _interleave(colours[0], colours[1], colours[2], out[row], width)


@closed_kernel
def _rgb_planes(y, u, v, k, first, out):
    """uint8[3, H, W] of planes; first: the colour of out[0]."""
    height, width = y.shape
    u_pairs, v_pairs = np.empty(width // 2, np.uint16), np.empty(width // 2, np.uint16)
    cb, cr = u_pairs.view(np.uint8), v_pairs.view(np.uint8)
    for row in range(height):
        if row % 2 == 0:
            _twice(u[row // 2], u_pairs, width // 2)
            _twice(v[row // 2], v_pairs, width // 2)
        _colours(y[row], cb, cr, k, out[first, row], out[1, row], out[2 - first, row], width)


@closed_kernel
def _grey_rows(y, k, out):
    """uint8[H, W]: luma as grey."""
    height, width = y.shape
    for row in range(height):
        _one_term(y[row], y[row], k[1], np.int32(0), np.int32(1 << 19) - k[0] * k[1], out[row], width)


class Converter:
    """Pictures into arrays of one form. form: of FORMATS; channels_first: colours before rows, not after columns."""

    def __init__(self, form: str, channels_first: bool, matrix: int, full_range: bool) -> None:
        self._form, self._channels_first = form, channels_first
        self._k = factors(matrix, full_range) if form in ("rgb", "bgr") else factors(UNSPECIFIED, full_range)

    def empty(self, count: int, height: int, width: int) -> Any:
        """uint8[count, H, W, 3], [count, 3, H, W], [count, H, W], or Planes."""
        if self._form == "planes":
            halves = (count, height // 2, width // 2)
            return Planes(np.empty((count, height, width), np.uint8), np.empty(halves, np.uint8), np.empty(halves, np.uint8))
        if self._form == "gray":
            return np.empty((count, height, width), np.uint8)
        return np.empty((count, 3, height, width) if self._channels_first else (count, height, width, 3), np.uint8)

    def convert(self, frame: Frame, out: Any, index: int) -> None:
        """Fill out[index], of `empty`."""
        if self._form == "planes":
            for plane, samples in zip(out, (frame.y, frame.u, frame.v)):
                plane[index] = samples
        elif self._form == "gray":
            _grey_rows(frame.y, self._k, out[index])
        else:
            first = 2 if self._form == "bgr" else 0
            if self._channels_first:
                _rgb_planes(frame.y, frame.u, frame.v, self._k, first, out[index])
            else:
                _rgb_rows(frame.y, frame.u, frame.v, self._k, first, out[index].reshape(frame.height, -1))

    @staticmethod
    def copy(out: Any, source: int, index: int) -> None:
        """Fill out[index] with out[source]."""
        for array in out if isinstance(out, tuple) else (out,):
            array[index] = array[source]


def load_converters(frame: Frame) -> None:
    """Convert a frame in each way."""
    for form in FORMATS:
        for channels_first in (False, True):
            converter = Converter(form, channels_first, UNSPECIFIED, False)
            converter.convert(frame, converter.empty(1, frame.height, frame.width), 0)
