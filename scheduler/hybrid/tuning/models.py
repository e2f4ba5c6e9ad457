"""Time models: measured seconds of each stage on each device, and of each link, as functions of size.

A stage's time is a curve over macroblocks (the functional performance models of Ilic, Momcilovic, Roma and Sousa, FEVES,
ICPP 2014): straight lines between measured points. Three times are not of stages: ISSUE and LOAD, of the host thread that
keeps a device busy; ENTROPY, of one thread that writes the bits of a frame.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...stages import CUDA, H2D, STAGES, TABLE

CPU = "cpu"  # the device of the CPU threads
ENTROPY, LOAD, ISSUE = "entropy", "load", "issue"
WEIGHT = 0.2  # of a new measurement in the average
_FASTEST = 1e-9  # lower limit of a measurement in seconds


@dataclass(frozen=True)
class Curve:
    """Seconds by macroblocks. points: (macroblocks, seconds), ascending in both.

    one_thread: seconds a macroblock of one thread; a row goes to one thread, so that few rows leave the others idle.
    """

    points: tuple[tuple[float, float], ...]
    one_thread: float = 0.0

    @classmethod
    def line(cls, launch: float, each: float, one_thread: float = 0.0) -> "Curve":
        """A straight line: `launch` seconds plus `each` seconds a macroblock."""
        return cls(((0.0, launch), (1000.0, launch + 1000 * each)), one_thread)

    @classmethod
    def measured(cls, points: Iterable[tuple[float, float]], one_thread: float = 0.0) -> "Curve":
        """From measurements (macroblocks, seconds); points that decrease are replaced by the mean of their neighbours."""
        blocks: list[tuple[list[float], float]] = []  # sizes, and the seconds of each of them
        for n, seconds in sorted(points):
            sizes, mean = [float(n)], max(seconds, _FASTEST)
            while blocks and (blocks[-1][1] > mean or blocks[-1][0][-1] == sizes[0]):
                before, old = blocks.pop()
                mean = (len(before) * old + len(sizes) * mean) / (len(before) + len(sizes))
                sizes = before + sizes
            blocks.append((sizes, mean))
        return cls(tuple((n, mean) for sizes, mean in blocks for n in dict.fromkeys(sizes)), one_thread)

    def seconds(self, rows: float, mb_width: int, threads: int = 1) -> float:
        """Seconds of macroblock rows; 0 for none. threads: the number that shares the rows, used if `one_thread` is known."""
        if rows <= 0:
            return 0.0
        spent = self.at(rows * mb_width)
        if self.one_thread:
            spent = max(spent, self.one_thread * mb_width * max(1.0, rows / threads))
        return spent

    def at(self, n: float) -> float:
        """Seconds of n > 0 macroblocks: linear between points, and extrapolated by the outermost line.

        Below the first point the result is at least proportional to it, because the line may reach 0 too early.
        """
        points = self.points
        first, short = points[0]
        if len(points) == 1:
            return max(_FASTEST, short * n / first)
        k = min(max(1, bisect_right(points, (n, math.inf))), len(points) - 1)
        (n0, t0), (n1, t1) = points[k - 1], points[k]
        value = t0 + (t1 - t0) * (n - n0) / (n1 - n0)
        return max(value, short * n / first if 0 < n < first else 0.0, _FASTEST)

    def launch_and_each(self, n: float) -> tuple[float, float]:
        """(launch, each) of the line through n / 20 and n macroblocks: the curve for the linear program."""
        few, all_of_it = self.at(n / 20), self.at(n)
        each = (all_of_it - few) / (n - n / 20)
        return max(0.0, all_of_it - each * n), each


@dataclass(frozen=True)
class Link:
    """Copies in one direction between two devices."""

    latency: float  # seconds
    rate: float  # bytes a second

    def seconds(self, size: float) -> float:
        """Seconds of a copy of `size` bytes."""
        return self.latency + size / self.rate

    @classmethod
    def measured(cls, points: Iterable[tuple[float, float]]) -> "Link":
        """From (bytes, seconds): the line through the smallest and the largest copy."""
        points = sorted(points)
        (few, short), (many, long) = points[0], points[-1]
        rate = (many - few) / max(long - short, _FASTEST)
        return cls(max(_FASTEST, short - few / rate), rate)


@dataclass
class Models:
    """Times of one machine: by (stage, device), and by (source, target) of a link. threads: of the device "cpu".

    streams: of a GPU that works alone; 1: all work in order, also copies. meeting: seconds, beyond those of the copy, until a
    device has rows of another one: it waits, is woken, and starts the next stage.
    """

    stages: dict[tuple[str, str], Curve]
    links: dict[tuple[str, str], Link] = field(default_factory=dict)
    threads: int = 1
    streams: int = 4
    meeting: float = 0.0
    _factors: dict[tuple[str, str], float] = field(default_factory=dict)  # average of measured / predicted
    _planned_factors: dict[tuple[str, str], float] = field(default_factory=dict)  # factors when the plan was made
    _last: dict[tuple[str, str], float] = field(default_factory=dict)  # seconds without factor, at the last size
    _link_factors: dict[tuple[str, str], float] = field(default_factory=dict)

    def knows(self, stage: str, device: str) -> bool:
        """Whether the stage was measured on the device."""
        return (stage, device) in self.stages

    def seconds(self, stage: str, device: str, rows: float, mb_width: int) -> float:
        """Seconds of the stage on the device for macroblock rows; 0 for none."""
        if not rows:
            return 0.0
        return self._factors.get((stage, device), 1.0) * self._first(stage, device, rows, mb_width)

    def copy_seconds(self, source: str, target: str, size: float) -> float:
        """Seconds of a copy of `size` bytes; 0 without a link, because the memory is shared.

        Between two GPUs without a direct link the copy goes through the host.
        """
        link = self.links.get((source, target))
        if link is None and CPU not in (source, target):
            return self.copy_seconds(source, CPU, size) + self.copy_seconds(CPU, target, size)
        return self._link_factors.get((source, target), 1.0) * link.seconds(size) if link and size else 0.0

    def line(self, stage: str, device: str, mb_width: int, mb_height: int) -> tuple[float, float]:
        """(launch seconds, seconds a row) of the stage on the device, for frames of this size."""
        launch, each = self.stages[stage, device].launch_and_each(mb_width * mb_height)
        factor = self._factors.get((stage, device), 1.0)
        return factor * launch, factor * each * mb_width

    def observe(
        self, stage: str, device: str, rows: float, mb_width: int, seconds: float, stands_for: float | None = None
    ) -> None:
        """Add a measurement to the average. stands_for: rows that it represents in `drift`; None: its own rows."""
        first = self._first(stage, device, rows, mb_width) if self.knows(stage, device) else 0.0
        if not first:
            if rows > 0:
                self.stages[stage, device] = Curve.line(0.0, max(seconds, _FASTEST) / (rows * mb_width))
            return
        key = stage, device
        self._last[key] = first if stands_for is None else self._first(stage, device, stands_for, mb_width)
        old = self._factors.get(key, 1.0)
        self._factors[key] = old + WEIGHT * (seconds / first - old)

    def follow(self, device: str, stages: Iterable[str]) -> None:
        """Scale stages without new measurements on a device by the total change of those with new measurements."""
        times = [(self._factors[key] * first, first) for key, first in self._last.items() if key[1] == device]
        before = sum(first for _, first in times)
        if before:
            ratio = sum(now for now, _ in times) / before
            for stage in stages:
                if (stage, device) in self.stages and (stage, device) not in self._last:
                    self._factors[stage, device] = ratio

    def observe_copy(self, source: str, target: str, size: float, seconds: float) -> None:
        """Add a measurement of a link to the average."""
        link = self.links.get((source, target))
        if link and size:
            old = self._link_factors.get((source, target), 1.0)
            self._link_factors[source, target] = old + WEIGHT * (seconds / link.seconds(size) - old)

    def drift(self) -> float:
        """Change of the measured times since `mark_planned`, as a share of their sum."""
        moved = sum(
            abs(self._factors[key] - self._planned_factors.get(key, 1.0)) * first for key, first in self._last.items()
        )
        before = sum(self._planned_factors.get(key, 1.0) * first for key, first in self._last.items())
        return moved / before if before else 0.0

    def mark_planned(self) -> None:
        """Note that a plan was made from the current models."""
        self._planned_factors = dict(self._factors)

    def _first(self, stage: str, device: str, rows: float, mb_width: int) -> float:
        return self.stages[stage, device].seconds(rows, mb_width, self.threads if device == CPU else 1)

    def with_threads(self, threads: int) -> "Models":
        """A copy for fewer CPU threads, by the times of one thread; more threads change nothing."""
        stages = dict(self.stages)
        if threads >= self.threads:
            return Models(stages, dict(self.links), self.threads, self.streams, self.meeting)
        for (name, device), curve in self.stages.items():
            if device == CPU and curve.one_thread:
                longer = tuple((n, max(t, min(t * self.threads / threads, curve.one_thread * n))) for n, t in curve.points)
                stages[name, device] = Curve(longer, curve.one_thread)
        return Models(stages, dict(self.links), threads, self.streams, self.meeting)

    def devices(self) -> list[str]:
        """The devices that stages were measured on, "cpu" first."""
        return sorted({device for _, device in self.stages}, key=lambda name: (name != CPU, name))


# First guess without measurements, corrected by the first frames: microseconds a frame of 8160 macroblocks. From one core of
# a Xeon at 2.5 GHz with AVX-512 and an H200, 1080p, real video, preset medium (benchmarks/results/2026-11).
_GUESS_N = 8160
_CORE = {
    "full_search": 45_000, "pattern_search": 12_000, "step_search": 23_000, "subpel_refine": 35_000, "inter_residual": 24_200,
    "mode_decision": 9_900,
    "search_centre": 8_500, "intra_estimate": 6_800, "deblock": 6_400, "interpolate": 2_300, "subsample": 2_100,
    "intra": 4_000, "mark_skipped": 200, "extend_luma": 300, "extend_cb": 80, "extend_cr": 80, "ssd_y": 530, "ssd_u": 140,
    "ssd_v": 140, "rd_decision": 300_000, "rd_candidates": 90_000, "neighbour_vectors": 25_000,
    "neighbour_vectors_again": 20_000, "bipredict": 60_000, "rd_candidates_b": 56_000, "mode_decision_b": 5_000,
    "camera": 1_900, "keep_motion": 700, "explicit_motion": 400, ENTROPY: 3_200, LOAD: 500, ISSUE: 200,
}  # fmt: skip
_GPU = {  # (launch and other constant time, time in proportion to the size)
    "full_search": (5, 68), "pattern_search": (5, 60), "subpel_refine": (5, 65), "inter_residual": (4, 32),
    "mode_decision": (60, 204),
    "search_centre": (5, 40), "intra_estimate": (3, 10), "deblock": (5, 33), "interpolate": (3, 9), "subsample": (3, 17),
    "rd_candidates": (5, 220), "neighbour_vectors": (5, 25), "neighbour_vectors_again": (5, 25),
    "intra": (60, 189), "mark_skipped": (2, 1), "extend_luma": (2, 6), "extend_cb": (2, 2), "extend_cr": (2, 2),
    "ssd_y": (2, 4), "ssd_u": (2, 2), "ssd_v": (2, 2), "compact": (4, 46), "write_slices": (12, 30), "load_i420": (3, 3),
    "source_sums": (3, 3),
    # of B frames not measured: in proportion to the stages of P frames, by their times on a core
    "bipredict": (5, 100), "rd_candidates_b": (5, 140), "mode_decision_b": (60, 200), "camera": (12, 4),
    "keep_motion": (2, 4), "explicit_motion": (2, 2),
    LOAD: (20, 480), ISSUE: (600, 100),
}  # fmt: skip
_OTHER_STAGE = 5_000, (5, 20)  # one that is not named above: on a core, on a GPU
_GUESS_LINK = Link(8e-6, 50e9)  # of the same GPU, page-locked memory
_SCALING = 0.6  # speed of each further thread, relative to the first


def guess(devices: Iterable[str], threads: int) -> Models:
    """Models of a machine without measurements: plausible ratios, wrong absolute times."""
    stages: dict[tuple[str, str], Curve] = {}
    links: dict[tuple[str, str], Link] = {}
    for device in devices:
        if device == CPU:
            workers = 1 + _SCALING * (threads - 1)
            unnamed = {
                stage.name: _OTHER_STAGE[0]
                for stage in TABLE
                if stage.only != CUDA and not (stage.deferred or stage.unplanned)
            }
            for name, micro in (unnamed | _CORE).items():
                each = 1e-6 * micro / _GUESS_N
                host_time = name in (ENTROPY, LOAD, ISSUE)
                stages[name, device] = Curve.line(
                    0.0 if host_time else 5e-6, each if host_time else each / workers, 0.0 if host_time else each
                )
        else:
            of_both = {
                stage.name: _OTHER_STAGE[1]
                for stage in TABLE
                if stage.only in ("", CUDA) and not stage.unplanned and stage.stream != H2D
            }
            for name, (launch, proportional) in (of_both | _GPU).items():
                stages[name, device] = Curve.line(1e-6 * launch, 1e-6 * proportional / _GUESS_N)
            links[CPU, device] = links[device, CPU] = _GUESS_LINK
    return Models(stages, links, threads)


def filled(models: Models, optional: bool = False) -> Models:
    """The models, and stages that were not measured by the guess, in proportion to those that were; optional: no others."""
    guessed, stages = guess(models.devices(), models.threads).stages, dict(models.stages)
    for device in models.devices():
        known = [key for key in guessed if key[1] == device and key in stages]
        measured, expected = (sum(curves[key].at(_GUESS_N) for key in known) for curves in (stages, guessed))
        ratio = measured / expected if known else 1.0
        for key, curve in guessed.items():
            if key[1] == device and key not in stages and (STAGES[key[0]].optional or not optional):
                points = tuple((n, ratio * seconds) for n, seconds in curve.points)
                stages[key] = Curve(points, ratio * curve.one_thread)
    return replace(models, stages=stages)


def as_table(models: Models) -> Mapping[str, Mapping[str, Curve]]:
    """{device: {stage: curve}} with the later measurements applied."""
    table: dict[str, dict[str, Curve]] = {}
    for (stage, device), curve in models.stages.items():
        factor = models._factors.get((stage, device), 1.0)
        points = tuple((n, factor * seconds) for n, seconds in curve.points)
        table.setdefault(device, {})[stage] = Curve(points, factor * curve.one_thread)
    return table
