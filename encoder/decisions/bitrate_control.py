"""QPs at an average bit rate: those of a rate factor, shifted so that the frames ahead have the bits that are left."""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ..settings.config import Config
from .adaptive_quantisation import shifted
from .fixed_point import LOG2_SHIFT, log2_fixed
from .size_feedback import RATE_LAG
from .size_model import SizeModel

_ONE = 1 << LOG2_SHIFT
_QPS = 51
_MOST_STEP = 2  # of the shift from a frame to the next one; faster steps and a quicker model swing
_FIRST_STEP, _FIRST_FRAMES = 8, 2 * RATE_LAG  # until the model has learned
_INERTIA = 12  # of the model
_REPAID = 3  # seconds in which a deviation is made good, at ratetol 1
_LEAST, _MOST = 8, 4  # bits of the frames ahead: one part of so many, and so many times, those that the rate gives them


class BitrateControl:
    """Shifts the QPs of frames in coding order. A function of the source and of the sizes of all frames up to n - RATE_LAG
    (size_feedback.py); frames after these have the sizes that SizeModel predicts. All numbers are integers or exact.
    """

    def __init__(self, config: Config) -> None:
        self._each = Fraction(1000 * config.bitrate) / config.fps  # bits of a frame
        self._qpmin, self._qpmax, self._planned = config.qpmin, config.qpmax, config.planned_frames
        self._repaid = max(1, round(_REPAID * Fraction(config.ratetol) * config.fps))  # frames
        self._has_buffer = config.buffer is not None
        self._model = SizeModel(_INERTIA)
        self._is_first_pass = config.pass_ == 1
        self._waiting: deque[FrameSpec] = deque()  # settled, sizes unknown
        self._planned_waiting: deque[FrameSpec] = deque()  # the same as they came
        self._unshifted = 0  # bits of the frames whose sizes are known, as they would be without a shift
        self._bits = 0  # of the frames whose sizes are known
        self._count = 0  # frames settled
        self._shift = 0

    def settle(
        self, spec: FrameSpec, sizes: Sequence[int], ahead: Sequence[FrameSpec]
    ) -> tuple[FrameSpec, tuple[FrameSpec, ...]]:
        """The next frame with its QP, and for a buffer those that follow it with theirs.

        sizes: bits of the frames that have become known; ahead: frames that follow; fewer than planned: the stream ends.
        """
        for bits in sizes:
            settled, planned = self._waiting.popleft(), self._planned_waiting.popleft()
            self._model.learn(settled, bits)
            self._bits += bits
            if self._is_first_pass:
                self._unshifted += _unshifted(bits, settled.qp - planned.qp)
        frames = (spec, *ahead)
        if self._is_first_pass:
            frames = (*self._planned_waiting, *frames)
            self._shift = self._best_shift(frames, int(self._each * (self._count + 1 + len(ahead))), self._unshifted)
        else:
            self._shift = self._best_shift(frames, self._budget(len(frames), len(ahead) < self._planned))
        settled = self._shifted(spec)
        settled = settled._replace(predicted=self._model.bits(settled))
        self._waiting.append(settled)
        self._planned_waiting.append(spec)
        self._count += 1
        return settled, tuple([self._shifted(frame) for frame in ahead]) if self._has_buffer else ()

    def _budget(self, frames: int, is_end: bool) -> int:
        """Bits of the next frames; is_end: none follows them."""
        spent = self._bits + int(SizeModel.bits_of(self._model.log2_bits(self._waiting)).sum())
        bits, over = self._each.as_integer_ratio()  # numerators below: a Fraction takes longer for each step
        left, usual = bits * self._count - spent * over, bits * frames
        if not is_end:
            repaid = max(frames, self._repaid)
            left, usual, over = left * frames, usual * repaid, over * repaid
        return max(usual // (_LEAST * over), min(usual * _MOST // over, (usual + left) // over))

    def _best_shift(self, frames: Sequence[FrameSpec], budget: int, before: int = 0) -> int:
        """The shift whose predicted bits are nearest to the budget, as a ratio; near to that of the frame before.

        before: bits of other frames that share the budget, without a shift: the first pass looks for the one shift with which
        the whole stream would have its rate, so that its QPs are near to those of the second one.
        """
        low, high = -_QPS, _QPS
        if self._count:
            most = _FIRST_STEP if self._count < _FIRST_FRAMES else _MOST_STEP
            low, high = self._shift - most, self._shift + most
        shifts = np.arange(low - 1, high + 1)[:, np.newaxis]
        qps = np.array([frame.qp for frame in frames], np.int64)
        free = np.array([not frame.is_qp_asked for frame in frames], np.int64)
        change = free * (np.minimum(np.maximum(qps + shifts, self._qpmin), self._qpmax) - qps)
        bits = SizeModel.bits_of(self._model.log2_bits(frames) - change * _ONE // 6).sum(axis=1)
        if before:
            bits += SizeModel.bits_of(log2_fixed(before) + -shifts[:, 0] * _ONE // 6)
        # the least that does not exceed the budget, or the one before: bits fall with the shift
        place = 1 + int(np.searchsorted(-bits[1:-1], -budget))
        more, fewer = int(bits[place - 1]), int(bits[place])
        is_above = more * fewer < budget * budget and (place > 1 or not self._count)
        return low - 1 + place - is_above

    def _shifted(self, spec: FrameSpec) -> FrameSpec:
        return spec if spec.is_qp_asked else shifted(spec, self._shift, self._qpmin, self._qpmax, "bitrate")


def _unshifted(bits: int, qps: int) -> int:
    """Bits as they would be at a QP that is lower by `qps`."""
    return int(SizeModel.bits_of(np.array([log2_fixed(bits) + qps * _ONE // 6]))[0]) if bits else 0
