"""Ctrl-C, SIGTERM and SIGHUP: the first sets a flag, so that the file is finished; the second leaves at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """Raised only where the program waits for input, which may never come."""


class StopSignals:
    """`with StopSignals() as stop:` then look at `stop.asked` between frames."""

    HANGUP = getattr(signal, "SIGHUP", None)
    SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP else []))

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def __enter__(self) -> "StopSignals":
        wanted = [number for number in self.SIGNALS
                  if number != self.HANGUP or signal.getsignal(number) != signal.SIG_IGN]  # as under nohup
        self._before = {number: signal.signal(number, self._on_signal) for number in wanted}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == self.HANGUP:  # a terminal that closes sends it twice
            return
        if self.asked:
            os.write(2, b"\nh264lite: interrupted twice: left at once, the output is not finished\n")
            os._exit(130)
        self.asked = True
        if self._waiting:
            raise Interrupted

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a read that may block: a signal ends it with Interrupted."""
        self._waiting = True
        try:
            if self.asked:
                raise Interrupted
            yield
        finally:
            self._waiting = False
