"""An encoder's calls: one at a time, in the process that made it; each frame handed out once, none behind a failure."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .errors import Error, InputError
from .statistics import FrameRow, Statistics

if TYPE_CHECKING:
    from .pipeline import EncodedFrame

OPEN, FAILED, FLUSHING, FLUSHED, CLOSED = "open", "failed", "flushing", "flushed", "closed"


class Session:
    """A pipeline (or Gops) between the caller and its frames.

    An exception at any place within a call (an interrupt, a signal handler's timeout, memory that is short) may leave a
    frame half coded, so that no frame can follow; the frames before it stay to be flushed. Only InputError comes before
    anything is changed.
    """

    def __init__(self, pipeline: Any, stats: Statistics) -> None:
        self._pipeline, self._stats = pipeline, stats
        self.state = OPEN
        self.ready: list[tuple[EncodedFrame, FrameRow]] = []  # finished in order, not handed out yet
        self._given = 0  # frames handed out
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._call: dict[str, object] = {}  # the call under way; setdefault is one step for all threads

    def feed(self, step: Callable[..., "Iterable[EncodedFrame]"], *given: Any) -> None:
        """step(*given) takes a frame; what is finished is added to `ready`."""
        mine = object()
        try:
            if self._call.setdefault("call", mine) is not mine or self.state != OPEN or os.getpid() != self._process:
                self._refuse(mine, OPEN)
            try:
                self._collect(step(*given))
            except InputError:
                raise
            except BaseException as error:
                self.state, self._failure = FAILED, error.with_traceback(None)
                raise
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mine:
                del self._call["call"]

    def poll(self) -> None:
        """See Gops.poll."""
        self._run(lambda: self._collect(self._pipeline.poll()))

    def drain(self) -> None:
        """All that is under way to `ready`; no frame can follow. After an exception it may be called again."""
        if self.state != FLUSHED:
            self._run(self._drain)

    def hand_out(self) -> "list[tuple[EncodedFrame, FrameRow]]":
        """`ready`, which is empty then. No call stands between the assignment and the end, so that an interrupt comes before
        both or after both.
        """
        ready, given = self.ready, self._given + len(self.ready)
        self.ready, self._given = [], given
        return ready

    def close(self) -> None:
        """Give threads and memory back. A process that was forked has no part in them."""
        if self.state != CLOSED:
            self.state = CLOSED
            if os.getpid() == self._process:
                self._pipeline.close()

    def require(self, *states: str) -> None:
        """Error unless the state is one of these, and the process the one that made the encoder."""
        if os.getpid() != self._process:
            raise Error(f"the encoder belongs to process {self._process}, which made it: make one in each process")
        if self.state == FAILED and FAILED not in states:
            why, kind = self._failure, type(self._failure) if isinstance(self._failure, Error) else Error
            raise kind(f"the encoder failed ({str(why) or type(why).__name__}): no frame can follow")
        if self.state not in states:
            raise Error(f"the encoder is {self.state}: no frame can follow")

    def _run(self, step: Callable[[], None]) -> None:
        """What gives finished frames and takes none."""
        mine = object()
        try:
            self._call.setdefault("call", mine)
            self._refuse(mine, OPEN, FAILED, FLUSHING)
            self._collect(self._pipeline.taken)  # lost on the way here by an interrupt of the call before
            step()
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mine:
                del self._call["call"]

    def _refuse(self, mine: object, *states: str) -> None:
        """Error unless `mine` marks the call under way, and the state is one of these."""
        if self._call.get("call") is not mine:
            raise Error("the encoder is in use by another call: one thread at a time may feed it")
        self.require(*states)

    def _drain(self) -> None:
        failed = self.state == FAILED
        if not failed:
            self.state = FLUSHING
        self._collect(self._pipeline.flush())
        if not failed:
            self.state = FLUSHED

    def _collect(self, frames: "Iterable[EncodedFrame]") -> None:
        """Finished frames in order; those that came before an interrupt may come again."""
        for frame in frames:
            expected = self._given + len(self.ready)
            if frame.index > expected:
                raise Error(f"frames {expected} to {frame.index - 1} are lost: the stream ends before them")
            if frame.index == expected:
                self.ready.append((frame, self._stats.add(frame)))
