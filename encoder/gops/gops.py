"""Encodes several closed GOPs at once, each in a lane: a pipeline on one of the devices. Packets are in coding order.

A GOP begins with an IDR frame and does not depend on other GOPs: the stream is the same whichever lane encodes a GOP.
A free lane takes the next GOP, so that a fast GPU encodes more of them than a slow one.
"""

import os
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...process import start_threads
from ...scheduler.frames.frame import SourceBuffer
from ...scheduler.stages import BY_BITS
from ...scheduler.trace import Trace
from ..decision_queue import DecisionQueue
from ..encoded_frame import EncodedFrame
from ..errors import Error
from ..files.read_ahead import Read
from ..settings.config import Config
from ..settings.pass_file import FirstPass
from .concurrent_gops import POLL_SECONDS, ConcurrentGops
from .lane import Lane, LaneQueue
from .queue import GopQueue, Waiting

if TYPE_CHECKING:
    from ..pipeline import Pipeline

LANES_OF_A_GPU = 2
SMALL = 1620  # macroblocks: 4CIF
FRAMES_AHEAD = 64  # of a device: so many may be begun in short GOPs before the first one is finished


def _sections_of(first: FirstPass) -> tuple[range, ...]:
    """See second_pass.sections_of."""
    from ..decisions.second_pass import sections_of

    return sections_of(first)


