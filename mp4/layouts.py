"""Three ways to lay a track out in a file: fragments, one movie made in place, one movie written at its end."""

from collections.abc import Callable
from fractions import Fraction
from math import isinf
from typing import Any, BinaryIO, Protocol

from ..uninterrupted import Uninterrupted
from .boxes import mdat_header
from .fragments import fragment_header
from .movie import FILE_TYPE, Track, initial_movie, movie
from .samples import Sample, SampleTable

PIECE = 1 << 22  # bytes moved at a time
_MOST_GROUP_BYTES = 1 << 22  # of a group that need not end at a keyframe
_MOST_HELD_BYTES = 1 << 22  # of groups that wait for the file in which they wait

Write = Callable[..., None]  # writes its arguments, bytes, one after another: all or none


class Layout(Protocol):
    """Where samples go: `begin`, `add` for each, `finish`. After an OSError only `finish` may follow."""

    frames: int  # that the file holds
    failed: bool  # a write has failed
    can_flush: bool  # fragments may end anywhere
    sound_throughout: bool  # silence stands where the sound has no packets

    def begin(self, track: Track) -> None:
        """The track, before its first sample."""

    def add(self, data: bytes, sample: Sample) -> None:
        """One sample, in coding order."""

    def flush(self) -> None:
        """Write the samples that wait, if it can."""

    def shift(self, units: int) -> None:
        """The sample after a flush is decoded so much later than the durations before say, or earlier."""

    def finish(self) -> None:
        """Complete the file."""


class _Groups:
    """Collects samples in groups: of whole GOPs of at least `seconds`, or of about a second.

    seconds may be infinite. slack: seconds by which a group may be shorter, at least half of its last sample.
    """

    can_flush = sound_throughout = False

    def __init__(self, seconds: float | None, slack: Fraction = Fraction(0)) -> None:
        self._seconds, self._slack = seconds, slack
        self._track: Track
        self._samples: list[tuple[bytes, Sample]] = []  # together: an interrupt leaves none without the other
        self._duration = self._size = 0
        self.failed = False  # a group is missing: nothing may follow it
        self.frames = 0  # in finished groups

    def begin(self, track: Track) -> None:
        """See Layout."""
        self._track = track

    def add(self, data: bytes, sample: Sample) -> None:
        """See Layout."""
        if self._samples and self._is_full(sample):
            self._end_group()
        self._samples.append((data, sample))
        if self._track.sound is not None:
            self._track.sound.follow(sample)
        self._duration += sample.duration
        self._size += sample.size

    def _is_full(self, following: Sample) -> bool:
        if self._seconds is None:
            return self._duration >= self._track.timescale or self._size >= _MOST_GROUP_BYTES
        if not following.is_keyframe or isinf(self._seconds):
            return False
        (_, first), (_, last), scale = self._samples[0], self._samples[-1], self._track.timescale
        lasts = self._duration + following.offset - first.offset  # from its first frame on the display to the next one's
        # half a frame too early is in time: 2 s of 29.97 fps are 60 frames
        return lasts + max(Fraction(last.duration, 2), self._slack * scale) >= Fraction(self._seconds) * scale

    def _end_group(self, last: bool = False) -> None:
        if self._samples and not self.failed:
            failure = self._track.sound.collect(last) if self._track.sound is not None else None
            self.failed = True  # if anything cuts this
            group, self._samples = self._samples, []
            self._duration = self._size = 0
            self._write_group([sample for _, sample in group], [data for data, _ in group])
            if self._track.sound is not None:
                self._track.sound.take_away()
            self.frames += len(group)
            self.failed = False
            if failure is not None:  # of the sound, which ends there; the group is whole
                raise failure

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """See Layout."""
        self._end_group()

    def shift(self, units: int) -> None:
        """See Layout."""
        raise NotImplementedError

    def _sound_run(self) -> tuple[list[Sample], list[bytes]]:
        """The sound of the group, behind its video."""
        return ([], []) if self._track.sound is None else self._track.sound.run

    def finish(self) -> None:
        """See Layout."""
        self._end_group(True)


