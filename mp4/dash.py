"""The manifest of DASH (ISO/IEC 23009-1): an MPD with the video, and the sound in an adaptation set of its own."""

from collections.abc import Mapping
from fractions import Fraction
from html import escape
from itertools import groupby
from math import ceil
from urllib.parse import quote

from ..sound import aac
from ..sound.stream import SoundFormat
from .playlists import DIGITS, Presentation, Segments, init_name
from .sound_entry import codec_name

_PROFILE = "urn:mpeg:dash:profile:isoff-live:2011"  # 8.4: segments by template
_CHANNELS = "urn:mpeg:mpegB:cicp:ChannelConfiguration"  # ISO/IEC 23091-3
_CONFIGURATIONS = (1, 2, 3, 5, 6)  # whose number is that of their channels, in AAC, Opus and FLAC alike
_SBR, _PS = 5, 29  # object types of AAC that play at twice the rate, or more channels, than the core has


def manifest(presentation: Presentation, begun: str, now: str) -> str:
    """5.3: the MPD. begun, now: xs:dateTime in UTC, of the first segment, and when this is written."""
    video, sound = presentation.video, presentation.sound
    has_sound = sound is not None and bool(sound.entries)
    most = max([Fraction(presentation.seconds), *video.seconds, *(sound.seconds if sound is not None else ())])
    period = _duration(Fraction(ceil(1000 * most), 1000))  # none lasts longer
    live = {"type": "dynamic", "availabilityStartTime": begun, "publishTime": now, "minimumUpdatePeriod": period}
    ended = {"type": "static", "mediaPresentationDuration": _duration(sum(video.seconds, Fraction(0)))}
    root = {
        "xmlns": "urn:mpeg:dash:schema:mpd:2011", "profiles": _PROFILE, **(ended if presentation.is_complete else live),
        "minBufferTime": period, "maxSegmentDuration": period,
    }  # fmt: skip
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        _tag("MPD", root),
        _tag("Period", {"id": "1", "start": "PT0S"}),
        *_adaptation("video", _video(presentation), [], video),
    ]
    if has_sound:
        assert sound is not None and presentation.sound_format is not None
        lines += _adaptation("audio", _sound(presentation.sound_format), _channels(presentation.sound_format), sound)
    return "\n".join([*lines, "</Period>", "</MPD>", ""])


def _adaptation(content: str, attributes: dict[str, object], elements: list[str], segments: Segments) -> list[str]:
    """5.3.3, 5.3.5, 5.3.9: an adaptation set of one representation. attributes, elements: of the latter."""
    number = {"video": "1", "audio": "2"}[content]
    rates = [8 * size / seconds for seconds, (_, size) in zip(segments.seconds, segments.entries)]
    template = {
        "timescale": segments.timescale, "initialization": quote(init_name(segments.stem)),
        "media": f"{quote(segments.stem)}_$Number%0{DIGITS}d$.m4s", "startNumber": "1",
    }  # fmt: skip
    fixed = {"id": number, "mimeType": f"{content}/mp4"}
    return [
        _tag("AdaptationSet", {"contentType": content, "segmentAlignment": "true", "startWithSAP": "1"}),
        # 5.3.5.2: bits a second of the segment with most of them
        _tag("Representation", {**fixed, **attributes, "bandwidth": ceil(max(rates, default=1))}),
        *elements,
        _tag("SegmentTemplate", template),
        "<SegmentTimeline>",
        *_timeline(segments),
        *(f"</{name}>" for name in ("SegmentTimeline", "SegmentTemplate", "Representation", "AdaptationSet")),
    ]


def _video(presentation: Presentation) -> dict[str, object]:
    """5.3.7.2; codecs by RFC 6381: profile, constraints and level of the SPS."""
    sets, fps = presentation.sets, presentation.fps
    ratio = sets.sample_aspect_ratio
    frame_rate = {} if fps is None else {"frameRate": "/".join(map(str, fps.as_integer_ratio()))}
    return {
        "codecs": f"avc1.{sets.sps_units[0][1:4].hex()}", "width": sets.sps.width, "height": sets.sps.height, **frame_rate,
        **({"sar": f"{ratio[0]}:{ratio[1]}"} if all(ratio) else {}),
    }  # fmt: skip


def _sound(sound: SoundFormat) -> dict[str, object]:
    """5.3.7.2."""
    if sound.codec != "aac":
        return {"codecs": codec_name(sound), "audioSamplingRate": sound.rate}
    core = {"audioSamplingRate": aac.read_config(sound.setup)[0]}
    return {"codecs": codec_name(sound), **(core if aac.object_type(sound.setup) not in (_SBR, _PS) else {})}


def _channels(sound: SoundFormat) -> list[str]:
    """5.8.5.4: the loudspeakers, where a number says them."""
    if sound.channels not in _CONFIGURATIONS or (sound.codec == "aac" and aac.object_type(sound.setup) == _PS):
        return []
    return [_tag("AudioChannelConfiguration", {"schemeIdUri": _CHANNELS, "value": sound.channels}, "/")]


def _timeline(segments: Segments) -> list[str]:
    """5.3.9.6: equal durations one after another are an element; r: how many times more."""
    lines, time = [], segments.begin
    for units, group in groupby(units for units, _ in segments.entries):
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
