"""Pictures of a file, read by threads to where they are wanted while earlier ones are encoded."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...scheduler.threads.readers import Readers

THREADS = 4  # that read for one pipeline
READ_AHEAD_FRAMES = 7  # pictures that may be on their way behind the next one
READ_BATCH = 2  # pictures that are begun at once: who asks a queue for them asks less often

Read = Callable[[np.ndarray], None]
"""Fills uint8[n], I420 of display size, with a picture; InputError if it does not become whole."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A Read, and where its picture lies, for threads that read without the interpreter."""

    file: int  # descriptor
    offset: int  # bytes
    number: int  # of the frame
    read: Callable[[np.ndarray, int, int], None]

    def __call__(self, place: np.ndarray) -> None:
        self.read(place, self.offset, self.number)


class ReadAhead:
    """Pictures that are being read, in order."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._coming: deque[tuple[Read, np.ndarray, int | None]] = deque()

    def __len__(self) -> int:
        return len(self._coming)

    @property
    def room(self) -> int:
        """How many may be begun now: TOGETHER, or none."""
        return READ_BATCH if len(self) + READ_BATCH <= READ_AHEAD_FRAMES + 1 else 0

    def begin(self, read: Read, buffer: Callable[[int], np.ndarray | None]) -> None:
        """Read another picture; `buffer`: see Pipeline.next_buffer."""
        place = buffer(len(self))
        assert place is not None
        ticket = self._readers.begin(read.file, read.offset, place) if isinstance(read, FileRead) else None
        self._coming.append((read, place, ticket))

    def each(self, reads: Iterator[Read], buffer: Callable[[int], np.ndarray | None]) -> Iterator[np.ndarray]:
        """The places of all of them, read, one after another."""
        while True:
            while len(self) <= READ_AHEAD_FRAMES and (read := next(reads, None)) is not None:
                self.begin(read, buffer)
            if not self:
                return
            yield self.next()

    def next(self) -> np.ndarray:
        """The place of the next one, read; InputError if it cannot be."""
        read, place, ticket = self._coming.popleft()
        if ticket is None or self._readers.came(ticket) < place.size:
            read(place)
        return place
