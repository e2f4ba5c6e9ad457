"""Threads where limits of a process may prevent them, as in containers; properties and pauses of the garbage collector that
suit several threads.
"""

import gc
import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, Generic, TypeVar, overload

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


Value = TypeVar("Value")


class cached_property(Generic[Value]):
    """As functools.cached_property, whose lock (Python 3.11) all objects share: threads that come at once compute twice."""

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._function(instance))
