"""Several closed GOPs at once, each in a lane: a pipeline on one of the devices. Packets come out in order.

A GOP begins with an IDR picture, so nothing of another GOP reaches its bits: which lane codes it, and what runs beside it,
changes no byte. A lane that is free takes the next GOP, so that a fast device takes more of them than a slow one.
"""

import os
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...scheduler.trace import Trace
from ...start_threads import start_threads
from ..errors import Error, InputError
from ..files.read_ahead import Read
from ..picture.frame import split_planes
from ..settings.config import Config
from .lane import Lane
from .pace import CpuLaneThrottle
from .queue import GopQueue

if TYPE_CHECKING:
    from ..pipeline import EncodedFrame, Pipeline

LANES_OF_A_GPU = 2
SMALL = 1620  # macroblocks: 4CIF
POLL_SECONDS = 0.1  # seconds: how long a caller waits before it looks after signals


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
    """On the CPU a thread for each while pictures are small, else two; on a GPU one reads beside the other's launches.
    Beside a GPU the CPU has one lane, with which it is most likely to keep up (Pace).
    """
    if config.device == "hybrid" or (device == "cpu" and set(config.devices) != {"cpu"}):
        return 1
    if device != "cpu":
        return LANES_OF_A_GPU if config.threads >= 4 else 1
    return config.threads if config.mb_width * config.mb_height <= SMALL else max(1, config.threads // 2)


def picture_bytes(config: Config) -> int:
    """Bytes of a picture of display size, I420."""
    return sum(height * width for height, width in config.display)


def make_pipeline(
    config: Config, keep: bool, warn: Callable[[str], None] | None, trace: Trace | None, frames: int | None = None
) -> "Pipeline | Gops":
    """What encodes with these settings: one pipeline, or lanes for several GOPs."""
    from ..pipeline import Pipeline

    lanes = count_lanes(config, frames)
    if lanes == 1:
        return Pipeline(config, keep, warn, trace)
    while lanes > 1:
        try:
            return Gops(config, lanes, keep, warn, trace)
        except NoThreads:
            lanes //= 2
    return Pipeline(lane_settings(config, 0, 1), keep, warn, trace)


class NoThreads(Error):
    """Too few for so many lanes; one GOP at a time needs none."""


class Gops:
    """As Pipeline, for `lanes` GOPs at once; the devices of the settings take turns. Frames lie on the host."""

    def __init__(
        self, config: Config, lanes: int, keep_reconstruction: bool = False, warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        from ..pipeline import Pipeline

        self.config = config
        self.queue = GopQueue(lanes, config.keyint, picture_bytes(config))
        self._buffer: np.ndarray | None = None
        self.taken: list[EncodedFrame] = []  # see Pipeline
        self.lanes: list[Pipeline] = []
        say = Once(warn or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2)))
        try:
            for k in range(lanes):
                settings = lane_settings(config, k, lanes)
                view = trace.part(f"gop lane {k}, ") if trace is not None else None
                self.lanes.append(Pipeline(settings, keep_reconstruction, say, view))
        except BaseException:
            self._close_lanes()
            raise
        self._threads: list[threading.Thread] = []
        threads = [
            threading.Thread(target=work, args=(self.queue, some), name=f"h264lite-gop-{k}", daemon=True)
            for k, some in enumerate(lanes_by_thread(self.lanes, self.queue))
        ]
        if not start_threads(threads, self._threads):
            self.close()
            raise NoThreads(f"no threads can be started for {lanes} GOPs at once")
        dropped = weakref.finalize(self, _end_lanes, self.queue, os.getpid())  # they do not hold this
        dropped.atexit = False  # they sleep, and end with the process

    # ---- as Pipeline
    def headers(self) -> bytes:
        """See Pipeline."""
        return self.lanes[0].headers()

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """See Pipeline."""
        if self._buffer is None:
            self._buffer = self.queue.buffer()
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
            self._wait()
        self.queue.enter(buffer)
        return self._fetch()

    def encode_later(self, read: Read) -> "list[EncodedFrame]":
        """As encode, for a picture that its lane reads when its turn comes; all or none so."""
        self.queue.enter(read)
        return self._fetch()

    def encode_on_gpu(self, picture: Any) -> "list[EncodedFrame]":
        """Refused: a picture that stays on the GPU would have to wait there for its GOP's turn."""
        raise InputError("frames on a GPU are encoded one GOP at a time: gops=1")

    def flush(self) -> "list[EncodedFrame]":
        """See Pipeline."""
        self.end()
        while self.busy():
            self._wait()
        return self._fetch()

    def close(self) -> None:
        """See Pipeline."""
        self.queue.close()
        for thread in self._threads:
            thread.join()
        self._close_lanes()

    # ---- for a caller that does not want to wait
    def has_room(self) -> bool:
        """Whether another picture is taken at once."""
        return self.queue.has_room()

    def busy(self) -> bool:
        """Whether a lane still has something to do."""
        return self.queue.busy()

    def poll(self, seconds: float = POLL_SECONDS) -> "list[EncodedFrame]":
        """What is finished and in order; waits a little if that is little and more is under way."""
        self._wait(seconds)
        return self._fetch()

    def _wait(self, seconds: float = POLL_SECONDS) -> None:
        """A little; what is finished is collected, so that there is something to wait for. Raises what a lane failed with."""
        self.queue.wait(seconds)
        self.queue.collect()

    def _fetch(self) -> "list[EncodedFrame]":
        """What is finished and in order, and not fetched yet, also before something failed."""
        self.queue.collect()
        self.taken, self.queue.ready = self.queue.ready, []
        return self.taken

    def end(self) -> None:
        """No picture follows."""
        self.queue.end()

    def cut(self) -> None:
        """No picture is begun any more: what is under way is finished."""
        self.queue.end(cut=True)

    def _close_lanes(self) -> None:
        for lane in self.lanes:
            lane.close()


