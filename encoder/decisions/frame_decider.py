"""Decides the frames of a stream, which come in display order, and gives them in coding order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...scheduler.frame_spec import MOST_ENTRIES, FrameSpec, I, P
from ...scheduler.frames.gpu_sources import GpuSource
from ...scheduler.lookahead.costs import NOTHING_READ, LookaheadCosts
from ...scheduler.threads.dependent_task import Starter
from ..settings.config import Config
from ..settings.frame_requests import IDR
from .fixed_types import FixedTypes, TypeSource
from .frame_order import CABAC_INIT_IDC, FrameOrder, Slices
from .frame_requests import Requests

if TYPE_CHECKING:  # imported where settings ask for them: most of the lookahead, of rate control and of their kernels
    from .adaptive_types import AdaptiveTypes
    from .given_types import GivenTypes
    from .qp_source import QpSource

DISTANCES = tuple(range(1, MOST_ENTRIES + 1))  # of the frames before


class FrameDecider:
    """Types by a TypeSource, order and references by FrameOrder, QPs by a QpSource or, if they are constant, the settings.

    Without all three: an IDR frame every `keyint` frames, P frames between; every frame is a reference, in a sliding window
    of `ref` frames (8.2.5.3). Coding order is display order, and each frame is decided at once.
    """

    def __init__(
        self, config: Config, slices: Slices, warn: Callable[[str], None] | None = None, copies: bool = True,
        start: Starter | None = None,
    ) -> None:  # fmt: skip
        """warn: see Requests; copies: the luma of frames is copied where it is read later; else see `reads_from`; start: see
        FrameCosts.
        """
        self._config, self._slices = config, slices
        self.requests = Requests(config, warn)
        self._last: FrameSpec | None = None
        by_costs = (config.b_adapt or config.scenecut) and config.first_pass is None
        costs = _costs_of(config, copies, start) if config.decides_by_samples else None
        self._all_costs = costs
        self._qps = None if config.crf is None or costs is None else _qps_of(config, costs, self.requests, start)
        self._costs = None if by_costs else costs  # which AdaptiveTypes adds to else
        self._given = None if config.first_pass is None else _given_types(config.first_pass.types, warn)
        self._adaptive = _adaptive_types(config, costs) if by_costs else None
        fixed = FixedTypes(config) if config.bframes or costs is not None else None
        self._types: TypeSource | None = self._given or self._adaptive or fixed  # None: `next` decides
        self._order = FrameOrder(config, slices)
        if self._qps is not None and self._adaptive is not None:
            self._adaptive.needed_from = self._qps.needed_from

    def add(self, planes: Sequence[np.ndarray] | GpuSource = ()) -> list[FrameSpec]:
        """One more source frame has come, in display order. The frames that can be coded now, in coding order.

        planes: Y, Cb, Cr, uint8 of display size, unchanged until the frame is coded, or a frame on a GPU; empty: unknown.
        """
        if self._types is None:
            return [self.decide_fixed()]
        luma = planes if isinstance(planes, GpuSource) else planes[0] if planes else None
        if self._costs is not None:
            if luma is None:
                raise TypeError("QPs of frames by their samples need these")
            self._costs.add(luma)
        if self._qps is not None:
            self._qps.see(planes)
        return self._ordered(self._types.add(luma, self.requests.enter()))

    def expect(self, number: int, planes: Sequence[np.ndarray] | GpuSource) -> None:
        """`add` of frame `number` follows, in another thread: what its decisions compare may be found meanwhile."""
        if self._all_costs is not None and not isinstance(planes, GpuSource) and planes:
            (self._adaptive or self._all_costs).expect(number, planes[0])

    def check_next(self) -> None:
        """InputError, before any change, if no frame can follow."""
        if self._given is not None:
            self._given.check_next()

    @property
    def reads_from(self) -> int:
        """Without copies: the luma of this frame in display order and of later ones may still be read."""
        return NOTHING_READ if self._all_costs is None else self._all_costs.reads_from

    def flush(self) -> list[FrameSpec]:
        """No source frame comes any more: the frames that are left, in coding order."""
        if self._types is None:
            return []
        specs = self._ordered(self._types.flush())
        return specs if self._qps is None else [*specs, *self._qps.flush()]

    def close(self) -> None:
        """Release what decisions hold; no call follows."""
        if self._types is not None:
            self._types.close()
        if self._qps is not None:
            self._qps.close()
        if self._costs is not None:
            self._costs.close()

    def _ordered(self, types: Sequence[str]) -> list[FrameSpec]:
        self.requests.check(types)
        specs = [spec for frame_type in types for spec in self._order.add(frame_type)]
        if self._qps is None:
            return [self.requests.constant(spec) for spec in specs]
        with_qps = self._qps.add(specs)
        self._forget(self._qps.needed_from)
        return with_qps

    def _forget(self, before: int) -> None:
        """The QPs need no costs of frames before this one."""
        if self._adaptive is not None:
            self._adaptive.needed_from = before
        elif self._costs is not None:
            self._costs.forget(before)

    def decide_fixed(self) -> FrameSpec:
        """The next frame of a stream without B frames, at a constant QP."""
        last, requested = self._last, self.requests.enter()
        index = last.coding_index + 1 if last is not None else 0
        if last is None or requested == IDR or last.frame_num + 1 >= self._config.keyint:
            self._last = self._idr(index, last.gop + 1 if last is not None else 0)
        else:
            self._last = self._p(index, last, I if requested == I else P)
        self.requests.check([IDR if self._last.is_idr else self._last.frame_type])
        return self.requests.constant(self._last)

    def _idr(self, index: int, gop: int) -> FrameSpec:
        # FrameOrder, which gives the same, takes 25 us more: 8 % of a small frame's time. Positional here and below for that
        # reason: a tuple made by keywords takes twice as long
        return FrameSpec(
            index, index, gop, I, True, True, 0, 0, (gop + 1) % 2, self._config.i_qp, 0, (), (index,), self._slices
        )

    def _p(self, index: int, last: FrameSpec, frame_type: str) -> FrameSpec:
        references_after = last.references_after
        references, qp = (references_after, self._config.qp) if frame_type == P else ((), self._config.i_qp)
        return FrameSpec(
            index, index, last.gop, frame_type, False, True, last.frame_num + 1, last.pic_order_cnt + 2, last.idr_pic_id,
            qp, CABAC_INIT_IDC, references, (index, *references_after)[: self._config.ref], self._slices, (),
            DISTANCES[: len(references)],
        )  # fmt: skip


def _given_types(types: Sequence[str], warn: Callable[[str], None] | None) -> "GivenTypes":
    """Of the first pass."""
    from .given_types import GivenTypes

    return GivenTypes(types, warn)


def _adaptive_types(config: Config, costs: LookaheadCosts | None) -> "AdaptiveTypes":
    """By costs."""
    from .adaptive_types import AdaptiveTypes

    assert costs is not None
    return AdaptiveTypes.of(config, config.b_pyramid != "none", costs)


def _costs_of(config: Config, copies: bool, start: Starter | None) -> LookaheadCosts:
    """The costs of an encode: on its first GPU, if it has one. copies: see GpuCosts; start: see FrameCosts."""
    from ...cpu_simd.decisions.common import QUICK
    from ...scheduler.lookahead.host_costs import FrameCosts
    from .adaptive_types import FAST

    size, quick = (config.width, config.height), config.subme <= QUICK
    threads = config.threads if start is None else 1  # free threads work on other pairs of frames
    ordinals = [int(name.partition(":")[2] or 0) for name in config.devices if name != "cpu"]
    if not ordinals:
        # of all ways to divide many frames the motion would fill the memory
        keeps_used = config.mbtree and config.b_adapt == FAST
        return FrameCosts(*size, threads, quick=quick, start=start, keeps_used=keeps_used)
    from ...scheduler.lookahead.gpu_or_host import GpuOrHostCosts

    def on_host(first: int) -> FrameCosts:
        return FrameCosts(*size, threads, first, quick)

    return GpuOrHostCosts(ordinals[0], *size, config.may_change_device, on_host, copies, quick)


def _qps_of(config: Config, costs: LookaheadCosts, requests: Requests, start: Starter | None) -> "QpSource":
    """Of a constant rate factor."""
    from .qp_source import CrfQps

    return CrfQps(config, costs, requests, start)
