"""MP4 in: the first video track, its samples, and the H.264 byte stream in them (ISO/IEC 14496-12, 14496-15)."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

from ..standard.bits import LARGEST_NAL_UNIT, BitstreamError
from .avc import Colour, to_byte_stream
from .movie import UPRIGHT
from .parsing import Contents, FileBox, contents, file_boxes, length, printable, read_at
from .sample_reader import Defaults, FileSample, FragmentReader, TableReader
from .tags import FileTags, read_tags

_FIRST_BOXES = (b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pdin")
_LARGEST_SAMPLE = LARGEST_NAL_UNIT  # bytes
_MOST_SHARING = 16  # bytes of all samples, and of the byte stream made of them, by bytes of the file
_MOST_EDITS = 10_000
EMPTY = -1  # media_time of an edit that shows nothing
_LEAST = 64  # bytes that a sample counts for at least, and a NAL unit beside its own, so that time is bounded too
_PARAMETER_SET = re.compile(rb"\x00\x00\x01[\x07\x08\x27\x28\x47\x48\x67\x68]")
_H264 = ("avc1", "avc3")


def is_mp4(first: bytes) -> bool:
    """Whether a file that begins so, 8 bytes or more, is of boxes."""
    return first[4:8] in _FIRST_BOXES


class Edit(NamedTuple):
    """A row of elst. duration: units of the movie's timescale; media_time: of the track's; -1: nothing is shown."""

    duration: int
    media_time: int


class Mp4Reader:
    """A file of boxes that can be read at any box. BitstreamError, at once or later: damaged, or without H.264.

    brands; timescale: units a second; matrix: of tkhd; entries: the sample entries; fragments: of the whole file, known
    after `samples`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, length(file)
        self.brands: list[str] = []
        self.fragments = 0
        movie: Contents | None = None
        self.is_movie_in_front = True
        for box in file_boxes(file, self._size):
            if box.box_type == "ftyp":
                self.brands = _brands(contents(file, box))
            elif box.box_type == "mdat" and movie is None:
                self.is_movie_in_front = False
            elif box.box_type == "moov":
                movie = contents(file, box)
                break
        if movie is None:
            raise BitstreamError("this MP4 has no moov: its writer was stopped, or the end is missing")
        self._movie = movie
        self._open_track(_video_track(movie))

    def _open_track(self, track: Contents) -> None:
        self._track = track
        head = track.only("tkhd")
        version, _ = head.version_and_flags()
        self.track_id = head.at(20 if version else 12, "I")[0]
        self.matrix: tuple[int, ...] = head.at(52 if version else 40, "9i")
        media = track.only("mdia")
        media_head = media.only("mdhd")
        version, _ = media_head.version_and_flags()
        self.timescale = media_head.at(20 if version else 12, "I")[0]
        if not self.timescale:
            raise BitstreamError("box mdhd has timescale 0")
        table = media.only("minf").only("stbl")
        self._table = TableReader(table)
        distinct_sets: dict[bytes, bytes] = {}  # equal parameter sets are one object
        self.entries = [Entry(box, distinct_sets) for box in _sample_entries(table)]
        if not self.entries:
            raise BitstreamError("box stsd has no entry")

    def tags(self) -> FileTags:
        """Metadata and chapters."""
        return read_tags(self._movie)

    def facts(self) -> dict[str, Any]:
        """Brands, layout, frames, times, rotation, metadata and chapters, for programs; goes through all samples."""
        count, end, tags = 0, 0, self.tags()
        durations: set[int] = set()
        for sample in self.samples():
            count, end = count + 1, end + sample.duration
            if len(durations) < 3:
                durations.add(sample.duration)
        return {
            "brands": self.brands, "moov_in_front": self.is_movie_in_front, "fragments": self.fragments,
            "track": self.coding_name, "frames": count, "seconds": end / self.timescale,
            "mean_fps": float(count * self.timescale / end) if end else None,
            "variable_rate": len(durations) > 2, "rotated": not self.is_upright, "metadata": dict(tags.metadata),
            "chapters": [[float(begin), title] for begin, title in tags.chapters],
        }  # fmt: skip

    def summary(self) -> str:
        """The same in one line."""
        facts = self.facts()
        layout = "moov in front" if self.is_movie_in_front else "moov last"
        if self.fragments:
            layout = f"{self.fragments} fragment{'s' * (self.fragments > 1)}"
        phrases = [f"MP4 ({', '.join(self.brands)}), {layout}", f"{self.coding_name} track of {facts['frames']} frames"]
        if facts["mean_fps"] is not None:
            rate = f"{facts['mean_fps']:.3f} frames/s" + (" on average" if facts["variable_rate"] else "")
            phrases += [f"{facts['seconds']:.3f} s", rate]
        if not self.is_upright:
            phrases.append("rotated")
        return ", ".join(phrases)

    @property
    def is_upright(self) -> bool:
        """Whether the video is neither rotated nor turned over."""
        return self.matrix[:2] + self.matrix[3:5] == UPRIGHT[:2] + UPRIGHT[3:5]

    @property
    def coding_name(self) -> str:
        """avc1 or avc3."""
        return self.entries[0].coding_name

    def rate(self) -> Fraction | None:
        """Frames a second, by the duration of the first sample."""
        first = next(self.samples(), None)
        return Fraction(self.timescale, first.duration) if first is not None and first.duration else None

    def edits(self) -> list[Edit]:
        """8.6.6: the edit list; none if there is no elst. Rates of edits are not read."""
        outer = self._track.first("edts")
        table = outer.first("elst") if outer is not None else None
        if table is None:
            return []
        version, _ = table.version_and_flags()
        (count,) = table.read("I")
        if count > _MOST_EDITS:
            raise BitstreamError(f"an edit list of {count} edits is too long")
        return [Edit(duration, time) for duration, time, _, _ in table.rows("Qqhh" if version else "Iihh", count)]

    def movie_timescale(self) -> int:
        """8.2.2: units a second of the durations of edits."""
        head = self._movie.only("mvhd")
        version, _ = head.version_and_flags()
        timescale = int(head.at(20 if version else 12, "I")[0])
        if not timescale:
            raise BitstreamError("box mvhd has timescale 0")
        return timescale

    def samples(self) -> Iterator[FileSample]:
        """All samples in coding order: those of moov, then those of fragments. Each lies in the file.

        Some may share bytes, but not so many that a small file takes for ever.
        """
        total, most = 0, _MOST_SHARING * self._size
        for number, sample in enumerate(self._unchecked()):
            total += max(sample.size, _LEAST)
            if total > most:
                raise BitstreamError(
                    f"sample {number}: samples share their bytes more than {_MOST_SHARING} times, or are"
                    " more than the file has room for"
                )
            if not 0 <= sample.entry < len(self.entries):
                raise BitstreamError(f"sample {number} has entry {sample.entry + 1} of {len(self.entries)}")
            if sample.position < 0 or sample.position + sample.size > self._size or sample.size > _LARGEST_SAMPLE:
                raise BitstreamError(
                    f"sample {number}, {sample.size} bytes at byte {sample.position}, is not in the file"
                    f" of {self._size} bytes"
                )
            yield sample

    def _unchecked(self) -> Iterator[FileSample]:
        yield from self._table.samples()
        reader = FragmentReader(self.track_id, _defaults(self._movie, self.track_id))
        self.fragments = 0
        for box in file_boxes(self._file, self._size):
            if box.box_type == "moof" and not _is_cut_off(self._file, box, self._size):
                self.fragments += 1
                yield from reader.samples(contents(self._file, box), box.start)

    def byte_stream(self) -> Iterator[bytes]:
        """The access units in Annex B; parameter sets of a sample entry precede the sample where they change.

        They count for the bytes that a file may become.
        """
        sets, several, total = b"", len(self.entries) > 1, 0
        for number, sample in enumerate(self.samples()):
            entry = self.entries[sample.entry]
            try:
                data = to_byte_stream(read_at(self._file, sample.position, sample.size), entry.length_size)
            except ValueError as error:
                raise BitstreamError(f"sample {number}: {error}") from None
            changed = entry.parameter_sets is not sets
            total += len(data) + _LEAST * data.count(b"\0\0\1") + changed * len(entry.parameter_sets)
            if total > _MOST_SHARING * self._size:
                raise BitstreamError(
                    f"sample {number}: the byte stream is more than {_MOST_SHARING} times as large as the"
                    " file, or of more NAL units than it has room for"
                )
            yield entry.parameter_sets + data if changed else data
            # Those in a sample may replace those of the entry.
            sets = b"" if several and _PARAMETER_SET.search(data) else entry.parameter_sets


