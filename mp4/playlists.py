"""What segments have been written, and the playlist of HLS that names them (RFC 8216, a media playlist)."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from urllib.parse import quote

from ..sound.stream import SoundFormat
from .avc import ParameterSets

_VERSION = 7  # RFC 8216, 7: EXT-X-MAP needs 6; fragmented MP4 came with 7
DIGITS = 5  # of a segment's number, at least


def init_name(stem: str) -> str:
    """The file of the initialisation segment."""
    return f"{stem}_init.mp4"


def segment_name(stem: str, number: int) -> str:
    """The file of media segment `number`, from 1 on."""
    return f"{stem}_{number:0{DIGITS}}.m4s"


def sound_stem(stem: str) -> str:
    """Of the names of the sound's files, where it has its own."""
    return f"{stem}_sound"


@dataclass
class Segments:
    """One after another. stem: of their files' names; timescale: units a second; begin: of the first one, in units."""

    stem: str
    timescale: int
    begin: int = 0
    entries: list[tuple[int, int]] = field(default_factory=list)  # (units, bytes of the file)

    @property
    def seconds(self) -> list[Fraction]:
        """How long each lasts."""
        return [Fraction(units, self.timescale) for units, _ in self.entries]


@dataclass
class Presentation:
    """What has been written. seconds: of a segment, as asked for. video: with the sound in it, if `sound` is None."""

    sets: ParameterSets
    seconds: float
    fps: Fraction | None  # None: frames have times of their own
    video: Segments
    sound: Segments | None = None
    sound_format: SoundFormat | None = None
    is_complete: bool = False

    def hls(self) -> str:
        """RFC 8216, 4.3: a media playlist, to which segments are added, and EXT-X-ENDLIST at the end."""
        stem, lasts = self.video.stem, self.video.seconds
        half = 0 if self.fps is None else 1 / (2 * self.fps)
        most = max([Fraction(self.seconds) + half, *lasts])
        lines = [
            "#EXTM3U",
            f"#EXT-X-VERSION:{_VERSION}",
            f"#EXT-X-TARGETDURATION:{max(1, floor(most + Fraction(1, 2)))}",  # 4.3.3.1: durations round to it, at most
            "#EXT-X-MEDIA-SEQUENCE:1",
            "#EXT-X-PLAYLIST-TYPE:EVENT",
            "#EXT-X-INDEPENDENT-SEGMENTS",
            f'#EXT-X-MAP:URI="{quote(init_name(stem))}"',
        ]
        for number, seconds in enumerate(lasts, 1):
            lines += [f"#EXTINF:{float(seconds):.6f},", quote(segment_name(stem, number))]
        return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if self.is_complete else []), ""])
