"""The workers of a hybrid executor: CPU threads as one device, a GPU as another. Each does operations of a route."""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import NamedTuple, Protocol

import numpy as np

from ...cuda_src.runtime.array import Event
from ...cuda_src.runtime.device import Device
from ..arrays import SOURCES
from ..bundles import State
from ..compiled_frame import CompiledFrame
from ..executor import Executor, Span, Spans
from ..frames.device_frame import DeviceFrame
from ..gpu_memory import GpuMemory
from ..stages import D2H, EVEN, FRAME, H2D, MAIN, ROWS, SLICE_TICKETS, SLICES, STAGES, TICKETS
from ..threads.lazy_task import Task
from ..threads.parallel_steps import CompiledSteps
from ..trace import GpuClock, TimedSpan, Trace
from .issue_order import Group, IssueOrder
from .plan import HOST
from .route import Copy, Op, Run

FRAMES_ON_DEVICE = 3  # frames whose arrays a GPU holds: one uploaded, one in the loop, one downloaded
Seconds = list[tuple[str, float]]  # by stage
FREE = 8  # one of so many threads takes no part in rows, but in tasks: bits of frames before, sources of later ones


class Timed(NamedTuple):
    """The timed operations of a frame on a GPU, the spans that tell their times, and whether recordings keep their events."""

    spans: list[TimedSpan]
    ops: list[Op]
    is_kept: bool = False


class Work(Protocol):
    """The arrays of a frame, by device."""

    @property
    def key(self) -> Hashable:
        """Equal for frames of an order whose operations differ by where arrays lie alone, as `ranges` tell."""

    @property
    def ranges(self) -> np.ndarray:
        """int64[n, 2], address and bytes of the arrays that differ, on the host and on the GPU; n: the same for a key."""

    def state(self, device: str, reference: int) -> State:
        """The arguments of stages, by name, in a step for one reference."""

    def with_placeholders(self) -> Sequence[int]:
        """From now on the pools of slots are placeholders among the arguments on the GPU (recording.py): their addresses."""

    def compiled(self, worker: "CpuWorker", order: IssueOrder) -> tuple[CompiledFrame, np.ndarray] | None:
        """The groups of a CPU worker as the steps of compiled calls, and their words; None: stages are called one by one."""

    def copies(self, gpu: str, op: Copy) -> Sequence[tuple[int, int, int]]:
        """(address on the GPU, address on the host, bytes) of the rows of a copy, for each plane."""


