"""Sound in: the first track of AAC, Opus or FLAC of an MP4 or QuickTime file, by its edit list (ISO/IEC 14496-12)."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, islice
from typing import BinaryIO

from ..sound.stream import SoundFormat, SoundPacket, SoundStream
from ..standard.bits import BitstreamError
from .parsing import Contents, contents, file_boxes, length, printable, read_at
from .sample_reader import Defaults, FileSample, FragmentReader, TableReader
from .sound_entry import SOUND, OtherSound, read_entry

_LARGEST_PACKET = 1 << 22  # bytes
_MOST_SHARING = 16  # bytes of all packets by bytes of the file
_LEAST = 64  # bytes that a packet counts for at least
_MOST_EDITS = 100
_NO_END = 1 << 62


def open_sound(file: BinaryIO) -> SoundStream:
    """The sound of a file that can be read at any box; BitstreamError, at once or with a packet.

    OtherSound if it cannot be copied. The edit list says what is heard: perhaps nothing first, then one part of the track.
    """
    movie = next((contents(file, box) for box in file_boxes(file, length(file)) if box.box_type == "moov"), None)
    if movie is None:
        raise BitstreamError("this MP4 has no moov: its writer was stopped, or the end is missing")
    track = _sound_track(movie)
    media = track.only("mdia")
    head = media.only("mdhd")
    version, _ = head.version_and_flags()
    units = head.at(20 if version else 12, "I")[0]
    if not units:
        raise BitstreamError("box mdhd has timescale 0")
    table = media.only("minf").only("stbl")
    entries = list(islice(_entries(table), 2))
    if len(entries) > 1:
        raise OtherSound("the sound changes its format: it has several sample entries")
    sound = read_entry(entries[0], units)
    delay, begin, end = _edits(movie, track, units)
    samples = _samples(file, movie, track, table)
    return _shortened(sound, file, samples, (delay, begin, end))


def _sound_track(movie: Contents) -> Contents:
    """8.4.3: the first track with handler soun whose format is known, else the reason why there is none."""
    others = []
    for track in movie.boxes("trak"):
        media = track.first("mdia")
        if media is None or media.only("hdlr").at(8, "4s")[0] != b"soun":
            continue
        names = [entry.name for entry in islice(_entries(media.only("minf").only("stbl")), 1)]
        if names and names[0] in SOUND:
            return track
        others += names[:1]
    if others:
        raise OtherSound(f"the sound is {printable(others[0].encode())}, not AAC, Opus or FLAC")
    raise BitstreamError("holds no sound")


def _entries(table: Contents) -> Iterator[Contents]:
    """8.5.2: the boxes of stsd."""
    box = table.only("stsd")
    box.take(8)
    yield from box.boxes()


def _edits(movie: Contents, track: Contents, units: int) -> tuple[int, int, int]:
    """8.6.6: (units before the sound, media time of its begin, media time of its end); BitstreamError for several."""
    edit_box = track.first("edts")
    edits = edit_box.first("elst") if edit_box is not None else None
    if edits is None:
        return 0, 0, _NO_END
    head = movie.only("mvhd")
    version, _ = head.version_and_flags()
    movie_units = head.at(20 if version else 12, "I")[0]
    if not movie_units:
        raise BitstreamError("box mvhd has timescale 0")
    version, _ = edits.version_and_flags()
    count = edits.read("I")[0]
    if count > _MOST_EDITS:
        raise OtherSound(f"the edit list of the sound has {count} parts")
    rows = list(edits.rows("Qqhh" if version else "Iihh", count))
    delay = Fraction(0)
    while rows and rows[0][1] < 0:
        delay += Fraction(rows.pop(0)[0] * units, movie_units)
    if not rows:
        return round(delay), 0, _NO_END
    (duration, begin, rate, _), following = rows[0], rows[1:]
    if rate != 1 or any(media >= 0 for _, media, _, _ in following):
        raise OtherSound("the edit list of the sound joins several parts, or changes their speed")
    # the movie's units are coarser, as a rule: the end lies up to one of them later
    end = begin + -(-(duration + 1) * units // movie_units) if duration else _NO_END
    return round(delay), begin, end


def _samples(file: BinaryIO, movie: Contents, track: Contents, table: Contents) -> Iterator[FileSample]:
    """The samples of tables, then those of fragments."""
    yield from TableReader(table).samples()
    head = track.only("tkhd")
    version, _ = head.version_and_flags()
    track_id = head.at(20 if version else 12, "I")[0]
    defaults, extends = Defaults(), movie.first("mvex")
    for box in extends.boxes("trex") if extends is not None else ():
        _, box_track, *values = box.read("IIIIII")
        if box_track == track_id:
            defaults = Defaults(*values)
    reader, size = FragmentReader(track_id, defaults), length(file)
    for outer in file_boxes(file, size):
        if outer.box_type == "moof":
            if outer.end == size and int.from_bytes(read_at(file, outer.start, 4), "big") > size - outer.start:
                return  # cut off: the fragments before are whole
            yield from reader.samples(contents(file, outer), outer.start)


def _shortened(sound: SoundFormat, file: BinaryIO, samples: Iterator[FileSample], edits: tuple[int, int, int]) -> SoundStream:
    """The packets of the part that the edit list shows. Where the first one has a time, as in fragments, it is a delay."""
    delay, begin, end = edits
    first = next(samples, None)
    if first is None:
        return SoundStream(sound, iter(()))
    stream = SoundStream(sound, _packets(sound, file, first, samples, end), 0, first.dts)
    if begin:
        stream = stream.from_time(Fraction(begin, sound.rate))
    return replace(stream, delay=stream.delay + delay) if delay else stream


def _packets(
    sound: SoundFormat, file: BinaryIO, first: FileSample, rest: Iterator[FileSample], end: int
) -> Iterator[SoundPacket]:
    """Packets up to media time `end`; BitstreamError if one is not in the file, or there are more than it has room for."""
    size, total = length(file), 0
    for number, sample in enumerate(chain((first,), rest)):
        if sample.dts >= end:
            return
        total += max(sample.size, _LEAST)
        if total > _MOST_SHARING * size:
            raise BitstreamError(f"packet {number}: packets share their bytes more than {_MOST_SHARING} times")
        if not 0 < sample.size <= _LARGEST_PACKET or sample.position < 0 or sample.position + sample.size > size:
            raise BitstreamError(
                f"packet {number}, {sample.size} bytes at byte {sample.position}, is not in the file of {size} bytes"
            )
        data = read_at(file, sample.position, sample.size)
        if duration := min(sample.duration, end - sample.dts):  # the last packet of some writers has none
            yield SoundPacket(data, duration)
