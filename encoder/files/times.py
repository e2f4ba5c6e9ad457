"""Times of the frames of an input that has them: exact multiples of the frame rate where they are that, else as they are."""

from array import array
from fractions import Fraction
from math import gcd

_FINEST = 10_000_000  # units a second: a frame of 32 bits may then last seven minutes


class FrameTimes:
    """Times in units of `base`, from the first frame on, by the number of the frame.

    A container counts in milliseconds or ticks of its own, so that frames of a constant rate are a little off. A time that
    is within a tick of a multiple of the frame rate is taken as that multiple; others stay.
    """

    def __init__(self, fps: Fraction, source_base: Fraction) -> None:
        both = 1 / fps, source_base
        self.base = Fraction(
            gcd(both[0].numerator * both[1].denominator, both[1].numerator * both[0].denominator),
            both[0].denominator * both[1].denominator,
        )
        self._exact = self.base.denominator <= _FINEST
        if not self._exact:
            self.base = source_base
        self._frame = round(both[0] / self.base)  # units
        self._tick = round(source_base / self.base)
        self._times = array("q")
        self._start = 0  # of the source, in its units
        self._source_base = source_base
        self._last_duration = self._frame
        self.is_variable = False

    @property
    def start(self) -> Fraction:
        """When the first frame is shown in the source, in seconds."""
        return self._start * self._source_base

    def add(self, pts: int | None, duration: int | None) -> None:
        """The next frame, in the source's units; None: it follows the one before."""
        if not self._times:
            self._start = pts or 0
        last = self._times[-1] if self._times else -self._frame
        time = last + self._frame if pts is None else (pts - self._start) * self._tick
        nearest = round(Fraction(time, self._frame)) * self._frame
        if self._exact and abs(time - nearest) <= self._tick and nearest > last:
            time = nearest
        time = max(time, last + 1)
        self.is_variable = self.is_variable or abs(time - last - self._frame) > self._tick
        self._last_duration = self._frame
        if duration and self.is_variable:
            self._last_duration = duration * self._tick
        self._times.append(time)

    def of(self, number: int) -> int:
        """The time of a frame; before the first one by the frame rate."""
        return self._times[number] if number >= 0 else number * self._frame

    def duration(self, number: int) -> int:
        """To the next frame that is known; of the last one as the source says."""
        following = number + 1 < len(self._times)
        return self._times[number + 1] - self._times[number] if following else self._last_duration
