"""The target of a writer: a file name or an object, what its ending says, and the sound that goes into it."""

import io
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import OptionError
from .settings.option_types import read_text, show

if TYPE_CHECKING:
    from .files.sound import Audio, CopiedSound
    from .files.sound_av import AvSound

Target = str | os.PathLike[str] | io.IOBase | Any | None


def check_target(target: object) -> Any:
    """A file name whose ending says what to write, or an object with `write`; OptionError."""
    if isinstance(target, str | os.PathLike):
        from .files.output import muxer_of  # which bytes do without

        try:
            name = read_text(target)
        except ValueError as error:
            raise OptionError(f"{show(target)}: {error}", "target") from None
        muxer_of(name)
        return name
    if not callable(getattr(target, "write", None)):
        raise OptionError(f"{show(target)}: neither a file name, nor None for bytes, nor an object with write()", "target")
    if isinstance(target, io.TextIOBase):
        raise OptionError("a text file: open it with mode 'wb'", "target")
    return target


def segment_seconds(target: object) -> float | None:
    """Seconds of a segment, if it is the name of a playlist, and nothing is said."""
    if not isinstance(target, str):
        return None
    from .files.output import SEGMENT_SECONDS, is_playlist

    return SEGMENT_SECONDS if is_playlist(target) else None


def is_byte_stream(target: object) -> bool:
    """Whether it is the name of a file without a container."""
    if not isinstance(target, str):
        return False
    from .files.output import muxer_of

    return muxer_of(target) == "raw"


def sound_of(target: object, fragment: float | None, audio: "Audio") -> "CopiedSound | AvSound":
    """The sound for a target."""
    from .files.sound import open_sound

    container = "mp4"
    if isinstance(target, str | os.PathLike):
        from .files.output import check_distinct, muxer_of

        if isinstance(audio, str | os.PathLike):
            check_distinct({"audio": os.fspath(audio), "target": os.fspath(target)})
        container = muxer_of(os.fspath(target))
        if container == "raw":
            raise OptionError(f"is for .mp4, .mkv, .mov, .m3u8 and .mpd files, and not for {os.fspath(target)}", "audio")
    is_file = isinstance(target, str | os.PathLike) and fragment is None
    return open_sound(audio, lambda: Fraction(0), container, is_file)
