"""Adaptive quantisation of the frames that wait: in a thread beside the decisions, which need it much later."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...cuda_src.runtime.array import address_of
from ...scheduler.frames.device_frame import GpuSource
from ...scheduler.threads.aq_kernels import serve_adaptations
from ...scheduler.threads.dependent_task import ComputeOnce, Starter
from ...scheduler.threads.job_ring import JOB_FIELDS, NOT_DONE
from ...scheduler.threads.semaphore import NoGilThreads
from ..settings.config import Config
from .adaptive_quantisation import AqSettings, aq_offsets, energies, error_weights, in_coded_width

_NAP = 2e-5  # seconds between looks at a job that has not ended
_MOST_AHEAD = 16  # jobs that are not done: the planes of each are kept


class AqResult(NamedTuple):
    """offsets: int32[n_mb], of QP_Y in 1 / 256; error_weights: int32[n_mb], of costs for the macroblock tree, in 1 / 65536."""

    offsets: np.ndarray
    error_weights: np.ndarray | None


class _Used(NamedTuple):
    """A job that may not be done, with the arrays that the thread reads and writes."""

    ticket: int
    sources: list[np.ndarray]
    result: AqResult


class AsyncAdaptiveQuantisation(NoGilThreads):
    """What adaptive quantisation makes of each frame, by display index."""

    def __init__(self, config: Config, start: Starter | None = None) -> None:
        """start: on a CPU, for work that free threads of the loop may do."""
        super().__init__(int(config.machine.device != "cpu"), "aq")
        self._settings, self._with_error_weights = AqSettings.of(config), config.rate.mbtree
        self._width = 16 * config.coding.mb_width
        self._job = np.zeros(JOB_FIELDS - 1, np.int64)
        self._n_mb = config.coding.n_mb
        self._seen, self._begin_soon = 0, start
        self._results: dict[int, Callable[[], AqResult]] = {}
        self._used: deque[_Used] = deque()

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
        offsets, error_weights = np.empty(self._n_mb, np.int32), None
        weights_at = 0
        if self._with_error_weights:
            error_weights = np.empty(self._n_mb, np.int32)
            weights_at = address_of(error_weights)
        result, (height, width) = AqResult(offsets, error_weights), sources[0].shape
        settings = height, width, self._width, *self._settings
        self._job[:] = *map(address_of, sources), *settings, address_of(offsets), weights_at
        if len(self._used) == _MOST_AHEAD:
            self._wait(self._used[0].ticket, result)
        ticket = self._post(self._job, semaphore)
        self._used.append(_Used(ticket, sources, result))
        return partial(self._wait, ticket, result)

    def _wait(self, ticket: int, result: AqResult) -> AqResult:
        """Wait for a job. Jobs end in order: no later call waits for it or an earlier one."""
        if self._used and self._used[0].ticket <= ticket:
            while self._result(ticket) == NOT_DONE:
                time.sleep(_NAP)
        while self._used and self._used[0].ticket <= ticket:
            self._used.popleft()
        return result

    def _of_planes(self, planes: Sequence[np.ndarray]) -> AqResult:
        return self._of_energies(energies(in_coded_width(planes, self._width)))

    def _of_gpu_source(self, source: GpuSource) -> Callable[[], AqResult]:
        return lambda: self._of_energies(source.energies())

    def _of_energies(self, energy: np.ndarray) -> AqResult:
        offsets = aq_offsets(energy, self._settings)
        return AqResult(offsets, error_weights(offsets) if self._with_error_weights else None)
