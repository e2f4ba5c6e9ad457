"""Brightness of macroblocks: whether two frames show the same picture, where noise hides it from any prediction."""

import numpy as np

from ...cpu_simd.layout import COARSE_PAD

_SAMPLES = 4  # of a macroblock in a quarter-size frame, across and down
_SHIFT = 10  # contrast between two frames in 1 / 1024
_MOST_CONTRAST = 2  # and its inverse: a fade changes by no more from one frame to the next
_SATD = 2  # of a half-size block whose samples differ by 1 / 16 all alike
_SHARE = 6  # the same picture differs by that part of the costs at most: noise by 1 / 10, other scenes by 1 / 4 and more


def brightness(coarse: np.ndarray) -> np.ndarray:
    """int64[mb_height, mb_width]: the sum of the quarter-size samples of each macroblock, those at the border left out
    if there are others.

    coarse: uint8, a frame of HalfSize with its border.
    """
    samples = coarse[COARSE_PAD:-COARSE_PAD, COARSE_PAD:-COARSE_PAD]
    height, width = samples.shape[0] // _SAMPLES, samples.shape[1] // _SAMPLES
    sums = samples.reshape(height, _SAMPLES, width, _SAMPLES).sum((1, 3), np.int64)
    return sums[1:-1, 1:-1] if height > 2 and width > 2 else sums


def is_same_picture(reference: np.ndarray, frame: np.ndarray, cost: int) -> bool:
    """Whether the macroblocks of two frames are equally bright, apart from one change of brightness and contrast for all:
    by far less than what prediction leaves, so that this is noise and no other content.

    reference, frame: of `brightness`; cost: of the frame by intra prediction, a sum over the same macroblocks.
    """
    a, b, count = reference.reshape(-1), frame.reshape(-1), reference.size
    deviations = a * count - int(a.sum())
    variance, common = int((deviations * a).sum()), int((deviations * b).sum())  # both times count squared
    one = 1 << _SHIFT
    contrast = (common << _SHIFT) // variance if variance else one
    contrast = min(max(contrast, one // _MOST_CONTRAST), one * _MOST_CONTRAST)
    differences = (b << _SHIFT) - contrast * a
    differences -= int(differences.sum()) // count
    return _SATD * _SHARE * int(np.abs(differences).sum()) <= cost << _SHIFT
