"""Video input through PyAV: all that FFmpeg decodes to 8-bit 4:2:0, without conversion; what cannot be kept is refused."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from ...standard.sample_format import Sample
from ...uninterrupted import check_of_file
from ..errors import InputError
from ..sei import Message
from ..settings.options import COLOUR_MATRIX, COLOUR_PRIMARIES, TRANSFER
from .left_out import hdr_of, messages_of, of_container, of_frame, tags_of
from .output import error_text
from .times import FrameTimes
from .video import RGB_TO_420, TO_420, TO_PROGRESSIVE, Planes, VideoFormat, converting

_LIMITED, _FULL = 1, 2  # AVColorRange
_HINT = "for raw video give --input-res WxH, or a name such as x_352x288.yuv"
_RGB = ("rgb", "bgr", "gbr", "argb", "abgr", "0rgb", "0bgr", "pal8", "x2rgb", "x2bgr")  # what names of RGB formats begin with
_UPRIGHT = (1 << 16, 0, 0, 0, 1 << 16)  # the matrix of video that is not rotated, without its last column and row


class AvSource:
    """A Source. Frames are not converted or rescaled: InputError for formats other than progressive yuv420p.

    The first frame is decoded at once: it says what the container may not (colours, rotation, interlacing).
    """

    def __init__(self, name: str):
        try:
            import av
        except ImportError:
            raise InputError(
                f"{name}: neither .yuv nor .y4m; other files need PyAV (pip install 'h264lite[av]'); {_HINT}"
            ) from None
        self._name, self.left_over, self._failures = name, 0, (av.FFmpegError, OSError)
        try:
            self._container: Any = av.open(name)
        except self._failures as error:
            check_of_file(error)
            raise InputError(f"{name}: FFmpeg cannot read it ({error_text(error)}); {_HINT}") from None
        if not self._container.streams.video:
            raise InputError(f"{name}: holds no video")
        self._stream = self._container.streams.video[0]
        if self._stream.codec_context is None:
            raise InputError(f"{name}: FFmpeg does not know the codec of the video")
        self._stream.thread_type = "AUTO"
        self.left_out = of_container(self._container, self._stream)
        self.sei: dict[int, list[Message]] = {}
        self._size = self._stream.codec_context.width, self._stream.codec_context.height
        pixel_format = self._stream.codec_context.pix_fmt
        if pixel_format is not None:  # else frames say it, if there are any
            check_pixel_format(pixel_format, name)
        frames = self._decoded()
        first = next(frames, None)
        if first is None and pixel_format is None:
            raise InputError(f"{name}: no frames")
        self._frames = frames if first is None else chain((first,), frames)
        self.format = self._format(first)
        rate, base = self.format.fps, self._stream.time_base
        self.times = FrameTimes(rate, base) if rate is not None and base is not None else None

    def _format(self, first: Any) -> VideoFormat:
        context = self._stream.codec_context
        sar, shown = self._stream.sample_aspect_ratio, context if first is None else first
        full = context.pix_fmt == "yuvj420p" or shown.color_range == _FULL
        return VideoFormat(
            *self._size,
            Fraction(self._stream.average_rate) if self._stream.average_rate else None,
            (sar.numerator, sar.denominator) if sar and max(sar.numerator, sar.denominator) < 65536 else None,
            True if full else False if shown.color_range == _LIMITED else None,
            self._stream.frames or None,
            "av",
            {
                "colorprim": _name_of(shown.color_primaries, COLOUR_PRIMARIES),
                "transfer": _name_of(shown.color_trc, TRANSFER),
                "colormatrix": _name_of(shown.colorspace, COLOUR_MATRIX),
                **({} if first is None else hdr_of(first)),
            },
            None if first is None else _matrix(first),
            bool(self._container.streams.audio),
            tags_of(self._container, self._stream),
        )

    def _decoded(self) -> Iterator[Any]:
        """The frames of PyAV, checked."""
        number = 0
        try:
            for frame in self._container.decode(self._stream):
                check_pixel_format(frame.format.name, self._name)
                if (frame.width, frame.height) != self._size:
                    raise InputError(
                        f"{self._name}: frame {number} is {frame.width}x{frame.height}, not "
                        f"{self._size[0]}x{self._size[1]}: a change of size is not supported"
                    )
                if frame.interlaced_frame:
                    raise InputError(
                        f"{self._name}: frame {number} is interlaced, which is not supported; "
                        + converting(self._name, TO_PROGRESSIVE, "progressive")
                    )
                self.left_out += [words for words in of_frame(frame) if words not in self.left_out]
                yield frame
                number += 1
        except self._failures as error:
            check_of_file(error)
            if not number and self._is_encrypted():
                raise InputError(f"{self._name}: the video is encrypted") from None
            raise InputError(f"{self._name}: {error_text(error)} while decoding frame {number}") from None

    def _is_encrypted(self) -> bool:
        """Whether packets say so (ISO/IEC 23001-7): FFmpeg, which has no key, fails at their contents."""
        try:
            return bool(next(self._container.demux(self._stream)).has_sidedata("encryption_info"))
        except (*self._failures, StopIteration, AttributeError):  # the end; an older PyAV
            return False

    def frames(self, seek: int = 0, count: int = 0) -> Iterator[Planes]:
        """See Source."""
        for number, frame in enumerate(self._frames):
            if number >= seek:
                if self.times is not None:
                    self.times.add(frame.pts, frame.duration)
                if messages := messages_of(frame):
                    self.sei[number - seek] = messages
                yield planes_of(frame)
            if count and number + 1 >= seek + count:
                return

    def close(self) -> None:
        """See Source."""
        self._container.close()


def _name_of(code: int, names: dict[str, Any]) -> str | None:
    """The option's name of a code point of Tables E-3 to E-5, which FFmpeg uses; None: not specified, or unknown."""
    return next((name for name, value in names.items() if value == code), None)


def _matrix(frame: Any) -> tuple[int, ...] | None:
    """The display matrix of a frame, nine numbers as in tkhd; None if the video is shown as it is stored."""
    try:
        data = frame.side_data.get("DISPLAYMATRIX")
    except ValueError:  # with a type that it does not know, PyAV gives none; the angle it does
        return _rotated(-frame.rotation)
    matrix = tuple(np.frombuffer(bytes(data), np.int32).tolist()) if data is not None else ()
    return matrix if len(matrix) == 9 and matrix[:5] != _UPRIGHT else None


def _rotated(degrees: int) -> tuple[int, ...] | None:
    """The display matrix of a clockwise rotation by quarter turns."""
    quarters = round(degrees / 90) % 4
    cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters]
    return (cosine << 16, sine << 16, 0, -sine << 16, cosine << 16, 0, 0, 0, 1 << 30) if quarters else None


def check_pixel_format(name: str, where: str) -> None:
    """InputError for formats other than 8-bit 4:2:0."""
    if name not in ("yuv420p", "yuvj420p"):
        words = RGB_TO_420 if name.startswith(_RGB) else TO_420
        raise InputError(
            f"{where}: {name} is not supported; only 8-bit 4:2:0 (yuv420p) is; " + converting(where, words, "yuv420p")
        )


def planes_of(frame: Any) -> Planes:
    """y, u, v of a decoded frame, copied row by row: a row has line_size bytes, of which width are samples."""
    y, u, v = (
        np.frombuffer(plane, Sample).reshape(plane.height, plane.line_size)[:, : plane.width].copy() for plane in frame.planes
    )
    return y, u, v
