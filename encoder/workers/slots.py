"""Source frames in memory that worker processes share: an unnamed file, of which nothing is left after any end."""

import mmap
import os
import tempfile
import threading
from dataclasses import dataclass

import numpy as np

from ..errors import Error

_LEAST, _LARGEST = 4, 1 << 29  # slots, bytes of a block: no memory is taken before a frame is written


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
    """Slots that are used again; `used` counts those in use. Memory grows with the most that were in use at a time.

    They are mapped in blocks, each as large as all before, since a mapping keeps a descriptor.
    """

    def __init__(self, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        self._size = -(-frame_bytes // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self._lock = threading.Lock()
        self._free: list[Slot] = []
        self._count = self.used = 0
        self.file = -1

    def take(self) -> Slot:
        """A slot for the next frame; Error if there is no memory for it."""
        with self._lock:
            try:
                if not self._free:
                    self._grow()
            except OSError as error:  # limits of files count too
                text = "no memory for frames that worker processes share"
                raise Error(f"{text} ({error.strerror or error}): H264LITE_WORKERS=0 encodes without these") from None
            self.used += 1
            return self._free.pop()

    def give_back(self, slot: Slot) -> None:
        """No process reads the frame any more."""
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
        if getattr(self, "file", -1) >= 0:  # the lock is left alone: in a fork it may stay locked
            os.close(self.file)

    def _grow(self) -> None:
        if self.file < 0:
            self.file = _unnamed_file()
        at, count = self._count * self._size, max(_LEAST, min(self._count, max(1, _LARGEST // self._size)))
        os.ftruncate(self.file, at + count * self._size)
        block = np.frombuffer(mmap.mmap(self.file, count * self._size, offset=at), np.uint8).reshape(count, self._size)
        self._free += [Slot(self.file, at + k * self._size, block[k, : self._frame_bytes]) for k in reversed(range(count))]
        self._count += count


def _unnamed_file() -> int:
    """A file in memory, or where the system has none, one of the temporary folder that has no name any more."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("h264lite")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