class CpuWorker(Executor):
    """CPU threads."""

    def __init__(
        self, device: str, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None
    ) -> None:
        super().__init__(threads, n_rows, slices, trace, "h264lite" if device == HOST else f"h264lite {device}")
        self._team = threads - threads // FREE
        self.device = device
        self.doing = ""  # the stages of the last call, for messages
        self.abandoned = False  # its threads hang and cannot be ended
        self._spans: dict[tuple[int, int], Spans] = {}
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def work(self, names: Sequence[str], row0: int, row1: int, state: State) -> Seconds:
        """Run one step of stages on rows [row0, row1). Returns the wall seconds of each."""
        if (row0, row1) not in self._spans:
            self._spans[row0, row1] = self._spans_of(row0, row1, self._team)
        times: Seconds = []
        begin = time.perf_counter()
        self._worker_pool.run([self._split(names, state, times, self._spans[row0, row1])])
        wall = time.perf_counter() - begin
        seconds = dict.fromkeys(names, 0.0)
        for name, spent in times:
            seconds[name] += spent
        return _shares(seconds, wall)

    @property
    def is_compiled(self) -> bool:
        """Whether steps run as compiled calls where that is possible (`sharing`)."""
        return not self.is_compared

    def steps_of(self, group: Group) -> list[list[Span]]:
        """The parts of a group's step, each stages with their spans."""
        return self.parts(group.stages, self._spans_of(group.row0, group.row1, self._team))

    def sharing(self, steps: CompiledSteps | None) -> AbstractContextManager[None]:
        """Around a frame: threads take part in its steps as they are opened, so that none is woken for each."""
        return nullcontext() if steps is None else self._worker_pool.sharing(steps, self._team)

    def seconds_by_step(self, compiled: CompiledFrame, steps: CompiledSteps) -> list[dict[str, float]]:
        """Those of stages in the steps of a frame, which were run."""
        return compiled.seconds_by_step(steps, self._trace)

    def begin(self, function: Callable[[], object]) -> Task[object]:
        """A task that a free thread runs before others; without threads its result runs it."""
        return self._worker_pool.submit(function, urgent=True)

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` on a thread of this worker, which counts as one of its threads."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"h264lite {self.device}", daemon=True)
            self._thread.start()
        self._queue.put(work)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def close(self, keep_host: bool = False) -> None:
        """See Executor."""
        if self.abandoned:
            return
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        super().close(keep_host)


def _shares(spent: Mapping[str, float], wall: float) -> Seconds:
    """The wall time, divided among stages by their times summed over threads."""
    of_all = sum(spent.values()) or 1.0
    return [(name, seconds * wall / of_all) for name, seconds in spent.items()]


class GpuWorker(GpuMemory):
    """A GPU: one stream for stages, one for each direction of copies (H2D, D2H)."""

    frames_on_device = FRAMES_ON_DEVICE

    def __init__(
        self,
        device: str,
        gpu: Device,
        n_rows: int,
        slices: list[tuple[int, int]],
        trace: Trace | None = None,
        has_b_frames: bool = False,
    ) -> None:
        """has_b_frames: see GpuMemory."""
        super().__init__(gpu, has_b_frames)
        self.device = device
        self._slices = (0, slices[-1][1])
        self._pool: list[Event] = []  # events recorded after operations, by index of the operation
        self._timed: list[Op] = []  # operations of the frame that is being issued, in the order of the clock's spans
        self.clocked, self.traced, self.trace = False, trace is not None, trace
        self.unread = False  # times of kept events are not read yet
        self._late_upload: Event | None = None
        with gpu:
            self.streams = {name: gpu.stream() for name in (MAIN, H2D, D2H)}
            self._clock = GpuClock(gpu, trace or Trace(), self.streams[MAIN])
            self._frame_ends = [{name: gpu.event() for name in self.streams} for _ in range(FRAMES_ON_DEVICE)]
            self._loaded = gpu.event()  # reused: a wait binds to the latest record
            self._refs_copied = [gpu.event() for _ in range(FRAMES_ON_DEVICE)]
            for event in (*self._refs_copied, *(event for events in self._frame_ends for event in events.values())):
                gpu.record(event, self.streams[MAIN])

    # ---- a frame
    def begin(self, number: int, clocked: bool, may_record: bool) -> None:
        """Order frame `number` after the frames before; its source may be uploaded while the frame before is in the loop.

        Arrays of one frame exist FRAMES_ON_DEVICE times; arrays between stages, and references, exist once. may_record: the
        calls of the frame, so that events of its clock stay.
        """
        gpu, before = self.gpu, self._frame_ends[(number - 1) % FRAMES_ON_DEVICE]
        self.clocked = clocked
        self._clock.keep(clocked and may_record)
        self._late_upload = before[MAIN]  # event that uploads other than sources wait for
        gpu.wait(self.streams[MAIN], before[H2D])
        gpu.wait(self.streams[MAIN], self._frame_ends[(number + 1) % FRAMES_ON_DEVICE][D2H])  # frame number - 2

    def begin_copies(self, number: int) -> None:
        """The same for the streams of copies."""
        gpu, before = self.gpu, self._frame_ends[(number - 1) % FRAMES_ON_DEVICE]
        gpu.wait(self.streams[H2D], self._frame_ends[number % FRAMES_ON_DEVICE][MAIN])
        gpu.wait(self.streams[H2D], self._frame_ends[number % FRAMES_ON_DEVICE][D2H])
        for name in (MAIN, H2D):
            gpu.wait(self.streams[D2H], before[name])

    def issue(self, op: Op, number: int, after: Iterable[Event], work: Work) -> None:
        """Issue an operation to its stream, after events of other streams."""
        gpu = self.gpu
        track = MAIN if isinstance(op, Run) else H2D if op.target == self.device else D2H
        stream = self.streams[track]
        if track == H2D and self._late_upload is not None and isinstance(op, Copy) and op.array[0] not in SOURCES:
            gpu.wait(stream, self._late_upload)
            self._late_upload = None
        for event in after:
            gpu.wait(stream, event)
        before = self._clock.begin(stream) if self.clocked else None
        if isinstance(op, Run):
            stage = STAGES[op.stage]
            span = {ROWS: (op.row0, op.row1), EVEN: (op.row0, op.row1), TICKETS: (op.row0, op.row1),
                    SLICES: self._slices, SLICE_TICKETS: self._slices, FRAME: ()}[stage.split]  # fmt: skip
            stage.launch(work.state(self.device, op.reference), span, stream)
        else:
            for array, host, size in work.copies(self.device, op):
                if track == H2D:
                    gpu.call("memcpy_htod_async", (array, host, size, stream.handle), ())
                else:
                    gpu.call("memcpy_dtoh_async", (host, array, size, stream.handle), ())
        if before is not None:
            self._clock.end(track, op.stage if isinstance(op, Run) else op.array[0], before, stream, number)
            self._timed.append(op)

    def mark(self, index: int, op: Op) -> Event:
        """Record an event after an operation that was just issued."""
        while len(self._pool) <= index:
            self._pool.append(self.gpu.event())
        track = MAIN if isinstance(op, Run) else H2D if op.target == self.device else D2H
        return self.gpu.record(self._pool[index], self.streams[track])

    def record_refs_copied(self, number: int) -> Event:
        """Record the event after the downloads that the host waits for before the next frame."""
        return self.gpu.record(self._refs_copied[number % FRAMES_ON_DEVICE], self.streams[D2H])

    def end_copies(self, number: int) -> None:
        """After the last operation: later frames wait for it by the events that this records."""
        gpu, ends = self.gpu, self._frame_ends[number % FRAMES_ON_DEVICE]
        for name in (MAIN, H2D):
            gpu.record(ends[name], self.streams[name])
            gpu.wait(self.streams[D2H], ends[name])
        gpu.record(ends[D2H], self.streams[D2H])

    def end(self, downloaded: Event) -> tuple[Event, Timed]:
        """After that. Returns `downloaded`, recorded after all downloads, and the timed operations."""
        self.gpu.record(downloaded, self.streams[D2H])
        timed, self._timed = Timed(self._clock.take(), self._timed, self._clock.keeps), []
        self.unread = self.unread or timed.is_kept
        return downloaded, timed

    def uploaded(self, number: int) -> Event:
        """The event after the last upload of a frame."""
        return self._frame_ends[number % FRAMES_ON_DEVICE][H2D]

    def seconds(self, timed: Timed) -> list[tuple[Op, float]]:
        """Seconds of timed operations that have ended."""
        spans, ops, is_kept = timed
        timed_ops = [(op, self.gpu.seconds(span.before, span.after)) for op, span in zip(ops, spans)]
        if is_kept:
            self.unread = False
        elif self.traced:
            self._clock.resolve(spans)
        else:
            self._clock.free += [event for span in spans for event in (span.before, span.after)]
        return timed_ops

    # ---- frames that are already on the GPU
    def import_device_frame(self, source: DeviceFrame, state: State) -> None:
        """See CudaExecutor.import_device_frame."""
        gpu, up = self.gpu, self.streams[H2D]
        self.begin_read(up, source)
        STAGES[source.stage].launch({**state, **self.load_from_gpu(source.pointers)}, (), up)
        loaded = gpu.record(self._loaded, up)
        for name in (MAIN, D2H):
            gpu.wait(self.streams[name], loaded)
        self.end_read(up, source, loaded)
