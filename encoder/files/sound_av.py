"""Sound through PyAV: for .mkv and .mov, and of files that nothing else reads: copied, or encoded to AAC."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ...sound.packets import AudioPackets
from ...uninterrupted import check_of_file
from ..errors import InputError
from .output import error_text

# What players of MOV and MP4 know; Matroska holds everything that FFmpeg names there.
_COPIED = ("aac", "mp3", "ac3", "eac3", "alac")
_COPIED_INTO_MP4 = (*_COPIED, "opus", "flac")
_AAC_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)


class AvSound:
    """The first audio stream of a file, from second `begin()` on, which is asked for with the first packet.

    file: its name, or an open file. name: for messages. InputError: no such file, or no sound in it.
    """

    def __init__(self, file: object, name: str, begin: Callable[[], Fraction]) -> None:
        try:
            import av
        except ImportError:
            raise InputError(f"{name}: this sound needs PyAV (pip install 'h264lite[av]')") from None
        self._name, self._begin, self._failures = name, begin, (av.FFmpegError, OSError)
        try:
            self._container: Any = av.open(file)
        except self._failures as error:
            check_of_file(error)
            raise InputError(f"{name}: FFmpeg cannot read it ({error_text(error)})") from None
        if not self._container.streams.audio:
            self._container.close()
            raise InputError(f"{name}: holds no sound")
        self._in: Any = self._container.streams.audio[0]
        if self._in.codec_context is None:
            self._container.close()
            raise InputError(f"{name}: FFmpeg does not know the codec of the sound")
        self.codec = self._in.codec_context.codec.canonical_name
        self._out: Any = None
        self._to: Any = None
        self._packets: Iterator[Any] = iter(())
        self._waiting: Any = None

    def add_to(self, container: Any, container_format: str) -> None:
        """Add the stream to the output, before its first packet. container_format: mp4, mov or matroska."""
        self._to = container
        if container_format == "matroska" or self.codec in (_COPIED_INTO_MP4 if container_format == "mp4" else _COPIED):
            self._out = container.add_stream_from_template(self._in)
            self._packets = self._copied()
            return
        rate = self._in.codec_context.sample_rate
        self._out = container.add_stream("aac", rate=rate if rate in _AAC_RATES else 48000)
        self._out.codec_context.layout = "mono" if self._in.codec_context.channels == 1 else "stereo"
        self._packets = self._encoded()

    def mux_until(self, seconds: Fraction) -> None:
        """Mux what begins before that second of the video."""
        while True:
            if self._waiting is None:
                self._waiting = self._next()
            if self._waiting is None or self._waiting.dts * self._waiting.time_base >= seconds:
                return
            self._to.mux(self._waiting)
            self._waiting = None

    def _next(self) -> Any:
        try:
            return next(self._packets, None)
        except self._failures as error:
            check_of_file(error)
            raise InputError(f"{self._name}: {error_text(error)} while reading its sound") from None

    def _copied(self) -> Iterator[Any]:
        """Packets with times of the video. From the beginning on all of them: the first may be a lead-in before 0."""
        begin = self._begin()
        for packet in self._container.demux(self._in):
            if packet.dts is None or not packet.size:
                continue
            shift = round(begin / packet.time_base)
            if begin <= 0 or packet.pts >= shift:
                packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
                packet.stream = self._out
                yield packet

    def _encoded(self) -> Iterator[Any]:
        """Frames from the beginning on, encoded."""
        begin, frame = self._begin(), None
        for frame in self._container.decode(self._in):
            shift = round(begin / frame.time_base)
            if frame.pts is not None and frame.pts + frame.samples / frame.sample_rate / frame.time_base > shift:
                frame.pts -= shift
                yield from self._out.encode(frame)
        if frame is not None:
            yield from self._out.encode(None)

    def finish(self) -> None:
        """Close the file; what was not muxed is left out."""
        self._packets, self._waiting = iter(()), None
        self._container.close()


def aac_packets(samples: np.ndarray, rate: int) -> AudioPackets:
    """int16[samples, channels] of one or two channels as AAC by FFmpeg's encoder; other rates become 48000. InputError."""
    try:
        import av
    except ImportError:
        raise InputError("audio_codec aac needs PyAV (pip install 'h264lite[av]'); flac does not") from None
    layout = "mono" if samples.shape[1] == 1 else "stereo"
    try:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.reshape(1, -1)), "s16", layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        coder: Any = av.CodecContext.create("aac", "w")
        coder.sample_rate, coder.layout, coder.format = rate if rate in _AAC_RATES else 48000, layout, "fltp"
        coder.time_base = Fraction(1, coder.sample_rate)
        coder.open()
        resampler = av.AudioResampler("fltp", layout, coder.sample_rate, frame_size=coder.frame_size)
        frames = [*resampler.resample(frame), *resampler.resample(None), None]
        packets = [packet for frame in frames for packet in coder.encode(frame)]
    except (av.FFmpegError, ValueError) as error:
        raise InputError(f"audio: {error_text(error)}") from None
    data = [bytes(packet) for packet in packets]
    return AudioPackets("aac", data, setup=bytes(coder.extradata), priming=max(0, -int(packets[0].pts or 0)))
