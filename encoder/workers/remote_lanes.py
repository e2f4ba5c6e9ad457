"""One worker process seen from the encode: the GOPs that it has, and the threads that feed it and read from it."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from ...process import start_threads
from ...scheduler.threads.watchdog import VARIABLE, limit_from_environment
from ...scheduler.trace import Span
from ..encoded_frame import EncodedFrame
from ..errors import DeviceLost, Error
from ..files.read_ahead import FileRead
from ..gops.gops import NoThreads
from ..gops.queue import Gop, GopQueue, Waiting
from ..settings.config import Config
from .process import Process, take_process
from .slots import Slot, Slots

Message = tuple[tuple[object, ...], tuple[int, ...]]
"""What is sent, and descriptors that go with it."""
_MOST_STARTS = 4  # of the processes of one worker
# Seconds without a message of a process, which sends one every second, after which it counts as stopped: from its start on
# until it is ready; later; once the encode was cut
_AT_START, _AT_WORK, _AT_END = 60.0, 20.0, 3.0
_FRAMES_OF_A_LANE = 32  # frames that a lane has at the least: more GOPs than lanes are taken for that
_MOST_FRAMES_OF_A_LANE = 256


@dataclass(eq=False)
class SentGop:
    """A GOP that a process has: its frames in coding order, kept to be sent again, and those that have not come back."""

    gop: Gop
    frames: list[Waiting] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)  # coding indices
    closed: bool = False  # whether the process knows that no frame follows
    can_repeat: bool = True


@dataclass(frozen=True)
class Team:
    """What the workers of an encode share. room: slots that may be in use; lost: called with the reason by a worker that is
    given up; say: warns of a loss, once; warn: passes on warnings; spans: for the timeline, with the worker's number.
    """

    queue: GopQueue
    slots: Slots
    room: int
    lost: Callable[[str], None]
    say: Callable[[str], None]
    warn: Callable[[str], None]
    spans: Callable[[int, list[Span]], None] | None


class RemoteLanes:
    """A worker: it takes GOPs of the queue for one device. If its process dies, GOPs go back and another one is started.

    Messages to the process: (config, keep, lanes, traced) at first; ("frames", GOP, [(spec, file, offset, frame)], closed),
    ("file", descriptor here, name) with the descriptor, ("cut", GOP), ("bt709",). From it: ("ready",) or ("failed", 0, error)
    at first; ("done", frames, spans), ("idle", messages so far), ("warn", text), ("failed", GOP, error); and at
    any time that it is alive.
    """

    def __init__(self, number: int, config: Config, keep: bool, lanes: int, team: Team) -> None:
        self._number, self._config, self._keep, self.lanes, self._team = number, config, keep, lanes, team
        self._lock = threading.Lock()
        self._sent: dict[int, SentGop] = {}  # by number of the GOP
        self._by_frame: dict[int, SentGop] = {}  # those of frames that have not come back
        self._files: set[int] = set()  # descriptors that the process has
        self._messages = 0  # of frames, and to cut
        self._cut: int | None = None  # what the process was told
        self._idle = self._limited = False
        self._lives = True  # whether the process takes GOPs
        self._listens = False  # whether it has been told what to encode
        self._starts = 1
        self._over = False
        self._bt709 = False
        self._limit = limit_from_environment() or math.inf  # seconds
        self._progress = time.monotonic()  # when frames came back; endless: none did for long, and that was told
        self._threads: list[threading.Thread] = []
        self._process = take_process(config.machine.devices[0])
        self._tell_all(self._process)

    def _tell_all(self, process: Process) -> None:
        """Tell a new process what to encode."""
        try:
            process.connection.send((self._config, self._keep, self.lanes, self._team.spans is not None))
        except OSError:
            pass  # `_until_ready` finds out

    # ---- for the encode
    def wait_until_ready(self) -> None:
        """Raises what prevents the process from encoding."""
        error = self._until_ready()
        if error is not None:
            raise error

    def _until_ready(self) -> BaseException | None:
        """Wait for the process, or another one if it ends; what prevents these from encoding."""
        while True:
            try:
                message_type, *rest = self._process.receive(lambda: _AT_START, lambda: None)
                return None if message_type == "ready" else rest[1]
            except (EOFError, OSError) as error:
                how = str(error) if isinstance(error, TimeoutError) else self._process.end()
            if self._over or self._starts == _MOST_STARTS:
                return Error(f"a worker for {self._config.machine.devices[0]} has ended at its start ({how})")
            if not self._begin_again():
                return Error("no other worker process can be started")

    def _begin_again(self) -> bool:
        """Another process in place of one that has ended."""
        self._starts += 1
        self._process.end()
        try:
            process = take_process(self._config.machine.devices[0])
        except OSError:
            return False
        with self._lock:
            self._process = process
            if self._over:
                process.connection.shut()
        self._tell_all(process)
        return True

    def _patience(self) -> float:
        """Seconds without a message after which the process counts as stopped."""
        at_work = min(_AT_WORK, self._limit) if self._limit < math.inf else math.inf
        return at_work if self._team.queue.end_gop() is None else _AT_END

    def start(self) -> None:
        """Begin to take GOPs. NoThreads."""
        with self._lock:
            self._listens = True
            self._be_idle(True)
        threads = [
            threading.Thread(target=step, name=f"h264lite-worker-{self._number}-{step.__name__[1:]}", daemon=True)
            for step in (self._feed, self._read)
        ]
        if not start_threads(threads, self._threads):
            raise NoThreads("no threads can be started for worker processes")

    def is_blocked(self) -> bool:
        """Whether a GOP that lacks frames is before others, which were put back: a lane waits for its frames."""
        with self._lock:
            gops = [*self._sent.values()]
            return any(not sent.closed for sent in gops[:-1])

    def set_bt709(self) -> None:
        """Before the first frame."""
        with self._lock:
            self._bt709 = True
            self._tell_bt709()

    def _tell_bt709(self) -> None:
        try:
            self._process.connection.send(("bt709",))
        except OSError:
            pass  # the next process is told

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.number

    def stop(self) -> None:
        """Tell the process and the threads to end."""
        with self._lock:
            self._over = True
        self._process.connection.shut()
        self._team.queue.wake()

    def close(self) -> None:
        """Wait for the process and the threads after `stop`; the queue is closed."""
        for thread in self._threads:
            thread.join()
        self._process.end()

    # ---- a thread that sends
    def _feed(self) -> None:
        try:
            self._feed_all()
        except BaseException as error:
            self._give_up(error)

    def _feed_all(self) -> None:
        queue = self._team.queue
        while True:
            seen = queue.changes
            with self._lock:
                if self._over or queue.closing:
                    self._process.connection.shut()  # wakes the other thread
                    return
                connection = self._process.connection
                messages = self._next_messages() if self._listens else []
            try:
                for message, files in messages:
                    connection.send(message, files)
            except (OSError, ValueError):  # the other thread finds out
                messages = []
            if not messages:
                queue.wait_for_change(seen)

    def _next_messages(self) -> list[Message]:
        """What there is to send now; with the lock held."""
        queue, messages = self._team.queue, list[Message]()
        for sent in list(self._sent.values()):
            messages += self._frames_of(sent)
        while self._takes_another():
            gop = queue.next_gop()
            if gop is None:
                break
            self._be_idle(False)
            sent = self._sent[gop.number] = SentGop(gop)
            messages += self._frames_of(sent)
        end = queue.end_gop()
        if end is not None and end != self._cut:
            self._cut = end
            self._messages += 1
            messages.append((("cut", end), ()))
        return messages

    def _takes_another(self) -> bool:
        """Whether to take a GOP: one for each lane, others when few frames are left, so that none waits here for long."""
        most = _FRAMES_OF_A_LANE if len(self._sent) >= self.lanes else _MOST_FRAMES_OF_A_LANE
        if len(self._by_frame) >= most * self.lanes:
            self._limited = True
            return False
        return self._lives

    def _frames_of(self, sent: SentGop) -> list[Message]:
        """Messages with the next frames of a GOP, and whether it is over."""
        if sent.closed:
            return []
        queue, room = self._team.queue, _MOST_FRAMES_OF_A_LANE * self.lanes - len(self._by_frame)
        if sent in islice(self._sent.values(), self.lanes):
            room = max(1, room)  # a lane has it, and GOPs that were put back may wait behind it
        messages: list[Message] = []
        self._limited |= room <= 0
        taken = queue.take(sent.gop, room) if room > 0 else []
        sent.closed = queue.is_over(sent.gop)
        if not taken and not sent.closed:
            return []
        frames = []
        for spec, source in taken:
            assert isinstance(source, FileRead | Slot)
            if source.file not in self._files:
                self._files.add(source.file)
                name = source.read.name if isinstance(source, FileRead) else "memory"
                messages.append((("file", source.file, name), (source.file,)))
            frames.append((spec, source.file, source.offset, source.number if isinstance(source, FileRead) else 0))
            sent.missing.add(spec.coding_index)
            self._by_frame[spec.coding_index] = sent
        sent.frames += taken
        self._messages += 1
        messages.append((("frames", sent.gop.number, frames, sent.closed), ()))
        if sent.closed and not sent.missing:
            self._forget(sent)
        return messages

    # ---- a thread that receives
    def _read(self) -> None:
        try:
            self._read_all()
        except BaseException as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """The encode ends with an unexpected exception, which is raised in the caller's thread (GopQueue.collect)."""
        with self._lock:
            self._over, self._sent, self._by_frame = True, {}, {}
            self._be_idle(True)
        self._process.connection.shut()
        self._team.queue.fail(0, error)

    def _read_all(self) -> None:
        while True:
            try:
                message_type, *rest = self._process.receive(self._patience, self._look_for_progress)
            except (EOFError, OSError) as error:
                message_type, rest = "gone", [error]
            if message_type == "done":
                self._take(*rest)
            elif message_type == "idle":
                self._drop(rest[0])
            elif message_type == "warn":
                self._team.warn(rest[0])
            elif message_type == "failed" and not isinstance(rest[1], DeviceLost):
                with self._lock:
                    self._lives = False  # a lane is gone
                self._team.queue.fail(*rest)
            elif message_type in ("failed", "gone") and not self._goes_on(rest[-1]):
                return

    def _look_for_progress(self) -> None:
        """Warn once of a process that is alive and finishes no frame for long: it cannot be known whether it ever will."""
        with self._lock:
            now = time.monotonic()
            if not self._by_frame:
                self._progress = now
            late = now - self._progress > self._limit
            if late:
                self._progress = math.inf
        if late:
            name = f"the worker process {self._process.number} of {self._config.machine.devices[0]}"
            self._team.warn(f"{name} has finished no frame for {self._limit:g} s ({VARIABLE})")

    def _take(self, frames: list[EncodedFrame], spans: list[Span]) -> None:
        """Finished frames."""
        self._progress = time.monotonic()
        if spans and self._team.spans is not None:
            self._team.spans(self._number, spans)
        self._team.queue.emit(frames)
        with self._lock:
            for frame in frames:
                sent = self._by_frame.pop(frame.coding_index, None)
                if sent is None:
                    continue
                sent.missing.discard(frame.coding_index)
                if not sent.can_repeat:
                    self._release(sent)
                elif len(sent.frames) > self._team.room // 2 and isinstance(sent.frames[0][1], Slot):
                    sent.can_repeat = False  # too long: its frames would take all memory
                    self._release(sent)
                if sent.closed and not sent.missing:
                    self._forget(sent)
            limited, self._limited = self._limited, False
        if limited:
            self._team.queue.wake()  # there is room for frames again

    def _release(self, sent: SentGop) -> None:
        """Give back the frames of a GOP that are finished; those of a file take no memory."""
        for spec, source in sent.frames:
            if isinstance(source, Slot) and spec.coding_index not in sent.missing:
                self._team.slots.give_back(source)
        sent.frames = [frame for frame in sent.frames if frame[0].coding_index in sent.missing]

    def _forget(self, sent: SentGop) -> None:
        """All of a GOP has come back."""
        self._release(sent)
        del self._sent[sent.gop.number]
        self._be_idle(not self._sent)
        self._team.queue.wake(caller=True)

    def _drop(self, messages: int) -> None:
        """The process has done all that it can of so many messages: what has not come back was cut."""
        with self._lock:
            if messages == self._messages and self._cut is not None:
                for sent in list(self._sent.values()):
                    if sent.closed:
                        self._lose(sent)
                self._be_idle(not self._sent)
                self._team.queue.wake()

    def _lose(self, sent: SentGop) -> None:
        for index in sent.missing:
            del self._by_frame[index]
        sent.missing = set()
        self._release(sent)
        del self._sent[sent.gop.number]

    def _be_idle(self, idle: bool) -> None:
        if idle != self._idle:
            self._idle = idle
            self._team.queue.add_idle(self.lanes if idle else -self.lanes)

    def _goes_on(self, error: BaseException) -> bool:
        """Give back the GOPs of a process that is gone, or whose device is; start another one, unless the device is gone."""
        is_lost = isinstance(error, DeviceLost)
        with self._lock:
            if self._over or self._team.queue.closing:
                return False
            process, device = self._process.number, self._config.machine.devices[0]
            ended = f"has ended ({self._process.end()})"
            how = f"gives {error}" if isinstance(error, TimeoutError) else ended
            why = str(error) if is_lost else f"the worker process {process} of {device} {how}"
            self._lives = self._listens = False
            self._put_back(why)
            self._be_idle(True)
            self._files, self._messages, self._cut = set(), 0, None
            again = not is_lost and self._starts < _MOST_STARTS
        if again:
            self._team.say(f"{why}; its GOPs are encoded again")
            again = self._start_again()
        if not again:
            with self._lock:
                self._over = True
            self._team.queue.wake()
            self._team.lost(why)
        return again

    def _put_back(self, why: str) -> None:
        queue = self._team.queue
        for sent in self._sent.values():
            if sent.can_repeat:
                queue.put_back(sent.gop, sent.frames)
            else:
                queue.fail(sent.gop.number, DeviceLost(f"{why}, and its GOP is too long to be encoded again"))
                sent.missing = set()
                self._release(sent)
        self._sent, self._by_frame = {}, {}

    def _start_again(self) -> bool:
        if not self._begin_again() or self._until_ready() is not None:
            return False
        with self._lock:
            if self._over or self._team.queue.closing:
                return False
            self._lives = self._listens = True
            if self._bt709:
                self._tell_bt709()
        self._team.queue.wake()
        return True
