"""Which devices there are to run stages on, and an executor for one of them."""

from collections.abc import Callable
from dataclasses import dataclass

from ..cuda_src import facts as card_facts
from ..cuda_src.compiler import compiled
from ..cuda_src.device import Device, DeviceMemoryError, DeviceUnavailable, GpuLost, available, count, first_card
from .cuda_executor import CudaExecutor
from .executor import Executor
from .hybrid_executor import HybridExecutor
from .plan import HOST, Plan, is_card
from .route import Picture
from .sides import CardSide, CpuSide
from .stages import CUDA, files
from .trace import Trace
from .watchdog import Stuck, Watchdog, limit_from_environment

__all__ = [
    "CudaExecutor", "DeviceMemoryError", "DeviceUnavailable", "GpuLost", "Hybrid", "HybridExecutor", "OneDevice", "Stuck",
    "card_facts", "card_name", "count_cards", "make_executor", "nvcc_will_run", "why_no_cuda",
]  # fmt: skip

OneDevice = Executor | CudaExecutor


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


@dataclass(frozen=True)
class Hybrid:
    """What device "hybrid" is planned from. picture: a typical one; split: see Config."""

    picture: Picture
    split: tuple[int, int] | None = None
    warn: Callable[[str], None] | None = None


def make_executor(
    device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None,
    ordinal: int = 0, hybrid: Hybrid | None = None,
) -> OneDevice | HybridExecutor:  # fmt: skip
    """For "cpu", "cuda" or "hybrid", with card `ordinal`; DeviceUnavailable or DeviceMemoryError if it cannot be had.

    A plan that leaves everything to one device is that device's executor.
    """
    if device == "hybrid" and hybrid is not None:
        names = (HOST, f"cuda:{ordinal}")
        plan = Plan.split(names, n_rows, *(hybrid.split or (0, 1)), hybrid.picture.me)
        if plan.single is None or hybrid.split is not None:
            return _hybrid(hybrid, plan, threads, n_rows, slices, trace, ordinal)
        device = "cuda" if is_card(plan.single) else HOST
    if device == "cuda":
        return CudaExecutor(Device(ordinal), threads, n_rows, slices, trace)
    return Executor(threads, n_rows, slices, trace)


def _hybrid(
    hybrid: Hybrid, plan: Plan, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None, ordinal: int
) -> HybridExecutor:
    limit = limit_from_environment()
    card = Device(ordinal)
    sides: list[CpuSide | CardSide] = [CpuSide(HOST, threads, n_rows, slices, trace)]
    try:
        sides.append(CardSide(f"cuda:{ordinal}", card, n_rows, slices, trace))
        return HybridExecutor(plan, sides, Watchdog(limit, hybrid.warn))
    except BaseException:
        for side in sides:
            side.close()
        raise
