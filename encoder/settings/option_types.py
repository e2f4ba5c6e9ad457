"""Readers of option values, for strings of the command line and for Python values.

Every reader takes a value and returns its normal form, or raises ValueError with the text that follows
"qp 60: " in the message ("not in 0..51").
"""

import io
import math
import operator
import os
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from ...files import small_file
from ...uninterrupted import check_of_file
from ..errors import OptionError

OF_VALUES = (ValueError, TypeError, ArithmeticError)  # what a wrong value raises while it is read; all else is no fault of it

# num_units_in_tick and time_scale (twice the frame rate's numerator) are 32-bit numbers in the VUI (E.2.1).
_LARGEST_FPS_TERM = 2**31 - 1
FPS_LOW, FPS_HIGH = Fraction(1, 100), Fraction(10000)
_OF_NTSC = tuple(Fraction(1000 * rate, 1001) for rate in (24, 30, 48, 60, 120))  # which are written as 23.976, 29.97, ...

OptionValues = dict[str, Any]  # by name; each value has the type that its row of the table reads
MOST_COUNT = 2**31 - 1  # limit of sizes and frame counts: bounds all numbers computed from them
ENDLESS = 2**30  # frames of --keyint infinite
_LONGEST_NUMBER = 100  # characters
_MOST_DEVICES = 64
_MOST_NAMES, _LONGEST_NAME = 1000, 4096  # in a list; bytes of a file's path

PARTITIONS = ("p8x8", "p4x4", "i8x8", "i4x4")
_OF_B_FRAMES = "b8x8"  # x264's name; B macroblocks are divided as P macroblocks are


def read_int(value: Any, low: int | None = None, high: int | None = None) -> int:
    """A whole number in [low, high]; no booleans, no fractions."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value.strip()) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise ValueError("not a whole number") from None
    check_range(number, low, high)
    return number


def read_kbits(value: Any, low: int, high: int) -> int:
    """A whole number of kbit, or of kbit a second, in [low, high]. "2M", floats and what is too large may be bits, as FFmpeg
    has them.
    """
    try:
        return read_int(value, low, high)
    except ValueError as error:
        unit = "" if show(value).startswith("-") else ": the unit is kbit, 2000 is what FFmpeg calls 2M"
        raise ValueError(f"{error}{unit}") from None


def read_count(value: object, low: int | None = None, high: int | None = None) -> int:
    """A whole number in [low, high], or 0 for auto."""
    return 0 if value == "auto" else read_int(value, low, high)


def read_devices(value: object) -> tuple[str, ...]:
    """cpu, also several times, or names of GPUs without repetition: cuda:N; cuda is cuda:0; all is all GPUs."""
    form = "not all, cpu or a list of cuda:0, cuda:1 and so on"
    chosen = tuple("cuda:0" if name == "cuda" else name for name in _names(value, form))
    if chosen == ("all",):
        return chosen
    if not chosen or not all(re.fullmatch(r"cpu|cuda:[0-9]{1,3}", name) for name in chosen):
        raise ValueError(form)
    if "cpu" in chosen and set(chosen) != {"cpu"}:
        raise ValueError("cpu beside GPUs, which would have to wait for it: name the GPUs alone (device hybrid uses both)")
    if len(chosen) > _MOST_DEVICES:
        raise ValueError(f"more than {_MOST_DEVICES} devices")
    if len(set(chosen)) < len(chosen) and "cpu" not in chosen:
        raise ValueError("a GPU is named twice (--gops says how many GOPs are encoded at once)")
    return chosen


def _names(value: Any, form: str) -> list[str]:
    """Names joined by commas, or a collection of them, read only up to a limit; ValueError(form)."""
    try:
        return [name.strip() for name in (value.split(",") if isinstance(value, str) else islice(value, _MOST_NAMES))]
    except (TypeError, AttributeError):
        raise ValueError(form) from None


def read_float(value: Any, low: float | None = None, high: float | None = None) -> float:
    """A finite number in [low, high]."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("not a number") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    check_range(number, low, high)
    return number


def check_range(number: Any, low: Any, high: Any) -> None:
    """ValueError outside [low, high]; None: no limit."""
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"not in {'' if low is None else low}..{'' if high is None else high}")


def read_flag(value: object) -> bool:
    """True or False, no other truth values."""
    if not isinstance(value, bool):
        raise ValueError("not True or False")
    return value


