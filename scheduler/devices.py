"""The devices of this machine, and the executor for a device."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from ..cuda_src.runtime.compiler import is_kept, why_no_kernels
from ..cuda_src.runtime.device import (
    Device,
    DeviceMemoryError,
    DeviceUnavailable,
    GpuLost,
    allocated_bytes,
    available,
    count,
)
from ..cuda_src.runtime.driver import first_gpu, is_real
from .executor import Executor
from .stages import CUDA, files
from .trace import Trace

if TYPE_CHECKING:
    from .cuda_executor import CudaExecutor
    from .hybrid.executor import HybridExecutor
    from .hybrid.start import Hybrid

__all__ = [
    "Device",
    "DeviceMemoryError",
    "DeviceUnavailable",
    "GpuLost",
    "OneDevice",
    "allocated_bytes",
    "count_gpus",
    "cuda_kernels_will_compile",
    "gpu_name",
    "make_executor",
    "why_no_cuda",
]

OneDevice: TypeAlias = "Executor | CudaExecutor"


def why_no_cuda() -> str | None:
    """None if a GPU can be used, else what is missing. Creates no context, and compiles nothing."""
    missing = available()
    if missing is None and is_real():
        missing = why_no_kernels(files(CUDA), first_gpu().capability)
    return missing


def count_gpus() -> int:
    """Number of GPUs that the driver reports."""
    return count()


def gpu_name() -> str:
    """Name of the GPU that is used."""
    try:
        return first_gpu().name
    except DeviceUnavailable:
        return "a GPU"


def cuda_kernels_will_compile(has_b_frames: bool = False) -> bool:
    """Whether GPU kernels must be compiled before the GPU can be used; has_b_frames: see GpuMemory."""
    try:
        capability = first_gpu().capability
        return not all(is_kept(name, capability) for name in files(CUDA, has_b_frames))
    except DeviceUnavailable:
        return False


def make_executor(
    device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None,
    ordinal: int = 0, hybrid: "Hybrid | None" = None, choices: Mapping[str, int] | None = None, has_b_frames: bool = False,
    team: int | None = None,
) -> "OneDevice | HybridExecutor":  # fmt: skip
    """The executor for "cpu", "cuda" or "hybrid", with GPU `ordinal`. Raises DeviceUnavailable or DeviceMemoryError.

    If the plan leaves everything to one device, and is pinned or the other devices are too slow, the result is the executor
    of that device. choices: see CHOSEN in tuning/tuning_file.py; `streams` of a GPU that works alone (1, else four) and
    `tile_rows`; `parallel_b_frames`: see CudaExecutor. has_b_frames: see GpuMemory. team: see Executor.
    """
    choices = choices or {}
    if device == "hybrid" and hybrid is not None:
        from .hybrid.start import start_hybrid  # the planner

        hybrid_executor = start_hybrid(hybrid, threads, n_rows, slices, trace, ordinal, choices)
        if not isinstance(hybrid_executor, str):
            return hybrid_executor
        device = hybrid_executor
    if device == "cuda":
        from .cuda_executor import CudaExecutor  # most machines have no GPU
        from .gpu_memory import make_gpu, serial

        gpu = make_gpu(ordinal, choices)
        try:
            return CudaExecutor(gpu, n_rows, slices, trace, serial(choices), has_b_frames, choices.get("parallel_b_frames"))
        except BaseException:
            gpu.close()
            raise
    return Executor(threads, n_rows, slices, trace, has_b_frames=has_b_frames, team=team)
