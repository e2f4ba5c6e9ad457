"""Reads frames of a file in threads, into given buffers, while earlier frames are encoded."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...scheduler.frames.ring import READ_AHEAD_FRAMES
from ...scheduler.threads.readers import Readers

THREADS = 4  # readers of one pipeline
READ_BATCH = 2  # reads are started in pairs: half as many calls of a locked queue

Read = Callable[[np.ndarray], None]
"""Fills uint8[n], I420 of display size, with a frame; InputError if the frame is incomplete."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A Read with the position of its frame, for threads that read without the GIL."""

    file: int  # descriptor
    offset: int  # bytes
    number: int  # of the frame
    read: Callable[[np.ndarray, int, int], None]

    def __call__(self, place: np.ndarray) -> None:
        self.read(place, self.offset, self.number)


class ReadAhead:
    """The frames being read, in order."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._coming: deque[tuple[Read, np.ndarray, int | None]] = deque()

    def __len__(self) -> int:
        return len(self._coming)

    @property
    def room(self) -> int:
        """How many reads may be started now: READ_BATCH or 0."""
        return READ_BATCH if len(self) + READ_BATCH <= READ_AHEAD_FRAMES + 1 else 0

    def begin(self, read: Read, buffer: Callable[[int], np.ndarray | None]) -> None:
        """Start reading another frame; `buffer`: see Pipeline.next_buffer."""
        place = buffer(len(self))
        assert place is not None
        ticket = self._readers.begin(read.file, read.offset, place) if isinstance(read, FileRead) else None
        self._coming.append((read, place, ticket))

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
        read, place, ticket = self._coming.popleft()
        if ticket is None or self._readers.came(ticket) < place.size:
            read(place)
        return place
