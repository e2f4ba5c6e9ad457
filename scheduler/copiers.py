"""Threads that copy pictures to where a card takes them from."""

import ctypes
import threading
from collections.abc import Sequence

import numpy as np

from ..cpu_simd.copying import BOARD, OVER, copy_planes, help_to_copy

SEMAPHORE = 8  # int64 that hold a sem_t: 32 bytes, and some


class Copiers:
    """The caller and `helpers` threads; none where the C library has no semaphores to sleep on."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._board, self._semaphore = np.zeros(BOARD, np.int64), np.zeros(SEMAPHORE, np.int64)
        self._post = 0
        self._threads: list[threading.Thread] = []
        self._begun = False

    def _begin(self) -> None:
        """With the first picture: whoever reads files to where they belong needs no threads."""
        self._begun = True
        wait = self._find_semaphore() if self._helpers else 0
        for k in range(self._helpers if wait else 0):
            life = self._board, wait, self._semaphore
            self._threads.append(threading.Thread(target=help_to_copy, args=life, name=f"h264lite copy {k}", daemon=True))
            self._threads[-1].start()

    def _find_semaphore(self) -> int:
        """Address of sem_wait; 0 where there is none."""
        try:
            library = self._library = ctypes.CDLL(None)
            if library.sem_init(ctypes.c_void_p(_address(self._semaphore)), 0, 0):
                return 0
            self._post, wait = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (library.sem_post, library.sem_wait))
            return wait
        except (AttributeError, TypeError):  # TypeError: Windows has no such library
            return 0

    def copy(self, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
        """uint8[H, W] each; rows of targets follow one another. Returns when everything is there."""
        if not self._begun:
            self._begin()
        planes = []
        for target, source in zip(targets, sources):
            (height, width), (pitch, step) = source.shape, source.strides
            if step != 1 or target.shape != source.shape or target.strides != (width, 1):
                np.copyto(target, source)
            else:
                planes.append((_address(target), _address(source), width, pitch, height))
        if planes:
            copy_planes(self._board, np.array(planes, np.int64), len(self._threads), self._post, self._semaphore)

    def close(self) -> None:
        """End the threads."""
        self._end()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _end(self) -> None:
        self._board[OVER] = 1
        for _ in self._threads:
            self._library.sem_post(ctypes.c_void_p(_address(self._semaphore)))

    def __del__(self) -> None:
        self._end()


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])
