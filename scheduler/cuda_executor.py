"""Runs whole frames on one GPU: the coding loop on one stream, stages outside the loop on a second, copies on two more.

Nothing is allocated after the first frames, and the host waits only for the results of a frame (`download_results`).
Arrays of `frames_on_device` frames lie on the GPU: one frame is uploaded and one downloaded while a third is in the loop.
The arrays of a frame are reused after its download.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ..cuda_src.runtime.idle import keep
from ..cuda_src.runtime.recording import HostBuffers, Recording
from .executor import Step
from .gpu_memory import GpuMemory
from .stages import CUDA, D2H, EVEN, FRAME, H2D, MAIN, ROWS, SIDE, SLICES, STAGES, TABLE, TICKETS, Stage, deferred_stages
from .threads.copy_kernels import READY
from .threads.lazy_task import LazyTask, Task
from .trace import GpuClock, Trace

_NOT_TIMED = nullcontext()
MOST_RECORDINGS = 1024
OFTEN = 4  # replays of a recording before its kernel launches are fused into CUDA graphs
LAST = ("extend_luma", "interpolate")  # last stages of a frame, on MAIN and on SIDE
WAITED_FOR = {*LAST, *(name for stage in TABLE for name in stage.after.split())}
Pairs = Iterable[tuple[np.ndarray, DeviceArray]]  # arrays of the host and of the GPU


class CudaExecutor(GpuMemory):
    """See Executor. The GPU writes the bits of a frame; the host finishes them when it asks for the result."""

    frames_on_device, deferred, by_rows = 3, deferred_stages(CUDA), False

    def __init__(
        self, gpu: Device, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None, serial: bool = False,
        lists: int = 1,
    ) -> None:  # fmt: skip
        """serial: everything on one stream, so that the host thread issues fewer event calls; lists: see GpuMemory."""
        super().__init__(gpu, lists)
        self.serial = serial
        rows, macroblocks = (0, n_rows), (0, slices[-1][1])
        self._parts: dict[str, tuple[int, ...]] = {
            ROWS: rows, EVEN: rows, TICKETS: rows, SLICES: macroblocks, FRAME: (),
        }  # fmt: skip
        with gpu:
            first = gpu.stream()
            self.streams = {
                name: first if self.serial else gpu.stream() for name in (MAIN, SIDE, H2D, D2H)
            }
            self._ended = {name: gpu.event() for name in WAITED_FOR}
            self._uploaded, self._downloaded = ([gpu.event() for _ in range(self.frames_on_device)] for _ in range(2))
            self._waits: set[tuple[str, str]] = set()  # of this run: (stream, stage) that already have a wait
            self._clock = GpuClock(gpu, trace, self.streams[MAIN]) if trace is not None and trace.gpu else None
            self._number = 0  # of the current frame
            self._download_events: dict[Hashable, Any] = {}  # download events that the host waits for, by slot
            self._host_buffers: dict[Hashable, HostBuffers] = {}
            self._recordings: dict[Any, Recording] = {}
            for event in (*self._ended.values(), *self._uploaded, *self._downloaded):
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
        self, number: int, pairs: Pairs, step: Step, state: Mapping[str, Any], upload_fence: np.ndarray | None = None,
        later: Pairs = (),
    ) -> None:  # fmt: skip
        """Start frame `number` while the frame before is in the loop.

        pairs: (host array, GPU array) to copy; step: converts the uploaded samples to planes; upload_fence: the copies start
        once it is READY (scheduler/threads/copy_kernels.py); later: pairs to copy after the conversion.
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
        for host, device_array in later:
            device_array.put(host, upload)
        self._start_when_uploaded(number)

    def _start_when_uploaded(self, number: int) -> None:
        """Make MAIN wait for this frame's upload and for the download of frame `number` - 2, whose slot it may reuse.

        The other streams wait for MAIN.
        """
        gpu, main, uploaded = self.gpu, self.streams[MAIN], self._uploaded[number % self.frames_on_device]
        gpu.record(uploaded, self.streams[H2D])
        for event in (uploaded, self._downloaded[(number - 2) % self.frames_on_device]):
            gpu.wait(main, event)

    def import_device_frame(
        self, number: int, stage: str, pointers: Mapping[str, int], pairs: Pairs,
        order: tuple[int | None, int | None, bool], state: Mapping[str, Any], later: Pairs = (),
    ) -> None:  # fmt: skip
        """As `upload_frame`, for a frame that is already on the GPU.

        pairs: (host array, GPU array) to copy; order: (stream to be ordered after, stream that waits until the frame is read,
        each None for none; whether the host waits until then); later: see upload_frame.
        """
        after, before, host_waits = order
        gpu, k, upload = self.gpu, number % self.frames_on_device, self.streams[H2D]
        self._number = number
        gpu.wait(upload, self._downloaded[k])
        if after is not None:
            self.foreign().after(upload, after)
        for host, device_array in pairs:
            device_array.put(host, upload)
        self.run([((stage,), self.load_from_gpu(pointers))], state, {})
        for host, device_array in later:
            device_array.put(host, upload)
        self._start_when_uploaded(number)
        if host_waits:
            gpu.synchronize(self._uploaded[k])
        if before is not None:
            self.foreign().before(upload, before)

    def run(self, steps: Sequence[Step], state: Mapping[str, Any], seconds: dict[str, float]) -> None:
        """Start steps over the whole frame, on their streams; see Executor."""
        self._waits.clear()
        for names, more in steps:
            for name in names:
                self._start(STAGES[name], {**state, **more} if more else state)

    def _start(self, stage: Stage, state: Mapping[str, Any]) -> None:
        gpu, stream = self.gpu, self.streams[stage.stream]
        self._wait_for_stages(stage.stream, stage.after.split())
        with self._span(stage.stream, stage.name):
            stage.launch(state, self._parts[stage.split], stream)
        if stage.name in WAITED_FOR:
            gpu.record(self._ended[stage.name], stream)
            self._waits = {wait for wait in self._waits if wait[1] != stage.name}

    def _wait_for_stages(self, track: str, stages: Iterable[str]) -> None:
        """Make a stream wait for the end of these stages, once a run."""
        for name in stages:
            if (track, name) not in self._waits:
                self.gpu.wait(self.streams[track], self._ended[name])
                self._waits.add((track, name))

    def download_results(self, number: int, pairs: Iterable[tuple[DeviceArray, np.ndarray]], slot: Hashable) -> None:
        """See Executor: start the download, which runs while the next frame is in the loop."""
        gpu, k, download = self.gpu, number % self.frames_on_device, self.streams[D2H]
        self._wait_for_stages(D2H, LAST)
        with self._span(D2H, "download"):
            for device_array, host in pairs:
                device_array.get(host, download)
        gpu.record(self._downloaded[k], download)
        gpu.record(self._event(slot), download)

    def _event(self, slot: Hashable) -> Any:
        """The download event of a slot."""
        if slot not in self._download_events:
            self._download_events[slot] = self.gpu.event()
        return self._download_events[slot]

    def replay(self, key: Hashable, slot: Hashable, buffers: Callable[[], Sequence[np.ndarray]]) -> bool:
        """Replay the recording with this key on the host buffers of a slot; False if there is none, or frames are timed.

        key: equal for frames with the same arrays on the GPU and the same numbers; buffers: returns those of the slot,
        always in the same order.
        """
        if self._clock is not None:
            return False
        if slot not in self._host_buffers:
            self._host_buffers[slot] = HostBuffers(self._event(slot), *buffers())
        recording = self._recordings.get(key)
        if recording is None:
            return False
        recording.uses += 1
        recording.rebind(self._host_buffers[slot])
        if recording.uses == OFTEN:
            self.gpu.fuse_into_graphs(recording)
        self.gpu.replay(recording)
        return True

    @contextmanager
    def record(self, key: Hashable, slot: Hashable) -> Iterator[None]:
        """Around everything from `upload_frame` to `download_results`: record it for `replay`, unless frames are timed."""
        if self._clock is not None:
            yield
            return
        with self.gpu.record_calls(self._host_buffers[slot]) as recording:
            yield
        if len(self._recordings) >= MOST_RECORDINGS:
            self._recordings.clear()
        self._recordings[key] = recording

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

    def submit(self, ready: "Download", function: Callable[..., Any], *args: Any) -> LazyTask:
        """See Executor: the task runs in the thread that asks for its result."""
        return LazyTask(ready.is_done, function, *args)

    def result(self, future: Task) -> Any:
        """See Executor."""
        return future.result()

    def finish(self) -> None:
        """See GpuMemory. Recordings are dropped, because they hold kernels of modules that are unloaded."""
        super().finish()
        self._recordings.clear()
        self._host_buffers.clear()

    def close(self, keep_host: bool = False) -> None:
        """See GpuMemory. The GPU is kept for the next encoder, unless host arrays stay in use."""
        if keep_host:
            super().close(keep_host)
            return
        self.finish()
        self._constants.clear()
        keep(self.gpu)


class Download:
    """Waits for the download of a frame."""

    def __init__(self, gpu: Device, event: Any, clock: GpuClock | None) -> None:
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
            with self._gpu:
                self._over = self._gpu.done(self._event)
            return self._over
        except GpuLost:
            return True
