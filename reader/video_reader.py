"""`h264lite.VideoReader`: the frames of a video by index, slice or time, as arrays of NumPy or tensors of PyTorch."""

import operator
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..decoder.colour import FORMATS, Converter
from ..encoder.errors import OptionError
from ..process import cached_property
from ..standard.bits import BitstreamError
from .index import index_of
from .metadata import VideoMetadata, metadata_of
from .pictures import Pictures
from .source import Source, Video

_ORDERS = ("NHWC", "NCHW")
_MATRICES = {"bt601": 6, "bt709": 1, "fcc": 4, "bt470bg": 5, "smpte170m": 6, "smpte240m": 7, "bt2020nc": 9}
_RANGES = {"tv": False, "pc": True}


class VideoFrame(NamedTuple):
    """One frame. data: uint8[H, W, 3], [3, H, W], [H, W] or Planes, as the reader's options say."""

    data: Any
    pts_seconds: float
    duration_seconds: float


class FrameBatch(NamedTuple):
    """N frames. data: as of one frame, N before."""

    data: Any
    pts_seconds: np.ndarray  # float64[N]
    duration_seconds: np.ndarray  # float64[N]


class VideoReader:
    """Frames of an H.264 video (MP4, QuickTime, Annex B) in the order in which they are shown, at random or in sequence.

    video: the name of a file, its bytes, or a binary file object, read from byte 0 on. format: rgb, bgr, gray, or planes:
    `Planes` (y, u, v) as decoded. dimension_order: NHWC or NCHW, of colours. device: None for NumPy; else tensors of PyTorch
    on that device, as "cpu" or "cuda:0". colormatrix (bt601, bt709, bt2020nc ...), range (tv, pc): in place of what the video
    says; without any, bt601 and tv. fps: of a byte stream, in place of its own, without any 25. nearby: decoded frames that
    are kept beside those that the stream reorders.

    The index is read at once: of MP4 its tables, of a byte stream all headers. Frames are decoded as they are asked for, from
    the IDR picture before. One thread at a time uses a reader: another one gets a RuntimeError. A fork may go on with a
    reader of a name or bytes, and such a reader can be pickled.

    BitstreamError: a damaged video; Unsupported, which is one: by name, what the decoder lacks; OptionError; OSError.
    """

    def __init__(
        self,
        video: Video,
        *,
        format: str = "rgb",
        dimension_order: str = "NHWC",
        device: Any = None,
        colormatrix: str | None = None,
        range: str | None = None,
        fps: Any = None,
        nearby: int = 8,
    ) -> None:
        _check("format", format, FORMATS)
        _check("dimension_order", dimension_order, _ORDERS)
        _check("colormatrix", colormatrix, (None, *_MATRICES))
        _check("range", range, (None, *_RANGES))
        self._options = {
            "format": format, "dimension_order": dimension_order, "device": device, "colormatrix": colormatrix,
            "range": range, "fps": fps, "nearby": nearby,
        }  # fmt: skip
        self._torch = _torch_for(device)
        self._process, self._lock = os.getpid(), threading.Lock()
        rate, nearby = _rate(fps), _count(nearby)
        self._source = Source(video)
        try:
            self._index = index_of(self._source, rate)
            colour = self._index.colour
            self._converter = Converter(
                format,
                dimension_order == "NCHW",
                _MATRICES[colormatrix] if colormatrix else colour.matrix,
                _RANGES[range] if range else bool(colour.full_range),
            )
        except BaseException:
            self._source.close()
            raise
        self._pictures: Pictures | None = Pictures(self._index.units, self._index.rank, nearby)

    # What is known without decoding ------------------------------------------------------------------------------------

    @cached_property
    def metadata(self) -> VideoMetadata:
        """Size, rate, times, colours."""
        return metadata_of(self._index, self._source.size)

    @cached_property
    def timestamps(self) -> np.ndarray:
        """float64[frames], seconds: when each frame is shown."""
        return self._index.shown.times / self._index.timescale

    @cached_property
    def durations(self) -> np.ndarray:
        """float64[frames], seconds: how long each frame is shown."""
        return self._index.shown.durations / self._index.timescale

    @cached_property
    def key_frames(self) -> np.ndarray:
        """int64[n]: the frames where the video says that decoding can begin."""
        return np.flatnonzero(np.isin(self._index.shown.samples, self._index.keyframes))

    def __len__(self) -> int:
        """Frames."""
        return len(self._index.shown.samples)

    def __repr__(self) -> str:
        facts = self.metadata
        return f"<VideoReader: {len(self)} frames of {facts.width}x{facts.height}, {facts.duration_seconds:.3f} s>"

    # Frames by their place ---------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """The data of a frame by its index, of frames by a slice. Negative indices count from the end. IndexError."""
        if isinstance(key, slice):
            return self._batch(range(*key.indices(len(self)))).data
        return self.get_frame_at(key).data

    def get_frame_at(self, index: int) -> VideoFrame:
        """A frame by its index. IndexError."""
        batch = self._batch([self._checked(index)])
        return VideoFrame(_first(batch.data), float(batch.pts_seconds[0]), float(batch.duration_seconds[0]))

    def get_frames_at(self, indices: Iterable[int]) -> FrameBatch:
        """Frames by their indices, in that order, which may repeat; none is decoded twice. IndexError."""
        return self._batch([self._checked(index) for index in indices])

    def get_frames_in_range(self, start: int, stop: int, step: int = 1) -> FrameBatch:
        """Frames start, start + step, ... before stop. IndexError if an end is outside, OptionError for a step below 1."""
        if operator.index(step) < 1:
            raise OptionError(f"{step}: not 1 or more", "step")
        if not 0 <= operator.index(start) <= operator.index(stop) <= len(self):
            raise IndexError(f"frames {start} to {stop} of a video of {len(self)} frames")
        return self._batch(range(start, stop, step))

    def __iter__(self) -> Iterator[Any]:
        """The data of all frames, one after another."""
        return (self.get_frame_at(index).data for index in range(len(self)))

    def batches(self, size: int) -> Iterator[FrameBatch]:
        """All frames in batches of `size`; the last one may have fewer."""
        if operator.index(size) < 1:
            raise OptionError(f"{size}: not 1 or more", "size")
        return (self._batch(range(first, min(first + size, len(self)))) for first in range(0, len(self), size))

    # Frames by their time ----------------------------------------------------------------------------------------------

    def get_frame_played_at(self, seconds: float) -> VideoFrame:
        """The frame that is shown at a time. IndexError before the first frame and from the end of the last one on."""
        return self.get_frame_at(self._played_at(seconds))

    def get_frames_played_at(self, seconds: Iterable[float]) -> FrameBatch:
        """The frames that are shown at these times, in that order. IndexError."""
        return self._batch([self._played_at(time) for time in seconds])

    def get_frames_played_in_range(self, start_seconds: float, stop_seconds: float) -> FrameBatch:
        """All frames that are shown at some time in [start, stop); none if they are equal. IndexError if start is outside."""
        if not start_seconds <= stop_seconds:
            raise OptionError(f"{stop_seconds}: before start_seconds", "stop_seconds")
        if start_seconds == stop_seconds:
            return self._batch([])
        first = self._played_at(start_seconds)
        return self._batch(range(first, max(first + 1, int(np.searchsorted(self.timestamps, stop_seconds)))))

    def _played_at(self, seconds: float) -> int:
        time = float(seconds)
        index = int(np.searchsorted(self.timestamps, time, "right")) - 1
        if index < 0 or not time < self.metadata.end_stream_seconds:
            begin, end = self.metadata.begin_stream_seconds, self.metadata.end_stream_seconds
            raise IndexError(f"{seconds} s of a video from {begin} to {end} s")
        return index

    # Decoding ----------------------------------------------------------------------------------------------------------

    def _checked(self, index: Any) -> int:
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise IndexError(f"frame {position} of a video of {len(self)} frames")
        return position % len(self)

    def _batch(self, indices: "range | list[int]") -> FrameBatch:
        """Frames by valid indices: decoded in order, whatever the order of the indices is."""
        shown, facts = self._index.shown, self.metadata
        with self._alone() as pictures:
            data = self._converter.empty(len(indices), facts.height, facts.width)
            done: dict[int, int] = {}  # position in the batch, by index
            for position, index in sorted(enumerate(indices), key=lambda pair: pair[1]):
                if index in done:
                    self._converter.copy(data, done[index], position)
                    continue
                try:
                    frame = pictures.picture(int(shown.samples[index]))
                except BitstreamError as error:
                    error.args = (f"frame {index}: {error.args[0]}",)
                    raise
                if (frame.width, frame.height) != (facts.width, facts.height):
                    raise BitstreamError(
                        f"frame {index} has {frame.width}x{frame.height} samples, the first one {facts.width}x{facts.height}"
                    )
                self._converter.convert(frame, data, position)
                done[index] = position
        positions = np.array(indices, np.int64)
        return FrameBatch(self._on_device(data), self.timestamps[positions], self.durations[positions])

    @contextmanager
    def _alone(self) -> Iterator[Pictures]:
        """The pictures, for one thread; a fork begins with what its parent had."""
        if self._process != os.getpid():
            if self._source.named is None:
                raise RuntimeError("the file object of this reader is shared with the process that was forked: open it here")
            self._process, self._lock = os.getpid(), threading.Lock()
            if self._pictures is not None:
                self._pictures.clear()
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("the reader is at work in another thread: each thread needs a reader of its own")
        try:
            if self._pictures is None:
                raise ValueError("the reader is closed")
            yield self._pictures
        finally:
            self._lock.release()

    def _on_device(self, data: Any) -> Any:
        if self._torch is None:
            return data
        if isinstance(data, tuple):
            return type(data)(*(self._on_device(plane) for plane in data))
        return self._torch.from_numpy(data).to(self._options["device"])

    # Its end -----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free its memory, and close the file, if it is not the caller's."""
        if self._pictures is not None:
            self._pictures.clear()
        self._pictures = None
        self._source.close()

    def __enter__(self) -> "VideoReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        if self._source.named is None:
            raise TypeError("a reader of a file object cannot be pickled: give a name or bytes")
        return _again, (self._source.named, self._options)


def _again(video: Video, options: dict[str, Any]) -> VideoReader:
    """A pickled reader."""
    return VideoReader(video, **options)


def _first(data: Any) -> Any:
    """The first frame of a batch."""
    return type(data)(*(plane[0] for plane in data)) if isinstance(data, tuple) else data[0]


def _check(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{value!r}: not one of {', '.join(choice for choice in choices if choice)}", name)


def _rate(fps: Any) -> Fraction | None:
    if fps is None:
        return None
    from ..encoder.settings.option_types import read_fps

    try:
        return read_fps(fps)
    except ValueError as error:
        raise OptionError(f"{fps!r}: {error}", "fps") from None


def _count(value: Any) -> int:
    number = operator.index(value)
    if number < 0:
        raise OptionError(f"{number}: not 0 or more", "nearby")
    return number


def _torch_for(device: Any) -> Any:
    """PyTorch, if tensors are wanted; nothing else imports it."""
    if device is None:
        return None
    try:
        import torch
    except ImportError:
        raise OptionError(f"{device!r}: needs PyTorch; without device= frames are NumPy arrays", "device") from None
    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise OptionError(f"{device!r}: {str(error).splitlines()[0]}", "device") from None
    return torch
