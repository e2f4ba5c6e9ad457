"""Encoders of several threads take turns on the host: one thread at a time works for a GPU, the others sleep.

Else they contend for the interpreter's lock: a frame makes dozens of driver calls, each gives that lock up for microseconds,
and a thread that gets it then keeps it for up to 5 ms. A turn ends with the frame, or where its thread waits for a GPU or a
file. No result depends on turns: a thread that has waited for long goes on.
"""

import threading
from collections import deque
from threading import get_ident

LONGEST = 0.1  # seconds that a thread waits
_guard = threading.Lock()
_owner = 0  # the thread whose turn it is; 0: none
_waiting: deque[tuple[int, threading.Lock]] = deque()  # (thread, held until its turn), first come, first served


class Turn:
    """`with turn`: it is this thread's turn."""

    def __enter__(self) -> None:
        take()

    def __exit__(self, *_: object) -> None:
        give()


class Pause:
    """`with pause`, in a turn: other threads have theirs."""

    def __enter__(self) -> None:
        give()

    def __exit__(self, *_: object) -> None:
        take()


def is_mine() -> bool:
    """Whether it is this thread's turn."""
    return _owner == get_ident()


def take() -> None:
    """Wait for this thread's turn."""
    global _owner
    me = get_ident()
    with _guard:
        if not _owner or _owner == me:
            _owner = me
            return
        mine = threading.Lock()
        mine.acquire()
        _waiting.append((me, mine))
    try:
        mine.acquire(timeout=LONGEST)
    finally:  # also after an interrupt, or where another thread was stopped in its turn
        with _guard:
            if (me, mine) in _waiting:
                _waiting.remove((me, mine))
                _owner = me


def give() -> None:
    """This thread's turn ends: it is that of the thread that has waited for longest."""
    global _owner
    with _guard:
        if _owner == get_ident():
            _owner = 0
            if _waiting:
                _owner, lock = _waiting.popleft()
                lock.release()


turn, pause = Turn(), Pause()
