"""Threads that copy pictures to where a GPU takes them from."""

from collections.abc import Sequence

import numpy as np

from .copy_kernels import BOARD, OVER, begin_copy, end_copy, help_to_copy
from .semaphore import NoGilThreads, address


class Target:
    """Planes that pictures are copied to: uint8[H, W] each, whose rows follow one another."""

    def __init__(self, planes: Sequence[np.ndarray]) -> None:
        self.planes = tuple(planes)
        whole = [plane.strides == (plane.shape[1], 1) for plane in planes]
        self.shapes = [plane.shape if fits else None for plane, fits in zip(planes, whole)]
        self.rows = np.array([(address(plane), 0, plane.shape[1], 0, plane.shape[0]) for plane in planes], np.int64)


class Copiers(NoGilThreads):
    """The caller and `helpers` threads."""

    def __init__(self, helpers: int) -> None:
        super().__init__(np.zeros(BOARD, np.int64), OVER, helpers, "copy")
        self._no_gate = np.zeros(1, np.int64)

    def copy(self, target: Target, sources: Sequence[np.ndarray]) -> None:
        """Planes of the target's sizes. Returns when everything is there."""
        self.begin(target, sources, self._no_gate)
        self.end(self._no_gate)

    @property
    def helps(self) -> bool:
        """Whether any thread does."""
        self._begin(help_to_copy)
        return bool(self._threads)

    def begin(self, target: Target, sources: Sequence[np.ndarray], upload_fence: np.ndarray) -> None:
        """As `copy`, while the caller does something else until `end`; arrays stay as they are until then.

        gate: int64[1], OPEN as soon as everything is there, if somebody `helps`, whatever the caller does; else SHUT.
        """
        semaphore, rows = self._begin(help_to_copy), target.rows
        for k, source in enumerate(sources):
            pitch, step = source.strides
            if step == 1 and source.shape == target.shapes[k]:
                rows[k, 1], rows[k, 3] = address(source), pitch
            else:
                np.copyto(target.planes[k], source)
                rows[k, 1] = 0
        begin_copy(self._job_ring, rows, upload_fence, len(self._threads), semaphore.post, semaphore.memory)

    def end(self, upload_fence: np.ndarray) -> None:
        """Everything is there when it returns; gate: of `begin`."""
        end_copy(self._job_ring, upload_fence)
