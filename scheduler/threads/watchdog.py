"""Says what hangs: which stage, on which device, for which picture, once a limit is over."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...start_threads import start_threads

VARIABLE, DEFAULT = "H264LITE_WATCHDOG", 120.0  # seconds; compiling a kernel for the first time takes tens of them
NAPS = 0.00002, 0.0005  # seconds between two looks at something that is waited for: at first, at last


class Stuck(Exception):
    """A device did not come back in time; what was under way there is in the message."""


class LimitError(ValueError):
    """The variable says no number of seconds."""


def limit_from_environment() -> float:
    """Seconds; 0: no limit. LimitError if the variable is no such number."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else DEFAULT
    except ValueError:
        limit = -1.0
    if not 0 <= limit < 1e9:
        raise LimitError(f"{VARIABLE}={text}: seconds are meant, 0 or more; 0 is no limit")
    return limit


class Watchdog:
    """Looks after what threads do (`on`) and wait for (`wait`). warn: takes the sentence about work that nobody can stop."""

    def __init__(self, limit: float, warn: Callable[[str], None] | None = None) -> None:
        self.limit, self.warn = limit, warn
        self._at_work: dict[int, tuple[float, str]] = {}  # by thread: since when, what
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def words(self, what: str) -> str:
        """The sentence."""
        return f"{what}: not done after {self.limit:g} s ({VARIABLE})"

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Around work of this thread."""
        if self.limit and self._thread is None and self.warn is not None:
            self._thread = threading.Thread(target=self._look, name="h264lite watchdog", daemon=True)
            start_threads([self._thread], [])  # without it the work goes on unwatched
        me = threading.get_ident()
        self._at_work[me] = time.monotonic(), what
        try:
            yield
        finally:
            del self._at_work[me]

    def wait(self, over: Callable[[], bool], what: Callable[[], str]) -> None:
        """Until `over`; Stuck with what `what` says if the limit is over first."""
        begin, nap = time.monotonic(), 0.0
        while not over():
            spent = time.monotonic() - begin
            if self.limit and spent > self.limit:
                raise Stuck(self.words(what()))
            if spent > 0.0001:
                nap = min(NAPS[1], max(NAPS[0], spent / 20))
            time.sleep(nap)

    def _look(self) -> None:
        said: set[tuple[float, str]] = set()
        while not self._closing.wait(min(5.0, self.limit / 4)):
            now = time.monotonic()
            for entry in list(self._at_work.values()):
                if now - entry[0] > self.limit and entry not in said and self.warn is not None:
                    said.add(entry)
                    self.warn(self.words(entry[1]))

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
