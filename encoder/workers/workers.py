"""Encodes GOPs in worker processes, one for each device: as Gops, whose lanes are then in these processes.

Where samples decide, this process measures them on the first GPU, and the lanes of that GPU are its own: two processes would
use one GPU by turns.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ...scheduler.trace import Span, Trace
from ..decisions.second_pass import sections_of
from ..errors import DeviceLost
from ..files.read_ahead import Read
from ..gops.gops import Gops, WarnOnce, frame_bytes
from ..gops.queue import MOST_BYTES, GopQueue, Waiting
from ..prepare_kernels import prepare
from ..settings.config import Config, with_bt709
from ..slice_writer import SliceWriter
from .chunk import on_device
from .connection import POSSIBLE
from .process import VARIABLE
from .remote_lanes import RemoteLanes, Team
from .slots import Slot, Slots

GOPS_THAT_PAY = 4  # of each device: an input of fewer is over before processes have started
BATCH = 32  # frames that enter the queue together
_SPARE = 8  # frames beside those that wait to be decided about


def uses_workers(config: Config, frames: int | None) -> bool:
    """Whether processes encode for several devices; frames: of the input, None: unknown."""
    setting = os.environ.get(VARIABLE, "")
    if len(config.machine.devices) < 2 or not POSSIBLE or setting == "0":
        return False
    if setting == "1":
        return True
    if frames is None:
        return True
    first = config.rate.first_pass
    gops = -(-frames // config.types.keyint) if first is None else len(sections_of(first))
    return gops >= GOPS_THAT_PAY * len(config.machine.devices)


def measures_here(config: Config) -> bool:
    """Whether this process measures frames on the first GPU, so that no other one may use it."""
    return config.decides_by_samples and config.machine.devices[0] != "cpu"


class Workers(Gops):
    """As Gops, with a process for each device, so that each has an interpreter of its own. Decisions are made here.

    Frames of a raw file are read by who encodes them, others wait in memory that all share. The GOPs of a process that dies
    are encoded again, by another one that is started or on the other devices, with one warning. The loss of a GPU whose lanes
    are in this process ends the encode: it decides, too.
    """

    _slots: Slots
    _remotes: Sequence[RemoteLanes] = ()  # before `_start`

    def _start(self, lanes: int, longest: int, keep: bool, say: Callable[[str], None], trace: Trace | None) -> None:
        config, names = self.config, self.config.machine.devices
        self._slots = Slots(frame_bytes(config))
        self._remotes = remotes = list[RemoteLanes]()
        self._entering: list[Waiting] = []  # decided frames that are not in the queue
        self._writer = SliceWriter(config)
        waiting = config.types.rc_lookahead + config.coding.bframes + _SPARE if config.holds_frames else _SPARE
        most = MOST_BYTES * len(names) // frame_bytes(config)
        self.room = max(4 * waiting, min(2 * lanes * longest + waiting, most))
        if config.machine.device == "cpu":
            prepare(config)
        say_lost = WarnOnce(say)
        team = Team(
            self.queue,
            self._slots,
            self.room,
            _Loss(self.queue, len(names), say_lost),
            say_lost,
            say,
            None if trace is None else _Spans(trace),
        )
        threads = [max(1, (config.machine.threads + k) // len(names)) for k in range(len(names))]
        settings = [on_device(config, *share) for share in zip(names, threads)]
        counts = [(lanes + len(names) - 1 - k) // len(names) for k in range(len(names))]
        first = int(measures_here(config))
        for k in range(first, len(names)):
            remotes.append(RemoteLanes(k, settings[k], keep, counts[k], team))
        if first:
            self.queue.release = _Release(self._slots)
            self._start_lanes(settings[0], counts[0], keep, say, trace)
        for remote in self._remotes:
            remote.wait_until_ready()
        for remote in self._remotes:
            remote.start()

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes."""
        return [remote.process for remote in self._remotes]

    def headers(self) -> bytes:
        return self._writer.parameter_sets

    def set_bt709(self) -> None:
        config = with_bt709(self.config, self._decisions.count > 0)
        if config is not self.config:
            self.config, self._writer = config, SliceWriter(config)
            for remote in self._remotes:
                remote.set_bt709()
            super().set_bt709()

    @property
    def _reads_again(self) -> bool:
        return True

    def _plain_buffer(self) -> Slot:
        return self._slots.take()

    def _samples_of(self, buffer: np.ndarray | Read) -> np.ndarray:
        return buffer.buffer if isinstance(buffer, Slot) else super()._samples_of(buffer)

    def _add(self, frames: Iterable[Waiting]) -> None:
        """In batches: each one wakes the threads of the workers."""
        self._entering += self._decided(frames)
        if len(self._entering) >= BATCH:
            self._enter_all()
        else:
            self.queue.check()

    def _enter_all(self) -> None:
        if self._entering:
            self.queue.enter_all(self._entering)

    def _wait(self) -> None:
        self._enter_all()
        super()._wait()

    def has_room(self) -> bool:
        # the frames that a blocked lane lacks are those of one GOP at the most
        has_slots = self._slots.used <= self.room or any(remote.is_blocked() for remote in self._remotes)
        return (has_slots or self.queue.lacks_frames()) and super().has_room()

    def busy(self) -> bool:
        return bool(self._entering) or super().busy()

    def end(self) -> None:
        try:
            if not self.queue.has_failed():
                self._entering += self._decided(self._decisions.end())
                self._enter_all()
        finally:
            self._entering = []
            self.queue.end()

    def cut(self) -> None:
        self._entering = []
        super().cut()

    def _close_lanes(self) -> None:
        for remote in self._remotes:
            remote.stop()
        super()._close_lanes()
        for remote in self._remotes:
            remote.close()
        if hasattr(self, "_slots"):  # not where `_start` was interrupted
            self._slots.close()


class _Release:
    """Gives back the memory of frames that a lane of this process has read."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots

    def __call__(self, read: Read) -> None:
        if isinstance(read, Slot):
            self._slots.give_back(read)


class _Loss:
    """Counts workers that are given up: the loss of the last one ends the encode."""

    def __init__(self, queue: GopQueue, workers: int, say: Callable[[str], None]) -> None:
        self._queue, self._left, self._say, self._lock = queue, workers, say, threading.Lock()

    def __call__(self, why: str) -> None:
        with self._lock:
            self._left -= 1
            left = self._left
        if left:
            self._say(f"{why}; its GOPs are encoded on the other devices")
        else:
            self._queue.fail(0, DeviceLost(f"{why}; no other device is left"))


class _Spans:
    """Adds the spans of workers to a timeline."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __call__(self, worker: int, spans: list[Span]) -> None:
        for process, track, name, begin, seconds, frame in spans:
            self._trace.add(process, f"worker {worker}, {track}", name, begin, seconds, frame)
