"""Threads that the system may refuse to start: by a limit of processes or of memory, as containers have them."""

import mmap
from collections.abc import Iterable
from threading import Thread

ROOM = 256 << 20  # bytes of addresses: a thread takes 72 MiB, hangs if it cannot get them, and pictures and kernels follow


def start_threads(threads: Iterable[Thread], running: list[Thread]) -> bool:
    """Start threads in order, as many as the system lets, and add them to those that run; whether all of them do."""
    try:
        for thread in threads:
            if hasattr(mmap, "MAP_PRIVATE"):  # else Windows
                mmap.mmap(-1, ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
            thread.start()
            running.append(thread)
    except (RuntimeError, MemoryError, OSError):
        return False
    return True