class Fragments(_Groups):
    """ftyp and moov at once, then moof and mdat for each group; each `write` is an initialisation or media segment.

    seconds: least length of a fragment, which ends before a keyframe; None: about a second, wherever that ends. slack: see
    _Groups.
    """

    can_flush = True
    sound_apart = False  # a subclass writes it elsewhere

    def __init__(self, write: Write, seconds: float | None, slack: Fraction = Fraction(0)) -> None:
        super().__init__(seconds, slack)
        self._write = write
        self._number = self._time = 0

    def begin(self, track: Track) -> None:
        """See Layout."""
        super().begin(track)
        self._put(FILE_TYPE, initial_movie(track))

    def _put(self, *chunks: bytes) -> None:
        self._write(*chunks)

    def shift(self, units: int) -> None:
        """See Layout."""
        self._time += units
        if self._track.sound is not None:
            self._track.sound.shift(units)

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        sound = None if self.sound_apart else self._track.sound
        header = fragment_header(self._number + 1, self._time, samples, sound)
        # in one call: a process that is killed leaves it whole, or not at all
        self._put(b"".join((header, *data, *(sound.run[1] if sound is not None else ()))))
        self._number += 1
        self._time += sum(sample.duration for sample in samples)


class InPlace(Fragments):
    """Fragments while it is written, so that a file that is cut off plays; `finish` turns it into one movie, moov in front.

    edit: opens the file for reading and writing, unbuffered.
    """

    can_flush = False  # the table of the movie has exact durations

    def __init__(self, write: Write, edit: Callable[[], BinaryIO]) -> None:
        super().__init__(write, None)
        self._edit = edit
        self._front: tuple[bytes, ...] = ()  # is written with the first group: there is no file without frames
        self._position = 0
        self._table = SampleTable()

    def begin(self, track: Track) -> None:
        """See Layout."""
        self._track = track
        self._front = FILE_TYPE, initial_movie(track)

    def _put(self, *chunks: bytes) -> None:
        data = b"".join((*self._front, *chunks))
        self._write(data)
        self._front = ()
        self._position += len(data)

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        def work() -> None:
            write(samples, data)
            sound = self._sound_run()
            position = self._position - sum(map(len, sound[1]))
            self._table.add_chunk(samples, position - sum(map(len, data)))
            if self._track.sound is not None and sound[0]:
                self._track.sound.table.add_chunk(sound[0], position)

        write = super()._write_group
        Uninterrupted().run(work)  # the table has all samples of a group that is in the file

    def finish(self) -> None:
        """See Layout. OSError if the disk is full: the fragments are left as they are."""
        super().finish()
        if self._table.count:
            chunks = _chunks(self._track, self._table)
            head, positions = _head(self._track, self._table)
            with self._edit() as file:
                _move(file, [(old, new, size) for (old, size, _), new in zip(chunks, positions)], self._position)
                file.seek(0)
                _write_all(file, head)
                file.truncate(len(head) + _bytes(self._track, self._table))