def _end_lanes(queue: GopQueue, process: int) -> None:
    """A process that was forked has none of these threads, and a lock may be held in it for ever."""
    if os.getpid() == process:
        queue.close()


class Once:
    """One warning for all lanes: they lose the same GPU."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._said, self._lock = say, False, threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            first, self._said = not self._said, True
        if first:
            self._say(text)


def lanes_by_thread(pipelines: "list[Pipeline]", queue: GopQueue) -> list[list[Lane]]:
    """Lanes of one GPU share a thread, since what they do on the host is Python's, which no two threads do at once."""
    found: dict[Any, list[Lane]] = {}
    beside_gpus = any(pipeline.config.device == "cuda" for pipeline in pipelines)
    for k, pipeline in enumerate(pipelines):
        device = pipeline.config.device
        pace = CpuLaneThrottle(pipeline, queue) if beside_gpus and device == "cpu" else None
        found.setdefault(pipeline.config.ordinal if device == "cuda" else ("cpu", k), []).append(Lane(pipeline, queue, pace))
    return list(found.values())


def work(queue: GopQueue, lanes: list[Lane]) -> None:
    """What a thread does: its lanes take turns, a picture each; while none can do anything it waits."""
    turns = [lane.steps() for lane in lanes]
    while turns:
        news = queue.news
        steps = [(turn, next(turn, None)) for turn in turns]
        turns = [turn for turn, step in steps if step is not None]
        if turns and all(lane.excluded for lane in lanes):
            queue.wait_for_paces(POLL_SECONDS)
        elif turns and not any(step for _, step in steps):
            queue.wait_for_news(news)


def lane_settings(config: Config, k: int, lanes: int) -> Config:
    """The settings of lane k: its device, its share of the threads."""
    device, _, ordinal = config.devices[k % len(config.devices)].partition(":")
    threads = max(1, (config.threads + k) // lanes)
    return replace(config, device=device, ordinal=int(ordinal or 0), threads=threads)
