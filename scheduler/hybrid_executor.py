"""Runs frames on CPU workers and a GPU together, by the route that a plan gives.

Each worker does its own operations in order, and waits where one needs the result of another worker. The calling thread is
the CPU's: before each step it issues every GPU operation that can be issued. So the GPU waits for the CPU only where it
needs rows of the CPU, and the CPU waits for the GPU only where it reads rows of the GPU. Operations are measured
(adaptation.py). If a plan leaves everything to one device, and its memory holds all that frames read of earlier frames, the
executor of that device takes over until a plan divides frames again. The plan never changes the bytes of the stream.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .cuda_executor import CudaExecutor
from .gpu_memory import GpuMemory
from .hybrid_queues import Program
from .planning.adaptation import Adaptation
from .planning.plan import HOST, Plan, is_gpu, memory_of
from .planning.probing import Probing
from .planning.route import Copy, Picture, Run, route, whole_in
from .residency import NOTHING, Residency, resident_in
from .threads.lazy_task import Task
from .threads.watchdog import Stuck, Watchdog
from .workers import FRAMES_ON_DEVICE, CpuWorker, GpuWorker

EVERY = 8  # GPU operations are timed until all have been measured, then in one of EVERY frames
MOST_PROGRAMS = 256


class Work(Protocol):
    """The arrays of a frame, by device."""

    def state(self, device: str, reference: int) -> Mapping[str, Any]:
        """The arguments of stages, by name, in a step for one reference."""

    def pairs(self, gpu: str, op: Copy) -> Sequence[tuple[Any, np.ndarray]]:
        """(GPU array, host array) of the rows of a copy."""


@dataclass
class InFlightFrame:
    """A frame whose operations are being issued."""

    number: int
    program: Program
    work: Work
    over: list[bool]  # by operation: whether a CPU worker has done it
    events: dict[int, Any] = field(default_factory=dict)  # by operation of the GPU that another operation needs: its event
    at: list[int] = field(default_factory=list)  # of each queue: the next operation to issue
    refs_copied: Any = None
    error: BaseException | None = None


class HybridExecutor:
    """CPU workers and at most one GPU worker. See Executor for the methods that the coding loop calls.

    replan: makes a plan from models; None: the plan stays. models: takes the measurements (scheduler/planning/models.py).
    hands_over: whether the executor of one device may take over; None: if plans change. serial: see CudaExecutor.
    """

    tickets = True

    def __init__(
        self, plan: Plan, workers: Sequence[CpuWorker | GpuWorker], watchdog: Watchdog, models: Any = None,
        replan: Callable[[Any], Plan] | None = None, hands_over: bool | None = None, serial: bool = False,
        probing: Probing | None = None,
    ) -> None:  # fmt: skip
        self.workers = {side.device: side for side in workers}
        self.cpus = [side for side in workers if isinstance(side, CpuWorker)]
        gpus = [side for side in workers if isinstance(side, GpuWorker)]
        if len(gpus) > 1 or not self.cpus:
            raise ValueError(f"devices {list(self.workers)}: at least one CPU and at most one GPU")
        self.adaptation = Adaptation(plan, models, replan, probing)
        self.side = gpus[0] if gpus else None
        self.frames_on_device = FRAMES_ON_DEVICE if gpus else 0
        self.hands_over = replan is not None if hands_over is None else hands_over
        self.alone: CpuWorker | CudaExecutor | None = None  # the executor of one device that has taken over
        self._serial = serial
        self._of_gpu: CudaExecutor | None = None  # made when the GPU first works alone
        self._on_gpu: GpuMemory | None = self.side  # the user of the GPU that issued its last frame
        self._watchdog = watchdog
        self._valid: Residency = NOTHING
        self._programs: dict[int, Program] = {}
        self._lock = threading.RLock()
        self._last: InFlightFrame | None = None
        self._events: list[Any] = []  # free events of ended frames

    # ---- memory
    def zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An array of the host; page-locked if there is a GPU."""
        if self.side is None:
            return np.zeros(shape, dtype)
        with self.side.gpu:
            return self.side.gpu.pinned(shape, dtype)

    host_zeros = zeros

    def constant(self, values: np.ndarray) -> np.ndarray:
        """See Executor."""
        return values

    def interior(self, plane: np.ndarray, border: int) -> np.ndarray:
        """See Executor."""
        return self.cpus[0].interior(plane, border)

    def fill(self, array: np.ndarray, value: int) -> None:
        """See Executor."""
        array.fill(value)

    def at_work(self, memory: str) -> AbstractContextManager[Any]:
        """Around the use of arrays of a memory: makes its GPU context, if any, current in this thread."""
        return nullcontext() if self.side is None or memory == HOST else self.side.gpu

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """See CudaExecutor."""
        return self.side.ordinal_of(pointer) if self.side else (None, -1)

    # ---- one device alone
    def single_device_for(self, is_idr: bool) -> str | None:
        """The device that can do the next frame alone; None if the work is divided. An IDR frame needs no reference."""
        plan, device = self.adaptation.plan, self.adaptation.plan.single
        if device is None or not self.hands_over or self.adaptation.probe is not None or not self.adaptation.knows():
            return None
        return device if is_idr or whole_in(self._valid, memory_of(device), plan.mb_height) else None

    def own(self, device: str) -> CpuWorker | CudaExecutor:
        """The executor of a device for whole frames."""
        side = self.workers[device]
        if isinstance(side, CpuWorker):
            return side
        if self._of_gpu is None:
            first = self.cpus[0]
            height = self.adaptation.plan.mb_height
            self._of_gpu = CudaExecutor(side.gpu, height, first.slices, side.trace, self._serial)
        return self._of_gpu

    def switch_to(self, device: str) -> None:
        """Let the executor of one device do the next frames, ordered after all that was started."""
        mine = self.alone = self.own(device)
        if isinstance(mine, CudaExecutor):
            self._give_gpu_to(mine)
        elif self._last is not None and self.side is not None:  # copies to and from arrays of the host may be under way
            self._wait_for_the_last(self._last)
            self._last = None

    def did_alone(self, n_references: int) -> None:
        """Note that a frame was done by, or issued to, one device, after which `n_references` references are held."""
        memory = self.side.device if self.side is not None and self.alone is self._of_gpu else HOST
        self._valid = resident_in(memory, n_references, self.adaptation.plan.mb_height)

    def _give_gpu_to(self, user: GpuMemory) -> None:
        if self._on_gpu is not user:
            assert self._on_gpu is not None
            user.order_after(self._on_gpu)
            self._on_gpu = user

    # ---- a frame
    def begin(self, number: int) -> None:
        """Called before any operation of frame `number` is issued."""
        self.alone = None
        if self.side is not None:
            self._give_gpu_to(self.side)
            with self.side.gpu:
                self.side.begin(number, self._clocked(number))

    def _clocked(self, number: int) -> bool:
        """Whether the GPU operations of a frame are timed."""
        side, adaptation = self.side, self.adaptation
        asked = adaptation.probe is not None or not number % EVERY or not adaptation.knows()
        measured = adaptation.models is not None and asked
        return side is not None and (side.traced or measured)

    def picture(self, number: int, picture: Picture, work: Work, seconds: dict[str, float]) -> tuple["InFlightFrame", Any]:
        """Do or issue all operations of a frame. Returns it, and a function that waits for its downloads."""
        ops, self._valid = route(self.adaptation.this, picture, self._valid)
        program = self._programs.get(id(ops))
        if program is None:
            if len(self._programs) >= MOST_PROGRAMS:
                self._programs.clear()
            program = self._programs[id(ops)] = Program.of(ops)
        run = InFlightFrame(number, program, work, [False] * len(ops), at=[0] * len(program.queues))
        others = [side for side in self.cpus[1:] if program.groups.get(side.device)]
        left = [threading.Event() for _ in others]
        for side, done in zip(others, left):
            side.start(lambda side=side, done=done: self._through(run, side, seconds, done))  # type: ignore[misc]
        try:
            self._through(run, self.cpus[0], seconds)
        finally:  # no worker works on a frame after it was abandoned
            for side, done in zip(others, left):
                self._leave(side, done, number)
        if run.error is not None:
            raise run.error
        ready = self._end(run)
        self._last = run
        return run, ready

    def _leave(self, side: CpuWorker, done: threading.Event, number: int) -> None:
        """Wait until a worker has left the frame; one that hangs cannot be stopped and is abandoned."""
        try:
            self._watchdog.wait(done.is_set, lambda: f"{side.doing} on {side.device}, frame {number}")
        except Stuck:
            side.abandoned = True
            raise

    def _through(
        self, run: InFlightFrame, side: CpuWorker, seconds: dict[str, float], done: threading.Event | None = None
    ) -> None:
        """Do the operations of one CPU worker; issue GPU operations that have become ready between its groups."""
        try:
            self._pump(run)
            before = self._last
            for k, group in enumerate(run.program.groups.get(side.device, ())):
                if k == 0 and before is not None and self.side is not None:
                    self._wait_for_the_last(before)
                for need in group.needs:
                    self._wait(run, lambda need=need: self._is_over(run, need), lambda need=need: self._name(run, need))  # type: ignore[misc]
                side.doing = ", ".join(group.stages)
                with self._watchdog.on(f"{side.doing} on {side.device}, frame {run.number}"):
                    spent = side.work(group.stages, group.row0, group.row1, run.work.state(HOST, group.reference))
                for index, (name, took) in zip(group.runs, spent):
                    run.over[index] = True
                    with self._lock:
                        seconds[name] = seconds.get(name, 0.0) + took
                    self.adaptation.measured.append((run.program.ops[index], took))
                self._pump(run)
        except BaseException as error:
            run.error = run.error or error
            if done is None:
                raise
        finally:
            if done is not None:
                done.set()

    def _wait_for_the_last(self, before: InFlightFrame) -> None:
        """Wait for the copies of the frame before to and from host arrays that this frame uses."""
        side = self.side
        assert side is not None
        gpu, uploaded = side.gpu, side.uploaded(before.number)
        with gpu:
            self._wait(before, lambda: gpu.done(uploaded), lambda: f"an upload of frame {before.number} to {side.device}")
        self.settle(before)

    def settle(self, run: InFlightFrame) -> None:
        """Wait for the downloads of a frame that the host reads in the next frames."""
        side = self.side
        if run.refs_copied is not None and side is not None:
            gpu = side.gpu
            with gpu:
                self._wait(run, lambda: gpu.done(run.refs_copied), lambda: f"a copy of frame {run.number} from {side.device}")

    def _is_over(self, run: InFlightFrame, index: int) -> bool:
        op = run.program.ops[index]
        if isinstance(op, Run) and not is_gpu(op.device):
            return run.over[index]
        self._pump(run)
        if index not in run.events or self.side is None:
            return False
        with self.side.gpu:
            return self.side.gpu.done(run.events[index])

    def _wait(self, run: InFlightFrame, over: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait until `over`, and raise the error of a worker that failed. A GPU that exceeds the limit counts as lost."""

        def look() -> bool:
            if run.error is not None:
                raise run.error
            return over()

        try:
            self._watchdog.wait(look, what)
        except Stuck as stuck:
            side = self.side
            if side is not None and side.device in str(stuck):
                raise side.gpu.failed("a wait", stuck) from None
            raise

    @staticmethod
    def _name(run: InFlightFrame, index: int) -> str:
        op = run.program.ops[index]
        what = f"{op.stage} on {op.device}" if isinstance(op, Run) else f"{op.array[0]} from {op.source} to {op.target}"
        return f"{what}, frame {run.number}"

    def _pump(self, run: InFlightFrame) -> None:
        """Issue all GPU operations whose needs are done or issued."""
        side = self.side
        if side is None or all(k == len(q) for k, q in zip(run.at, run.program.queues)):
            return
        with self._lock, side.gpu:
            going = True
            while going:
                going = False
                for queue, indices in enumerate(run.program.queues):
                    while run.at[queue] < len(indices) and self._may_go(run, indices[run.at[queue]]):
                        index = indices[run.at[queue]]
                        op = run.program.ops[index]
                        side.issue(op, run.number, run.events, run.work)
                        if index in run.program.waited_for:
                            run.events[index] = side.mark(index, op)
                        if index == run.program.refs_copied:
                            run.refs_copied = side.carry(run.number)
                        run.at[queue] += 1
                        going = True

    def _may_go(self, run: InFlightFrame, index: int) -> bool:
        return all(run.over[need] or need in run.events for need in run.program.ops[index].needs)

    def _end(self, run: InFlightFrame) -> Callable[[], None]:
        side = self.side
        if side is None:
            return lambda: None
        with side.gpu:
            home, spans, timed = side.end(run.number, self._events.pop() if self._events else side.gpu.event())

        def wait() -> None:
            assert side is not None
            with side.gpu:
                self._wait(run, lambda: side.gpu.done(home), lambda: f"frame {run.number} on {side.device}")
                side.gpu.synchronize(home)
                self.adaptation.measured.extend(side.seconds(spans, timed))
            if home not in self._events:  # there already if this is called again after an interrupt
                self._events.append(home)

        return wait

    # ---- tasks
    def submit(self, ready: Any, function: Callable[..., Any], *args: Any) -> Task:
        """See Executor."""
        return (self.alone or self.cpus[0]).submit(ready, function, *args)

    def result(self, future: Task) -> Any:
        """See Executor; for tasks of every executor."""
        return self.cpus[0].result(future)

    def close(self, keep_host: bool = False) -> None:
        """End the threads and free memory; keep_host: see Executor.close."""
        self._watchdog.close()
        self.adaptation.settled()
        if self._of_gpu is not None:
            self._of_gpu.finish()
        for side in self.workers.values():
            side.close(keep_host)