class AtEnd(_Groups):
    """Samples wait in another file; `finish` writes ftyp, moov and mdat in one go, so that pipes can take them.

    Groups come to that file a few at a time: each time takes a thread.
    """

    def __init__(self, write: Write, waiting: BinaryIO) -> None:
        super().__init__(None)
        self._write, self._waiting = write, waiting
        self._table = SampleTable()
        self._pending: list[tuple[list[Sample], list[bytes], list[Sample], list[bytes]]] = []  # groups not in the file
        self._pending_bytes = 0

    def _write_group(self, samples: list[Sample], data: list[bytes]) -> None:
        self._pending.append((samples, data, *self._sound_run()))
        self._pending_bytes += sum(map(len, data))
        if self._pending_bytes >= _MOST_HELD_BYTES:
            Uninterrupted().run(self._write_held)

    def _write_held(self) -> None:
        """The table has all samples of the groups that are in the file."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        try:
            while pending:
                samples, data, sound_samples, sound_data = pending[0]
                self._waiting.writelines((*data, *sound_data))
                self._waiting.flush()  # a fork of the process would write what is left in the buffer again, at its end
                position = _bytes(self._track, self._table)
                self._table.add_chunk(samples, position)
                if self._track.sound is not None and sound_samples:
                    self._track.sound.table.add_chunk(sound_samples, position + sum(map(len, data)))
                del pending[0]
        except BaseException:
            self.frames = self._table.count
            raise

    def finish(self) -> None:
        """See Layout."""
        try:
            super().finish()
            Uninterrupted().run(self._write_held)
        finally:  # if the other file is full, the groups before
            self._write_movie()

    def _write_movie(self) -> None:
        if self._table.count:
            self._write(_head(self._track, self._table)[0])
            self._waiting.seek(0)
            rest = _bytes(self._track, self._table)  # a write that has failed may have left more
            while piece := self._waiting.read(min(PIECE, rest)):
                self._write(piece)
                rest -= len(piece)


def _chunks(track: Track, table: SampleTable) -> list[tuple[int, int, bool]]:
    """Chunks of both tracks by position: (position, bytes, whether they are sound)."""
    sound = track.sound.table.chunks() if track.sound is not None else []
    return sorted([(*chunk, False) for chunk in table.chunks()] + [(*chunk, True) for chunk in sound])


def _bytes(track: Track, table: SampleTable) -> int:
    """Of the samples of both tracks."""
    return table.bytes + (track.sound.table.bytes if track.sound is not None else 0)


def _head(track: Track, table: SampleTable) -> tuple[bytes, list[int]]:
    """(ftyp, moov and the header of mdat; the positions of the chunks of both tracks that follow)."""
    data = mdat_header(_bytes(track, table))
    chunks = _chunks(track, table)
    offsets, offset = [], 0
    for _, size, _ in chunks:
        offsets.append(offset)
        offset += size
    begin = 0
    while True:  # positions beyond 4 GiB make moov longer, which moves them: twice at most
        positions = [begin + offset for offset in offsets]
        video, sound = ([at for at, chunk in zip(positions, chunks) if chunk[2] == which] for which in (False, True))
        head = FILE_TYPE + movie(track, table, video, sound) + data
        if len(head) == begin:
            return head, positions
        begin = len(head)


def _move(file: BinaryIO, moves: list[tuple[int, int, int]], end: int) -> None:
    """Move chunks (old position, new position, bytes); `end`: of the file, which must be able to grow first.

    Chunks lie in order, with gaps that close: the first ones move up, from the last of them on, then the others down.
    """
    new_end = moves[-1][1] + moves[-1][2]
    if new_end > end:
        _reserve(file, end, new_end)
    up, buffer = [move for move in moves if move[1] > move[0]], memoryview(bytearray(PIECE))
    for old, new, size in reversed(up):
        for at in reversed(range(0, size, PIECE)):
            _copy(file, old + at, new + at, buffer[: size - at])
    for old, new, size in moves[len(up) :]:
        for at in range(0, size, PIECE):
            _copy(file, old + at, new + at, buffer[: size - at])


def _reserve(file: BinaryIO, begin: int, end: int) -> None:
    """Let a file grow by zeros, which need their place on the disk; OSError if it has none, and the file is as before."""
    try:
        file.seek(begin)
        _write_all(file, bytes(end - begin))
    except OSError:
        file.truncate(begin)
        raise


def _copy(file: Any, old: int, new: int, buffer: memoryview) -> None:
    """Move as many bytes as `buffer` has, through it."""
    if old == new:
        return
    file.seek(old)
    rest = buffer
    while rest and (got := file.readinto(rest)):
        rest = rest[got:]
    file.seek(new)
    _write_all(file, buffer)


def _write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
