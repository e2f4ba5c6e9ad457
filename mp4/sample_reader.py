"""Samples of a track as tables and fragments say them, one by one (ISO/IEC 14496-12, 8.6 to 8.8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..standard.bits import BitstreamError
from .parsing import Contents

_NOT_SYNC = 1 << 16  # 8.8.3.1: sample_is_non_sync_sample


class FoundSample(NamedTuple):
    """Where a sample lies, when it is decoded and shown, in the track's units; entry: its sample entry, from 0."""

    position: int
    size: int
    dts: int
    duration: int
    pts: int
    is_keyframe: bool
    entry: int


class TableReader:
    """8.5.1: the samples of stbl."""

    def __init__(self, table: Contents) -> None:
        self._sizes, self._chunks = table.first("stsz"), table.first("stco") or table.first("co64")
        if self._sizes is None or self._chunks is None:
            raise BitstreamError("box stbl has no stsz, or neither stco nor co64")
        self._large = self._chunks.name == "co64"
        self._runs = {name: table.first(name) for name in ("stts", "ctts", "stss", "stsc")}
        self._sizes.version_and_flags()
        self._same_size, self.count = self._sizes.read("II")
        if not self._same_size and 4 * self.count > self._sizes.left:
            raise BitstreamError(f"box stsz names {self.count} samples and has room for {self._sizes.left // 4}")

    def samples(self) -> Iterator[FoundSample]:
        """All samples, in coding order."""
        if not self.count:
            return
        assert self._sizes is not None
        durations, offsets = self._each("stts"), self._each("ctts")
        keyframes, dts = self._keyframes(), 0
        next_keyframe = next(keyframes, 0)
        position = left = entry = 0
        chunks = self._each_chunk()
        for number in range(1, self.count + 1):
            if not left:
                position, left, entry = next(chunks, (0, 0, 0))
                if not left:
                    raise BitstreamError(f"box stsc has no chunk for sample {number} of {self.count}")
            size = self._same_size or self._sizes.at(12 + 4 * (number - 1), "I")[0]
            is_key = self._runs["stss"] is None or number == next_keyframe
            if number == next_keyframe:
                next_keyframe = next(keyframes, 0)
            duration = next(durations, 0)
            yield FoundSample(position, size, dts, duration, dts + next(offsets, 0), is_key, entry)
            position, dts, left = position + size, dts + duration, left - 1

    def _each(self, name: str) -> Iterator[int]:
        """8.6.1: the values of a table of runs, sample by sample; ctts of version 1 is signed, and of 0 by many too."""
        table = self._runs[name]
        if table is None:
            return
        table = table.rest()
        table.version_and_flags()
        form = "Ii" if name == "ctts" else "II"
        place, rows = table.table(form)
        for row in range(rows):
            count, value = table.at(place + 8 * row, form)
            for _ in range(count):
                yield value

    def _keyframes(self) -> Iterator[int]:
        """8.6.2: numbers of keyframes, from 1."""
        table = self._runs["stss"]
        if table is not None:
            table = table.rest()
            table.version_and_flags()
            place, rows = table.table("I")
            for row in range(rows):
                yield table.at(place + 4 * row, "I")[0]

    def _each_chunk(self) -> Iterator[tuple[int, int, int]]:
        """8.7.4, 8.7.5: (position, samples, sample entry) of each chunk."""
        runs, chunks = self._runs["stsc"], self._chunks
        if runs is None or chunks is None:
            raise BitstreamError("box stbl has no stsc")
        runs, chunks = runs.rest(), chunks.rest()
        runs.version_and_flags()
        chunks.version_and_flags()
        place, rows = runs.table("III")
        form = "Q" if self._large else "I"
        first_chunk, count = chunks.table(form)
        row, samples, entry = 0, 0, 1
        for number in range(1, count + 1):
            if row < rows and runs.at(place + 12 * row, "I")[0] <= number:
                _, samples, entry = runs.at(place + 12 * row, "III")
                row += 1
            yield chunks.at(first_chunk + (8 if self._large else 4) * (number - 1), form)[0], samples, entry - 1


@dataclass(frozen=True)
class Defaults:
    """8.8.3: trex: what fragments of the track leave out."""

    entry: int = 1
    duration: int = 0
    size: int = 0
    flags: int = 0


class FragmentReader:
    """8.8.4: the samples of one track in successive moof boxes."""

    def __init__(self, track_id: int, defaults: Defaults) -> None:
        self._track_id, self._trex = track_id, defaults
        self._time = 0  # decoding time where a fragment says none

    def samples(self, moof: Contents, start: int) -> Iterator[FoundSample]:
        """The samples of a moof whose header begins at byte `start`."""
        for fragment in moof.boxes():
            if fragment.name == "traf":
                yield from self._track_fragment(fragment, start)

    def _track_fragment(self, fragment: Contents, start: int) -> Iterator[FoundSample]:
        """8.8.6, 8.8.7, 8.8.12: traf."""
        head = fragment.only("tfhd")
        _, flags = head.version_and_flags()
        if head.read("I")[0] != self._track_id:
            return
        base = head.read("Q")[0] if flags & 0x1 else start
        entry = head.read("I")[0] if flags & 0x2 else self._trex.entry
        duration = head.read("I")[0] if flags & 0x8 else self._trex.duration
        size = head.read("I")[0] if flags & 0x10 else self._trex.size
        sample_flags = head.read("I")[0] if flags & 0x20 else self._trex.flags
        defaults = Defaults(entry, duration, size, sample_flags)
        times = fragment.first("tfdt")
        if times is not None:
            version, _ = times.version_and_flags()
            (self._time,) = times.read("Q" if version else "I")
        position = base
        for run in fragment.boxes():
            if run.name == "trun":
                for sample in self._run(run, base, position, defaults):
                    position = sample.position + sample.size
                    yield sample

    def _run(self, run: Contents, base: int, position: int, defaults: Defaults) -> Iterator[FoundSample]:
        """8.8.8: trun."""
        _, flags = run.version_and_flags()
        (count,) = run.read("I")
        if flags & 0x1:
            position = base + run.read("i")[0]
        first_flags = run.read("I")[0] if flags & 0x4 else None
        form = "".join(code for bit, code in ((0x100, "I"), (0x200, "I"), (0x400, "I"), (0x800, "i")) if flags & bit)
        if count * 4 * len(form) > run.left:
            raise BitstreamError(f"box trun names {count} samples and has room for {run.left // (4 * len(form))}")
        if count and not form and not defaults.size:
            raise BitstreamError(f"box trun names {count} samples without size")
        for number in range(count):
            values = iter(run.read(form))
            duration = next(values) if flags & 0x100 else defaults.duration
            size = next(values) if flags & 0x200 else defaults.size
            own_flags = next(values) if flags & 0x400 else defaults.flags
            if number == 0 and first_flags is not None:
                own_flags = first_flags
            pts = self._time + (next(values) if flags & 0x800 else 0)
            yield FoundSample(position, size, self._time, duration, pts, not own_flags & _NOT_SYNC, defaults.entry - 1)
            position, self._time = position + size, self._time + duration