def read_choice(value: object, choices: Mapping[str, object]) -> Any:
    """One of the names of `choices`; the normal form is its value there."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"not one of {', '.join(choices)}")
    return choices[value]


def read_tune(value: object, choices: Mapping[str, bool]) -> str:
    """Names joined by commas, or a collection of them, as text; of those that exclude each other (True) at most one."""
    form = f"not one of {', '.join(choices)}, or a list of them"
    names = list(dict.fromkeys(_names(value, form)))
    if not names or any(name not in choices for name in names):
        raise ValueError(form)
    exclusive = [name for name in names if choices[name]]
    if len(exclusive) > 1:
        raise ValueError(f"{' and '.join(exclusive)} exclude each other")
    return ",".join(names)


def read_level(value: object, choices: Mapping[str, object]) -> Any:
    """A level by name or number: "4.1", 4.1, and 41 as in x264; 4 and 4.0 are level 4."""
    text = value if isinstance(value, str) or isinstance(value, bool) else str(value)
    if isinstance(text, str) and text not in choices:
        digits = text.removesuffix(".0")
        text = f"{digits[0]}.{digits[1]}".removesuffix(".0") if len(digits) == 2 and digits.isdigit() else digits
    if text not in choices:
        raise ValueError(f"not one of {', '.join(choices)}")
    return read_choice(text, choices)


def read_grid(value: object, choices: Mapping[str, object]) -> Any:
    """One of a few whole numbers, or of names."""
    return read_choice(value if isinstance(value, str) or isinstance(value, bool) else str(value), choices)


def read_text(value: object) -> str:
    """A possible file name, not empty."""
    try:
        text = operator.methodcaller("__fspath__")(value) if hasattr(value, "__fspath__") else value
        encoded = os.fsencode(text) if isinstance(text, str) else b""
    except (TypeError, UnicodeError):
        encoded = b""
    if not encoded or b"\0" in encoded or len(encoded) > _LONGEST_NAME:
        raise ValueError("not a file name")
    return str(text)


def is_ray_address(text: str) -> bool:
    """Whether a word after --ray is its value: auto, local, HOST:PORT, or an address of Ray with ://."""
    return text in ("auto", "local") or bool(re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+|[a-z]+://.*", text))


def read_ray(value: object) -> str:
    """The address of a cluster of Ray, "" for the one that is found or started."""
    if isinstance(value, str) and value.startswith("ray://"):
        raise ValueError("Ray Client is not supported: start the command on a machine of the cluster, as by ray job submit")
    if not isinstance(value, str) or (value and ("://" in value or not is_ray_address(value))):
        raise ValueError("not auto, local or HOST:PORT")
    return value


def read_fps(value: Any) -> Fraction:
    """Frames per second from 25, 29.97, "30000/1001" or a Fraction; exact if the value is.

    A decimal number that rounds 24000/1001, 30000/1001, 48000/1001, 60000/1001 or 120000/1001 to two digits or more means
    that.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, float):
            fps = _decimal(float.__repr__(value))  # 12.34 means 1234/100, not the binary fraction nearest to it
            if fps.denominator > 10000:  # a computed 30 / 1.001: the rational number that was meant
                fps = fps.limit_denominator(1001)
                # 29.97 of float32
                fps = next((exact for exact in _OF_NTSC if fps in (round(exact, 2), round(exact, 3))), fps)
        else:
            fps = _decimal(str(value)) if isinstance(value, str | Decimal) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ValueError("not a frame rate such as 25, 29.97 or 30000/1001") from None
    check_range(fps, FPS_LOW, FPS_HIGH)
    if max(fps.numerator, fps.denominator) > _LARGEST_FPS_TERM:
        raise ValueError(f"a fraction with terms above {_LARGEST_FPS_TERM}")
    return fps


def _decimal(text: str) -> Fraction:
    """Fraction of a number; 29.97 and the like mean the rate of NTSC."""
    rate = _fraction(text)
    digits = len(text.strip().partition(".")[2])
    if text.strip().replace(".", "", 1).isdecimal() and digits >= 2:
        return next((exact for exact in _OF_NTSC if round(exact, digits) == rate), rate)
    return rate


def _fraction(text: str) -> Fraction:
    """Fraction of a number with few digits: Fraction() makes as many digits as the exponent demands."""
    exponent = text.lower().partition("e")[2].lstrip("+-0_")
    if len(text) > _LONGEST_NUMBER or len(exponent) > 2:
        raise ValueError
    return Fraction(text)


def read_size(value: Any) -> tuple[int, int]:
    """(width, height) in samples from "352x288" or a pair."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(-?\d+)[xX](-?\d+)\s*", value)
        value = match.groups() if match else ()
    try:
        width, height = value
    except (TypeError, ValueError):
        raise ValueError("not a size such as 352x288") from None
    return read_int(width, 1, MOST_COUNT), read_int(height, 1, MOST_COUNT)


def read_keyint(value: object) -> int:
    """The largest distance of IDR frames; "infinite" as in x264."""
    return read_int(ENDLESS if value == "infinite" else value, 1, ENDLESS)


def read_sar(value: object) -> tuple[int, int]:
    """Sample aspect ratio (width, height) from "W:H"; 16-bit numbers in the VUI."""
    pair = _pair(value.as_integer_ratio() if isinstance(value, Fraction) else value, "W:H, such as 12:11")
    for number in pair:
        check_range(number, 1, 65535)
    return pair


