"""What a movie says of itself: metadata as iTunes and QuickTime have it, and chapters; boxes of moov, written and read.

Metadata: ISO/IEC 14496-12, 8.11 (meta), Apple's QuickTime File Format, "Metadata" (keys, ilst). Chapters: box chpl of udta,
which no standard has, as MP4 tools write and read it.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..standard.bits import BitstreamError
from .boxes import box, full_box
from .parsing import Contents

# Names that people and FFmpeg use, by the types of iTunes' boxes; others are keys of mdta
_OF_ITUNES = {
    "title": b"\xa9nam", "artist": b"\xa9ART", "album_artist": b"aART", "composer": b"\xa9wrt", "album": b"\xa9alb",
    "date": b"\xa9day", "comment": b"\xa9cmt", "genre": b"\xa9gen", "copyright": b"cprt", "grouping": b"\xa9grp",
    "lyrics": b"\xa9lyr", "description": b"desc", "synopsis": b"ldes", "show": b"tvsh", "episode_id": b"tven",
    "network": b"tvnn", "keywords": b"keyw",
}  # fmt: skip
_TEXT = 1  # well-known type of a value: UTF-8
MOST_CHAPTERS, _LONGEST_TITLE = 255, 255  # a byte each
_CHAPTER_CLOCK = 10_000_000  # units a second
_LARGEST_TEXT = 1 << 20  # bytes of a value
_MOST_READ = 1000  # values
_NAMES = {box_type: name for name, box_type in _OF_ITUNES.items()}


class FileTags(NamedTuple):
    """Metadata by name, in order; chapters: seconds at which each begins, and its title, in order."""

    metadata: Mapping[str, str] = {}
    chapters: Sequence[tuple[Fraction, str]] = ()

    def __bool__(self) -> bool:
        return bool(self.metadata or self.chapters)

    @property
    def has_keys(self) -> bool:
        """Whether a name is none of iTunes'."""
        return any(name.lower() not in _OF_ITUNES for name in self.metadata)

    def boxes(self) -> bytes:
        """udta and meta, which stand at the end of moov; ValueError for what does not fit."""
        of_itunes = {_OF_ITUNES[name.lower()]: text for name, text in self.metadata.items() if name.lower() in _OF_ITUNES}
        others = {name: text for name, text in self.metadata.items() if name.lower() not in _OF_ITUNES}
        of_user = [_chapters(self.chapters)] if self.chapters else []
        if of_itunes:
            values = b"".join(box(box_type, _value(text)) for box_type, text in of_itunes.items())
            of_user.append(full_box(b"meta", 0, 0, _handler(b"mdir", b"appl"), box(b"ilst", values)))
        return (box(b"udta", *of_user) if of_user else b"") + (_with_keys(others) if others else b"")


def _value(text: str) -> bytes:
    """The box data of a value: type, no locale, UTF-8."""
    data = text.encode()
    if len(data) > _LARGEST_TEXT:
        raise ValueError(f"metadata of {len(data)} bytes: not more than {_LARGEST_TEXT}")
    return box(b"data", struct.pack(">II", _TEXT, 0), data)


def _handler(handler_type: bytes, maker: bytes = bytes(4)) -> bytes:
    """8.4.3: hdlr of meta, which says how it is to be read."""
    return full_box(b"hdlr", 0, 0, struct.pack(">I4s4s8x", 0, handler_type, maker), b"\0")


def _with_keys(metadata: Mapping[str, str]) -> bytes:
    """meta with handler mdta: the names of the values, then the values by the places of their names, from 1 on."""
    names = [name.encode() for name in metadata]
    keys = b"".join(struct.pack(">I4s", 8 + len(name), b"mdta") + name for name in names)
    values = b"".join(box(struct.pack(">I", index), _value(text)) for index, text in enumerate(metadata.values(), 1))
    head = full_box(b"keys", 0, 0, struct.pack(">I", len(names)), keys)
    return full_box(b"meta", 0, 0, _handler(b"mdta"), head, box(b"ilst", values))


def _chapters(chapters: Sequence[tuple[Fraction, str]]) -> bytes:
    """chpl, version 1: 32 bits that are reserved, then the number in a byte: begin in units of 100 ns, title."""
    if len(chapters) > MOST_CHAPTERS:
        raise ValueError(f"{len(chapters)} chapters: not more than {MOST_CHAPTERS}")
    entries = []
    for begin, title in chapters:
        text = title.encode()[:_LONGEST_TITLE].decode(errors="ignore").encode()  # whole characters
        entries.append(struct.pack(">QB", round(begin * _CHAPTER_CLOCK), len(text)) + text)
    return full_box(b"chpl", 1, 0, struct.pack(">IB", 0, len(entries)), *entries)


def read_tags(movie: Contents) -> FileTags:
    """Those of a moov, as `FileTags.boxes` and other MP4 tools write them; what is damaged in them is left out."""
    metadata: dict[str, str] = {}
    chapters: list[tuple[Fraction, str]] = []
    try:
        for user in movie.boxes("udta"):
            for meta in user.boxes("meta"):
                metadata.update(_read_values(meta))
            for table in user.boxes("chpl"):
                chapters.extend(_read_chapters(table))
        for meta in movie.boxes("meta"):
            metadata.update(_read_values(meta))
    except BitstreamError:
        pass
    return FileTags(metadata, chapters)


def _read_values(meta: Contents) -> Iterator[tuple[str, str]]:
    """Names and texts of a meta, which QuickTime has without version and flags."""
    if meta.at(4, "4s") != (b"hdlr",):
        meta.version_and_flags()
    inside = meta.rest()
    keys, values = inside.first("keys"), inside.first("ilst")
    names = {} if keys is None else dict(_read_keys(keys))
    for _ in range(_MOST_READ):
        if values is None or values.left < 8:
            return
        size, box_type = values.read("I4s")
        data = Contents(values.take(max(0, size - 8)), "ilst").first("data")
        name = names.get(int.from_bytes(box_type)) or _NAMES.get(box_type)
        if name and data is not None and data.read("II")[0] == _TEXT and data.left <= _LARGEST_TEXT:
            yield name, data.take(data.left).decode(errors="replace")


def _read_keys(keys: Contents) -> Iterator[tuple[int, str]]:
    """Numbers, from 1 on, and names."""
    keys.version_and_flags()
    (count,) = keys.read("I")
    for number in range(1, min(count, _MOST_READ) + 1):
        size, _ = keys.read("I4s")
        yield number, keys.take(max(0, size - 8)).decode(errors="replace")


def _read_chapters(table: Contents) -> Iterator[tuple[Fraction, str]]:
    """Beginnings in seconds, and titles."""
    version, _ = table.version_and_flags()
    if version:
        table.take(4)
    for _ in range(table.read("B")[0]):
        begin, size = table.read("QB")
        yield Fraction(begin, _CHAPTER_CLOCK), table.take(size).decode(errors="replace")
