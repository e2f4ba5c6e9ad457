"""What waits for the lanes and what they have finished: pictures on their way in and out, GOP by GOP, for several threads."""

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files.read_ahead import Read

if TYPE_CHECKING:
    from ..pipeline import EncodedFrame

MOST_BYTES = 2 << 30  # of pictures that wait to be encoded
BATCH = 8  # finished pictures for which a waiting caller is woken, which costs more than a picture's bits


@dataclass
class Gop:
    """Pictures of one GOP that no lane has taken, and how many were."""

    number: int
    waiting: deque[np.ndarray | Read] = field(default_factory=deque)
    taken: int = 0


class GopQueue:
    """One caller puts pictures in and fetches them finished, in order; lanes take them and give them back."""

    def __init__(self, lanes: int, keyint: int, picture_bytes: int) -> None:
        self.lanes, self.keyint, self.picture_bytes = lanes, keyint, picture_bytes
        self.room = max(2, min(lanes * keyint, MOST_BYTES // picture_bytes))  # pictures that may wait
        self.waiting = 0  # pictures
        self.free: list[np.ndarray] = []  # buffers
        self.closing = False
        self._lock = threading.RLock()  # the caller takes it itself: an interrupt within Condition's code leaves it held
        self._changed, self._paced = threading.Condition(self._lock), threading.Condition(self._lock)  # lanes wait here
        self._caller: SimpleQueue[None] = SimpleQueue()  # and the caller here, for the same reason
        self.ready: list[EncodedFrame] = []  # finished frames in order, of `collect`
        self._gops: dict[int, Gop] = {}  # those of which pictures may wait
        self._finished: dict[int, EncodedFrame] = {}
        self._came = self._delivered = self._in_order = self._next_gop = 0  # pictures, but for the last
        self._ended = False
        self._failure: BaseException | None = None
        self._end_gop: int | None = None  # no GOP from here on is coded: something failed in it
        self._error: BaseException | None = None
        self._idle = self._left_out = 0  # lanes: without work; those that would not keep up
        self.paces: dict[Any, float] = {}  # seconds a picture of lanes that others have to keep up with
        self.news = 0  # counts what lanes may wait for

    # ---- the caller's side
    def buffer(self) -> np.ndarray:
        """uint8[picture_bytes] for the next picture."""
        with self._lock:
            return self.free.pop() if self.free else np.empty(self.picture_bytes, np.uint8)

    def enter(self, picture: np.ndarray | Read) -> None:
        """The next picture in order; raises what a lane failed with, since nobody would code it."""
        with self._lock:
            if self._failure is not None and self._error is None:
                raise self._failure
            number = self._came // self.keyint
            self._gops.setdefault(number, Gop(number)).waiting.append(picture)
            self._came += 1
            self.waiting += 1
            self._tell()

    def has_room(self) -> bool:
        """Whether another picture may wait, or will not have to."""
        with self._lock:
            return self.waiting < self.room or self._failure is not None or self._ended or self.closing

    def busy(self) -> bool:
        """Whether a lane still has something to do."""
        with self._lock:
            return self._idle < self.lanes or (self.waiting > 0 and self._end_gop is None and not self.closing)

    def wait(self, seconds: float) -> None:
        """A little, unless much is finished, or all that was to do."""
        with self._lock:
            if self._in_order - self._delivered >= BATCH or self._error is not None or not self.busy():
                return
            while not self._caller.empty():  # of changes that are known
                self._caller.get_nowait()
        with suppress(Empty):
            self._caller.get(timeout=seconds)

    def collect(self) -> None:
        """Add finished frames to `ready`, in order; raises, once, what a lane failed with. After an interrupt `ready` may
        hold the last one twice.
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
        """No picture follows; cut: none is begun any more, and what is under way is finished."""
        with self._lock:
            self._ended = True
            self._end_gop = -1 if cut else self._end_gop
            self._tell()

    def close(self) -> None:
        """Lanes leave what they have."""
        with self._lock:
            self.closing = True
            self._tell()

    # ---- a lane's side
    def next_gop(self) -> Gop | None:
        """A GOP that waits, if it is not too far ahead of what is finished in order."""
        with self._changed:
            number = self._next_gop
            if self.closing or number not in self._gops or self._is_cut(number):
                return None
            if number >= self._in_order // self.keyint + 2 * self.lanes:
                return None
            self._next_gop += 1
            return self._gops[number]

    def take(self, gop: Gop, most: int) -> list[Any]:
        """The GOP's next pictures, as far as they have come: so many to read, or one that is there."""
        with self._changed:
            waiting = gop.waiting
            count = 0 if self._is_cut(gop.number) or not waiting else min(most, len(waiting)) if callable(waiting[0]) else 1
            if self.waiting > self.room // 2 >= self.waiting - count:
                self._wake_caller()  # there is room
            self.waiting -= count
            gop.taken += count
            return [waiting.popleft() for _ in range(count)]

    def is_over(self, gop: Gop) -> bool:
        """Whether no picture of it will come any more."""
        with self._changed:
            over = self._is_cut(gop.number) or gop.taken == self.keyint or (self._ended and not gop.waiting)
            if over:
                self._gops.pop(gop.number, None)
            return over

    def give_back(self, buffer: np.ndarray) -> None:
        """A picture that was copied."""
        with self._changed:
            self.free.append(buffer)

    def emit(self, done: "Sequence[EncodedFrame]") -> None:
        """Pictures that are finished."""
        if not done:
            return
        with self._changed:
            gop = self._in_order // self.keyint
            self._finished.update((frame.index, frame) for frame in done)
            while self._in_order in self._finished:
                self._in_order += 1
            if gop != self._in_order // self.keyint:
                self._tell()  # another GOP may begin
            elif self._in_order - self._delivered >= BATCH:
                self._wake_caller()

    def rest(self, lanes: int) -> None:
        """So many lanes more, or less, have nothing to do."""
        with self._changed:
            self._idle += lanes
            self._wake_caller()

    def somebody_rests(self) -> bool:
        """Whether a lane has nothing to do, and would do something."""
        with self._changed:
            return self._idle > self._left_out

    # ---- lanes of unequal speed
    def report_frame_time(self, lane: Any, seconds: float) -> None:
        """What a picture takes a lane that others have to keep up with."""
        with self._changed:
            self.paces[lane] = seconds
            self._paced.notify_all()

    def keeps_up(self, seconds: float) -> bool:
        """Whether a lane that needs so long for a picture is done with a GOP before those that told their pace have done all
        that they may do meanwhile (`next_gop`).
        """
        with self._changed:
            return seconds * sum(1 / pace for pace in self.paces.values()) <= 2 * self.lanes - 1

    def peek(self, count: int) -> list[Any]:
        """The first pictures of the next GOP, which stay where they are."""
        with self._changed:
            gop = self._gops.get(self._next_gop)
            some = list(gop.waiting)[:count] if gop is not None else []
            return [picture if callable(picture) else picture.copy() for picture in some]

    def leave_out(self, lanes: int) -> None:
        """So many lanes more, or less, take no GOP since they would not keep up."""
        with self._changed:
            self._left_out += lanes

    def wait_for_paces(self, seconds: float) -> None:
        """Until one is told, but not longer."""
        with self._changed:
            if not self.closing:
                self._paced.wait(seconds)

    def wait_for_news(self, since: int) -> None:
        """Until `news` is another number."""
        with self._changed:
            while since == self.news:
                self._changed.wait()

    def fail(self, number: int, error: BaseException) -> None:
        """Something failed in that GOP: what is whole is kept; later GOPs are not coded, earlier ones are."""
        with self._changed:
            self._end_gop = number if self._end_gop is None else min(self._end_gop, number)
            if self._failure is None:  # lanes of one GPU fail alike: the first one tells
                self._error = self._failure = error
            self.waiting = 0
            self._tell()

    # ---- with the lock
    def _is_cut(self, number: int) -> bool:
        return self._end_gop is not None and number >= self._end_gop

    def _tell(self) -> None:
        """Wake the caller and the lanes."""
        self.news += 1
        self._changed.notify_all()
        self._wake_caller()
        if self.closing:
            self._paced.notify_all()

    def _wake_caller(self) -> None:
        if self._caller.empty():
            self._caller.put(None)
