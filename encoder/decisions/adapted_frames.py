"""Adaptive quantisation of the frames that wait: by a GPU with their costs, by free threads of a CPU, or by the caller."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ...process import cached_property
from ...scheduler.frames.device_frame import GpuSource
from ...scheduler.lookahead.costs import CostPending, LookaheadCosts, Source
from ...scheduler.threads.dependent_task import ComputeOnce, Starter
from ..settings.config import Config
from .adaptive_quantisation import AqSettings, aq_offsets, energies, error_weights, in_coded_width


class Adapted:
    """What adaptive quantisation makes of a frame. offsets: int32[n_mb], of QP_Y in 1 / 256, while the costs are kept."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets

    @cached_property
    def error_weights(self) -> np.ndarray:
        """int32[n_mb]: of costs for the tree, in 1 / 65536."""
        return error_weights(self.offsets)


class AdaptedFrames:
    """What adaptive quantisation makes of each frame, by display index."""

    def __init__(self, config: Config, costs: LookaheadCosts, start: Starter | None = None) -> None:
        """costs: of the same frames; start: on a CPU, for work that free threads of the loop may do."""
        self._settings, self._with_error_weights = AqSettings.of(config), config.rate.mbtree and start is not None
        self._width, self._costs, self._begin_soon = 16 * config.coding.mb_width, costs, start
        self._seen = 0
        self._adapted: dict[int, Callable[[], Adapted]] = {}

    def see(self, source: Source) -> None:
        """The next frame in display order: Y, Cb, Cr, uint8 of display size, unchanged until it is decided; or on a GPU."""
        adapted: Callable[[], Adapted] = partial(self._adapt, self._seen, source)
        if self._begin_soon is not None:
            adapted = ComputeOnce(adapted)
            self._begin_soon(adapted)
        self._adapted[self._seen] = adapted
        self._seen += 1

    def take(self, display_index: int) -> Callable[[], Adapted]:
        """Of a frame, once: a function that waits for it; GpuLost."""
        return self._adapted.pop(display_index)

    def _adapt(self, display_index: int, source: Source) -> Adapted:
        offsets = self._with_costs(display_index)
        if offsets is None:
            energy = source.energies() if isinstance(source, GpuSource) else energies(in_coded_width(source, self._width))
            offsets = aq_offsets(energy, self._settings)
        adapted = Adapted(offsets)
        if self._with_error_weights:
            _ = adapted.error_weights  # found by the same thread
        return adapted

    def _with_costs(self, display_index: int) -> np.ndarray | None:
        """The offsets that a GPU has found; None without one."""
        while True:
            try:
                return self._costs.aq_offsets(display_index)
            except CostPending:
                self._costs.wait()
