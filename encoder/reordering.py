"""The pipeline of one device for frames whose coding order is not their display order: they wait in buffers before it.

source -> buffer -> FrameDecider -> (spec, buffer) in coding order -> Pipeline
"""

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.device_frame import DeviceFrame
from ..scheduler.frames.frame import SourceBuffer
from ..scheduler.frames.host_rgb import RgbFrame
from ..scheduler.trace import Trace
from .decision_queue import DecisionQueue
from .decisions.frame_decider import import_decisions
from .encoded_frame import EncodedFrame
from .files.read_ahead import Read
from .frame_pipeline import FramePipeline
from .frames.source import Source, check_range, planes_of
from .settings.config import Config
from .settings.frame_requests import Request
from .threaded_decision_queue import ThreadedDecisionQueue


class ReorderingPipeline(FramePipeline):
    """Finished frames come several at once or none. Frames on a GPU wait in buffers there.

    An exception while frames are coded ends the stream; those that still wait are then not coded.
    """

    def __init__(
        self, config: Config, keep_reconstruction: bool = False, warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:  # fmt: skip
        from .pipeline import Pipeline

        self._display, self._mb_height = config.coding.display, config.coding.mb_height
        self._next: deque[SourceBuffer] = deque()  # of the next frames
        self._free: deque[SourceBuffer] = deque()
        self._unread_before = 0  # frames before this one are read no more, as far as was asked
        self._done: list[EncodedFrame] = []  # of this call, by frames before the last one
        self._is_stopped = False
        import_decisions(config)
        self._pipeline = Pipeline(config, keep_reconstruction, warn, trace)
        self._exchanges = self._pipeline.executor.ring.exchanges
        self._evenly = self._exchanges and not config.machine.waits_for_packets
        cpu = self._pipeline.executor.threads_of_cpu
        if not self._pipeline.on_gpu:  # of a GPU that cannot be used, or by the plan: decisions are the CPU's, too
            config = config._replace(machine=config.machine._replace(devices=("cpu",)))
        self._decisions: DecisionQueue[SourceBuffer | DeviceFrame]
        if cpu is not None and config.decides_beside:
            self._decisions = ThreadedDecisionQueue(config, warn, cpu)
        else:
            self._decisions = DecisionQueue(config, warn, copies=not self._exchanges)

    @property
    def on_gpu(self) -> bool:
        return self._pipeline.on_gpu

    @property
    def taken(self) -> list[EncodedFrame]:
        return [*self._done, *self._pipeline.taken]

    @property
    def is_whole(self) -> bool:
        return self._decisions.is_whole

    def headers(self) -> bytes:
        return self._pipeline.headers()

    def next_buffer(self, ahead: int = 0) -> np.ndarray | None:
        return self._buffer(ahead).source

    def read_ahead(self, later: Callable[[int], Read] | None = None) -> bool:
        return self._exchanges  # else a frame is copied once more

    def reconfigure(self, config: Config) -> None:
        self._decisions.reconfigure(config)
        self._pipeline.reconfigure(config, self._decisions.count)

    def request(self, request: Request | None) -> None:
        self._decisions.request(request)

    def encode(self, source: Source) -> list[EncodedFrame]:
        """Planes are copied, and RGB is converted, to a buffer in which the frame waits."""
        if isinstance(source, DeviceFrame):
            return self._encode_on_gpu(source)
        buffer = self._buffer()
        if not isinstance(source, tuple | np.ndarray):
            source(buffer.source)
        elif isinstance(source, RgbFrame):
            check_range(source, source.convert(buffer.planes), self._decisions.count)
            self.set_bt709()
        elif source is not buffer.source:
            end = self._pipeline.executor.ring.begin_copy(buffer.target, planes_of(source, self._display))
            try:
                done = self._before()
            finally:
                end()
            return done + self._enter(buffer)
        return self._before() + self._enter(buffer)

    def _encode_on_gpu(self, source: DeviceFrame) -> list[EncodedFrame]:
        """The frame is copied on the GPU."""
        gpu_frame = self._pipeline.enter_on_gpu(source, True, self._decisions.count > 0)
        assert gpu_frame.buffered is not None
        done = self._before()
        self._decisions.enter(gpu_frame, gpu_frame.buffered)
        return done + self._after()

    def set_bt709(self) -> None:
        self._pipeline.set_bt709(self._decisions.count > 0)

    def flush(self) -> list[EncodedFrame]:
        return self._code(self._decisions.end()) + self._pipeline.flush()

    def stop(self) -> None:
        self._is_stopped = True

    def close(self) -> None:
        if isinstance(self._decisions, ThreadedDecisionQueue):
            self._pipeline.close()  # decisions are tasks of its threads
            self._decisions.close()
        else:
            self._decisions.close()  # which may read buffers of the pipeline
            self._pipeline.close()

    def _buffer(self, ahead: int = 0) -> SourceBuffer:
        """The buffer of a frame that follows: one that nothing reads any more, or a new one."""
        while len(self._next) <= ahead:
            if self._free and self._is_unread(self._free[0].number):
                self._next.append(self._free.popleft())
            elif self._exchanges:
                self._next.append(self._pipeline.executor.ring.source_buffer())
            else:
                self._next.append(SourceBuffer(self._mb_height, self._display, np.empty))
        return self._next[ahead]

    def _is_unread(self, number: int) -> bool:
        """Whether nothing reads this frame any more."""
        if number >= self._unread_before:
            self._unread_before = self._decisions.reads_from
        return number < self._unread_before

    def _enter(self, buffer: SourceBuffer) -> list[EncodedFrame]:
        """The frame in the next buffer enters."""
        self._next.popleft()
        buffer.number = self._decisions.count
        self._decisions.enter(buffer, buffer.planes)
        return self._after()

    def _before(self) -> list[EncodedFrame]:
        """Code frames while the next one is copied, and before decisions: a GPU has work then."""
        return self._code(self._decisions.leave(evenly=True)) if self._evenly else []

    def _after(self) -> list[EncodedFrame]:
        """Code the frames that decisions have made ready."""
        return [] if self._evenly else self._code(self._decisions.leave())

    def _code(self, frames: Iterable[tuple[FrameSpec, SourceBuffer | DeviceFrame]]) -> list[EncodedFrame]:
        """Code frames one after another; returns what has become finished."""
        self._done = []
        for spec, waiting in frames:
            if self._is_stopped:
                break
            source: Source
            if isinstance(waiting, DeviceFrame):
                source, free = waiting, None
            elif self._exchanges:
                source, free = waiting.source, self._pipeline.exchange(waiting)
            else:
                y, u, v = waiting.planes
                source, free = (y, u, v), waiting
            self._done = self._done + self._pipeline.encode(source, spec, self._decisions.ahead)
            if free is not None:
                self._free.append(free)
        return self._done
