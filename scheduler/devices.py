"""Which devices there are to run stages on, and an executor for one of them."""

from ..cuda_src.device import Device, DeviceMemoryError, DeviceUnavailable, GpuLost, available
from .cuda_executor import CudaExecutor
from .executor import Executor
from .trace import Trace

__all__ = [
    "AnyExecutor", "CudaExecutor", "DeviceMemoryError", "DeviceUnavailable", "GpuLost", "make_executor", "why_no_cuda",
]  # fmt: skip

AnyExecutor = Executor | CudaExecutor


def why_no_cuda() -> str | None:
    """None if there is a card to use, else what is missing. Takes no context."""
    return available()


def make_executor(
    device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None
) -> AnyExecutor:
    """For "cpu" or "cuda"; DeviceUnavailable or DeviceMemoryError if the card cannot be had."""
    if device == "cuda":
        return CudaExecutor(Device(), threads, n_rows, slices, trace)
    return Executor(threads, n_rows, slices, trace)
