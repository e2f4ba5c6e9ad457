"""Encodes frames on a device, several in flight: `encode(spec, frame)` returns a handle. The CPU replaces a lost GPU."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from ..check import TwinDiffers
from ..coding_settings import CodingSettings
from ..devices import DeviceMemoryError, DeviceUnavailable, GpuLost, make_executor
from ..executor import Executor
from ..frame_spec import FrameSpec
from ..machine_settings import MachineSettings
from ..threads.lazy_task import Task
from ..threads.watchdog import Stuck
from ..trace import HOST, Trace
from .device_frame import DeviceFrame
from .frame import Frame, HostFrame
from .loop import FrameLoop, Loop
from .ring import FrameRing, in_main_stream
from .run_ahead import RunAhead, frame_bytes

if TYPE_CHECKING:
    from ..cuda_executor import CudaExecutor
    from ..hybrid.executor import HybridExecutor
    from ..hybrid.start import Hybrid
    from .gpu_sources import GpuSourcePool

Result = TypeVar("Result")  # of a frame


class Handle(Generic[Result]):
    """A frame in flight. finish(frame) makes its result of the frame's arrays, in any thread."""

    __slots__ = ("_owner", "finish", "frame", "ready", "task")

    def __init__(self, owner: "FrameExecutor[Result]", frame: Frame, finish: Callable[[Frame], Result]) -> None:
        self._owner, self.frame, self.finish = owner, frame, finish
        self.ready: Callable[[], None] | None = None
        self.task: Task[Result] | None = None  # None: its loop has not run

    def done(self) -> bool:
        """Whether the result can be had without waiting for other work."""
        return self.task is not None and self.task.done()

    def result(self) -> Result:
        """The result; blocks until it exists. After an exception that is none of the device, it can be asked for again."""
        return self._owner.result(self)


