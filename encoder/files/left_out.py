"""What an input of PyAV has and the output lacks, in words: further tracks, chapters, metadata, data beside the samples."""

from collections.abc import Mapping
from typing import Any

# Side data of frames, by PyAV's names of their types
_OF_FRAMES = {
    "A53_CC": "captions", "STEREO3D": "stereo 3D", "SPHERICAL": "the spherical projection",
    "MASTERING_DISPLAY_METADATA": "HDR metadata", "CONTENT_LIGHT_LEVEL": "HDR metadata", "DYNAMIC_HDR_PLUS": "HDR metadata",
    "DOVI_RPU_BUFFER": "HDR metadata", "GOP_TIMECODE": "timecodes", "S12M_TIMECODE": "timecodes",
}  # fmt: skip
# Metadata that containers and encoders write by themselves, in lower case
_OF_FORMAT = {
    "alpha_mode", "bps", "compatible_brands", "duration", "encoder", "handler_name", "language", "major_brand",
    "minor_version", "number_of_bytes", "number_of_frames", "stereo_mode", "vendor_id",
}  # fmt: skip
_MOST_NAMES = 6  # names of metadata in a line


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
    chapters = _chapters(container)
    covers = [stream for stream in streams if stream.type == "video" and stream.disposition & stream.disposition.attached_pic]
    of_type = {
        kind: [s for s in streams if s.type == kind and s not in covers]
        for kind in ("video", "audio", "subtitle", "data", "attachment")
    }
    of_type["data"] = of_type["data"][bool(chapters) :]  # MP4 keeps the titles of chapters in a track
    return [
        *_more(len(of_type["video"]), "video track"),
        *_more(len(of_type["audio"][1:]), "sound track"),
        *_counted(len(of_type["subtitle"]), "subtitles", "tracks of subtitles"),
        *_counted(len(of_type["data"]), "a data track", "data tracks"),
        *_counted(len(of_type["attachment"]), "an attachment", "attachments"),
        *_counted(len(covers), "the cover picture", "cover pictures"),
        *_counted(chapters, "a chapter", "chapters"),
        *_metadata({**video.metadata, **container.metadata}),
        *(["alpha"] if _lower(video.metadata).get("alpha_mode") == "1" else []),
    ]


def _chapters(container: object) -> int:
    """The number of chapters."""
    return len(container.chapters()) if hasattr(container, "chapters") else 0  # PyAV from 14.1 on


def _more(count: int, what: str) -> list[str]:
    """Tracks beside the first of their type."""
    return _counted(count, f"the second {what}", f"more {what}s")


def _counted(count: int, one: str, several: str) -> list[str]:
    return [one] if count == 1 else [f"{count} {several}"] if count else []


def _metadata(tags: Mapping[str, str]) -> list[str]:
    """The title, and the names of other metadata of a person or a camera."""
    names = sorted(name for name, text in _lower(tags).items() if text and name not in _OF_FORMAT and name[0] != "_")
    rest = [name for name in names if name != "title"]
    shown = ", ".join([*rest[:_MOST_NAMES], *(["and others"] if rest[_MOST_NAMES:] else [])])
    return [*(["the title"] if "title" in names else []), *([f"metadata ({shown})"] if rest else [])]


def _lower(tags: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in tags.items()}
