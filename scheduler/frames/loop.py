"""The coding loop: the stages of a frame in the order of their data, and the state that is kept between frames."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.layout import N_WEIGHTS
from ..bundles import State
from ..coding_settings import CodingSettings
from ..executor import Executor, Step
from ..frame_spec import FrameSpec
from ..stages import ENTROPY_STAGE
from ..threads.dependent_task import DependentTask
from ..threads.lazy_task import Task
from .compiled_frames import CompiledFrames, steps_of
from .dpb import DecodedPictureBuffer
from .frame import AnyFrame, Frame, HostFrame
from .loop_arrays import ArrayMemory, Arrays, FrameBinding, PreviousFrame

if TYPE_CHECKING:
    from ..cuda_executor import CudaExecutor

OneDevice: TypeAlias = "Executor | CudaExecutor"
Result = TypeVar("Result")
BORDERS = ("extend_luma", "extend_cb", "extend_cr")


class FrameDevice(Protocol):
    """What frames in flight need of an executor: see Executor."""

    frames_on_device: int
    parallel_b_frames: int
    run_ahead: int
    by_rows: bool

    def host_zeros(self, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """A host array of zeros, for uploads and downloads."""

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """(ordinal of the device that owns a pointer or None, ordinal of this GPU)."""

    def submit(self, ready: Callable[[], None], function: Callable[..., Result], *args: object) -> Task[Result]:
        """Start a task that runs when `ready`, of the loop, would not wait."""

    def result(self, task: Task[Result]) -> Result:
        """Wait for a task and return its result."""

    def close(self, keep_host: bool = False) -> None:
        """Wait for running tasks and end the threads; keep_host: arrays of `host_zeros` stay in use."""


class FrameLoop(Protocol):
    """Runs the stages of frames, one frame at a time, from source to results and reference."""

    @property
    def executor(self) -> FrameDevice:
        """The devices."""

    def run(self, frame: Frame) -> Callable[[], None]:
        """Run all stages of a loaded frame. Returns a function that blocks until `frame` holds the results."""

    def rewind(self) -> None:
        """Be as before the last frame, which is finished; the same frame follows again."""


class FrameHistory:
    """What a loop remembers of frames for those that follow. One thread uses it: the one that calls Loop.run."""

    def __init__(self) -> None:
        self.previous: PreviousFrame | None = None  # the last frame; B frames may lie between a frame and what it continues
        self._before: PreviousFrame | None = None  # the one before it
        self._tasks_by_slot: dict[int, DependentTask] = {}  # of the last frames
        self._in_order: list[DependentTask] = []  # the last task of those that run in coding order

    def enter(self, previous: PreviousFrame) -> None:
        """A frame was started, which is the last one now."""
        self._before, self.previous = self.previous, previous

    def rewind(self) -> None:
        """Be as before the last frame."""
        self.previous = self._before

    def awaited(self, list_slots: tuple[int, ...], in_order: bool) -> list[DependentTask]:
        """The tasks that a frame with these references waits for; in_order: for the last one in coding order too."""
        tasks = [self._tasks_by_slot[slot] for slot in {*list_slots} if slot in self._tasks_by_slot]
        return [*tasks, *self._in_order] if in_order else tasks

    def add(self, task: DependentTask, slot: int, in_order: bool) -> None:
        """The task of a frame whose decoded samples come to `slot`."""
        self._tasks_by_slot[slot] = task
        if in_order:
            self._in_order = [task]


class ArraysPool:
    """Arrays for frames that run at once, each with a workspace of its own. Any thread may borrow some.

    No lock is needed: threads share one list, which `pop` and `append` change in one step each.
    """

    def __init__(self, arrays: Arrays) -> None:
        """arrays: of which the others are."""
        self._arrays = arrays
        self._idle: list[Arrays] = []

    @contextmanager
    def borrowed(self) -> Iterator[Arrays]:
        """Arrays that no other frame uses meanwhile."""
        try:
            arrays = self._idle.pop()
        except IndexError:  # all are in use
            arrays = self._arrays.with_own_workspace()
        try:
            yield arrays
        finally:
            self._idle.append(arrays)


class Loop:
    """See FrameLoop: on the threads of one CPU executor.

    `run` is for one thread. What the tasks of frames share in other threads: `arrays`, which no task changes but for the
    contents, the pool of arrays, and the compiled frames.
    """

    def __init__(
        self, settings: CodingSettings, executor: OneDevice, arrays: Arrays | None = None,
        dpb: DecodedPictureBuffer | None = None,
    ) -> None:  # fmt: skip
        """arrays, dpb: shared with a loop that alternates with this one."""
        self.settings, self.executor = settings, executor
        memory: ArrayMemory[Any] = executor
        self.arrays: Arrays[Any] = Arrays.allocate(settings, memory) if arrays is None else arrays
        n_busy = 1 + executor.parallel_b_frames + executor.frames_on_device
        self.dpb = DecodedPictureBuffer(self.arrays.slots, n_busy) if dpb is None else dpb
        # On a CPU each B frame runs on one thread, in parallel with other frames: see Executor.parallel_b_frames
        self._executor_b = (
            executor.single_threaded() if isinstance(executor, Executor) and executor.parallel_b_frames > 0 else None
        )
        self._arrays_b = ArraysPool(self.arrays)
        self._compiled_frames = CompiledFrames(settings)
        on_host = settings.slice_max_size > 0 or ENTROPY_STAGE in executor.deferred
        self.for_download = () if on_host else (ENTROPY_STAGE,)  # if this device runs it
        self.history = FrameHistory()

    def run(self, frame: Frame) -> Callable[[], None]:
        """See FrameLoop."""
        spec = frame.spec
        slot, list_slots = self.dpb.begin(spec)
        previous = self._continued(spec, list_slots)
        if self.arrays.sized_slices is not None:
            self.arrays.sized_slices.enter(frame)
        frame.write_params(self.arrays.list_numbers(spec, list_slots, previous))
        binding = FrameBinding(self.arrays, frame, frame.frame_params, slot, list_slots, previous)
        coded: AnyFrame
        ready: Callable[[], None]
        if self._executor_b is not None:
            coded, ready = frame, self._start_task(self._executor_b, frame, binding)
        else:
            with self.executor.at_work():
                coded = self._code(frame, binding)
                ready = self.executor.download_of(frame.ring_slot)
        self.history.enter(PreviousFrame.of(coded, spec.distances))
        self.dpb.end(spec, slot, list_slots)
        return ready

    def _start_task(self, executor_b: Executor, frame: Frame, binding: FrameBinding) -> DependentTask:
        """A task that codes the frame, and starts when the reference frames are coded.

        A B frame runs on one thread, beside others. All other frames, and with many threads B frames that are references,
        run in coding order, their steps shared by idle threads, and before B frames that wait.
        """
        assert isinstance(self.executor, Executor)
        in_order = not frame.spec.n_ref1 or (frame.spec.is_reference and self.executor.shares_references)
        code = partial(self._code, frame, binding) if in_order else partial(self._code_parallel, executor_b, frame, binding)
        awaited = self.history.awaited(binding.list_slots, in_order)
        ready = self.executor.after(code, awaited, urgent=in_order)
        self.history.add(ready, binding.slot, in_order)
        return ready

    def _code_parallel(self, executor_b: Executor, frame: Frame, binding: FrameBinding) -> None:
        """Do all stages in one thread, while later frames run in others, with a workspace of its own."""
        with self._arrays_b.borrowed() as arrays:
            self._code_on(executor_b, frame, binding._replace(arrays=arrays))

    def rewind(self) -> None:
        """See FrameLoop. No array has to be restored: a frame never overwrites what it reads."""
        self.dpb.rewind()
        self.history.rewind()

    def _continued(self, spec: FrameSpec, list_slots: tuple[int, ...]) -> PreviousFrame | None:
        """The frame whose motion the search continues: the last one; in streams with B frames see Arrays.continued."""
        return self.arrays.continued(spec, list_slots, self.dpb) or self.history.previous

    def _code(self, frame: Frame, binding: FrameBinding) -> AnyFrame:
        """Do, or start, all stages. Returns the frame's arrays in the executor's memory. binding: to host arrays."""
        self._code_on(self.executor, frame, binding)
        return frame

    def _code_on(self, executor: OneDevice, frame: Frame, binding: FrameBinding) -> None:
        """Do all stages on a CPU."""
        arrays = binding.arrays
        frame.levels_packed = False
        frame.samples()
        if isinstance(frame, HostFrame):
            frame.mark_levels_dirty()
        arrays.fill(frame, frame)
        if not self._compiled_frames.run(executor, frame, binding):
            executor.run(*self._steps(frame, binding), frame.stage_seconds)
            frame.write_slices = arrays.deferred_write(frame)
        executor.download_results(frame.index, self._decoded(frame, binding), frame.ring_slot)

    def _decoded(self, frame: Frame, binding: FrameBinding) -> list[tuple[Any, np.ndarray]]:
        """(source, target) arrays for the copy of the decoded frame; empty if it is not needed on the host."""
        if frame.decoded is None or not frame.keep_reconstruction:
            return []
        (luma, chroma), (to_luma, to_chroma) = binding.arrays.references.planes(binding.slot), frame.decoded
        return [(luma[0], to_luma), (chroma, to_chroma)]

    def restore(self, frames: Sequence[Frame], previous: Frame | None) -> None:
        """Continue after another loop. frames: the references, with decoded planes, latest first; previous: the last frame,
        which may be none of them.
        """
        self.dpb.restore([frame.spec for frame in frames])
        arrays, references = self.arrays, self.arrays.references
        for slot, frame in enumerate(frames):
            assert frame.decoded is not None
            (luma, chroma), (from_luma, from_chroma) = references.planes(slot), frame.decoded
            luma[0][...], chroma[...] = from_luma, from_chroma
            state = arrays.constants | arrays.decoded_state(slot)
            self.executor.run([(BORDERS, {}), (("interpolate",), {})], state, {})
            if self.settings.has_b_frames:
                self.executor.run([(("keep_motion",), {})], state | frame.arrays | references.motion(slot), {})
        self.history.previous = None if previous is None else PreviousFrame.of(previous, previous.spec.distances)

    def _stages(self, executor: OneDevice, frame: Frame, binding: FrameBinding, entropy_state: State | None = None) -> None:
        """Run the stages from source to reference.

        entropy_state: for the entropy stage, if it is not deferred: it runs as soon as the other results are complete.
        """
        binding.arrays.fill(frame, binding.frame, binding.frame is frame)
        steps, state = self._steps(frame, binding, entropy_state)
        executor.run(steps, state, frame.stage_seconds)

    def _steps(self, frame: Frame, binding: FrameBinding, entropy_state: State | None = None) -> tuple[list[Step], State]:
        """The steps of a frame and their arguments by name; entropy_state: see `_stages`."""
        spec = frame.spec
        state, references = binding.state(spec), binding.reference_states(spec)
        steps: list[Step] = [
            (names, references[ref] if ref >= 0 else entropy_state or {} if ENTROPY_STAGE in names else {})
            for names, ref in steps_of(self.settings, spec, self.for_download)
        ]
        return steps, state

    def compile(self, frame: Frame, stages: Sequence[str]) -> None:
        """Run stages on an empty frame, whose spec has one reference, to compile their kernels."""
        binding = FrameBinding(self.arrays, frame, frame.frame_params, 1, (0,), self._continued(frame.spec, (0,)))
        state = binding.state(frame.spec) | binding.reference_states(frame.spec)[0]
        state |= {"unweighted_luma": self.arrays.references.planes(0)[0], "reference_weights": state["weights"][:N_WEIGHTS]}
        for name in stages:
            self.executor.run([((name,), {})], state, {})
