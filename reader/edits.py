"""Edit lists: which samples are shown, and when (ISO/IEC 14496-12, 8.6.5 and 8.6.6)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..mp4.reader import EMPTY, Edit
from ..standard.bits import BitstreamError

_MOST_SHOWN = 16  # times that samples may be shown, on average: a small file takes little memory


class Shown(NamedTuple):
    """Samples in the order in which they are shown."""

    samples: np.ndarray  # int64[n], place in coding order
    times: np.ndarray  # int64[n], in the track's units
    durations: np.ndarray  # int64[n], until the next sample or the end


def presentation(edits: Sequence[Edit], scale: Fraction, times: np.ndarray, durations: np.ndarray) -> Shown:
    """What an edit list shows; all samples if there is none. BitstreamError where it shows far more than there is.

    scale: units of the track in one of the movie; times, durations: int64[n], composition times and durations of the samples
    in coding order. An edit shows the samples whose composition time lies in it, and the first of them begins with the edit,
    as FFmpeg has it. One of duration 0 ends with the media, as in files of fragments.
    """
    order = np.argsort(times, kind="stable").astype(np.int64)
    in_order = times[order]
    ends = np.append(in_order[1:], in_order[-1:] + durations[order[-1:]])
    if not edits or not len(order):
        return Shown(order, in_order, ends - in_order)
    shown, start, total = [], Fraction(0), 0
    for edit in edits:
        stop = edit.media_time + edit.duration * scale if edit.duration else Fraction(int(ends[-1]))
        if edit.media_time != EMPTY:
            first, last = np.searchsorted(in_order, (edit.media_time, math.ceil(stop))).tolist()
            total += last - first
            if total > _MOST_SHOWN * len(order):
                raise BitstreamError(f"the edit list shows samples more than {_MOST_SHOWN} times")
            if first < last:
                begins, until = in_order[first:last], np.minimum(ends[first:last], math.ceil(stop))
                shift = math.floor(start + Fraction(1, 2)) - int(begins[0])
                shown.append(Shown(order[first:last], begins + shift, until - begins))
        start += edit.duration * scale
    return Shown(*(np.concatenate([samples[k] for samples in shown] or [np.zeros(0, np.int64)]) for k in range(3)))
