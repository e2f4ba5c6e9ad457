"""The boxes in front of the media data: ftyp, and moov with one video track (ISO/IEC 14496-12, 4.3 and 8)."""

import struct
from dataclasses import dataclass

from .avc import ParameterSets
from .boxes import LARGEST_32, box, fixed_point, full_box
from .samples import SampleTable, empty_table

# 4.3: brands. iso6: what fragments need (tfdt, positions relative to moof); avc1: H.264; mp41: for older players.
FILE_TYPE = box(b"ftyp", b"isom", struct.pack(">I", 0x200), b"isom", b"iso6", b"avc1", b"mp41")
UPRIGHT = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)  # 6.2.2: the matrix of video that is not rotated
_TRACK = 1  # the only one


@dataclass(frozen=True)
class Track:
    """What is known of the track when its first access unit is."""

    sets: ParameterSets
    timescale: int  # units a second, of movie, track and edit list alike: all durations are exact
    start: int = 0  # composition time of the first frame: decoding begins earlier where frames are reordered
    matrix: tuple[int, ...] = UPRIGHT
    tags: bytes = b""  # boxes at the end of moov, see FileTags


def movie(track: Track, table: SampleTable, positions: list[int]) -> bytes:
    """8.2.1: moov of a file with all samples in its table, chunks at `positions`."""
    lasts = max(0, table.end - track.start)
    return _movie(track, lasts, table.end, table.boxes(track.sets.sample_entry(), positions))


def initial_movie(track: Track) -> bytes:
    """8.2.1, 8.8.1: moov of a file of fragments."""
    extends = full_box(b"trex", 0, 0, struct.pack(">IIIII", _TRACK, 1, 0, 0, 0))
    return _movie(track, 0, 0, empty_table(track.sets.sample_entry()), box(b"mvex", extends))


def _movie(track: Track, lasts: int, media: int, table: bytes, extends: bytes = b"") -> bytes:
    """8.2.1: moov. lasts: duration of the presentation; media: end of the composition times; 0: fragments say their own."""
    return box(b"moov", _movie_header(track, lasts), _track(track, lasts, media, table), extends, track.tags)


def _times(duration: int, between: bytes, after: bytes) -> tuple[int, bytes]:
    """(version, contents) of a header: no dates of creation, `between`, the duration in 32 or 64 bits, `after`."""
    if duration > LARGEST_32:
        return 1, struct.pack(">QQ", 0, 0) + between + struct.pack(">Q", duration) + after
    return 0, struct.pack(">II", 0, 0) + between + struct.pack(">I", duration) + after


def _movie_header(track: Track, duration: int) -> bytes:
    """8.2.2: mvhd: rate 1, volume 1."""
    after = struct.pack(">IH10x9i24xI", 1 << 16, 1 << 8, *UPRIGHT, _TRACK + 1)
    version, contents = _times(duration, struct.pack(">I", track.timescale), after)
    return full_box(b"mvhd", version, 0, contents)


def _track(track: Track, lasts: int, media: int, table: bytes) -> bytes:
    """8.3.1: trak."""
    version, contents = _times(media, struct.pack(">I", track.timescale), struct.pack(">HH", 0x55C4, 0))
    return box(
        b"trak",
        _track_header(track, lasts),
        _edits(track, lasts),
        box(
            b"mdia",
            full_box(b"mdhd", version, 0, contents),  # 8.4.2; language "und"
            full_box(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, b"vide"), b"h264lite\0"),
            box(b"minf", full_box(b"vmhd", 0, 1, bytes(8)), _this_file(), table),
        ),
    )


def _track_header(track: Track, duration: int) -> bytes:
    """8.3.2: tkhd: enabled, in the movie and its preview; the size is that on the display."""
    width, height = (fixed_point(float(side)) for side in track.sets.display_size)
    after = struct.pack(">8xhhHH9iII", 0, 0, 0, 0, *track.matrix, width, height)
    version, contents = _times(duration, struct.pack(">II", _TRACK, 0), after)
    return full_box(b"tkhd", version, 7, contents)


def _edits(track: Track, duration: int) -> bytes:
    """8.6.6: edts, for reordered frames alone: the presentation begins with the first frame's composition time."""
    if not track.start:
        return b""
    large = max(duration, track.start) > LARGEST_32 >> 1
    entry = struct.pack(">Qqhh" if large else ">Iihh", duration, track.start, 1, 0)
    return box(b"edts", full_box(b"elst", int(large), 0, struct.pack(">I", 1), entry))


def _this_file() -> bytes:
    """8.7.1: dinf: the samples are in this file."""
    return box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), full_box(b"url ", 0, 1)))
