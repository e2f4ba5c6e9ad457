"""Threads that read frames from files into buffers, from which they are uploaded to a GPU."""

import time

import numpy as np

from .read_kernels import BOARD, OVER, UNDER_WAY, begin_to_read, bytes_that_came, read_what_is_asked
from .semaphore import NoGilThreads, address, c_function

NAP, LONGEST_NAP = 2e-5, 1e-3  # seconds between polls of a job that has not ended


class Readers(NoGilThreads):
    """`threads` threads that serve one caller. After `close` no buffer is written."""

    def __init__(self, threads: int) -> None:
        self._pread = c_function("pread")
        super().__init__(np.zeros(BOARD, np.int64), OVER, threads if self._pread else 0, "reader")

    def begin(self, file: int, offset: int, place: np.ndarray) -> int | None:
        """Start to fill `place`, uint8[n], from an offset of a file. Returns the ticket for `came`; None without threads.

        `place` must exist until `came` returns.
        """
        semaphore = self._begin(read_what_is_asked, self._pread)
        if not self._threads:
            return None
        return int(begin_to_read(self._job_ring, file, offset, address(place), place.size, semaphore.post, semaphore.memory))

    def came(self, ticket: int) -> int:
        """Wait for a job. Returns the bytes read, fewer than asked for if the file ended or could not be read."""
        nap = NAP
        while (came := bytes_that_came(self._job_ring, ticket)) == UNDER_WAY:
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)
        return int(came)

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
