"""Threads that copy pictures to where a card takes them from."""

import threading
from collections.abc import Sequence

import numpy as np

from ..cpu_simd.copying import BOARD, OVER, copy_planes, help_to_copy
from .semaphore import Semaphore, address


class Copiers:
    """The caller and `helpers` threads; none where the C library has no semaphores to sleep on."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._board = np.zeros(BOARD, np.int64)
        self._semaphore: Semaphore | None = None
        self._threads: list[threading.Thread] = []

    def _begin(self) -> Semaphore:
        """With the first picture: whoever reads files to where they belong needs no threads."""
        semaphore = Semaphore()
        for k in range(self._helpers if semaphore.wait else 0):
            life = self._board, semaphore.wait, semaphore.memory
            self._threads.append(threading.Thread(target=help_to_copy, args=life, name=f"h264lite copy {k}", daemon=True))
            self._threads[-1].start()
        return semaphore

    def copy(self, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
        """uint8[H, W] each; rows of targets follow one another. Returns when everything is there."""
        if self._semaphore is None:
            self._semaphore = self._begin()
        semaphore, planes = self._semaphore, []
        for target, source in zip(targets, sources):
            (height, width), (pitch, step) = source.shape, source.strides
            if step != 1 or target.shape != source.shape or target.strides != (width, 1):
                np.copyto(target, source)
            else:
                planes.append((address(target), address(source), width, pitch, height))
        if planes:
            copy_planes(self._board, np.array(planes, np.int64), len(self._threads), semaphore.post, semaphore.memory)

    def close(self) -> None:
        """End the threads."""
        self._end()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _end(self) -> None:
        self._board[OVER] = 1
        if self._semaphore is not None:
            self._semaphore.wake(len(self._threads))

    def __del__(self) -> None:
        self._end()
