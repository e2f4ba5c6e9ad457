"""Ctrl-C, SIGTERM and SIGHUP: the first signal sets a flag, so that the file is finished; the second one exits at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # exit code


class Interrupted(BaseException):
    """Raised only where the program waits for input or output, which may block for ever."""


class StopSignals:
    """`with StopSignals() as stop:`, then check `stop.is_requested` between frames."""

    HANGUP = getattr(signal, "SIGHUP", None)
    SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP else []))

    def __init__(self) -> None:
        self.is_requested = False
        self._waiting = False

    def __enter__(self) -> "StopSignals":
        wanted = [
            number for number in self.SIGNALS if number != self.HANGUP or signal.getsignal(number) != signal.SIG_IGN
        ]  # ignored under nohup: keep it so
        self._hook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        self._before = {number: signal.signal(number, self._on_signal) for number in wanted}
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested and number == self.HANGUP:  # a closing terminal sends SIGHUP twice
            return
        if self.is_requested:
            os.write(2, b"\nh264lite: interrupted twice: left at once, the output is not finished\n")
            os._exit(INTERRUPTED)
        self.is_requested = True
        if self._waiting:
            raise Interrupted

    def _on_unraisable(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """A signal in a weak reference's callback or in `__del__`: Python would print a traceback and go on."""
        if not isinstance(unraisable.exc_value, Interrupted):
            self._hook(unraisable)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """For a call that may block: a signal ends it with Interrupted."""
        self._waiting = True
        try:
            if self.is_requested:
                raise Interrupted
            yield
        finally:
            self._waiting = False
