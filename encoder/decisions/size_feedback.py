"""Sizes of coded frames for the decisions about later frames, at a lag that does not depend on the machine."""

from collections import deque

FEEDBACK_LAG = 16  # frames: more than are in flight, so that no decision waits for the entropy coding
RATE_LAG = 8  # the same for streams with a bit rate, of which fewer frames are in flight


class SizeFeedback:
    """The sizes of all frames up to n - lag, when frame n is decided: neither more nor fewer, so that the stream is the same
    for any number of threads and devices.
    """

    def __init__(self, lag: int = FEEDBACK_LAG) -> None:
        self.lag = lag
        self._coded: deque[int] = deque()  # bits of finished frames, not released yet
        self._released = 0

    def add(self, bits: int) -> None:
        """Add the next frame in coding order."""
        self._coded.append(bits)

    def release(self, coding_index: int) -> list[int]:
        """Bits of the frames that become known when frame `coding_index` is decided, in coding order."""
        known = []
        while self._released <= coding_index - self.lag:
            known.append(self._coded.popleft())
            self._released += 1
        return known
