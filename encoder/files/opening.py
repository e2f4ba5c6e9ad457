"""Opens inputs and outputs: the reader or writer follows from the first bytes, the file extension or an option."""

import io
import os
from collections.abc import Sequence
from fractions import Fraction
from math import isinf
from typing import TYPE_CHECKING, Any

from ...files import opened, shown
from ...uninterrupted import check_of_file
from ..errors import InputError, OptionError
from .names import I420, image_files, rate_from_name, size_from_name
from .output import PLAYLISTS, ByteSink, PacketSink, error_text, muxer_of
from .video import (
    LONGEST_Y4M_LINE,
    Y4M_MAGIC,
    RawSource,
    Source,
    VideoFormat,
    parse_y4m_header,
    with_length,
)

if TYPE_CHECKING:
    from .sound import CopiedSound
    from .sound_av import AvSound


def open_inputs(names: Sequence[str], size: tuple[int, int] | None, demuxer: str = "auto") -> tuple[Source, str]:
    """Open one video, or image files as a video; also the name for messages. Arguments: see `open_source`."""
    if demuxer == "auto" and (files := image_files(names)):
        from .images import ImageSource  # and AvSource below: most inputs need neither

        return ImageSource(files), names[0] if len(names) == 1 else f"{files[0]} and others"
    if len(names) > 1:
        raise OptionError(f"{demuxer} with several inputs: it reads one file", "demuxer")
    return open_source(names[0], size, demuxer), shown(names[0], "standard input")


def open_source(name: str, size: tuple[int, int] | None, demuxer: str = "auto") -> Source:
    """Open `name` ("-" = standard input) as raw I420, Y4M, or through PyAV.

    `demuxer` auto: by the first bytes (the Y4M magic), then by the file extension.
    """
    said = shown(name, "standard input")
    file = _open(name, said)
    try:
        first = file.peek(len(Y4M_MAGIC))[: len(Y4M_MAGIC) + 1]  # left unread; at least one byte unless the file is empty
        if not first:
            raise InputError(f"{said}: empty, no frames to encode")
        if demuxer == "auto":
            demuxer = _guess(name, first, size)
        if demuxer == "y4m":
            header = file.readline(LONGEST_Y4M_LINE)
            return RawSource(file, said, with_length(file, name, parse_y4m_header(header, said)), True)
        if demuxer == "av":
            file.close()
            from .video_av import AvSource

            return AvSource(name)
        size = size or size_from_name(name)
        if size is None:
            raise OptionError(
                f"{said}: the size of raw video is unknown: give --input-res WxH, or a name such as x_352x288.yuv"
            )
        return RawSource(file, said, with_length(file, name, VideoFormat(*size, rate_from_name(name))))
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            check_of_file(error)
            raise InputError(f"{said}: {error_text(error)}") from None
        raise


def _open(name: str, said: str) -> io.BufferedReader:
    try:
        return opened(name, io.DEFAULT_BUFFER_SIZE if name == "-" else 1 << 20)
    except (OSError, ValueError) as error:
        check_of_file(error)
        raise InputError(f"{said}: {error_text(error)}") from None


def _guess(name: str, first: bytes, size: tuple[int, int] | None) -> str:
    """raw, y4m or av."""
    ending = os.path.splitext(name)[1].lower()
    if ending == ".y4m" or first.startswith(Y4M_MAGIC):
        return "y4m"
    if name == "-" or size or ending in (*I420, ".rgb"):
        return "raw"
    return "av"


def open_packets(
    name: str, fps: Fraction, muxer: str = "auto", fragment: float | None = None,
    sound: "CopiedSound | AvSound | None" = None,    nal_hrd: str = "none", **of_frames: Any,
) -> PacketSink:  # fmt: skip
    """The sink for the stream. `muxer` auto: by the file extension. fragment: MP4, in fragments of so many seconds.

    sound: beside the video. nal_hrd: the option. of_frames: time_base, matrix and tags of sinks that keep them.
    """
    muxer = container_of(name, muxer, fragment)
    if muxer in PLAYLISTS:
        return _open_segments(name, fps, muxer, fragment, getattr(sound, "stream", None), nal_hrd, of_frames)
    if fragment is not None and muxer != "mp4":
        raise OptionError(f"is for MP4, and {shown(name, 'standard output')} is none (--muxer mp4)", "fragment")
    if sound is not None and muxer not in ("mp4", "mkv", "mov"):
        said = shown(name, "standard output")
        raise OptionError(f"is for .mp4, .mkv, .mov, .m3u8 and .mpd files, and not for {said}", "audio")
    if muxer in ("mp4", "mov"):
        if nal_hrd == "cbr":  # ISO/IEC 14496-15, 5.2: without filler data the rate is not constant
            raise OptionError("cbr is for .264, .h264 and .mkv: MP4 holds no filler data; vbr is for all", "nal-hrd")
    copied: Any = getattr(sound, "stream", None)  # of a CopiedSound
    if muxer == "mp4" and (sound is None or copied is not None):
        from .output_mp4 import Mp4Sink

        return Mp4Sink(name, fps=fps, fragment=fragment, sound=copied, **of_frames)
    if muxer in ("mp4", "mkv", "mov"):
        from .output_av import ContainerSink

        of_av: Any = sound
        return ContainerSink(name, fps, muxer, sound=of_av, **of_frames)
    return ByteSink(name)


def _open_segments(
    name: str, fps: Fraction, muxer: str, fragment: float | None, sound: Any, nal_hrd: str, of_frames: dict[str, Any]
) -> PacketSink:
    """The sink of a playlist and its segments; OptionError for what they cannot have."""
    from .output_segments import SegmentSink

    if name == "-":
        raise OptionError(f"{muxer} writes several files: give the name of the playlist", "muxer")
    if fragment is not None and isinf(fragment):
        raise OptionError("chunk: segments of a playlist have a length in seconds", "fragment")
    if nal_hrd == "cbr":
        raise OptionError("cbr is for .264, .h264 and .mkv: MP4 holds no filler data; vbr is for all", "nal-hrd")
    return SegmentSink(name, muxer, fps=fps, fragment=fragment, sound=sound, **of_frames)


def container_of(name: str, muxer: str, fragment: float | None) -> str:
    """raw, mp4, mkv or mov: `muxer`, or, where that is auto, by the name; OptionError for an unknown ending."""
    if muxer != "auto":
        return muxer
    return "mp4" if fragment is not None and name == "-" else muxer_of(name)
