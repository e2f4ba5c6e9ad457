"""Threads where limits of a process may prevent them, as in containers; pauses of the garbage collector."""

import gc
import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread

ROOM = 256 << 20  # bytes of address space: a thread takes 72 MiB and hangs without them; frames and kernels need more


def start_threads(threads: Iterable[Thread], running: list[Thread]) -> bool:
    """Start threads in order until one fails, and append those that run to `running`; whether all of them run."""
    try:
        for thread in threads:
            if hasattr(mmap, "MAP_PRIVATE"):  # absent on Windows
                mmap.mmap(-1, ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
            thread.start()
            running.append(thread)
    except (RuntimeError, MemoryError, OSError):
        return False
    return True


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the garbage collector, as for imports: they leave no garbage, and it would scan all of Numba repeatedly."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
