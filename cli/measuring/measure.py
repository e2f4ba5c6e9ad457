"""Measures encodes on this machine: test frames, timed encodes, and samples for time models."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...encoder.encoded_frame import EncodedFrame
from ...encoder.files.opening import open_source
from ...encoder.files.video import Planes, check_input_res
from ...encoder.pipeline import Pipeline
from ...encoder.settings.config import Config
from ...scheduler.hybrid.tuning.models import CPU, ENTROPY, ISSUE, LOAD
from ...scheduler.hybrid.tuning.tuning_file import TIMED
from ...scheduler.trace import GPU, HOST, Trace
from .budget import Window

SIZES = ((176, 144), (352, 288), (1280, 720), (1920, 1080), (3840, 2160))
LEAST_FRAMES = 8
WARM = 3  # frames before the measured ones: the first is an I frame, and the next ones allocate
WARM_SECONDS = 0.3  # and seconds: on a GPU calls are recorded before they are replayed
WAITS = 0.05  # of the frame time: if the host's thread waits less for a GPU, it is the bottleneck
QP = 27
MOST_FRAMES = 10_000  # frames of one measurement


# ---- frames
def synthetic(width: int, height: int, count: int, seed: int = 1) -> list[Planes]:
    """Camera-like frames: texture of all sizes that pans by fractions of a sample, moving objects whose look changes every
    other frame (as smoke, water, uncovered areas do), grain.
    """
    rng = np.random.default_rng(seed)
    tall, wide = height + 80, width + 80
    ground = np.full((tall, wide), 118, np.float32)
    for cell, strength in ((96, 40), (24, 26), (8, 18), (3, 14), (2, 10)):
        ground += strength * _smooth(rng, tall, wide, cell)
    grain = rng.normal(0, 2.0, (height + 32, width + 32)).astype(np.float32)
    things = []
    for k in range(12):
        size = max(8, int(min(width, height) * rng.uniform(0.08, 0.3)))
        looks = [rng.uniform(60, 190) + 35 * _smooth(rng, size, size, 4) for _ in range(4 if k % 3 == 0 else 1)]
        things.append((looks, rng.uniform(0, width), rng.uniform(0, height), *rng.uniform(-6, 6, 2)))
    chroma = [(128 + 25 * _smooth(rng, (height + 1) // 2, (width + 1) // 2, 40)).astype(np.uint8) for _ in range(2)]
    frames = []
    for n in range(count):
        luma = _window(ground, 20 + 15 * np.sin(n / 7), 20 + 9 * np.sin(n / 9), height, width)
        for looks, tx, ty, dx, dy in things:
            size = len(looks[0])
            u, v = int(tx + n * dx) % max(1, width - size), int(ty + n * dy) % max(1, height - size)
            luma[v : v + size, u : u + size] = looks[n // 2 % len(looks)][: height - v, : width - u]
        gx, gy = rng.integers(0, 32, 2)
        luma += grain[gy : gy + height, gx : gx + width]
        frames.append((np.clip(luma, 0, 255).astype(np.uint8), *chroma))
    return frames


def _window(image: np.ndarray, x: float, y: float, height: int, width: int) -> np.ndarray:
    """float32[height, width] of `image`, interpolated at a fractional position."""
    left, top = int(x), int(y)
    across, down = np.float32(x - left), np.float32(y - top)
    rows = image[top : top + height + 1, left : left + width + 1]
    rows = (1 - down) * rows[:-1] + down * rows[1:]
    return np.asarray((1 - across) * rows[:, :-1] + across * rows[:, 1:])


def _smooth(rng: np.random.Generator, height: int, width: int, cell: int) -> np.ndarray:
    """float32[height, width] in -1..1: random values every `cell` samples, interpolated linearly."""
    grid = rng.uniform(-1, 1, (height // cell + 2, width // cell + 2)).astype(np.float32)
    down, across = (_between(n, cell, k) for n, k in zip((height, width), grid.shape))
    return np.asarray(down @ grid @ across.T)


def _between(n: int, cell: int, knots: int) -> np.ndarray:
    """float32[n, knots]: weights of the two knots next to each sample."""
    at = np.arange(n) / cell
    return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(knots)[None, :])).astype(np.float32)


def of_clip(name: str, count: int, input_res: tuple[int, int] | None = None) -> list[Planes]:
    """The first `count` frames of a file."""
    source = open_source(name, input_res, "auto")
    try:
        check_input_res(source.format, input_res)
        return [tuple(np.array(plane) for plane in planes) for planes in source.frames(0, count)]  # type: ignore[misc]
    finally:
        source.close()


def ping_pong(frames: Sequence[Planes], n: int) -> Planes:
    """Frame n of a clip that is repeated forwards and backwards, without a cut."""
    period = max(1, 2 * len(frames) - 2)
    k = n % period
    return frames[k if k < len(frames) else period - k]


# ---- a timed encode
@dataclass
class TimedEncode:
    """The times of an encode of a few frames: medians over P frames, in seconds."""

    device: str  # "cpu", "cuda:0"
    width: int
    height: int
    threads: int
    frames: int
    frame: float  # frame time
    start: float = 0.0  # before the first frame
    stages: dict[str, float] = field(default_factory=dict)  # CPU: summed over threads; a GPU: on its streams
    loop: float = 0.0  # the host's thread in the loop
    load: float = 0.0
    entropy: float = 0.0
    wait: float = 0.0  # waits of the host's thread for a GPU; a mean, as `frame` is
    bits: float = 0.0  # of a P frame
    subme: int = 0  # the option
    cabac: bool = False

    @property
    def mb_width(self) -> int:
        """Macroblocks in a row."""
        return -(-self.width // 16)

    @property
    def mb_height(self) -> int:
        """Macroblock rows."""
        return -(-self.height // 16)

    @property
    def macroblocks(self) -> int:
        """Macroblocks of a frame."""
        return self.mb_width * self.mb_height

    @property
    def host_binds(self) -> bool:
        """Whether the thread that feeds the GPU is the bottleneck, not the GPU."""
        return self.wait < WAITS * self.frame

    @property
    def host_time(self) -> float:
        """Seconds a frame of that thread's own work: the frame time without its waits. It includes the time that no clock
        measures: between calls, and lost to other threads.
        """
        return self.frame if self.host_binds else self.frame - self.wait


def settings(
    device: str, width: int, height: int, threads: int, gpu_choices: Mapping[str, int] | None = None,
    split: tuple[int, int] | None = None, **options: Any,
) -> Config:  # fmt: skip
    """The settings of a timed encode; without `options` QP 27 and P frames. gpu_choices: settings of a GPU; earlier
    measurements are then ignored. split: see MachineSettings.
    """
    defaults = {"qp": QP, "keyint": "infinite", "bframes": 0, "psnr": False}
    devices = {"devices": (device,)} if ":" in device else {"device": device}
    config = Config.from_options(width=width, height=height, threads=threads, **(defaults | devices | options))
    machine = config.machine._replace(threads_by_user=False, split=split)
    if gpu_choices is not None:
        machine = machine._replace(tuning=None, gpu_choices=gpu_choices)
    return config._replace(machine=machine)


def watch(
    device: str,
    frames: Sequence[Planes],
    threads: int,
    window: Window,
    most: int = MOST_FRAMES,
    gpu_clock: bool = False,
    gpu_choices: Mapping[str, int] | None = None,
    **options: Any,
) -> TimedEncode:
    """Time an encode of at least LEAST_FRAMES and at most `most` frames; TooLong.

    gpu_clock: time the stages of a GPU by events; without them it works as for a user. gpu_choices, options: see settings.
    """
    entered = time.perf_counter()
    height, width = frames[0][0].shape
    config = settings(device, width, height, threads, gpu_choices, **options)
    trace = Trace(gpu=gpu_clock)
    pipeline = Pipeline(config, trace=trace)
    finished: list[EncodedFrame] = []
    try:
        gc.collect()  # garbage of the planning
        n, first = 0, -1
        begin = after_first = called = time.perf_counter()
        warm = begin + min(WARM_SECONDS, window.left(begin) / 4)
        while first < 0 or n < first + LEAST_FRAMES or not (n >= first + most or window.is_over(begin)):
            called, before = time.perf_counter(), called
            window.check(begin - entered, called - before)
            if first < 0 and n >= WARM and called >= warm:
                first, after_first = n, called
            finished += pipeline.encode(ping_pong(frames, n))
            n += 1
        finished += pipeline.flush()
        spent = time.perf_counter() - after_first
    finally:
        pipeline.close()
    threads = config.machine.stage_threads(config.coding) if device == CPU else config.machine.threads
    result = TimedEncode(device, width, height, threads, n - first, spent / (n - first))
    result.start = begin - entered
    result.subme, result.cabac = config.coding.subme, config.coding.cabac
    late = [frame for frame in finished if frame.index >= first]
    if late[0].stage_seconds:
        names = {name for frame in late for name in frame.stage_seconds}
        result.stages = {name: statistics.median(f.stage_seconds.get(name, 0.0) for f in late) for name in names}
        result.entropy = result.stages.pop(ENTROPY, 0.0)
    if gpu_clock:
        result.stages = _medians(trace, GPU, first)
    host = _medians(trace, HOST, max(first, n // 2))
    result.load, result.loop = host.get("load", 0.0), host.get("loop", 0.0)
    if device != CPU:
        result.wait = _waited(trace, first) / (n - first)
    result.bits = statistics.median(frame.bits for frame in late)
    return result


def _medians(trace: Trace, process: int, late: int) -> dict[str, float]:
    """Median seconds of spans by name, of frames from `late` on."""
    seconds_by_name: dict[str, list[float]] = {}
    for of_process, _, name, _, seconds, frame in trace.spans:
        if of_process == process and frame >= late:
            seconds_by_name.setdefault(name, []).append(seconds)
    return {name: statistics.median(values) for name, values in seconds_by_name.items()}


def _waited(trace: Trace, late: int) -> float:
    """Seconds that the host's thread waited for frames of a GPU, from `late` on: until it began to write their bits."""
    begins: dict[str, dict[int, float]] = {"wait": {}, ENTROPY: {}}
    for of_process, _, name, begin, _, frame in trace.spans:
        if of_process == HOST and name in begins and frame >= late:
            begins[name][frame] = begin
    written = begins[ENTROPY]
    return sum(max(0.0, written[frame] - begin) for frame, begin in begins["wait"].items() if frame in written)


