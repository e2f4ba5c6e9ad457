"""Reads frames of a file in threads, into buffers of the caller, while earlier frames are encoded."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...scheduler.frames.ring import READ_AHEAD_FRAMES
from ...scheduler.threads.readers import Readers
from ...uninterrupted import check_of_file
from ..errors import InputError
from .output import error_text

THREADS = 4  # readers of one pipeline
READ_BATCH = 2  # reads are started in pairs: half as many calls of a locked queue

Read = Callable[[np.ndarray], None]
"""Fills uint8[n], I420 of display size, with a frame; InputError if the frame is incomplete."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileReader:
    """Reads a frame of an open file from an offset in bytes into uint8[n]; InputError. name, number: for messages."""

    file: int  # descriptor
    name: str

    def __call__(self, buffer: np.ndarray, at: int, number: int) -> None:
        rest = buffer.data
        try:
            while rest and (got := os.preadv(self.file, [rest], at)):
                rest, at = rest[got:], at + got
        except OSError as error:
            check_of_file(error)
            raise InputError(f"{self.name}: {error_text(error)} while reading frame {number}") from None
        if rest:
            raise InputError(f"{self.name}: it has become shorter; frame {number} is missing")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileRead:
    """A Read with the position of its frame, for threads that read without the GIL."""

    file: int  # descriptor
    offset: int  # bytes
    number: int  # of the frame
    read: FileReader

    def __call__(self, buffer: np.ndarray) -> None:
        self.read(buffer, self.offset, self.number)


class ReadAhead:
    """The frames being read, in order."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._reads: deque[tuple[Read, np.ndarray, int | None]] = deque()

    def __len__(self) -> int:
        return len(self._reads)

    @property
    def room(self) -> int:
        """How many reads may be started now: READ_BATCH or 0."""
        return READ_BATCH if len(self) + READ_BATCH <= READ_AHEAD_FRAMES + 1 else 0

    def begin(self, read: Read, buffer: Callable[[int], np.ndarray | None]) -> None:
        """Start reading another frame; `buffer`: see FramePipeline.next_buffer."""
        target = buffer(len(self))
        assert target is not None
        ticket = self._readers.begin(read.file, read.offset, target) if isinstance(read, FileRead) else None
        self._reads.append((read, target, ticket))

    def each(self, reads: Iterator[Read], buffer: Callable[[int], np.ndarray | None]) -> Iterator[np.ndarray]:
        """The filled buffers of all reads, in order."""
        while True:
            while len(self) <= READ_AHEAD_FRAMES and (read := next(reads, None)) is not None:
                self.begin(read, buffer)
            if not self:
                return
            yield self.next()

    def next(self) -> np.ndarray:
        """The filled buffer of the next frame; InputError if it cannot be read."""
        read, buffer, ticket = self._reads.popleft()
        if ticket is None or self._readers.wait(ticket) < buffer.size:
            read(buffer)
        return buffer
