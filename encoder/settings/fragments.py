"""Keyframes at the borders of fragments: even distances by number, or by the times of frames."""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from ..errors import OptionError
from .frame_requests import IDR, Request
from .option_types import OptionValues
from .options import BY_NAME


def with_keyframes(options: Mapping[str, object], seconds: float, fps: object, has_times: bool = False) -> OptionValues:
    """Options with which keyframes come where fragments of so many seconds end.

    A scene cut in between gets an I frame, and no keyframe that would shift the later ones. has_times: of the frames, by
    which FragmentTimes asks for keyframes; else each frame lasts 1 / fps. The user's own keyint and min_keyint count.
    OptionError with intra refresh.
    """
    if BY_NAME["intra_refresh"].value(options.get("intra_refresh") or False):
        text = "contradicts --fragment (fragments and segments begin at IDR frames): leave one of them out"
        raise OptionError(text, "intra-refresh")
    keyint, frames = BY_NAME["keyint"], max(1, round(Fraction(seconds) * BY_NAME["fps"].value(fps)))
    if options.get("keyint") is not None:
        distance = keyint.value(options["keyint"])
        if distance > frames:  # fragments are GOPs as they come
            return dict(options)
    else:
        distance = keyint.default if has_times else ceil(Fraction(frames, ceil(Fraction(frames, keyint.default))))
    values = {**options, "keyint": distance}
    if values.get("min_keyint") in (None, 0, "auto"):
        values["min_keyint"] = distance
    return values


class FragmentTimes:
    """Asks for a keyframe at the first frame whose time is `seconds`, less half a frame, after the last one."""

    def __init__(self, seconds: float, fps: Fraction) -> None:
        self._least = Fraction(seconds) - 1 / (2 * fps)
        self._begin: Fraction | None = None

    def request(self, time: Fraction, requested: Request | None = None) -> Request | None:
        """For the next frame, shown at `time` in seconds; requested: what the caller asks of it."""
        if self._begin is None or (requested is not None and requested.frame_type == IDR):
            self._begin = time
        elif time - self._begin >= self._least:
            self._begin = time
            return (requested or Request())._replace(frame_type=IDR)
        return requested
