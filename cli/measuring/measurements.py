"""The measurements of `tune`: settings, encodes at all sizes, rates; and what the time models are made of."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...cuda_src.runtime.device import Device
from ...encoder.errors import DeviceLost, Error
from ...encoder.files.video import Planes
from ...encoder.settings.device_prediction import frame_traits_of, on_single_device
from ...scheduler.hybrid.plan import Plan
from ...scheduler.hybrid.planner import make_plan
from ...scheduler.hybrid.simulate import meeting_of, predict
from ...scheduler.hybrid.start import FEWER_TRIES
from ...scheduler.hybrid.tuning.models import CPU, Curve, Link, Models, filled
from ...scheduler.hybrid.tuning.rates import EncodeTraits, Rates
from ...scheduler.hybrid.tuning.tuning_file import MOST_GOPS
from .budget import PATIENCE, Step, TooLong, Window, run_steps
from .calibrate import calibrated
from .links import measure as measure_link
from .measure import LEAST_FRAMES, QP, WARM, Samples, TimedEncode, frames_for, synthetic, watch
from .measure_gops import GOP, GOP_ON_GPU, LEAST_OF_RUNS, WARM_GOPS, encode_rate, gop_rate

GPU = "cuda:0"
CHOICES_AT = (1280, 720)  # size for threads and streams; for GOPs without a GPU
GOPS_AT = (1920, 1080)  # size for GOPs at once and tiles: with one GOP the GPU, not the host, is the bottleneck there
STREAMS = {4: "four streams", 1: "one stream"}  # one stream saves event calls on the host
TILE_ROWS = {rows: f"tiles of {rows} macroblock rows" for rows in (Device.tile_rows, 2)}  # one row suits many references
TURNS, LONG = 2, 40.0  # turns of the values of a setting, if there are so many seconds in all; else one
UNSTEADY = 0.1  # of a time, up or down: a larger spread is reported
NEEDED_SPEEDUP = 1.02  # times as fast as the default, or the default stays
RUNS = 5  # encodes on a GPU at a size, of which the median counts: rates differ between encodes and over minutes
RATE_SIZES = ((1920, 1080), (1280, 720))
P_FRAMES = EncodeTraits(False, True, True)  # of the encodes at all sizes
# the encodes whose rates are measured: label, options, traits, least time in frames of P_FRAMES
ENCODES: tuple[tuple[str, Mapping[str, Any], EncodeTraits, int], ...] = (
    ("defaults", {}, EncodeTraits(True, True, True), 20),  # some for the lookahead, before the first frame
    ("Baseline at QP 27", {"profile": "baseline", "qp": QP}, EncodeTraits(False, False, False), 7),  # more than twice as fast
    ("QP 27 without B frames", {"qp": QP, "bframes": 0}, P_FRAMES, WARM + LEAST_OF_RUNS),
)
NEEDED = 20.0  # patience for the smallest size: without any there is no model
START = 0.5  # seconds of Python's start, and to write the file


@dataclass
class Measured:
    """The encodes of a device at a size; on a GPU also one with events around stages."""

    size: tuple[int, int]
    runs: list[TimedEncode]
    timed: TimedEncode | None = None

    @property
    def device(self) -> str:
        """Its name."""
        return self.runs[0].device

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
    """The measurements. seconds: for all of them together; gpus: names of the GPUs, to see which are alike."""

    devices: list[str]
    sizes: Sequence[tuple[int, int]]
    seconds: float
    threads: int
    begin_step: Callable[[str], object]  # called with the label of each measurement
    clip: Callable[[int], list[Planes]] | None = None
    gpus: Sequence[str] = ()
    tried: dict[str, dict[int, float]] = field(default_factory=dict)  # frames a second by setting and value
    measured: list[Measured] = field(default_factory=list)
    rates: Rates = field(default_factory=Rates)
    lines: list[str] = field(default_factory=list)  # of the report, after the table: rates, and what was left out
    gop: int = GOP  # frames of a GOP where several are encoded at once
    links: dict[tuple[str, str], Link] = field(default_factory=dict)
    meeting: float = 0.0  # see Models
    _frames: dict[tuple[int, int], list[Planes]] = field(default_factory=dict)
    # by device: least seconds before the first frame; luma samples of the largest frames and the seconds of one
    _start: dict[str, float] = field(default_factory=dict)
    _frame: dict[str, tuple[int, float]] = field(default_factory=dict)

    def run(self) -> Models:
        """Run all measurements; return the models. Error if none of them has times of stages."""
        end = time.perf_counter() + self.seconds - START
        for ordinal, device in enumerate(self.devices[1:]):
            self.begin_step(f"copies between {CPU} and {device}")
            self.links |= measure_link(ordinal)
        for device in self.devices[:2]:
            self.begin_step(f"start of {device}")  # later encodes find a GPU's context, and kernels
            watch(device, synthetic(32, 32, 2), 1, Window(0.0), gpu_choices={})
        run_steps(self.steps(), end, self.begin_step, lambda label: self.lines.append(f"{label}: left out, no time"))
        for some in self.measured:
            self.rates.add(some.device, P_FRAMES, some.middle.macroblocks, 1 / some.middle.frame)
        for device, first in self.alike().items():
            rows = [(traits, points) for (of, traits), points in self.rates.points.items() if of == first]
            self.rates.points |= {(device, traits): points for traits, points in rows}
        self.measured = self.complete
        if not self.measured:
            raise Error("nothing was measured: " + "; ".join(self.lines[:2]))
        models = self.models()
        for device in self.devices[2:]:  # GPUs alike: the first one's values hold
            models.stages |= {(name, device): curve for (name, of), curve in models.stages.items() if of == GPU}
        return models

    @property
    def complete(self) -> list[Measured]:
        """What has times of stages."""
        return [some for some in self.measured if some.device == CPU or some.timed is not None]

    def models(self) -> Models:
        """Models by what has been measured so far."""
        stages = {
            key: Curve.measured([(n, t) for n, t, _ in points], min(one_thread for _, _, one_thread in points))
            for key, points in self.samples().points.items()
        }
        models = Models(stages, self.links, self.chosen["threads"], self.chosen.get("streams", 4), self.meeting)
        return calibrated(models, GPU, [some.middle for some in self.complete if some.device == GPU])

    def steps(self) -> list[Step]:
        """All measurements, in order: settings, sizes, rates."""
        steps = self.choices()
        for size in self.sizes:
            patience = NEEDED if size == self.sizes[0] else PATIENCE
            for device in self.devices[:2]:  # the CPU and the first GPU
                label, least = f"{size[0]}x{size[1]} on {device}", partial(self.least, device, size)
                run = partial(self.measure, device, size)
                steps.append(Step(label, 2 - (device == GPU), run, least, patience=patience))
                if device == GPU:
                    run = partial(self.time_stages, size)
                    steps.append(Step(f"{label}, stage by stage", 1, run, least, patience=patience))
        for size in (RUNS - 1) * [*self.sizes] if GPU in self.devices else ():
            least = partial(self.least, GPU, size)
            steps.append(Step("all sizes again", 0.25, partial(self.again, size), least, is_extra=True))
        size = self.sizes[0] if self.clip else GOPS_AT
        if GPU in self.devices and size in self.sizes:
            label, least = f"{size[0]}x{size[1]}, rows on both devices", partial(self.least, CPU, size)
            steps.append(Step(label, 1, partial(self.meet, size), least))
        devices = sorted(set(self.alike().values()))
        for size in self.sizes if self.clip else RATE_SIZES:
            for label, options, traits, frames in ENCODES:
                for device in devices if traits != P_FRAMES else devices[2:]:
                    run = partial(self.measure_rate, label, options, traits, device, size)
                    least = partial(self.least, device, size, frames)
                    steps.append(Step(f"{label}, {size[0]}x{size[1]} on {device}", 3, run, least))
        return [step._replace(run=partial(self.guarded, step)) for step in steps]

    def guarded(self, step: Step, window: Window) -> None:
        """Run a step; frames of a size may not fit in a GPU's memory, which is no reason to end."""
        try:
            step.run(window)
        except DeviceLost:
            raise
        except Error as error:
            self.lines.append(f"{step.label}: {error}")

    def alike(self) -> dict[str, str]:
        """The device whose rates hold for a device: the first one of this name."""
        first: dict[str, str] = {}
        names = [*self.gpus, *(len(self.devices) - 1 - len(self.gpus)) * [""]]
        return {CPU: CPU} | {device: first.setdefault(name, device) for device, name in zip(self.devices[1:], names)}

    # ---- settings
    def choices(self) -> list[Step]:
        """What compares settings, the usual value first."""
        turns, steps = TURNS if self.seconds >= LONG else 1, []
        device, size = (GPU, GOPS_AT) if GPU in self.devices else (CPU, CHOICES_AT)
        if self.threads >= 4:  # all CPUs of the process, or half if that is faster, as with two threads a core
            labels = {threads: f"{threads} threads" for threads in (self.threads, self.threads // 2)}
            steps += self.compare("threads", labels, 1, device, CHOICES_AT)
        if device == GPU:
            steps += self.compare("streams", STREAMS, turns, device, CHOICES_AT)
            steps += self.compare("tile_rows", TILE_ROWS, turns, device, GOPS_AT)
        labels = {lanes: f"{lanes} GOP{'s' * (lanes > 1)} at once on {device}" for lanes in self.lanes()}
        return steps + self.compare("gops", labels, turns if device == GPU else 1, device, size)

    def compare(self, name: str, labels: Mapping[int, str], turns: int, device: str, size: tuple[int, int]) -> list[Step]:
        """A step for each value of a setting, by turns."""
        gops = name == "gops"

        def measure(value: int, window: Window) -> None:
            if gops:
                rate = self.gops_fps(device, size, value, window)
            else:
                rate = 1 / self.watch(device, size, window, self.chosen | {name: value}).frame
            rates = self.tried.setdefault(name, {})
            rates[value] = max(rate, rates.get(value, 0.0))

        def least(value: int) -> float:
            gops_of_lane = 1 if device == CPU else WARM_GOPS + 1
            return self.least(device, size, value * gops_of_lane * self.gop if gops else WARM + LEAST_FRAMES)

        return [
            Step(label, 2 if gops else 1, partial(measure, value), partial(least, value), is_extra=turn > 0)
            for turn in range(turns)
            for value, label in labels.items()
        ]

    def lanes(self) -> list[int]:
        """The numbers of GOPs at once to try."""
        if GPU in self.devices:
            return [1, 2, 3, 4] if self.threads >= 4 else [1, 2]
        return sorted({1, min(max(1, self.threads // 2), MOST_GOPS), min(self.threads, MOST_GOPS)})

    def gops_fps(self, device: str, size: tuple[int, int], lanes: int, window: Window) -> float:
        """Frames a second of GOPs at once. On a GPU the first measurement decides how long they are: as the time allows."""
        frame = self.frame_time(device, size)
        if device != CPU and frame and "gops" not in self.tried:
            fit = int(window.left(0.0) / (frame * (WARM_GOPS + 1) * self.lanes()[-1]))
            self.gop = min(max(fit, GOP), GOP_ON_GPU)
        return gop_rate(device, self.frames(size), self.chosen["threads"], lanes, window, self.chosen, self.gop)

    @property
    def chosen(self) -> dict[str, int]:
        """The settings, by what was measured so far."""
        usual = {"threads": self.threads}
        if GPU in self.devices:
            usual |= {"streams": next(iter(STREAMS)), "tile_rows": next(iter(TILE_ROWS))}
        return usual | {name: self.best(rates) for name, rates in self.tried.items() if len(rates) > 1}

    def best(self, rates: Mapping[int, float]) -> int:
        """The first value that is about as fast as the fastest."""
        return next(value for value, rate in rates.items() if rate * NEEDED_SPEEDUP >= max(rates.values()))

    # ---- encodes
    def frames(self, size: tuple[int, int]) -> list[Planes]:
        """Frames of a size, or of the clip."""
        if size not in self._frames:
            self._frames[size] = frames_for(*size, self.clip)
        return self._frames[size]

    def frame_time(self, device: str, size: tuple[int, int]) -> float:
        """The seconds of a frame, by the largest ones so far; 0: not known."""
        samples, seconds = self._frame.get(device, (1, 0.0))
        width, height = self.sizes[0] if self.clip else size
        return seconds * width * height / samples

    def least(self, device: str, size: tuple[int, int], frames: int = WARM + LEAST_FRAMES) -> float:
        """The seconds of an encode of some frames; 0: not known."""
        return self._start.get(device, 0.0) + frames * self.frame_time(device, size)

    def watch(
        self, device: str, size: tuple[int, int], window: Window, choices: Mapping[str, int] | None = None, **more: Any
    ) -> TimedEncode:
        """Run an encode with these settings, or those chosen."""
        choices, frames = choices or self.chosen, self.frames(size)
        try:
            encode = watch(device, frames, choices["threads"], window, gpu_choices=choices, **more)
        except TooLong as error:
            self.learn(device, frames[0][0].size, error)
            raise
        self.learn(device, frames[0][0].size, encode)
        return encode

    def learn(self, device: str, samples: int, encode: TimedEncode | TooLong) -> None:
        """Note how long an encode takes, finished or not."""
        self._start[device] = min(encode.start, self._start.get(device, encode.start))
        if encode.frame and samples >= self._frame.get(device, (0, 0.0))[0]:
            self._frame[device] = samples, encode.frame

    def measure(self, device: str, size: tuple[int, int], window: Window) -> None:
        """Measure one device at one size."""
        self.measured.append(Measured(size, [self.watch(device, size, window)]))

    def of_gpu(self, size: tuple[int, int]) -> Measured | None:
        """What was measured at a size on the GPU."""
        return next((some for some in self.measured if some.device == GPU and some.size == size), None)

    def time_stages(self, size: tuple[int, int], window: Window) -> None:
        """Encode once more on the GPU, with events around stages."""
        some = self.of_gpu(size)
        if some is not None:
            some.timed = self.watch(GPU, size, window, most=400, gpu_clock=True)

    def again(self, size: tuple[int, int], window: Window) -> None:
        """Repeat an encode on the GPU: all sizes before the next repetition, since other load of the machine lasts longer
        than an encode.
        """
        some = self.of_gpu(size)
        if some is not None and some.timed is not None:
            some.runs.append(self.watch(GPU, size, window))

    def meet(self, size: tuple[int, int], window: Window) -> None:
        """Encode rows of each frame on both devices, if a plan for that promises a gain, to see what meetings cost."""
        pair = [some for some in self.complete if some.size == size]
        if len(pair) < 2:
            return
        run = pair[0].middle
        traits, models = frame_traits_of(run.mb_width, run.mb_height, subme=run.subme, cabac=run.cabac), filled(self.models())
        plan = make_plan((CPU, GPU), traits, models, tries=FEWER_TRIES).plan
        if plan.single is not None:
            return
        decider = plan.rows["mode_decision"].index(plan.mb_height)
        split = plan.rows["full_search"][0], decider
        forced = Plan.split((CPU, GPU), plan.mb_height, *split, traits.me, traits.subme, traits.cabac)
        encode = self.watch("hybrid", size, window, split=split)
        self.meeting = meeting_of(forced, traits, models, encode.frame)
        self.lines.append(f"{size[0]}x{size[1]} hybrid {1 / encode.frame:8.1f} fps, a meeting {1e6 * self.meeting:.0f} us")

    def measure_rate(
        self, label: str, options: Mapping[str, Any], traits: EncodeTraits, device: str, size: tuple[int, int], window: Window
    ) -> None:
        """Measure the rate of encodes with these options."""
        frames = self.frames(size)
        rate = encode_rate(device, frames, self.chosen["threads"], window, self.chosen, **options)
        height, width = frames[0][0].shape
        self.rates.add(device, traits, -(-width // 16) * -(-height // 16), rate)
        self.lines.append(f"{width}x{height} {device:>7} {rate:8.1f} fps, {label}")

    def samples(self) -> Samples:
        """The times of the median encodes, by stage."""
        samples = Samples()
        for some in self.complete:
            if some.timed is None:
                samples.add_cpu(some.middle)
            else:
                samples.add_gpu(some.middle, some.timed)
        return samples

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
        return [*lines, *self.lines]
