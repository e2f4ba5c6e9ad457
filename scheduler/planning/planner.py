"""The planner: from time models to a plan, and why. Pure; docs/tuning.md says how to read and to overrule it.

Linear programs say where the cuts lie if rows were divisible and copies ran beside work (program.py); their solutions are
rounded, simulated with the very operations that the executor will do (simulate.py), and improved by small moves. The plans
that leave everything to one device are always among the candidates, so that no plan is worse than the better device.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from .models import Models
from .plan import HOST, SPLITS, Plan, is_gpu
from .route import Picture
from .row_split_lp import OF_EACH_REFERENCE, REPEATED, Placement, Program
from .simulate import Prediction, Timeline, predict, simulate

DECIDING, CODING = "mode_decision", "intra"  # stages that do not split
SEARCHING = ("subsample", "search_centre", "full_search", "subpel_refine", "intra_estimate")
REBUILDING = ("inter_residual", "mark_skipped", "deblock", "ssd_y", "ssd_u", "ssd_v", "interpolate")
PINNED_ROWS = {"rows_gpu", "rows_cpu"}
TRIES = 60  # plans that are simulated
_WORTH = 0.999  # of the time, or a change is none


@dataclass
class Planned:
    """A plan, what it was chosen from, and what it will take."""

    plan: Plan
    timeline: Timeline
    prediction: Prediction
    picture: Picture
    alone: dict[str, float]  # seconds of a picture by device, if it did everything
    tried: int
    pinned: str = ""

    def explain(self) -> str:
        """The plan in words, with predicted times."""
        plan, height = self.plan, self.plan.mb_height
        seconds = self.prediction.seconds
        lines = [f"plan: {_where(plan)}; predicted {_ms(seconds)} a picture ({1 / seconds:.0f} fps), decided by "
                 f"{self.prediction.bound}"]  # fmt: skip
        lines[0] += f"; {self.pinned}" if self.pinned else ""
        others = [f"{device} alone {_ms(seconds)}" for device, seconds in self.alone.items()]
        lines.append(f"  {', '.join([*others, f'{self.tried} plans tried'])}")
        lines.append("  a picture: " + ", ".join(f"{name} {_ms(seconds)}" for name, seconds in self.prediction.parts.items()))
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
            lines += [f"  copies {source} to {target}: {size / 1e6:.2f} MB" for (source, target), size in copied.items()]
        return "\n".join(lines)


def _where(plan: Plan) -> str:
    if plan.single is not None:
        return f"everything on {plan.single}"
    total = plan.mb_height * len([stage for stage in plan.rows if stage in SPLITS])
    parts = []
    for k, device in enumerate(plan.devices):
        share = sum(min(rows[k], plan.mb_height) for stage, rows in plan.rows.items() if stage in SPLITS)
        parts.append(f"{device} {100 * share / total:.0f} % of the rows")
    whole = plan.devices[max(range(len(plan.devices)), key=lambda k: plan.rows[DECIDING][k])]
    return f"{', '.join(parts)}, mode decision on {whole}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


Rows = dict[str, tuple[int, ...]]  # of the stages that split, and of those that do not


@dataclass(frozen=True)
class Tried:
    """A plan that was simulated."""

    timeline: Timeline
    prediction: Prediction

    @property
    def score(self) -> float:
        """Seconds of a picture; where something else than the loop decides, the shorter loop is a little better."""
        return self.prediction.seconds + 1e-3 * self.timeline.seconds


def complete(devices: Sequence[str], height: int, rows: Mapping[str, Sequence[int]], me: str) -> Plan:
    """The plan of these rows; the search in steps is there for the processor alone, and only if it is asked for."""
    full = {stage: tuple(n) for stage, n in rows.items()}
    cpu = next((k for k, device in enumerate(devices) if not is_gpu(device)), None)
    if me == "step" and cpu is not None:
        full["step_search"] = tuple(height if k == cpu else 0 for k in range(len(devices)))
        full.pop("full_search", None)
    return Plan.complete(devices, height, full)


@dataclass
class _Search:
    """Candidates, each simulated once."""

    devices: tuple[str, ...]
    picture: Picture
    models: Models
    tries: int
    seen: dict[Plan, Tried] = field(default_factory=dict)
    best: Plan | None = None

    @property
    def height(self) -> int:
        return self.picture.size.mb_height

    def try_rows(self, rows: Mapping[str, Sequence[int]]) -> bool:
        """Whether these rows are better than all before."""
        try:
            plan = complete(self.devices, self.height, rows, self.picture.me)
        except ValueError:
            return False
        if plan in self.seen or not self.possible(plan):
            return False
        if plan.single is None and self.best is not None and self.least(plan) > self.seen[self.best].score:
            return False
        timeline = simulate(plan, self.picture, self.models)
        prediction = predict(plan, self.picture, self.models, timeline)
        self.seen[plan] = Tried(timeline, prediction)
        if self.best is not None and self.seen[plan].score > _WORTH * self.seen[self.best].score:
            return False
        self.best = plan
        return True

    def possible(self, plan: Plan) -> bool:
        """Whether every stage that runs was measured where it runs."""
        return all(self.models.knows(stage, device)
                   for stage, rows in plan.rows.items() for device, n in zip(plan.devices, rows) if n)  # fmt: skip

    def least(self, plan: Plan) -> float:
        """What a plan takes at least: all that one of several devices does, one thing after another."""
        width, n_ref = self.picture.size.mb_width, self.picture.n_ref
        return max(sum(self.models.seconds(stage, device, rows[k], width) * (n_ref if stage in OF_EACH_REFERENCE else 1)
                       for stage, rows in plan.rows.items()) for k, device in enumerate(plan.devices)
                   if any(rows[k] for rows in plan.rows.values()))  # fmt: skip

    def whole(self, k: int) -> tuple[int, ...]:
        """All rows on device k."""
        return tuple(self.height if j == k else 0 for j in range(len(self.devices)))

    # ---- candidates
    def alone(self) -> dict[str, float]:
        """Everything on one device; seconds of a picture. Besides, what splits on one and what does not on another."""
        for k, j in product(range(len(self.devices)), repeat=2):
            self.try_rows(dict.fromkeys(SPLITS, self.whole(k)) | dict.fromkeys((DECIDING, CODING), self.whole(j)))
        return {plan.single: tried.prediction.seconds for plan, tried in self.seen.items() if plan.single is not None}

    def programs(self) -> None:
        """The solutions of the linear programs, and the same with one cut for all stages; with all devices or some."""
        height, count = self.height, len(self.devices)
        for used in (some for n in range(2, count + 1) for some in combinations(range(count), n)):
            every = tuple(height if k in used else 0 for k in range(count))
            for k in used:  # rows in proportion to speed: what the programs miss, which do not see rows wait for rows
                self.try_rows(dict.fromkeys(SPLITS, self.by_speed(used)) | dict.fromkeys((DECIDING, CODING), self.whole(k)))
            for placement in placements(used):
                solved = self.solved(used, placement)
                rows = {stage: rounded(shares, height) for stage, shares in solved.items()}
                rows |= {s: every if place == REPEATED else self.whole(int(place)) for s, place in placement.items()}
                if solved:
                    self.try_rows(rows)
                    common = rounded(np.mean([solved[s] for s in solved if s in SEARCHING], 0), height)
                    self.try_rows({stage: common if stage in solved else n for stage, n in rows.items()})

    def by_speed(self, used: Sequence[int]) -> tuple[int, ...]:
        """One cut for all stages that split: each device's rows as its speed in all of them together."""
        models, width = self.models, self.picture.size.mb_width
        speeds = [0.0] * len(self.devices)
        for k in used:
            known = [stage for stage in SPLITS if all(models.knows(stage, self.devices[j]) for j in used)]
            seconds = sum(models.seconds(stage, self.devices[k], self.height, width) for stage in known)
            speeds[k] = 1 / seconds if seconds else 0.0
        total = sum(speeds) or 1.0
        return rounded([self.height * speed / total for speed in speeds], self.height)

    def solved(self, used: Sequence[int], placement: Placement) -> dict[str, np.ndarray]:
        """Rows by stage that splits, as fractions; none for devices that are not used."""
        place = {stage: k if k == REPEATED else used.index(int(k)) for stage, k in placement.items()}
        found = Program(self.picture, [self.devices[k] for k in used], self.models, place).solve() or {}
        full = {stage: np.zeros(len(self.devices)) for stage in found}
        for stage, shares in found.items():
            full[stage][list(used)] = shares
        return full

    def improve(self) -> None:
        """Small moves from the best, until none helps or enough were tried."""
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
        """Neighbours of a plan: cuts of groups of stages, by less and less; the places of what does not split."""
        rows = {stage: n for stage, n in plan.rows.items() if stage in SPLITS or stage in (DECIDING, CODING)}
        count, height = len(self.devices), self.height
        every = tuple([height] * count)
        split = [stage for stage in rows if stage in SPLITS and rows[stage] != every]
        step = max(1, height // 8)
        while step:
            for group in (split, SEARCHING, REBUILDING, ("deblock", "ssd_y", "ssd_u", "ssd_v")):
                for cut in range(count - 1):
                    for by in (step, -step):
                        yield rows | {s: shifted(rows[s], cut, by) for s in group if s in split}
            step //= 2
        for k in range(count):
            for stages in ((DECIDING, CODING), (DECIDING,), (CODING,)):
                yield rows | dict.fromkeys(stages, self.whole(k))
        if rows["interpolate"] == every:
            yield rows | {"interpolate": rows["deblock"]}
        else:
            yield rows | {"interpolate": every}
        for stage in split:
            for cut in range(count - 1):
                for by in (1, -1):
                    yield rows | {stage: shifted(rows[stage], cut, by)}


def placements(devices: Iterable[int]) -> list[Placement]:
    """Where stages that do not split may go: both on one device; interpolation split, or done by everyone for himself."""
    found: list[Placement] = []
    for k in devices:
        found += [{DECIDING: k, CODING: k}, {DECIDING: k, CODING: k, "interpolate": REPEATED}]
    return found


def rounded(shares: Iterable[float], height: int) -> tuple[int, ...]:
    """Whole rows whose cuts are the nearest."""
    total, cuts = 0.0, [0]
    for share in shares:
        total += share
        cuts.append(min(height, max(cuts[-1], round(total))))
    cuts[-1] = height
    return tuple(b - a for a, b in zip(cuts, cuts[1:]))


def shifted(rows: tuple[int, ...], cut: int, by: int) -> tuple[int, ...]:
    """The cut behind device `cut` moved down by so many rows, as far as there are any."""
    by = max(-rows[cut], min(by, rows[cut + 1]))
    return (*rows[:cut], rows[cut] + by, rows[cut + 1] - by, *rows[cut + 2 :])


def make_plan(
    devices: Sequence[str], picture: Picture, models: Models, pins: Mapping[str, Any] | None = None, tries: int = TRIES
) -> Planned:
    """The best plan that was found for P pictures like this one. ValueError if no device can do all stages it must."""
    search = _Search(tuple(devices), picture, models, tries)
    alone = search.alone()
    forced = pinned(search.devices, picture.size.mb_height, pins or {}, picture.me)
    if forced is not None:
        plan, timeline = forced[0], simulate(forced[0], picture, models)
        prediction = predict(plan, picture, models, timeline)
    else:
        if len(devices) > 1:
            search.programs()
            search.improve()
        if search.best is None:
            raise ValueError(f"no plan for {', '.join(devices)}: nothing was measured")
        singles = [plan for plan in search.seen if plan.single is not None]
        plan = min([search.best, *singles], key=lambda plan: search.seen[plan].prediction.seconds)
        timeline, prediction = search.seen[plan].timeline, search.seen[plan].prediction
    plan = replace(plan, seconds=timeline.seconds, stage_seconds=timeline.stage_seconds())
    return Planned(plan, timeline, prediction, picture, alone, len(search.seen), forced[1] if forced else "")


def pinned(devices: Sequence[str], height: int, pins: Mapping[str, Any], me: str = "fsbm") -> tuple[Plan, str] | None:
    """The plan that a tuning file's pins ask for (rows of the first GPU, or of the processor), if there are both."""
    gpu = next((k for k, device in enumerate(devices) if is_gpu(device)), None)
    cpu = next((k for k, device in enumerate(devices) if device == HOST), None)
    if gpu is None or cpu is None or not PINNED_ROWS & set(pins):
        return None
    of_gpu = min(height, pins["rows_gpu"]) if "rows_gpu" in pins else height - min(height, pins["rows_cpu"])
    rows = [0] * len(devices)
    rows[gpu], rows[cpu] = of_gpu, height - of_gpu
    place = cpu if pins.get("whole") == "cpu" or (not of_gpu and "whole" not in pins) else gpu
    whole = tuple(height if k == place else 0 for k in range(len(devices)))
    every: dict[str, Sequence[int]] = dict.fromkeys(SPLITS, tuple(rows))
    every |= dict.fromkeys((DECIDING, CODING), whole)
    said = " and ".join(f"{name} = {pins[name]}" for name in ("rows_gpu", "rows_cpu", "whole") if name in pins)
    return complete(devices, height, every, me), f"pinned: {said}"


__all__ = ["Planned", "make_plan", "pinned", "placements", "rounded", "shifted"]
