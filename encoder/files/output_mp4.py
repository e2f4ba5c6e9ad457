"""MP4 output of our own: a file with moov in front, or fragments for pipes, HLS and DASH."""

import errno
import io
import os
import tempfile
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, BinaryIO

from ...mp4.layouts import AtEnd, Fragments, InPlace, Layout
from ...mp4.movie import UPRIGHT
from ...mp4.muxer import Muxer
from ...mp4.tags import FileTags
from ...uninterrupted import Uninterrupted
from ..errors import OutputError, named_errors
from .output import ByteSink

if TYPE_CHECKING:
    from ...sound.stream import SoundStream

IN_MEMORY = 1 << 26  # bytes of a stream that wait in memory, before a temporary file


class MuxedSink:
    """A PacketSink by a Muxer and its Layout. A subclass makes both, and says how the output is finished or removed."""

    keeps_times = True
    _layout: Layout
    _muxer: Muxer

    def __init__(self, name: str):
        self.name = name
        self._ending = Uninterrupted()

    @property
    def frames(self) -> int:
        """See PacketSink."""
        return self._layout.frames

    def write_packet(self, data: bytes, pts: int, dts: int, is_keyframe: bool, duration: int | None = None) -> None:
        """See PacketSink. duration: of the last frame, in the same units; default: that of the frame before it."""
        self._named(lambda: self._muxer.add(data, pts, dts, is_keyframe, duration))

    def flush(self, following: int | None = None) -> None:
        """See PacketSink."""
        self._named(lambda: self._muxer.flush(following))

    def close(self) -> None:
        """See PacketSink. An interrupt cannot cut it: a file that is moved is finished first."""
        if not self._ending.ended:
            self._ending.run(lambda: self._named(self._end))

    def discard(self) -> None:
        """See PacketSink. An interrupt cannot cut it."""
        if not self._ending.ended:
            self._ending.run(lambda: self._named(self._drop))

    def _end(self) -> None:
        """Finish the output; called once."""
        raise NotImplementedError

    def _drop(self) -> None:
        """Remove the output; called once, in place of `_end`."""
        raise NotImplementedError

    def _named(self, call: Callable[[], Any]) -> Any:
        """OutputError for what cannot be written or said; errors of the sound are of the input."""
        return named_errors(call, OutputError, self._where)

    def _where(self, error: OSError | ValueError) -> str:
        """The name of the file that could not be written."""
        return self.name


class Mp4Sink(MuxedSink):
    """One file, or the caller's object. The first packet begins with SPS and PPS, which say size, colours and aspect ratio.

    target: the name of a file, "-" for standard output, or an object with `write`, which stays open (BytesIO, a socket's
    file). fragment: seconds of a fragment, at least; it ends before a keyframe, infinite ones at `flush` alone. None: one
    movie, moov in front; pipes and objects get it at the end (`waits`), files are fragments until then, so that they play if
    the process dies. time_base: seconds of a unit of pts and dts, if not 1 / fps. matrix: of tkhd, for rotated video. tags:
    metadata and chapters. sound: the sound beside the video. tags and sound are called with the first packet.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        fps: Fraction,
        fragment: float | None = None,
        time_base: Fraction | None = None,
        matrix: tuple[int, ...] | None = None,
        tags: Callable[[], FileTags] = FileTags,
        sound: "Callable[[], SoundStream] | None" = None,
    ):
        self._file: Any
        if isinstance(target, str | os.PathLike):
            self._file = ByteSink(os.fspath(target), readable=True)
        else:
            self._file = _Object(target)
        super().__init__(self._file.name)
        self._waiting: Any = None
        try:
            self.waits = fragment is None and not self._file.editable
            self._layout = self._layout_of(fragment, fps)
            self._muxer = self._named(lambda: Muxer(self._layout, time_base or 1 / fps, matrix or UPRIGHT, tags, sound))
        except BaseException:
            self._file.close()  # and a new one goes
            raise

    def _layout_of(self, fragment: float | None, fps: Fraction) -> Layout:
        if fragment is not None:
            return Fragments(self._file.write, fragment, 1 / (2 * fps))
        if self.waits:
            self._waiting = tempfile.SpooledTemporaryFile(IN_MEMORY)
            return AtEnd(self._file.write, self._waiting)
        return InPlace(self._file.write, self._file.edit)

    def _end(self) -> None:
        try:
            self._named(self._muxer.finish)
        finally:
            if self._waiting is not None:
                self._waiting.close()
            self._named(self._file.close)

    def _drop(self) -> None:
        try:
            if self._waiting is not None:
                self._waiting.close()
        finally:
            self._file.discard()


class _Object:
    """The caller's file object as a ByteSink."""

    editable = False

    def __init__(self, target: Any):
        if not callable(getattr(target, "write", None)) or isinstance(target, io.TextIOBase):
            raise OutputError(f"{type(target).__name__} is no output: give a file name, or an object with write(bytes)")
        self._target = target
        self.name = f"the {type(target).__name__}"

    def write(self, *chunks: bytes) -> None:
        """All parts in one call of the object's `write`, repeated for what it says that it did not take.

        Objects that are no unbuffered files may return None for all. ValueError for any other result.
        """
        data = b"".join(chunks)
        while data:
            taken = self._target.write(data)
            if taken is None and isinstance(self._target, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "it takes nothing now: give a blocking file")
            if taken is None:
                return
            if isinstance(taken, bool) or not isinstance(taken, int) or not 0 < taken <= len(data):
                known = isinstance(taken, int) and abs(taken) < 1 << 40
                text = str(taken) if known else f"a value of type {type(taken).__name__}"
                raise ValueError(f"its write returned {text}, neither None nor how many of {len(data)} bytes it took")
            data = data[taken:]

    def close(self) -> None:
        """Pass on what the object has buffered; it stays open."""
        if hasattr(self._target, "flush"):
            self._target.flush()

    def discard(self) -> None:
        """It stays open, with what it has."""
