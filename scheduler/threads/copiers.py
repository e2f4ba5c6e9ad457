"""Threads that copy frames into page-locked buffers, from which they are uploaded to a GPU."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ...cuda_src.runtime.array import address_of
from .copy_kernels import begin_copy, end_copy, help_to_copy, set_source
from .semaphore import NoGilThreads


class Target:
    """Planes that frames are copied to: uint8[H, W] each, with contiguous rows."""

    def __init__(self, planes: Sequence[np.ndarray]) -> None:
        self.planes = tuple(planes)
        contiguous = [plane.strides == (plane.shape[1], 1) for plane in planes]
        self.shapes = [plane.shape if fits else None for plane, fits in zip(planes, contiguous)]
        self.rows = np.array([(address_of(plane), 0, plane.shape[1], 0, plane.shape[0]) for plane in planes], np.int64)
        self.rows_of_planes = list(zip(self.planes, self.shapes, self.rows))  # rows as views


@cache
def _kernels() -> tuple[Callable[..., None], ...]:
    """set_source, begin_copy and end_copy, chosen once: for planes of any strides, which all planes are."""
    numbers, planes = np.zeros(8, np.int64), np.zeros((2, 2), np.uint8)[:, :1]
    ring_arguments = numbers, numbers.reshape(1, -1), numbers, 0, 0, numbers
    return set_source.chosen(planes, numbers), begin_copy.chosen(*ring_arguments), end_copy.chosen(numbers, numbers)


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
        semaphore, (set_place, begin, _) = self._begin(help_to_copy), _kernels()
        for source, (plane, shape, row) in zip(sources, target.rows_of_planes):
            if source.shape == shape and source.strides[1] == 1:
                set_place(source, row)
            else:
                np.copyto(plane, source)
                row[1] = 0
        begin(self._job_ring, target.rows, fence, len(self._threads), semaphore.post, semaphore.memory)

    def end(self, upload_fence: np.ndarray | None = None) -> None:
        """Returns when all is copied. upload_fence: the argument of `begin`."""
        *_, end = _kernels()
        end(self._job_ring, self._own_fence if upload_fence is None else upload_fence)
