"""The progress of a video that is written from Python: a bar by tqdm, a line on standard error, or a caller's function."""

import sys
import time
from collections.abc import Callable
from typing import Any

from .errors import OptionError
from .settings.option_types import show

INTERVAL = 0.2  # seconds between lines
# (frames written, frames in all or None, bytes of their packets); what it raises ends the video, as an exception inside does
Reported = Callable[[int, int | None, int], object]


def progress_of(argument: "bool | Reported") -> "Progress | ReportedProgress | None":
    """Of the argument `progress`; OptionError."""
    if callable(argument):
        return ReportedProgress(argument)
    if not isinstance(argument, bool):
        raise OptionError(f"{show(argument)}: neither True or False, nor a function", "progress")
    return Progress() if argument else None


class ReportedProgress:
    """Calls a function after each call of the encoder that has finished frames, in the thread of that call."""

    def __init__(self, report: Reported) -> None:
        self.total: int | None = None
        self._report, self._said = report, 0

    def show(self, frames: int, written: int, size: int) -> None:
        """See Progress."""
        if written > self._said:
            self._said = written
            self._report(written, self.total, size)

    def close(self) -> None:
        """The last packets were reported as they were written."""


class Progress:
    """Frames done; total: None if it is unknown."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._bar: Any = None
        self._shown, self._begin, self._last = 0, time.monotonic(), 0.0
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm: Any = tqdm

    def show(self, frames: int, written: int, size: int) -> None:
        """`frames` were given to the encoder so far, and `written` to the target, with `size` bytes."""
        if self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=self.total, unit="frames")
            self._bar.update(frames - self._shown)
            self._shown = frames
            return
        self._shown, now = frames, time.monotonic()
        if now - self._last >= INTERVAL:
            self._last = now
            self._line("\r")

    def close(self) -> None:
        """Show the last state."""
        if self._bar is not None:
            self._bar.close()
        elif self._tqdm is None and self._shown:
            self._line("\r", "\n")

    def _line(self, before: str, after: str = "") -> None:
        if sys.stderr is None:
            return
        spent = max(time.monotonic() - self._begin, 1e-9)
        of = f"/{self.total}" if self.total else ""
        print(f"{before}{self._shown}{of} frames, {self._shown / spent:.1f} fps", end=after, file=sys.stderr, flush=True)