class Entry:
    """5.4.2.1 of 14496-15: a sample entry: coding_name, length_size, parameter_sets in Annex B."""

    def __init__(self, box: Contents, distinct_sets: dict[bytes, bytes]) -> None:
        self.coding_name = box.name
        if box.name == "encv":
            raise BitstreamError("the video is encrypted")
        if box.name not in _H264:
            raise BitstreamError(f"the video is {box.name}, not H.264 (avc1)")
        box.take(78)
        self._more = box.rest()
        record = box.only("avcC")
        self.length_size = (record.at(4, "B")[0] & 3) + 1
        record.take(5)
        units = []
        for mask in (31, 255):
            for _ in range(record.read("B")[0] & mask):
                units.append(b"\0\0\0\1" + record.take(record.read("H")[0]))
        sets = b"".join(units)
        self.parameter_sets = distinct_sets.setdefault(sets, sets)

    def colour(self) -> Colour | None:
        """12.1.5 of 14496-12: colr of type nclx, or nclc, which QuickTime has without the range; None without one."""
        for box in self._more.boxes("colr"):
            colour_type, *points = box.at(0, "4sHHH") if box.left >= 10 else (b"", 0, 0, 0)
            if colour_type == b"nclc" or (colour_type == b"nclx" and box.left > 10):
                full_range = box.at(10, "B")[0] >> 7 if colour_type == b"nclx" else 0
                return Colour(points[0], points[1], points[2], full_range)
        return None

    def aspect_ratio(self) -> tuple[int, int] | None:
        """12.1.4 of 14496-12: pasp, horizontal and vertical; None without one."""
        box = self._more.first("pasp")
        return box.at(0, "II") if box is not None else None


