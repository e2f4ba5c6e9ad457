"""The pipeline of one device for frames whose coding order is not their display order: they wait in buffers before it.

    source -> buffer -> FrameDecider -> (spec, buffer) in coding order -> Pipeline
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.frame import SourceBuffer
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.trace import Trace
from .decision_queue import DecisionQueue
from .errors import InputError
from .frames.device_frame import DeviceFrame
from .settings.config import Config
from .settings.frame_requests import Request
from .threaded_decision_queue import ThreadedDecisionQueue

if TYPE_CHECKING:
    from .pipeline import EncodedFrame


class ReorderingPipeline:
    """As Pipeline. Finished frames come in coding order, several at once or none. Frames on a GPU wait in buffers there.

    An exception while frames are coded ends the stream; those that still wait are then not coded.
    """

    def __init__(
        self, config: Config, keep_reconstruction: bool = False, warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:  # fmt: skip
        from .pipeline import Pipeline

        self._display, self._mb_height = config.display, config.mb_height
        self._next: deque[SourceBuffer] = deque()  # of the next frames
        self._free: deque[SourceBuffer] = deque()
        self._done: list[EncodedFrame] = []  # of this call, by frames before the last one
        self._pipeline = Pipeline(config, keep_reconstruction, warn, trace)
        self._exchanges = self._pipeline.executor.ring.exchanges
        self._evenly = self._exchanges and not config.waits_for_packets
        cpu = self._pipeline.executor.threads_of_cpu
        if not self._pipeline.on_gpu:  # of a GPU that cannot be used, or by the plan: decisions are the CPU's, too
            config = replace(config, devices=("cpu",))
        self._decisions: DecisionQueue[SourceBuffer | DeviceFrame]
        if cpu is not None and config.decides_beside:
            self._decisions = ThreadedDecisionQueue(config, warn, cpu)
        else:
            self._decisions = DecisionQueue(config, warn, copies=not self._exchanges)

    @property
    def on_gpu(self) -> bool:
        """See Pipeline."""
        return self._pipeline.on_gpu

    @property
    def taken(self) -> "list[EncodedFrame]":
        """See Pipeline; frames may be repeated."""
        return [*self._done, *self._pipeline.taken]

    @property
    def is_whole(self) -> bool:
        """Whether frames that wait can still be coded: false after an exception while others were."""
        return self._decisions.is_whole

    def headers(self) -> bytes:
        """See Pipeline."""
        return self._pipeline.headers()

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        """See Pipeline."""
        return self._buffer(ahead).source

    def read_ahead(self) -> bool:
        """See Pipeline: only where buffers are exchanged, else a frame is copied once more."""
        return self._exchanges

    def request(self, request: Request | None) -> None:
        """See Pipeline."""
        self._decisions.request(request)

    def encode(self, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> "list[EncodedFrame]":
        """See Pipeline. The planes are copied."""
        buffer = self._buffer()
        if np.may_share_memory(buffer.source, y):  # it was read into the buffer
            return self._before() + self._enter()
        with self._pipeline.executor.ring.copying(buffer.target, (y, u, v)):
            done = self._before()
        return done + self._enter()

    def encode_rgb(self, source: RgbFrame, checked: bool) -> "list[EncodedFrame]":
        """See Pipeline."""
        from .pipeline import outside_text

        if source.convert(self._buffer().planes) and checked:
            raise InputError(outside_text(self._decisions.count))
        self.set_bt709()
        return self._before() + self._enter()

    def encode_on_gpu(self, source: DeviceFrame) -> "list[EncodedFrame]":
        """See Pipeline. The frame is copied on the GPU."""
        gpu_frame = self._pipeline.enter_on_gpu(source, True, self._decisions.count > 0)
        assert gpu_frame.buffered is not None
        done = self._before()
        self._decisions.enter(gpu_frame, gpu_frame.buffered)
        return done + self._after()

    def set_bt709(self) -> None:
        """See Pipeline."""
        self._pipeline.set_bt709(self._decisions.count > 0)

    def flush(self) -> "list[EncodedFrame]":
        """See Pipeline; frames that wait are coded first, unless an exception has left one incomplete."""
        return self._code(self._decisions.end()) + self._pipeline.flush()

    def close(self) -> None:
        """See Pipeline; frames that wait are dropped."""
        if isinstance(self._decisions, ThreadedDecisionQueue):
            self._pipeline.close()  # decisions are tasks of its threads
            self._decisions.close()
        else:
            self._decisions.close()  # which may read buffers of the pipeline
            self._pipeline.close()

    def _buffer(self, ahead: int = 0) -> SourceBuffer:
        """The buffer of a frame that follows: one that nothing reads any more, or a new one."""
        while len(self._next) <= ahead:
            if self._free and self._free[0].number < self._decisions.reads_from:
                self._next.append(self._free.popleft())
            elif self._exchanges:
                self._next.append(self._pipeline.executor.ring.source_buffer())
            else:
                self._next.append(SourceBuffer(self._mb_height, self._display, np.empty))
        return self._next[ahead]

    def _enter(self) -> "list[EncodedFrame]":
        """The frame in the buffer enters."""
        buffer = self._buffer()
        self._next.popleft()
        buffer.number = self._decisions.count
        self._decisions.enter(buffer, buffer.planes)
        return self._after()

    def _before(self) -> "list[EncodedFrame]":
        """Code frames while the next one is copied, and before decisions: a GPU has work then."""
        return self._code(self._decisions.leave(evenly=True)) if self._evenly else []

    def _after(self) -> "list[EncodedFrame]":
        """Code the frames that decisions have made ready."""
        return [] if self._evenly else self._code(self._decisions.leave())

    def _code(self, frames: Iterable[tuple[FrameSpec, Any]]) -> "list[EncodedFrame]":
        """Code frames one after another, of buffers or DeviceFrames; returns what has become finished."""
        self._done = []
        for spec, source in frames:
            if isinstance(source, DeviceFrame):
                self._done = self._done + self._pipeline.encode_on_gpu(source, spec, self._decisions.ahead)
                continue
            free = source
            if self._exchanges:
                done, free = self._pipeline.encode_buffer(source, spec, self._decisions.ahead)
            else:
                y, u, v = source.planes
                done = self._pipeline.encode(y, u, v, spec, self._decisions.ahead)
            self._done = self._done + done
            self._free.append(free)
        return self._done
