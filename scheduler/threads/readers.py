"""Threads that read frames from files into buffers, from which they are uploaded to a GPU."""

import time

import numpy as np

from ...cuda_src.runtime.array import address_of
from .job_ring import NOT_DONE
from .read_kernels import serve_reads
from .semaphore import NoGilThreads, c_function

NAP, LONGEST_NAP = 2e-5, 1e-3  # seconds between polls of a job that has not ended


class Readers(NoGilThreads):
    """`threads` threads that serve one caller, for at most MOST_JOBS jobs at once. After `close` no buffer is written."""

    def __init__(self, threads: int) -> None:
        self._pread = c_function("pread")
        self._job = np.zeros(4, np.int64)
        super().__init__(threads if self._pread else 0, "reader")

    def begin(self, file: int, offset: int, buffer: np.ndarray) -> int | None:
        """Start to fill `buffer`, uint8[n], from an offset of a file. Returns the ticket for `wait`; None without threads.

        `buffer` must exist until `wait` returns.
        """
        semaphore = self._begin(serve_reads, self._pread)
        if not self._threads:
            return None
        self._job[:] = file, offset, address_of(buffer), buffer.size
        return self._post(self._job, semaphore)

    def wait(self, ticket: int) -> int:
        """Wait for a job. Returns the bytes read, fewer than requested if the file ended or could not be read."""
        nap = NAP
        while (done_bytes := self._result(ticket)) == NOT_DONE:
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP)
        return done_bytes

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
