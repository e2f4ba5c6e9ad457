"""Samples of a track as tables and fragments say them, one by one (ISO/IEC 14496-12, 8.6 to 8.8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from ..standard.bits import BitstreamError
from .parsing import Contents

_NOT_SYNC = 1 << 16  # 8.8.3.1: sample_is_non_sync_sample


class FileSample(NamedTuple):
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
        self._sizes, chunks = table.first("stsz"), table.first("stco") or table.first("co64")
        if self._sizes is None or chunks is None:
            raise BitstreamError("box stbl has no stsz, or neither stco nor co64")
        self._large = chunks.name == "co64"
        self._runs = {"chunks": chunks, **{name: table.first(name) for name in ("stts", "ctts", "stss", "stsc")}}
        self._sizes.version_and_flags()
        self._same_size, self.count = self._sizes.read("II")

    def samples(self) -> Iterator[FileSample]:
        """All samples, in coding order."""
        assert self._sizes is not None
        rows = self._sizes.rest().rows("I", 0 if self._same_size else self.count, "samples")
        sizes = repeat(self._same_size, self.count) if self._same_size else chain.from_iterable(rows)
        durations, offsets = self._each("stts", "II"), self._each("ctts", "Ii")
        keyframes, every = self._keyframes(), self._runs["stss"] is None
        next_keyframe = next(keyframes, 0)
        position = left = entry = dts = 0
        chunks = self._each_chunk()
        for number, (size, duration, offset) in enumerate(zip(sizes, durations, offsets), 1):
            if not left:
                position, left, entry = next(chunks, (0, 0, 0))
                if not left:
                    raise BitstreamError(f"box stsc has no chunk for sample {number} of {self.count}")
            is_key = every or number == next_keyframe
            if number == next_keyframe:
                next_keyframe = next(keyframes, 0)
            yield FileSample(position, size, dts, duration, dts + offset, is_key, entry)
            position, dts, left = position + size, dts + duration, left - 1

    def _table(self, name: str, form: str) -> Iterator[tuple[int, ...]]:
        """The rows of a box that says their number; none if it is missing."""
        table = self._runs[name]
        if table is None:
            return iter(())
        table = table.rest()
        table.version_and_flags()
        return table.rows(form, table.read("I")[0])

    def _each(self, name: str, form: str) -> Iterator[int]:
        """8.6.1: the values of a table of runs, sample by sample, then 0 for ever.

        Those of ctts are signed in version 1, and in version 0 by many writers too.
        """
        runs = (repeat(value, count) for count, value in self._table(name, form))
        return chain(chain.from_iterable(runs), repeat(0))

    def _keyframes(self) -> Iterator[int]:
        """8.6.2: numbers of keyframes, from 1."""
        return chain.from_iterable(self._table("stss", "I"))

    def _each_chunk(self) -> Iterator[tuple[int, int, int]]:
        """8.7.4, 8.7.5: (position, samples, sample entry) of each chunk."""
        if self._runs["stsc"] is None:
            raise BitstreamError("box stbl has no stsc")
        runs = self._table("stsc", "III")
        following = next(runs, None)
        samples, entry = 0, 1
        for number, (position,) in enumerate(self._table("chunks", "Q" if self._large else "I"), 1):
            if following is not None and following[0] <= number:
                _, samples, entry = following
                following = next(runs, None)
            yield position, samples, entry - 1


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

    def samples(self, moof: Contents, start: int) -> Iterator[FileSample]:
        """The samples of a moof whose header begins at byte `start`."""
        for fragment in moof.boxes("traf"):
            yield from self._track_fragment(fragment, start)

    def _track_fragment(self, fragment: Contents, start: int) -> Iterator[FileSample]:
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
        for run in fragment.boxes("trun"):
            for sample in self._run(run, base, position, defaults):
                position = sample.position + sample.size
                yield sample

    def _run(self, run: Contents, base: int, position: int, defaults: Defaults) -> Iterator[FileSample]:
        """8.8.8: trun."""
        _, flags = run.version_and_flags()
        (count,) = run.read("I")
        if flags & 0x1:
            position = base + run.read("i")[0]
        first_flags = run.read("I")[0] if flags & 0x4 else None
        form = "".join(code for bit, code in ((0x100, "I"), (0x200, "I"), (0x400, "I"), (0x800, "i")) if flags & bit)
        if count and not form and not defaults.size:
            raise BitstreamError(f"box trun names {count} samples without size")
        rows = run.rows(form, count, "samples") if form else repeat((), count)
        for number, row in enumerate(rows):
            values = iter(row)
            duration = next(values) if flags & 0x100 else defaults.duration
            size = next(values) if flags & 0x200 else defaults.size
            own_flags = next(values) if flags & 0x400 else defaults.flags
            if number == 0 and first_flags is not None:
                own_flags = first_flags
            pts = self._time + (next(values) if flags & 0x800 else 0)
            yield FileSample(position, size, self._time, duration, pts, not own_flags & _NOT_SYNC, defaults.entry - 1)
            position, self._time = position + size, self._time + duration
