"""What an input of PyAV has and the output lacks, in words: further tracks, data beside the samples; and what may be kept."""

import struct
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from ...mp4.tags import MOST_CHAPTERS, FileTags
from ..sei import Message, captions, user_data
from ..settings.option_types import read_mastering_display

# Side data of frames, by PyAV's names of their types
_OF_FRAMES = {
    "STEREO3D": "stereo 3D", "SPHERICAL": "the spherical projection",
    "DYNAMIC_HDR_PLUS": "HDR metadata", "DYNAMIC_HDR_VIVID": "HDR metadata",
    "DOVI_RPU_BUFFER": "HDR metadata", "GOP_TIMECODE": "timecodes", "S12M_TIMECODE": "timecodes",
}  # fmt: skip
# Metadata that containers and encoders write by themselves, in lower case
_OF_FORMAT = {
    "alpha_mode", "bps", "compatible_brands", "duration", "encoder", "handler_name", "language", "major_brand",
    "minor_version", "number_of_bytes", "number_of_frames", "stereo_mode", "vendor_id",
}  # fmt: skip
_MOST_NAMES = 6  # names of metadata in a line
_LONGEST_TEXT = 1 << 16  # characters of metadata
_LATEST = 10**9  # seconds: no chapter begins later


def side_data(frame: Any) -> Mapping[str, Any]:
    """Buffers by PyAV's names of their types; none of a frame that has a type which PyAV does not know."""
    try:
        return frame.side_data  # type: ignore[no-any-return]
    except ValueError:
        return {}


def of_frame(frame: object) -> list[str]:
    """What lies beside the samples of a frame."""
    data = side_data(frame)
    return list(dict.fromkeys(words for name, words in _OF_FRAMES.items() if name in data))


def of_container(container: Any, video: Any) -> list[str]:
    """What a container has beside the samples of the stream `video` and its first sound track."""
    streams = [stream for stream in container.streams if stream.index != video.index]
    chapters = len(_chapters(container))
    covers = [stream for stream in streams if stream.type == "video" and stream.disposition & stream.disposition.attached_pic]
    of_type = {
        stream_type: [s for s in streams if s.type == stream_type and s not in covers]
        for stream_type in ("video", "audio", "subtitle", "data", "attachment")
    }
    of_type["data"] = of_type["data"][bool(chapters) :]  # MP4 keeps the titles of chapters in a track
    return [
        *_more(len(of_type["video"]), "video track"),
        *_more(len(of_type["audio"][1:]), "sound track"),
        *_counted(len(of_type["subtitle"]), "subtitles", "tracks of subtitles"),
        *_counted(len(of_type["data"]), "a data track", "data tracks"),
        *_counted(len(of_type["attachment"]), "an attachment", "attachments"),
        *_counted(len(covers), "the cover picture", "cover pictures"),
        *_counted(chapters - len(tags_of(container, video).chapters), "a chapter", "chapters"),
        *_metadata({name: text for name, text in _said(container, video).items() if len(text) > _LONGEST_TEXT}),
        *(["alpha"] if _lower(video.metadata).get("alpha_mode") == "1" else []),
    ]


def tags_of(container: object, video: object) -> FileTags:
    """The title and other metadata of a person or a camera, and the chapters, which containers of the output keep."""
    chapters = [(c["start"] * c["time_base"], c["metadata"].get("title", "")) for c in _chapters(container)]
    return FileTags(
        {name: text for name, text in _said(container, video).items() if len(text) <= _LONGEST_TEXT},
        [(max(Fraction(0), begin), title) for begin, title in chapters if begin < _LATEST][:MOST_CHAPTERS],
    )


def _said(container: Any, video: Any) -> dict[str, str]:
    """Metadata by name, but that of formats and encoders."""
    tags = {**video.metadata, **container.metadata}
    names = sorted(name for name in tags if tags[name] and name.lower() not in _OF_FORMAT and name[0] != "_")
    return {name: tags[name] for name in names}


def of_tags(tags: FileTags) -> list[str]:
    """What a byte stream lacks of them."""
    return [*_counted(len(tags.chapters), "a chapter", "chapters"), *_metadata(tags.metadata)]


def messages_of(frame: object) -> list[Message]:
    """Captions and user data of a frame."""
    data: Any = side_data(frame)  # of which PyAV gives the entries, and not their names
    entries = [(entry.type.name, bytes(entry)) for entry in data]
    of_captions = [message for name, content in entries if name == "A53_CC" for message in captions(content)]
    return [*of_captions, *(message for name, data in entries if name == "SEI_UNREGISTERED" for message in user_data(data))]


def hdr_of(frame: object) -> dict[str, str | None]:
    """The options mastering_display and cll of what FFmpeg's structures say of a frame; numbers are fractions there."""
    data, options = side_data(frame), dict[str, str | None]()
    display, light = data.get("MASTERING_DISPLAY_METADATA"), data.get("CONTENT_LIGHT_LEVEL")
    if display is not None and len(bytes(display)) >= 88:
        numbers = struct.unpack("22i", bytes(display)[:88])
        values = [Fraction(above, below or 1) for above, below in zip(numbers[:20:2], numbers[1:20:2])]
        red, green, blue, white, lights = (values[k : k + 2] for k in range(0, 10, 2))
        points = [f"{name}({round(x * 50000)},{round(y * 50000)})"
                  for name, (x, y) in zip(("G", "B", "R", "WP"), (green, blue, red, white))]  # fmt: skip
        text = f"{''.join(points)}L({round(lights[1] * 10000)},{round(lights[0] * 10000)})"
        with suppress(ValueError):  # numbers that are none of a display
            read_mastering_display(text)
            options |= {"mastering_display": text} if all(numbers[20:]) else {}  # has_primaries, has_luminance
    if light is not None and len(bytes(light)) >= 8:
        most, mean = struct.unpack("2I", bytes(light)[:8])
        options["cll"] = f"{min(most, 65535)},{min(mean, 65535)}"
    return options


def _chapters(container: object) -> list[dict[str, Any]]:
    return container.chapters() if hasattr(container, "chapters") else []  # PyAV from 14.1 on


def _more(count: int, what: str) -> list[str]:
    """Tracks beside the first of their type."""
    return _counted(count, f"the second {what}", f"more {what}s")


def _counted(count: int, one: str, several: str) -> list[str]:
    return [one] if count == 1 else [f"{count} {several}"] if count else []


def _metadata(tags: Mapping[str, str]) -> list[str]:
    """The title, and the names of other metadata of a person or a camera."""
    names = sorted(_lower(tags))
    rest = [name for name in names if name != "title"]
    shown = ", ".join([*rest[:_MOST_NAMES], *(["and others"] if rest[_MOST_NAMES:] else [])])
    return [*(["the title"] if "title" in names else []), *([f"metadata ({shown})"] if rest else [])]


def _lower(tags: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in tags.items()}
