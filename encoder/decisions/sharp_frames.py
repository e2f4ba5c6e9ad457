"""Frames that an earlier encode coded finer than those around them: runs of B frames end there.

Not part of the standard; pure functions of integers. Material that was coded before has P frames that are sharper than the B
frames between them. They are the better references again: they hold more of the picture, and the B frames between them were
predicted from them.
"""

from collections.abc import Sequence

LEAST = 3  # frames: among fewer no frame stands out
_CONTRAST = 64  # the sharpest frame is sharper than the mean by one part of so many at least
_PEAK = 40  # a sharp frame is sharper than each of its neighbours by one part of so many
_SHARE = 7, 10  # of what the sharpest frame is above the mean, which a sharp frame has at least


def last_sharp(values: Sequence[int], count: int) -> int:
    """The last of the next frames that is sharp, counted from 1; 0: none is.

    values: sharpness of frames, the next `count` ones behind one or more. What changes from as many frames before to the next
    ones is taken for a trend, without which frames are compared.
    """
    if count < LEAST:
        return 0
    total, unit = sum(values[-count:]), 2 * count * count
    change = total - sum(values[:count]) if len(values) == 2 * count else 0
    levels = [unit * value - change * (2 * k - 1 - count) for k, value in enumerate(values[-count - 1 :])]
    mean = 2 * count * total
    above = max(levels[1:]) - mean
    if above * _CONTRAST <= mean:
        return 0
    for k in range(count, 0, -1):
        neighbours = max(levels[k - 1], levels[k + 1] if k < count else 0)
        if (levels[k] - mean) * _SHARE[1] >= above * _SHARE[0] and levels[k] * _PEAK > neighbours * (_PEAK + 1):
            return k
    return 0
