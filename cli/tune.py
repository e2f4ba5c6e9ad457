"""`h264lite tune`: measures stages, copies and settings on this machine and writes a tuning file."""

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..console import print_line
from ..cuda_src.runtime.device import Device
from ..encoder.compile_kernels import compile_for
from ..encoder.errors import DeviceError, DeviceLost, Error, OptionError, OutputError
from ..encoder.files.output import check_distinct
from ..encoder.files.video import Planes
from ..encoder.settings.device_prediction import frame_traits_of, on_single_device
from ..encoder.warm_up import will_compile
from ..files import check_replaceable, is_special
from ..scheduler.devices import (
    DeviceMemoryError,
    DeviceUnavailable,
    GpuLost,
    count_gpus,
    cuda_kernels_will_compile,
    why_no_cuda,
)
from ..scheduler.hybrid.simulate import predict
from ..scheduler.hybrid.tuning.models import CPU, Curve, Link, Models
from ..scheduler.hybrid.tuning.tuning_file import (
    MOST_GOPS,
    MOST_THREADS,
    Machine,
    Tuning,
    TuningError,
    cache_file,
    now,
    pins_of,
    save,
)
from .measuring.calibrate import calibrated
from .measuring.links import measure as measure_link
from .measuring.measure import LEAST_FRAMES, MOST_FRAMES, SIZES, WARM, Samples, TimedEncode, frames_for, of_clip, watch
from .measuring.measure_gops import gop_rate

GPU = "cuda:0"
CHOICES_AT = (1280, 720)  # size for threads and streams; for GOPs without a GPU
GOPS_AT = (1920, 1080)  # size for GOPs at once and tiles: with one GOP the GPU, not the host, is the bottleneck there
STREAMS = {4: "four streams", 1: "one stream"}  # one stream saves event calls on the host
TILE_ROWS = {rows: f"tiles of {rows} macroblock rows" for rows in (Device.tile_rows, 2)}  # one row suits many references
TURNS = 2
UNSTEADY = 0.1  # of a time, up or down: a larger spread is reported
NEEDED_SPEEDUP = 1.02  # times as fast as the default, or the default stays
RUNS = 5  # encodes on a GPU at a size, of which the median counts: rates differ between encodes and over minutes
_BAR = 24


class Bar:
    """The progress: a bar on a terminal, else a line for each step."""

    def __init__(self, steps: int, quiet: bool) -> None:
        self.steps, self.done, self.quiet = steps, 0, quiet
        self.live = sys.stderr.isatty()
        self.begin = time.monotonic()

    def step(self, text: str) -> None:
        """Report the start of a step."""
        if self.quiet:
            return
        seconds = time.monotonic() - self.begin
        if self.live:
            filled = _BAR * self.done // self.steps
            columns = shutil.get_terminal_size().columns
            line = f"[{'#' * filled}{'.' * (_BAR - filled)}] {self.done}/{self.steps} {seconds:3.0f} s  {text}"
            print_line("\r" + line[: columns - 1].ljust(columns - 1), "")
        else:
            print_line(f"[{self.done + 1}/{self.steps}] {seconds:3.0f} s  {text}")
        self.done += 1

    def close(self) -> None:
        """Clear the line."""
        if self.live and not self.quiet:
            print_line("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", "")


