"""Threads that copy frames into page-locked buffers, from which they are uploaded to a GPU."""

from collections.abc import Sequence

import numpy as np

from ...cuda_src.runtime.array import address_of
from ...jit.kernel import OneVersion
from .copy_kernels import begin_copy, end_copy, help_to_copy
from .semaphore import NoGilThreads

_begin_copy, _end_copy = OneVersion(begin_copy), OneVersion(end_copy)


class Target:
    """Planes that frames are copied to: uint8[H, W] each, with contiguous rows."""

    def __init__(self, planes: Sequence[np.ndarray]) -> None:
        self.planes = tuple(planes)
        contiguous = [plane.strides == (plane.shape[1], 1) for plane in planes]
        self.shapes = [plane.shape if fits else None for plane, fits in zip(planes, contiguous)]
        self.rows = np.array([(address_of(plane), 0, plane.shape[1], 0, plane.shape[0]) for plane in planes], np.int64)


class Copiers(NoGilThreads):
    """Copies planes in the calling thread and `helpers` threads."""

    def __init__(self, helpers: int) -> None:
        super().__init__(helpers, "copy")
        self._own_fence = np.zeros(1, np.int64)

    def copy(self, target: Target, sources: Sequence[np.ndarray]) -> None:
        """Copy planes of the target's sizes. Returns when all are copied."""
        self.begin(target, sources)
        self.end()

    @property
    def helps(self) -> bool:
        """Whether there is any helper thread."""
        self._begin(help_to_copy)
        return bool(self._threads)

    def begin(self, target: Target, sources: Sequence[np.ndarray], upload_fence: np.ndarray | None = None) -> None:
        """Start a copy that `end` ends; the source arrays must not change until then.

        upload_fence: int64[1], PENDING, then READY as soon as all is copied; without helpers not before `end`. One copy at a
        time may have none.
        """
        fence = self._own_fence if upload_fence is None else upload_fence
        semaphore, rows = self._begin(help_to_copy), target.rows
        for k, source in enumerate(sources):
            pitch, step = source.strides
            if step == 1 and source.shape == target.shapes[k]:
                rows[k, 1], rows[k, 3] = address_of(source), pitch
            else:
                np.copyto(target.planes[k], source)
                rows[k, 1] = 0
        _begin_copy.call(self._job_ring, rows, fence, len(self._threads), semaphore.post, semaphore.memory)

    def end(self, upload_fence: np.ndarray | None = None) -> None:
        """Returns when all is copied. upload_fence: the argument of `begin`."""
        _end_copy.call(self._job_ring, self._own_fence if upload_fence is None else upload_fence)
