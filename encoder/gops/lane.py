"""A lane: a pipeline that encodes GOPs of a queue, frame by frame."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...scheduler.frame_spec import FrameSpec
from ...scheduler.threads.readers import Readers
from ..encoded_frame import EncodedFrame
from ..files.read_ahead import THREADS, Read, ReadAhead
from .queue import Gop, Waiting

if TYPE_CHECKING:
    from ..pipeline import Pipeline


class LaneQueue(Protocol):
    """What lanes ask of a queue: GopQueue, one of the queues of sharing.py, or ChunkQueue in a worker process."""

    @property
    def closing(self) -> bool:
        """Whether lanes end at once."""

    @property
    def changes(self) -> int:
        """The number of changes, for which lanes may wait."""

    def next_gop(self) -> Gop | None:
        """The next waiting GOP for a lane; None: there is none now."""

    def take(self, gop: Gop, most: int, /) -> list[Waiting]:
        """The next waiting frames of the GOP: at most `most` Reads, or one array."""

    def is_over(self, gop: Gop, /) -> bool:
        """Whether no frame of the GOP follows."""

    def give_back(self, source: np.ndarray | Read) -> None:
        """The source of a frame that was encoded, or read ahead, is not needed any more."""

    def emit(self, done: Sequence[EncodedFrame]) -> None:
        """Add finished frames."""

    def add_idle(self, lanes: int) -> None:
        """Add `lanes` to the number of idle lanes."""

    def has_idle_lane(self) -> bool:
        """Whether a lane is idle."""

    def wait_for_change(self, since: int) -> None:
        """Wait until `changes` differs from `since`."""

    def fail(self, number: int, error: BaseException) -> None:
        """A lane fails in GOP `number`: finished frames are kept, earlier GOPs are encoded, later ones are not."""


class Lane:
    """Encodes GOPs with one pipeline. With a GPU, frames are read into upload buffers while earlier ones are encoded."""

    def __init__(self, pipeline: "Pipeline", queue: LaneQueue) -> None:
        self.pipeline, self._queue = pipeline, queue
        self._readers = Readers(THREADS)
        self._ahead = ReadAhead(self._readers)
        self._ahead_of: deque[tuple[Gop | None, FrameSpec, Read]] = deque()  # of each frame in `_ahead`
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
                    spec, source = work
                    self._queue.emit(self.pipeline.encode(source, spec))
                yield work is not None
        except BaseException as error:  # raised in the caller's thread (GopQueue.collect)
            self._fail(error)
        finally:
            self._readers.close()

    def _frames(self) -> Iterator[tuple[FrameSpec, np.ndarray | Read] | None]:
        """Frames to encode, in order; None while there is none. The next GOP is read while the last one is encoded."""
        queue, ahead, reads_ahead = self._queue, self._ahead, self.pipeline.next_buffer() is not None
        while not queue.closing:
            room = ahead.room if reads_ahead else 1
            if room and (self._gop is None or queue.is_over(self._gop)):
                self._gop = queue.next_gop() if self._may_take_another() else None
                self._report_idle(self._idle and self._gop is None)  # before `take`, after which no frame waits
            taken = queue.take(self._gop, room) if room and self._gop is not None else []
            if not taken:
                yield self._next_read() if ahead else None
                continue
            reads = not isinstance(taken[0][1], np.ndarray)
            reads_ahead = reads_ahead and (not reads or self.pipeline.read_ahead())
            for spec, source in taken:
                if reads_ahead and not isinstance(source, np.ndarray):
                    ahead.begin(source, self.pipeline.next_buffer)
                    self._ahead_of.append((self._gop, spec, source))
                    continue
                self._encoded_gop = self._gop
                yield spec, source
                queue.give_back(source)

    def _next_read(self) -> tuple[FrameSpec, np.ndarray]:
        """The next of the frames that are read ahead."""
        self._encoded_gop, spec, source = self._ahead_of.popleft()
        buffer = self._ahead.next()
        self._queue.give_back(source)
        return spec, buffer

    def _may_take_another(self) -> bool:
        """Whether to take a GOP; while another one is read, at most one more, and none if a lane is idle."""
        return not self._ahead or (self._ahead_of[-1][0] is self._encoded_gop and not self._queue.has_idle_lane())

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
