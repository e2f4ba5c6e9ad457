"""Options in x264's words as those of the table, and what is said about it; with `lenient` what is nearest."""

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from .option_types import OptionValues, show
from .x264_options import CLAMPED, DISPENSABLE, EQUAL, HINTS, IS_SWITCH, VALUES, Values, truth

_OF_MESSAGES = "log_level"  # whose values keyword arguments may have: they mean nothing there
_LARGEST_WORD = 99  # number among the values of EQUAL and VALUES: others are not made text


def translate(
    given: Mapping[str, object],
    rows: Mapping[str, object],
    known: Container[str],
    refusal: Callable[[str, object], str],
) -> tuple[OptionValues, list[str]]:
    """The options that `given` stands for, and a line for each that acts in another way than x264's.

    rows: the table of options, whose choices x264 takes in any case; known: names to which others may be translated;
    refusal: why an option that is none here is refused with a value, or "".
    """
    lenient = truth(given.get("lenient")) is True
    options: OptionValues = {}
    lines = []
    for name, written in given.items():
        value = _in_case(rows[name], written) if name in rows else written
        changes, line = _meaning(name, value, rows, refusal if lenient else None)
        is_level = name == _OF_MESSAGES and (value is None or (name, _word(value)) in EQUAL)
        options |= {key: new for key, new in changes.items() if key in known or (key == name and not is_level)}
        if line:
            lines.append(f"--{name.replace('_', '-')}{line}")
    return options, lines


def _meaning(
    name: str, value: object, rows: Mapping[str, object], refusal: Callable[[str, object], str] | None
) -> tuple[OptionValues, str]:
    """What one option stands for, and what follows its name in a line about it. refusal: None = not lenient."""
    if value is None:
        return ({name: value} if name in rows or name not in IS_SWITCH else {}), ""
    if name in HINTS:
        is_off = truth(value) is False and (IS_SWITCH[name] or name == "sync_lookahead")
        return {}, "" if is_off else f" has no effect: {HINTS[name]}"
    key = name, truth(value) if IS_SWITCH.get(name) else _word(value)
    if isinstance(key[1], str | bool) and key in EQUAL:
        return EQUAL[key], ""
    if name == "psy_rd" and (strength := _without_trellis(value)):
        return {name: strength}, f" {show(value)} acts as {strength}: the trellis has no psy-RD"
    if refusal is None:
        return {name: value}, ""
    if name in DISPENSABLE:
        why = refusal(name, value)
        return ({}, f" is left out: {why}") if why else ({name: value}, "")
    other = value_of_x264(name, value)
    taken = other.nearest if other is not None else nearest(rows[name], value) if name in rows else ""
    return ({name: taken}, f" {show(value)}: {taken} is taken, the nearest") if taken else ({name: value}, "")


def _in_case(row: Any, value: object) -> object:
    """A name of the option's choices in any case, or of several with commas, in that of the table; a preset's number as its
    name; other values as they are.
    """
    word = _word(value)
    if word is None or row.choices is None or word in row.choices:
        return value
    if row.name == "preset" and word.isdecimal() and word.isascii() and int(word) < len(row.choices):
        return list(row.choices)[int(word)]
    known = {choice.lower(): choice for choice in row.choices}
    parts = [part.strip().lower() for part in word.split(",")]
    return ",".join(known[part] for part in parts) if all(part in known for part in parts) else value


def value_of_x264(name: str, value: object) -> Values | None:
    """The row of a value that only x264 has; None for others."""
    word = _word(value)
    return next((row for row in VALUES if row.name == name and word in row.values), None)


def nearest(row: Any, value: object) -> str:
    """The number within the range of an option that is nearest to a value beyond it, which x264 takes; "" for others."""
    if row.name not in CLAMPED or isinstance(value, bool):
        return ""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return ""
    if math.isnan(number) or row.low <= number <= row.high:
        return ""
    return f"{row.low if number < row.low else row.high:g}"


def _word(value: object) -> str | None:
    """A value as the command line has it, if it can be one of few words or numbers."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and abs(value) <= _LARGEST_WORD else None


def _without_trellis(value: object) -> str:
    """RD of RD:TRELLIS with a TRELLIS that x264 has, beside 0; "" for other values."""
    words = value.replace(",", ":").split(":") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or len(words) != 2:
        return ""
    try:
        strength, of_trellis = map(float, words)
    except (TypeError, ValueError, OverflowError):
        return ""
    return f"{strength:g}" if 0 < of_trellis <= 10 and 0 <= strength <= 10 else ""
