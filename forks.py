"""Forks: a child has one thread, and every lock that another thread holds at the fork stays locked in it for ever.

So the locks of the process are taken before a fork and released after it, here and in the child: no thread is then within
the code that they guard, and what they guard is whole. A fork waits for a kernel that is being loaded or compiled. Objects
with a lock of their own are told in the child. Registered by the first import of the package, which an interrupt should
not meet: only modules that Python has loaded by then are imported.
"""

import os
import sys
from _thread import RLock, get_ident
from operator import attrgetter

TYPE_CHECKING = False  # true for a type checker, as typing's
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Forked(Protocol):
        """An object with a lock of its own."""

        def forked(self) -> None:
            """Called in the child, before all else there: a thread of the parent may have the lock."""


# (module, lock), in the order in which threads take them: a compilation makes and loads kernels, all of them call LLVM.
# By name: what is not imported has no lock, and kernels do not depend on this file
LOCKS = (
    ("numba.core.compiler_lock", "global_compiler_lock"),
    (f"{__package__}.jit.numba_free", "_lock"),
    (f"{__package__}.jit.kernel", "_making"),
    (f"{__package__}.cuda_src.runtime.idle", "_lock"),
    ("llvmlite.binding.ffi", "lib._lock"),
)
_PACKAGES = (__package__, "numba", "llvmlite", "numpy", "scipy")  # whose imports a fork waits for
_forking = RLock()  # one thread at a time forks
_taken: "list[Any]" = []

_told: "Any" = None  # a WeakSet of Forked


def tell_in_child(thing: "Forked") -> None:
    """Call thing.forked() in each fork of this process, as long as the object lives."""
    global _told
    if _told is None:
        from weakref import WeakSet  # the package is imported in a millisecond

        _told = WeakSet()
    _told.add(thing)


def _locks() -> "list[Any]":
    """The locks of those modules that are imported."""
    locks = []
    for module, name in LOCKS:
        try:
            locks.append(attrgetter(name)(sys.modules.get(module)))
        except AttributeError:  # not imported so far, or another version
            continue
    return locks


def _imports() -> "list[Any]":
    """Locks of modules that other threads import now. CPython leaves them to the child as they are."""
    modules = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    locks = [reference() for name, reference in list(modules.items()) if str(name).partition(".")[0] in _PACKAGES]
    return [lock for lock in locks if getattr(lock, "owner", None) not in (None, get_ident())]


def _before() -> None:
    _forking.acquire()
    while True:
        for lock in _imports():
            try:
                lock.acquire()
                lock.release()
            except RuntimeError:  # it would wait for an import of this thread
                continue
        locks = _locks()
        for lock in locks:
            lock.__enter__()
            _taken.append(lock)
        if locks == _locks() and not _imports():
            return
        _release()


def _release() -> None:
    while _taken:
        _taken.pop().__exit__(None, None, None)


def _after() -> None:
    _release()
    _forking.release()


def _in_child() -> None:
    _after()
    for thing in _told or ():
        thing.forked()


if hasattr(os, "register_at_fork"):  # absent on Windows
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
