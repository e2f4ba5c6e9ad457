"""Where QPs of frames come from: each frame, with its type and references, waits here until its QP is known."""

from collections.abc import Sequence
from typing import Protocol

from ...scheduler.frame_spec import B, FrameSpec, I
from ..settings.config import Config
from .fixed_point import QP_SHIFT, scaled
from .lookahead import FrameCosts
from .rate_factor import CrfRules, RateFactor


class QpSource(Protocol):
    """Decides QPs in coding order, for the whole stream at one place, so that they depend on neither threads nor devices.

    needed_from: the first frame in display order whose costs are still asked for.
    """

    needed_from: int

    def add(self, specs: Sequence[FrameSpec]) -> list[FrameSpec]:
        """The next frames in coding order, whose costs are there. All whose QPs are settled now, in coding order."""

    def flush(self) -> list[FrameSpec]:
        """No frame follows: all that wait."""


class CrfQps:
    """A QpSource: QPs of a constant rate factor; no frame waits."""

    def __init__(self, config: Config, costs: FrameCosts) -> None:
        self._costs, self._factor = costs, RateFactor(CrfRules.of(config))
        self._shown: dict[int, int] = {}  # display index of each reference
        self.needed_from = 0

    def add(self, specs: Sequence[FrameSpec]) -> list[FrameSpec]:
        """See QpSource."""
        return [self._decided(spec) for spec in specs]

    def flush(self) -> list[FrameSpec]:
        """See QpSource."""
        return []

    def _decided(self, spec: FrameSpec) -> FrameSpec:
        qp = self._factor.qp(spec, self._cost(spec))
        known = {**self._shown, spec.coding_index: spec.display_index}
        self._shown = {index: known[index] for index in spec.references_after}
        if spec.frame_type != B:
            self.needed_from = spec.display_index
        return spec._replace(qp=scaled(qp, 1, QP_SHIFT))

    def _cost(self, spec: FrameSpec) -> int:
        """Of I and P frames; 0 for others."""
        if spec.frame_type == B:
            return 0
        if spec.frame_type == I:
            return self._costs.intra(spec.display_index)
        return self._costs.p(self._shown[spec.list0[0]], spec.display_index)
