"""Runs the stage table on CPU threads: stages in bands of the frame, and tasks that run during the next frame.

Results never depend on the number of threads or bands.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..jit.compiling import clock
from .bundles import State
from .check import compared, twin
from .compiled_frame import CompiledFrame
from .stages import CPU, EVEN, FRAME, ROWS, SLICE_TICKETS, SLICES, STAGES, TICKETS, Kernel, Stage, deferred_stages
from .threads.dependent_task import DependentTask
from .threads.lazy_task import Task
from .threads.pool import Part, WorkerPool
from .trace import HOST, Trace

Result = TypeVar("Result")
LEAST_BAND = 40  # macroblocks: a smaller band costs more in the call than it gains
WAITING = 2  # frames beyond one a thread that are in flight at once, so that threads find work
# frames in flight at once, for memory: each takes a slot of the decoded picture buffer
MOST_BESIDE, MOST_MACROBLOCKS, MOST_LARGE = 28, 140_000, 12  # at most; of so many macroblocks; of the largest frames
SMALL = 4000  # macroblocks of a frame whose stages, in one thread, are one call: an interrupt waits for its end
_SHARES = 8  # threads from which the team shares B frames of SMALL macroblocks that are references: few are in flight then
EVEN_BAND = 1000  # macroblocks a thread that justify a second band for it in EVEN stages
_AT_WORK = nullcontext()
Step = tuple[Sequence[str], State]  # stages, and state for these stages only
Spans = Mapping[str, Sequence[tuple[int, ...]]]  # parts of the frame by class of split
Span = tuple[str, tuple[int, ...]]  # a stage, and the part of the frame that a call does


def bands(n_rows: int, n_bands: int) -> list[tuple[int, int]]:
    """[row0, row1) of at most `n_bands` bands of nearly equal height that cover `n_rows`."""
    n_bands = max(1, min(n_bands, n_rows))
    cuts = [n_rows * k // n_bands for k in range(n_bands + 1)]
    return list(zip(cuts, cuts[1:]))


def shares(n_rows: int, threads: int, least: int) -> list[tuple[int, int]]:
    """Bands that free threads take in order: tall bands first, down to `least` rows."""
    cuts = [0]
    while cuts[-1] < n_rows:
        left = n_rows - cuts[-1]
        band = max(least, 2 * left // (3 * threads))
        cuts.append(n_rows if left < band + least else cuts[-1] + band)
    return list(zip(cuts, cuts[1:]))


class Executor:
    """`threads` threads over a frame of `n_rows` macroblock rows; slices: (first, end) macroblock of each.

    Executors of all devices share this interface. `zeros` makes arrays in the memory of the stages, `host_zeros` host arrays
    for uploads and downloads; `frames_on_device`: frames in the memory of a GPU (0: stages work on host arrays);
    `by_rows`: whether rows of a frame may lie on different devices; `parallel_b_frames`: 0 if frames run one after another,
    else on a GPU the number of streams for B frames, on a CPU the number of frames in flight, of which each B frame has one
    thread; `run_ahead`: frames that a GPU may have in flight beyond one of each stream (run_ahead.py); `tickets`:
    whether mode decision counts in `progress`, from 0 on; `deferred`: stages that are left to `deferred_call`;
    `shares_references`: whether the team shares B frames that are references too.
    """

    frames_on_device, tickets, deferred = 0, True, deferred_stages(CPU)
    by_rows, run_ahead = False, 0

    def __init__(
        self, threads: int, n_rows: int, slices: list[tuple[int, int]], trace: Trace | None = None, name: str = "h264lite",
        has_b_frames: bool = False, team: int | None = None,
    ) -> None:  # fmt: skip
        """has_b_frames: of the stream: such frames run beside others. team: those of the threads that share the stages of a
        frame; None: all.
        """
        most = max(MOST_LARGE, min(MOST_BESIDE, MOST_MACROBLOCKS // slices[-1][1]))
        self.parallel_b_frames = min(2 * threads + WAITING, most) if has_b_frames and threads > 1 else 0
        self._worker_pool = WorkerPool(threads, name, team, not self.parallel_b_frames)
        self._twin = twin()
        self._trace = trace
        self.threads, self._mb_width = team or threads, slices[-1][1] // n_rows
        self.shares_references = self.threads >= _SHARES and slices[-1][1] >= SMALL
        self.slices, self._n_rows = slices, n_rows
        self._at_once = slices[-1][1] <= SMALL
        self._frame_spans = self._spans_of(0, n_rows)

    @property
    def has_threads(self) -> bool:
        """Whether tasks run in other threads than the caller's."""
        return self._worker_pool.has_threads

    def single_threaded(self) -> "Executor":
        """An executor that runs all stages of a frame in the calling thread, while other threads run other frames."""
        executor = Executor(1, self._n_rows, self.slices, self._trace)
        executor._at_once = True  # its thread is no caller, which an interrupt would reach
        return executor

    def _spans_of(self, row0: int, row1: int, threads: int | None = None) -> Spans:
        """Parts of stages by class of split, for macroblock rows [row0, row1); slices: those of the frame. threads: that take
        them; None: all.
        """
        n_rows, threads = row1 - row0, threads or self.threads
        n_mb = n_rows * self._mb_width
        rows = shares(n_rows, threads, -(-LEAST_BAND // self._mb_width)) if threads > 1 else [(0, n_rows)]
        even = bands(n_rows, min(len(rows), (1 + (n_mb > EVEN_BAND * threads)) * threads) if threads > 1 else 1)
        return {
            ROWS: [(row0 + a, row0 + b) for a, b in rows], EVEN: [(row0 + a, row0 + b) for a, b in even],
            SLICES: self.slices, TICKETS: [(row0, row1)] * min(threads, len(rows)), FRAME: [()],
            SLICE_TICKETS: [span for span in self.slices for _ in range(min(threads, self._most_at_once(*span)))],
        }  # fmt: skip

    def _most_at_once(self, first_mb: int, end_mb: int) -> int:
        """Rows of a slice that may be coded at once: each two macroblocks behind the one above."""
        return min((end_mb - first_mb) // self._mb_width, (self._mb_width + 1) // 2)

    def zeros(self, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """An array of zeros in the memory of the stages."""
        return np.zeros(shape, dtype)

    def host_zeros(self, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """A host array of zeros, for uploads and downloads."""
        return np.zeros(shape, dtype)

    def constant(self, values: np.ndarray) -> np.ndarray:
        """An array that is never written."""
        return values

    def put_constant(self, constant: np.ndarray, values: np.ndarray) -> None:
        """Write one all the same, while no stage runs."""
        constant[:] = values

    def interior(self, plane: np.ndarray, border: int) -> np.ndarray:
        """The output of `deblock` in a plane with a border."""
        return plane[border:-border, border:-border]

    def fill(self, array: np.ndarray, value: int) -> None:
        """Set all elements of an array of `zeros`, in order with the stages."""
        array.fill(value)

    def at_work(self) -> AbstractContextManager[object]:
        """Around the work of the loop for one frame."""
        return _AT_WORK

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """See GpuMemory: a pointer belongs to no device of this executor."""
        return None, -1

    def download_results(self, number: int, pairs: Iterable[tuple[np.ndarray, np.ndarray]], slot: Hashable) -> None:
        """End frame `number`: pairs: (array of the stages, host array) to copy; slot: identifies the host arrays."""
        for source, target in pairs:
            target[...] = source

    def download_of(self, slot: Hashable) -> Callable[[], None]:
        """A function that waits for the last download (`download_results`) of a slot."""
        return _downloaded

    def run(self, steps: Sequence[Step], state: State, seconds: dict[str, float]) -> None:
        """Run steps over the whole frame, in sequence, and return when they are done.

        A band goes through all stages of a step that split by rows, so that each stage may read only rows of other stages
        of the step that its own band wrote; whole-frame stages run concurrently. The time of each stage is added to
        `seconds`, summed over threads.
        """
        times: list[tuple[str, float]] = []
        states = (({**state, **more} if more else state) for _, more in steps)
        self._worker_pool.run([self._split(names, of_step, times) for (names, _), of_step in zip(steps, states)])
        for name, spent in times:
            seconds[name] = seconds.get(name, 0.0) + spent

    def run_compiled(self, compiled: CompiledFrame, words: np.ndarray, seconds: dict[str, float]) -> None:
        """`run` for the calls of frames with one key, with the words of a frame (CompiledFrame.words)."""
        share = self._worker_pool.run_steps if self.has_threads else None
        compiled.run(words, seconds, self._at_once, self._trace, share)

    def run_parts(self, parts: Sequence[Part]) -> None:
        """Run functions concurrently, and return when they are done."""
        self._worker_pool.run([parts])

    def parts(self, names: Sequence[str], spans: Spans | None = None) -> list[list[Span]]:
        """The parts of a step, over the whole frame or `spans`: its stages with their spans in order."""
        spans = spans or self._frame_spans
        whole_frame: list[list[Span]] = [[(name, ())] for name in names if STAGES[name].split == FRAME]
        chain = [name for name in names if STAGES[name].split != FRAME]
        banded = [[(name, span) for name in chain] for span in spans[STAGES[chain[0]].split]] if chain else []
        return [*whole_frame, *banded]

    def _split(
        self, names: Sequence[str], state: State, times: list[tuple[str, float]],
        spans: Spans | None = None,
    ) -> list[Part]:  # fmt: skip
        """The parts of a step as functions; see `parts`."""
        calls = {name: self._around(STAGES[name], state, STAGES[name].bind(state)) for name in names}
        return [
            _part([(name, calls[name], span) for name, span in part], times, self._trace) for part in self.parts(names, spans)
        ]

    @property
    def is_compared(self) -> bool:
        """Whether kernels are compared with their twins (check.py)."""
        return self._twin is not None

    def _around(self, stage: Stage, state: State, call: Kernel) -> Kernel:
        """The stage as a function of its span, with the comparison of check.py if that is on."""
        return call if self._twin is None else compared(self._twin, stage, state, call)

    def submit(self, ready: Callable[[], None], function: Callable[..., Result], *args: object) -> Task[Result]:
        """Start a task that runs concurrently with later work; ready: see `download_of`, for which the task waits itself."""
        if not isinstance(ready, DependentTask):
            return self._worker_pool.submit(function, *args)
        return self._worker_pool.submit(function, *args, may_run=ready.may_run, urgent=ready.urgent)

    def start_soon(self, function: Callable[[], object]) -> None:
        """A free thread runs the function soon, or none does; no thread waits for it."""
        if self.has_threads:
            self._worker_pool.submit(function, urgent=True)

    def after(self, function: Callable[[], object], others: Sequence[DependentTask], urgent: bool) -> DependentTask:
        """A `ready` for `submit`: a function that runs when others have run; urgent: others wait for it."""
        return DependentTask(function, others, self._worker_pool.wake, urgent)

    def result(self, task: Task[Result]) -> Result:
        """Wait for a task and return its result."""
        return self._worker_pool.result(task)

    def close(self, keep_host: bool = False) -> None:
        """Wait for running tasks and end the threads; keep_host: arrays of `host_zeros` stay in use."""
        self._worker_pool.close()


def _downloaded() -> None:
    """Nothing is to be waited for."""


def deferred_call(name: str, state: State) -> Callable[[], None]:
    """A deferred stage as a function, for a task that runs once the frame's other results are on the host."""
    stage, other = STAGES[name], twin()
    call = stage.bind(state)
    return call if other is None else compared(other, stage, state, call)


def _part(chain: Sequence[tuple[str, Kernel, tuple[int, ...]]], times: list[tuple[str, float]], trace: Trace | None) -> Part:
    """A part: bound stages, each on its span."""

    def run() -> None:
        for name, call, span in chain:
            start, begin = time.perf_counter(), clock()
            call(*span)
            spent = clock() - begin
            times.append((name, spent))
            if trace is not None:
                trace.add(HOST, threading.current_thread().name, name, start, spent)

    return run
