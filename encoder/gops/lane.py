"""A lane: a pipeline that encodes GOPs of a queue, frame by frame."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ...scheduler.frames.frame import split_planes
from ...scheduler.threads.readers import Readers
from ..files.read_ahead import THREADS, ReadAhead
from .queue import Gop

if TYPE_CHECKING:
    from ..pipeline import EncodedFrame, Pipeline


class LaneQueue(Protocol):
    """What lanes ask of a queue: see GopQueue."""

    frame_bytes: int
    closing: bool
    changes: int

    def next_gop(self) -> Gop | None:
        """See GopQueue."""

    def take(self, gop: Gop, most: int, /) -> list[Any]:
        """See GopQueue."""

    def is_over(self, gop: Gop, /) -> bool:
        """See GopQueue."""

    def give_back(self, buffer: np.ndarray) -> None:
        """See GopQueue."""

    def emit(self, done: "Sequence[EncodedFrame]") -> None:
        """See GopQueue."""

    def add_idle(self, lanes: int) -> None:
        """See GopQueue."""

    def has_idle_lane(self) -> bool:
        """See GopQueue."""

    def wait_for_change(self, since: int) -> None:
        """See GopQueue."""

    def fail(self, number: int, error: BaseException) -> None:
        """See GopQueue."""


class Lane:
    """Encodes GOPs with one pipeline. With a GPU, frames are read into upload buffers while earlier ones are encoded."""

    def __init__(self, pipeline: "Pipeline", queue: LaneQueue) -> None:
        self.pipeline, self._queue = pipeline, queue
        self._readers = Readers(THREADS)
        self._ahead = ReadAhead(self._readers)
        self._ahead_of: deque[tuple[Gop, FrameSpec]] = deque()  # of each frame in `_ahead`
        self._gop: Gop | None = None  # the GOP whose frames are taken from the queue
        self._encoded_gop: Gop | None = None  # the GOP whose frames are encoded
        self._idle = False

    def steps(self) -> Iterator[bool]:
        """Encodes a frame at each step; yields whether there was one. Ends with the encode."""
        try:
            for work in self._frames():
                if work is None and self._gop is None:
                    self._report_idle(True)
                elif work is not None:
                    self._queue.emit(self._encode(*work))
                yield work is not None
        except BaseException as error:  # raised in the caller's thread (GopQueue.collect)
            self._fail(error)
        finally:
            self._readers.close()

    def _encode(self, spec: FrameSpec, source: np.ndarray) -> "list[EncodedFrame]":
        pipeline = self.pipeline
        if source is pipeline.next_buffer():
            return pipeline.encode_in_place(spec)
        y, u, v = split_planes(source, pipeline.config.display)
        return pipeline.encode(y, u, v, spec)

    def _frames(self) -> Iterator[tuple[FrameSpec, np.ndarray] | None]:
        """Frames to encode, in order; None while there is none. The next GOP is read while the last one is encoded."""
        queue, ahead, on_gpu = self._queue, self._ahead, self.pipeline.next_buffer() is not None
        buffer = np.empty(0 if on_gpu else queue.frame_bytes, np.uint8)
        while not queue.closing:
            room = ahead.room if on_gpu else 1
            if room and (self._gop is None or queue.is_over(self._gop)):
                self._gop = queue.next_gop() if self._may_take_another() else None
                self._report_idle(self._idle and self._gop is None)  # before `take`, after which no frame waits
            taken = queue.take(self._gop, room) if room and self._gop is not None else []
            reads = bool(taken) and callable(taken[0][1])
            if on_gpu and reads and not self.pipeline.read_ahead():
                on_gpu, buffer = False, np.empty(queue.frame_bytes, np.uint8)
                for spec, read in taken:
                    self._begin(self._gop)
                    read(buffer)
                    yield spec, buffer
            elif on_gpu and reads:
                for spec, read in taken:
                    ahead.begin(read, self.pipeline.next_buffer)
                    self._ahead_of.append((self._gop, spec))  # type: ignore[arg-type]
            elif taken:
                self._begin(self._gop)
                spec, source = taken[0]
                if reads:
                    source(buffer)
                    yield spec, buffer
                else:
                    yield spec, source
                    queue.give_back(source)
            elif ahead:
                gop, spec = self._ahead_of.popleft()
                self._begin(gop)
                yield spec, ahead.next()
            else:
                yield None

    def _may_take_another(self) -> bool:
        """Whether to take a GOP; while another one is read, at most one more, and none if a lane is idle."""
        return not self._ahead or (self._ahead_of[-1][0] is self._encoded_gop and not self._queue.has_idle_lane())

    def _begin(self, gop: Gop | None) -> None:
        """The next frame belongs to `gop`."""
        assert gop is not None
        if gop is not self._encoded_gop:
            self._encoded_gop = gop

    def _report_idle(self, idle: bool) -> None:
        """Report the lane as idle, after its frames in flight are finished, or as busy again."""
        if idle != self._idle:
            if idle:
                self._queue.emit(self.pipeline.flush())
            self._idle = idle
            self._queue.add_idle(1 if idle else -1)

    def _fail(self, error: BaseException) -> None:
        try:
            self._queue.emit(self.pipeline.flush())
        except Exception:  # the first failure counts
            pass
        self._queue.fail(self._encoded_gop.number if self._encoded_gop is not None else 0, error)
        if not self._idle:
            self._queue.add_idle(1)
