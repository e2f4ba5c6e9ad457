"""The steps of a chain by several threads, without the interpreter.

A thread that has called a kernel takes the interpreter's lock to return: with a call for each of some four hundred parts a
frame, eight threads wait as long for it as the kernels take. So a thread makes one call a frame, in which it takes parts by
ticket and waits for the end of each step.
"""

import threading
import time
from itertools import count

import numpy as np

from ...jit.address_calls import call_words, nanoseconds
from ...jit.atomics import fetch_add, load_acquire, store_release, wait_until
from ...jit.kernel import kernel

ROUNDS = 2_000  # reads of a counter in one call, about 0.1 ms
PATIENCE = 0.002  # seconds of polling before a thread naps
NAP = 0.0001  # seconds of sleep inside a step
LINE = 8  # each counter is on a cache line of its own


@kernel
def arrive(counters, index, count, value, rounds):
    """Adds `count` to counters[index], int64, then spins until it is >= value, for at most `rounds` checks; whether it is."""
    fetch_add(counters, index, count)
    return wait_until(counters, index, value, rounds)


@kernel
def run_steps(calls, words, parts, steps, counters, times, thread, first):
    """Takes part in steps from `first` on. Returns the step whose end is still waited for; -1: all are over, or one failed.

    calls, words: as in run_calls; parts, steps: int64, the first call of each part, the first part of each step, and their
    ends. counters: int64[2 * LINE * steps + 1], 0 at the start: for each step the parts that are taken and those that are
    over; the last one is not 0 after an error. times (out): int64[n, 3], nanoseconds at begin and end of each call, thread.
    """
    failed = counters.size - 1
    for step in range(first, steps.size - 1):
        taken, n_parts, mine = 2 * LINE * step, steps[step + 1] - steps[step], 0
        while True:
            part = fetch_add(counters, taken, 1)
            if part >= n_parts:
                break
            part += steps[step]
            if load_acquire(counters, failed) == 0:
                now = nanoseconds()
                for k in range(parts[part], parts[part + 1]):
                    times[k, 0] = now
                    if call_words(calls[k, 0], words, calls[k, 1]) != 0:
                        store_release(counters, failed, np.int64(k + 1))
                    now = nanoseconds()
                    times[k, 1], times[k, 2] = now, thread
            mine += 1
        fetch_add(counters, taken + LINE, mine)
        if not wait_until(counters, taken + LINE, n_parts, ROUNDS):
            return np.int64(step)
    return np.int64(-1)


class CompiledSteps:
    """One run of the steps of a frame; see Steps (pool.py)."""

    def __init__(self, calls: np.ndarray, words: np.ndarray, parts: np.ndarray, steps: np.ndarray) -> None:
        """See run_steps."""
        self._arguments, self._members, self._team = (calls, words, parts, steps), count().__next__, 0
        self._counters = np.zeros(2 * LINE * (len(steps) - 1) + 1, np.int64)
        self.times = np.zeros((len(calls), 3), np.int64)
        self.threads: dict[int, str] = {}  # names by number in `times`
        self.error: BaseException | None = None

    def begin(self, team: int) -> None:
        """team: threads that may take part beside the caller."""
        self._team = team

    def join(self) -> bool:
        """Whether one more thread may take part."""
        return self._members() < self._team

    def work(self) -> None:
        """Run all steps, together with the other threads. Returns when all is done or a call failed."""
        thread, step, since = threading.get_native_id(), 0, 0.0
        self.threads[thread] = threading.current_thread().name
        while (step := run_steps(*self._arguments, self._counters, self.times, thread, step)) >= 0 and self.error is None:
            now = time.monotonic()
            since = since or now
            if now - since > PATIENCE:
                time.sleep(NAP)
        if self._counters[-1]:
            self.error = self.error or MemoryError(f"call {self._counters[-1] - 1} of a frame")

    def stop(self) -> None:
        """The other threads begin no further call."""
        self._counters[-1] = 1