@dataclass
class Measured:
    """The encodes of a device at a size; on a GPU also one with events around stages."""

    frames: Sequence[Planes]
    runs: list[TimedEncode]
    timed: TimedEncode | None = None

    @property
    def middle(self) -> TimedEncode:
        """The median encode."""
        return sorted(self.runs, key=lambda encode: encode.frame)[len(self.runs) // 2]

    @property
    def spread(self) -> float:
        """Longest minus shortest frame time, as a part of the median: half of it up, half down."""
        times = [encode.frame for encode in self.runs]
        return (max(times) - min(times)) / self.middle.frame


@dataclass
class Tune:
    """The measurements. seconds: for all of them together."""

    devices: list[str]
    sizes: Sequence[tuple[int, int]]
    seconds: float
    threads: int
    bar: Bar
    clip: Callable[[int], list[Planes]] | None = None
    chosen: dict[str, int] = field(default_factory=dict)
    measured: list[Measured] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def run(self) -> Models:
        """Run all measurements; return the models."""
        gpus = [device for device in self.devices if device != CPU]
        runs = len(self.sizes) * (1 + 2 * bool(gpus)) + self.choices()
        self.each = self.seconds / max(1, runs)
        self.chosen["threads"] = self.choose_threads()
        if gpus:
            self.chosen["streams"] = self.choose("streams", CHOICES_AT, STREAMS)
            self.chosen["tile_rows"] = self.choose("tile_rows", GOPS_AT, TILE_ROWS)
        self.chosen["gops"] = self.choose_gops()
        for size in self.sizes:
            frames = frames_for(*size, self.clip)
            for device in self.devices[:2]:  # the CPU and the first GPU
                self.measure(device, frames)
        for _ in range(1, RUNS if gpus else 1):
            self.again()
        links: dict[tuple[str, str], Link] = {}
        for ordinal in range(len(gpus)):
            self.bar.step(f"copies between {CPU} and cuda:{ordinal}")
            links |= measure_link(ordinal)
        samples = self.samples()
        stages = {
            key: Curve.measured([(n, t) for n, t, _ in points], min(one_thread for _, _, one_thread in points))
            for key, points in samples.points.items()
        }
        models = Models(stages, links, self.chosen["threads"], self.chosen.get("streams", 4))
        for device in gpus[:1]:
            models = calibrated(models, device, [encode for encode in self.watched if encode.device == device])
        for device in gpus[1:]:  # GPUs alike: the first one's values hold
            models.stages |= {(name, device): curve for (name, of), curve in models.stages.items() if of == gpus[0]}
        return models

    def choices(self) -> int:
        """The number of runs that compare settings."""
        of_gpu = TURNS * (len(STREAMS) + len(TILE_ROWS)) + len(self.lanes())
        return 2 * (self.threads >= 4) + len(self.lanes()) + (of_gpu if GPU in self.devices else 0)

    def measure(self, device: str, frames: Sequence[Planes]) -> None:
        """Measure one device at one size; skipped if even the fewest frames would take too long."""
        height, width = frames[0][0].shape
        label = f"{width}x{height} on {device}"
        before = [some.runs[0] for some in self.measured if some.runs[0].device == device]
        if before:
            grows = width * height / 256 / before[-1].macroblocks
            if before[-1].frame * grows * (WARM + LEAST_FRAMES) > max(4 * self.each, 0.25 * self.seconds):
                self.skipped.append(f"{label}: left out, would take too long")
                self.bar.step(self.skipped[-1])
                self.bar.done += device != CPU
                return
        self.bar.step(label)
        try:
            measured = self.watch(device, frames, self.each if device == CPU else self.each / RUNS)
        except DeviceLost:
            raise
        except Error as error:  # frames of this size do not fit
            self.bar.done += device != CPU
            self.skipped.append(f"{label}: {error}")
            return
        self.measured.append(Measured(frames, [measured]))
        if device != CPU:
            self.bar.step(f"{label}, stage by stage")
            self.measured[-1].timed = self.watch(device, frames, self.each, most=400, timed=True)

    def again(self) -> None:
        """Repeat a GPU's encodes at sizes that do not take long: all sizes in each repetition, since other load of the
        machine lasts longer than an encode.
        """
        self.bar.step("all sizes again")
        for some in self.measured:
            first, seconds = some.runs[0], self.each / RUNS
            if some.timed is not None and first.frame * (WARM + LEAST_FRAMES) < seconds:
                some.runs.append(self.watch(first.device, some.frames, seconds))

    def watch(
        self, device: str, frames: Sequence[Planes], seconds: float, most: int = MOST_FRAMES, timed: bool = False
    ) -> TimedEncode:
        """Run an encode with the chosen settings; timed: with events around stages."""
        return watch(device, frames, self.chosen["threads"], seconds, most, timed, gpu_choices=self.chosen)

    @property
    def watched(self) -> list[TimedEncode]:
        """The median encodes."""
        return [some.middle for some in self.measured]

    def samples(self) -> Samples:
        """Their times, by stage."""
        samples = Samples()
        for some in self.measured:
            if some.timed is None:
                samples.add_cpu(some.middle)
            else:
                samples.add_gpu(some.middle, some.timed)
        return samples

    def choose_threads(self) -> int:
        """All CPUs of the process, or half if that is faster, as with two threads a core; on the GPU if there is one."""
        if self.threads < 4:
            return self.threads
        frames, rates = frames_for(*CHOICES_AT, self.clip), {}
        for threads in (self.threads, self.threads // 2):
            self.bar.step(f"{threads} threads")
            device = GPU if GPU in self.devices else CPU
            rates[threads] = 1 / watch(device, frames, threads, self.each, gpu_choices={}).frame
        return self.threads // 2 if rates[self.threads // 2] > NEEDED_SPEEDUP * rates[self.threads] else self.threads

    def choose(self, name: str, size: tuple[int, int], values: Mapping[int, str]) -> int:
        """A setting of a GPU: the first of `values`, unless another one is faster. Each is tried TURNS times, alternating."""
        frames, seconds = frames_for(*size, self.clip), dict.fromkeys(values, math.inf)
        for value, label in TURNS * [*values.items()]:
            self.bar.step(label)
            choices = self.chosen | {name: value}
            measured = watch(GPU, frames, self.chosen["threads"], self.each, gpu_choices=choices)
            seconds[value] = min(seconds[value], measured.frame)
        usual, best = next(iter(values)), min(seconds, key=lambda value: seconds[value])
        return best if seconds[best] * NEEDED_SPEEDUP < seconds[usual] else usual

    def lanes(self) -> list[int]:
        """The numbers of GOPs at once to try."""
        if GPU in self.devices:
            return [1, 2, 3, 4] if self.threads >= 4 else [1, 2]
        return sorted({1, min(max(1, self.threads // 2), MOST_GOPS), min(self.threads, MOST_GOPS)})

    def choose_gops(self) -> int:
        """The number of GOPs at once on the GPU, two alternating runs each; without a GPU on the CPU."""
        device, size, turns = (GPU, GOPS_AT, 2) if GPU in self.devices else (CPU, CHOICES_AT, 1)
        frames, rates = frames_for(*size, self.clip), dict.fromkeys(self.lanes(), 0.0)
        for lanes in turns * self.lanes():
            self.bar.step(f"{lanes} GOP{'s' if lanes > 1 else ''} at once on {device}")
            rate = gop_rate(device, frames, self.chosen["threads"], lanes, self.each, self.chosen)
            rates[lanes] = max(rates[lanes], rate)
        best = max(rates.values())
        return min(lanes for lanes, rate in rates.items() if rate * NEEDED_SPEEDUP >= best)

    def report(self, models: Models) -> list[str]:
        """Frames a second by size and device, measured and predicted by the models. Predictions are no more exact than the
        encodes, whose spread is reported where it is large.
        """
        lines = [f"{'size':>10} {'device':>7} {'fps':>8}        {'predicted':>10} {'by':>12}"]
        for some in self.measured:
            run = some.middle
            frame_traits = frame_traits_of(run.mb_width, run.mb_height, subme=run.subme, cabac=run.cabac)
            prediction = predict(on_single_device(run.device, frame_traits), frame_traits, models)
            spread = f"±{50 * some.spread:4.1f}%" if len(some.runs) > 1 else ""
            lines.append(
                f"{run.width}x{run.height}".rjust(10) + f" {run.device:>7} {1 / run.frame:8.1f} {spread:>6}"
                f"{1 / prediction.seconds:11.1f} {prediction.bound:>12}"
            )
        apart = max((some.spread / 2 for some in self.measured), default=0.0)
        if apart > UNSTEADY:
            lines.append(f"Encodes differed by up to {100 * apart:.0f} % up and down: predictions hold no better here")
        return [*lines, *self.skipped]


def run_tune(
    out: str | None, clip: str | None, input_res: tuple[int, int] | None, seconds: float, quiet: bool,
    sizes: Sequence[tuple[int, int]] = SIZES,
) -> int:  # fmt: skip
    """Measure, write, report; return the exit code."""
    path = tuning_path(out)
    check_distinct({"clip": clip, "out": str(path)})
    check_writable(path)
    machine = Machine.here()
    missing = why_no_cuda()
    devices = [CPU] if missing else [CPU, *(f"cuda:{k}" for k in range(count_gpus()))]
    log = (lambda text: None) if quiet else (lambda text: print_line(f"h264lite tune: {text}"))
    log(f"{machine.processor}, {machine.cores} cores, {machine.simd}; " + (missing or ", ".join(machine.gpus)))
    if will_compile():
        log(f"compiled in {compile_for():.0f} s, not counted")
    if not missing and cuda_kernels_will_compile():
        log("first run on this GPU: its kernels are compiled, once; up to a minute, not counted")
    read = None
    if clip is not None:
        frames = of_clip(clip, 16, input_res)
        if len(frames) < 2:
            raise OptionError(f"{clip}: has fewer than 2 frames", "clip")
        height, width = frames[0][0].shape
        sizes, read = [(width, height)], lambda count: frames[:count]
        log(f"only {width}x{height}, the clip's size: other sizes follow in proportion")
    begin = time.monotonic()
    tune = Tune(devices, sizes, seconds, min(machine.cores, MOST_THREADS), Bar(0, quiet), read)
    tune.bar.steps = len(sizes) * (1 + 2 * (not missing)) + (RUNS - 1) * (not missing) + len(devices) - 1 + tune.choices()
    try:
        models = tune.run()
    except (DeviceUnavailable, DeviceMemoryError, GpuLost) as error:
        raise DeviceError(str(error)) from None
    finally:
        tune.bar.close()
    spent = time.monotonic() - begin
    report = [
        f"Measured in {spent:.0f} s on {'the clip ' + clip if clip else 'synthetic frames'}; medians of P frames.",
        *tune.report(models),
    ]
    tuning = Tuning(machine, models, now(), tune.chosen, kept_pins(path, log), report=tuple(report))
    try:
        save(tuning, path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from None
    for line in report:
        log(line)
    log(", ".join(f"{name} {value}" for name, value in tune.chosen.items()))
    log(f"written: {path}" + ("" if out else ", which encodes use from now on"))
    return 0


def tuning_path(out: str | None) -> Path:
    """The path of the tuning file: `out`, or in the user's cache."""
    if out == "":
        raise OptionError("'': not a file name", "out")
    try:
        return cache_file() if out is None else Path(out)
    except TuningError as error:
        raise OutputError(f"{error}, or give --out") from None


def check_writable(path: Path) -> None:
    """Check before the measurements that the file can be written."""
    try:
        if not is_special(path):
            Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
        check_replaceable(os.fspath(path))
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from None


def kept_pins(path: Path, log: Callable[[str], object]) -> dict[str, Any]:
    """The pins of the file that is replaced: a person wrote them, so they are kept."""
    if not path.is_file():
        return {}
    try:
        pins = pins_of(path)
    except TuningError as error:
        log(f"pins of the file before are not kept: {error}")
        return {}
    if pins:
        log("kept from the file before, pinned: " + ", ".join(f"{name} = {value}" for name, value in pins.items()))
    return pins
