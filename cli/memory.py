"""Memory of an encode, for the summary: what the process had at most, what it has allocated on GPUs."""

import sys
from typing import Any

_MIB = 1 << 20


def peak_bytes() -> int | None:
    """Most bytes of memory that the process had at once (ru_maxrss); None where the system does not count them."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory(on_gpu: bool) -> dict[str, Any]:
    """Of this process, not of its workers, in MiB: the most of the host; with a GPU of its own what is allocated there, and
    page-locked memory of the host.
    """
    peak = peak_bytes()
    facts: dict[str, Any] = {} if peak is None else {"peak_memory_mib": -(-peak // _MIB)}
    if not on_gpu:
        return facts
    from ..cuda_src.runtime.device import allocated_bytes

    there, page_locked = allocated_bytes()
    if there:
        facts |= {"gpu_memory_mib": -(-there // _MIB), "page_locked_mib": -(-page_locked // _MIB)}
    return facts


def lines(facts: dict[str, Any]) -> list[str]:
    """The line of --verbose about `memory`; none where nothing is known."""
    names = {"peak_memory_mib": "the process at most", "gpu_memory_mib": "allocated on GPUs",
             "page_locked_mib": "page-locked"}  # fmt: skip
    phrases = [f"{facts[key]} MiB {name}" for key, name in names.items() if key in facts]
    return ["memory: " + ", ".join(phrases)] if phrases else []
