"""Runs whole frames on one GPU: the coding loop on one stream, stages outside the loop on a second, copies on two more.

Nothing is allocated after the first frames, and the host waits only for the results of a frame (`download_results`).
Arrays of `frames_on_device` frames lie on the GPU: one frame is uploaded and one downloaded while a third is in the loop, and
one more in the loop of each stream for B frames; `run_ahead` more wait there, so that P frames need not wait for B frames.
The arrays of a frame are reused after its download.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, TypeVar

import numpy as np

from ..cuda_src.runtime.array import Event, handle
from ..cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ..cuda_src.runtime.idle import keep
from ..cuda_src.runtime.recording import HostBuffers, Recording
from .bundles import State
from .executor import Step
from .frames.device_frame import DeviceFrame, SourceHandles
from .frames.run_ahead import NONE, RunAhead
from .frames.stream_schedule import FrameWaits
from .gpu_memory import GpuMemory
from .stages import (
    CUDA,
    D2H,
    EVEN,
    FRAME,
    H2D,
    MAIN,
    ROWS,
    SIDE,
    SLICE_TICKETS,
    SLICES,
    STAGES,
    TABLE,
    TICKETS,
    Stage,
    deferred_stages,
)
from .threads.copy_kernels import READY
from .threads.lazy_task import LazyTask, Task
from .trace import GpuClock, Trace

Result = TypeVar("Result")
_NOT_TIMED = nullcontext()
B_FRAME_STREAMS = 3  # streams for B frames, each with a workspace; 0: none
EVENTS = 5  # of a frame, which its host buffers follow
LAST = ("extend_luma", "interpolate")  # last stages of a frame, on MAIN and on SIDE
WAITED_FOR = {*LAST, *(name for stage in TABLE for name in stage.after.split())}
Pairs = Iterable[tuple[np.ndarray, DeviceArray]]  # arrays of the host and of the GPU


class CudaExecutor(GpuMemory):
    """See Executor. The GPU writes the bits of a frame; the host finishes them when it asks for the result."""

    frames_on_device, deferred, by_rows = 3, deferred_stages(CUDA), False

    def __init__(
        self, gpu: Device, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None, serial: bool = False,
        has_b_frames: bool = False, parallel_b_frames: int | None = None, ahead: RunAhead = NONE,
    ) -> None:  # fmt: skip
        """serial: everything on one stream, so that the host thread issues fewer event calls; has_b_frames: see GpuMemory.

        parallel_b_frames: in place of B_FRAME_STREAMS, where there are B frames; ahead: the bounds of `run_ahead`.
        """
        super().__init__(gpu, has_b_frames)
        self.serial = serial
        self.parallel_b_frames = (
            0 if serial or not has_b_frames else B_FRAME_STREAMS if parallel_b_frames is None else parallel_b_frames
        )
        self.run_ahead = ahead.frames(self.parallel_b_frames, gpu.free_bytes()) if self.parallel_b_frames else 0
        self.frames_on_device += self.parallel_b_frames + self.run_ahead
        self._main = MAIN  # the stream of the coding loop of this frame
        mains = [MAIN, *(f"{MAIN} {k}" for k in range(1, 1 + self.parallel_b_frames))]
        self._mains = mains
        rows, macroblocks = (0, n_rows), (0, slices[-1][1])
        self._span_by_split: dict[str, tuple[int, ...]] = {
            ROWS: rows, EVEN: rows, TICKETS: rows, SLICES: macroblocks, SLICE_TICKETS: macroblocks, FRAME: (),
        }  # fmt: skip
        with gpu:
            first = gpu.stream()
            self.streams = {name: first if self.serial else gpu.stream() for name in (*mains, SIDE, H2D, D2H)}
            self._ended = {
                (track, name): gpu.event(wakes_host=False)
                for name in sorted(WAITED_FOR)
                for track in _tracks(STAGES[name], mains)
            }
            self._uploaded, self._coded, self._downloaded = (
                [gpu.event(wakes_host=False) for _ in range(self.frames_on_device)] for _ in range(3)
            )
            self._waits: set[tuple[str, str]] = set()  # of this run: (stream, stage) that already have a wait
            self._clock = GpuClock(gpu, trace, self.streams[MAIN]) if trace is not None and trace.gpu else None
            self._number = 0  # of the current frame
            self._download_events: dict[Hashable, Event] = {}  # download events that the host waits for, by slot
            self._host_buffers: dict[tuple[Hashable, int], HostBuffers] = {}  # by slot, and index of the frame's events
            self._recordings: dict[Hashable, Recording] = {}  # by key
            for event in (*self._ended.values(), *self._uploaded, *self._coded, *self._downloaded):
                gpu.record(event, self.streams[MAIN])  # the first frames wait for events that no frame has recorded

    @property
    def upload_fences(self) -> bool:
        """Whether `upload_frame` accepts an upload fence."""
        with self.gpu:
            return self.gpu.upload_fences

    def at_work(self) -> Device:
        """See Executor: makes the CUDA context current in this thread."""
        return self.gpu

    def upload_frame(
        self, number: int, pairs: Pairs, step: Step, state: State, upload_fence: np.ndarray | None = None
    ) -> None:
        """Start frame `number` while the frame before is in the loop.

        pairs: (host array, GPU array) to copy; step: converts the uploaded samples to planes; upload_fence: the copies start
        once it is READY (scheduler/threads/copy_kernels.py).
        """
        gpu, k, upload = self.gpu, number % self.frames_on_device, self.streams[H2D]
        self._number = number
        gpu.wait(upload, self._downloaded[k])
        if upload_fence is not None:
            gpu.wait_value(upload, upload_fence, READY)
        with self._span(H2D, "upload"):
            for host, device_array in pairs:
                device_array.put(host, upload)
        self.run([step], state, {})
        self._start_when_uploaded(number)

    def _start_when_uploaded(self, number: int) -> None:
        """Make the frame's loop wait for its upload.

        With one stream for all frames it waits, too, for the download of frame `number` - 2, whose slot it may reuse; on a
        stream for B frames, for all earlier frames of MAIN. The other streams wait for the frame's loop.
        """
        gpu, main, uploaded = self.gpu, self.streams[self._main], self._uploaded[number % self.frames_on_device]
        gpu.record(uploaded, self.streams[H2D])
        gpu.wait(main, uploaded)
        if not self.parallel_b_frames:
            gpu.wait(main, self._downloaded[(number - 2) % self.frames_on_device])
        elif self._main != MAIN:
            gpu.wait(main, self._ended[SIDE, "interpolate"])

    def enter(self, stream: int, waits: FrameWaits) -> None:
        """The next frame takes this stream, and its loop waits for earlier frames; see StreamSchedule."""
        self._main = self._mains[stream]
        for events, numbers in ((self._coded, waits.coded), (self._downloaded, waits.downloaded)):
            for number in numbers:
                self.gpu.wait(self.streams[self._main], events[number % self.frames_on_device])

    def fill(self, array: DeviceArray, value: int) -> None:
        """See GpuMemory."""
        array.fill(value & 255, self.streams[self._main])

    def _track(self, stage: Stage) -> str:
        """The name of a stage's stream in this frame: B frames need no second one, since others run beside them."""
        return self._main if stage.stream == MAIN or (stage.stream == SIDE and self._main != MAIN) else stage.stream

    def import_device_frame(self, number: int, source: DeviceFrame, pairs: Pairs, state: State) -> None:
        """As `upload_frame`, for a frame that is already on the GPU. pairs: (host array, GPU array) to copy."""
        gpu, k, upload = self.gpu, number % self.frames_on_device, self.streams[H2D]
        self._number = number
        gpu.wait(upload, self._downloaded[k])
        self.begin_read(upload, source)
        for host, device_array in pairs:
            device_array.put(host, upload)
        self.run([((source.stage,), self.load_from_gpu(source.pointers))], state, {})
        self._start_when_uploaded(number)
        self.end_read(upload, source, self._uploaded[k])

    def import_gpu_source(self, number: int, handles: SourceHandles, pairs: Pairs, state: State) -> None:
        """As `import_device_frame`, for a frame in a buffer, of whose distances the state knows: it may be recorded."""
        gpu, upload = self.gpu, handle(self.streams[H2D])
        gpu.call("wait", (upload, handles.measured, 0), (None, handles.measured))
        self.upload_frame(number, pairs, (("load_i420",), self.load_from_gpu(handles.pointers)), state)
        gpu.call("record", (handles.read, upload), (handles.read,))

    def run(self, steps: Sequence[Step], state: State, seconds: dict[str, float]) -> None:
        """Start steps over the whole frame, on their streams; see Executor."""
        self._waits.clear()
        for names, more in steps:
            for name in names:
                self._start(STAGES[name], {**state, **more} if more else state)

    def _start(self, stage: Stage, state: State) -> None:
        gpu, track = self.gpu, self._track(stage)
        stream = self.streams[track]
        self._wait_for_stages(track, stage.after.split())
        with self._span(track, stage.name):
            stage.launch(state, self._span_by_split[stage.split], stream)
        if stage.name in WAITED_FOR:
            gpu.record(self._ended[track, stage.name], stream)
            self._waits = {wait for wait in self._waits if wait[1] != stage.name}

    def _wait_for_stages(self, track: str, stages: Iterable[str]) -> None:
        """Make a stream wait for the end of these stages, once a run."""
        for name in stages:
            other = self._track(STAGES[name])
            if other != track and (track, name) not in self._waits:
                self.gpu.wait(self.streams[track], self._ended[other, name])
                self._waits.add((track, name))

    def download_results(self, number: int, pairs: Iterable[tuple[DeviceArray, np.ndarray]], slot: Hashable) -> None:
        """See Executor: start the download, which runs while the next frame is in the loop."""
        gpu, k, download = self.gpu, number % self.frames_on_device, self.streams[D2H]
        if self._main != MAIN:
            gpu.record(self._coded[k], self.streams[self._main])
        self._wait_for_stages(D2H, LAST)
        with self._span(D2H, "download"):
            for device_array, host in pairs:
                device_array.get(host, download)
        gpu.record(self._downloaded[k], download)
        gpu.record(self._event(slot), download)

    def _event(self, slot: Hashable) -> Event:
        """The download event of a slot."""
        if slot not in self._download_events:
            self._download_events[slot] = self.gpu.event()
        return self._download_events[slot]

    @property
    def records(self) -> bool:
        """Whether frames are recorded: unless they are timed."""
        return self._clock is None

    def replay(self, recording_key: Hashable, in_flight: "FrameInFlight", addresses: Sequence[int]) -> bool:
        """Replay the recording of this key; False if there is none.

        recording_key: equal for frames with the same calls; addresses: those of the arrays that placeholders are for
        (recording.py).
        """
        recording = self._recordings.get(recording_key)
        if recording is None:
            return False
        recording.rebind(self._buffers_of(in_flight), addresses)
        self.gpu.replay(recording)
        return True

    def _buffers_of(self, in_flight: "FrameInFlight") -> HostBuffers:
        """The host buffers of a frame with its events."""
        number, slot, upload, buffers = in_flight
        k = number % self.frames_on_device
        host_buffers = self._host_buffers.get((slot, k))
        if host_buffers is None:
            before = self._downloaded[(number - 2) % self.frames_on_device]
            events = self._event(slot), self._uploaded[k], self._coded[k], self._downloaded[k], before
            assert len(events) == EVENTS
            host_buffers = HostBuffers(*events, *buffers())
            self._host_buffers[slot, k] = host_buffers
        return host_buffers.exchanged(EVENTS, upload)

    @contextmanager
    def record(self, recording_key: Hashable, in_flight: "FrameInFlight", addresses: tuple[int, ...]) -> Iterator[None]:
        """Around everything from `upload_frame` to `download_results`: record it for `replay`, and do it at the end."""
        with self.gpu.record_calls(self._buffers_of(in_flight), addresses) as recording:
            yield
        self._recordings[recording_key] = recording

    def drop_recordings(self) -> None:
        """Record frames anew."""
        for recording in self._recordings.values():
            recording.clear()
        self._recordings.clear()
        self._host_buffers.clear()

    def download_of(self, slot: Hashable) -> "Download":
        """See Executor."""
        return Download(self.gpu, self._download_events[slot], self._clock)

    @contextmanager
    def _timed(self, clock: GpuClock, track: str, name: str) -> Iterator[None]:
        before = clock.begin(self.streams[track])
        yield
        clock.end(track, name, before, self.streams[track], self._number)

    def _span(self, track: str, name: str) -> AbstractContextManager[None]:
        """Around the calls of one span of a stream; timed if there is a trace."""
        return self._timed(self._clock, track, name) if self._clock else _NOT_TIMED

    def submit(self, ready: Callable[[], None], function: Callable[..., Result], *args: object) -> LazyTask[Result]:
        """See Executor: the task runs in the thread that asks for its result."""
        assert isinstance(ready, Download)
        return LazyTask(ready.is_done, function, *args)

    def result(self, task: Task[Result]) -> Result:
        """See Executor."""
        return task.result()

    def finish(self) -> None:
        """See GpuMemory. Recordings are dropped, because they hold kernels of modules that are unloaded."""
        super().finish()
        self.drop_recordings()

    def pause(self) -> None:
        """Wait for all work; GpuLost. A later encoder may go on."""
        with self.gpu:
            for stream in set(self.streams.values()):
                self.gpu.synchronize(stream)

    def close(self, keep_host: bool = False) -> None:
        """See GpuMemory. The GPU is kept for the next encoder, unless host arrays stay in use."""
        if keep_host:
            super().close(keep_host)
            return
        self.finish()
        self._constants.clear()
        keep(self.gpu)


