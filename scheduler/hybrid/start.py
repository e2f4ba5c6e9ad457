"""Chooses the first plan of device "hybrid", and makes the executor for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..gpu_memory import make_gpu, serial
from ..threads.watchdog import Watchdog, limit_from_environment
from ..trace import Trace
from .executor import HybridExecutor
from .plan import HOST, Plan, is_gpu
from .planner import PINNED_ROWS, TRIES, make_plan
from .probing import Probing
from .route import FrameTraits
from .simulate import meeting_of
from .tuning.models import Models, filled, guess
from .workers import CpuWorker, GpuWorker

TOO_SLOW = 0.3  # share of the best device's frame rate below which a device without rows in the plan is not kept ready
FEWER_TRIES = 16  # plans that are simulated when frames wait for a plan


@dataclass(frozen=True)
class Hybrid:
    """Input of the plan of device "hybrid". frame_traits: a typical frame; split: see CodingSettings."""

    frame_traits: FrameTraits
    split: tuple[int, int] | None = None
    warn: Callable[[str], None] | None = None
    models: Models | None = None  # of this machine; None: a guess that the first frames correct
    pins: Mapping[str, Any] = field(default_factory=dict)  # of its tuning file

    def plan(self, devices: tuple[str, ...], models: Models, tries: int = TRIES) -> tuple[Plan, bool]:
        """(the planner's or the forced plan, whether a later plan may use a second device)."""
        if self.split is not None:
            frame_traits = self.frame_traits
            height, has_b_frames = frame_traits.size.mb_height, frame_traits.size.has_b_frames
            return Plan.split(
                devices, height, *self.split, frame_traits.me, frame_traits.subme, frame_traits.cabac, has_b_frames
            ), False
        planned = make_plan(devices, self.frame_traits, models, self.pins, tries)
        best = min(planned.single_device_seconds.values(), default=0.0)
        fast_enough = [device for device, seconds in planned.single_device_seconds.items() if TOO_SLOW * seconds < best]
        return planned.plan, not planned.pinned and len(fast_enough) > 1

    def meeting(self, plan: Plan, models: Models, seconds: float) -> float:
        """What meetings cost if such frames take `seconds`, see Adaptation."""
        return meeting_of(plan, self.frame_traits, models, seconds)


def start_hybrid(
    hybrid: Hybrid, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None, ordinal: int,
    choices: Mapping[str, int],
) -> HybridExecutor | str:  # fmt: skip
    """The executor; "cpu" or "cuda" if the plan leaves all to one device, and is pinned or the other device is too slow."""
    names = (HOST, f"cuda:{ordinal}")
    known = hybrid.models is not None and set(names) <= set(hybrid.models.devices())
    models = (filled(hybrid.models) if known and hybrid.models else guess(names, threads)).with_threads(threads)
    plan, may_change = hybrid.plan(names, models)
    if plan.single is None or hybrid.split is not None or may_change:
        return _hybrid(hybrid, plan, models, threads, n_rows, slices, trace, ordinal, choices)
    return "cuda" if is_gpu(plan.single) else HOST


def _hybrid(
    hybrid: Hybrid, plan: Plan, models: Models, threads: int, n_rows: int, slices: list[tuple[int, int]],
    trace: Trace | None, ordinal: int, choices: Mapping[str, int],
) -> HybridExecutor:  # fmt: skip
    limit = limit_from_environment()
    gpu = make_gpu(ordinal, choices)
    workers: list[CpuWorker | GpuWorker] = [CpuWorker(HOST, threads, n_rows, slices, trace)]
    try:
        try:
            workers.append(GpuWorker(f"cuda:{ordinal}", gpu, n_rows, slices, trace, hybrid.frame_traits.size.has_b_frames))
        except BaseException:
            gpu.close()
            raise
        replan = None if hybrid.split else lambda models: hybrid.plan(plan.devices, models, FEWER_TRIES)[0]
        models.mark_planned()
        probing = None if PINNED_ROWS & set(hybrid.pins) else Probing()
        watchdog = Watchdog(limit, hybrid.warn)
        learn = None if hybrid.split else hybrid.meeting
        in_order = serial(choices)
        return HybridExecutor(plan, workers, watchdog, models, replan, serial=in_order, probing=probing, learn_meeting=learn)
    except BaseException:
        for worker in workers:
            worker.close()
        raise
