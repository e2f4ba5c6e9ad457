"""Threads that run compiled code without the interpreter's lock, and the C semaphore on which they sleep."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ...cuda_src.runtime.array import address_of
from ...jit.kernel import OneVersion
from ...process import start_threads
from .job_ring import RING_SIZE, STOP, post_job, result_of

_post_job, _result_of = OneVersion(post_job), OneVersion(result_of)
_SEM_T_SIZE = 8  # int64 elements that hold a sem_t (32 bytes) with a margin


class Semaphore:
    """memory: int64[8], the sem_t; post, wait: addresses of sem_post and sem_wait, 0 if the C library has none."""

    def __init__(self) -> None:
        self.memory, self.post, self.wait = np.zeros(_SEM_T_SIZE, np.int64), 0, 0
        self._library: Any = None
        try:
            library = ctypes.CDLL(None)
            if not library.sem_init(ctypes.c_void_p(address_of(self.memory)), 0, 0):
                self.post, self.wait = c_function("sem_post"), c_function("sem_wait")
                self._library = library
        except (AttributeError, TypeError):  # as in c_function
            pass

    def wake(self, threads: int) -> None:
        """Wake `threads` threads."""
        for _ in range(threads if self._library is not None else 0):
            self._library.sem_post(ctypes.c_void_p(address_of(self.memory)))


class NoGilThreads:
    """Up to `count` threads that work on a job ring, as many as start; none if the C library has no semaphores.

    They refer to the job ring and the semaphore, not to this object.
    """

    def __init__(self, count: int, name: str) -> None:
        self._job_ring, self._count, self._name = np.zeros(RING_SIZE, np.int64), count, name
        self._semaphore: Semaphore | None = None
        self._threads: list[threading.Thread] = []

    def _begin(self, main_loop: Callable[..., None], *arguments: int) -> Semaphore:
        """Start the threads with the first job. main_loop(job_ring, *arguments, address of sem_wait, sem_t)."""
        if self._semaphore is None:
            semaphore = self._semaphore = Semaphore()
            all_arguments = (self._job_ring, *arguments, semaphore.wait, semaphore.memory)
            wanted = (
                threading.Thread(target=main_loop, args=all_arguments, name=f"h264lite {self._name} {k}", daemon=True)
                for k in range(self._count if semaphore.wait else 0)
            )
            start_threads(wanted, self._threads)
        return self._semaphore

    def _post(self, job: np.ndarray, semaphore: Semaphore) -> int:
        """See post_job. semaphore: of `_begin`."""
        ticket: int = _post_job.call(self._job_ring, job, semaphore.post, semaphore.memory)
        return ticket

    def _result(self, ticket: int) -> int:
        """See result_of."""
        result: int = _result_of.call(self._job_ring, ticket)
        return result

    def close(self) -> None:
        """End the threads: each finishes its current job and starts no other."""
        self._end()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _end(self) -> None:
        self._job_ring[STOP] = 1
        if self._semaphore is not None:
            self._semaphore.wake(self._count)  # an interrupt may have kept one that was started from the list

    def __del__(self) -> None:
        if hasattr(self, "_threads"):  # none where its constructor was interrupted
            self._end()


def c_function(name: str) -> int:
    """Address of a function of the C library; 0 if it has none of this name."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    except (AttributeError, TypeError):  # TypeError: Windows has no such library
        return 0
