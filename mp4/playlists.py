"""Playlists of segments: HLS (RFC 8216, a media playlist) and DASH (ISO/IEC 23009-1, an MPD of one representation)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from itertools import groupby
from math import floor
from urllib.parse import quote

from .avc import ParameterSets

_VERSION = 7  # RFC 8216, 7: EXT-X-MAP needs 6; fragmented MP4 came with 7
_PROFILE = "urn:mpeg:dash:profile:isoff-live:2011"  # 8.4 of 23009-1: segments by template
_DIGITS = 5  # of a segment's number, at least


def init_name(stem: str) -> str:
    """The file of the initialisation segment."""
    return f"{stem}_init.mp4"


def segment_name(stem: str, number: int) -> str:
    """The file of media segment `number`, from 1 on."""
    return f"{stem}_{number:0{_DIGITS}}.m4s"


@dataclass
class Presentation:
    """What has been written. stem: of all files' names; seconds: of a segment, as asked for."""

    stem: str
    sets: ParameterSets
    timescale: int
    seconds: float
    fps: Fraction | None  # None: frames have times of their own
    segments: list[tuple[int, int]] = field(default_factory=list)  # (units of the timescale, bytes)
    is_complete: bool = False

    @property
    def codecs(self) -> str:
        """RFC 6381: as in the codecs of MIME types, with profile, constraints and level of the SPS."""
        return f"avc1.{self.sets.sps_units[0][1:4].hex()}"

    def _seconds(self, units: int) -> Fraction:
        return Fraction(units, self.timescale)

    def hls(self) -> str:
        """RFC 8216, 4.3: a media playlist, to which segments are added, and EXT-X-ENDLIST at the end."""
        lasts = [self._seconds(units) for units, _ in self.segments]
        half = 0 if self.fps is None else 1 / (2 * self.fps)
        most = max([Fraction(self.seconds) + half, *lasts])
        lines = [
            "#EXTM3U",
            f"#EXT-X-VERSION:{_VERSION}",
            f"#EXT-X-TARGETDURATION:{max(1, floor(most + Fraction(1, 2)))}",  # 4.3.3.1: durations round to it, at most
            "#EXT-X-MEDIA-SEQUENCE:1",
            "#EXT-X-PLAYLIST-TYPE:EVENT",
            "#EXT-X-INDEPENDENT-SEGMENTS",
            f'#EXT-X-MAP:URI="{quote(init_name(self.stem))}"',
        ]
        for number, seconds in enumerate(lasts, 1):
            lines += [f"#EXTINF:{float(seconds):.6f},", quote(segment_name(self.stem, number))]
        return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if self.is_complete else []), ""])

    def dash(self, begun: str, now: str) -> str:
        """5.3 of ISO/IEC 23009-1. begun, now: xs:dateTime in UTC, of the first segment, and when this is written."""
        lasts = self._seconds(sum(units for units, _ in self.segments))
        most = max([float(self.seconds), *(float(self._seconds(units)) for units, _ in self.segments)])
        period = _duration(Fraction(most))
        live = {"type": "dynamic", "availabilityStartTime": begun, "publishTime": now, "minimumUpdatePeriod": period}
        ended = {"type": "static", "mediaPresentationDuration": _duration(lasts)}
        root = {
            "xmlns": "urn:mpeg:dash:schema:mpd:2011", "profiles": _PROFILE, **(ended if self.is_complete else live),
            "minBufferTime": period, "maxSegmentDuration": period,
        }  # fmt: skip
        adaptation = {"contentType": "video", "segmentAlignment": "true", "startWithSAP": "1"}
        template = {
            "timescale": self.timescale, "initialization": quote(init_name(self.stem)),
            "media": f"{quote(self.stem)}_$Number%0{_DIGITS}d$.m4s", "startNumber": "1",
        }  # fmt: skip
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            _tag("MPD", root),
            _tag("Period", {"id": "1", "start": "PT0S"}),
            _tag("AdaptationSet", adaptation),
            _tag("Representation", self._representation()),
            _tag("SegmentTemplate", template),
            "<SegmentTimeline>",
            *self._timeline(),
            "</SegmentTimeline>",
            *(f"</{name}>" for name in ("SegmentTemplate", "Representation", "AdaptationSet", "Period", "MPD")),
        ]
        return "\n".join([*lines, ""])

    def _representation(self) -> dict[str, object]:
        """5.3.5; bandwidth: bits a second of the segment with most of them."""
        sps, ratio = self.sets.sps, self.sets.sample_aspect_ratio
        rates = [8 * size / self._seconds(units) for units, size in self.segments]
        frame_rate = {} if self.fps is None else {"frameRate": "/".join(map(str, self.fps.as_integer_ratio()))}
        return {
            "id": "1", "mimeType": "video/mp4", "codecs": self.codecs, "width": sps.width, "height": sps.height, **frame_rate,
            **({"sar": f"{ratio[0]}:{ratio[1]}"} if all(ratio) else {}), "bandwidth": max(1, round(max(rates, default=1))),
        }  # fmt: skip

    def _timeline(self) -> list[str]:
        """5.3.9.6: equal durations one after another are an element; r: how many times more."""
        lines, time = [], 0
        for units, group in groupby(units for units, _ in self.segments):
            count = len(list(group))
            lines.append(_tag("S", {"t": time, "d": units, **({"r": count - 1} if count > 1 else {})}, "/"))
            time += count * units
        return lines


def _tag(name: str, attributes: Mapping[str, object], end: str = "") -> str:
    words = [name, *(f'{key}="{escape(str(value))}"' for key, value in attributes.items())]
    return f"<{' '.join(words)}{end}>"


def _duration(seconds: Fraction) -> str:
    """xs:duration, rounded to milliseconds."""
    return f"PT{float(seconds):.3f}S"
