"""A thread-safe queue between the caller and the lanes: frames to encode, GOP by GOP, and finished ones, in coding order."""

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ..encoded_frame import EncodedFrame
from ..files.read_ahead import Read

MOST_BYTES = 2 << 30  # of waiting frames
BATCH = 8  # finished frames before the caller is woken: waking costs more than writing a frame's bits

Waiting = tuple[FrameSpec, np.ndarray | Read]


@dataclass(eq=False, repr=False)
class Gop:
    """The frames of a GOP, or of a section of several, that wait, and how many a lane has taken; closed: a later one has
    begun; shown: the last frame in display order that was taken.
    """

    number: int
    waiting: deque[Waiting]
    taken: int = 0
    closed: bool = False
    shown: int = -1

    @property
    def has_gap(self) -> bool:
        """Whether the next frame is displayed before one that was taken."""
        return bool(self.waiting) and self.waiting[0][0].display_index < self.shown


class GopQueue:
    """One caller enters frames and collects finished ones, in coding order; lanes take frames and emit them encoded."""

    def __init__(self, lanes: int, room: int, frame_bytes: int, starts: Sequence[int] = (), ahead: int = 0) -> None:
        """room: frames that may wait, fewer if they are large. starts: first frame (coding index) of each unit of work, which
        is one or more whole GOPs; empty: a unit is one GOP. ahead: GOPs that may be begun before the first one of them is
        finished, at least two a lane.
        """
        self.lanes, self.frame_bytes = lanes, frame_bytes
        self._ahead = max(2 * lanes, ahead)
        self._again: list[Gop] = []  # taken by lanes that are gone
        self.room = max(2, min(room, MOST_BYTES // frame_bytes))
        self._starts, self._is_start = starts, frozenset(starts).__contains__
        self.free: list[np.ndarray] = []  # buffers for frames
        self.release: Callable[[Read], object] = lambda read: None  # called with the Reads that are not needed any more
        self.closing = False
        self._lock = threading.RLock()  # the caller uses no Condition: an interrupt in its code leaves the lock held
        self._changed = threading.Condition(self._lock)  # lanes wait here
        self._caller: SimpleQueue[None] = SimpleQueue()  # the caller waits here, for that reason
        self.ready: list[EncodedFrame] = []  # finished frames in order, filled by `collect`
        self._gops: dict[int, Gop] = {}  # GOPs that may have waiting frames
        self._finished: dict[int, EncodedFrame] = {}
        self._newest: Gop | None = None
        self._delivered = self._in_order = 0  # counts of frames
        self._gops_begun = self._next_gop = 0  # counts of GOPs: with frames finished in order; given to lanes
        self._ended = False
        self._failure: BaseException | None = None
        self._end_gop: int | None = None  # the first GOP that is not encoded, after a failure or `cut`
        self._error: BaseException | None = None
        self._idle = 0  # number of lanes without work
        self.changes = 0  # number of changes, for which lanes may wait

    # ---- for the caller
    def buffer(self) -> np.ndarray:
        """uint8[frame_bytes] for the next frame."""
        with self._lock:
            return self.free.pop() if self.free else np.empty(self.frame_bytes, np.uint8)

    @property
    def waiting(self) -> int:
        """The number of frames that wait: counted, so that it is right after an interrupt at any place."""
        with self._lock:
            return sum(len(gop.waiting) for gop in self._gops.values())

    @property
    def finished(self) -> int:
        """The number of frames that are encoded."""
        with self._lock:
            return self._delivered + len(self._finished)

    def enter(self, spec: FrameSpec, source: np.ndarray | Read) -> None:
        """Add the next frame in order; raises the failure of a lane, after which no frame is encoded."""
        with self._lock:
            self.check()
            self._append(spec, source)
            self._notify()

    def enter_all(self, frames: list[Waiting]) -> None:
        """`enter` for several frames, which leave the list as they enter: lanes are woken once."""
        with self._lock:
            self.check()
            while frames:
                self._append(*frames[0])
                del frames[0]
            self._notify()

    def check(self) -> None:
        """Raise the failure of a lane that `collect` has raised."""
        with self._lock:
            if self.has_failed():
                assert self._failure is not None
                raise self._failure

    def has_failed(self) -> bool:
        """Whether a lane has failed and `collect` has raised that: no frame may be entered."""
        with self._lock:
            return self._failure is not None and self._error is None

    def has_room(self) -> bool:
        """Whether another frame may be entered; also true if it would not be encoded."""
        with self._lock:
            return self.waiting < self.room or self._failure is not None or self._ended or self.closing

    def lacks_frames(self) -> bool:
        """Whether a lane that has the last GOP waits for frames of it, and GOPs that were put back wait for a lane."""
        with self._lock:
            last = self._newest
            return bool(self._again) and last is not None and last.number < self._next_gop and not last.waiting

    def busy(self) -> bool:
        """Whether a lane has work."""
        with self._lock:
            return self._idle < self.lanes or (self.waiting > 0 and self._end_gop is None and not self.closing)

    def wait(self, seconds: float) -> None:
        """Wait up to `seconds`, unless a batch is finished, a lane failed or no work is left."""
        with self._lock:
            if self._in_order - self._delivered >= BATCH or self._error is not None or not self.busy():
                return
            while not self._caller.empty():  # drop signals of earlier changes
                self._caller.get_nowait()
        with suppress(Empty):
            self._caller.get(timeout=seconds)

    def collect(self) -> None:
        """Add finished frames to `ready`, in order; raises the failure of a lane once. After an interrupt `ready` may
        hold the last frame twice.
        """
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            while self._delivered < self._in_order:
                number = self._delivered
                self.ready.append(self._finished[number])
                self._delivered = number + 1
                del self._finished[number]

    def end(self, cut: bool = False) -> None:
        """No frame follows; cut: start no more frames but those that are displayed before one in flight; finish these."""
        with self._lock:
            self._ended = True
            self._end_gop = -1 if cut else self._end_gop
            self._notify()

    def close(self) -> None:
        """Stop the lanes; their frames are dropped."""
        with self._lock:
            self.closing = True
            self._notify()

    # ---- for a lane
    def next_gop(self, takes: Callable[[Gop], bool] = lambda gop: True) -> Gop | None:
        """The next waiting GOP, unless it is more than 2 x lanes GOPs ahead of the frames finished in order.

        takes: whether the lane takes this GOP.
        """
        with self._changed:
            number, is_again = self._next_gop, bool(self._again)
            gop = self._again[0] if is_again else self._gops.get(number)
            if self.closing or gop is None or not (is_again or self._may_begin(number)) or not takes(gop):
                return None
            if is_again:
                del self._again[0]
            else:
                self._next_gop += 1
            return gop

    def take(self, gop: Gop, most: int) -> list[Waiting]:
        """The next waiting frames of the GOP: at most `most` Reads, or one array."""
        with self._changed:
            waiting = gop.waiting
            most = most if waiting and callable(waiting[0][1]) else 1
            count = 0 if self._is_over(gop) else min(most, len(waiting))
            if self.waiting > self.room // 2 >= self.waiting - count:
                self._wake_caller()  # room for frames again
            gop.taken += count
            taken = [waiting.popleft() for _ in range(count)]
            gop.shown = max([gop.shown, *(spec.display_index for spec, _ in taken)])
            return taken

    def is_over(self, gop: Gop) -> bool:
        """Whether no frame of the GOP follows."""
        with self._changed:
            over = self._is_over(gop) or ((gop.closed or self._ended) and not gop.waiting)
            if over:
                self._gops.pop(gop.number, None)
            return over

    def put_back(self, gop: Gop, frames: Sequence[Waiting]) -> None:
        """A GOP that a lane has taken, with the frames taken of it: another lane encodes all of it again."""
        with self._changed:
            gop.waiting.extendleft(reversed(frames))
            gop.taken = 0
            self._gops[gop.number] = gop
            self._again = sorted([*self._again, gop], key=lambda some: some.number)
            self._notify()

    def end_gop(self) -> int | None:
        """The first GOP that is not encoded, after a failure or `cut`; None: there is none."""
        with self._changed:
            return self._end_gop

    def wake(self, caller: bool = False) -> None:
        """Have all lanes look for work; caller: also the caller, whether there is room."""
        with self._changed:
            self.changes += 1
            self._changed.notify_all()
            if caller:
                self._wake_caller()

    def give_back(self, source: np.ndarray | Read) -> None:
        """The frame was copied or read: return its buffer."""
        if not isinstance(source, np.ndarray):
            self.release(source)
            return
        with self._changed:
            self.free.append(source)

    def emit(self, done: Sequence[EncodedFrame]) -> None:
        """Add finished frames."""
        if not done:
            return
        with self._changed:
            begun = self._gops_begun
            for frame in done:
                if frame.coding_index >= self._in_order:  # an earlier one is of a GOP that was put back
                    self._finished[frame.coding_index] = frame
            while self._in_order in self._finished:
                self._gops_begun += self._begins(self._finished[self._in_order])
                self._in_order += 1
            if begun != self._gops_begun:
                self._notify()  # another GOP may begin
            elif self._in_order - self._delivered >= BATCH:
                self._wake_caller()

    def add_idle(self, lanes: int) -> None:
        """Add `lanes` to the number of idle lanes."""
        with self._changed:
            self._idle += lanes
            self._wake_caller()

    def has_idle_lane(self) -> bool:
        """Whether a lane is idle."""
        with self._changed:
            return self._idle > 0

    def wait_for_change(self, since: int) -> None:
        """Wait until `changes` differs from `since`."""
        with self._changed:
            while since == self.changes:
                self._changed.wait()

    def fail(self, number: int, error: BaseException) -> None:
        """Record a failure in GOP `number`: finished frames are kept, earlier GOPs are encoded, later ones are not."""
        with self._changed:
            self._end_gop = number if self._end_gop is None else min(self._end_gop, number)
            if self._failure is None:  # lanes of one GPU fail alike: only the first failure is raised
                self._error = self._failure = error
            self._notify()

    # ---- with the lock held
    def _append(self, spec: FrameSpec, source: np.ndarray | Read) -> None:
        number = bisect_right(self._starts, spec.coding_index) - 1 if self._starts else spec.gop
        if self._newest is not None and self._newest.number == number:
            self._newest.waiting.append((spec, source))
            return
        if self._newest is not None:
            self._newest.closed = True
        self._newest = Gop(number, deque([(spec, source)]))
        self._gops[number] = self._newest  # never without a frame, for which a lane would wait

    def _is_over(self, gop: Gop) -> bool:
        """Whether the GOP is cut, and no frame is missing before the last one."""
        return self._is_cut(gop.number) and not gop.has_gap

    def _begins(self, frame: EncodedFrame) -> bool:
        return self._is_start(frame.coding_index) if self._starts else frame.is_idr

    def _may_begin(self, number: int) -> bool:
        return not self._is_cut(number) and number < self._gops_begun + self._ahead

    def _is_cut(self, number: int) -> bool:
        return self._end_gop is not None and number >= self._end_gop

    def _notify(self) -> None:
        """Wake the caller and the lanes."""
        self.changes += 1
        self._changed.notify_all()
        self._wake_caller()

    def _wake_caller(self) -> None:
        if self._caller.empty():
            self._caller.put(None)
