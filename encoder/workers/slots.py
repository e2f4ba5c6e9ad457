"""Source frames in memory that worker processes share: an unnamed file, of which nothing is left after any end."""

import mmap
import os
import tempfile
import threading
from dataclasses import dataclass

import numpy as np


@dataclass(eq=False, slots=True)
class Slot:
    """The place of one frame: in the file, and here as `buffer`, uint8[frame_bytes]."""

    file: int  # descriptor
    offset: int  # bytes
    buffer: np.ndarray

    def __call__(self, target: np.ndarray) -> None:
        """As a Read."""
        target[:] = self.buffer


class Slots:
    """Slots that are used again; `used` counts those in use. Memory grows to the most that were in use at a time."""

    def __init__(self, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        self._size = -(-frame_bytes // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self._lock = threading.Lock()
        self._free: list[Slot] = []
        self._count = self.used = 0
        self.file = -1

    def take(self) -> Slot:
        """A slot for the next frame."""
        with self._lock:
            slot = self._free.pop() if self._free else self._new()
            self.used += 1
            return slot

    def give_back(self, slot: Slot) -> None:
        """Nobody reads the frame any more."""
        with self._lock:
            self._free.append(slot)
            self.used -= 1

    def close(self) -> None:
        """Release the file; its memory is freed when no process maps it."""
        with self._lock:
            self._free = []
            if self.file >= 0:
                os.close(self.file)
                self.file = -1

    def __del__(self) -> None:
        self.close()

    def _new(self) -> Slot:
        if self.file < 0:
            self.file = _unnamed_file()
        at = self._count * self._size
        os.ftruncate(self.file, at + self._size)
        memory = mmap.mmap(self.file, self._size, offset=at)
        self._count += 1
        return Slot(self.file, at, np.frombuffer(memory, np.uint8)[: self._frame_bytes])


def _unnamed_file() -> int:
    """A file in memory, or where the system has none, one of the temporary folder that has no name any more."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("h264lite")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
