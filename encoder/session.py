"""The calls of an encoder: one at a time, in its own process; each frame is handed out once, none after a failure."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..uninterrupted import release_imports
from .errors import Error, InputError, RefusedFrame
from .settings.pass_file import PassFile
from .statistics import FrameRow, Statistics

if TYPE_CHECKING:
    from .pipeline import EncodedFrame

OPEN, FAILED, FLUSHING, FLUSHED, CLOSED = "open", "failed", "flushing", "flushed", "closed"


class Session:
    """Guards a pipeline (or Gops) and keeps its finished frames.

    An exception anywhere in a call (an interrupt, a signal handler's timeout, MemoryError) may leave a frame incomplete, so
    that no frame can follow; earlier frames can still be flushed. This includes exceptions in a flush while waiting frames
    are coded (ReorderingPipeline). Only InputError, but not RefusedFrame, is raised before any change.
    """

    def __init__(self, pipeline: Any, stats: Statistics, pass_file: PassFile | None = None) -> None:
        """pass_file: gets all frames."""
        self._pipeline, self._stats, self._pass_file = pipeline, stats, pass_file
        self.state = OPEN
        self.ready: list[tuple[EncodedFrame, FrameRow]] = []  # finished, in coding order, not handed out yet
        self._n_handed_out = 0  # frames handed out
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._call: dict[str, object] = {}  # the current call; setdefault is atomic

    def feed(self, step: Callable[..., "Iterable[EncodedFrame]"], *arguments: Any) -> None:
        """Encode a frame with step(*arguments); add finished frames to `ready`."""
        mark = object()
        try:
            if self._call.setdefault("call", mark) is not mark or self.state != OPEN or os.getpid() != self._process:
                self._refuse(mark, OPEN)
            try:
                self._collect(step(*arguments))
            except BaseException as error:
                if isinstance(error, InputError) and not isinstance(error, RefusedFrame):
                    raise
                self.state, self._failure = FAILED, error.with_traceback(None)
                raise
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mark:
                del self._call["call"]

    def poll(self) -> None:
        """See Gops.poll."""
        self._run(lambda: self._collect(self._pipeline.poll()))

    def drain(self) -> None:
        """Add all frames in flight to `ready`; no frame can follow. After an exception it may be called again."""
        if self.state != FLUSHED:
            self._run(self._drain)

    def hand_out(self) -> "list[tuple[EncodedFrame, FrameRow]]":
        """Return and clear `ready`. No call stands between the assignment and the return, so that an interrupt comes before
        both or after both.
        """
        ready, count = self.ready, self._n_handed_out + len(self.ready)
        self.ready, self._n_handed_out = [], count
        return ready

    def close(self) -> None:
        """Release threads and memory, except in a forked process, which does not own them."""
        if self.state != CLOSED:
            self.state = CLOSED
            if os.getpid() == self._process:
                release_imports()
                self._pipeline.close()

    def require(self, *states: str) -> None:
        """Error unless the state is one of `states` and the process is the one that made the encoder."""
        if os.getpid() != self._process:
            raise Error(f"the encoder belongs to process {self._process}, which made it: make one in each process")
        if self.state == FAILED and FAILED not in states:
            why, error_type = self._failure, type(self._failure) if isinstance(self._failure, Error) else Error
            raise error_type(f"the encoder failed ({str(why) or type(why).__name__}): no frame can follow")
        if self.state not in states:
            raise Error(f"the encoder is {self.state}: no frame can follow")

    def _run(self, step: Callable[[], None]) -> None:
        """Run a step that takes no frame, and collect finished frames."""
        mark = object()
        try:
            self._call.setdefault("call", mark)
            self._refuse(mark, OPEN, FAILED, FLUSHING)
            release_imports()
            self._collect(self._pipeline.taken)  # frames that an interrupt of the previous call lost
            step()
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mark:
                del self._call["call"]

    def _refuse(self, mark: object, *states: str) -> None:
        """Error unless `mark` marks the current call and the state is one of `states`."""
        if self._call.get("call") is not mark and os.getpid() == self._process:
            raise Error("the encoder is in use by another call: one thread at a time may feed it")
        self.require(*states)

    def _drain(self) -> None:
        failed = self.state == FAILED
        if not failed:
            self.state = FLUSHING
        try:
            self._collect(self._pipeline.flush())
        except BaseException as error:
            if not getattr(self._pipeline, "is_whole", True):
                self.state, self._failure = FAILED, error.with_traceback(None)
            raise
        if not failed:
            if self._pass_file is not None:
                self._pass_file.finish()
            self.state = FLUSHED

    def _collect(self, frames: "Iterable[EncodedFrame]") -> None:
        """Add finished frames in coding order; those from before an interrupt may be repeated and are then skipped."""
        for frame in frames:
            expected = self._n_handed_out + len(self.ready)
            if frame.coding_index > expected:
                raise Error(f"frames {expected} to {frame.coding_index - 1} are lost: the stream ends before them")
            if frame.coding_index == expected:
                self.ready.append((frame, self._stats.add(frame)))
                if self._pass_file is not None:
                    self._pass_file.add(frame)
