"""Compilations of kernels as they happen: a line about the first, and a clock that stands still meanwhile."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..console import print_line

TEXT = "first run: compiling kernels for this processor, once; up to a minute or two"


def _print(text: str) -> None:
    print_line(f"h264lite [info]: {text}")


class _Compilations:
    """State. Numba compiles in one thread at a time, which holds its lock."""

    def __init__(self) -> None:
        self.listener: Callable[[str], object] = _print
        self.told = False
        self.count = self.depth = 0  # compilations so far, and at this time: a kernel may compile another one
        self.begin = self.seconds = 0.0  # of the current compilation (0: none), of time.perf_counter(); of earlier ones


_now = _Compilations()


def begins() -> None:
    """A compilation begins."""
    _now.depth += 1
    if _now.depth == 1:
        if not _now.told:
            _now.told = True
            _now.listener(TEXT)
        _now.begin = time.perf_counter()


def ends() -> None:
    """A compilation has ended, or failed."""
    _now.depth -= 1
    _now.count += 1
    if not _now.depth:
        _now.begin, _now.seconds = 0.0, _now.seconds + time.perf_counter() - _now.begin


def count() -> int:
    """The number of kernels that this process has compiled."""
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
