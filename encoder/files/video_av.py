"""Video input through PyAV: all that FFmpeg decodes to 8-bit 4:2:0, without conversion."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InputError
from .output import error_text
from .video import Planes, VideoFormat

_FULL_RANGE = 2  # AVCOL_RANGE_JPEG
_HINT = "for raw video give --input-res WxH, or a name such as x_352x288.yuv"


class AvSource:
    """A Source. Frames are not converted or rescaled: InputError for formats other than yuv420p."""

    def __init__(self, name: str):
        try:
            import av
        except ImportError:
            raise InputError(f"{name}: neither .yuv nor .y4m; other files need PyAV (pip install 'h264lite[av]'); "
                             f"{_HINT}") from None
        self._name, self.left_over, self._failures = name, 0, (av.FFmpegError, OSError)
        try:
            self._container: Any = av.open(name)
        except self._failures as error:
            raise InputError(f"{name}: FFmpeg cannot read it ({error_text(error)}); {_HINT}") from None
        if not self._container.streams.video:
            raise InputError(f"{name}: holds no video")
        self._stream = self._container.streams.video[0]
        self._stream.thread_type = "AUTO"
        context = self._stream.codec_context
        check_pixel_format(context.pix_fmt or "unknown", name)
        sar = self._stream.sample_aspect_ratio
        full = context.pix_fmt == "yuvj420p" or context.color_range == _FULL_RANGE
        self.format = VideoFormat(
            context.width,
            context.height,
            Fraction(self._stream.average_rate) if self._stream.average_rate else None,
            (sar.numerator, sar.denominator) if sar and max(sar.numerator, sar.denominator) < 65536 else None,
            True if full else None,
            self._stream.frames or None,
            "av",
        )

    def frames(self, seek: int = 0, count: int = 0) -> Iterator[Planes]:
        """See Source."""
        size = (self.format.width, self.format.height)
        number = 0
        try:
            for frame in self._container.decode(self._stream):
                if count and number >= seek + count:
                    return
                check_pixel_format(frame.format.name, self._name)
                if (frame.width, frame.height) != size:
                    raise InputError(f"{self._name}: frame {number} is {frame.width}x{frame.height}, not "
                                     f"{size[0]}x{size[1]}: a change of size is not supported")
                if number >= seek:
                    yield planes_of(frame)
                number += 1
        except self._failures as error:
            raise InputError(f"{self._name}: {error_text(error)} while decoding frame {number}") from None

    def close(self) -> None:
        """See Source."""
        self._container.close()


def check_pixel_format(name: str, where: str) -> None:
    """InputError for formats other than 8-bit 4:2:0."""
    if name not in ("yuv420p", "yuvj420p"):
        raise InputError(f"{where}: {name} is not supported; only 8-bit 4:2:0 (yuv420p) is")


def planes_of(frame: Any) -> Planes:
    """y, u, v of a decoded frame, copied row by row: a row has line_size bytes, of which width are samples."""
    y, u, v = (
        np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].copy()
        for plane in frame.planes
    )
    return y, u, v
