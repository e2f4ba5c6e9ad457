"""Pictures of a file, read by threads to where they are wanted while earlier ones are encoded.

Several are read by one call: to wake a thread, and to have the interpreter's lock back from it, takes nearly as long as all
that Python has to do with a picture whose bits a card writes.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import islice

import numpy as np

TOGETHER, CALLS = 2, 4  # pictures that a call reads, and calls that may be under way
AHEAD = TOGETHER * CALLS - 1  # pictures that may be on their way behind the next one

Read = Callable[[Sequence[np.ndarray]], int]
"""Fills uint8[n] each, I420 of display size, with a picture and those behind it. How many became whole, at least the first:
InputError if not even that."""


class ReadAhead:
    """Pictures that are being read, in order."""

    def __init__(self, readers: Executor) -> None:
        self._readers = readers
        self._coming: deque[tuple[Read, np.ndarray, Future[int], int]] = deque()

    def __len__(self) -> int:
        return len(self._coming)

    @property
    def room(self) -> int:
        """How many may be begun now: TOGETHER, or none."""
        return TOGETHER if len(self) + TOGETHER <= AHEAD + 1 else 0

    def begin(self, reads: Sequence[Read], buffer: Callable[[int], np.ndarray | None]) -> None:
        """Read pictures that lie one behind the other; `buffer`: see Pipeline.next_buffer."""
        places: list[np.ndarray] = []
        for k in range(len(self), len(self) + len(reads)):
            place = buffer(k)
            assert place is not None
            places.append(place)
        reading = self._readers.submit(reads[0], places)
        self._coming.extend((read, place, reading, k) for k, (read, place) in enumerate(zip(reads, places)))

    def each(self, reads: Iterator[Read], buffer: Callable[[int], np.ndarray | None]) -> Iterator[np.ndarray]:
        """The places of all of them, read, one after another."""
        while True:
            while self.room and (some := list(islice(reads, self.room))):
                self.begin(some, buffer)
            if not self:
                return
            yield self.next()

    def next(self) -> np.ndarray:
        """The place of the next one, read; InputError if it cannot be."""
        read, place, reading, k = self._coming.popleft()
        if k >= reading.result():
            read([place])
        return place
