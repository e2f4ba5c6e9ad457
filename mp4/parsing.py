"""Parsing of boxes: bounded by the file and by limits, wrong sizes refused by the name of the box."""

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from ..standard.bits import BitstreamError

LARGEST_MOVIE = 1 << 28  # bytes of moov or moof: tens of millions of samples
_HEADER = struct.Struct(">I4s")  # of a box: size, box_type


class FileBox(NamedTuple):
    """A box of the file: its contents are the bytes [begin, end)."""

    box_type: str
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

    def at(self, offset: int, form: str) -> tuple[Any, ...]:
        """Values at a byte of the contents."""
        try:
            return struct.unpack_from(">" + form, self._data, offset)
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

    def rows(self, form: str, count: int, what: str = "entries") -> Iterator[tuple[Any, ...]]:
        """The next `count` rows of a table; BitstreamError if there are fewer."""
        size = struct.calcsize(">" + form)
        if count * size > self.left:
            raise BitstreamError(f"box {self.name} names {count} {what} and has room for {self.left // size}")
        begin, self._at = self._at, self._at + count * size
        return struct.iter_unpack(">" + form, self._data[begin : self._at])

    def boxes(self, name: str = "") -> "Iterator[Contents]":
        """4.2: the boxes inside, from where it was read to: all, or those of a name.

        Bytes that are no box end them: some writers leave four.
        """
        at, wanted = self._at, name.encode()
        while at + 8 <= len(self._data):
            size, box_type = _HEADER.unpack_from(self._data, at)
            begin = at + 8
            if size == 1:
                (size,) = self.at(begin, "Q")
                begin += 8
            end = len(self._data) if size == 0 else at + size
            if end < begin or end > len(self._data):
                left = len(self._data) - at
                raise BitstreamError(f"box {printable(box_type)} in {self.name} of {size} bytes, with {left} left")
            if not wanted or box_type == wanted:  # a box costs little until it is the one: there may be millions
                yield Contents(self._data[begin:end], printable(box_type))
            at = end

    def only(self, name: str) -> "Contents":
        """The box of that name; BitstreamError if it is missing."""
        box = self.first(name)
        if box is None:
            raise BitstreamError(f"box {self.name} has no {name}")
        return box

    def first(self, name: str) -> "Contents | None":
        """The first box of that name, or None."""
        return next(self.boxes(name), None)


def printable(box_type: bytes) -> str:
    """A four-character code as text."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in box_type)


def file_boxes(file: BinaryIO, size: int) -> Iterator[FileBox]:
    """4.2: the boxes of a file of `size` bytes. The last one may be cut off: its end is that of the file."""
    at = 0
    while at + 8 <= size:
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            raise _shorter(at + len(head), size)
        length, box_type = _HEADER.unpack_from(head)
        begin = at + 8
        if length == 1 and len(head) == 16:
            (length,) = struct.unpack_from(">Q", head, 8)
            begin += 8
        end = size if length == 0 else at + length
        if end < begin:
            raise BitstreamError(f"box {printable(box_type)} of {length} bytes at byte {at}")
        yield FileBox(printable(box_type), at, begin, min(end, size))
        at = end


def contents(file: BinaryIO, box: FileBox) -> Contents:
    """The contents of a box of the file, in memory; BitstreamError above LARGEST_MOVIE."""
    size = box.end - box.begin
    if size > LARGEST_MOVIE:
        raise BitstreamError(f"box {box.box_type} of {size} bytes is too large")
    return Contents(read_at(file, box.begin, size), box.box_type)


def read_at(file: BinaryIO, position: int, size: int) -> bytes:
    """Bytes that lie in the file by its size; BitstreamError where it has become shorter since."""
    file.seek(position)
    data = file.read(size)
    if len(data) < size:
        raise _shorter(position + len(data), position + size)
    return data


def _shorter(end: int, wanted: int) -> BitstreamError:
    return BitstreamError(f"the file has become shorter while it was read: it ends at byte {end}, not behind {wanted}")


def length(file: BinaryIO) -> int:
    """The size of a file in bytes."""
    return file.seek(0, os.SEEK_END)
