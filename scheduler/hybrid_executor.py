"""Runs a route: every side goes through its own operations in order, and waits where one needs what another side does.

The thread that calls is the processor's; before each of its steps it gives the GPU whatever can be given by then, so a
GPU waits for the processor only where it needs its rows, and the processor for a GPU only where it reads them. Operations
are measured (adaptation.py). Where a plan leaves everything to one device and all that pictures read of earlier ones is in
its memory, that device's own executor goes on, until a plan divides pictures again. Bytes never change with the plan.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .arrays import NOTHING, Residency, everything
from .cuda_executor import CudaExecutor
from .gpu_memory import GpuMemory
from .hybrid_queues import Program
from .planning.adaptation import Adaptation
from .planning.plan import HOST, Plan, is_gpu, memory_of
from .planning.probing import Probing
from .planning.route import Copy, Picture, Run, route, whole_in
from .threads.lazy_task import Task
from .threads.watchdog import Stuck, Watchdog
from .workers import FRAMES_ON_DEVICE, CpuWorker, GpuWorker

EVERY = 8  # the GPU's clock runs until everything was measured, then for one picture of so many
MOST_PROGRAMS = 256


class Work(Protocol):
    """What the loop knows of a picture: arrays by side."""

    def state(self, device: str, reference: int) -> Mapping[str, Any]:
        """What stages may ask for, in a step for one reference."""

    def pairs(self, gpu: str, op: Copy) -> Sequence[tuple[Any, np.ndarray]]:
        """(there, host) of the rows of a copy."""


@dataclass
class InFlightFrame:
    """A picture whose operations are being given out."""

    number: int
    program: Program
    work: Work
    over: list[bool]  # operations of CPU devices
    events: dict[int, Any] = field(default_factory=dict)  # behind operations of the GPU that somebody waits for
    at: list[int] = field(default_factory=list)  # of each queue
    refs_copied: Any = None
    error: BaseException | None = None


class HybridExecutor:
    """CPU sides and at most one GPU. See Executor for what the loop asks of it.

    replan: makes a plan from models, None: the plan stays. models: takes what was measured (scheduler/planning/models.py).
    hands_over: whether one device's own executor may go on; None: where plans change. serial: see CudaExecutor.
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
        self.alone: CpuWorker | CudaExecutor | None = None  # whose pictures these are now
        self._serial = serial
        self._of_gpu: CudaExecutor | None = None  # once it was alone
        self._on_gpu: GpuMemory | None = self.side  # who gave the GPU its last picture
        self._watchdog = watchdog
        self._valid: Residency = NOTHING
        self._programs: dict[int, Program] = {}
        self._lock = threading.RLock()
        self._last: InFlightFrame | None = None
        self._events: list[Any] = []  # for the host's waiting, to be used again

    # ---- memory
    def zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An array of the host, where a GPU reaches it."""
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
        """Around what a thread does with arrays of a memory."""
        return nullcontext() if self.side is None or memory == HOST else self.side.gpu

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """See CudaExecutor."""
        return self.side.ordinal_of(pointer) if self.side else (None, -1)

    # ---- one device alone
    def single_device_for(self, n_ref: int) -> str | None:
        """The device that can do the next picture, with so many references, by itself; None: the general way."""
        plan, device = self.adaptation.plan, self.adaptation.plan.single
        if device is None or not self.hands_over or self.adaptation.probe is not None or not self.adaptation.knows():
            return None
        return device if n_ref == 0 or whole_in(self._valid, memory_of(device), plan.mb_height) else None

    def own(self, device: str) -> CpuWorker | CudaExecutor:
        """The executor of a device for whole pictures."""
        side = self.workers[device]
        if isinstance(side, CpuWorker):
            return side
        if self._of_gpu is None:
            first = self.cpus[0]
            height = self.adaptation.plan.mb_height
            self._of_gpu = CudaExecutor(side.gpu, height, first.slices, side.trace, self._serial)
        return self._of_gpu

    def switch_to(self, device: str) -> None:
        """From here on one device's executor does the pictures, behind all that was begun."""
        mine = self.alone = self.own(device)
        if isinstance(mine, CudaExecutor):
            self._give_gpu_to(mine)
        elif self._last is not None and self.side is not None:  # copies from and to arrays of the host
            self._wait_for_the_last(self._last)
            self._last = None

    def did_alone(self, n_references: int) -> None:
        """A picture is done, or given to the GPU; so many references are held behind it."""
        memory = self.side.device if self.side is not None and self.alone is self._of_gpu else HOST
        self._valid = everything(memory, n_references, self.adaptation.plan.mb_height)

    def _give_gpu_to(self, user: GpuMemory) -> None:
        if self._on_gpu is not user:
            assert self._on_gpu is not None
            user.order_after(self._on_gpu)
            self._on_gpu = user

    # ---- a picture
    def begin(self, number: int) -> None:
        """Before anything of picture `number` is given to a side."""
        self.alone = None
        if self.side is not None:
            self._give_gpu_to(self.side)
            with self.side.gpu:
                self.side.begin(number, self._clocked(number))

    def _clocked(self, number: int) -> bool:
        """Whether the GPU's operations of a picture are timed."""
        side, adaptation = self.side, self.adaptation
        asked = adaptation.probe is not None or not number % EVERY or not adaptation.knows()
        measured = adaptation.models is not None and asked
        return side is not None and (side.traced or measured)

    def picture(self, number: int, picture: Picture, work: Work, seconds: dict[str, float]) -> tuple["InFlightFrame", Any]:
        """All operations of a picture. Returns it, and what waits until all is at home."""
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
        finally:  # nobody works on a picture that is given up
            for side, done in zip(others, left):
                self._leave(side, done, number)
        if run.error is not None:
            raise run.error
        ready = self._end(run)
        self._last = run
        return run, ready

    def _leave(self, side: CpuWorker, done: threading.Event, number: int) -> None:
        """Wait until a side has left the picture; one that does not is left alone, as nobody can stop it."""
        try:
            self._watchdog.wait(done.is_set, lambda: f"{side.doing} on {side.device}, frame {number}")
        except Stuck:
            side.abandoned = True
            raise

    def _through(
        self, run: InFlightFrame, side: CpuWorker, seconds: dict[str, float], done: threading.Event | None = None
    ) -> None:
        """One CPU device's way through a picture; whoever comes by gives the GPU what it can be given."""
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
        """What the picture before still copies from or to arrays of the host that this one uses."""
        side = self.side
        assert side is not None
        gpu, uploaded = side.gpu, side.uploaded(before.number)
        with gpu:
            self._wait(before, lambda: gpu.done(uploaded), lambda: f"an upload of frame {before.number} to {side.device}")
        self.settle(before)

    def settle(self, run: InFlightFrame) -> None:
        """Wait until what the host needs of a picture for the next ones is there."""
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
        """Until something is over, unless something failed meanwhile; a GPU that does not come back counts as lost."""

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
        """Give the GPU's streams all operations whose needs are over or given."""
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
            if home not in self._events:  # asked for again after an interrupt
                self._events.append(home)

        return wait

    # ---- tasks
    def submit(self, function: Callable[..., Any], *args: Any) -> Task:
        """See Executor."""
        return (self.alone or self.cpus[0]).submit(function, *args)

    def result(self, future: Task) -> Any:
        """See Executor; whoever's task it is."""
        return self.cpus[0].result(future)

    def close(self, keep_host: bool = False) -> None:
        """End the threads, give memory back."""
        self._watchdog.close()
        self.adaptation.settled()
        if self._of_gpu is not None:
            self._of_gpu.finish()
        for side in self.workers.values():
            side.close(keep_host)
