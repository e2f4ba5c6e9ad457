"""QPs at an average bit rate: those of a rate factor, shifted so that the frames ahead have the bits that are left."""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ..settings.config import Config
from .adaptive_quantisation import shifted
from .fixed_point import LOG2_SHIFT, log2_fixed, log2_of
from .size_feedback import RATE_LAG
from .size_model import SizeModel

_ONE = 1 << LOG2_SHIFT
_QPS = 51
_MOST_STEP = 4  # of the shift from a frame to the next one
_CHANGE = 5  # QPs at once for a rate that is twice or half as large; the model, which has not seen such, would take more
_FIRST_STEP, _FIRST_FRAMES = 8, 2 * RATE_LAG  # until the model has learned
_BEYOND = 12  # QPs that macroblocks differ from the QP of their frame
_INERTIA = 12  # of the model
_REPAID = 3  # seconds in which a deviation is made good, at ratetol 1
_LEAST, _MOST = 8, 4  # bits of the frames ahead: one part of so many, and so many times, those that the rate gives them


class BitrateControl:
    """Shifts the QPs of frames in coding order. A function of the source and of the sizes of all frames up to n - RATE_LAG
    (size_feedback.py); frames after these have the sizes that SizeModel predicts. All numbers are integers or exact.
    """

    def __init__(self, config: Config) -> None:
        self._each = Fraction(1000 * config.rate.bitrate) / config.video.fps  # bits of a frame
        self._qpmin, self._qpmax, self._planned = config.rate.qpmin, config.rate.qpmax, config.planned_frames
        self._repaid = max(1, round(_REPAID * Fraction(config.rate.ratetol) * config.video.fps))  # frames
        self._has_buffer = config.hrd.buffer is not None
        self._model = SizeModel(256 * config.coding.n_mb, _INERTIA)
        self._is_first_pass = config.rate.pass_ == 1
        self._waiting: deque[FrameSpec] = deque()  # with QPs, sizes unknown
        self._planned_waiting: deque[FrameSpec] = deque()  # the same as they came
        self._unshifted = 0  # bits of the frames whose sizes are known, as they would be without a shift
        self._bits = 0  # of the frames whose sizes are known
        self._count = 0  # frames with QPs
        self._carried = Fraction(0)  # bits that those frames could have beside what the rate gives them: of rates before
        self._changed = self._each  # the rate from the next frame on
        self._quick = 0  # steps of the shift that a change of the rate allows its first frame
        self._unknown = 0  # frames until the sizes of those after a change are known
        self._shift = 0

    def assign_qp(
        self, spec: FrameSpec, sizes: Sequence[int], ahead: Sequence[FrameSpec]
    ) -> tuple[FrameSpec, tuple[FrameSpec, ...]]:
        """The next frame with its QP, and for a buffer those that follow it with theirs.

        sizes: bits of the frames that have become known; ahead: frames that follow; fewer than planned: the stream ends.
        """
        for size in sizes:
            with_qp, planned = self._waiting.popleft(), self._planned_waiting.popleft()
            self._model.learn(with_qp, size)
            self._bits += size
            if self._is_first_pass:
                self._unshifted += _unshifted(size, with_qp.qp - planned.qp)
        waiting = self._planned_waiting if self._is_first_pass else self._waiting
        start, frames = len(waiting), (*waiting, spec, *ahead)
        least, bits = self._at_shifts(frames, 0 if self._is_first_pass else start)
        if self._is_first_pass:
            # the one shift with which the whole stream would have its rate: QPs are near to those of the second pass
            budget, totals = int(self._each * (self._count + 1 + len(ahead))), bits.sum(axis=1)
            if self._unshifted:
                shifts = np.arange(least, least + len(totals))
                totals += SizeModel.bits_of(log2_fixed(self._unshifted) + -shifts * _ONE // 6)
        else:
            spent, totals = self._bits + int(bits[0, :start].sum()), bits[:, start:].sum(axis=1)
            if self._changed != self._each:
                self._begin_rate(spent)
            budget = self._budget(spent, 1 + len(ahead), len(ahead) < self._planned)
        row = self._nearest(totals, budget)
        self._shift, self._quick, self._unknown = least + row, 0, max(0, self._unknown - 1)
        with_qp = self._shifted(spec)._replace(predicted=int(bits[row, start]))
        self._waiting.append(with_qp)
        self._planned_waiting.append(spec)
        self._count += 1
        return with_qp, tuple([self._shifted(frame) for frame in ahead]) if self._has_buffer else ()

    def change(self, config: Config) -> None:
        """Another bit rate from the next frame on."""
        self._changed = Fraction(1000 * config.rate.bitrate) / config.video.fps
        steps = _CHANGE * abs(log2_of(self._changed / self._each))
        self._quick, self._unknown = -(-steps // _ONE), RATE_LAG

    def _begin_rate(self, spent: int) -> None:
        """The rate changes. What the frames before have left, or have had too much, counts as many seconds of a lower rate,
        and as many bits of a higher one: else a lower one would take long to repay. spent: their bits.
        """
        left = (self._each * self._count + self._carried - spent) * min(Fraction(1), self._changed / self._each)
        self._each = self._changed
        self._carried = left + spent - self._each * self._count

    def _budget(self, spent: int, frames: int, is_end: bool) -> int:
        """Bits of the next frames; spent: of all before; is_end: none follows them."""
        bits, over = self._each.as_integer_ratio()  # numerators below: a Fraction takes longer for each step
        left, usual = bits * self._count - spent * over, bits * frames
        if self._carried:
            more, denominator = self._carried.as_integer_ratio()
            left, usual, over = left * denominator + more * over, usual * denominator, over * denominator
        if not is_end:
            repaid = max(frames, self._repaid)
            left, usual, over = left * frames, usual * repaid, over * repaid
        return max(usual // (_LEAST * over), min(usual * _MOST // over, (usual + left) // over))

    def _at_shifts(self, frames: Sequence[FrameSpec], start: int) -> tuple[int, np.ndarray]:
        """The least shift that may be next, less one; int64[shifts, frames]: predicted bits with this and each greater one.

        start: of the frames, the first that is shifted.
        """
        low, high = -_QPS, _QPS
        qps = [frame.qp for frame in frames]
        if self._count:
            most = _FIRST_STEP if self._count < _FIRST_FRAMES else _MOST_STEP
            if self._unknown:
                most = max(1, self._quick)
            low, high = self._shift - most, self._shift + most
        # none far beyond that which takes all QPs to a limit, from which it would be long in coming back
        low = max(low, min(self._qpmin - max(qps[start:]) - _BEYOND, high))
        high = min(high, max(self._qpmax - min(qps[start:]) + _BEYOND, low))
        shifts = np.arange(low - 1, high + 1)[:, np.newaxis]
        planned = np.array(qps, np.int64)
        higher = np.minimum(np.maximum(planned + shifts, self._qpmin), self._qpmax) - planned
        higher[:, :start] = 0
        if any([frame.is_qp_requested for frame in frames]):
            higher[:, [frame.is_qp_requested for frame in frames]] = 0
        return low - 1, self._model.bits_at(self._model.steps(frames) - higher * _ONE // 6)

    def _nearest(self, totals: np.ndarray, budget: int) -> int:
        """The row of the shift whose bits are nearest to the budget, as a ratio. totals: of all, falling."""
        row = 1 + int(np.searchsorted(-totals[1:-1], -budget))  # the first that does not exceed it
        more, fewer = int(totals[row - 1]), int(totals[row])
        return row - (more * fewer < budget * budget and (row > 1 or not self._count))

    def _shifted(self, spec: FrameSpec) -> FrameSpec:
        return spec if spec.is_qp_requested else shifted(spec, self._shift, self._qpmin, self._qpmax, "bitrate")


def _unshifted(bits: int, qps: int) -> int:
    """Bits as they would be at a QP that is lower by `qps`."""
    return int(SizeModel.bits_of(np.array([log2_fixed(bits) + qps * _ONE // 6]))[0]) if bits else 0
