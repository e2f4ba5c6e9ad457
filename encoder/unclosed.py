"""Writers that the program has not closed: they are finished when the process ends."""

import atexit
import sys
import threading
import weakref
from contextlib import suppress
from typing import Protocol


class Unclosed(Protocol):
    """What the end of the process finishes."""

    def finish_unclosed(self) -> None:
        """Finish it, if it is still open; raises nothing."""


_unclosed: "weakref.WeakSet[Unclosed]" = weakref.WeakSet()
_registered: set[bool] = set()  # whether the module of thread pools was loaded, each time when `_finish_all` was registered


def finish_at_exit(writer: Unclosed) -> None:
    """Finish it at the end of the process if it is not closed then."""
    _unclosed.add(writer)
    if not _registered:
        atexit.register(_finish_all)  # for what other threads still write when the main thread ends
    has_pools = "concurrent.futures.thread" in sys.modules
    if has_pools not in _registered:  # after that module, to be called before it, whose pools then take no more work
        _registered.add(has_pools)
        with suppress(AttributeError, RuntimeError):  # private; and refused once the main thread has ended
            threading._register_atexit(_finish_all)  # type: ignore[attr-defined]


def _finish_all() -> None:
    for writer in list(_unclosed):
        writer.finish_unclosed()
