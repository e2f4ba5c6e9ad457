"""Times that the caller gives to frames (timestamps, pts): checked as frames come, then those of their packets."""

from array import array
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import gcd
from typing import Any

from .errors import InputError, OptionError
from .settings.option_types import OF_VALUES, read_int, show

CLOCK = Fraction(1, 90000)  # seconds: times round to a unit that divides it and a frame of the rate
_FINEST = 10_000_000  # units a second
_LONGEST = 2**31 - 1  # units between two frames, which containers can say
_LARGEST = 2**62  # units
_COUNTED = 1000  # of times that are left over
_MISSING = "frame {} has no time: there are fewer times than frames, give one for each frame"


def read_time_base(value: Any) -> Fraction:
    """Seconds of a unit of pts, from Fraction(1, 90000), "1/90000" or a float such as 0.001; OptionError."""
    try:
        if isinstance(value, bool):
            raise TypeError
        base = Fraction(str(value)) if isinstance(value, float | str) else Fraction(value)
    except OF_VALUES:
        raise OptionError(f"{show(value)}: not seconds such as Fraction(1, 90000)", "time_base") from None
    if not 0 < base <= 3600 or base.denominator > 1_000_000_000:
        raise OptionError(f"{show(value)}: not in 1/1000000000..3600 s", "time_base")
    return base


class GivenTimes:
    """Times of frames in units of `base`; those of a file begin at 0 with the first frame.

    fps: the nominal rate; the frame shown last takes 1 / fps. time_base: seconds of a unit of pts; None: pts are not allowed
    in files, and packets have them as they are given.
    """

    def __init__(self, fps: Fraction, time_base: Fraction | None = None, from_zero: bool = True) -> None:
        self._fps, self._time_base, self._from_zero = fps, time_base, from_zero
        both = gcd(fps.denominator * CLOCK.denominator, CLOCK.numerator * fps.numerator)
        exact = Fraction(both, fps.numerator * CLOCK.denominator)
        self.base = time_base or (exact if exact.denominator <= _FINEST else CLOCK)
        self._frame = max(1, round(1 / fps / self.base))  # units
        self._times = array("q")
        self._first = Fraction(0)  # what the first frame was given
        self._given: Iterator[Any] = iter(())  # for the frames of this call
        self._left: int | None = None  # of these, if they are counted
        self._is_seconds = self._will = False
        self.used: bool | None = None  # None: no frame has come

    @property
    def _count(self) -> int:
        return len(self._times)

    @property
    def are_given(self) -> bool:
        """Whether frames have times: those before, else those of this call."""
        return self._will if self.used is None else self.used

    def give(self, timestamps: Any, pts: Any) -> None:
        """For the frames that come next: seconds, or units of the time base; one number, or an iterable of numbers.

        InputError, for a sequence before any of its frames enters.
        """
        if timestamps is not None and pts is not None:
            raise InputError("timestamps and pts: give one of them")
        given = pts if timestamps is None else timestamps
        if given is None:
            if self.used:
                raise InputError(f"frame {self._count} has no time, and the frames before have one: give it to all frames")
            self._given, self._left, self._will = iter(()), None, False
            return
        if self.used is False:
            raise InputError("times from a later frame on: give them to all frames, from the first one on")
        if pts is not None and self._time_base is None and self._from_zero:
            raise InputError("pts count units of time_base: give it too, as time_base=Fraction(1, 90000)")
        if getattr(given, "shape", None) == ():
            given = [given.item()]
        elif isinstance(given, int | float | Fraction | str) or not isinstance(given, Iterable):
            given = [given]
        if hasattr(given, "tolist"):
            given = given.tolist()
        self._is_seconds, self._left = timestamps is not None, None
        if isinstance(given, list | tuple):
            self._left = len(given)
            last = self._times[-1] if self._times else None
            for number, value in enumerate(given, self._count):
                last = self._checked(value, number, last)
        self._given, self._will = iter(given), True

    def require(self, frames: int) -> None:
        """So many frames follow at once; InputError if fewer times are left."""
        if self._left is not None and self._left < frames:
            raise InputError(_MISSING.format(self._count + self._left))

    def enter(self) -> Fraction | None:
        """The next frame comes; its time in seconds, or None if no times are given. InputError: it must not enter."""
        if not self.are_given:
            self.used = False
            return None
        value = next(self._given, self)
        if value is self:
            raise InputError(_MISSING.format(self._count))
        self._times.append(self._checked(value, self._count, self._times[-1] if self._times else None))
        self.used, self._left = True, None if self._left is None else self._left - 1
        return self._times[-1] * self.base

    def take_back(self) -> None:
        """The frame of the last `enter` was refused."""
        if self.used:
            self._times.pop()
        if not self._times:
            self.used = None

    def end_call(self) -> None:
        """All frames of `give` have come; InputError if times are left over."""
        left = sum(1 for _ in zip(range(_COUNTED), self._given))
        if left:
            many = "a time is" if left == 1 else f"{left}{' or more' if left == _COUNTED else ''} times are"
            raise InputError(f"{many} left over: one for each frame")

    def _checked(self, value: object, number: int, last: int | None) -> int:
        """A time in units; the first one counts from 0, or stays."""
        given = self._read(value, number)
        if last is None:
            self._first = given if self._from_zero else Fraction(0)
        units = round((given - self._first) / (self.base if self._is_seconds else 1))
        if abs(units) > _LARGEST:
            raise InputError(f"frame {number}: the time {show(value)} is too large")
        if last is not None and units <= last:
            raise InputError(
                f"frame {number}: its time {show(value)} follows {self._shown(last)} of the frame before: times must rise"
                + (f", by {self.base} s at least" if self._is_seconds else "")
            )
        if last is not None and units - last > _LONGEST:
            raise InputError(
                f"frame {number}: {show(value)} is {float((units - last) * self.base):.0f} s after the frame before"
            )
        return units

    def _read(self, value: Any, number: int) -> Fraction:
        try:
            if isinstance(value, bool):
                raise TypeError
            return Fraction(value) if self._is_seconds else Fraction(read_int(value))
        except OF_VALUES:
            what = "seconds" if self._is_seconds else "a whole number of units"
            raise InputError(f"frame {number}: the time {show(value)} is not {what}") from None

    def _shown(self, units: int) -> str:
        """A time as the caller counts."""
        if not self._is_seconds:
            return str(units + int(self._first))
        return f"{float(units * self.base + self._first):.6f}".rstrip("0").rstrip(".")

    def of(self, number: int) -> int:
        """The time of frame `number`; before the first one by the step of frames."""
        if not self.used:
            return number
        return self._times[number] if number >= 0 else self._times[0] + number * self._step()

    def known(self, number: int) -> int | None:
        """`of`, or None if that frame has not come."""
        return self.of(number) if not self.used or number < self._count else None

    def duration(self, number: int) -> int | None:
        """From frame `number` to the next one that is known, or 1 / fps; None: no times are given."""
        if not self.used:
            return None
        return self._times[number + 1] - self._times[number] if number + 1 < self._count else self._step()

    def _step(self) -> int:
        """Units of a frame: by the rate, or without a time base the first distance."""
        if self._time_base is not None or self._from_zero:
            return self._frame
        return self._times[1] - self._times[0] if self._count > 1 else 1
