"""The options of a writer that are no encoder's: what a file says beside its frames, and how their times count."""

from collections.abc import Iterable, Mapping, MutableMapping
from fractions import Fraction
from math import inf
from typing import NamedTuple

from ..mp4.tags import FileTags
from .errors import OptionError
from .given_times import read_time_base
from .settings.option_types import OF_VALUES, show
from .settings.options import BY_NAME

CHUNK = "chunk"
_LATEST = 1_000_000_000  # seconds


class FileOptions(NamedTuple):
    """Checked. fragment: seconds; infinite: ends with each chunk; None: no fragments."""

    fragment: float | None
    time_base: Fraction | None
    tags: FileTags


def take_file_options(fragment: object, options: MutableMapping[str, object]) -> FileOptions:
    """Take those of a writer out of `options`; OptionError."""
    time_base, metadata, chapters = (options.pop(name, None) for name in ("time_base", "metadata", "chapters"))
    is_chunk = isinstance(fragment, str) and fragment == CHUNK
    seconds = inf if is_chunk else None if fragment is None else BY_NAME["fragment"].value(fragment)
    tags = FileTags(_metadata(metadata), _chapters(chapters))
    try:
        tags.boxes()
    except ValueError as error:
        raise OptionError(str(error), "metadata") from None
    return FileOptions(seconds, None if time_base is None else read_time_base(time_base), tags)


def _metadata(value: object) -> dict[str, str]:
    """Texts by name; numbers become texts."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionError(f"{show(value)}: not names and texts, such as {{'title': 'A clip'}}", "metadata")
    texts = {}
    for name, text in value.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise OptionError(f"{show(name)}: not a name", "metadata")
        if not isinstance(text, str | int | float):
            raise OptionError(f"{name}: {show(text)}: not a text", "metadata")
        texts[name] = _text(str(text), "metadata")
    return texts


def _chapters(value: object) -> tuple[tuple[Fraction, str], ...]:
    """(seconds, title) in order."""
    form = "not pairs of seconds and title, in order, such as [(0, 'Start'), (12.5, 'End')]"
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"{show(value)}: {form}", "chapters")
    chapters: list[tuple[Fraction, str]] = []
    for entry in value:
        try:
            seconds, title = entry
            begin = Fraction(seconds)
            if not isinstance(title, str) or not 0 <= begin < _LATEST or (chapters and begin < chapters[-1][0]):
                raise ValueError
        except OF_VALUES:
            raise OptionError(f"{show(entry)}: {form}", "chapters") from None
        chapters.append((begin, _text(title, "chapters")))
    return tuple(chapters)


def _text(text: str, option: str) -> str:
    try:
        text.encode()
    except UnicodeError:
        raise OptionError(f"{show(text)}: no Unicode text", option) from None
    return text