def read_deblock(value: object) -> tuple[int, int] | bool:
    """(alpha, beta) offsets, -6..6, from "A:B", "A" (both) or a pair; False disables the filter."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and ":" not in value and "," not in value:
        value = f"{value}:{value}"
    pair = _pair(value, "A:B, such as 0:0 or -2:1")
    for number in pair:
        check_range(number, -6, 6)
    return pair


def read_psy_rd(value: object) -> float:
    """Strength of psy-RD from RD or RD:TRELLIS, a number, a text or a pair; TRELLIS only 0."""
    words = re.split("[:,]", value) if isinstance(value, str) else value if isinstance(value, tuple | list) else [value]
    if not 1 <= len(words) <= 2:
        raise ValueError("not of the form RD or RD:TRELLIS, such as 1 or 1:0")
    strength, of_trellis = (read_float(word, 0.0, 10.0) for word in (*words, 0)[:2])
    if of_trellis:
        raise ValueError("the trellis has no psy-RD, write RD:0")
    return strength


def read_mastering_display(value: Any) -> tuple[int, ...] | None:
    """D.1.29: (x, y) of green, blue, red and white, then most and least light, of x264's text or ten numbers; undef: None."""
    form = "not of the form G(x,y)B(x,y)R(x,y)WP(x,y)L(max,min)"
    if isinstance(value, str):
        if value == "undef":
            return None
        pair = r"\((\d{1,10}),(\d{1,10})\)"
        match = re.fullmatch("".join(f"{name}{pair}" for name in ("G", "B", "R", "WP", "L")), re.sub(r"\s", "", value))
        value = match.groups() if match else ()
    try:
        numbers = [read_int(number, 0, 2**32 - 1) for number in islice(value, 11)]
    except TypeError:
        raise ValueError(form) from None
    if len(numbers) != 10:
        raise ValueError(form)
    for number in numbers[:8]:
        check_range(number, 0, 50000)
    if numbers[9] >= numbers[8]:
        raise ValueError("the least light is not below the most")
    return tuple(numbers)


def read_cll(value: object) -> tuple[int, int] | None:
    """D.1.31: the most light of a sample and of a frame's mean, from "MAX,AVG" or a pair; undef: None."""
    if value == "undef":
        return None
    pair = _pair(value, "MAX,AVG, such as 1000,400")
    for number in pair:
        check_range(number, 0, 65535)
    return pair


def _pair(value: Any, form: str) -> tuple[int, int]:
    """Two whole numbers from "A:B", "A,B", "A/B" or a pair."""
    if isinstance(value, str):
        value = re.split(r"[:,/]", value)
    try:
        first, second = (read_int(word) for word in value)
    except (TypeError, ValueError):
        raise ValueError(f"not of the form {form}") from None
    return first, second


def read_partitions(value: object) -> frozenset[str]:
    """The partitions that may be used, from "all", "none", "p8x8,i4x4" or a collection of names."""
    form = f"not all, none or a list of {', '.join(PARTITIONS)}"
    chosen = set(_names(value, form))
    if chosen == {"all"}:
        return frozenset(PARTITIONS)
    if chosen == {"none"}:
        return frozenset()
    if _OF_B_FRAMES in chosen and "p8x8" not in chosen:
        raise ValueError(f"{_OF_B_FRAMES} needs p8x8 (B macroblocks are divided as P macroblocks are)")
    chosen.discard(_OF_B_FRAMES)
    if not chosen <= set(PARTITIONS):
        raise ValueError(form)
    if "p4x4" in chosen and "p8x8" not in chosen:
        raise ValueError("p4x4 needs p8x8 (sub-partitions of an 8x8 partition)")
    return frozenset(chosen)


def show(raw: object) -> str:
    """A value as the user wrote it, shortened to fit a line."""
    try:
        if isinstance(raw, Fraction) or (isinstance(raw, str) and raw and raw.isprintable()):
            text = str(raw)
        else:
            text = " ".join(repr(raw).split())  # arrays have lines
    except OF_VALUES:  # numbers of very many digits, and objects of the caller
        return f"a value of type {type(raw).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def read_option_file(name: str, option: str, most: int, encoding: str, otherwise: str) -> str:
    """The text of a file of up to `most` bytes; OptionError that names option, file and limit.

    otherwise: what is said of a file that is not in `encoding`.
    """
    try:
        return small_file(name, most, may_wait=True).decode(encoding)
    except OSError as error:
        check_of_file(error)
        raise OptionError(f"{name}: {error.strerror or error}", option) from None
    except UnicodeDecodeError:
        raise OptionError(f"{name}: {otherwise}", option) from None
    except ValueError as error:
        raise OptionError(f"{name}: {error}", option) from None


def lines_of(text: str) -> Iterator[str]:
    """Its lines one after another, for a list of many empty ones is far larger than the text."""
    return (line.rstrip("\n") for line in io.StringIO(text, newline=None))
