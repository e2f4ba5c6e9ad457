"""The boxes in front of the media data: ftyp, and moov with a video track and perhaps sound (ISO/IEC 14496-12, 4.3 and 8)."""

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .avc import ParameterSets
from .boxes import LARGEST_32, SOUND_TRACK, UPRIGHT, VIDEO_TRACK, box, fixed_point, full_box, header_times, this_file
from .samples import SampleTable, empty_table

if TYPE_CHECKING:  # loaded where there is sound
    from .sound_track import SoundTrack

# 4.3: brands. iso6: what fragments need (tfdt, positions relative to moof); avc1: H.264; mp41: for older players.
FILE_TYPE = box(b"ftyp", b"isom", struct.pack(">I", 0x200), b"isom", b"iso6", b"avc1", b"mp41")
SOUND_FILE_TYPE = box(b"ftyp", b"isom", struct.pack(">I", 0x200), b"isom", b"iso6", b"mp41")


@dataclass(frozen=True)
class Track:
    """What is known of the track when its first access unit is."""

    sets: ParameterSets
    timescale: int  # units a second; without sound those of the movie and the edit list too: all durations are exact
    start: int = 0  # composition time of the first frame: decoding begins earlier where frames are reordered
    matrix: tuple[int, ...] = UPRIGHT
    tags: bytes = b""  # boxes at the end of moov, see FileTags
    sound: "SoundTrack | None" = None

    @property
    def movie_timescale(self) -> int:
        """Units a second of movie and edit lists: a multiple of `timescale`."""
        return self.timescale if self.sound is None else self.sound.movie_timescale


def movie(track: Track, table: SampleTable, positions: list[int], sound_positions: list[int] | None = None) -> bytes:
    """8.2.1: moov of a file with all samples in its table, chunks at `positions`, those of the sound at `sound_positions`."""
    lasts = max(0, table.end - track.start) * (track.movie_timescale // track.timescale)
    sound = track.sound.movie_boxes(sound_positions or [], lasts) if track.sound is not None else b""
    return _movie(track, lasts, table.end, table.boxes(track.sets.sample_entry(), positions), sound)


def initial_movie(track: Track) -> bytes:
    """8.2.1, 8.8.1: moov of a file of fragments."""
    numbers = (VIDEO_TRACK,) if track.sound is None else (VIDEO_TRACK, SOUND_TRACK)
    sound = b"" if track.sound is None else track.sound.initial_boxes()
    return _movie(track, 0, 0, empty_table(track.sets.sample_entry()), sound + _extends(*numbers))


def initial_sound(sound: "SoundTrack") -> bytes:
    """8.2.1, 8.8.1: moov of a file of fragments with the sound alone."""
    header = _movie_header(sound.movie_timescale, SOUND_TRACK, 0)
    return box(b"moov", header, sound.initial_boxes(), _extends(SOUND_TRACK))


def _extends(*numbers: int) -> bytes:
    """8.8.1: mvex: tracks of these numbers go on in fragments."""
    return box(b"mvex", *(full_box(b"trex", 0, 0, struct.pack(">IIIII", number, 1, 0, 0, 0)) for number in numbers))


def _movie(track: Track, lasts: int, media: int, table: bytes, after: bytes = b"") -> bytes:
    """8.2.1: moov. lasts: duration of the presentation, in the movie's units; media: end of the composition times, in the
    track's; 0: fragments say their own. after: boxes of the sound and of fragments.
    """
    header = _movie_header(track.movie_timescale, VIDEO_TRACK if track.sound is None else SOUND_TRACK, lasts)
    return box(b"moov", header, _track(track, lasts, media, table), after, track.tags)


def _movie_header(timescale: int, last_track: int, duration: int) -> bytes:
    """8.2.2: mvhd: rate 1, volume 1. last_track: the largest number of a track."""
    after = struct.pack(">IH10x9i24xI", 1 << 16, 1 << 8, *UPRIGHT, last_track + 1)
    version, contents = header_times(duration, struct.pack(">I", timescale), after)
    return full_box(b"mvhd", version, 0, contents)


def _track(track: Track, lasts: int, media: int, table: bytes) -> bytes:
    """8.3.1: trak."""
    version, contents = header_times(media, struct.pack(">I", track.timescale), struct.pack(">HH", 0x55C4, 0))
    return box(
        b"trak",
        _track_header(track, lasts),
        _edits(track, lasts),
        box(
            b"mdia",
            full_box(b"mdhd", version, 0, contents),  # 8.4.2; language "und"
            full_box(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, b"vide"), b"h264lite\0"),
            box(b"minf", full_box(b"vmhd", 0, 1, bytes(8)), this_file(), table),
        ),
    )


def _track_header(track: Track, duration: int) -> bytes:
    """8.3.2: tkhd: enabled, in the movie and its preview; the size is that on the display."""
    width, height = (fixed_point(float(side)) for side in track.sets.display_size)
    after = struct.pack(">8xhhHH9iII", 0, 0, 0, 0, *track.matrix, width, height)
    version, contents = header_times(duration, struct.pack(">II", VIDEO_TRACK, 0), after)
    return full_box(b"tkhd", version, 7, contents)


def _edits(track: Track, duration: int) -> bytes:
    """8.6.6: edts, for reordered frames alone: the presentation begins with the first frame's composition time."""
    if not track.start:
        return b""
    large = max(duration, track.start) > LARGEST_32 >> 1
    entry = struct.pack(">Qqhh" if large else ">Iihh", duration, track.start, 1, 0)
    return box(b"edts", full_box(b"elst", int(large), 0, struct.pack(">I", 1), entry))
