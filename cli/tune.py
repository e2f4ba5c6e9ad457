"""`h264lite tune`: measures stages, copies and settings on this machine and writes a tuning file."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..console import print_line
from ..encoder.compile_kernels import compile_for
from ..encoder.errors import DeviceError, OptionError, OutputError
from ..encoder.files.output import check_distinct
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
from ..scheduler.hybrid.tuning.models import CPU
from ..scheduler.hybrid.tuning.tuning_file import (
    MOST_THREADS,
    Machine,
    Tuning,
    TuningError,
    cache_file,
    now,
    pins_of,
    save,
)
from .measuring.budget import Window
from .measuring.measure import SIZES, of_clip, settings, synthetic
from .measuring.measure_gops import WITHOUT, encode_rate
from .measuring.measurements import ENCODES, GPU, Tune

_BAR = 24


class Bar:
    """The progress, in time: a bar on a terminal, else a line for each step."""

    def __init__(self, seconds: float, quiet: bool) -> None:
        self.seconds, self.quiet, self.last = seconds, quiet, ""
        self.live = sys.stderr.isatty()
        self.begin = time.monotonic()

    def step(self, text: str) -> None:
        """Report the start of a step."""
        if self.quiet or text == self.last:
            return
        self.last, seconds = text, time.monotonic() - self.begin
        line = f"{seconds:3.0f} of {self.seconds:.0f} s  {text}"
        if self.live:
            filled = min(_BAR, int(_BAR * seconds / self.seconds))
            columns = shutil.get_terminal_size().columns
            print_line("\r" + f"[{'#' * filled}{'.' * (_BAR - filled)}] {line}"[: columns - 1].ljust(columns - 1), "")
        else:
            print_line(line)

    def close(self) -> None:
        """Clear the line."""
        if self.live and not self.quiet:
            print_line("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", "")


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
    compile_first(not missing, log)
    begin = time.monotonic()
    read = None
    if clip is not None:
        frames = of_clip(clip, 16, input_res)
        if len(frames) < 2:
            raise OptionError(f"{clip}: has fewer than 2 frames", "clip")
        height, width = frames[0][0].shape
        sizes, read = [(width, height)], lambda count: frames[:count]
        log(f"only {width}x{height}, the clip's size: other sizes follow in proportion")
    threads = min(machine.cores, MOST_THREADS)
    bar = Bar(seconds, quiet)
    tune = Tune(devices, sizes, seconds, threads, bar.step, read, machine.gpus)
    try:
        models = tune.run()
    except (DeviceUnavailable, DeviceMemoryError, GpuLost) as error:
        raise DeviceError(str(error)) from None
    finally:
        bar.close()
    spent = time.monotonic() - begin
    report = [
        f"Measured in {spent:.0f} s on {'the clip ' + clip if clip else 'synthetic frames'}; medians of P frames.",
        *tune.report(models),
    ]
    tuning = Tuning(machine, models, now(), tune.chosen, kept_pins(path, log), report=tuple(report), rates=tune.rates)
    try:
        save(tuning, path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from None
    for line in report:
        log(line)
    log(", ".join(f"{name} {value}" for name, value in tune.chosen.items()))
    log(f"written: {path}" + ("" if out else ", which encodes use from now on"))
    return 0


def compile_first(gpu: bool, log: Callable[[str], object]) -> None:
    """Compile the kernels that the caches lack, before the time counts. gpu: whether there is one."""
    begin = time.monotonic()
    configs = [settings(CPU, 32, 32, 1, {}, **{**WITHOUT, **options}) for _, options, _, _ in ENCODES]
    missing = [config for config in configs if will_compile(config)]
    if gpu and cuda_kernels_will_compile(True):
        log("the GPU's kernels are compiled, once; up to a minute")
        for _, options, _, _ in ENCODES:
            encode_rate(GPU, synthetic(32, 32, 2), 1, Window(0.0), {}, **options)
    elif not missing:
        return
    for config in missing:
        compile_for(config)
    log(f"compiled in {time.monotonic() - begin:.0f} s, in addition to the seconds of the measurements")


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
