"""Reports work that exceeds a time limit: stage, device and frame."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...process import start_threads

VARIABLE, DEFAULT = "H264LITE_WATCHDOG", 120.0  # seconds; the first compilation of a kernel takes tens of seconds
SPINNING = 0.002  # seconds of a wait without naps, which take 50 us more than they should
NAPS = 0.00002, 0.0005  # seconds between two polls in `wait`: shortest, longest
MOST_BETWEEN = 1.0  # seconds that count between two looks: what is more the process was stopped, and its devices had no work


class Stuck(Exception):
    """A device exceeded the time limit; the message names its work."""


class LimitError(ValueError):
    """The environment variable is not a valid number of seconds."""


def limit_from_environment() -> float:
    """The limit in seconds; 0: no limit. LimitError if the variable is not a valid number."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else DEFAULT
    except ValueError:
        limit = -1.0
    if not 0 <= limit < 1e9:
        raise LimitError(f"{VARIABLE}={text}: must be seconds, 0 or more; 0: no limit")
    return limit


class Watchdog:
    """Watches work (`on`) and waits (`wait`) of threads. warn: takes the message about hanging work, which is not stopped."""

    def __init__(self, limit: float, warn: Callable[[str], None] | None = None) -> None:
        self.limit, self.warn = limit, warn
        self._at_work: dict[int, tuple[float, str]] = {}  # by thread: since when, what; for `_watch` no two are equal
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def message(self, what: str) -> str:
        """The message."""
        return f"{what}: not done after {self.limit:g} s ({VARIABLE})"

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Around work of this thread: `warn` is called if it exceeds the limit."""
        if self.limit and self._thread is None and self.warn is not None:
            self._thread = threading.Thread(target=self._watch, name="h264lite watchdog", daemon=True)
            start_threads([self._thread], [])  # if it does not start, work continues unwatched
        me = threading.get_ident()
        self._at_work[me] = time.monotonic(), what
        try:
            yield
        finally:
            del self._at_work[me]

    def wait(self, is_over: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait until `is_over()`. Raises Stuck with the text of `what` if the limit is exceeded."""
        last, spent, nap = time.monotonic(), 0.0, 0.0
        while not is_over():
            now = time.monotonic()
            spent, last = spent + min(now - last, MOST_BETWEEN), now
            if self.limit and spent > self.limit:
                raise Stuck(self.message(what()))
            if spent > SPINNING:
                nap = min(NAPS[1], max(NAPS[0], spent / 20))
            time.sleep(nap)

    def _watch(self) -> None:
        between = min(5.0, self.limit / 4)
        seen: dict[tuple[float, str], float] = {}  # seconds since the first look at each
        while not self._closing.wait(between):
            before = seen
            seen = {entry: before.get(entry, -between) + between for entry in list(self._at_work.values())}
            for entry, spent in seen.items():
                if spent >= self.limit > before.get(entry, 0.0) and self.warn is not None:
                    self.warn(self.message(entry[1]))

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
