"""The statistics file of two passes: what the first one has found, a line a frame, and which settings it is of.

The first line names format, encoder and the settings that decide types and QPs; the second the columns. Frames are in coding
order. QPs are in 1 / 256.
"""

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ...files import check_replaceable, replace_file
from ...scheduler.frame_spec import B, I, P
from ...uninterrupted import check_of_file
from ...version import __version__
from ..encoded_frame import EncodedFrame
from ..errors import Error, OptionError
from .frame_requests import IDR
from .option_types import lines_of, read_option_file
from .pyramid import coding_order

_FORMAT = "h264lite-statistics 1"
# qp: mean of the macroblocks; over: what it is above the rate factor before any control of sizes; asked: by the user
_COLUMNS = ("coding", "display", "type", "reference", "qp", "over", "asked", "bits", "headers", "vectors", "levels")
_NUMBERS = tuple(name for name in _COLUMNS if name != "type")
_SETTINGS = (
    "width", "height", "fps", "seek", "keyint", "min_keyint", "scenecut", "bframes", "b_pyramid", "b_adapt", "b_bias",
    "rc_lookahead", "mbtree", "qcomp", "aq_mode", "aq_strength", "ipratio", "pbratio",
)  # fmt: skip
_LARGEST = 256 << 20  # bytes of a file
_MOST_DIGITS = 12
_TYPES = (IDR, I, P, B)
READING, WRITING = (2, 3), (1, 3)  # values of --pass


class FirstPass(NamedTuple):
    """What the file says. types: of the frames in display order; the others int64[n], in coding order."""

    types: tuple[str, ...]
    frame_classes: tuple[tuple[str, bool], ...]  # type without IDR, and whether it is a reference, in coding order
    qp: np.ndarray
    over: np.ndarray
    asked: np.ndarray
    headers: np.ndarray  # bits, with all that are no vectors or levels
    vectors: np.ndarray
    levels: np.ndarray


def check_pass(values: Mapping[str, Any], user_options: Mapping[str, Any]) -> None:
    """OptionError for what contradicts. values: normal forms of all options; user_options: those of the user."""
    number = values["pass_"]
    if not number:
        if user_options.get("stats"):
            raise OptionError("has no effect without --pass", "stats")
    elif number in READING and not values["bitrate"]:
        raise OptionError(f"{number}: allots the bits of --bitrate, which is missing", "pass")
    elif values["crf"] is None:
        raise OptionError(f"{number}: QPs are constant: it contradicts --qp", "pass")


def read_pass(values: Mapping[str, Any]) -> FirstPass:
    """The statistics for an encode with these settings; OptionError that says why they do not belong to it."""
    name = values["stats"]
    if not os.path.exists(name):
        raise OptionError(f"{name}: No such file: the same command with --pass 1 writes it", "stats")
    text = read_option_file(name, "stats", _LARGEST, "ascii", "no statistics of a first pass")
    lines = lines_of(text)
    first, wanted = next(lines, ""), _first_line(values, sum(1 for _ in lines_of(text)) - 2)
    if not first.startswith("h264lite-statistics "):
        raise OptionError(f"{name}: no statistics of a first pass", "stats")
    if first != wanted:
        raise OptionError(f"{name}: {_difference(first, wanted)}", "stats")
    try:
        return _parsed(lines, values["bframes"], values["b_pyramid"])
    except ValueError as error:
        raise OptionError(f"{name}: {error}", "stats") from None


def check_frames(first_pass: FirstPass | None, name: str, frames: int | None) -> None:
    """OptionError if statistics are of another number of frames than come, as far as that is known. name: of their file."""
    if first_pass is not None and frames not in (None, len(first_pass.types)):
        raise OptionError(f"{name}: of {len(first_pass.types)} frames, and there are {frames}", "stats")


def _first_line(values: Mapping[str, Any], frames: int) -> str:
    requests = f"{crc32(repr((values['zones'], values['requests'])).encode()):08x}"  # --zones and --qpfile
    settings = [f"{name}={values[name]}" for name in _SETTINGS]
    return " ".join([_FORMAT, f"encoder={__version__}", *settings, f"requests={requests}", f"frames={frames}"])


