"""The progress line in x264's wording: rewritten in place on a terminal, lines every few seconds elsewhere, or JSON."""

import json
import shutil
import sys
import time
from fractions import Fraction
from typing import Any, TextIO

from ..console import write
from ..jit.compiling import clock

_LIVE_INTERVAL, _PLAIN_INTERVAL = 0.25, 5.0  # seconds
_BAR = 20  # characters


class Progress:
    """Reports the progress of an encode. `mode`: live, plain, json or none; `auto` is live on a terminal, else plain."""

    def __init__(self, mode: str, total: int | None, fps: Fraction, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._mode = ("live" if self._stream.isatty() else "plain") if mode == "auto" else mode
        self._total, self._fps = total, fps
        self.restart()
        self._open_line = False

    def restart(self) -> None:
        """Start the clock now."""
        self._last, self._begin = time.monotonic(), clock()

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those in which kernels were compiled."""
        return clock() - self._begin

    def event(self, name: str, **values: Any) -> None:
        """Write a JSON line for the start or the end of the encode; nothing in other modes."""
        if self._mode == "json":
            self._write(json.dumps({"event": name, **values}) + "\n")

    def update(self, frames: int, size: int) -> None:
        """Report `frames` finished frames of `size` bytes in all, unless the last report is recent."""
        now = time.monotonic()
        interval = _PLAIN_INTERVAL if self._mode == "plain" else _LIVE_INTERVAL
        if self._mode == "none" or now - self._last < interval or not frames:
            return
        self._last = now
        if self._mode == "json":
            self._write(json.dumps({"event": "progress", **self._values(frames, size)}) + "\n")
        elif self._mode == "plain":
            self._write(self.line(frames, size) + "\n")
        else:
            self._open_line = True
            self._write("\r" + self._fitted(frames, size) + "  ")

    def line(self, frames: int, size: int) -> str:
        """The progress in x264's wording."""
        values = self._values(frames, size)
        rates = f"{values['encode_fps']:.2f} fps, {values['kbps']:.2f} kb/s"
        if not self._total:
            return f"{frames} frames: {rates}"
        eta = int(values["eta"])
        return (
            f"[{100 * frames / self._total:.1f}%] {frames}/{self._total} frames, {rates}, "
            f"eta {eta // 3600}:{eta // 60 % 60:02d}:{eta % 60:02d}"
        )

    def _fitted(self, frames: int, size: int) -> str:
        """The line, followed by a bar if the terminal is wide enough."""
        text = self.line(frames, size)
        columns = shutil.get_terminal_size().columns
        if self._total and len(text) + _BAR + 6 <= columns:
            filled = min(_BAR, _BAR * frames // self._total)
            text += f"  [{'#' * filled}{'.' * (_BAR - filled)}]"
        return text[: max(1, columns - 3)]

    def _values(self, frames: int, size: int) -> dict[str, Any]:
        speed = frames / max(1e-9, self.seconds)
        values: dict[str, Any] = {
            "frames": frames,
            "encode_fps": speed,
            "kbps": size * 8 * float(self._fps) / frames / 1000,
            "bytes": size,
        }
        if self._total:
            values |= {"total": self._total, "eta": max(0, self._total - frames) / speed}
        return values

    def finish(self) -> None:
        """Clear the terminal's line for later output."""
        if self._open_line:
            self._write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            self._open_line = False

    def _write(self, text: str) -> None:
        if not write(self._stream, text):
            self._mode = "none"  # the stream is closed; the encode continues