def _tracks(stage: Stage, mains: list[str]) -> list[str]:
    """The streams that a stage may run on. mains: those of the coding loop."""
    return mains if stage.stream == MAIN else [SIDE, *mains[1:]] if stage.stream == SIDE else [stage.stream]


class FrameInFlight(NamedTuple):
    """Which of the arrays and events of an executor and of its host frames a frame has."""

    number: int  # of the frame
    slot: Hashable  # see `download_of`
    upload: np.ndarray  # the first of the host buffers, which may be another one in a later frame of the slot
    buffers: Callable[[], Sequence[np.ndarray]]  # returns the host buffers of the slot, always in the same order


class Download:
    """Waits for the download of a frame."""

    def __init__(self, gpu: Device, event: Event, clock: GpuClock | None) -> None:
        self._gpu, self._event, self._clock = gpu, event, clock
        self._spans = clock.take() if clock else []
        self._over = False  # seen to be over: the driver need not be asked again

    def __call__(self) -> None:
        if self._over and self._clock is None:
            return
        with self._gpu:
            self._gpu.synchronize(self._event)
            if self._clock:
                self._clock.resolve(self._spans)

    def is_done(self) -> bool:
        """Whether the download has ended, or the GPU is lost."""
        try:
            self._over = self._gpu.done(self._event)
            return self._over
        except GpuLost:
            return True
