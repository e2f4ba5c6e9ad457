"""Threads that take part in the compiled steps of frames, and wait for those of the next frame, without the interpreter.

A thread that returns to the interpreter takes its lock, for which the caller waits: at each begin and end of a frame as often
as there are threads.
"""

import threading

import numpy as np

from ...jit.address_calls import MOST_WORDS, address_of, call_words, nanoseconds
from ...jit.atomics import add, fetch_add, load_acquire, store_release, take_one, wait_until
from ...jit.kernel import OneVersion, helper, kernel
from .parallel_steps import LINE, PATIENCE_NS, ROUNDS, CompiledSteps, take_part

# int64[WORDS + MOST_WORDS], the frame that is worked on: whether it is open, the threads that joined, minus those inside; the
# address of `take_part`, the number of its words, how many threads may join; the words
OPEN, JOINED, INSIDE, ADDRESS, N_WORDS, TEAM, WORDS = 0, LINE, 2 * LINE, 3 * LINE, 3 * LINE + 1, 3 * LINE + 2, 4 * LINE
WANTED, WENT = LINE, 2 * LINE  # of the posts: threads that should return to the interpreter, and those that did


@kernel
def serve(frame, posts, seen, patience, thread, mine):
    """Takes part in frames. Returns -1 to as many threads as the interpreter wants; or what posts[0] was for long enough.

    frame, posts: see above; seen: posts[0] at the last look; patience: nanoseconds; thread: its number in `times` of the
    steps; mine (out): int64[MOST_WORDS], of this thread.
    """
    while True:
        went = load_acquire(posts, WENT)
        while went < load_acquire(posts, WANTED):
            if take_one(posts, WENT, went):
                return np.int64(-1)
            went = load_acquire(posts, WENT)
        fetch_add(frame, INSIDE, -1)
        if fetch_add(frame, OPEN, 0) > 0 and fetch_add(frame, JOINED, 1) < frame[TEAM]:
            n_words = frame[N_WORDS]
            for k in range(n_words):
                mine[k] = frame[WORDS + k]
            mine[n_words - 1] = thread
            call_words(frame[ADDRESS], mine, 0)
        fetch_add(frame, INSIDE, 1)
        since = nanoseconds()
        while not wait_until(posts, 0, seen + 1, ROUNDS):
            if nanoseconds() - since > patience:
                return np.int64(seen)
        seen = load_acquire(posts, 0)


@helper
def _add_words(frame, at, array):
    """The words of an array (jit/address_calls.py) at an index; returns the index behind them."""
    frame[at], frame[at + 1] = 0, 0
    frame[at + 2], frame[at + 3], frame[at + 4] = array.size, array.itemsize, array.ctypes.data
    for k in range(array.ndim):
        frame[at + 5 + k], frame[at + 5 + array.ndim + k] = array.shape[k], array.strides[k]
    return at + 5 + 2 * array.ndim


@kernel
def open_frame(frame, posts, rounds, team, address, calls, words, parts, steps, counters, times):
    """Lets `team` threads take part in steps, see run_steps. False: some thread is in the last frame after `rounds` checks.

    address: of take_part for these arrays.
    """
    fetch_add(frame, OPEN, 0)  # who closed the last frame did it before the look at those inside
    if not wait_until(frame, INSIDE, 0, rounds):
        return False
    at = _add_words(frame, _add_words(frame, _add_words(frame, WORDS, calls), words), parts)
    at = _add_words(frame, _add_words(frame, _add_words(frame, at, steps), counters), times)
    frame[N_WORDS] = at + 1 - WORDS  # and the thread
    frame[ADDRESS], frame[TEAM], frame[JOINED] = address, team, 0
    store_release(frame, OPEN, np.int64(1))
    fetch_add(posts, 0, 1)
    return True


_serve, _open_frame = OneVersion(serve), OneVersion(open_frame)


class FrameTeam:
    """The threads of a pool whose caller works, and the frame that they take part in. The caller opens and closes it."""

    def __init__(self) -> None:
        self.posts = np.zeros(3 * LINE, np.int64)  # the first: how often there was something new
        self.names: dict[int, str] = {}  # of threads, by their number
        self._frame = np.zeros(WORDS + MOST_WORDS, np.int64)
        self._kept: list[CompiledSteps] = []  # this frame and the one before: a thread that leaves still reads its arrays
        self._address = 0  # of take_part

    def post(self, wanted: int) -> None:
        """Something is new; so many threads should return to the interpreter for it."""
        if wanted:
            add(self.posts, WANTED, wanted)
        add(self.posts, 0, 1)

    def open(self, steps: CompiledSteps, team: int) -> None:
        """Let so many threads take part in steps."""
        steps.threads = self.names
        if not self._address:
            self._address = address_of(take_part, (*steps.arguments, 0))
        self._kept = [*self._kept[-1:], steps]
        while not _open_frame.call(self._frame, self.posts, ROUNDS, team, self._address, *steps.arguments):
            pass

    def close(self) -> None:
        """No more threads join."""
        self._frame[OPEN] = 0

    def serve(self, seen: int, mine: np.ndarray) -> int:
        """See the kernel, by this thread."""
        return int(_serve.call(self._frame, self.posts, seen, PATIENCE_NS, threading.get_native_id(), mine))
