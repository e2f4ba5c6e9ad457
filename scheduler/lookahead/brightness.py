"""Brightness and contrast of frames: whether two show the same picture, where noise hides it from any prediction, and the
samples that take the place of a frame's, so that its mean and contrast become those of another frame.
"""

from collections.abc import Sequence
from math import isqrt

import numpy as np

from ...cpu_simd.layout import COARSE_PAD
from ...standard.sample_format import SAMPLE_MAX, Sample

_SAMPLES = 4  # of a macroblock in a quarter-size frame, across and down
_SHIFT = 10  # contrast between two frames in 1 / 1024
_MOST_CONTRAST = 2  # and its inverse: a fade changes by no more from one frame to the next
_SATD = 2  # of a half-size block whose samples differ by 1 / 16 all alike
_LEAST = 12  # macroblocks: any two pictures of fewer agree by a suitable contrast
_SHARE = 6  # the same picture differs by that part of the costs at most: noise by 1 / 10, other scenes by 1 / 4 and more
_LEVELS_SHIFT = 6  # of levels_between: contrast in 1 / 64
_MOST_LEVELS_CONTRAST = 4 << _LEVELS_SHIFT
_VALUES = np.arange(SAMPLE_MAX + 1, dtype=np.int64)
Counts = Sequence[int] | np.ndarray  # samples by their value


def brightness(coarse: np.ndarray) -> np.ndarray:
    """int64[mb_height, mb_width]: the sum of the quarter-size samples of each macroblock, those at the border left out
    if there are others.

    coarse: a frame of HalfSize with its border.
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
    if count < _LEAST:
        return False
    deviations = a * count - int(a.sum())
    variance, common = int((deviations * a).sum()), int((deviations * b).sum())  # both times count squared
    one = 1 << _SHIFT
    contrast = (common << _SHIFT) // variance if variance else one
    contrast = min(max(contrast, one // _MOST_CONTRAST), one * _MOST_CONTRAST)
    differences = (b << _SHIFT) - contrast * a
    differences -= int(differences.sum()) // count
    return _SATD * _SHARE * int(np.abs(differences).sum()) <= cost << _SHIFT


def levels_between(reference: Counts, frame: Counts) -> np.ndarray:
    """What takes the place of each value of the reference, Sample[SAMPLE_MAX + 1]: mean and deviation become the frame's.

    Arguments: samples by their value, as many of both frames.
    """
    (count, total, variance), (_, wanted, wanted_variance) = _moments(reference), _moments(frame)
    contrast = isqrt((wanted_variance << 2 * _LEVELS_SHIFT) // variance) if variance else 0
    contrast = min(contrast, _MOST_LEVELS_CONTRAST)
    mean = (wanted << _LEVELS_SHIFT) // count + (1 << (_LEVELS_SHIFT - 1))
    table = ((_VALUES * count - total) * contrast // count + mean) >> _LEVELS_SHIFT
    return np.clip(table, 0, SAMPLE_MAX).astype(Sample)


def _moments(counts: Counts) -> tuple[int, int, int]:
    """Number of samples, their sum, their variance times the square of their number, which may be beyond 64 bits."""
    by_value = np.asarray(counts, np.int64)
    count, total, squares = int(by_value.sum()), int(by_value @ _VALUES), int(by_value @ _VALUES**2)
    return count, total, count * squares - total * total