def count_lanes(config: Config, frames: int | None) -> int:
    """Number of GOPs encoded at once: as configured, or by estimate; at most those of the input, at least one a device.

    frames: of an input that can be read in any order; None: frames are given in order, and `auto` is then one GOP at once
    a device, since frames of later GOPs would have to wait for their turn.
    """
    machine = config.machine
    if not machine.gops and frames is None:
        return len(machine.devices)
    lanes = machine.gops or _tuned_lanes(config) or sum(_lanes_that_pay(config, name) for name in machine.devices)
    if config.rate.first_pass is not None:
        return max(len(machine.devices), min(lanes, len(_sections_of(config.rate.first_pass))))
    return max(len(machine.devices), min(lanes, -(-frames // config.types.keyint) if frames else lanes))


def reads_again(config: Config) -> bool:
    """Whether several GOPs at once pay on a GPU though samples decide, so that frames of a file are read twice: where P
    frames wait for each other, and take the GPU longer than their decisions take the host (docs/how/devices.md).
    """
    coding, machine = config.coding, config.machine
    on_one_gpu = machine.device == "cuda" and len(machine.devices) == 1 and not machine.waits_for_packets
    return on_one_gpu and config.rate.crf is not None and not coding.has_b_frames and coding.subme >= BY_BITS


def _tuned_lanes(config: Config) -> int:
    """The number in the tuning file: pinned, or chosen, which holds for large frames only; 0: none."""
    machine = config.machine
    if machine.tuning is None or machine.device == "hybrid" or len(machine.devices) > 1:
        return 0
    small = config.coding.n_mb <= SMALL
    return int(machine.tuning.pins.get("gops") or (0 if small else machine.tuning.chosen.get("gops", 0)))


def _lanes_that_pay(config: Config, device: str) -> int:
    """CPU: one thread a lane for small frames, else two. GPU: two lanes, so that one reads while the other launches."""
    machine = config.machine
    if machine.device == "hybrid":
        return 1
    if device != "cpu":
        return LANES_OF_A_GPU if machine.threads >= 4 else 1
    threads = max(1, machine.threads // len(machine.devices))
    return threads if config.coding.n_mb <= SMALL else max(1, threads // 2)


def frame_bytes(config: Config) -> int:
    """Bytes of a frame of display size, I420."""
    return sum(height * width for height, width in config.coding.display)


class NoThreads(Error):
    """Too few threads for this number of lanes; one GOP at a time needs none."""


@dataclass(eq=False, slots=True)
class Measured:
    """A frame of a file while it is decided about, in a buffer; then it is read again by the lane that encodes it."""

    buffer: SourceBuffer
    read: Read

    def __call__(self, target: np.ndarray) -> None:
        """As a Read."""
        self.read(target)


class Gops(ConcurrentGops):
    """Encodes `lanes` GOPs at once; lanes are assigned to the devices in turn."""

    _later: Callable[[int], Read] | None = None  # the frames of a file that are read again
    _ahead = 0  # GOPs that may be begun before the first one of them is finished, at least

    def __init__(
        self,
        config: Config,
        lanes: int,
        keep_reconstruction: bool = False,
        warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(config, warn)
        sections = () if config.rate.first_pass is None else _sections_of(config.rate.first_pass)
        longest = max([len(section) for section in sections], default=config.types.keyint)
        ahead = max(self._ahead, -(-FRAMES_AHEAD * len(config.machine.devices) // longest))
        self.queue = GopQueue(lanes, lanes * longest, frame_bytes(config), [section.start for section in sections], ahead)
        self.lanes: list[Pipeline] = []
        self._free: deque[SourceBuffer] = deque()  # of frames that were decided about, and are read again
        self._threads: list[threading.Thread] = []
        say = WarnOnce(warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2)))
        try:
            self._start(lanes, longest, keep_reconstruction, say, trace)
        except BaseException:
            self.close()
            raise
        dropped = weakref.finalize(self, _end_lanes, self.queue, os.getpid())  # the threads hold no reference to self
        dropped.atexit = False  # the threads are daemons, which end with the process

    def _start(self, lanes: int, longest: int, keep: bool, say: Callable[[str], None], trace: Trace | None) -> None:
        """Make and start the lanes; longest: frames of a GOP at the most."""
        self._start_lanes(self.config, lanes, keep, say, trace)

    def _start_lanes(self, config: Config, lanes: int, keep: bool, say: Callable[[str], None], trace: Trace | None) -> None:
        """Lanes of this process. NoThreads."""
        from ..pipeline import Pipeline

        for k in range(lanes):
            view = trace.with_prefix(f"gop lane {k}, ") if trace is not None else None
            self.lanes.append(Pipeline(lane_settings(config, k, lanes), keep, say, view))
        threads = [
            threading.Thread(target=work, args=(self.queue, some), name=f"h264lite-gop-{k}", daemon=True)
            for k, some in enumerate(lanes_by_thread(self.lanes, self.queue))
        ]
        if not start_threads(threads, self._threads):
            raise NoThreads(f"no threads can be started for {lanes} GOPs at once")

    def headers(self) -> bytes:
        return self.lanes[0].headers()

    def set_bt709(self) -> None:
        for lane in self.lanes:
            lane.set_bt709(self._decisions.count > 0)

    def close(self) -> None:
        self.queue.close()
        self._decisions.close()  # which may read buffers of a lane
        self._close_lanes()

    def has_room(self) -> bool:
        return self.queue.has_room()

    def busy(self) -> bool:
        return self.queue.busy()

    def end(self) -> None:
        try:
            if not self.queue.has_failed():
                self._add(self._decisions.end())
        finally:
            self.queue.end()

    def cut(self) -> None:
        self.queue.end(cut=True)

    @property
    def _reads_again(self) -> bool:
        """Whether lanes read frames of a file again whose samples decide: those of a GPU read into what they upload."""
        return self.config.machine.device == "cuda"

    def read_ahead(self, later: Callable[[int], Read] | None = None) -> bool:
        if later is not None and self._reads_again:  # buffers stay as they are until nothing reads them
            self._later = later
            self._decisions.close()
            self._decisions = DecisionQueue(self.config, self._warn, copies=False)
        return True

    def _new_buffer(self) -> np.ndarray | Read:
        if self._later is None:
            return self._plain_buffer()
        if self._free and self._free[0].number < self._decisions.reads_from:
            buffer = self._free.popleft()
        elif self.lanes:
            buffer = self.lanes[0].executor.ring.source_buffer()
        else:
            buffer = SourceBuffer(self.config.coding.mb_height, self.config.coding.display, np.empty)
        buffer.number = self._decisions.count + len(self._buffers)
        return Measured(buffer, self._later(buffer.number))

    def _plain_buffer(self) -> np.ndarray | Read:
        """A buffer in which a frame waits until a lane encodes it."""
        return self.queue.buffer()

    def _samples_of(self, buffer: np.ndarray | Read) -> np.ndarray:
        return buffer.buffer.source if isinstance(buffer, Measured) else super()._samples_of(buffer)

    def _decided(self, frames: Iterable[Waiting]) -> Iterator[Waiting]:
        """As they are encoded."""
        for spec, source in frames:
            if isinstance(source, Measured):
                self._free.append(source.buffer)
                source = source.read
            yield spec, source

    def _add(self, frames: Iterable[Waiting]) -> None:
        for spec, source in self._decided(frames):
            self.queue.enter(spec, source)

    def _wait(self) -> None:
        self.queue.wait(POLL_SECONDS)
        self.queue.collect()  # so that the next wait blocks

    def _fetch(self) -> list[EncodedFrame]:
        self.queue.collect()  # those before a failure too
        self._taken, self.queue.ready = self.queue.ready, []
        return self._taken

    def _close_lanes(self) -> None:
        """End what `_start` has started; the queue is closed."""
        for thread in self._threads:
            thread.join()
        for lane in self.lanes:
            lane.close()


def _end_lanes(queue: GopQueue, process: int) -> None:
    """Close the queue, except in a forked process: it has none of the threads, and the lock may stay held in it."""
    if os.getpid() == process:
        queue.close()


class WarnOnce:
    """Passes on the first warning only: all lanes lose the same GPU."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._said, self._lock = say, False, threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            first, self._said = not self._said, True
        if first:
            self._say(text)


def lanes_by_thread(pipelines: "list[Pipeline]", queue: LaneQueue) -> list[list[Lane]]:
    """Lanes grouped by thread: those of one GPU share one, since their host work is Python code, which holds the GIL."""
    lanes_of_thread: dict[object, list[Lane]] = {}
    for k, pipeline in enumerate(pipelines):
        device = pipeline.config.machine.device
        lanes_of_thread.setdefault(pipeline.config.machine.ordinal if device == "cuda" else ("cpu", k), []).append(
            Lane(pipeline, queue)
        )
    return list(lanes_of_thread.values())


def work(queue: LaneQueue, lanes: list[Lane]) -> None:
    """The function of a thread: its lanes take turns, one frame each; it waits while none has work."""
    turns = [lane.steps() for lane in lanes]
    while turns:
        seen = queue.changes
        steps = [(turn, next(turn, None)) for turn in turns]
        turns = [turn for turn, step in steps if step is not None]
        if turns and not any(step for _, step in steps):
            queue.wait_for_change(seen)


def lane_settings(config: Config, k: int, lanes: int) -> Config:
    """The settings of lane k: its device, its share of the threads."""
    device, _, ordinal = config.machine.devices[k % len(config.machine.devices)].partition(":")
    threads = max(1, (config.machine.threads + k) // lanes)
    machine = config.machine._replace(device=device, ordinal=int(ordinal or 0), threads=threads)
    return config._replace(machine=machine)
