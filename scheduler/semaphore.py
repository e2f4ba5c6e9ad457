"""What threads sleep on that run without the interpreter: a semaphore of the C library."""

import ctypes
from typing import Any

import numpy as np

_WORDS = 8  # int64 that hold a sem_t: 32 bytes, and some


class Semaphore:
    """memory: int64[8], the sem_t; post, wait: addresses of what adds to it and takes from it; 0 where there is none."""

    def __init__(self) -> None:
        self.memory, self.post, self.wait = np.zeros(_WORDS, np.int64), 0, 0
        self._library: Any = None
        try:
            library = ctypes.CDLL(None)
            if not library.sem_init(ctypes.c_void_p(address(self.memory)), 0, 0):
                self.post, self.wait = function(library, "sem_post"), function(library, "sem_wait")
                self._library = library
        except (AttributeError, TypeError):  # TypeError: Windows has no such library
            pass

    def wake(self, threads: int) -> None:
        """So many of those that sleep."""
        for _ in range(threads if self._library is not None else 0):
            self._library.sem_post(ctypes.c_void_p(address(self.memory)))


def function(library: ctypes.CDLL, name: str) -> int:
    """Its address; AttributeError."""
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def address(array: np.ndarray) -> int:
    """Of its first element."""
    return int(array.__array_interface__["data"][0])
