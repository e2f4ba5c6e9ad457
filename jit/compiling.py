"""Compilations of kernels as they happen: lines about them, and a clock that stands still meanwhile.

Without a listener the lines go to the logger "h264lite" with level INFO; to standard error where no logging is set up.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..console import print_line

TEXT = "first run: compiling kernels for this processor, once; up to a minute or two"
LOGGER = "h264lite"
_AGAIN = 5.0  # seconds between two lines about kernels that were not compiled before the first frame


def _log(text: str) -> None:
    import logging  # 10 ms of each start

    logger = logging.getLogger(LOGGER)
    if logger.level == logging.NOTSET and not logger.hasHandlers():
        print_line(f"h264lite [info]: {text}")
    else:
        logger.info(text)


class _Compilations:
    """State. Numba compiles in one thread at a time, which holds its lock."""

    def __init__(self) -> None:
        self.listener: Callable[[str], object] = _log
        self.told = self.expects_none = False
        self.said_at = 0.0  # of time.monotonic(), of the last line about an unexpected kernel
        self.count = self.depth = 0  # compilations so far, and at this time: a kernel may compile another one
        self.begin = self.seconds = 0.0  # of the current compilation (0: none), of time.perf_counter(); of earlier ones


_now = _Compilations()


def begins(name: str = "") -> None:
    """A compilation begins, of the kernel `name`."""
    if not _now.depth:
        _say_begin(name)
    _enter()


def _say_begin(name: str) -> None:
    if _now.expects_none:
        if not _now.said_at or time.monotonic() - _now.said_at > _AGAIN:
            _now.said_at = time.monotonic()
            _now.listener(f"compiling one more kernel, once: {name}")
    elif not _now.told:
        _now.told = True
        _now.listener(TEXT)


def _enter() -> None:
    _now.depth += 1
    if _now.depth == 1:
        _now.begin = time.perf_counter()


def ends(count: int = 1) -> None:
    """A compilation has ended, or failed. count: of kernels."""
    _now.depth -= 1
    _now.count += count
    if not _now.depth:
        _now.begin, _now.seconds = 0.0, _now.seconds + time.perf_counter() - _now.begin


@contextmanager
def by_other_processes() -> Iterator[Callable[[str], object]]:
    """Around a wait for processes that compile for this one; gives the function for lines about it."""
    _enter()
    try:
        yield lambda text: _now.listener(text)
    finally:
        ends(0)


def have_compiled(count: int) -> None:
    """Other processes have compiled so many kernels for this one. Those that it still compiles are told one by one."""
    _now.count += count
    _now.expects_none = True


def count() -> int:
    """The number of kernels that were compiled, by this process and for it."""
    return _now.count


def clock() -> float:
    """Seconds of time.perf_counter() without those in which kernels were compiled: times of work are its differences."""
    begin, seconds, now = _now.begin, _now.seconds, time.perf_counter()
    return now - seconds - (max(0.0, now - begin) if begin else 0.0)


@contextmanager
def messages_to(listener: Callable[[str], object]) -> Iterator[None]:
    """Send the line about the first compilation within the block to `listener`, without it to standard error."""
    before = _now.listener, _now.told
    _now.listener, _now.told = listener, False
    try:
        yield
    finally:
        _now.listener, _now.told = before[0], before[1] or _now.told
