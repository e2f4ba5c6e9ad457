"""A thread-safe queue of chunks for the lanes of one device, in any order; finished frames leave as they are made."""

import threading
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from ..encoded_frame import EncodedFrame
from ..files.read_ahead import Read
from ..gops.queue import Gop, Waiting

BATCH = 16  # finished frames before the reader is woken
NOTHING_CUT = 1 << 62  # number of a chunk


class ChunkQueue:
    """As GopQueue for its lanes; a Gop of it is a chunk: one closed GOP or several, coded one after another by one lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.closing = False
        self.changes = 0
        self._changed = threading.Condition()  # lanes and the reader wait here
        self._open: dict[int, Gop] = {}  # chunks that are not closed, by number
        self._ready: deque[Gop] = deque()  # those that no lane has taken
        self._taken: set[int] = set()  # those that a lane has and that are not over
        self._done: list[EncodedFrame] = []
        self._failure: tuple[int, BaseException] | None = None  # the first one, until it is raised
        self.failed_in = 0  # number of its chunk
        self._failed = False
        self._end = NOTHING_CUT
        self._idle = 0
        self._told = 0  # calls of `enter` and `cut`

    # ---- for who has chunks
    def enter(self, number: int, frames: Iterable[Waiting], closed: bool) -> None:
        """Frames of chunk `number`, which follow those entered before; closed: no others follow."""
        with self._changed:
            self._told += 1
            chunk = self._open.get(number)
            if chunk is None:
                chunk = self._open[number] = Gop(number, deque())
                self._ready.append(chunk)
            chunk.waiting.extend(frames)
            chunk.closed = closed
            if closed:
                del self._open[number]
            self._notify()

    def cut(self, number: int) -> None:
        """Start no more frames of chunks from `number` on, but those that are displayed before one in flight."""
        with self._changed:
            self._told += 1
            self._end = min(self._end, number)
            self._notify()

    def close(self) -> None:
        """Stop the lanes; their frames are dropped."""
        with self._changed:
            self.closing = True
            self._notify()

    def fetch(self, seconds: float | None) -> tuple[list[EncodedFrame], int | None]:
        """Finished frames, in coding order within a chunk; waits up to `seconds`, or without limit, for BATCH of them or
        for the lanes to be idle. Raises the failure of a lane, once, after its last frames.

        Returns also how many calls of `enter` and `cut` there were if the lanes have done all that they can, else None.
        """
        with self._changed:
            self._changed.wait_for(self._has_news, seconds)
            done, self._done = self._done, []
            if not done and self._failure is not None:
                (self.failed_in, error), self._failure = self._failure, None
                raise error
            return done, self._told if self._is_idle() else None

    def wait_for_work(self, told: int, seconds: float) -> None:
        """Wait up to `seconds` until there were more such calls than `told`, or frames are finished."""
        with self._changed:
            self._changed.wait_for(lambda: self._told != told or self.closing or bool(self._done), seconds)

    # ---- for a lane, see LaneQueue
    def next_gop(self) -> Gop | None:
        with self._changed:
            while self._ready and self._is_cut(self._ready[0]):
                self._ready.popleft()
            if not self._ready or self.closing:
                return None
            self._taken.add(self._ready[0].number)
            return self._ready.popleft()

    def take(self, chunk: Gop, most: int) -> list[Waiting]:
        with self._changed:
            waiting = chunk.waiting
            taken = [waiting.popleft() for _ in range(0 if self._is_over(chunk) else min(most, len(waiting)))]
            chunk.taken += len(taken)
            chunk.shown = max([chunk.shown, *(spec.display_index for spec, _ in taken)])
            return taken

    def is_over(self, chunk: Gop) -> bool:
        with self._changed:
            over = self._is_over(chunk) or (chunk.closed and not chunk.waiting)
            if over:
                self._taken.discard(chunk.number)
            return over

    def emit(self, done: Sequence[EncodedFrame]) -> None:
        if done:
            with self._changed:
                self._done += done
                if len(self._done) >= BATCH:
                    self._changed.notify_all()

    def add_idle(self, lanes: int) -> None:
        with self._changed:
            self._idle += lanes
            if self._is_idle():
                self._changed.notify_all()

    def has_idle_lane(self) -> bool:
        with self._changed:
            return self._idle > 0

    def wait_for_change(self, since: int) -> None:
        with self._changed:
            while since == self.changes:
                self._changed.wait()

    def fail(self, number: int, error: BaseException) -> None:
        with self._changed:
            self._end = min(self._end, number)
            self._taken = {taken for taken in self._taken if taken < number}
            if not self._failed:
                self._failed, self._failure = True, (number, error)
            self._notify()

    def give_back(self, source: np.ndarray | Read) -> None:
        pass  # the process that has sent a Read knows when it is not needed any more

    # ---- with the lock held
    def _is_cut(self, chunk: Gop) -> bool:
        return chunk.number >= self._end

    def _is_over(self, chunk: Gop) -> bool:
        return self._is_cut(chunk) and not chunk.has_gap

    def _has_news(self) -> bool:
        return len(self._done) >= BATCH or self._failure is not None or self.closing or self._is_idle()

    def _is_idle(self) -> bool:
        return self._idle >= self.lanes and not self._taken and all(map(self._is_cut, self._ready))

    def _notify(self) -> None:
        self.changes += 1
        self._changed.notify_all()
