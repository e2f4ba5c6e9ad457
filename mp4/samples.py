"""The sample table of a track: sizes, times, keyframes and places of its samples (ISO/IEC 14496-12, 8.6 and 8.7)."""

import struct
import sys
from array import array
from typing import NamedTuple

from .boxes import LARGEST_32, box, full_box


class Sample(NamedTuple):
    """One frame in coding order; times in units of the track's timescale."""

    size: int  # bytes
    duration: int  # to the decoding time of the next sample
    offset: int  # composition (output) time minus decoding time
    is_keyframe: bool
    shown: int = 0  # how long it is shown, for the one shown last; 0: `duration`


class SampleTable:
    """Collects the samples of a file and writes stbl: four bytes a frame, and runs of equal times."""

    def __init__(self) -> None:
        self.duration = 0  # of all samples, in decoding time
        self.end = 0  # composition time of the end of the frame shown last
        self._last = -1  # composition time of that frame
        self.count = 0
        self.bytes = 0
        self._sizes = array("I")
        self._durations: list[list[int]] = []  # [count, value]
        self._offsets: list[list[int]] = []
        self._keyframes = array("I")  # sample numbers, from 1
        self._chunks: list[tuple[int, int]] = []  # samples, position

    def add_chunk(self, samples: list[Sample], position: int) -> None:
        """Samples that lie one after another from byte `position` on, of the file or of the media data."""
        self._chunks.append((len(samples), position))
        for sample in samples:
            self.count += 1
            composition = self.duration + sample.offset
            if composition > self._last:
                self._last, self.end = composition, composition + (sample.shown or sample.duration)
            self.duration += sample.duration
            self.bytes += sample.size
            self._sizes.append(sample.size)
            _extend(self._durations, sample.duration)
            _extend(self._offsets, sample.offset)
            if sample.is_keyframe:
                self._keyframes.append(self.count)

    def chunks(self) -> list[tuple[int, int]]:
        """(position, bytes) of each chunk."""
        chunks, first = [], 0
        for count, position in self._chunks:
            chunks.append((position, sum(self._sizes[first : first + count])))
            first += count
        return chunks

    def boxes(self, sample_entry: bytes, positions: list[int]) -> bytes:
        """8.5.1: stbl, with chunks at `positions`, bytes from the beginning of the file."""
        boxes = [_descriptions(sample_entry), full_box(b"stts", 0, 0, _runs(self._durations, "I"))]
        if any(value for _, value in self._offsets):
            signed = any(value < 0 for _, value in self._offsets)
            boxes.append(full_box(b"ctts", int(signed), 0, _runs(self._offsets, "i" if signed else "I")))
        if len(self._keyframes) < self.count:
            boxes.append(full_box(b"stss", 0, 0, _counted(self._keyframes)))
        boxes.append(full_box(b"stsc", 0, 0, self._samples_of_chunks()))
        boxes.append(full_box(b"stsz", 0, 0, struct.pack(">I", 0), _counted(self._sizes)))
        large = bool(positions) and positions[-1] > LARGEST_32
        code = "Q" if large else "I"
        boxes.append(full_box(b"co64" if large else b"stco", 0, 0, _counted(array(code, positions))))
        return box(b"stbl", *boxes)

    def _samples_of_chunks(self) -> bytes:
        """8.7.4: stsc: chunks that hold as many samples as the one before are not named."""
        rows, last = [], 0
        for number, (count, _) in enumerate(self._chunks, 1):
            if count != last:
                rows.append(struct.pack(">III", number, count, 1))
                last = count
        return struct.pack(">I", len(rows)) + b"".join(rows)


def empty_table(sample_entry: bytes) -> bytes:
    """8.5.1: stbl of a file whose samples are in fragments."""
    none = struct.pack(">I", 0)
    return box(
        b"stbl",
        _descriptions(sample_entry),
        full_box(b"stts", 0, 0, none),
        full_box(b"stsc", 0, 0, none),
        full_box(b"stsz", 0, 0, none, none),
        full_box(b"stco", 0, 0, none),
    )


def _descriptions(sample_entry: bytes) -> bytes:
    return full_box(b"stsd", 0, 0, struct.pack(">I", 1), sample_entry)


def _extend(runs: list[list[int]], value: int) -> None:
    if runs and runs[-1][1] == value:
        runs[-1][0] += 1
    else:
        runs.append([1, value])


def _runs(runs: list[list[int]], code: str) -> bytes:
    """8.6.1: entries (count, value)."""
    return struct.pack(">I", len(runs)) + b"".join(struct.pack(f">I{code}", *run) for run in runs)


def _counted(values: "array[int]") -> bytes:
    """The number of values, then the values, big-endian."""
    values = values[:]
    if sys.byteorder == "little":
        values.byteswap()
    return struct.pack(">I", len(values)) + values.tobytes()
