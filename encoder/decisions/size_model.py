"""Predicts the sizes of frames before they are coded, from their costs and QPs and from the sizes of frames before."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...scheduler.frame_spec import B, FrameSpec, I, P
from .fixed_point import LOG2_SHIFT, exp2_array, fixed, log2_fixed

_ONE = 1 << LOG2_SHIFT
_STEP = 6  # QPs that double the quantiser step
# log2 of the bits of a unit of cost at QP 0 before any frame has been coded: of I and P frames of clips, 2.4 to 3.2
_FIRST = {I: 11 * _ONE // 4, P: 11 * _ONE // 4}
_MOST_LOG = 40 * _ONE  # log2 of more bits than any frame has
_LIKE = 3  # fourths of an I frame's deviation from that which P frames probably have
_OF_QP = [qp * _ONE // _STEP for qp in range(52)]  # log2 of the quantiser step, without the constant
_FIRST_B = _ONE // 2  # log2 by which the coefficient of B frames is less than that of P frames, 0.1 to 1
_PER_LN2 = 94548  # 1 / ln(2)
_SLOPES = fixed(0.75, LOG2_SHIFT), 4 * _ONE  # limits; of clips 0.8 to 3.5
_POWERS = fixed(0.75, LOG2_SHIFT), fixed(1.25, LOG2_SHIFT)
_TRUST_COST, _TRUST_QP = fixed(0.3, LOG2_SHIFT), fixed(0.15, LOG2_SHIFT)  # squared deviations by which both are 1
_MEMORY = 64  # frames that count for slope and power
_SURPRISE = _ONE // 2  # more of a deviation is another content, and not the slope


class _Mean(NamedTuple):
    """Of frames of a frame_class: log2 of cost, of the quantiser step, of bits; and the number of frames that count."""

    cost: int
    step: int
    bits: int
    frames: int


class SizeModel:
    """Sizes by the cost in quantiser steps: bits = b * 2^(slope * x) up to the size b, and beyond b + samples * x, a bit a
    sample for 6 QPs; b is the size at which both rise alike. x = power / slope * log2(cost) - QP / 6 + a number for each
    frame class. Slope and power, the same for all, are least squares that begin at 1. Older frames count less and less.
    Frames without a cost have that of those before. Logarithms are in 1 / 65536.
    """

    def __init__(self, samples: int, inertia: int = 2) -> None:
        """samples: of luma; inertia: the last frame counts as one of so many."""
        self._samples, self._inertia = samples, inertia
        self._means: dict[tuple[str, bool], _Mean] = {}  # by type and whether it is a reference
        # of deviations from means: products of cost and QP with themselves, each other, and bits
        self._cost2, self._cost_bits, self._cost_qp = _TRUST_COST, _TRUST_COST, 0
        self._qp2, self._qp_bits = _TRUST_QP, _TRUST_QP
        self._set(_ONE, _ONE)

    def steps(self, specs: Sequence[FrameSpec]) -> np.ndarray:
        """int64: the x of the specs with their QPs."""
        # without calls for each frame: an average rate has those of fifty in every frame
        frame_classes = [(spec.frame_type, spec.is_reference) for spec in specs]
        of_class = {frame_class: self._of_class(*frame_class) for frame_class in set(frame_classes)}
        numbers = [of_class[frame_class] for frame_class in frame_classes]
        costs = [log2_fixed(spec.cost or 1) for spec in specs]
        steps = [
            number + (share * cost >> LOG2_SHIFT) - _OF_QP[spec.qp]
            for (number, share), cost, spec in zip(numbers, costs, specs)
        ]
        return np.array(steps, np.int64)

    def bits_at(self, steps: np.ndarray) -> np.ndarray:
        """int64: sizes whose x these are, in bits."""
        below = self.bits_of(self._log_corner + (np.minimum(steps, 0) * self._slope >> LOG2_SHIFT))
        return below + (np.maximum(steps, 0) * self._samples >> LOG2_SHIFT)

    def bits(self, spec: FrameSpec) -> int:
        """The size with the QP of the spec."""
        return int(self.bits_at(self.steps((spec,)))[0])

    def sizes(self, specs: Sequence[FrameSpec], qpmax: int) -> Callable[[int], list[int]]:
        """A function: bits of these frames with QPs that are higher by its argument, but at most qpmax."""
        as_planned = self.steps(specs)
        most = np.array([max(0, qpmax - spec.qp) for spec in specs], np.int64)

        def with_higher(higher: int) -> list[int]:
            return list(self.bits_at(as_planned - np.minimum(higher, most) * _ONE // _STEP).tolist())

        return with_higher

    @staticmethod
    def bits_of(logs: np.ndarray) -> np.ndarray:
        """int64: sizes whose logarithms these are, in bits."""
        logs = np.minimum(np.maximum(logs, 0), _MOST_LOG)  # np.clip takes twice as long for few numbers
        return exp2_array(logs & _ONE - 1) << (logs >> LOG2_SHIFT) >> LOG2_SHIFT

    def learn(self, spec: FrameSpec, bits: int) -> None:
        """A frame has been coded with this spec."""
        frame_class = spec.frame_type, spec.is_reference
        point = log2_fixed(spec.cost or 1), _OF_QP[spec.qp], log2_fixed(max(1, bits))
        mean = self._means.get(frame_class)
        if mean is None:
            self._means[frame_class] = _Mean(*point, 1)
            return
        cost, qp, bits = point[0] - mean.cost, mean.step - point[1], point[2] - mean.bits
        count = min(mean.frames + 1, self._inertia)
        self._means[frame_class] = _Mean(mean.cost + cost // count, mean.step - qp // count, mean.bits + bits // count, count)
        expected = self._power * cost + self._slope * qp >> LOG2_SHIFT
        self._fit(cost, qp, expected + max(-_SURPRISE, min(_SURPRISE, bits - expected)))

    def _fit(self, cost: int, qp: int, bits: int) -> None:
        """Slope and power with one more deviation from means."""
        self._cost2 += (cost * cost >> LOG2_SHIFT) - (self._cost2 - _TRUST_COST) // _MEMORY
        self._qp2 += (qp * qp >> LOG2_SHIFT) - (self._qp2 - _TRUST_QP) // _MEMORY
        self._cost_qp += (cost * qp >> LOG2_SHIFT) - self._cost_qp // _MEMORY
        self._cost_bits += (cost * bits >> LOG2_SHIFT) - (self._cost_bits - _TRUST_COST) // _MEMORY
        self._qp_bits += (qp * bits >> LOG2_SHIFT) - (self._qp_bits - _TRUST_QP) // _MEMORY
        both = max(1, self._cost2 * self._qp2 - self._cost_qp**2)
        power = (self._cost_bits * self._qp2 - self._qp_bits * self._cost_qp << LOG2_SHIFT) // both
        power = max(_POWERS[0], min(_POWERS[1], power))
        slope = (self._qp_bits - (power * self._cost_qp >> LOG2_SHIFT) << LOG2_SHIFT) // self._qp2
        self._set(max(_SLOPES[0], min(_SLOPES[1], slope)), power)

    def _set(self, slope: int, power: int) -> None:
        self._slope, self._power = slope, power
        self._corner = max(1, self._samples * _PER_LN2 // slope)
        self._log_corner = log2_fixed(self._corner)

    def _of_class(self, frame_type: str, is_reference: bool) -> tuple[int, int]:
        """The number in x of a class of frame, and what log2(cost) counts in x."""
        mean = self._mean(frame_type, is_reference)
        if mean.bits <= self._log_corner:
            share, x = (self._power << LOG2_SHIFT) // self._slope, (mean.bits - self._log_corner << LOG2_SHIFT) // self._slope
        else:
            bits = int(self.bits_of(np.array([mean.bits]))[0])
            share, x = _ONE, (bits - self._corner << LOG2_SHIFT) // self._samples
        return x + mean.step - (share * mean.cost >> LOG2_SHIFT), share

    def _mean(self, frame_type: str, is_reference: bool) -> _Mean:
        """Before any such frame by others: of B frames by other B frames, else by P frames, of these by I frames."""
        known = self._means.get((frame_type, is_reference))
        if known is not None:
            return known
        if frame_type != B:
            mean = self._means.get((I, True), _Mean(0, 0, _FIRST[I], 0))
            coefficient = mean.bits + mean.step - mean.cost
            other = _FIRST[frame_type] + (coefficient - _FIRST[I]) * _LIKE // 4
            return mean._replace(bits=other - mean.step + mean.cost)
        if (B, not is_reference) in self._means:
            return self._means[B, not is_reference]
        mean = self._mean(P, True)
        return mean._replace(bits=mean.bits - _FIRST_B)
