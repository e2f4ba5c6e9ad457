"""Timecode files (--tcfile-in): when each frame of an input is shown, in the formats v1 and v2 of mkvtoolnix and x264."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

from ..errors import OptionError
from ..settings.option_types import lines_of, read_fps, read_option_file
from .times import FrameTimes

OPTION = "tcfile-in"
_LARGEST = 1 << 26  # bytes
_HEADER = re.compile(r"#\s*time(?:code|stamp) format v([12])\s*", re.IGNORECASE)
_MOST_DIGITS = 3  # behind the point of milliseconds: finer times round to microseconds
_MICROSECOND = Fraction(1, 1_000_000)


class Timecodes:
    """Times of frames, in seconds, by their number in the input. fps: their rate, the average one if they vary; tick: what
    the times are rounded to, in seconds; count: of frames whose times are in the file, None: all have one.
    """

    def __init__(self, starts: Sequence[Fraction], durations: Sequence[Fraction], firsts: Sequence[int], count: int | None,
                 fps: Fraction, tick: Fraction) -> None:  # fmt: skip
        """Frame firsts[k] is shown at starts[k]; from it on a frame lasts durations[k]. firsts rise from 0 on."""
        self._starts, self._durations, self._firsts = starts, durations, firsts
        self.count, self.fps, self.tick = count, fps, tick

    def seconds(self, number: int) -> Fraction:
        """The time of a frame."""
        k = bisect_right(self._firsts, number) - 1
        return self._starts[k] + (number - self._firsts[k]) * self._durations[k]


def read_timecodes(name: str) -> Timecodes:
    """The times of a file; OptionError if it has none."""
    lines = lines_of(read_option_file(name, OPTION, _LARGEST, "utf-8", "no text"))
    header = _HEADER.fullmatch(next(lines, "").removeprefix("\ufeff"))
    if header is None:
        raise OptionError(f"{name}: the first line is not '# timecode format v1' or v2", OPTION)
    rows = [(n, text) for n, line in enumerate(lines, 2) if (text := line.partition("#")[0].strip())]
    return (_read_ranges if header[1] == "1" else _read_times)(name, rows)


def _read_times(name: str, rows: list[tuple[int, str]]) -> Timecodes:
    """Format v2: a time a line, in milliseconds."""
    times, digits = list[Fraction](), 0
    for number, text in rows:
        if not re.fullmatch(r"\d{1,12}(\.\d*)?", text):
            raise OptionError(f"{name}: line {number}: {text[:40]!r} is no time in milliseconds", OPTION)
        times.append(Fraction(text) / 1000)
        digits = max(digits, len(text.partition(".")[2].rstrip("0")))
        if len(times) > 1 and times[-1] <= times[-2]:
            raise OptionError(f"{name}: line {number}: a frame is not later than the one before", OPTION)
    if len(times) < 2:
        raise OptionError(f"{name}: fewer than two times", OPTION)
    durations = [after - before for before, after in zip(times, times[1:])]
    durations.append(durations[-1])
    fps = ((len(times) - 1) / (times[-1] - times[0])).limit_denominator(1001)
    tick = Fraction(1, 1000 * 10 ** min(digits, _MOST_DIGITS))
    return Timecodes(times, durations, range(len(times)), len(times), _rate(name, fps), tick)


def _read_ranges(name: str, rows: list[tuple[int, str]]) -> Timecodes:
    """Format v1: a rate for all frames, then rates of ranges, a line each: FIRST,LAST,RATE."""
    if not rows or not (assumed := re.fullmatch(r"assume\s+(\S+)", rows[0][1], re.IGNORECASE)):
        raise OptionError(f"{name}: the second line is not 'assume RATE'", OPTION)
    rate = _rate(name, assumed[1])
    firsts, rates = [0], [rate]
    for number, text in rows[1:]:
        if not (match := re.fullmatch(r"(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(\S+)", text)):
            raise OptionError(f"{name}: line {number}: {text[:40]!r} is not FIRST,LAST,RATE", OPTION)
        first, last = int(match[1]), int(match[2])
        if first > last or first < firsts[-1]:
            raise OptionError(f"{name}: line {number}: ranges of frames rise and do not overlap", OPTION)
        if first == firsts[-1]:
            firsts.pop(), rates.pop()
        firsts += [first, last + 1]
        rates += [_rate(f"{name}: line {number}", match[3]), rate]
    durations = [1 / each for each in rates]
    starts = [Fraction(0)]
    for k in range(1, len(firsts)):
        starts.append(starts[-1] + (firsts[k] - firsts[k - 1]) * durations[k - 1])
    return Timecodes(starts, durations, firsts, None, rate, _MICROSECOND)


def _rate(where: str, value: str | Fraction) -> Fraction:
    """A frame rate; OptionError."""
    try:
        return read_fps(value)
    except ValueError as error:
        raise OptionError(f"{where}: {error}", OPTION) from None


class TimesOfFile(FrameTimes):
    """The times of a file from frame `seek` on. fps: of the encode."""

    def __init__(self, timecodes: Timecodes, fps: Fraction, seek: int) -> None:
        super().__init__(fps, timecodes.tick)
        self._timecodes, self._seek = timecodes, seek
        self._fill(0)

    def _fill(self, number: int) -> None:
        for n in range(len(self._times), number + 2):  # a frame lasts until the next one
            self.add(round(self._timecodes.seconds(self._seek + n) / self._timecodes.tick), None)

    def of(self, number: int) -> int:
        """See FrameTimes."""
        self._fill(number)
        return super().of(number)

    def duration(self, number: int) -> int:
        """See FrameTimes."""
        self._fill(number)
        return super().duration(number)

    def without_times(self, count: int) -> int:
        """How many of `count` frames have no time in the file: they follow as the last one does."""
        known = self._timecodes.count
        return 0 if known is None else max(0, self._seek + count - known)
