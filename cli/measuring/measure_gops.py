"""Measures frames a second of encodes: of one GOP at a time with any options, and of several GOPs at once."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...encoder.encoded_frame import EncodedFrame
from ...encoder.errors import OutputError
from ...encoder.files.opening import open_source
from ...encoder.files.output import error_text
from ...encoder.files.read_ahead import THREADS, Read, ReadAhead
from ...encoder.files.video import Planes
from ...encoder.gops.gops import Gops, count_lanes
from ...encoder.make_pipeline import make_pipeline
from ...encoder.pipeline import Pipeline
from ...encoder.settings.config import Config
from ...encoder.workers.workers import Workers
from ...scheduler.hybrid.tuning.models import CPU
from ...scheduler.threads.readers import Readers
from .budget import Window
from .measure import MOST_FRAMES, QP, WARM, WARM_SECONDS, ping_pong, settings

GOP, GOP_ON_GPU = 12, 48  # frames
WITHOUT: dict[str, Any] = {"qp": None, "bframes": None, "keyint": None}  # those of `settings`: the defaults of an encode
WARM_GOPS = 2  # of each lane of a GPU: their calls are recorded, which takes longer with more lanes
LEAST_OF_RUNS = 12  # frames that count at least: those of a run of B frames come at once


def encode_rate(
    device: str, frames: Sequence[Planes], threads: int, window: Window, gpu_choices: Mapping[str, int], **options: Any
) -> float:
    """Frames a second of an encode with these options, one GOP at a time, with its decisions; TooLong. gpu_choices: see
    settings.
    """
    height, width = frames[0][0].shape
    config = settings(device, width, height, threads, gpu_choices, **WITHOUT | options)
    encoder = make_pipeline(config, False, None, None)
    try:
        count = _Count(WARM, LEAST_OF_RUNS, window, WARM_SECONDS)
        for n in count:
            count.add(encoder.encode(ping_pong(frames, n)))
    finally:
        encoder.close()
    return count.rate()


def gop_rate(
    device: str, frames: Sequence[Planes], threads: int, lanes: int, window: Window, gpu_choices: Mapping[str, int],
    gop: int = GOP,
) -> float:  # fmt: skip
    """Frames a second of a raw file with `lanes` GOPs of `gop` frames at once, I frames included; TooLong. gpu_choices: see
    settings.
    """
    height, width = frames[0][0].shape
    config = settings(device, width, height, threads, gpu_choices, keyint=gop)
    count = _Count(0 if device == CPU else WARM_GOPS * lanes * gop, lanes * gop, window)
    with _endless_file(frames) as later:
        if lanes > 1:
            _encode_gops(Gops(config, lanes), count, later)
            return count.rate()
        encoder = Pipeline(config)
        try:
            if not encoder.read_ahead():
                for n in count:
                    count.add(encoder.encode(ping_pong(frames, n)))
            else:
                with Readers(THREADS) as readers:
                    for buffer in ReadAhead(readers).each(map(later, count), encoder.next_buffer):
                        count.add(encoder.encode(buffer))
        finally:
            encoder.close()
    return count.rate()


def devices_rate(devices: Sequence[str], frames: Sequence[Planes], threads: int, seconds: float) -> float:
    """Frames a second of a raw file on some devices, as `--devices` encodes it: several by a worker process each. The first
    GOPs of each lane do not count; threads: 0 as encodes do.
    """
    height, width = frames[0][0].shape
    gop = GOP if CPU in devices else GOP_ON_GPU
    config = Config.from_options(
        width=width, height=height, devices=tuple(devices), threads=threads, qp=QP, keyint=gop, psnr=False, bframes=0
    )
    lanes = max(2, count_lanes(config, MOST_FRAMES))  # one lane would not read by itself
    encoder = Workers(config, lanes) if len(devices) > 1 else Gops(config, lanes)
    count = _Count(WARM_GOPS * lanes * gop, lanes * gop, Window(seconds))
    with _endless_file(frames) as later:
        _encode_gops(encoder, count, later)
    return count.rate()


def _encode_gops(encoder: Gops, count: "_Count", later: Callable[[int], Read]) -> None:
    """Encode frames by number, and close the encoder."""
    try:
        for n in count:
            while not encoder.has_room():
                count.add(encoder.poll())
            count.add(encoder.encode(later(n)))
    finally:
        encoder.close()


@contextmanager
def _endless_file(frames: Sequence[Planes]) -> Iterator[Callable[[int], Read]]:
    """A function that gives the Read of frame n of an endless clip (ping_pong), read as a user's file is."""
    height, width = frames[0][0].shape
    period = max(1, 2 * len(frames) - 2)
    with tempfile.TemporaryDirectory(prefix="h264lite") as folder:
        name = f"{folder}/ping_pong.yuv"
        try:
            with open(name, "wb") as file:
                for n in range(period):
                    file.writelines(plane.tobytes() for plane in ping_pong(frames, n))
        except OSError as error:
            raise OutputError(f"{name}: {error_text(error)}") from None
        source = open_source(name, (width, height), "yuv")
        try:
            yield lambda n: source.later(n % period)  # type: ignore[attr-defined]
        finally:
            source.close()


class _Count:
    """Numbers of frames to encode, and the rate of those that are finished; the frames in flight at the end are dropped.

    The clock begins with the frame by which `warm` are finished, after `warm_seconds` or a quarter of the time, and is read
    whenever `size` more are: GOPs of several lanes come one after another.
    """

    def __init__(self, warm: int, size: int, window: Window, warm_seconds: float = 0.0) -> None:
        self.warm, self.size, self.window = warm, size, window
        self.finished = 0
        now = time.perf_counter()
        self.warm_until = now + min(warm_seconds, window.left(now) / 4)
        self.first: tuple[int, float] | None = None if warm else (0, now)  # finished frames, and when
        self.last = 0, now

    def __iter__(self) -> Iterator[int]:
        n = 0
        while not self._is_over():
            yield n
            n += 1

    def _is_over(self) -> bool:
        if self.first is None or self.last[0] <= self.first[0]:
            self.window.check()
            return False
        return self.window.is_over(self.first[1])

    def add(self, done: Sequence[EncodedFrame]) -> None:
        """Count finished frames; TooLong."""
        self.finished += len(done)
        if self.first is None:
            now = time.perf_counter()
            if done and self.finished >= self.warm and now >= self.warm_until:
                self.first = self.last = self.finished, now
        elif done and self.finished >= self.last[0] + self.size:
            self.last = self.finished, time.perf_counter()
        self._is_over()

    def rate(self) -> float:
        """Frames a second after the first ones."""
        assert self.first is not None
        return (self.last[0] - self.first[0]) / (self.last[1] - self.first[1])