# ---- models
@dataclass
class Samples:
    """Measurements by (stage, device): (macroblocks, seconds, seconds a macroblock of one thread)."""

    points: dict[tuple[str, str], list[tuple[int, float, float]]] = field(default_factory=dict)

    def add(self, stage: str, device: str, macroblocks: int, seconds: float, one_thread: float = 0.0) -> None:
        """Add one measurement, unless tuning files leave the stage out."""
        if stage not in TIMED:
            return
        self.points.setdefault((stage, device), []).append((macroblocks, seconds, one_thread))

    def add_cpu(self, encode: TimedEncode) -> None:
        """Add an encode on the CPU. The time of a stage, summed over threads, becomes its share of the loop's time.

        While the loop runs, the threads also write the bits of the previous frame: that time is subtracted.
        """
        busy = sum(encode.stages.values())
        entropy = encode.entropy / encode.threads if encode.threads > 1 else 0.0
        loop = max(busy / encode.threads, encode.loop - entropy)
        n = encode.macroblocks
        for name, spent in encode.stages.items():
            self.add(name, encode.device, n, spent * loop / busy, spent / n)
        between = encode.frame - loop - encode.entropy / encode.threads - encode.load
        self.add_host(encode, max(0.0, between))
        self.add(ENTROPY, encode.device, n, encode.entropy)

    def add_gpu(self, encode: TimedEncode, timed: TimedEncode) -> None:
        """Add two encodes on a GPU, `timed` with events around stages; calibrate.py combines them. The host's thread does
        what remains to do for a frame's bits.
        """
        for name, spent in timed.stages.items():
            self.add(name, timed.device, timed.macroblocks, spent)
        self.add_host(encode, encode.loop + encode.entropy)

    def add_host(self, encode: TimedEncode, issue: float) -> None:
        """Add the work of the host's thread for a frame. issue: during GPU work, or between the loops of two frames."""
        self.add(LOAD, encode.device, encode.macroblocks, encode.load)
        self.add(ISSUE, encode.device, encode.macroblocks, issue)


def frames_for(width: int, height: int, clip: Callable[[int], list[Planes]] | None = None) -> list[Planes]:
    """Frames of that size, fewer for large ones, which take long to make."""
    count = 16 if width * height <= 1 << 20 else 10 if width * height < 1 << 22 else 6
    return clip(count) if clip else synthetic(width, height, count)
