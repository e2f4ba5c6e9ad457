"""What names of files say: what is in them, size and frame rate of a raw video, and which image files are meant."""

import glob
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from ...files import error_text
from ...uninterrupted import check_of_file
from ..errors import InputError, OptionError
from ..settings.option_types import read_fps

_SIZE = r"(?<![0-9A-Za-z])(\d{1,5})x(\d{1,5})(?![0-9A-Za-z])"
_END = r"(?=[_.\- ]|$)"  # of a word
_WITH_UNIT = re.compile(rf"(?<![0-9A-Za-z.])(\d{{1,4}}(?:\.\d{{1,3}})?)(?:fps|hz){_END}", re.IGNORECASE)
_FRACTION = re.compile(rf"[_\-]((?:24|30|48|60|120)000)[_\-](1001){_END}")
_PLAIN = re.compile(rf"[_\-](\d{{2,3}}(?:\.\d{{1,3}})?)(?![_\-]\d+{_END}){_END}")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".tga")
I420 = (".yuv", ".i420", ".raw", ".420", "")  # endings of raw video
_UNFINISHED = (".tmp", ".part")
_COUNTER = re.compile(r"%(0?)(\d{0,2})d")
_USUAL = ("23.976", "23.98", "24", "25", "29.97", "30", "47.95", "48", "50", "59.94", "60", "119.88", "120")


def size_from_name(name: str) -> tuple[int, int] | None:
    """(width, height) from the last such pair of a file name as foreman_352x288_30.yuv; None if 0 or missing."""
    size = _last_size(_stem(name))
    width, height = (int(size[1]), int(size[2])) if size else (0, 0)
    return (width, height) if width and height else None


def rate_from_name(name: str) -> Fraction | None:
    """Frames per second from a file name; None if it says nothing, or nothing certain.

    x_50fps.yuv and x_60Hz.yuv anywhere; right after the size x_352x288_30000_1001.yuv and, of usual rates only since other
    numbers may count frames, x_352x288_30.yuv or x_352x288_29.97.yuv.
    """
    stem = _stem(name)
    texts = {match[1] for match in _WITH_UNIT.finditer(stem)}
    size = _last_size(stem)
    if size and not texts:
        after = stem[size.end() :]
        if match := _FRACTION.match(after):
            texts = {f"{match[1]}/{match[2]}"}
        elif (match := _PLAIN.match(after)) and match[1] in _USUAL:
            texts = {match[1]}
    try:
        return read_fps(texts.pop()) if len(texts) == 1 else None
    except ValueError:
        return None


def _stem(name: str) -> str:
    return os.path.basename(name).rpartition(".")[0]


def _last_size(stem: str) -> re.Match[str] | None:
    matches = list(re.finditer(_SIZE, stem))
    return matches[-1] if matches else None


def ending_of(name: str) -> str:
    """The ending that says what a file is, in lower case; without the .tmp or .part of a file that is renamed later."""
    stem, ending = os.path.splitext(name.lower())
    while ending in _UNFINISHED:
        stem, ending = os.path.splitext(stem)
    return ending


def is_image(name: str) -> bool:
    """Whether the ending of a name is that of an image."""
    return os.path.splitext(name)[1].lower() in IMAGES


def image_files(inputs: Sequence[str]) -> list[str]:
    """The image files that inputs mean, in order; empty if a single input is no image. InputError, OptionError.

    A list as the shell makes it of *.png is put in natural order (9 before 10), other lists keep theirs. A single name may
    hold a counter as in frame_%04d.png, or be a pattern as '*.png' that the shell left alone.
    """
    for name in inputs:
        if len(inputs) > 1 and not is_image(name):
            raise OptionError(f"{name}: with several inputs all are images ({', '.join(IMAGES)}), one file for each frame")
    if len(inputs) > 1:
        sorted_by_shell = list(inputs) in (sorted(inputs), sorted(inputs, key=str.lower))
        return sorted(inputs, key=natural) if sorted_by_shell else list(inputs)
    (name,) = inputs
    if not is_image(name) or os.path.exists(name):
        return [name] if is_image(name) else []
    if len(_COUNTER.findall(os.path.basename(name))) == 1:
        return _counted(name)
    if re.search(r"[*?[]", name):
        if names := sorted(glob.glob(name), key=natural):
            return names
        raise InputError(f"{name}: no such files")
    return [name]


def natural(name: str) -> list[tuple[int, int, str]]:
    """The key for natural order: numbers in names are compared as numbers."""
    return [(0, int(token), token) if token.isdecimal() else (1, 0, token) for token in re.split(r"(\d+)", name)]


def _counted(name: str) -> list[str]:
    """The files of frame_%04d.png by number; InputError if there are none, or if one is missing between others."""
    folder, pattern = os.path.split(name)
    counter = _COUNTER.search(pattern)
    assert counter is not None
    least = int(counter[2] or 1)
    digits = rf"(\d{{{least},}})" if counter[1] else r"(0|[1-9]\d*)"
    expression = re.compile(re.escape(pattern[: counter.start()]) + digits + re.escape(pattern[counter.end() :]))
    try:
        entries = map(expression.fullmatch, os.listdir(folder or "."))
        counted = sorted((int(match[1]), match[0]) for match in entries if match)
    except OSError as error:
        check_of_file(error)
        raise InputError(f"{folder}: {error_text(error)}") from None
    if not counted:
        raise InputError(f"{name}: no such files")
    for (before, entry), (number, _) in pairwise(counted):
        if number != before + 1:
            raise InputError(f"{name}: number {before + 1} is missing, after {entry} (a pattern such as '*.png' takes all)")
    return [os.path.join(folder, entry) for _, entry in counted]
