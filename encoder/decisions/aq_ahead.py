"""Adaptive quantisation of the frames that wait: in a thread beside the decisions, which need it much later."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...scheduler.frames.held_sources import HeldSource
from ..settings.config import Config
from .adaptive_quantisation import AqSettings, aq_offsets, energies, in_coded_width, worths


class Adapted(NamedTuple):
    """offsets: int32[n_mb], of QP_Y in 1 / 256; worth: int64[n_mb], of costs for the macroblock tree, in 1 / 2^24."""

    offsets: np.ndarray
    worth: np.ndarray | None


class AqAhead:
    """What adaptive quantisation makes of each frame, by display index."""

    def __init__(self, config: Config) -> None:
        self._settings, self._width, self._with_worth = AqSettings.of(config), config.coded_width, config.mbtree
        self._seen = 0
        self._found: dict[int, Future[Adapted] | Adapted | HeldSource] = {}
        # on a CPU the decisions share the threads with the loop anyway
        self._thread = None if config.device == "cpu" else ThreadPoolExecutor(1, "h264lite-aq")

    def see(self, planes: Sequence[np.ndarray] | HeldSource) -> None:
        """The next frame in display order: Y, Cb, Cr, uint8 of display size, unchanged until `take`; or on a GPU."""
        self._found[self._seen] = planes if isinstance(planes, HeldSource) else self._start(planes)
        self._seen += 1

    def take(self, display_index: int) -> Callable[[], Adapted]:
        """Of a frame, once: a function that waits for it; GpuLost."""
        found = self._found.pop(display_index)
        if isinstance(found, HeldSource):
            return lambda: self._of_energies(found.energies())
        return found.result if isinstance(found, Future) else lambda: found

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown()

    def _start(self, planes: Sequence[np.ndarray]) -> "Future[Adapted] | Adapted":
        if self._thread is not None:
            try:
                return self._thread.submit(self._of_planes, planes)
            except RuntimeError:  # the system refuses the thread
                self._thread = None
        return self._of_planes(planes)

    def _of_planes(self, planes: Sequence[np.ndarray]) -> Adapted:
        return self._of_energies(energies(in_coded_width(planes, self._width)))

    def _of_energies(self, energy: np.ndarray) -> Adapted:
        offsets = aq_offsets(energy, self._settings)
        return Adapted(offsets, worths(offsets) if self._with_worth else None)
