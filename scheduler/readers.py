"""Threads that read pictures of files to where a card takes them from."""

import ctypes
import threading
import time
from contextlib import suppress

import numpy as np

from ..cpu_simd.reading import BOARD, OVER, UNDER_WAY, begin_to_read, bytes_that_came, read_what_is_asked
from .semaphore import Semaphore, address, function

NAP, LONGEST_NAP = 2e-5, 1e-3  # seconds between looks at what has not come


class Readers:
    """`threads` threads for one that asks; none where the C library has no semaphores to sleep on."""

    def __init__(self, threads: int) -> None:
        self._asked = threads
        self._board = np.zeros(BOARD, np.int64)
        self._semaphore: Semaphore | None = None
        self._threads: list[threading.Thread] = []

    def _begin(self) -> Semaphore:
        semaphore = Semaphore()
        with suppress(AttributeError, TypeError):  # as there
            self._library = ctypes.CDLL(None)
            read = function(self._library, "pread")
            for k in range(self._asked if semaphore.wait else 0):
                life = self._board, read, semaphore.wait, semaphore.memory
                self._threads.append(threading.Thread(target=read_what_is_asked, args=life, name=f"h264lite reader {k}"))
                self._threads[-1].daemon = True
                self._threads[-1].start()
        return semaphore

    def begin(self, file: int, offset: int, place: np.ndarray) -> int | None:
        """Fill uint8[n] from a place in a file; the ticket for `came`, before which `place` is not let go of. None: nobody
        does it.
        """
        if self._semaphore is None:
            self._semaphore = self._begin()
        if not self._threads:
            return None
        semaphore = self._semaphore
        return int(begin_to_read(self._board, file, offset, address(place), place.size, semaphore.post, semaphore.memory))

    def came(self, ticket: int) -> int:
        """Waits; how many bytes there were, fewer than asked for if the file ended or could not be read."""
        nap = NAP
        while (came := bytes_that_came(self._board, ticket)) == UNDER_WAY:
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)
        return int(came)

    def close(self) -> None:
        """End the threads: nothing is written any more, and what has not begun is not read."""
        self._board[OVER] = 1
        if self._semaphore is not None:
            self._semaphore.wake(len(self._threads))
        for thread in self._threads:
            thread.join()
        self._threads = []

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
