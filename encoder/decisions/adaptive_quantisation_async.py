"""Adaptive quantisation of the frames that wait: in a thread beside the decisions, which need it much later."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...scheduler.frames.gpu_sources import GpuSource
from ...scheduler.threads.aq_kernels import (
    MOST_JOBS,
    RING_SIZE,
    STOP,
    adaptations_done,
    post_adaptation,
    serve_adaptations,
)
from ...scheduler.threads.dependent_task import ComputeOnce, Starter
from ...scheduler.threads.semaphore import NoGilThreads, address
from ..settings.config import Config
from .adaptive_quantisation import AqSettings, aq_offsets, energies, error_weights, in_coded_width

_NAP = 2e-5  # seconds between looks at a job that has not ended


class AqResult(NamedTuple):
    """offsets: int32[n_mb], of QP_Y in 1 / 256; error_weights: int64[n_mb], of costs for the macroblock tree, in 1 / 2^24."""

    offsets: np.ndarray
    error_weights: np.ndarray | None


class AsyncAdaptiveQuantisation(NoGilThreads):
    """What adaptive quantisation makes of each frame, by display index."""

    def __init__(self, config: Config, start: Starter | None = None) -> None:
        """start: on a CPU, for work that free threads of the loop may do."""
        super().__init__(np.zeros(RING_SIZE, np.int64), STOP, int(config.device != "cpu"), "aq")
        self._settings, self._width, self._with_error_weights = AqSettings.of(config), config.coded_width, config.mbtree
        self._n_mb = config.mb_width * config.mb_height
        self._seen, self._begin_soon = 0, start
        self._results: dict[int, Callable[[], AqResult]] = {}
        self._used: list[Any] = [None] * MOST_JOBS  # by the thread: kept until a later job takes the place

    def see(self, planes: Sequence[np.ndarray] | GpuSource) -> None:
        """The next frame in display order: Y, Cb, Cr, uint8 of display size, unchanged until `take`; or on a GPU."""
        self._results[self._seen] = self._of_gpu_source(planes) if isinstance(planes, GpuSource) else self._start(planes)
        self._seen += 1

    def take(self, display_index: int) -> Callable[[], AqResult]:
        """Of a frame, once: a function that waits for it; GpuLost."""
        return self._results.pop(display_index)

    def _start(self, planes: Sequence[np.ndarray]) -> Callable[[], AqResult]:
        semaphore = self._begin(serve_adaptations)
        if not self._threads:
            adapted = ComputeOnce(partial(self._of_planes, planes))
            if self._begin_soon is None:
                adapted()
            else:
                self._begin_soon(adapted)
            return adapted
        sources = [np.ascontiguousarray(plane) for plane in planes]
        result = AqResult(
            np.empty(self._n_mb, np.int32), np.empty(self._n_mb, np.int64) if self._with_error_weights else None
        )
        numbers = *sources[0].shape, self._width, self._settings.mode, self._settings.strength, address(result.offsets)
        error_weights = 0 if result.error_weights is None else address(result.error_weights)
        job = np.array([*map(address, sources), *numbers, error_weights], np.int64)
        while (ticket := post_adaptation(self._job_ring, job, semaphore.post, semaphore.memory)) < 0:
            time.sleep(_NAP)
        self._used[ticket % MOST_JOBS] = sources, result
        return partial(self._wait, ticket, result)

    def _wait(self, ticket: int, result: AqResult) -> AqResult:
        while adaptations_done(self._job_ring) <= ticket:
            time.sleep(_NAP)
        return result

    def _of_planes(self, planes: Sequence[np.ndarray]) -> AqResult:
        return self._of_energies(energies(in_coded_width(planes, self._width)))

    def _of_gpu_source(self, source: GpuSource) -> Callable[[], AqResult]:
        return lambda: self._of_energies(source.energies())

    def _of_energies(self, energy: np.ndarray) -> AqResult:
        offsets = aq_offsets(energy, self._settings)
        return AqResult(offsets, error_weights(offsets) if self._with_error_weights else None)
