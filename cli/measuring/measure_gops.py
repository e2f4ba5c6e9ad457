"""Measures the rate of encoding a file with several GOPs at once."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...encoder.encoded_frame import EncodedFrame
from ...encoder.errors import OutputError
from ...encoder.files.opening import open_source
from ...encoder.files.output import error_text
from ...encoder.files.read_ahead import THREADS, Read, ReadAhead
from ...encoder.files.video import Planes
from ...encoder.gops.gops import Gops, count_lanes
from ...encoder.pipeline import Pipeline
from ...encoder.settings.config import Config
from ...encoder.workers.workers import Workers
from ...scheduler.hybrid.tuning.models import CPU
from ...scheduler.threads.readers import Readers
from .measure import MOST_FRAMES, QP, ping_pong

_GOP, _GOP_OF_A_GPU = 12, 48


def gop_rate(
    device: str, frames: Sequence[Planes], threads: int, lanes: int, seconds: float, gpu_choices: Mapping[str, int]
) -> float:
    """Frames a second of a raw file with `lanes` GOPs at once, I frames included. On a GPU the first two GOPs of each lane
    do not count: their calls are recorded, which takes longer with more lanes. gpu_choices: see Config.
    """
    height, width = frames[0][0].shape
    keyint = _GOP if device == CPU else _GOP_OF_A_GPU
    config = Config.from_options(
        width=width,
        height=height,
        device=device.partition(":")[0],
        threads=threads,
        qp=QP,
        keyint=keyint,
        psnr=False,
        bframes=0,
    )
    config = config._replace(machine=config.machine._replace(tuning=None, gpu_choices=gpu_choices))
    count = _Count(0, 2 * keyint, seconds) if device == CPU else _Count(2 * lanes * keyint, lanes * keyint, seconds)
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
            count.add(encoder.flush())
        finally:
            encoder.close()
    return count.rate()


def devices_rate(devices: Sequence[str], frames: Sequence[Planes], threads: int, seconds: float) -> float:
    """Frames a second of a raw file on some devices, as `--devices` encodes it: several by a worker process each. The first
    GOPs of each lane do not count; threads: 0 as encodes do.
    """
    height, width = frames[0][0].shape
    keyint = _GOP if CPU in devices else _GOP_OF_A_GPU
    config = Config.from_options(
        width=width, height=height, devices=tuple(devices), threads=threads, qp=QP, keyint=keyint, psnr=False, bframes=0
    )
    lanes = max(2, count_lanes(config, MOST_FRAMES))  # one lane would not read by itself
    encoder = Workers(config, lanes) if len(devices) > 1 else Gops(config, lanes)
    count = _Count(2 * lanes * keyint, 2 * lanes * keyint, seconds, MOST_FRAMES * len(devices))
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
        count.add(encoder.flush())
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
    """Numbers of frames to encode: for `seconds` after the first `warm` finished ones, but at least `least` more."""

    def __init__(self, warm: int, least: int, seconds: float, most: int = MOST_FRAMES) -> None:
        self.most = most
        self.warm, self.least, self.seconds = warm, least, seconds
        self.finished = 0
        self.first = None if warm else 0  # finished frames at the start of the clock
        self.begin = self.end = time.perf_counter()

    def __iter__(self) -> Iterator[int]:
        taken = 0
        while self.first is None or taken < self.first + self.least or self._has_time(taken):
            yield taken
            taken += 1

    def _has_time(self, taken: int) -> bool:
        return self.end - self.begin < self.seconds and taken < self.most

    def add(self, done: Sequence[EncodedFrame]) -> None:
        """Count finished frames."""
        self.finished += len(done)
        self.end = time.perf_counter()
        if self.first is None and self.finished >= self.warm:
            self.first, self.begin = self.finished, self.end

    def rate(self) -> float:
        """Frames a second after the first ones."""
        return (self.finished - (self.first or 0)) / (self.end - self.begin)
