"""Matroska output: PyAV muxes finished access units and encodes nothing."""

import os
from fractions import Fraction
from io import BytesIO
from typing import Any

from ..errors import OutputError
from .output import ByteSink, error_text


class ContainerSink:
    """A PacketSink. The container is opened with the first access unit, which holds SPS and PPS."""

    def __init__(self, name: str, fps: Fraction):
        try:
            import av
        except ImportError:
            raise OutputError(f"{name}: containers need PyAV (pip install 'h264lite[av]'); .264 does not") from None
        ByteSink(name).close()  # raises now if the file cannot be written; leaves no file
        self._av, self._name, self._fps = av, name, fps
        self.frames = 0
        self._container: Any = None
        self._stream: Any = None

    def _open(self, first: bytes) -> None:
        template = self._av.open(BytesIO(first), format="h264")
        self._container = self._av.open(self._name, "w", format="matroska")
        self._stream = self._container.add_stream_from_template(template.streams.video[0])
        self._stream.time_base = 1 / self._fps

    def write_packet(self, data: bytes, pts: int, dts: int, is_keyframe: bool) -> None:
        """See PacketSink."""
        try:
            if self._container is None:
                self._open(data)
            packet = self._av.Packet(data)
            packet.stream, packet.time_base = self._stream, 1 / self._fps
            packet.pts, packet.dts = pts, dts
            packet.duration, packet.is_keyframe = 1, is_keyframe
            self._container.mux(packet)
            self.frames += 1
        except (self._av.FFmpegError, OSError, ValueError) as error:
            raise OutputError(f"{self._name}: {error_text(error)}") from None

    def close(self) -> None:
        """See PacketSink."""
        container, self._container = self._container, None
        if container is None:
            return
        try:
            container.close()
        except (self._av.FFmpegError, OSError, ValueError) as error:
            raise OutputError(f"{self._name}: {error_text(error)}") from None
        finally:
            if os.path.exists(self._name) and os.path.getsize(self._name) == 0:
                os.unlink(os.path.realpath(self._name))
