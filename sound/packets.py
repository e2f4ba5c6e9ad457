"""Packets of AAC, Opus or FLAC that a program has, for `audio=` of VideoWriter; and files by their first bytes."""

from collections.abc import Iterable, Iterator
from typing import Any

from ..standard.bits import BitstreamError
from . import aac, flac, opus
from .pcm import open_wav
from .reading import Reader
from .stream import SoundFormat, SoundPacket, SoundStream

_OPUS_LOOKAHEAD = 312  # samples by which libopus is late by default


class AudioPackets:
    """Packets that are copied as they are.

    codec: "aac" (frames without ADTS headers), "opus" or "flac". packets: an iterable of bytes, consumed while the video is
    written. rate: samples a second; channels. setup: AudioSpecificConfig of AAC (default: AAC LC), identification header of
    Opus (default: one or two channels), STREAMINFO of FLAC, which has no default. priming: samples at the beginning that are
    decoded and not heard; default: those that the setup of Opus says, or 312 without one; 0 for the others. ValueError.
    """

    def __init__(
        self,
        codec: str,
        packets: Iterable[bytes],
        *,
        rate: int = 48000,
        channels: int = 2,
        setup: bytes | None = None,
        priming: int | None = None,
    ) -> None:
        if codec not in ("aac", "opus", "flac"):
            raise ValueError(f"codec {str(codec)[:40]!r}: aac, opus or flac")
        if priming is not None and (not isinstance(priming, int) or not 0 <= priming < 1 << 31):
            raise ValueError("priming: a number of samples, not below 0")
        if isinstance(packets, bytes | bytearray | str) or not hasattr(packets, "__iter__"):
            raise ValueError("packets: an iterable of bytes, one for each packet")
        self._packets = packets
        self._format, self._skip = _format_of(codec, rate, channels, setup, priming)
        self._frame = aac.read_config(self._format.setup)[2] if codec == "aac" else 0

    def stream(self) -> SoundStream:
        """The packets with their durations; BitstreamError with one that is none."""
        return SoundStream(self._format, self._durations(), self._skip)

    def _durations(self) -> Iterator[SoundPacket]:
        for number, packet in enumerate(self._packets):
            data = bytes(packet) if isinstance(packet, bytes | bytearray | memoryview) else b""
            if not data:
                raise BitstreamError(f"packet {number}: not bytes, or none")
            if self._format.codec == "aac":
                if aac.is_adts(data):
                    raise BitstreamError(f"packet {number}: with an ADTS header, which packets in MP4 have not")
                yield SoundPacket(data, self._frame)
            else:
                measure = opus.packet_duration if self._format.codec == "opus" else flac.frame_duration
                yield SoundPacket(data, measure(data))


def _format_of(codec: str, rate: int, channels: int, setup: bytes | None, priming: int | None) -> tuple[SoundFormat, int]:
    """(format, samples to skip); ValueError."""
    if codec == "aac":
        return aac.format_of(setup or aac.config_of(rate, channels)), priming or 0
    if codec == "opus":
        late = _OPUS_LOOKAHEAD if priming is None else priming
        header = (setup or opus.header_of(channels, min(late, 65535))).removeprefix(opus.MAGIC)
        sound_format, said = opus.format_of(header)
        return sound_format, said if priming is None else priming
    if setup is None:
        raise ValueError("setup: FLAC needs its STREAMINFO, 34 bytes")
    start = 8 if setup.startswith(flac.MAGIC) else 0  # of a file: magic, and the header of the block
    return flac.format_of(setup[start:]), priming or 0


def open_stream(file: Any) -> SoundStream | None:
    """The sound of an open file by its first bytes: ADTS, Ogg, FLAC, WAV; None: something else. BitstreamError."""
    reader = Reader(file)
    reader.skip_id3()
    first = reader.peek(12)
    if first[:4] in (b"RIFF", b"RF64", b"BW64") and first[8:] == b"WAVE":
        return open_wav(reader)
    if first[:4] == flac.MAGIC:
        return flac.open_flac(reader)
    if first[:4] == opus.PAGE:
        return opus.open_ogg(reader)
    return aac.open_adts(reader) if aac.is_adts(first) else None
