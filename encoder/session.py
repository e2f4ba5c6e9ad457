"""The calls of an encoder: one at a time, in its own process; each frame is handed out once, none after a failure."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING

import numpy as np

from ..process import gc_paused
from ..scheduler.frames.device_frame import DeviceFrame
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.trace import Trace
from ..uninterrupted import release_imports
from .encoded_frame import EncodedFrame
from .errors import Error, InputError, RefusedFrame
from .files.read_ahead import Read
from .frame_pipeline import FramePipeline
from .frames.source import HostSource, Source, check_range, planes_of
from .settings.config import Config
from .settings.frame_requests import Request
from .settings.pass_file import WRITING, PassFile
from .settings.reconfigure import reconfigured
from .statistics import Statistics

if TYPE_CHECKING:  # files are encoded without it
    from .frames.reader import Chunk

_POLL = 0.001  # seconds between looks at a call that ends
OPEN, FAILED, FLUSHING, FLUSHED, CLOSED = "open", "failed", "flushing", "flushed", "closed"


class Session:
    """Guards a pipeline and keeps its finished frames.

    An exception anywhere in a call (an interrupt, a signal handler's timeout, MemoryError) may leave a frame incomplete, so
    that no frame can follow; earlier frames can still be flushed. This includes exceptions in a flush while waiting frames
    are coded (ReorderingPipeline). Only InputError, but not RefusedFrame, is raised before any change.
    """

    def __init__(self, config: Config, pipeline: FramePipeline) -> None:
        self.config, self.pipeline = config, pipeline
        self.stats = Statistics(config.coding.width, config.coding.height, config.video.fps, *config.reports)
        self._pass_file = PassFile(config.values) if config.rate.pass_ in WRITING else None  # gets all frames
        self.state = OPEN
        self.ready: list[EncodedFrame] = []  # finished, in coding order, not handed out yet
        self._n_handed_out = 0  # frames handed out
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._call: dict[str, list[int]] = {}  # the current call, by its thread; setdefault is atomic
        self._closed_by: dict[str, object] = {}  # the call that closes
        self._is_aborted = False

    @property
    def takes_gpu_frames(self) -> bool:
        """Whether sources may be DeviceFrames: there is a GPU, one GOP at a time, and no option needs them on the host."""
        return self.config.machine.device != "cpu" and not self.config.reports.needs_host_frames and self.pipeline.on_gpu

    def headers(self) -> bytes:
        """See FramePipeline."""
        self.require(OPEN, FAILED, FLUSHING, FLUSHED)
        return self.pipeline.headers()

    def encode_from(self, chunk: "Chunk", k: int, request: Request | None = None) -> None:
        """`encode` for frame k of a chunk; InputError if it does not fit this encoder."""
        self.require(OPEN)
        chunk.check_size(self.config.coding.width, self.config.coding.height)
        self.encode(chunk.source(k), request)

    def encode(self, source: Source, request: Request | None = None) -> None:
        """Encode a frame; add finished frames to `ready`. request: what is asked of the frame."""
        mark = [get_ident()]
        try:
            is_other = self._call.setdefault("call", mark) is not mark or os.getpid() != self._process
            if is_other or self.state != OPEN or self._is_aborted:
                self._refuse(mark, OPEN)
            try:
                self._collect(self._encode(source, request))
            except BaseException as error:
                if isinstance(error, InputError) and not isinstance(error, RefusedFrame):
                    raise
                self.state, self._failure = FAILED, error.with_traceback(None)
                raise
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mark:
                del self._call["call"]

    def reconfigure(self, changes: Mapping[str, object]) -> None:
        """Other numbers of rate control for the frames encoded after it; OptionError, before any change."""
        mark = [get_ident()]
        try:
            self._call.setdefault("call", mark)
            self._refuse(mark, OPEN)
            config = reconfigured(self.config, changes)
            self.pipeline.reconfigure(config)
            self.config = config
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mark:
                del self._call["call"]

    def poll(self) -> None:
        """Add finished frames to `ready`; see FramePipeline."""
        self._run(lambda: self._collect(self.pipeline.poll()))

    def drain(self) -> None:
        """Add all frames in flight to `ready`; no frame can follow. After an exception it may be called again."""
        if self.state != FLUSHED:
            self._run(self._drain)

    def hand_out(self) -> list[EncodedFrame]:
        """Return and clear `ready`. No call stands between the assignment and the return, so that an interrupt comes before
        both or after both.
        """
        ready, count = self.ready, self._n_handed_out + len(self.ready)
        self.ready, self._n_handed_out = [], count
        return ready

    def close(self) -> None:
        """Release threads and memory, except in a forked process, which does not own them."""
        mark = object()
        if self._closed_by.setdefault("call", mark) is mark:
            self.state = CLOSED
            if os.getpid() == self._process:
                release_imports()
                self.pipeline.close()

    def abort(self) -> bool:
        """Close from any thread: a call of another one ends early, with an Error, and is waited for. False: the call is this
        thread's, interrupted by a handler of a signal; it ends with an Error, after which `abort` is to be called again.
        """
        self._is_aborted = True
        self.pipeline.stop()
        while call := self._call.get("call"):
            if call[0] == get_ident():
                return False
            time.sleep(_POLL)
        self.close()
        return True

    def require(self, *states: str) -> None:
        """Error unless the state is one of `states` and the process is the one that made the encoder."""
        if os.getpid() != self._process:
            raise Error(f"the encoder belongs to process {self._process}, which made it: make one in each process")
        if self._is_aborted:
            raise Error("the encode was aborted: no frame can follow")
        if self.state == FAILED and FAILED not in states:
            why, error_type = self._failure, type(self._failure) if isinstance(self._failure, Error) else Error
            raise error_type(f"the encoder failed ({str(why) or type(why).__name__}): no frame can follow")
        if self.state not in states:
            raise Error(f"the encoder is {self.state}: no frame can follow")

    def _run(self, step: Callable[[], None]) -> None:
        """Run a step that takes no frame, and collect finished frames."""
        mark = [get_ident()]
        try:
            self._call.setdefault("call", mark)
            self._refuse(mark, OPEN, FAILED, FLUSHING)
            release_imports()
            self._collect(self.pipeline.taken)  # frames that an interrupt of the previous call lost
            step()
        finally:  # no function is called here: an interrupt would keep the mark
            if "call" in self._call and self._call["call"] is mark:
                del self._call["call"]

    def _refuse(self, mark: list[int], *states: str) -> None:
        """Error unless `mark` marks the current call and the state is one of `states`."""
        if self._call.get("call") is not mark and os.getpid() == self._process:
            raise Error("the encoder is in use by another call: one thread at a time may feed it")
        self.require(*states)

    def _encode(self, source: Source, request: Request | None) -> Sequence[EncodedFrame]:
        if isinstance(source, DeviceFrame):
            self._check_gpu_frame()
        elif self.config.reports.ssim:
            source = self._measured(source)
        if request is None:
            return self.pipeline.encode(source)
        self.pipeline.request(request)
        try:
            return self.pipeline.encode(source)
        finally:
            self.pipeline.request(None)  # it is gone if the frame is refused

    def _check_gpu_frame(self) -> None:
        """InputError if frames must lie on the host."""
        config = self.config
        if config.machine.device == "cpu":
            raise InputError(
                f"a frame on a GPU, and this encoder runs on the CPU ({config.machine.device_reason}): copy it "
                "to the host, or take device='cuda'"
            )
        if name := config.reports.needs_host_frames:
            raise InputError(f"{name} needs the frames on the host: copy them there, or do without {name}")

    def _measured(self, source: HostSource | Read) -> Source:
        """A frame as planes, whose luma SSIM is measured by."""
        assert isinstance(source, tuple | np.ndarray), "SSIM is measured by frames in order"
        if isinstance(source, RgbFrame):
            planes, is_outside = source.planes()
            check_range(source, is_outside, self.stats.frames)
            self.pipeline.set_bt709()
            source = planes
        luma, *_ = planes_of(source, self.config.coding.display)
        self.stats.expect(luma)
        return source

    def _drain(self) -> None:
        failed = self.state == FAILED
        if not failed:
            self.state = FLUSHING
        try:
            self._collect(self.pipeline.flush())
            if self._is_aborted:
                self.require()
        except BaseException as error:
            if not self.pipeline.is_whole:
                self.state, self._failure = FAILED, error.with_traceback(None)
            raise
        if not failed:
            if self._pass_file is not None:
                self._pass_file.finish()
            self.state = FLUSHED

    def _collect(self, frames: Iterable[EncodedFrame]) -> None:
        """Add finished frames in coding order; those from before an interrupt may be repeated and are then skipped."""
        for frame in frames:
            expected = self._n_handed_out + len(self.ready)
            if frame.coding_index > expected:
                raise Error(f"frames {expected} to {frame.coding_index - 1} are lost: the stream ends before them")
            if frame.coding_index == expected:
                self.stats.add(frame)
                self.ready.append(frame)
                if self._pass_file is not None:
                    self._pass_file.add(frame)


def open_session(
    config: Config,
    keep_reconstruction: bool = False,
    warn: Callable[[str], None] | None = None,
    trace: Trace | None = None,
    frames: int | None = None,
    length: int | None = None,
    make: Callable[[Config, bool], FramePipeline] | None = None,
) -> Session:
    """A session with a pipeline for checked settings.

    warn: called instead of a RuntimeWarning; trace: for the timeline. frames: their number if they are read in any order,
    length: in any case; None = unknown. make: makes the pipeline by settings, and whether reconstructions are kept, in place
    of make_pipeline.
    """
    keep = keep_reconstruction or config.reports.ssim
    with gc_paused():
        from .make_pipeline import make_pipeline  # compiles nothing

        return Session(config, make(config, keep) if make else make_pipeline(config, keep, warn, trace, frames, length))
