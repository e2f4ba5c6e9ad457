"""A lane: a pipeline that encodes GOPs of a queue, frame by frame."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ...scheduler.frames.frame import split_planes
from ...scheduler.threads.readers import Readers
from ..files.read_ahead import THREADS, ReadAhead
from .queue import Gop, GopQueue

if TYPE_CHECKING:
    from ..pipeline import EncodedFrame, Pipeline


class Lane:
    """Encodes GOPs with one pipeline. With a GPU, frames are read into upload buffers while earlier ones are encoded."""

    def __init__(self, pipeline: "Pipeline", queue: GopQueue) -> None:
        self.pipeline, self._queue = pipeline, queue
        self._readers = Readers(THREADS)
        self._ahead = ReadAhead(self._readers)
        self._ahead_of: deque[tuple[Gop, FrameSpec]] = deque()  # of each frame in `_ahead`
        self._gop: Gop | None = None  # whose frames are taken from the queue
        self._at: Gop | None = None  # whose frames are encoded
        self._rests = False

    def steps(self) -> Iterator[bool]:
        """Encodes a frame at each step; yields whether there was one. Ends with the encode."""
        try:
            for work in self._pictures():
                if work is None and self._gop is None:
                    self._rest(True)
                elif work is not None:
                    self._queue.emit(self._encode(*work))
                yield work is not None
        except BaseException as error:  # raised in the caller's thread (GopQueue.collect)
            self._fail(error)
        finally:
            self._readers.close()

    def _encode(self, spec: FrameSpec, place: np.ndarray) -> "list[EncodedFrame]":
        pipeline = self.pipeline
        if place is pipeline.next_buffer():
            return pipeline.encode_in_place(spec)
        y, u, v = split_planes(place, pipeline.config.display)
        return pipeline.encode(y, u, v, spec)

    def _pictures(self) -> Iterator[tuple[FrameSpec, np.ndarray] | None]:
        """Frames to encode, in order; None while there is none. The next GOP is read while the last one is encoded."""
        queue, ahead, on_gpu = self._queue, self._ahead, self.pipeline.next_buffer() is not None
        own = np.empty(0 if on_gpu else queue.picture_bytes, np.uint8)
        while not queue.closing:
            room = ahead.room if on_gpu else 1
            if room and (self._gop is None or queue.is_over(self._gop)):
                self._gop = queue.next_gop() if self._may_take_another() else None
                self._rest(self._rests and self._gop is None)  # before `take`, which ends the waiting of a frame
            taken = queue.take(self._gop, room) if room and self._gop is not None else []
            reads = bool(taken) and callable(taken[0][1])
            if on_gpu and reads and not self.pipeline.read_ahead():
                on_gpu, own = False, np.empty(queue.picture_bytes, np.uint8)
                for spec, read in taken:
                    self._begin(self._gop)
                    read(own)
                    yield spec, own
            elif on_gpu and reads:
                for spec, read in taken:
                    ahead.begin(read, self.pipeline.next_buffer)
                    self._ahead_of.append((self._gop, spec))  # type: ignore[arg-type]
            elif taken:
                self._begin(self._gop)
                spec, picture = taken[0]
                if reads:
                    picture(own)
                    yield spec, own
                else:
                    yield spec, picture
                    queue.give_back(picture)
            elif ahead:
                gop, spec = self._ahead_of.popleft()
                self._begin(gop)
                yield spec, ahead.next()
            else:
                yield None

    def _may_take_another(self) -> bool:
        """Whether to take a GOP; while another one is read, at most one more, and none if a lane is idle."""
        return not self._ahead or (self._ahead_of[-1][0] is self._at and not self._queue.somebody_rests())

    def _begin(self, gop: Gop | None) -> None:
        """The next frame belongs to `gop`."""
        assert gop is not None
        if gop is not self._at:
            self._at = gop

    def _rest(self, rests: bool) -> None:
        """Report the lane as idle, after its frames in flight are finished, or as busy again."""
        if rests != self._rests:
            if rests:
                self._queue.emit(self.pipeline.flush())
            self._rests = rests
            self._queue.rest(1 if rests else -1)

    def _fail(self, error: BaseException) -> None:
        try:
            self._queue.emit(self.pipeline.flush())
        except Exception:  # the first failure counts
            pass
        self._queue.fail(self._at.number if self._at is not None else 0, error)
        if not self._rests:
            self._queue.rest(1)