def _difference(first: str, wanted: str) -> str:
    """How the first line differs from that of this encode."""
    first_pass, here = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in (first, wanted))
    names = [name for name in here if first_pass.get(name) != here[name]]
    if names == ["frames"]:
        return f"it says {first_pass.get('frames', 'no number of')} frames and has lines of {here['frames']}"
    texts = [f"{name.replace('_', '-')} {first_pass.get(name, 'missing')} there, {here[name]} here" for name in names]
    return f"of another encode ({'; '.join(texts) or 'another format'})"


def _parsed(lines: Iterator[str], bframes: int, pyramid: str) -> FirstPass:
    """ValueError with the reason why the lines, of columns and frames, are no statistics."""
    if next(lines, "") != " ".join(_COLUMNS):
        raise ValueError(f"line 2 is not {' '.join(_COLUMNS)}")
    given, types_given = array("q"), []  # row by row
    for n, line in enumerate(lines, 3):
        row = dict(zip(_COLUMNS, line.split()))
        texts = [row.get(name, "") for name in _NUMBERS]
        if len(line.split()) != len(_COLUMNS) or row["type"] not in _TYPES or not all(map(_is_number, texts)):
            raise ValueError(f"line {n} is not of the form {' '.join(_COLUMNS)}")
        given.extend(map(int, texts))
        types_given.append(row["type"])
    count = len(types_given)
    if not count:
        raise ValueError("it has no frames")
    numbers, types = np.array(given).reshape(count, len(_NUMBERS)), [""] * count
    order: list[tuple[int, bool]] = []
    for n, (row_type, display, reference) in enumerate(zip(types_given, *numbers[:, 1:3].T.tolist()), 3):
        if not 0 <= display < count:
            raise ValueError(f"line {n}: frame {display} of {count}")
        types[display] = row_type
        order.append((display, reference == 1))
    if order != _coding_order(types, bframes, pyramid):
        raise ValueError("its types are in no order in which they can be coded")
    columns = dict(zip(_NUMBERS, numbers.T.copy()))
    frame_classes = tuple([(_plain(types[display]), is_reference) for display, is_reference in order])
    return FirstPass(tuple(types), frame_classes, **{name: columns[name] for name in FirstPass._fields[2:]})


def _is_number(text: str) -> bool:
    return 0 < len(text) <= _MOST_DIGITS and text.removeprefix("-").isdecimal()


def _plain(frame_type: str) -> str:
    return I if frame_type == IDR else frame_type


def _coding_order(types: Iterable[str], bframes: int, pyramid: str) -> list[tuple[int, bool]]:
    """(display index, whether it is a reference) in coding order; ValueError for types that no encode has."""
    order: list[tuple[int, bool]] = []
    waiting = 0
    for display, frame_type in enumerate(types):
        waiting += frame_type == B
        if waiting > bframes or (waiting and frame_type in (IDR, I)) or (not display and frame_type != IDR):
            raise ValueError(f"frame {display} cannot be of type {frame_type or 'unknown'}")
        if frame_type != B:
            order.append((display, True))
            order += [(display - waiting + offset, used) for offset, used in coding_order(waiting, pyramid)]
            waiting = 0
    return order


class PassFile:
    """Writes the statistics of an encode: the file changes when all frames are coded."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """values: all settings. Error if no file of this name can be made."""
        self._values, self._name = values, values["stats"]
        self._lines, self._is_done = [" ".join(_COLUMNS)], False
        try:
            check_replaceable(self._name)
        except OSError as error:
            check_of_file(error)
            raise Error(f"{self._name}: {error.strerror or error}") from None

    def add(self, frame: EncodedFrame) -> None:
        """The next frame in coding order."""
        frame_type = IDR if frame.is_idr else frame.frame_type
        headers, vectors, *levels = frame.bits_by_kind or (frame.bits, 0, 0, 0)
        numbers = (frame.mean_qp, frame.over_factor, int(frame.is_qp_requested), frame.bits, headers, vectors, sum(levels))
        words = (frame.coding_index, frame.index, frame_type, int(frame.is_reference), *numbers)
        self._lines.append(" ".join(map(str, words)))

    def finish(self) -> None:
        """All frames are coded; without any no file is left. Error if it cannot be written. A second call does nothing."""
        if self._is_done or len(self._lines) < 2:
            return
        self._is_done = True
        text = "\n".join([_first_line(self._values, len(self._lines) - 1), *self._lines, ""])
        try:
            replace_file(self._name, text.encode("ascii"))
        except OSError as error:
            check_of_file(error)
            raise Error(f"{self._name}: {error.strerror or error}") from None
