"""Which GOPs of a file the CPU takes and which a GPU, by the rates at which they encode.

A device takes a GOP if it will have finished it before the other one could have finished all that is left. The CPU gives a
GOP back that turns out to last too long; the GPU then encodes it again, into the same bytes.
"""

import time
from collections import deque
from collections.abc import Sequence
from math import inf

import numpy as np

from ..encoded_frame import EncodedFrame
from ..files.read_ahead import Read
from .queue import Gop, GopQueue, Waiting

WINDOW = 2.0  # seconds: a rate is that of the frames of so long
FIRST = 1.0  # seconds: the shortest time by which a rate is measured
SLOWEST = 8  # a CPU with a smaller part of the GPU's rate takes no GOPs: the GPU loses some per cent by its lane
MARGIN = 0.9  # of the other device's time: rates are not that exact
RETRY = 10.0  # seconds after which a CPU that was too slow is measured again; twice as many after each time


class Rate:
    """Frames a second of a device while it has work."""

    def __init__(self) -> None:
        self.value: float | None = None  # of the last WINDOW; None before it is measured
        self.frames, self.seconds = 0, 0.0  # of all work
        self._marks: deque[tuple[float, int]] = deque()  # time; `frames` then
        self._begin = 0.0  # when the device got work

    def begin(self) -> None:
        """The device gets work."""
        self._begin = time.monotonic()
        self._marks.clear()

    def add(self, frames: int) -> None:
        """So many frames are finished. The first ones after `begin` do not count in `value`: more wait behind them."""
        now, marks = time.monotonic(), self._marks
        self.seconds += now - (marks[-1][0] if marks else self._begin)
        self.frames += frames
        marks.append((now, self.frames))
        while len(marks) > 1 and now - marks[1][0] >= WINDOW:
            marks.popleft()
        since, before = marks[0]
        if now - since > FIRST:
            self.value = (self.frames - before) / (now - since)


class DeviceQueue:
    """The queue as lanes of one device see it: a LaneQueue."""

    def __init__(self, queue: GopQueue, lanes: int, frames: int, longest: int) -> None:
        """lanes: of the device; frames: to be encoded in all; longest: frames of a GOP at the most."""
        self._queue, self._lanes, self._frames, self._longest = queue, lanes, frames, longest
        self._idle = 0  # lanes
        self.is_at_work = False  # whether a lane has a GOP
        self.rate = Rate()
        self.other: DeviceQueue

    @property
    def closing(self) -> bool:
        """See LaneQueue."""
        return self._queue.closing

    @property
    def changes(self) -> int:
        """See LaneQueue."""
        return self._queue.changes

    def next_gop(self) -> Gop | None:
        """See LaneQueue."""
        gop = self._queue.next_gop(self._takes)
        if gop is not None and not self.is_at_work:
            self.rate.begin()
            self.is_at_work = True
        return gop

    def take(self, gop: Gop, most: int) -> list[Waiting]:
        """See LaneQueue."""
        return self._queue.take(gop, most)

    def is_over(self, gop: Gop) -> bool:
        """See LaneQueue."""
        return self._queue.is_over(gop)

    def give_back(self, source: np.ndarray | Read) -> None:
        """See LaneQueue."""
        self._queue.give_back(source)

    def emit(self, done: Sequence[EncodedFrame]) -> None:
        """See LaneQueue."""
        if done:
            self._queue.emit(done)
            self.rate.add(len(done))

    def add_idle(self, lanes: int) -> None:
        """See LaneQueue. The other device looks again whether it takes a GOP."""
        self._idle += lanes
        self.is_at_work = self.is_at_work and self._idle < self._lanes
        self._queue.add_idle(lanes)
        self._queue.wake()

    def has_idle_lane(self) -> bool:
        """See LaneQueue."""
        return self._idle > 0

    def wait_for_change(self, since: int) -> None:
        """See LaneQueue."""
        self._queue.wait_for_change(since)

    def fail(self, number: int, error: BaseException) -> None:
        """See LaneQueue."""
        self._queue.fail(number, error)

    def _takes(self, gop: Gop) -> bool:
        """Whether to take a GOP that waits."""
        rate, other = self.rate.value, self.other.rate.value
        if rate is None or other is None:
            return True
        if not self.other.is_at_work:
            return rate >= other
        return self._length(gop) / rate < MARGIN * self._left / other

    @property
    def _left(self) -> int:
        """Frames that are not finished."""
        return self._frames - self._queue.finished

    def _length(self, gop: Gop) -> int:
        """Frames of a GOP, at the most."""
        if gop.closed or not gop.waiting:
            return gop.taken + len(gop.waiting)
        return min(self._longest, gop.taken + self._frames - gop.waiting[0][0].coding_index)


class CpuQueue(DeviceQueue):
    """That of the CPU, which is measured by a GOP first; its one lane gets Reads alone, which can be read again."""

    def __init__(self, queue: GopQueue, frames: int, longest: int) -> None:
        super().__init__(queue, 1, frames, longest)
        self._gop: Gop | None = None
        self._taken: list[Waiting] = []  # frames of it
        self._retry, self._retry_at = RETRY, inf

    def next_gop(self) -> Gop | None:
        """See LaneQueue."""
        if time.monotonic() > self._retry_at:
            self.rate.value, self._retry_at = None, inf
        self._gop, self._taken = super().next_gop(), []
        return self._gop

    def take(self, gop: Gop, most: int) -> list[Waiting]:
        """See LaneQueue. Puts the GOP back if it lasts too long."""
        if gop is self._gop and self._is_late(gop):
            self._queue.put_back(gop, self._taken)
            self._gop = None
            self._retry_at, self._retry = time.monotonic() + self._retry, 2 * self._retry
            return []
        taken = super().take(gop, most)
        self._taken += taken
        return taken

    def is_over(self, gop: Gop) -> bool:
        """See LaneQueue."""
        return gop is not self._gop or super().is_over(gop)

    def _takes(self, gop: Gop) -> bool:
        if self.rate.value is None:
            return self.other.is_at_work and 2 * self._length(gop) <= self._left
        return super()._takes(gop) and not self._is_slow()

    def _is_slow(self) -> bool:
        cpu, gpu = self.rate.value, self.other.rate.value
        return cpu is not None and gpu is not None and cpu * SLOWEST < gpu

    def _is_late(self, gop: Gop) -> bool:
        """Whether the GPU would sooner have finished all that is left, with this GOP again, than the CPU this GOP."""
        cpu, gpu = self.rate.value, self.other.rate.value
        if cpu is None or gpu is None:
            return False
        length = self._length(gop)
        rest = length - gop.taken
        return self._is_slow() or MARGIN * rest / cpu > (self._left - rest + length) / gpu
