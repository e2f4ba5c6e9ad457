"""The planner: finds the fastest plan by the time models, and explains it. Pure; docs/tuning.md: how to read and override it.

Linear programs give the cuts for divisible rows and copies concurrent with work (row_split_lp.py). Their solutions are
rounded, simulated with the same operations that the executor does (simulate.py), and improved by small moves. Plans that
leave everything to one device are always candidates, so that no plan is worse than the faster device.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from .plan import HOST, SPLITTING, WHOLE, Plan, is_gpu, rows_of
from .route import FrameTraits
from .row_split_lp import REPEATED, Placement, RowSplitLp
from .simulate import Prediction, Timeline, predict, simulate
from .tuning.models import Models

DECIDING, CODING = "mode_decision", "intra"  # stages that do not split
DECIDERS = tuple(name for name in WHOLE if name != CODING)  # those of B frames too
SEARCHING = ("subsample", "search_centre", "full_search", "pattern_search", "subpel_refine", "neighbour_vectors",
             "neighbour_vectors_again", "intra_estimate", "rd_candidates", "bipredict", "rd_candidates_b")  # fmt: skip
REBUILDING = ("inter_residual", "explicit_motion", "mark_skipped", "keep_motion", "deblock", "ssd_y", "ssd_u", "ssd_v",
              "interpolate")  # fmt: skip
PINNED_ROWS = {"rows_gpu", "rows_cpu"}
TRIES = 60  # maximum simulated plans
_NEEDED_SHARE = 0.999  # a plan must be below this share of the best time to replace it


@dataclass
class Planned:
    """A plan, its predicted times, and the alternatives."""

    plan: Plan
    timeline: Timeline
    prediction: Prediction
    frame_traits: FrameTraits
    single_device_seconds: dict[str, float]  # a frame, by device
    tried: int
    pinned: str = ""

    def explain(self) -> str:
        """Text of the plan with predicted times."""
        plan, height = self.plan, self.plan.mb_height
        seconds = self.prediction.seconds
        lines = [
            f"plan: {_where(plan)}; predicted {_ms(seconds)} a frame ({1 / seconds:.0f} fps), decided by "
            f"{self.prediction.bound}"
        ]
        lines[0] += f"; {self.pinned}" if self.pinned else ""
        others = [f"{device} alone {_ms(seconds)}" for device, seconds in self.single_device_seconds.items()]
        lines.append(f"  {', '.join([*others, f'{self.tried} plans tried'])}")
        lines.append("  a frame: " + ", ".join(f"{name} {_ms(seconds)}" for name, seconds in self.prediction.times.items()))
        if plan.single is None:
            spent = self.timeline.stage_seconds()
            for stage, rows in plan.rows.items():
                shown = [f"{device} {n} of {height} rows, {_ms(spent[stage, device])}"
                         for device, n in zip(plan.devices, rows) if (stage, device) in spent]  # fmt: skip
                if shown:
                    lines.append(f"  {stage:<15} {'; '.join(shown)}")
            copied: dict[tuple[str, str], int] = {}
            for op in self.timeline.ops:
                if not hasattr(op, "stage"):
                    copied[op.source, op.target] = copied.get((op.source, op.target), 0) + op.bytes
            megabytes = {way: size / 1e6 / self.timeline.frames for way, size in copied.items()}
            lines += [f"  copies {source} to {target}: {size:.2f} MB" for (source, target), size in megabytes.items()]
        return "\n".join(lines)


def _where(plan: Plan) -> str:
    if plan.single is not None:
        return f"everything on {plan.single}"
    total = plan.mb_height * len([stage for stage in plan.rows if stage in SPLITTING])
    phrases = []
    for k, device in enumerate(plan.devices):
        share = sum(min(rows[k], plan.mb_height) for stage, rows in plan.rows.items() if stage in SPLITTING)
        phrases.append(f"{device} {100 * share / total:.0f} % of the rows")
    deciding = plan.rows[DECIDING if DECIDING in plan.rows else "rd_decision"]
    decider = plan.devices[max(range(len(plan.devices)), key=lambda k: deciding[k])]
    return f"{', '.join(phrases)}, mode decision on {decider}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


Rows = dict[str, tuple[int, ...]]  # by stage: rows of each device; also of stages that do not split


@dataclass(frozen=True)
class Tried:
    """A simulated plan."""

    timeline: Timeline
    prediction: Prediction

    @property
    def score(self) -> float:
        """Seconds a frame; among plans with another bottleneck than the loop, the shorter loop is slightly better."""
        return self.prediction.seconds + 1e-3 * self.timeline.seconds


def complete(devices: Sequence[str], rows: Mapping[str, Sequence[int]], frame_traits: FrameTraits) -> Plan:
    """The plan of these rows for such frames: of their stages alone, CPU-only ones on the CPU."""
    height = frame_traits.size.mb_height
    return Plan.complete(devices, height, rows_of(frame_traits.stages, devices, height, rows))


@dataclass
class _Search:
    """The candidates; each is simulated once."""

    devices: tuple[str, ...]
    frame_traits: FrameTraits
    models: Models
    tries: int
    seen: dict[Plan, Tried] = field(default_factory=dict)
    best: Plan | None = None

    @property
    def height(self) -> int:
        return self.frame_traits.size.mb_height

    def try_rows(self, rows: Mapping[str, Sequence[int]]) -> bool:
        """Try a candidate. Returns whether it is better than all before."""
        try:
            plan = complete(self.devices, rows, self.frame_traits)
        except ValueError:
            return False
        if plan in self.seen or not self.possible(plan):
            return False
        if plan.single is None and self.best is not None and self.least(plan) > self.seen[self.best].score:
            return False
        timeline = simulate(plan, self.frame_traits, self.models)
        prediction = predict(plan, self.frame_traits, self.models, timeline)
        self.seen[plan] = Tried(timeline, prediction)
        if self.best is not None and self.seen[plan].score > _NEEDED_SHARE * self.seen[self.best].score:
            return False
        self.best = plan
        return True

    def possible(self, plan: Plan) -> bool:
        """Whether each stage was measured on its devices."""
        return all(self.models.knows(stage, device)
                   for stage, rows in plan.rows.items() for device, n in zip(plan.devices, rows) if n)  # fmt: skip

    def least(self, plan: Plan) -> float:
        """Lower bound of the seconds of a plan: the largest sum of the stage times of one device."""
        width, runs = self.frame_traits.size.mb_width, self.frame_traits.runs
        return max(
            sum(self.models.seconds(stage, device, rows[k], width) * runs.get(stage, 0) for stage, rows in plan.rows.items())
            for k, device in enumerate(plan.devices)
            if any(rows[k] for rows in plan.rows.values())
        )

    def all_rows_on(self, k: int) -> tuple[int, ...]:
        """All rows on device k."""
        return tuple(self.height if j == k else 0 for j in range(len(self.devices)))

    # ---- candidates
    def try_single_devices(self) -> dict[str, float]:
        """Try all stages on one device, and those that do not split on another. Returns seconds a frame of single devices."""
        for k, j in product(range(len(self.devices)), repeat=2):
            unsplit = dict.fromkeys(WHOLE, self.all_rows_on(j))
            self.try_rows(dict.fromkeys(SPLITTING, self.all_rows_on(k)) | unsplit)
        return {plan.single: tried.prediction.seconds for plan, tried in self.seen.items() if plan.single is not None}

    def try_linear_programs(self) -> None:
        """Try solutions of the linear programs, and the same with one cut for all stages, for each set of devices."""
        height, count = self.height, len(self.devices)
        for used in (some for n in range(2, count + 1) for some in combinations(range(count), n)):
            every = tuple(height if k in used else 0 for k in range(count))
            for k in used:  # in proportion to speed: the LP does not model waits between rows
                unsplit = dict.fromkeys(WHOLE, self.all_rows_on(k))
                self.try_rows(dict.fromkeys(SPLITTING, self.by_speed(used)) | unsplit)
            for placement in placements(used):
                solved = self.solved(used, placement)
                rows = {stage: rounded(shares, height) for stage, shares in solved.items()}
                rows |= {s: every if k == REPEATED else self.all_rows_on(int(k)) for s, k in placement.items()}
                if solved:
                    self.try_rows(rows)
                    common = rounded(np.mean([solved[s] for s in solved if s in SEARCHING], 0), height)
                    self.try_rows({stage: common if stage in solved else n for stage, n in rows.items()})

    def by_speed(self, used: Sequence[int]) -> tuple[int, ...]:
        """One cut for all stages that split: rows in proportion to the speed of each device over all these stages."""
        models, width = self.models, self.frame_traits.size.mb_width
        speeds = [0.0] * len(self.devices)
        for k in used:
            stages = [stage for stage in SPLITTING if stage in self.frame_traits.stages]
            known = [stage for stage in stages if all(models.knows(stage, self.devices[j]) for j in used)]
            seconds = sum(models.seconds(stage, self.devices[k], self.height, width) for stage in known)
            speeds[k] = 1 / seconds if seconds else 0.0
        total = sum(speeds) or 1.0
        return rounded([self.height * speed / total for speed in speeds], self.height)

    def solved(self, used: Sequence[int], placement: Placement) -> dict[str, np.ndarray]:
        """The solution of one linear program: fractional rows by stage that splits, 0 for devices that are not used.

        Each frame type has a program of its own; a stage of several types takes the mean of their solutions.
        """
        positions = {stage: k if k == REPEATED else used.index(int(k)) for stage, k in placement.items()}
        devices, solutions = [self.devices[k] for k in used], dict[str, list[np.ndarray]]()
        for frame in dict.fromkeys(self.frame_traits.frames):
            solution = RowSplitLp(frame, devices, self.models, positions).solve()
            if solution is None:
                return {}
            for stage, shares in solution.items():
                full = np.zeros(len(self.devices))
                full[list(used)] = shares
                solutions.setdefault(stage, []).append(full)
        return {stage: np.mean(shares, 0) for stage, shares in solutions.items()}

    def improve(self) -> None:
        """Try small moves from the best plan, until none helps or `tries` is reached."""
        moved = True
        while moved and len(self.seen) < self.tries and self.best is not None:
            moved = False
            for rows in self.moves(self.best):
                if len(self.seen) >= self.tries:
                    return
                if self.try_rows(rows):
                    moved = True
                    break

    def moves(self, plan: Plan) -> Iterable[Rows]:
        """Neighbours of a plan: cuts of groups of stages moved by decreasing steps, other devices for unsplit stages."""
        rows = {stage: n for stage, n in plan.rows.items() if stage in SPLITTING or stage in WHOLE}
        count, height = len(self.devices), self.height
        every = tuple([height] * count)
        split = [stage for stage in rows if stage in SPLITTING and rows[stage] != every]
        step = max(1, height // 8)
        while step:
            for group in (split, SEARCHING, REBUILDING, ("deblock", "ssd_y", "ssd_u", "ssd_v")):
                for cut in range(count - 1):
                    for by in (step, -step):
                        yield rows | {s: shifted(rows[s], cut, by) for s in group if s in split}
            step //= 2
        for k in range(count):
            for stages in (WHOLE, DECIDERS, (CODING,)):
                yield rows | dict.fromkeys(stages, self.all_rows_on(k))
        if rows["interpolate"] == every:
            yield rows | {"interpolate": rows["deblock"]}
        else:
            yield rows | {"interpolate": every}
        for stage in split:
            for cut in range(count - 1):
                for by in (1, -1):
                    yield rows | {stage: shifted(rows[stage], cut, by)}


def placements(devices: Iterable[int]) -> list[Placement]:
    """Placements of stages that do not split: both on one device; interpolation split, or repeated on every device."""
    choices: list[Placement] = []
    for k in devices:
        choices += [dict.fromkeys(WHOLE, k), {**dict.fromkeys(WHOLE, k), "interpolate": REPEATED}]
    return choices


def rounded(shares: Iterable[float], height: int) -> tuple[int, ...]:
    """Integer rows with the nearest cuts."""
    total, cuts = 0.0, [0]
    for share in shares:
        total += share
        cuts.append(min(height, max(cuts[-1], round(total))))
    cuts[-1] = height
    return tuple(b - a for a, b in zip(cuts, cuts[1:]))


def shifted(rows: tuple[int, ...], cut: int, by: int) -> tuple[int, ...]:
    """Move the cut after device `cut` down by `by` rows, within the rows of its neighbours."""
    by = max(-rows[cut], min(by, rows[cut + 1]))
    return (*rows[:cut], rows[cut] + by, rows[cut + 1] - by, *rows[cut + 2 :])


def make_plan(
    devices: Sequence[str],
    frame_traits: FrameTraits,
    models: Models,
    pins: Mapping[str, object] | None = None,
    tries: int = TRIES,
) -> Planned:
    """The best plan found for frames with these traits. ValueError if no plan has all its stages measured."""
    search = _Search(tuple(devices), frame_traits, models, tries)
    single = search.try_single_devices()
    forced = pinned(search.devices, frame_traits, pins or {})
    if forced is not None:
        plan, timeline = forced[0], simulate(forced[0], frame_traits, models)
        prediction = predict(plan, frame_traits, models, timeline)
    else:
        if len(devices) > 1:
            search.try_linear_programs()
            search.improve()
        if search.best is None:
            raise ValueError(f"no plan for {', '.join(devices)}: nothing was measured")
        singles = [plan for plan in search.seen if plan.single is not None]
        plan = min([search.best, *singles], key=lambda plan: search.seen[plan].prediction.seconds)
        timeline, prediction = search.seen[plan].timeline, search.seen[plan].prediction
    plan = replace(plan, seconds=timeline.seconds, stage_seconds=timeline.stage_seconds())
    return Planned(plan, timeline, prediction, frame_traits, single, len(search.seen), forced[1] if forced else "")


def pinned(devices: Sequence[str], frame_traits: FrameTraits, pins: Mapping[str, Any]) -> tuple[Plan, str] | None:
    """The plan of the pins of a tuning file, and its description; None without row pins, or without a GPU and a CPU."""
    gpu = next((k for k, device in enumerate(devices) if is_gpu(device)), None)
    cpu = next((k for k, device in enumerate(devices) if device == HOST), None)
    if gpu is None or cpu is None or not PINNED_ROWS & set(pins):
        return None
    height = frame_traits.size.mb_height
    of_gpu = min(height, pins["rows_gpu"]) if "rows_gpu" in pins else height - min(height, pins["rows_cpu"])
    rows = [0] * len(devices)
    rows[gpu], rows[cpu] = of_gpu, height - of_gpu
    device = cpu if pins.get("whole") == "cpu" or (not of_gpu and "whole" not in pins) else gpu
    rows_of_unsplit = tuple(height if k == device else 0 for k in range(len(devices)))
    every: dict[str, Sequence[int]] = dict.fromkeys(SPLITTING, tuple(rows))
    every |= dict.fromkeys(WHOLE, rows_of_unsplit)
    said = " and ".join(f"{name} = {pins[name]}" for name in ("rows_gpu", "rows_cpu", "whole") if name in pins)
    return complete(devices, every, frame_traits), f"pinned: {said}"


__all__ = ["Planned", "make_plan", "pinned", "placements", "rounded", "shifted"]
