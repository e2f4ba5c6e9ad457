"""Parsing of boxes: bounded by the file and by limits, wrong sizes refused by the name of the box."""

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from ..standard.bits import BitstreamError

LARGEST_MOVIE = 1 << 28  # bytes of moov or moof: tens of millions of samples


class Place(NamedTuple):
    """A box of the file: its contents are the bytes [begin, end)."""

    kind: str
    start: int  # of its header
    begin: int
    end: int


class Contents:
    """The contents of a box in memory, read in order or at a place; BitstreamError beyond their end."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self._data, self.name, self._at = memoryview(data), name, 0

    @property
    def left(self) -> int:
        """Bytes after the last that was read."""
        return len(self._data) - self._at

    def read(self, form: str) -> tuple[Any, ...]:
        """Values by a format of `struct`, big-endian."""
        values = self.at(self._at, form)
        self._at += struct.calcsize(">" + form)
        return values

    def at(self, place: int, form: str) -> tuple[Any, ...]:
        """Values at a byte of the contents."""
        try:
            return struct.unpack_from(">" + form, self._data, place)
        except struct.error:
            raise BitstreamError(f"box {self.name} is too short: {len(self._data)} bytes") from None

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.left:
            raise BitstreamError(f"box {self.name} is too short: {len(self._data)} bytes")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def rest(self) -> "Contents":
        """What was not read."""
        return Contents(self._data[self._at :], self.name)

    def version_and_flags(self) -> tuple[int, int]:
        """4.2: what a FullBox begins with."""
        (word,) = self.read("I")
        return word >> 24, word & 0xFFFFFF

    def table(self, form: str) -> tuple[int, int]:
        """(place, rows) of the rest, which begins with the number of its rows; BitstreamError if there are fewer."""
        (rows,) = self.read("I")
        size = struct.calcsize(">" + form)
        if rows * size > self.left:
            raise BitstreamError(f"box {self.name} names {rows} entries and has room for {self.left // size}")
        return self._at, rows

    def boxes(self) -> "Iterator[Contents]":
        """4.2: the boxes inside, from where it was read to. Bytes that are no box end them: some writers leave four."""
        at = self._at
        while at + 8 <= len(self._data):
            size, kind = struct.unpack_from(">I4s", self._data, at)
            begin = at + 8
            if size == 1:
                (size,) = self.at(begin, "Q")
                begin += 8
            end = len(self._data) if size == 0 else at + size
            name = printable(kind)
            if end < begin or end > len(self._data):
                raise BitstreamError(f"box {name} in {self.name} of {size} bytes, with {len(self._data) - at} left")
            yield Contents(self._data[begin:end], name)
            at = end

    def only(self, name: str) -> "Contents":
        """The box of that name; BitstreamError if it is missing."""
        found = self.first(name)
        if found is None:
            raise BitstreamError(f"box {self.name} has no {name}")
        return found

    def first(self, name: str) -> "Contents | None":
        """The first box of that name, or None."""
        return next((inner for inner in self.boxes() if inner.name == name), None)


def printable(kind: bytes) -> str:
    """A four-character code as text."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in kind)


def places(file: BinaryIO, size: int) -> Iterator[Place]:
    """4.2: the boxes of a file of `size` bytes. The last one may be cut off: its end is that of the file."""
    at = 0
    while at + 8 <= size:
        file.seek(at)
        head = file.read(16)
        length, kind = struct.unpack_from(">I4s", head)
        begin = at + 8
        if length == 1 and len(head) == 16:
            (length,) = struct.unpack_from(">Q", head, 8)
            begin += 8
        end = size if length == 0 else at + length
        if end < begin:
            raise BitstreamError(f"box {printable(kind)} of {length} bytes at byte {at}")
        yield Place(printable(kind), at, begin, min(end, size))
        at = end


def contents(file: BinaryIO, place: Place) -> Contents:
    """The contents of a box of the file, in memory; BitstreamError above LARGEST_MOVIE."""
    size = place.end - place.begin
    if size > LARGEST_MOVIE:
        raise BitstreamError(f"box {place.kind} of {size} bytes is too large")
    file.seek(place.begin)
    return Contents(file.read(size), place.kind)


def length(file: BinaryIO) -> int:
    """The size of a file in bytes."""
    return file.seek(0, os.SEEK_END)
