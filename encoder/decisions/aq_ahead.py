"""Adaptive quantisation of the frames that wait: in a thread beside the decisions, which need it much later."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...scheduler.frames.held_sources import HeldSource
from ...scheduler.threads.after import Once, Starter
from ...scheduler.threads.aq_kernels import (
    MOST_JOBS,
    RING_SIZE,
    STOP,
    adaptations_done,
    post_adaptation,
    serve_adaptations,
)
from ...scheduler.threads.semaphore import NoGilThreads, address
from ..settings.config import Config
from .adaptive_quantisation import AqSettings, aq_offsets, energies, in_coded_width, worths

_NAP = 2e-5  # seconds between looks at a job that has not ended


class Adapted(NamedTuple):
    """offsets: int32[n_mb], of QP_Y in 1 / 256; worth: int64[n_mb], of costs for the macroblock tree, in 1 / 2^24."""

    offsets: np.ndarray
    worth: np.ndarray | None


class AqAhead(NoGilThreads):
    """What adaptive quantisation makes of each frame, by display index."""

    def __init__(self, config: Config, start: Starter | None = None) -> None:
        """start: on a CPU, for work that free threads of the loop may do."""
        super().__init__(np.zeros(RING_SIZE, np.int64), STOP, int(config.device != "cpu"), "aq")
        self._settings, self._width, self._with_worth = AqSettings.of(config), config.coded_width, config.mbtree
        self._n_mb = config.mb_width * config.mb_height
        self._seen, self._begin_soon = 0, start
        self._found: dict[int, Callable[[], Adapted]] = {}
        self._used: list[Any] = [None] * MOST_JOBS  # by the thread: kept until a later job takes the place

    def see(self, planes: Sequence[np.ndarray] | HeldSource) -> None:
        """The next frame in display order: Y, Cb, Cr, uint8 of display size, unchanged until `take`; or on a GPU."""
        self._found[self._seen] = self._of_held(planes) if isinstance(planes, HeldSource) else self._start(planes)
        self._seen += 1

    def take(self, display_index: int) -> Callable[[], Adapted]:
        """Of a frame, once: a function that waits for it; GpuLost."""
        return self._found.pop(display_index)

    def _start(self, planes: Sequence[np.ndarray]) -> Callable[[], Adapted]:
        semaphore = self._begin(serve_adaptations)
        if not self._threads:
            adapted = Once(partial(self._of_planes, planes))
            if self._begin_soon is None:
                adapted()
            else:
                self._begin_soon(adapted)
            return adapted
        sources = [np.ascontiguousarray(plane) for plane in planes]
        found = Adapted(np.empty(self._n_mb, np.int32), np.empty(self._n_mb, np.int64) if self._with_worth else None)
        numbers = *sources[0].shape, self._width, self._settings.mode, self._settings.strength, address(found.offsets)
        worth = 0 if found.worth is None else address(found.worth)
        job = np.array([*map(address, sources), *numbers, worth], np.int64)
        while (ticket := post_adaptation(self._job_ring, job, semaphore.post, semaphore.memory)) < 0:
            time.sleep(_NAP)
        self._used[ticket % MOST_JOBS] = sources, found
        return partial(self._wait, ticket, found)

    def _wait(self, ticket: int, found: Adapted) -> Adapted:
        while adaptations_done(self._job_ring) <= ticket:
            time.sleep(_NAP)
        return found

    def _of_planes(self, planes: Sequence[np.ndarray]) -> Adapted:
        return self._of_energies(energies(in_coded_width(planes, self._width)))

    def _of_held(self, source: HeldSource) -> Callable[[], Adapted]:
        return lambda: self._of_energies(source.energies())

    def _of_energies(self, energy: np.ndarray) -> Adapted:
        offsets = aq_offsets(energy, self._settings)
        return Adapted(offsets, worths(offsets) if self._with_worth else None)
