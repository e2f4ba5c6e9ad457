"""What users ask of single frames: types and QPs (--qpfile, `Encoder.encode`), and QPs of parts of a stream (--zones)."""

import re
from fractions import Fraction
from typing import NamedTuple

from ..errors import OptionError
from .option_types import lines_of, read_float, read_int, read_option_file, show

IDR, I, P, B = "IDR", "I", "P", "B"
_TYPES = {"I": IDR, "K": IDR, "i": I, "P": P, "B": B, "b": B}  # of x264's file; GOPs are closed, so that a keyframe is IDR
_AUTO = -1  # no QP
_MOST_QP = 51
_LEAST_RATE, _MOST_RATE = 0.01, 100.0
_LARGEST = 64 << 20  # bytes of a file
_MOST_ZONES = 10000


class Request(NamedTuple):
    """For one frame. frame_type: IDR, I, P, B; empty: any. qp: of all its macroblocks; None: any. qp_offsets: FrameSpec."""

    frame_type: str = ""
    qp: int | None = None
    qp_offsets: bytes = b""


class Zone(NamedTuple):
    """Frames first to last in display order. qp: in place of --qp or --crf; None: `rate` times the bits."""

    first: int
    last: int
    qp: int | None
    rate: Fraction = Fraction(1)


def read_zones(value: object) -> tuple[Zone, ...]:
    """first,last,q=INT or first,last,b=FLOAT, joined by slashes; ValueError."""
    form = "not of the form first,last,q=INT or first,last,b=FLOAT, joined by /"
    if not isinstance(value, str):
        raise ValueError(form)
    texts = value.split("/")
    if len(texts) > _MOST_ZONES:
        raise ValueError(f"more than {_MOST_ZONES} zones")
    return tuple([_zone(text, form) for text in texts])


def _zone(text: str, form: str) -> Zone:
    match = re.fullmatch(r"\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\w+)\s*=([^,=]*)(,.*)?", text)
    if match is None:
        raise ValueError(form)
    first, last, key, number, more = match.groups()
    if more or key not in ("q", "b"):
        raise ValueError(f"{(more or key).strip(',')}: a zone has q=INT or b=FLOAT alone")
    if int(first) > int(last):
        raise ValueError(f"zone {first},{last} ends before it begins")
    if key == "q":
        return Zone(int(first), int(last), read_int(number, 0, _MOST_QP))
    return Zone(int(first), int(last), None, Fraction(read_float(number, _LEAST_RATE, _MOST_RATE)))


def read_qpfile(name: str | None) -> tuple[tuple[int, Request], ...]:
    """(frame of the input, request), of x264's format: a line `frame type [qp]` for each, in any order; OptionError."""
    if name is None:
        return ()
    lines = lines_of(read_option_file(name, "qpfile", _LARGEST, "utf-8", "no text"))
    requests: dict[int, Request] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            frame, request = _line(line.split())
            if frame in requests:
                raise ValueError(f"frame {frame} is named twice")
        except ValueError as error:
            raise OptionError(f"{name}: line {number}: {error}", "qpfile") from None
        requests[frame] = request
    return tuple(sorted(requests.items()))


def _line(words: list[str]) -> tuple[int, Request]:
    if len(words) not in (2, 3):
        raise ValueError("not of the form: frame type [qp]")
    frame, word = read_int(words[0], 0), words[1]
    if word not in _TYPES:
        raise ValueError(f"{word[:20]}: not one of {', '.join(_TYPES)}")
    qp = read_int(words[2], _AUTO, _MOST_QP) if len(words) == 3 else _AUTO
    return frame, Request(_TYPES[word], None if qp == _AUTO else qp)


def request_of(
    keyframe: bool, qp: object, frame_type: str | None, qp_offsets: object, size_in_mbs: tuple[int, int]
) -> Request | None:
    """That of the arguments of `Encoder.encode`; None: they ask for nothing. size_in_mbs: (rows, columns) of macroblocks.
    OptionError.
    """
    if frame_type not in (None, IDR, I, P, B):
        raise OptionError(f"{show(frame_type)}: not one of {IDR}, {I}, {P}, {B}", "frame_type")
    if not isinstance(keyframe, bool):
        raise OptionError(f"{show(keyframe)}: not True or False", "keyframe")
    if keyframe and frame_type in (P, B):
        raise OptionError(f"contradicts frame_type {frame_type!r}: a keyframe is an IDR frame", "keyframe")
    try:
        number = None if qp is None else read_int(qp, 0, _MOST_QP)
    except ValueError as error:
        raise OptionError(f"{show(qp)}: {error}", "qp") from None
    frame_type, offsets = IDR if keyframe else frame_type or "", _offsets(qp_offsets, size_in_mbs)
    return Request(frame_type, number, offsets) if frame_type or number is not None or offsets else None


def _offsets(qp_offsets: object, size_in_mbs: tuple[int, int]) -> bytes:
    """See FrameSpec.qp_offsets; OptionError."""
    if qp_offsets is None:
        return b""
    import numpy as np

    try:
        offsets = np.asarray(qp_offsets)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{show(qp_offsets)}: no array ({error})", "qp_offsets") from None
    if offsets.dtype.kind not in "iuf":
        raise OptionError(f"an array of {offsets.dtype}: give integers or floating-point numbers", "qp_offsets")
    if offsets.shape != size_in_mbs:
        rows, columns = size_in_mbs
        raise OptionError(f"shape {offsets.shape}: one number a macroblock is ({rows}, {columns})", "qp_offsets")
    if not (np.abs(offsets.astype(np.float64)) <= _MOST_QP).all():
        raise OptionError(f"numbers beyond -{_MOST_QP}..{_MOST_QP}, or none", "qp_offsets")
    return np.rint(offsets).astype(np.int8).tobytes()
