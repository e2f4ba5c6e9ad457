"""The devices of this machine, and the executor for a device."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cuda_src.runtime import facts as gpu_facts
from ..cuda_src.runtime.compiler import compiled, why_no_kernels
from ..cuda_src.runtime.device import Device, DeviceMemoryError, DeviceUnavailable, GpuLost, available, count, first_gpu
from ..cuda_src.runtime.driver import is_real
from ..cuda_src.runtime.idle import take
from .cuda_executor import CudaExecutor
from .executor import Executor
from .hybrid_executor import HybridExecutor
from .planning.models import Models, guess
from .planning.plan import HOST, Plan, is_gpu
from .planning.planner import PINNED_ROWS, TRIES, make_plan
from .planning.probing import Probing
from .planning.route import FrameKind
from .stages import CUDA, files
from .threads.watchdog import Watchdog, limit_from_environment
from .trace import Trace
from .workers import CpuWorker, GpuWorker

__all__ = [
    "CudaExecutor",
    "Device",
    "DeviceMemoryError",
    "DeviceUnavailable",
    "GpuLost",
    "Hybrid",
    "HybridExecutor",
    "OneDevice",
    "count_gpus",
    "cuda_kernels_will_compile",
    "gpu_facts",
    "gpu_name",
    "make_executor",
    "why_no_cuda",
]  # fmt: skip

OneDevice = Executor | CudaExecutor
TOO_SLOW = 0.3  # share of the best device's frame rate below which a device without rows in the plan is not kept ready
FEWER_TRIES = 16  # plans that are simulated when frames wait for a plan


def why_no_cuda() -> str | None:
    """None if a GPU can be used, else what is missing. Creates no context, and compiles nothing."""
    missing = available()
    if missing is None and is_real():
        missing = why_no_kernels(files(CUDA), tuple(first_gpu().compute_capability()))
    return missing


def count_gpus() -> int:
    """Number of GPUs that the driver reports."""
    return count()


def gpu_name() -> str:
    """Name of the GPU that is used."""
    try:
        return str(first_gpu().name())
    except DeviceUnavailable:
        return "a GPU"


def cuda_kernels_will_compile() -> bool:
    """Whether GPU kernels must be compiled before the GPU can be used."""
    try:
        gpu = first_gpu()
        capability = tuple(gpu.compute_capability())
        return any(compiled(name, capability) is None for name in files(CUDA))
    except DeviceUnavailable:
        return False


@dataclass(frozen=True)
class Hybrid:
    """Input of the plan of device "hybrid". frame_kind: a typical frame; split: see Config."""

    frame_kind: FrameKind
    split: tuple[int, int] | None = None
    warn: Callable[[str], None] | None = None
    models: Models | None = None  # of this machine; None: a guess that the first frames correct
    pins: Mapping[str, Any] = field(default_factory=dict)  # of its tuning file

    def plan(self, devices: tuple[str, ...], models: Models, tries: int = TRIES) -> tuple[Plan, bool]:
        """(the planner's or the forced plan, whether a later plan may use a second device)."""
        if self.split is not None:
            return Plan.split(devices, self.frame_kind.size.mb_height, *self.split, self.frame_kind.me), False
        made = make_plan(devices, self.frame_kind, models, self.pins, tries)
        best = min(made.single_device_seconds.values(), default=0.0)
        fast_enough = [device for device, seconds in made.single_device_seconds.items() if TOO_SLOW * seconds < best]
        return made.plan, not made.pinned and len(fast_enough) > 1


def make_executor(
    device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None,
    ordinal: int = 0, hybrid: Hybrid | None = None, choices: Mapping[str, int] | None = None,
) -> OneDevice | HybridExecutor:  # fmt: skip
    """The executor for "cpu", "cuda" or "hybrid", with GPU `ordinal`. Raises DeviceUnavailable or DeviceMemoryError.

    If the plan leaves everything to one device, and is pinned or the other devices are too slow, the result is the executor
    of that device. choices: see CHOSEN in planning/tuning_file.py; `streams` of a GPU that works alone (1, else four) and
    `tile_rows`.
    """
    choices = choices or {}
    if device == "hybrid" and hybrid is not None:
        names = (HOST, f"cuda:{ordinal}")
        known = hybrid.models is not None and set(names) <= set(hybrid.models.devices())
        models = (hybrid.models if known and hybrid.models else guess(names, threads)).with_threads(threads)
        try:
            plan, may_change = hybrid.plan(names, models)
        except ValueError:  # a stage was not measured; step_search never is
            models = guess(names, threads).with_threads(threads)
            plan, may_change = hybrid.plan(names, models)
        if plan.single is None or hybrid.split is not None or may_change:
            return _hybrid(hybrid, plan, models, threads, n_rows, slices, trace, ordinal, choices)
        device = "cuda" if is_gpu(plan.single) else HOST
    if device == "cuda":
        return CudaExecutor(_gpu(ordinal, choices), n_rows, slices, trace, _serial(choices))
    return Executor(threads, n_rows, slices, trace)


def _gpu(ordinal: int, choices: Mapping[str, int]) -> Device:
    gpu = take(ordinal)
    gpu.tile_rows = choices.get("tile_rows", Device.tile_rows)
    return gpu


def _serial(choices: Mapping[str, int]) -> bool:
    return choices.get("streams") == 1


def _hybrid(
    hybrid: Hybrid, plan: Plan, models: Models, threads: int, n_rows: int, slices: list[tuple[int, int]],
    trace: Trace | None, ordinal: int, choices: Mapping[str, int],
) -> HybridExecutor:  # fmt: skip
    limit = limit_from_environment()
    gpu = _gpu(ordinal, choices)
    workers: list[CpuWorker | GpuWorker] = [CpuWorker(HOST, threads, n_rows, slices, trace)]
    try:
        workers.append(GpuWorker(f"cuda:{ordinal}", gpu, n_rows, slices, trace))
        replan = None if hybrid.split else lambda models: hybrid.plan(plan.devices, models, FEWER_TRIES)[0]
        models.settle()
        probing = None if PINNED_ROWS & set(hybrid.pins) else Probing()
        watchdog, serial = Watchdog(limit, hybrid.warn), _serial(choices)
        return HybridExecutor(plan, workers, watchdog, models, replan, serial=serial, probing=probing)
    except BaseException:
        for worker in workers:
            worker.close()
        raise
