"""What the name of a raw video says: size and frame rate."""

import os
import re
from fractions import Fraction

from ..settings.option_types import read_fps

_SIZE = r"(?<![0-9A-Za-z])(\d{1,5})x(\d{1,5})(?![0-9A-Za-z])"
_END = r"(?=[_.\- ]|$)"  # of a word
_WITH_UNIT = re.compile(rf"(?<![0-9A-Za-z.])(\d{{1,4}}(?:\.\d{{1,3}})?)(?:fps|hz){_END}", re.IGNORECASE)
_FRACTION = re.compile(rf"[_\-]((?:24|30|48|60|120)000)[_\-](1001){_END}")
_PLAIN = re.compile(rf"[_\-](\d{{2,3}}(?:\.\d{{1,3}})?)(?![_\-]\d+{_END}){_END}")
_USUAL = ("23.976", "23.98", "24", "25", "29.97", "30", "47.95", "48", "50", "59.94", "60", "119.88", "120")


def size_from_name(name: str) -> tuple[int, int] | None:
    """(width, height) from the last such pair of a file name as foreman_352x288_30.yuv; None if 0 or missing."""
    found = _last_size(_stem(name))
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    return (width, height) if width and height else None


def rate_from_name(name: str) -> Fraction | None:
    """Frames per second from a file name; None if it says nothing, or nothing certain.

    x_50fps.yuv and x_60Hz.yuv anywhere; right after the size x_352x288_30000_1001.yuv and, of usual rates only since other
    numbers may count frames, x_352x288_30.yuv or x_352x288_29.97.yuv.
    """
    stem = _stem(name)
    texts = {found[1] for found in _WITH_UNIT.finditer(stem)}
    size = _last_size(stem)
    if size and not texts:
        after = stem[size.end() :]
        if found := _FRACTION.match(after):
            texts = {f"{found[1]}/{found[2]}"}
        elif (found := _PLAIN.match(after)) and found[1] in _USUAL:
            texts = {found[1]}
    try:
        return read_fps(texts.pop()) if len(texts) == 1 else None
    except ValueError:
        return None


def _stem(name: str) -> str:
    return os.path.basename(name).rpartition(".")[0]


def _last_size(stem: str) -> re.Match[str] | None:
    found = list(re.finditer(_SIZE, stem))
    return found[-1] if found else None
