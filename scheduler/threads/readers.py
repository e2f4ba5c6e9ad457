"""Threads that read pictures of files to where a GPU takes them from."""

import time

import numpy as np

from .read_kernels import BOARD, OVER, UNDER_WAY, begin_to_read, bytes_that_came, read_what_is_asked
from .semaphore import NoGilThreads, address, c_function

NAP, LONGEST_NAP = 2e-5, 1e-3  # seconds between looks at what has not come


class Readers(NoGilThreads):
    """`threads` threads for one that asks. Once they are closed nothing is written to a place any more."""

    def __init__(self, threads: int) -> None:
        self._pread = c_function("pread")
        super().__init__(np.zeros(BOARD, np.int64), OVER, threads if self._pread else 0, "reader")

    def begin(self, file: int, offset: int, place: np.ndarray) -> int | None:
        """Fill uint8[n] from a place in a file; the ticket for `came`, before which `place` is not let go of. None: nobody
        does it.
        """
        semaphore = self._begin(read_what_is_asked, self._pread)
        if not self._threads:
            return None
        return int(begin_to_read(self._job_ring, file, offset, address(place), place.size, semaphore.post, semaphore.memory))

    def came(self, ticket: int) -> int:
        """Waits; how many bytes there were, fewer than asked for if the file ended or could not be read."""
        nap = NAP
        while (came := bytes_that_came(self._job_ring, ticket)) == UNDER_WAY:
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)
        return int(came)

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
