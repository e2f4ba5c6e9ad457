"""Matroska and QuickTime output, and MP4 with sound: PyAV muxes finished access units, and encodes nothing but sound."""

from collections.abc import Callable
from fractions import Fraction
from io import BytesIO
from typing import Any

from ...mp4.avc import without_parameter_sets
from ...mp4.tags import FileTags
from ...uninterrupted import check_of_file
from ..errors import OutputError
from .output import ByteSink, error_text
from .sound_av import AvSound

_FORMATS = {"mp4": "mp4", "mov": "mov", "mkv": "matroska"}


class ContainerSink:
    """A PacketSink. The container is opened with the first access unit, which holds SPS and PPS.

    muxer: mp4, mov or mkv. time_base: of pts and dts, if not 1 / fps. matrix: as in tkhd, for rotated video. sound: mixed in.
    tags: metadata and chapters; is called with the first access unit.
    """

    keeps_times = True

    def __init__(
        self,
        name: str,
        fps: Fraction,
        muxer: str = "mkv",
        *,
        time_base: Fraction | None = None,
        matrix: tuple[int, ...] | None = None,
        tags: Callable[[], FileTags] = FileTags,
        sound: AvSound | None = None,
    ):
        try:
            import av
        except ImportError:
            raise OutputError(f"{name}: .{muxer} needs PyAV (pip install 'h264lite[av]'); .264 and .mp4 do not") from None
        self._file = ByteSink(name)  # raises now if the file cannot be written; no other writer takes it; a vain one goes
        self._av, self._name, self._format = av, name, _FORMATS[muxer]
        self._base, self._frame = time_base or 1 / fps, 1 / fps
        self._matrix, self._sound, self._tags = matrix, sound, tags
        self.frames = 0
        self._end = Fraction(0)  # of the video so far, in seconds
        self._container: Any = None
        self._stream: Any = None

    def _open(self, first: bytes) -> None:
        matroska, tags = self._format == "matroska", self._tags()
        template = self._av.open(BytesIO(first), format="h264")
        options = {} if matroska else {"movflags": "+faststart" + "+use_metadata_tags" * tags.has_keys}
        self._container = self._av.open(self._name, "w", format=self._format, options=options)
        self._container.metadata.update(tags.metadata)
        if tags.chapters:
            if not hasattr(self._container, "set_chapters"):
                raise ValueError("chapters need PyAV 14.1 or later")
            self._container.set_chapters(_chapters(tags))
        self._stream = self._container.add_stream_from_template(template.streams.video[0])
        self._stream.time_base = self._base
        if self._matrix is not None:
            self._stream.set_display_matrix(self._matrix)
        if self._sound is not None:
            self._sound.add_to(self._container, self._format)

    def write_packet(self, data: bytes, pts: int, dts: int, is_keyframe: bool, duration: int | None = None) -> None:
        """See PacketSink."""
        try:
            if self._container is None:
                self._open(data)
            packet = self._av.Packet(without_parameter_sets(data))
            packet.stream, packet.time_base = self._stream, self._base
            packet.pts, packet.dts, packet.is_keyframe = pts, dts, is_keyframe
            packet.duration = duration or round(self._frame / self._base)
            self._end = max(self._end, (pts + packet.duration) * self._base)
            if self._sound is not None:
                self._sound.mux_until(dts * self._base)
            self._container.mux(packet)
            self.frames += 1
        except (self._av.FFmpegError, OSError, ValueError) as error:
            check_of_file(error)
            raise OutputError(f"{self._name}: {error_text(error)}") from None

    def flush(self, following: int | None = None) -> None:
        """See PacketSink: FFmpeg decides what it writes when."""

    def close(self) -> None:
        """See PacketSink."""
        container, self._container = self._container, None
        try:
            if container is not None:
                try:
                    if self._sound is not None:
                        self._sound.mux_until(self._end)
                        self._sound.finish()
                finally:
                    container.close()
        except (self._av.FFmpegError, OSError, ValueError) as error:
            check_of_file(error)
            raise OutputError(f"{self._name}: {error_text(error)}") from None
        finally:
            self._file.close()

    def discard(self) -> None:
        """See PacketSink."""
        container, self._container = self._container, None
        try:
            if container is not None:
                container.close()
        except (self._av.FFmpegError, OSError, ValueError) as error:  # of a trailer that is not read
            check_of_file(error)
        finally:
            self._file.discard(container is not None)


def _chapters(tags: FileTags) -> list[dict[str, Any]]:
    """Chapters as PyAV takes them, in milliseconds; each ends where the next one begins."""
    begins = [round(1000 * begin) for begin, _ in tags.chapters]
    ends = [*begins[1:], begins[-1] + 1000]
    return [
        {"id": n, "start": begin, "end": max(begin, end), "time_base": Fraction(1, 1000), "metadata": {"title": title}}
        for n, (begin, end, (_, title)) in enumerate(zip(begins, ends, tags.chapters), 1)
    ]