def _video_track(movie: Contents) -> Contents:
    """8.4.3: the first track with handler vide; the first of H.264, if there is one."""
    others = []
    for track in movie.boxes("trak"):
        if (media := track.first("mdia")) is None:
            continue
        handler = media.only("hdlr").at(8, "4s")[0]
        if handler == b"vide":
            if any(entry.name in _H264 for entry in _sample_entries(media.only("minf").only("stbl"))):
                return track
            others.append(track)
    if not others:
        raise BitstreamError("this MP4 holds no video")
    return others[0]


def _sample_entries(table: Contents) -> Iterator[Contents]:
    """8.5.2: the boxes of stsd."""
    box = table.only("stsd")
    box.take(8)
    yield from box.boxes()


def _defaults(movie: Contents, track_id: int) -> Defaults:
    extends = movie.first("mvex")
    for box in extends.boxes("trex") if extends is not None else ():
        _, box_track_id, *values = box.read("IIIIII")
        if box_track_id == track_id:
            return Defaults(*values)
    return Defaults()


def _brands(box: Contents) -> list[str]:
    """4.3: major brand, then the others."""
    words = [printable(box.take(4)) for _ in range(box.left // 4)]
    return list(dict.fromkeys(words[:1] + words[2:]))


def _is_cut_off(file: BinaryIO, box: FileBox, size: int) -> bool:
    """Whether the file ends in this moof: the writer was stopped there, and the fragments before are whole."""
    return box.end == size and int.from_bytes(read_at(file, box.start, 4), "big") > size - box.start
