"""The source frames of a chunk on their way to a worker: a part of a file that it can open, or objects of Ray."""

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..encoder.errors import InputError
from ..encoder.files.read_ahead import FileRead, Read
from ..encoder.workers.chunk import FileFrames
from ..scheduler.frame_spec import FrameSpec

PARCEL_BYTES = 16 << 20  # of frames in one object: each object costs about a millisecond


class NotHere(Exception):
    """The file of a chunk is not on this machine, or is another one."""


@dataclass(frozen=True)
class FilePart:
    """Frames of a raw file at the same path on all machines, as FileFrames.

    size: of the file in bytes; checksum: CRC-32 of the first frame of the chunk, by which a copy is recognised.
    """

    frames: FileFrames
    size: int
    checksum: int
    frame_bytes: int

    @classmethod
    def of(cls, path: str, reads: Sequence[FileRead], frame_bytes: int) -> "FilePart":
        """The frames of these reads."""
        buffer = np.empty(frame_bytes, np.uint8)
        reads[0](buffer)
        frames = FileFrames(path, tuple(read.offset for read in reads))
        return cls(frames, os.fstat(reads[0].file).st_size, zlib.crc32(buffer.data), frame_bytes)

    def reads(self, specs: Sequence[FrameSpec], opened: Callable[[int], None]) -> list[Read]:
        """See FileFrames. Raises NotHere."""
        try:
            reads = self.frames.reads(specs, opened)
            buffer = np.empty(self.frame_bytes, np.uint8)
            reads[0](buffer)
        except InputError as error:
            raise NotHere(str(error)) from None
        if os.stat(self.frames.path).st_size != self.size or zlib.crc32(buffer.data) != self.checksum:
            raise NotHere(f"{self.frames.path} has other content here")
        return reads


@dataclass
class Shipped:
    """Frames as objects of Ray, in coding order: `add` in the process that has them, `reads` where they are encoded.

    parcels: references to uint8[n, frame_bytes]; each but for the last one has `length` frames.
    """

    frame_bytes: int
    parcels: list[Any] = field(default_factory=list)
    count: int = 0
    _waiting: list[np.ndarray] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Frames of a parcel."""
        return max(1, PARCEL_BYTES // self.frame_bytes)

    @property
    def bytes(self) -> int:
        """Of all frames."""
        return self.count * self.frame_bytes

    def add(self, buffer: np.ndarray) -> None:
        """The next frame, uint8[frame_bytes], is copied."""
        row = self.count % self.length
        if not row:
            self._waiting.append(np.empty((self.length, self.frame_bytes), np.uint8))
        self._waiting[0][row] = buffer
        self.count += 1
        if row == self.length - 1:
            self.finish()

    def finish(self) -> None:
        """Put away the frames that were added since the last full parcel."""
        import ray

        if self._waiting:
            rows = (self.count - 1) % self.length + 1
            self.parcels.append(ray.put(self._waiting.pop()[:rows]))

    def reads(self, specs: Sequence[FrameSpec], opened: Callable[[int], None]) -> list[Read]:
        """See FileFrames."""
        parcel = _Parcel(self.parcels)
        return [_Row(parcel, *divmod(k, self.length)) for k in range(self.count)]


class _Parcel:
    """The parcel that is being read: frames are read in order."""

    def __init__(self, parcels: list[Any]) -> None:
        self._parcels, self._number, self._samples = parcels, -1, np.empty(0)

    def __getitem__(self, number: int) -> np.ndarray:
        if number != self._number:
            import ray

            self._number, self._samples = number, ray.get(self._parcels[number])
        return self._samples


@dataclass(frozen=True)
class _Row:
    parcel: _Parcel
    number: int
    row: int

    def __call__(self, buffer: np.ndarray) -> None:
        buffer[:] = self.parcel[self.number][self.row]
