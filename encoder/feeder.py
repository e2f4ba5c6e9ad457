"""Feeds frames of any form to a session that is opened for the first one: arrays, chunks, lists, generators, images."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..standard.sample_format import chroma_shape
from .encoder import config_of
from .errors import InputError, OptionError
from .frames.reader import Chunk, FrameReader
from .frames.samples import host_copy, is_array
from .packet import Packet, take_packets
from .session import Session, open_session
from .settings.device import why_no_cuda
from .settings.keywords import Rate


class Feeder:
    """Reads frames by a FrameReader and encodes them; `session` exists after the first frame. Options: those of Encoder."""

    def __init__(self, reader: FrameReader, fps: Rate, options: Mapping[str, Any]) -> None:
        self._reader, self._fps, self._options = reader, fps, options
        self.session: Session | None = None
        self.process = os.getpid()  # with a session: the one that opened it
        self.count = 0  # frames fed
        self.total: int | None = None  # frames of a video that is one array

    def feed_all(self, frames: object, stream: object = None) -> Iterator[list[Packet]]:
        """Feed a whole video: one array, or an iterable of frames and chunks. Yields finished packets after each frame."""
        if is_array(frames):
            yield from self.feed(frames, stream, whole=True)
        elif isinstance(frames, str | bytes | dict) or not isinstance(frames, Iterable):
            raise InputError(f"frames: {type(frames).__name__} is neither an array nor a list or generator of frames")
        else:
            for frame in frames:
                yield from self.feed(frame, stream)

    def feed(self, value: object, stream: object = None, whole: bool = False) -> Iterator[list[Packet]]:
        """Feed a frame, the planes of one as a tuple, a chunk of frames, or a list of these. Yields as `feed_all`."""
        plain = self._reader.plain(value) if isinstance(value, tuple) and self.session is not None else None
        if plain is not None and self.session is not None:
            self.session.encode(plain)
            self.count += 1
            yield take_packets(self.session)
            return
        if isinstance(value, list) and _are_planes(value):
            value = tuple(value)
        if isinstance(value, list):
            for part in value:
                yield from self.feed(part, stream)
            return
        chunk = self._reader.chunk(value, stream, whole, f"frame {self.count}")
        if self.session is None:
            self.process = os.getpid()
            self.session = self._start(chunk)
        self._reader.remember(chunk)
        self.total = chunk.frames if whole else None
        if chunk.on_gpu and not self.session.takes_gpu_frames:
            yield from self._through_host(value, chunk)
            return
        for k in range(chunk.frames):
            self.session.encode_from(chunk, k)
            self.count += 1
            yield take_packets(self.session)

    def finish(self) -> list[Packet]:
        """The remaining packets; InputError if there were no frames."""
        if self.session is None:
            raise InputError("no frames to encode")
        self.session.drain()
        return take_packets(self.session)

    def close(self) -> None:
        """Release the encoder."""
        if self.session is not None:
            self.session.close()

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, chunk: Chunk) -> Session:
        """An encode for the size of the first frame, on its GPU if no device was said."""
        known = self._reader.known
        width, height = (chunk.width, chunk.height) if known is None else (known.width, known.height)
        options = self._options
        if not chunk.on_gpu or options.get("device") is not None or options.get("devices") is not None:
            return open_session(config_of(width, height, self._fps, options))
        missing = why_no_cuda()
        if missing is None:
            try:
                devices = (f"cuda:{chunk.samples[0].ordinal}",)
                return open_session(config_of(width, height, self._fps, {**options, "devices": devices}))
            except OptionError as error:
                if error.option not in ("me", "subme"):
                    raise
                missing = str(error)
        warnings.warn(f"frames on a GPU are copied to the host and encoded there: {missing}", RuntimeWarning, stacklevel=5)
        return open_session(config_of(width, height, self._fps, {**options, "device": "cpu"}))

    def _through_host(self, value: object, chunk: Chunk) -> Iterator[list[Packet]]:
        """Copy frame by frame to the host, and encode there."""
        assert self.session is not None
        for k in range(chunk.frames):
            if isinstance(value, tuple):
                copied = self._reader.chunk(tuple(map(host_copy, value)))
            else:
                copied = self._reader.chunk(host_copy(value, chunk.layout.axes.find("T"), k))
            self.session.encode_from(copied, 0)
            self.count += 1
            yield take_packets(self.session)


def _are_planes(parts: Sequence[object]) -> bool:
    """Whether the arrays of a list are the planes of one frame: those of chroma are smaller."""
    shapes = [tuple(getattr(part, "shape", ())) for part in parts]
    if len(parts) not in (2, 3) or len(shapes[0]) != 2:
        return False
    chroma = chroma_shape(*shapes[0])
    nv12 = (chroma[0], 2 * chroma[1]), (*chroma, 2)
    return shapes[1:] == [chroma, chroma] or (len(parts) == 2 and shapes[1] in nv12)
