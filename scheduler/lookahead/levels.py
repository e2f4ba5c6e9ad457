"""Mean and contrast: the samples that take the place of a frame's, so that both become those of another frame."""

from collections.abc import Sequence
from math import isqrt

import numpy as np

_SHIFT = 6  # contrast between two frames in 1 / 64
_MOST_CONTRAST = 4 << _SHIFT


def levels_between(reference: Sequence[int], frame: Sequence[int]) -> np.ndarray:
    """uint8[256]: what takes the place of each value of the reference: mean and standard deviation become the frame's.

    Arguments: samples by their value, as many of both frames.
    """
    (count, total, variance), (_, wanted, wanted_variance) = _moments(reference), _moments(frame)
    contrast = isqrt((wanted_variance << 2 * _SHIFT) // variance) if variance else 0
    contrast = min(contrast, _MOST_CONTRAST)
    mean = (wanted << _SHIFT) // count + (1 << (_SHIFT - 1))
    table = [((value * count - total) * contrast // count + mean) >> _SHIFT for value in range(256)]
    return np.array([min(255, max(0, value)) for value in table], np.uint8)


def _moments(counts: Sequence[int]) -> tuple[int, int, int]:
    """Number of samples, their sum, their variance times the square of their number."""
    count, total = sum(counts), sum(value * n for value, n in enumerate(counts))
    squares = sum(value * value * n for value, n in enumerate(counts))
    return count, total, count * squares - total * total
