"""Sizes of coded frames for the decisions about later frames, at a lag that does not depend on the machine."""

from collections import deque
from collections.abc import Callable

RATE_LAG = 8  # frames
_START, _RISE = 4, 2  # frames of a stream with a bit rate whose lag is 1, and frames in which it then rises by one


def rate_lag(coding_index: int) -> int:
    """The lag of a frame of a stream with a bit rate: short at the start, where sizes are hard to predict."""
    return max(1, min(RATE_LAG, 1 + (coding_index - _START) // _RISE))


class SizeFeedback:
    """The sizes of all frames up to n - lag, when frame n is decided: neither more nor fewer, so that the stream is the same
    for any number of threads and devices.
    """

    def __init__(self, lag: int, lag_of: Callable[[int], int] | None = None) -> None:
        """lag_of: that of a frame by its coding index, at most `lag`; None: of all `lag`."""
        self.lag_of = lag_of or (lambda _: lag)
        self._coded: deque[int] = deque()  # bits of finished frames, not released yet
        self._released = 0

    def add(self, bits: int) -> None:
        """Add the next frame in coding order."""
        self._coded.append(bits)

    def release(self, coding_index: int) -> list[int]:
        """Bits of the frames that become known when frame `coding_index` is decided, in coding order."""
        known = []
        while self._released <= coding_index - self.lag_of(coding_index):
            known.append(self._coded.popleft())
            self._released += 1
        return known
