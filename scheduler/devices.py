"""Which devices there are to run stages on, and an executor for one of them."""

from ..cuda_src.compiler import compiled
from ..cuda_src.device import Device, DeviceMemoryError, DeviceUnavailable, GpuLost, available, count, first_card
from .cuda_executor import CudaExecutor
from .executor import Executor
from .stages import CUDA, files
from .trace import Trace

__all__ = [
    "AnyExecutor", "CudaExecutor", "DeviceMemoryError", "DeviceUnavailable", "GpuLost", "card_name", "count_cards",
    "make_executor", "nvcc_will_run", "why_no_cuda",
]  # fmt: skip

AnyExecutor = Executor | CudaExecutor


def why_no_cuda() -> str | None:
    """None if there is a card to use, else what is missing. Takes no context."""
    return available()


def count_cards() -> int:
    """How many cards the driver reports."""
    return count()


def card_name() -> str:
    """Of the card that is used."""
    try:
        return str(first_card().name())
    except DeviceUnavailable:
        return "a GPU"


def nvcc_will_run() -> bool:
    """Whether kernels of the card are to be compiled before it can be used."""
    try:
        card = first_card()
        capability = tuple(card.compute_capability())
        return any(compiled(name, capability) is None for name in files(CUDA))
    except DeviceUnavailable:
        return False


def make_executor(
    device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None,
    ordinal: int = 0,
) -> AnyExecutor:
    """For "cpu" or "cuda", the card of this number; DeviceUnavailable or DeviceMemoryError if the card cannot be had."""
    if device == "cuda":
        return CudaExecutor(Device(ordinal), threads, n_rows, slices, trace)
    return Executor(threads, n_rows, slices, trace)
