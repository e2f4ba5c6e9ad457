"""The progress of a video that is written from Python: tqdm if it is installed, else a line on standard error."""

import sys
import time
from typing import Any

INTERVAL = 0.2  # seconds between lines


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

    def show(self, frames: int) -> None:
        """`frames` were given to the encoder so far."""
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
