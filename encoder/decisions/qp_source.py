"""Where QPs of frames come from: each frame, with its type and references, waits here until its QP is known."""

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from ...scheduler.frame_spec import B, FrameSpec, I, P
from ...scheduler.lookahead.costs import CostPending, CostQuery, LookaheadCosts, Source
from ...scheduler.threads.dependent_task import Starter
from ..settings.config import Config
from .adapted_frames import AdaptedFrames
from .adaptive_quantisation import QP_ONE, mb_qps
from .fixed_point import QP_SHIFT, scaled
from .frame_requests import ZONE, Requests
from .macroblock_tree import FrameWithQp, MacroblockTree, Node
from .rate_factor import CrfRules, RateFactor


class QpSource:
    """Decides QPs by the rate factor, in coding order, for the whole stream at one place, so that they depend on neither
    threads nor devices. Frames wait for the macroblock tree alone.
    """

    def __init__(self, config: Config, costs: LookaheadCosts, requests: Requests, start: Starter | None = None) -> None:
        """start: see AdaptedFrames."""
        self._requests = requests
        rules = CrfRules.of(config)
        self._costs, self._crf, self._factor = costs, rules.crf, RateFactor(rules)
        self._limits, self._in_passes = (config.rate.qpmin, config.rate.qpmax), config.rate.pass_ > 0
        self._tree = MacroblockTree.of(config, costs) if config.rate.mbtree else None
        self._aq = AdaptedFrames(config, costs, start) if config.coding.aq_mode else None
        self._predicts_b = config.hrd.buffer is not None or (config.rate.bitrate > 0 and config.rate.first_pass is None)
        self._changes: deque[tuple[int, CrfRules]] = deque()
        self._last_shown = 0

    @property
    def needed_from(self) -> int:
        """The first frame in display order whose costs are still asked for."""
        waiting = None if self._tree is None else self._tree.needed_from
        return self._last_shown if waiting is None else min(waiting, self._last_shown)

    def see(self, source: Source) -> None:
        """The next source frame in display order: Y, Cb, Cr, uint8 of display size, unchanged until it is decided; or on a
        GPU.
        """
        if self._aq is not None:
            self._aq.see(source)

    def add(self, specs: Sequence[FrameSpec]) -> list[FrameSpec]:
        """The next frames in coding order, whose costs are there. All whose QPs are decided now, in coding order."""
        return [with_qps for spec in specs for with_qps in self._decided(spec)]

    def flush(self) -> list[FrameSpec]:
        """No frame follows: all that wait."""
        return [] if self._tree is None else [self._with_qp(*frame) for frame in self._tree.flush()]

    def reconfigure(self, first: int, config: Config) -> None:
        """Other settings from frame `first` in display order on, which has not come; the first such frame in coding order
        begins them. Any thread may call.
        """
        self._changes.append((first, CrfRules.of(config)))

    def _decided(self, spec: FrameSpec) -> list[FrameSpec]:
        """Those that are decided by the next frame."""
        while self._changes and self._changes[0][0] <= spec.display_index:
            self._factor.change(self._changes.popleft()[1])
        query = self._query(spec)
        if cost := self._cost(spec.frame_type, query):
            spec = spec.changed(cost=cost)
        qp = self._factor.qp(spec, spec.cost)
        adapted = None if self._aq is None else self._aq.take(spec.display_index)
        with_qps: Iterable[FrameWithQp]
        if self._tree is None:
            with_qps = [(spec, qp, () if adapted is None else (adapted().offsets,))]
        else:
            with_qps = self._tree.add(Node(spec, qp, query, adapted))
        if spec.frame_type != B:
            self._last_shown = spec.display_index  # the B frames before it follow in the same call of `add`
        return [self._with_qp(*frame) for frame in with_qps]

    def _with_qp(self, spec: FrameSpec, qp: int, offsets: Sequence[np.ndarray]) -> FrameSpec:
        """The spec with its QP and, with offsets, the QPs of macroblocks, of which that of the frame is the mean then.

        Arguments: see FrameWithQp.
        """
        if (requested := self._requests.with_requested_qp(spec)) is not None:
            return requested
        shift = self._requests.shift(spec.display_index)
        qp = min(QP_ONE * self._limits[1], max(QP_ONE * self._limits[0], qp + shift))
        qp_by = ZONE if shift else self._qp_by(spec)
        if self._in_passes:
            mean = sum(int(some.sum()) for some in offsets) // offsets[0].size if offsets else 0
            spec = spec._replace(over_factor=qp + mean - self._crf)
        if not offsets:
            return spec.changed(qp=scaled(qp, 1, QP_SHIFT), qp_by=qp_by)
        qps, total = mb_qps(qp, offsets[0], *self._limits, *offsets[1:])
        return spec.changed(qp=(2 * total + qps.size) // (2 * qps.size), mb_qp=qps.tobytes(), qp_by=qp_by)

    def _qp_by(self, spec: FrameSpec) -> str:
        """QPs of B frames, and without tree those of I frames behind others, follow from those of other types."""
        if self._tree is not None and spec.is_reference:
            return "tree"
        return "complexity" if spec.frame_type == P or spec.coding_index == 0 else "type"

    def _cost(self, frame_type: str, query: CostQuery) -> int:
        """Of I and P frames; of B frames where their sizes are predicted by it, else 0."""
        while True:
            try:
                if frame_type == I:
                    return self._costs.intra(*query)
                if frame_type == P:
                    return self._costs.p(*query)
                return self._costs.b(*query) if self._predicts_b else 0
            except CostPending:
                self._costs.wait()

    def _query(self, spec: FrameSpec) -> CostQuery:
        """What its cost follows from: nearest references and frame, by their display indices."""
        shown, display_index = self._factor.display_index, spec.display_index
        if spec.frame_type == I:
            return (display_index,)
        if spec.frame_type == P:
            return shown(spec.list0[0]), display_index
        return shown(spec.list0[0]), shown(spec.list1[0]), display_index