class FrameExecutor(Generic[Result]):
    """The device of an encode, with the frames in flight.

    Below it lie uploads, recordings, downloads and the recovery from a lost GPU. An encode that chose its device itself
    continues on the CPU; GpuLost, DeviceUnavailable or DeviceMemoryError if the user named the device. TwinDiffers: check.py;
    Stuck: a device exceeded the time limit.
    """

    def __init__(
        self, settings: CodingSettings, machine: MachineSettings, keep_decoded: bool, most_in_flight: int,
        warn: Callable[[str], None], trace: Trace | None = None,
    ) -> None:  # fmt: skip
        """keep_decoded: `frame.decoded` is wanted; warn: called with a sentence when the device changes."""
        self.settings, self.machine, self.warn, self.trace = settings, machine, warn, trace
        self._keep_decoded, self._most_in_flight = keep_decoded, most_in_flight
        self.in_flight: deque[Handle[Result]] = deque()
        self._gpu_sources: GpuSourcePool | None = None
        self._is_whole = True  # no exception has cut the loop of a frame
        self.loop, self.ring = self._take() or self._start()

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU, or has one."""
        return self.loop.executor.frames_on_device > 0

    @property
    def multiprocessors(self) -> int:
        """Of the GPU that does all stages; 0: none does."""
        executor = self.loop.executor
        return 0 if isinstance(executor, Executor) or executor.by_rows else cast("CudaExecutor", executor).gpu.multiprocessors

    @property
    def threads_of_cpu(self) -> Executor | None:
        """The executor of the CPU, if it has threads for tasks while frames are coded."""
        executor = self.loop.executor
        return executor if isinstance(executor, Executor) and executor.has_threads else None

    # ---- frames
    def encode(self, spec: FrameSpec, frame: Frame, finish: Callable[[Frame], Result]) -> Handle[Result]:
        """Start a frame whose source is loaded (`ring.next`), in coding order. Its handle is the last of `in_flight`, from
        which the caller removes it when it has the result.
        """
        frame.spec = spec
        self.ring.enter(frame)
        handle = Handle(self, frame, finish)
        try:
            self._run(handle)
            self.in_flight.append(handle)
        except (GpuLost, DeviceMemoryError) as lost:
            self._continue_on_the_cpu(lost, handle)
        return handle

    def result(self, handle: Handle[Result]) -> Result:
        """See Handle."""
        assert handle.task is not None
        try:
            return self.loop.executor.result(handle.task)
        except (GpuLost, DeviceMemoryError) as lost:
            self._continue_on_the_cpu(lost)
            return self.result(handle)
        except TwinDiffers as error:
            raise TwinDiffers(f"frame {handle.frame.spec.display_index}: {error}") from None
        except Stuck:
            raise
        except Exception:  # possibly transient: a timeout of a signal handler, in this thread or within the task
            if handle.task.done():  # else it goes on: a second one beside it would write the same arrays
                self._submit(handle)
            raise

    def take_back(self) -> None:
        """Undo the last frame, whose result is there: the same Frame may enter again with another spec, and no other one.

        Without effect if a failure has removed it.
        """
        if self.in_flight:
            self.in_flight.pop()
            self.ring.count -= 1
            self.loop.rewind()

    def read_ahead(self) -> bool:
        """Whether frames may be read into the ring ahead; see FrameRing.read_ahead."""
        try:
            return self.ring.read_ahead()
        except (DeviceMemoryError, GpuLost):  # a lost GPU is reported with the first frame
            return False

    def check_device(self, source: DeviceFrame, check: Callable[[str, int | None, int], None]) -> None:
        """Call check(name, GPU of the array or None, GPU of this encode) for the arrays of a frame on a GPU: RGB is one."""
        if source.ordinal == self.machine.ordinal and self.machine.device == "cuda" and self.on_gpu:
            return
        pointers = list(source.pointers.items())[: 1 if source.is_rgb else None]
        for name, pointer in pointers if source.first else ():
            check(name.removeprefix("input_"), *self.loop.executor.ordinal_of(pointer))

    def hold(self, source: DeviceFrame) -> DeviceFrame:
        """A frame on the GPU (`check_device`) copied to a buffer there; GpuLost, DeviceMemoryError. See GpuSourcePool."""
        if self._gpu_sources is None:
            from .gpu_sources import GpuSourcePool

            if self.loop.executor.by_rows:
                worker = cast("HybridExecutor", self.loop.executor).gpu_worker
                assert worker is not None
                self._gpu_sources = GpuSourcePool(worker, self.settings)
            else:
                executor = cast("CudaExecutor", self.loop.executor)
                self._gpu_sources = GpuSourcePool(executor, self.settings, executor.records)
        self._is_whole = False
        buffered = self._gpu_sources.hold(source)
        self._is_whole = True
        return buffered

    def release(self, source: DeviceFrame) -> None:
        """A frame that lay in a buffer on the GPU has entered."""
        assert self._gpu_sources is not None and source.buffered is not None
        self._gpu_sources.release(source.buffered)

    def compile(self, spec: FrameSpec, stages: Sequence[str]) -> None:
        """Run stages on an empty frame to compile their kernels; spec: with one reference."""
        assert isinstance(self.loop, Loop)
        frame = self.ring.next()
        frame.spec = spec
        self.loop.compile(frame, stages)

    def close(self) -> None:
        """End the threads, and release memory or keep it for a later encoder."""
        self.ring.close()
        if not self._keep():
            self.loop.executor.close()

    @property
    def _limits(self) -> tuple[int, int]:
        """What a ring depends on besides the settings."""
        return int(self._keep_decoded), self._most_in_flight

    def _run(self, handle: Handle[Result]) -> None:
        """Run the loop of a frame; its result is made when the arrays are on the host."""
        frame = handle.frame
        frame.stage_seconds = {}
        start = time.perf_counter()
        self._is_whole = False
        try:
            handle.ready = self.loop.run(frame)
            self._is_whole = True
        except TwinDiffers as error:
            raise TwinDiffers(f"frame {frame.spec.display_index}: {error}") from None
        finally:
            frame.complete()  # end of the threads' copy of the source: the caller may change it now
        if self.trace is not None:
            self.trace.add(HOST, "loop", "loop", start, time.perf_counter() - start, frame.spec.display_index)
        self._submit(handle)

    def _submit(self, handle: Handle[Result]) -> None:
        assert handle.ready is not None
        handle.task = self.loop.executor.submit(handle.ready, _finish, handle.ready, handle.frame, handle.finish)

    # ---- devices
    def _take(self) -> tuple[FrameLoop, FrameRing] | None:
        """Those of an earlier encoder with equal settings, on a GPU."""
        if self.machine.device != "cuda" or self.trace is not None:
            return None
        from .kept_loop import take_loop

        kept = take_loop(self.settings, self.machine, *self._limits)
        if kept is None:
            return None
        self._gpu_sources = kept.sources
        return kept.loop, kept.ring

    def _keep(self) -> bool:
        """Keep them for a later encoder; False if they cannot be kept."""
        if self.machine.device != "cuda" or not self._is_whole:
            return False
        from .kept_loop import keep_loop

        return keep_loop(self.loop, self.ring, self._gpu_sources, self.settings, self.machine, *self._limits)

    def _start(self) -> tuple[FrameLoop, FrameRing]:
        """The loop on the configured device, or on the CPU if that device fails and was not named by the user."""
        loop = None
        try:
            loop = self._make_loop(self.machine.device)
            return loop, self._make_ring(loop)
        except (DeviceUnavailable, DeviceMemoryError, GpuLost) as error:
            if loop is not None:
                loop.executor.close()
            if not self.machine.may_change_device:
                raise
            self.warn(f"{error}; encoding on the CPU")
        loop = self._make_loop("cpu")
        return loop, self._make_ring(loop)

    def _make_ring(self, loop: FrameLoop) -> FrameRing:
        return FrameRing(self.settings, self.machine, loop, self._keep_decoded, self._most_in_flight)

    def _make_loop(self, device: str) -> FrameLoop:
        settings, machine = self.settings, self.machine
        hybrid = self._hybrid() if device == "hybrid" else None
        threads = machine.stage_threads(settings) if device == "cpu" else machine.threads
        # else no frame beside another
        has_b_frames = settings.has_b_frames and not (device == "cpu" and machine.waits_for_packets)
        executor = make_executor(
            device,
            threads,
            settings.mb_height,
            list(settings.slice_ranges),
            self.trace,
            machine.ordinal,
            hybrid,
            machine.choices,
            has_b_frames,
            machine.team(settings),
            self._run_ahead() if device != "cpu" else None,
        )
        try:
            if executor.by_rows:
                from ..hybrid.loop import HybridLoop

                return HybridLoop(settings, cast("HybridExecutor", executor))
            if executor.frames_on_device:
                from .cuda_loop import CudaLoop

                return CudaLoop(settings, cast("CudaExecutor", executor))
            return Loop(settings, cast(Executor, executor))
        except BaseException:
            executor.close()
            raise

    def _run_ahead(self) -> RunAhead:
        """What bounds the frames that run ahead on a GPU."""
        machine, settings = self.machine, self.settings
        most = 0 if machine.waits_for_packets else self._most_in_flight - in_main_stream(machine)
        return RunAhead(most, frame_bytes(settings), machine.gops)

    def _hybrid(self) -> "Hybrid":
        """The input of the plan of device "hybrid"."""
        from ..hybrid.route import FrameTraits
        from ..hybrid.start import Hybrid

        settings, tuning = self.settings, self.machine.tuning
        models, pins = (tuning.models, tuning.pins) if tuning is not None else (None, {})
        tools = settings.me, settings.subme, settings.cabac
        frame_traits = FrameTraits.typical(settings.size, settings.ref, *tools, settings.bframes)
        return Hybrid(frame_traits, self.machine.split, self.warn, models, pins)

    def _continue_on_the_cpu(self, lost: Exception, entering: Handle[Result] | None = None) -> None:
        """Redo on the CPU the first frame whose results were not downloaded, and all later ones.

        Raises `lost` if the GPU was named by the user: frames that are finished stay in flight, the others leave.
        """
        errors = [handle.task.exception() for handle in self.in_flight if handle.task is not None]
        is_lost = [isinstance(error, (GpuLost, DeviceMemoryError)) for error in errors]
        first = is_lost.index(True) if True in is_lost else len(is_lost)
        to_redo = [*list(self.in_flight)[first:], *([entering] if entering is not None else [])]
        while len(self.in_flight) > first:
            self.in_flight.pop()
        if not self.machine.may_change_device:
            raise lost from None
        at = self._with_references(to_redo[0].frame)
        redone = [self.ring.at(index) for index in range(at.index, to_redo[0].frame.index)]  # for their reconstructions
        frames = (*redone, *(handle.frame for handle in to_redo))
        if any(isinstance(frame, HostFrame) and frame.device_source is not None for frame in frames):
            raise GpuLost(f"{lost}; source frames on it are lost too") from None
        self.warn(f"{lost}; continuing on the CPU from frame {to_redo[0].frame.spec.display_index}")
        self.loop.executor.close(keep_host=True)  # the frames of the ring stay in use
        self.loop = loop = self._make_loop("cpu")
        assert isinstance(loop, Loop)
        loop.restore(self._references_before(at), None if at.spec.is_idr else self.ring.at(at.index - 1))
        for frame in redone:
            frame.stage_seconds = {}
            loop.run(frame)()
        for handle in to_redo:
            self._run(handle)
            self.in_flight.append(handle)
            assert handle.task is not None
            handle.task.exception()  # wait: more may be in flight than this loop has slots for
        if loop.executor.parallel_b_frames:
            self.ring.in_flight = min(self.ring.in_flight, loop.executor.parallel_b_frames)

    def _with_references(self, frame: Frame) -> Frame:
        """The last frame, up to `frame`, whose references were downloaded."""
        while not all(reference.keep_reconstruction for reference in self._references_before(frame)):
            frame = self.ring.at(frame.index - 1)
        return frame

    def _references_before(self, frame: Frame) -> list[Frame]:
        """The references when `frame` begins, latest first."""
        if frame.spec.is_idr:
            return []
        references, first = self.ring.at(frame.index - 1).spec.references_after, frame.index - frame.spec.coding_index
        return [self.ring.at(first + index) for index in references]


def _finish(ready: Callable[[], None], frame: Frame, finish: Callable[[Frame], Result]) -> Result:
    """Wait for the arrays of a frame, and make its result."""
    ready()
    frame.unpack_levels()
    return finish(frame)
