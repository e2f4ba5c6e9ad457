"""PSNR, SSIM and the error of each macroblock of decoded frames beside their source."""

from typing import NamedTuple

import numpy as np

from ..encoder.statistics import psnr, ssim

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]


class Quality(NamedTuple):
    """psnr: Y, Cb, Cr, all samples, in dB; ssim: of luma; error: squared error of luma of each macroblock, uint32."""

    psnr: tuple[float, float, float, float]
    ssim: float
    error: np.ndarray


def compare(decoded: Planes, source: Planes, left: int, top: int, mb_width: int, mb_height: int) -> Quality:
    """Quality of a frame by its cropped planes; left, top: the samples that are cropped there, which count no error.

    The source has the size of the decoded planes, or is one sample smaller where the encoder made the size even: its last
    row and column are repeated.
    """
    grown = [_grown(plane, like) for plane, like in zip(source, decoded)]
    squares = [_squares(a, b) for a, b in zip(decoded, grown)]
    sums = [int(square.sum(dtype=np.int64)) for square in squares]
    sizes = [plane.size for plane in decoded]
    padded = np.zeros((16 * mb_height, 16 * mb_width), np.uint16)
    height, width = decoded[0].shape
    padded[top : top + height, left : left + width] = squares[0]
    rows = padded.reshape(mb_height, 16, 16 * mb_width).sum(axis=1, dtype=np.uint32)
    error = rows.reshape(mb_height, mb_width, 16).sum(axis=2, dtype=np.uint32)
    ratios = [psnr(total, size) for total, size in zip([*sums, sum(sums)], [*sizes, sum(sizes)])]
    return Quality((ratios[0], ratios[1], ratios[2], ratios[3]), ssim(decoded[0], grown[0]), error.ravel())


def _squares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared differences, uint16: those of 8 bits fit, and the lower half of a product does not depend on the signs."""
    difference = first.astype(np.int16) - second
    return (difference * difference).view(np.uint16)


def _grown(plane: np.ndarray, like: np.ndarray) -> np.ndarray:
    rows, columns = like.shape[0] - plane.shape[0], like.shape[1] - plane.shape[1]
    return np.pad(plane, ((0, rows), (0, columns)), mode="edge") if rows or columns else plane
