"""FFmpeg's options in a command `h264lite encode`, which has x264's letters there: what to say in their place."""

import re
from collections.abc import Container

from ..encoder.errors import OptionError

_LEAVE_OUT = "leave it out"
_SOUND = "sound is left out unless --audio FILE asks for it"
_CODEC = "the stream is H.264, leave it out"
_FILTERS = "filter before: ffmpeg -i IN -vf FILTERS -f yuv4mpegpipe - | h264lite encode - OUT"
_ONE_BY_ONE = "give each option by its name, as --crf 20"
_INSTEAD = {
    "an": _LEAVE_OUT + ": " + _SOUND, "acodec": _SOUND, "c:a": _SOUND, "codec:a": _SOUND, "b:a": _SOUND,
    "c": _CODEC, "c:v": _CODEC, "codec:v": _CODEC, "vcodec": _CODEC,
    "y": _LEAVE_OUT + ": an output is replaced anyway", "hide_banner": _LEAVE_OUT, "nostdin": _LEAVE_OUT,
    "vf": _FILTERS, "filter:v": _FILTERS, "filter_complex": _FILTERS,
    "x264-params": _ONE_BY_ONE, "x264opts": _ONE_BY_ONE,
    "b:v": "say --bitrate, in kbit/s", "maxrate": "say --vbv-maxrate, in kbit/s", "bufsize": "say --vbv-bufsize, in kbit",
    "bf": "say --bframes", "g": "say --keyint", "refs": "say --ref", "framerate": "say --fps",
    "sc_threshold": "say --scenecut",
    "s": "say --input-res", "video_size": "say --input-res", "profile:v": "say --profile", "level:v": "say --level",
    "loglevel": "say --log-level", "ss": "say --seek, in frames", "vframes": "say --frames", "frames:v": "say --frames",
    "movflags": "the index of an MP4 stands in front anyway, and --fragment SECONDS makes fragments",
    "pix_fmt": "frames are yuv420p, leave it out",
}  # fmt: skip
_WORD = re.compile(r"-([a-np-z][a-z0-9_:-]*)")  # -oNAME is x264's
_MIN_KEYINT = re.compile(r"-?[0-9.]+|auto")


def check_word(argument: str, flags: Container[str]) -> None:
    """OptionError for an option that FFmpeg has and x264 reads otherwise, as -preset, which would be -p reset.

    flags: the options that there are, long ones with two dashes, letters with one.
    """
    match = _WORD.fullmatch(argument)
    if match is None or argument in flags:
        return
    instead = _INSTEAD.get(match[1]) or (f"say -{argument}" if f"-{argument}" in flags else "")
    if instead:
        raise OptionError(f"{argument} is an option of FFmpeg: {instead}")


def check_value(argument: str, value: str) -> None:
    """OptionError for -i FILE: x264's -i is a number."""
    if argument == "-i" and not _MIN_KEYINT.fullmatch(value):
        raise OptionError(f"-i {value}: -i is --min-keyint; IN needs no option, h264lite encode IN OUT")
