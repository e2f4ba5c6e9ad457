"""Lists of steps by several threads, which take the parts of a step by ticket and poll a counter until all are done.

A thread that has called a kernel takes the interpreter's lock to return: with a call for each of some four hundred parts a
frame, eight threads wait as long for it as the kernels take. So parts that are kernels alone are CompiledSteps, one call a
frame and thread; all others are PythonSteps.
"""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from ...jit.address_calls import call_words, nanoseconds
from ...jit.atomics import add, fetch_add, load_acquire, nap, store_release, wait_until
from ...jit.kernel import OneVersion, kernel

Part = Callable[[], None]
ROUNDS = 2_000  # reads of a counter in one call, about 0.1 ms
GATE_ROUNDS = 40_000  # where a step may not begin: to look again takes the lock of the interpreter from the caller
PATIENCE = 0.002  # seconds of polling before a thread naps
NAP = 0.0001  # seconds of sleep inside a step
PATIENCE_NS, NAP_US = round(1e9 * PATIENCE), round(1e6 * NAP)
LINE = 8  # each counter is on a cache line of its own


@kernel
def arrive(counters, index, count, value, rounds):
    """Adds `count` to counters[index], int64, then spins until it is >= value, for at most `rounds` checks; whether it is."""
    fetch_add(counters, index, count)
    return wait_until(counters, index, value, rounds)


@kernel
def run_steps(calls, words, parts, steps, counters, times, thread, first, end):
    """Takes part in steps [first, end). Returns the step that is still waited for; -1: all are over, or one failed.

    calls, words: as in run_calls; parts, steps: int64, the first call of each part, the first part of each step, and their
    ends. counters: int64[2 * LINE * (steps + 1)]: for each step the parts that are taken and those that are over, 0 at the
    start; then, each the last of its LINE, the number of steps that may begin, and what is not 0 after an error.
    times (out): int64[n, 3], nanoseconds at begin and end of each call, thread.
    """
    failed, begun = counters.size - 1, counters.size - 1 - LINE
    for step in range(first, end):
        if load_acquire(counters, begun) <= step and not wait_until(counters, begun, step + 1, GATE_ROUNDS):
            return np.int64(step)
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


@kernel
def take_part(calls, words, parts, steps, counters, times, thread):
    """`run_steps` for all steps, for a thread that does not return to the interpreter before they are over."""
    step = np.int64(0)
    since = nanoseconds()
    while step >= 0 and load_acquire(counters, counters.size - 1) == 0:
        step = run_steps(calls, words, parts, steps, counters, times, thread, step, steps.size - 1)
        if nanoseconds() - since > PATIENCE_NS:
            nap(NAP_US)


_run_steps = OneVersion(run_steps)


class Steps:
    """Steps in sequence, by the threads of a pool: parts of a step may run concurrently, in any order."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps
        self._members, self._team = count().__next__, 0
        self._counters = np.zeros(2 * LINE * (n_steps + 1), np.int64)  # see run_steps
        self.error: BaseException | None = None

    def begin(self, team: int) -> None:
        """team: threads that may take part beside the caller: more would only wait for each other in a small frame."""
        self._team = team

    def join(self) -> bool:
        """Whether one more thread may take part."""
        return self._members() < self._team

    def work(self, first: int = 0, end: int | None = None) -> None:
        """Run steps [first, end), or all, together with the other threads. Returns when they are over or a part failed."""
        step, since, end = first, 0.0, self.n_steps if end is None else end
        while (step := self._run_from(step, end)) >= 0 and self.error is None:
            now = time.monotonic()
            since = since or now
            if now - since > PATIENCE:
                time.sleep(NAP)

    def _run_from(self, first: int, end: int) -> int:
        """Take part in steps [first, end). Returns the step that is still waited for; -1: all are over."""
        raise NotImplementedError

    def stop(self) -> None:
        """The other threads begin no further call."""


class CompiledSteps(Steps):
    """One run of the steps of a frame, whose parts are calls in compiled code: a thread makes one call a frame."""

    def __init__(self, calls: np.ndarray, words: np.ndarray, parts: np.ndarray, steps: np.ndarray, gated: bool) -> None:
        """gated: threads that take part wait in each step until it is opened (`open_next`). The others: see run_steps."""
        super().__init__(len(steps) - 1)
        self._gate = self._counters.size - 1 - LINE
        self._opened = 0 if gated else self.n_steps
        self._counters[self._gate] = self._opened
        self.times = np.zeros((len(calls), 3), np.int64)
        self.arguments = calls, words, parts, steps, self._counters, self.times  # the first of run_steps
        self.threads: dict[int, str] = {}  # names by number in `times`

    def open_next(self) -> None:
        """The next step may begin."""
        add(self._counters, self._gate, 1)
        self._opened += 1

    def work(self, first: int = 0, end: int | None = None) -> None:
        """See Steps."""
        self.threads[threading.get_native_id()] = threading.current_thread().name
        super().work(first, end)
        if self._counters[-1]:
            self.error = self.error or MemoryError(f"call {self._counters[-1] - 1} of a frame")

    def _run_from(self, first: int, end: int) -> int:
        return int(_run_steps.call(*self.arguments, threading.get_native_id(), first, end))

    def stop(self) -> None:
        """See Steps."""
        self._counters[-1] = 1
        while self._opened < self.n_steps:
            self.open_next()


class PythonSteps(Steps):
    """Steps whose parts are functions: stages that are compared with their twins, rows of a hybrid frame, conversions, and
    all stages where kernels cannot be called by address (jit/address_calls.py). A thread waits without the interpreter.
    """

    def __init__(self, steps: Sequence[Sequence[Part]]) -> None:
        super().__init__(len(steps))
        self._parts = [list(parts) for parts in steps]
        # `next` of a count is one operation of the interpreter, and takes a tenth of the time of a call of a kernel
        self._tickets = [count().__next__ for _ in self._parts]

    def _run_from(self, first: int, end: int) -> int:
        for step in range(first, end):
            parts, next_ticket, mine = self._parts[step], self._tickets[step], 0
            while (ticket := next_ticket()) < len(parts):
                try:
                    if self.error is None:
                        parts[ticket]()
                except BaseException as error:
                    self.error = error
                mine += 1
            if not arrive(self._counters, 2 * LINE * step + LINE, mine, len(parts), ROUNDS):
                return step
        return -1
