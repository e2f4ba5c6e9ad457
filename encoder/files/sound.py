"""Sound beside the video: of a file, of arrays or of packets; copied into MP4 as it is, or handed to PyAV."""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...files import error_text, opened, shown
from ...mp4.reader import is_mp4 as has_boxes
from ...mp4.sound_entry import OtherSound
from ...mp4.sound_reader import open_sound as open_mp4_sound
from ...sound import pcm
from ...sound.flac import MAGIC as FLAC_MAGIC
from ...sound.packets import AudioPackets, open_stream
from ...sound.stream import SoundPacket, SoundStream
from ...standard.bits import BitstreamError
from ...uninterrupted import check_of_file
from ..errors import InputError, OptionError, named_errors
from ..settings.option_types import show
from ..settings.options import BY_NAME
from .sound_av import AvSound

Audio = str | os.PathLike[str] | tuple[Any, Any] | AudioPackets  # a file, (samples, rate), packets
_LARGEST_IN_MEMORY = 1 << 30  # bytes of sound that goes to PyAV


class CopiedSound:
    """Sound whose packets go into an MP4 as they are. `begin`: second of the sound with which the video begins.

    name: for messages; InputError has it. file: to close.
    """

    def __init__(self, stream: SoundStream, name: str, begin: Callable[[], Fraction], file: Any = None) -> None:
        self._stream, self._name, self._begin, self._file = stream, name, begin, file

    def stream(self) -> SoundStream:
        """The sound from the video's first frame on."""
        cut = self._named(lambda: self._stream.from_time(self._begin()))
        return replace(cut, packets=self._packets(cut.packets))

    def _packets(self, packets: Iterator[SoundPacket]) -> Iterator[SoundPacket]:
        while (packet := self._named(lambda: next(packets, None))) is not None:
            yield packet

    def _named(self, call: Callable[[], Any]) -> Any:
        """InputError with the name of the sound for what is wrong with it."""
        return named_errors(call, InputError, lambda _: self._name)

    def finish(self) -> None:
        """Close the file; what was not written is left out."""
        if self._file is not None:
            self._file.close()


def open_sound(audio: Audio, begin: Callable[[], Fraction], container: str, is_file: bool) -> CopiedSound | AvSound:
    """The sound for a container: mp4, mkv, mov (others take none, and refuse it later).

    begin: second of the sound with which the video begins, asked for with the first packet. is_file: the output is a file
    that PyAV can write. InputError, OptionError.
    """
    if isinstance(audio, tuple):
        stream = _of_arrays(audio)
    elif isinstance(audio, AudioPackets):
        stream = audio.stream()
    elif isinstance(audio, str | os.PathLike):
        name = BY_NAME["audio"].value(audio)
        return _of_file(name, begin, container not in ("mkv", "mov"), is_file)
    else:
        raise OptionError(f"{show(audio)}: neither a file name, nor (samples, rate), nor AudioPackets", "audio")
    if container in ("mkv", "mov"):
        return AvSound(_flac_file(stream), "audio", begin)
    return CopiedSound(stream, "audio", begin)


def _of_arrays(audio: tuple[Any, Any]) -> SoundStream:
    if len(audio) != 2:
        raise OptionError(f"a tuple of {len(audio)}, not (samples, rate)", "audio")
    samples, rate = audio
    try:
        number = int(rate) if not isinstance(rate, bool | str | bytes) and rate == int(rate) else 0
    except (TypeError, ValueError, OverflowError):
        number = 0
    if number not in pcm.RATES:
        raise OptionError(f"rate {show(rate)}: a whole number of samples a second, {pcm.RATES[0]}..{pcm.RATES[-1]}", "audio")
    try:
        if not hasattr(samples, "shape") and not isinstance(samples, Iterable):
            raise ValueError("no array of samples")
        return pcm.from_arrays(samples, number)
    except ValueError as error:
        raise InputError(f"audio: {error}") from None


def _of_file(name: str, begin: Callable[[], Fraction], is_mp4: bool, is_file: bool) -> CopiedSound | AvSound:
    """The sound of a file: through PyAV if the output is no MP4, or it is of another format and the output is a file."""
    reason = "no MP4, M4A, ADTS, Ogg Opus, FLAC or WAV file"
    if is_mp4:
        try:
            sound = _copied(name, begin)
        except OtherSound as error:
            sound, reason = None, str(error)
        if sound is not None:
            return sound
        if not is_file:
            raise InputError(f"{name}: {reason}; other sound goes into .mp4, .mkv and .mov files, through PyAV")
    return AvSound(name, name, begin)


def _copied(name: str, begin: Callable[[], Fraction]) -> CopiedSound | None:
    """The sound of a file that needs no PyAV; None for others, or OtherSound with the reason."""
    said = shown(name, "standard input")
    try:
        file = opened(name)
        try:
            first = file.peek(8)[:8]
            if not first:
                raise BitstreamError("it is empty")
            stream = open_mp4_sound(_seekable(file)) if has_boxes(first) else open_stream(file)
        except BaseException:
            file.close()
            raise
    except OtherSound:
        raise
    except (OSError, ValueError) as error:
        check_of_file(error)
        raise InputError(f"{said}: {error_text(error)}") from None
    if stream is None:
        file.close()
        return None
    return CopiedSound(stream, said, begin, file)


def _seekable(file: io.BufferedReader) -> io.BufferedReader:
    if not file.seekable():
        raise BitstreamError("an MP4 from a pipe: its sound is read from a file")
    return file


def _flac_file(stream: SoundStream) -> io.BytesIO:
    """Sound of arrays as a file of FLAC in memory; OptionError for other packets."""
    if stream.format.codec != "flac":
        raise OptionError("packets are for MP4: .mkv and .mov take arrays and files", "audio")
    setup = stream.format.setup
    file = io.BytesIO()
    file.write(FLAC_MAGIC + bytes((0x80, 0, 0, len(setup))) + setup)
    try:
        for packet in stream.packets:
            file.write(packet.data)
            if file.tell() > _LARGEST_IN_MEMORY:
                raise ValueError("more than 1 GiB of FLAC: give .mkv and .mov a file")
    except ValueError as error:
        raise InputError(f"audio: {error}") from None
    file.seek(0)
    return file
