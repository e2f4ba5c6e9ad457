"""Predicts the sizes of frames before they are coded, from their costs and QPs and from the sizes of frames before."""

from collections.abc import Callable, Sequence

import numpy as np

from ...scheduler.frame_spec import B, FrameSpec, I, P
from .fixed_point import LOG2_SHIFT, exp2_array, log2_fixed

_ONE = 1 << LOG2_SHIFT
_STEP = 6  # QPs that double the quantiser step, and halve the bits
# log2 of the bits of a unit of cost at QP 0 before any frame has been coded: of I and P frames of clips, 2.4 to 3.2
_FIRST = {I: 11 * _ONE // 4, P: 11 * _ONE // 4}
_MOST_LOG = 40 * _ONE  # log2 of more bits than any frame has
_LIKE = 3  # fourths of an I frame's deviation from that which P frames probably have
_OF_QP = [qp * _ONE // _STEP for qp in range(52)]  # log2 of the quantiser step, without the constant
_FIRST_B = _ONE // 2  # log2 by which the coefficient of B frames is less than that of P frames, 0.1 to 1


class SizeModel:
    """bits = coefficient * cost / 2^(QP / 6), with a coefficient for each kind of frame, in which older frames count less and
    less. Frames without a cost have the size of those before. Logarithms are in 1 / 65536.
    """

    def __init__(self, inertia: int = 2) -> None:
        """inertia: the last frame counts as one of so many."""
        self._inertia = inertia
        self._coefficients: dict[tuple[str, bool], int] = {}  # log2, by type and whether it is a reference

    def log2_bits(self, specs: Sequence[FrameSpec]) -> np.ndarray:
        """int64: log2 of the sizes with the QPs of the specs."""
        # without calls for each frame: an average rate has those of fifty in every frame
        coefficients = {kind: self._coefficient(*kind) for kind in {(spec.frame_type, spec.is_reference) for spec in specs}}
        logs = [
            coefficients[spec.frame_type, spec.is_reference] - _OF_QP[spec.qp] + (log2_fixed(spec.cost) if spec.cost else 0)
            for spec in specs
        ]
        return np.array(logs, np.int64)

    def bits(self, spec: FrameSpec) -> int:
        """The size with the QP of the spec."""
        return int(self.bits_of(self.log2_bits((spec,)))[0])

    def sizes(self, specs: Sequence[FrameSpec], qpmax: int) -> Callable[[int], list[int]]:
        """A function: bits of these frames with QPs that are higher by its argument, but at most qpmax."""
        as_planned = self.log2_bits(specs)
        most = np.array([max(0, qpmax - spec.qp) for spec in specs], np.int64)

        def with_higher(higher: int) -> list[int]:
            return list(self.bits_of(as_planned - np.minimum(higher, most) * _ONE // _STEP).tolist())

        return with_higher

    @staticmethod
    def bits_of(logs: np.ndarray) -> np.ndarray:
        """int64: sizes whose logarithms these are, in bits."""
        logs = np.minimum(np.maximum(logs, 0), _MOST_LOG)  # np.clip takes twice as long for few numbers
        return exp2_array(logs & _ONE - 1) << (logs >> LOG2_SHIFT) >> LOG2_SHIFT

    def _coefficient(self, frame_type: str, is_reference: bool) -> int:
        """log2. Before any such frame by others: of B frames by other B frames, else by P frames, of these by I frames."""
        known = self._coefficients
        if (frame_type, is_reference) in known:
            return known[frame_type, is_reference]
        if frame_type != B:
            return _FIRST[frame_type] + (known.get((I, True), _FIRST[I]) - _FIRST[I]) * _LIKE // 4
        return known.get((B, not is_reference), self._coefficient(P, True) - _FIRST_B)

    def learn(self, spec: FrameSpec, bits: int) -> None:
        """A frame has been coded with this spec."""
        kind = spec.frame_type, spec.is_reference
        found = log2_fixed(max(1, bits)) + _OF_QP[spec.qp] - (log2_fixed(spec.cost) if spec.cost else 0)
        known = self._coefficients.get(kind)
        self._coefficients[kind] = found if known is None else known + (found - known) // self._inertia
