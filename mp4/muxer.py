"""Access units of one H.264 track into a layout: times in any unit, samples with exact durations."""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from .avc import ParameterSets, to_sample
from .boxes import LARGEST_32
from .layouts import Layout
from .movie import UPRIGHT, Track
from .samples import Sample
from .tags import FileTags

if TYPE_CHECKING:
    from ..sound.stream import SoundStream
    from .sound_track import SoundTrack

_LEAST_TIMESCALE = 1000  # some players round to units: below, they are fractions of the frame rate
_MOST_UNITS = 64  # twice the frames by which decoding runs ahead, at most: offsets have a sign


class Muxer:
    """Takes access units in coding order; the first begins with SPS and PPS, which describe the track.

    time_base: seconds of a unit of pts and dts. tags and sound are called with the first unit.
    ValueError for what a track cannot say: the message is the reason.
    """

    def __init__(
        self, layout: Layout, time_base: Fraction, matrix: tuple[int, ...] = UPRIGHT, tags: Callable[[], FileTags] = FileTags,
        sound: "Callable[[], SoundStream] | None" = None,
    ) -> None:  # fmt: skip
        self._layout, self._matrix, self._tags, self._sound = layout, matrix, tags, sound
        scale = 1 if time_base.denominator >= _LEAST_TIMESCALE else _LEAST_TIMESCALE
        self._timescale = time_base.denominator * scale
        self._unit = time_base.numerator * scale  # units of the timescale in one of time_base
        if self._timescale > LARGEST_32:
            raise ValueError(f"a time base of {time_base} s is too fine for MP4")
        if self._unit * _MOST_UNITS > LARGEST_32:
            raise ValueError(f"a time base of {time_base} s is too exact for MP4: a few frames take more than 32 bits")
        self._sets: ParameterSets | None = None
        self._waiting: tuple[bytes, int, int, bool, int] | None = None  # the last sample: the next one says how long it lasts
        self._last_duration = self._unit
        self._following: int | None = None  # after a flush: when the next sample is decoded

    def add(self, access_unit: bytes, pts: int, dts: int, is_keyframe: bool, duration: int | None = None) -> None:
        """One access unit, Annex B. duration: how long it is shown, which counts for the frame shown last; default: the time
        between the decoding of two frames.
        """
        if self._layout.failed:
            raise ValueError("an earlier write has failed: nothing can follow")
        sample, sets = to_sample(access_unit)
        if self._sets is None:
            if pts < dts:
                raise ValueError(f"the first frame is shown at {pts}, before it is decoded at {dts}")
            new_sets, start = ParameterSets(sets), (pts - dts) * self._unit
            track = Track(new_sets, self._timescale, start, self._matrix, self._tags().boxes(), self._sound_track(start))
            self._layout.begin(track)
            self._sets = new_sets
        self._sets.check(sets)
        if self._following is not None:  # what a flush has taken for granted is put right
            self._layout.shift((dts - self._following) * self._unit)
            self._following = None
        if self._waiting is not None:
            self._last_duration = (dts - self._waiting[2]) * self._unit
            if self._last_duration <= 0:
                raise ValueError(f"decoding time {dts} follows {self._waiting[2]}: they must rise")
            self._pass_on(self._last_duration)
        self._waiting = sample, pts, dts, is_keyframe, (duration or 0) * self._unit

    def flush(self, following: int | None = None) -> None:
        """Write what has come as a fragment, if the layout makes some. following: when the next sample will be decoded; None:
        unknown, so that the last one lasts as long as the caller has said, or as the one before.
        """
        if self._waiting is None or self._layout.failed or not self._layout.can_flush:
            return
        dts, shown = self._waiting[2], self._waiting[4]
        duration = (shown or self._last_duration) if following is None else (following - dts) * self._unit
        self._following = dts + duration // self._unit
        self._pass_on(duration)
        self._layout.flush()

    def _sound_track(self, start: int) -> "SoundTrack | None":
        """The sound beside a video whose first frame has composition time `start`."""
        if self._sound is None:
            return None
        from .sound_track import sound_track  # which files without sound do without

        return sound_track(self._sound(), self._timescale, start, self._layout.sound_throughout)

    def finish(self) -> None:
        """Complete the file; without access units nothing is written."""
        if self._waiting is not None and not self._layout.failed:
            self._pass_on(self._waiting[4] or self._last_duration)
        if self._sets is not None:
            self._layout.finish()

    def _pass_on(self, duration: int) -> None:
        assert self._waiting is not None
        sample, pts, dts, is_keyframe, shown = self._waiting
        self._waiting = None
        offset = (pts - dts) * self._unit
        if max(duration, 2 * abs(offset)) > LARGEST_32:
            raise ValueError(f"frame {pts} lasts or waits longer than an MP4 can say")
        self._layout.add(sample, Sample(len(sample), duration, offset, is_keyframe, shown))
