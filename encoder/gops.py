"""Several closed GOPs at once, each in a lane: a pipeline on one of the devices. Packets come out in order.

A GOP begins with an IDR picture, so nothing of another GOP reaches its bits: which lane codes it, and what runs beside it,
changes no byte. A lane that is free takes the next GOP, so that a fast device takes more of them than a slow one.
"""

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scheduler.trace import Trace
from .config import Config
from .errors import InputError
from .frame import split_planes
from .read_ahead import TOGETHER, Read, ReadAhead
from .video import Planes

if TYPE_CHECKING:
    from .pipeline import EncodedFrame, Pipeline

MOST_BYTES = 2 << 30  # of pictures that wait to be encoded
LANES_OF_A_CARD = 2
SMALL = 1620  # macroblocks: 4CIF
SLICE = 0.1  # seconds: how long a caller waits before it looks after signals
BATCH = 8  # finished pictures for which a waiting caller is woken, which costs more than a picture's bits


@dataclass
class _Gop:
    """Pictures of one GOP that no lane has begun, and how many came so far."""

    number: int
    waiting: deque[np.ndarray | Read] = field(default_factory=deque)
    came: int = 0
    begun: int = 0  # by its lane


def count_lanes(config: Config, frames: int | None) -> int:
    """How many GOPs at once: as asked for, or as many as pay; not more than there are, but at least one a device.

    frames: of an input that can be read in any order; None: frames come one after another, and those of later GOPs would
    wait for their turn, so `auto` is one GOP then.
    """
    if not config.gops and frames is None:
        return len(config.devices)
    lanes = config.gops or _tuned_lanes(config) or sum(_lanes_that_pay(config, name) for name in config.devices)
    return max(len(config.devices), min(lanes, -(-frames // config.keyint) if frames else lanes))


def _tuned_lanes(config: Config) -> int:
    """What the tuning file says for this machine's better device: pinned, or chosen on pictures that are not small."""
    if config.tuning is None or config.device == "hybrid" or len(config.devices) > 1:
        return 0
    small = config.mb_width * config.mb_height <= SMALL
    return int(config.tuning.pins.get("gops") or (0 if small else config.tuning.chosen.get("gops", 0)))


def _lanes_that_pay(config: Config, device: str) -> int:
    """On the CPU a thread for each while pictures are small, else two; on a card one reads beside the other's launches."""
    if config.device == "hybrid":
        return 1
    if device != "cpu":
        return LANES_OF_A_CARD if config.threads >= 4 else 1
    return config.threads if config.mb_width * config.mb_height <= SMALL else max(1, config.threads // 2)


def picture_bytes(config: Config) -> int:
    """Bytes of a picture of display size, I420."""
    return sum(height * width for height, width in config.display)


def make_pipeline(
    config: Config, keep: bool, warn: Callable[[str], None] | None, trace: Trace | None, frames: int | None = None
) -> "Pipeline | Gops":
    """What encodes with these settings: one pipeline, or lanes for several GOPs."""
    from .pipeline import Pipeline

    lanes = count_lanes(config, frames)
    if lanes == 1:
        return Pipeline(config, keep, warn, trace)
    return Gops(config, lanes, keep, warn, trace)


class Gops:
    """As Pipeline, for `lanes` GOPs at once; the devices of the settings take turns. Frames lie on the host."""

    def __init__(
        self, config: Config, lanes: int, keep_reconstruction: bool = False, warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        from .pipeline import Pipeline

        self.config = config
        self._say = warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2))
        self._warned = False
        self._size = picture_bytes(config)
        self._room = max(2, min(lanes * config.keyint, MOST_BYTES // self._size))  # pictures that may wait
        self._changed = threading.Condition()
        self._gops: dict[int, _Gop] = {}  # those of which pictures wait or are under way
        self._free: list[np.ndarray] = []
        self._finished: dict[int, EncodedFrame] = {}
        self._waiting = 0  # pictures
        self._came = self._delivered = self._in_order = self._next_gop = 0  # pictures, but for the last
        self._ended = self._closing = False
        self._end_gop: int | None = None  # no GOP from here on is coded: something failed in it
        self._error: BaseException | None = None
        self._failed = False
        self._idle = 0  # lanes
        self._news = 0  # counts what lanes may wait for
        self._buffer: np.ndarray | None = None
        self._readers = ThreadPoolExecutor(TOGETHER * lanes, "h264lite reader")
        self.lanes: list[Pipeline] = []
        try:
            for k in range(lanes):
                settings = lane_settings(config, k, lanes)
                view = trace.part(f"gop lane {k}, ") if trace is not None else None
                self.lanes.append(Pipeline(settings, keep_reconstruction, self._warn, view))
        except BaseException:
            self._close_lanes()
            raise
        self._threads = [
            threading.Thread(target=self._work, args=(lanes,), name=f"h264lite-gop-{k}", daemon=True)
            for k, lanes in enumerate(lanes_by_thread(self.lanes))
        ]
        for thread in self._threads:
            thread.start()

    # ---- as Pipeline
    def headers(self) -> bytes:
        """See Pipeline."""
        return self.lanes[0].headers()

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """See Pipeline."""
        with self._changed:
            if self._buffer is None:
                self._buffer = self._free.pop() if self._free else np.empty(self._size, np.uint8)
        return self._buffer

    def encode(self, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> "list[EncodedFrame]":
        """See Pipeline; waits while too many pictures wait."""
        buffer = self.next_buffer()
        assert buffer is not None
        for target, plane in zip(split_planes(buffer, self.config.display), (y, u, v)):
            if not np.may_share_memory(target, plane):
                np.copyto(target, plane)
        self._buffer = None
        while not self.has_room():
            with self._changed:
                self._changed.wait(SLICE)
        return self._enter(buffer)

    def encode_later(self, read: Read) -> "list[EncodedFrame]":
        """The same for a picture that its lane reads when its turn comes, perhaps with some behind it; all come so or none."""
        return self._enter(read)

    def encode_on_card(self, picture: Any) -> "list[EncodedFrame]":
        """Refused: a picture that stays on the card would have to wait there for its GOP's turn."""
        raise InputError("frames on a GPU are encoded one GOP at a time: gops=1")

    def flush(self) -> "list[EncodedFrame]":
        """See Pipeline."""
        self.end()
        while self.busy():
            with self._changed:
                self._changed.wait(SLICE)
        return self._deliver()

    def close(self) -> None:
        """See Pipeline."""
        with self._changed:
            self._closing = True
            self._tell()
        for thread in self._threads:
            thread.join()
        self._readers.shutdown()
        self._close_lanes()

    # ---- for a caller that does not want to wait
    def has_room(self) -> bool:
        """Whether another picture is taken at once."""
        with self._changed:
            return self._waiting < self._room or self._error is not None

    def busy(self) -> bool:
        """Whether a lane still has something to do."""
        with self._changed:
            return self._idle < len(self.lanes) or (self._waiting > 0 and self._end_gop is None and not self._closing)

    def poll(self, seconds: float = SLICE) -> "list[EncodedFrame]":
        """What is finished and in order; waits a little if that is little and more is under way."""
        with self._changed:
            if self._in_order - self._delivered < BATCH and self._error is None and self._idle < len(self.lanes):
                self._changed.wait(seconds)
        return self._deliver()

    def end(self) -> None:
        """No picture follows."""
        with self._changed:
            self._ended = True
            self._tell()

    def cut(self) -> None:
        """No picture is begun any more: what is under way is finished."""
        with self._changed:
            self._end_gop = -1
            self._ended = True
            self._tell()

    # ---- the caller's side
    def _enter(self, picture: np.ndarray | Read) -> "list[EncodedFrame]":
        with self._changed:
            number = self._came // self.config.keyint
            gop = self._gops.setdefault(number, _Gop(number))
            gop.waiting.append(picture)
            gop.came += 1
            self._came += 1
            self._waiting += 1
            self._tell()
        return self._deliver()

    def _deliver(self) -> "list[EncodedFrame]":
        """Finished pictures in order; raises, once, what a lane failed with."""
        with self._changed:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            done = [self._finished.pop(number) for number in range(self._delivered, self._in_order)]
            self._delivered = self._in_order
        return done

    def _warn(self, text: str) -> None:
        """One warning for all lanes: they lose the same card."""
        with self._changed:
            first, self._warned = not self._warned, True
        if first:
            self._say(text)

    def _close_lanes(self) -> None:
        for lane in self.lanes:
            lane.close()

    # ---- a lane's side
    def _work(self, lanes: "list[Pipeline]") -> None:
        """What a thread does: its lanes take turns, a picture each; while none can do anything it waits."""
        turns = deque(self._code(lane) for lane in lanes)
        while turns:
            with self._changed:
                news = self._news
            begun = 0
            for turn in list(turns):
                step = next(turn, None)
                begun += bool(step)
                if step is None:
                    turns.remove(turn)
            with self._changed:
                while turns and not begun and news == self._news:
                    self._changed.wait()

    def _code(self, lane: "Pipeline") -> Iterator[bool]:
        """Codes GOPs, picture by picture: whether one was begun, or else there was none. Ends with the encode."""
        gop: _Gop | None = None
        try:
            while not self._closing:
                if (gop := self._next_of(gop)) is None:
                    self._emit(lane.flush())  # what is under way
                    self._rest(1)
                    while (gop := self._next_of(None)) is None and not self._closing:
                        yield False
                    if gop is None:
                        return
                    self._rest(-1)
                lane.begin_gop(gop.number, gop.number * self.config.keyint)
                for place in self._pictures(lane, gop):
                    if place is not None:
                        in_place = place is lane.next_buffer()
                        self._emit(lane.encode_in_place() if in_place else lane.encode(*_planes(place, self.config)))
                    yield place is not None
        except BaseException as error:  # whoever feeds the lanes gets it
            self._fail(lane, gop, error)

    def _pictures(self, lane: "Pipeline", gop: _Gop) -> Iterator[np.ndarray | None]:
        """The GOP's pictures in order, None while the next has not come."""
        ahead, on_card = ReadAhead(self._readers), lane.next_buffer() is not None
        own = np.empty(0 if on_card else self._size, np.uint8)
        while True:
            taken = self._take(gop, ahead.room if on_card else 1)
            if taken and not callable(taken[0]):
                yield taken[0]
                with self._changed:
                    self._free.append(taken[0])
            elif taken and on_card:
                ahead.begin(taken, lane.next_buffer)
            elif taken:
                taken[0]([own])
                yield own
            elif ahead:
                yield ahead.next()
            elif self._is_over(gop):
                return
            else:
                yield None

    def _next_of(self, last: _Gop | None) -> _Gop | None:
        """The next GOP behind one that is over, if there is one."""
        with self._changed:
            if last is not None:
                self._gops.pop(last.number, None)
            return self._find_gop()

    def _rest(self, lanes: int) -> None:
        """So many lanes more, or less, have nothing to do."""
        with self._changed:
            self._idle += lanes
            self._changed.notify_all()

    def _find_gop(self) -> _Gop | None:
        """A GOP that waits, if it is not too far ahead of what is finished in order; None too if all is over."""
        number = self._next_gop
        if self._closing or number not in self._gops or (self._end_gop is not None and number >= self._end_gop):
            return None
        if number >= self._in_order // self.config.keyint + 2 * len(self.lanes):
            return None
        self._next_gop += 1
        return self._gops[number]

    def _take(self, gop: _Gop, most: int) -> list[Any]:
        """The GOP's next pictures, as far as they have come: so many to read, or one that is there."""
        with self._changed:
            waiting = gop.waiting
            count = 0 if self._ends_before(gop) or not waiting else min(most, len(waiting)) if callable(waiting[0]) else 1
            if self._waiting > self._room // 2 >= self._waiting - count:
                self._changed.notify_all()  # the caller, for whom there is room
            self._waiting -= count
            gop.begun += count
            return [waiting.popleft() for _ in range(count)]

    def _ends_before(self, gop: _Gop) -> bool:
        return self._closing or (self._end_gop is not None and gop.number >= self._end_gop)

    def _is_over(self, gop: _Gop) -> bool:
        """Whether no picture of it will come."""
        with self._changed:
            return self._ends_before(gop) or gop.begun == self.config.keyint or (self._ended and not gop.waiting)

    def _emit(self, done: "list[EncodedFrame]") -> None:
        if done:
            with self._changed:
                before = self._in_order // self.config.keyint
                self._finished.update((frame.index, frame) for frame in done)
                while self._in_order in self._finished:
                    self._in_order += 1
                if before != self._in_order // self.config.keyint:
                    self._tell()  # lanes: another GOP may begin
                elif self._in_order - self._delivered >= BATCH:
                    self._changed.notify_all()

    def _tell(self) -> None:
        """Wake who waits, lanes too; the lock is held."""
        self._news += 1
        self._changed.notify_all()

    def _fail(self, lane: "Pipeline", gop: _Gop | None, error: BaseException) -> None:
        """What is whole is kept; later GOPs are not coded, earlier ones are."""
        try:
            self._emit(lane.flush())
        except Exception:  # the first failure counts
            pass
        with self._changed:
            number = gop.number if gop is not None else 0
            self._end_gop = number if self._end_gop is None else min(self._end_gop, number)
            if not self._failed:  # lanes of one card fail alike: the first one tells
                self._error, self._failed = error, True
            self._waiting = 0
            self._idle += 1
            self._tell()


def lanes_by_thread(lanes: "list[Pipeline]") -> "list[list[Pipeline]]":
    """Lanes of one card share a thread, since what they do on the host is Python's, which no two threads do at once."""
    found: dict[Any, list[Pipeline]] = {}
    for k, lane in enumerate(lanes):
        of_a_card = lane.config.device == "cuda"
        found.setdefault(lane.config.ordinal if of_a_card else ("cpu", k), []).append(lane)
    return list(found.values())


def lane_settings(config: Config, k: int, lanes: int) -> Config:
    """The settings of lane k: its device, its share of the threads."""
    device, _, ordinal = config.devices[k % len(config.devices)].partition(":")
    threads = max(1, (config.threads + k) // lanes)
    return replace(config, device=device, ordinal=int(ordinal or 0), threads=threads)


def _planes(picture: np.ndarray, config: Config) -> Planes:
    y, u, v = split_planes(picture, config.display)
    return y, u, v
