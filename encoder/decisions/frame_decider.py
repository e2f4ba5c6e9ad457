"""Decides the frames of a stream, which come in display order, and gives them in coding order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ...scheduler.frames.device_frame import GpuSource
from ...scheduler.lookahead.costs import NOTHING_READ, LookaheadCosts
from ...scheduler.threads.dependent_task import Starter
from ..settings.config import Config
from ..settings.groups import RateSettings
from .fixed_types import FixedTypes, TypeSource
from .frame_order import FrameOrder
from .frame_requests import Requests

if TYPE_CHECKING:  # imported where settings ask for them: most of the lookahead, of rate control and of their kernels
    from ...scheduler.lookahead.host_costs import FrameCosts
    from .adaptive_types import AdaptiveTypes
    from .given_types import GivenTypes
    from .qp_source import QpSource


def import_decisions(config: Config) -> None:
    """Import what a FrameDecider imports, before there is one: a GPU's context is made meanwhile."""
    if config.decides_by_samples:
        from . import adaptive_types  # noqa: F401

        if config.rate.crf is not None:
            from . import qp_source  # noqa: F401


class FrameDecider:
    """What follows from source frames and settings alone: types by a TypeSource, order and references by FrameOrder, QPs by
    a QpSource or, if they are constant, the settings.
    """

    def __init__(
        self, config: Config, warn: Callable[[str], None] | None = None, copies: bool = True, start: Starter | None = None
    ) -> None:
        """warn: see Requests; copies: planes are copied where they are read later; else see `reads_from`; start: see
        FrameCosts.
        """
        self.requests = Requests(config, warn)
        by_costs = (config.types.b_adapt or config.types.scenecut) and config.rate.first_pass is None
        costs = _costs_of(config, copies, start) if config.decides_by_samples else None
        self._all_costs = costs
        self._qps = None if config.rate.crf is None or costs is None else _qps_of(config, costs, self.requests, start)
        self._costs = None if by_costs else costs  # which AdaptiveTypes adds to else
        self._given = None if config.rate.first_pass is None else _given_types(config.rate, warn)
        self._adaptive = _adaptive_types(config, costs) if by_costs else None
        self._types: TypeSource = self._given or self._adaptive or FixedTypes(config)
        self._order = FrameOrder(config)
        if self._qps is not None and self._adaptive is not None:
            self._adaptive.needed_from = self._qps.needed_from

    def add(self, planes: Sequence[np.ndarray] | GpuSource = ()) -> list[FrameSpec]:
        """One more source frame has come, in display order. The frames that can be coded now, in coding order.

        planes: Y, Cb, Cr, uint8 of display size, unchanged until the frame is coded, or a frame on a GPU; empty: unknown.
        """
        source = planes if isinstance(planes, GpuSource) or planes else None
        if self._costs is not None:
            if source is None:
                raise TypeError("QPs of frames by their samples need these")
            self._costs.add(source)
            self._costs.ahead([])
        if self._qps is not None:
            self._qps.see(planes)
        return self._ordered(self._types.add(source, self.requests.enter()))

    def expect(self, number: int, planes: Sequence[np.ndarray] | GpuSource) -> None:
        """`add` of frame `number` follows, in another thread: what its decisions compare may be found meanwhile."""
        if self._all_costs is not None and not isinstance(planes, GpuSource) and planes:
            (self._adaptive or self._all_costs).expect(number, planes[0])

    def reconfigure(self, first: int, config: Config) -> None:
        """Other settings of rate control from frame `first` in display order on, which has not come; any thread may call."""
        if self._qps is not None:
            self._qps.reconfigure(first, config)

    def check_next(self) -> None:
        """InputError, before any change, if no frame can follow."""
        if self._given is not None:
            self._given.check_next()

    @property
    def reads_from(self) -> int:
        """Without copies: the planes of this frame in display order and of later ones may still be read."""
        return NOTHING_READ if self._all_costs is None else self._all_costs.reads_from

    def flush(self) -> list[FrameSpec]:
        """No source frame comes any more: the frames that are left, in coding order."""
        specs = self._ordered(self._types.flush())
        return specs if self._qps is None else [*specs, *self.requests.with_offsets(self._qps.flush())]

    def close(self) -> None:
        """Release what decisions hold; no call follows."""
        self._types.close()
        if self._costs is not None:
            self._costs.close()

    def _ordered(self, types: Sequence[str]) -> list[FrameSpec]:
        self.requests.check(types)
        specs: list[FrameSpec] = []
        for frame_type in types:
            specs += self._order.add(frame_type)
        if self._qps is None:
            return self.requests.with_offsets(self.requests.constant(specs))
        with_qps = self.requests.with_offsets(self._qps.add(specs))
        self._forget(self._qps.needed_from)
        return with_qps

    def _forget(self, before: int) -> None:
        """The QPs need no costs of frames before this one."""
        if self._adaptive is not None:
            self._adaptive.needed_from = before
        elif self._costs is not None:
            self._costs.forget(before)


def _given_types(rate: RateSettings, warn: Callable[[str], None] | None) -> "GivenTypes":
    """Of the first pass."""
    from .given_types import GivenTypes

    assert rate.first_pass is not None
    return GivenTypes(rate.first_pass.types, rate.stats, warn)


def _adaptive_types(config: Config, costs: LookaheadCosts | None) -> "AdaptiveTypes":
    """By costs."""
    from .adaptive_types import AdaptiveTypes

    assert costs is not None
    return AdaptiveTypes.of(config, config.types.b_pyramid != "none", costs)


def _costs_of(config: Config, copies: bool, start: Starter | None) -> LookaheadCosts:
    """The costs of an encode: on its first GPU, if it has one. copies: see GpuCosts; start: see FrameCosts."""
    from ...cpu_simd.decisions.common import QUICK
    from .adaptive_types import FAST
    from .sharp_frames import LEAST

    size, quick = (config.coding.width, config.coding.height), config.coding.subme <= QUICK
    threads = config.machine.threads if start is None else 1  # free threads work on other pairs of frames
    with_sharpness = config.types.b_adapt == FAST and config.coding.bframes + 1 >= LEAST
    ordinals = [int(name.partition(":")[2] or 0) for name in config.machine.devices if name != "cpu"]
    if not ordinals:
        from ...scheduler.lookahead.host_costs import FrameCosts

        # of all ways to divide many frames the motion would fill the memory
        keeps_used = config.rate.mbtree and config.types.b_adapt == FAST
        return FrameCosts(*size, threads, quick=quick, start=start, keeps_used=keeps_used, with_sharpness=with_sharpness)
    from ...scheduler.lookahead.gpu_or_host import GpuOrHostCosts
    from .adaptive_quantisation import AqSettings

    def on_host(first: int) -> "FrameCosts":
        from ...scheduler.lookahead.host_costs import FrameCosts

        return FrameCosts(*size, threads, first, quick, with_sharpness=with_sharpness)

    aq = AqSettings.of(config) if config.rate.crf is not None and config.coding.aq_mode else None
    return GpuOrHostCosts(ordinals[0], *size, config.machine.may_change_device, on_host, copies, quick, aq, with_sharpness)


def _qps_of(config: Config, costs: LookaheadCosts, requests: Requests, start: Starter | None) -> "QpSource":
    """Of a constant rate factor."""
    from .qp_source import QpSource

    return QpSource(config, costs, requests, start)
