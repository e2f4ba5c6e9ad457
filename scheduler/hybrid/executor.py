"""Runs frames on CPU workers and a GPU together, by the route that a plan gives.

Each worker does its own operations in order, and waits where one needs the result of another worker. The calling thread is
the CPU's: before each step it issues every GPU operation that can be issued. So the GPU waits for the CPU only where it
needs rows of the CPU, and the CPU waits for the GPU only where it reads rows of the GPU. Operations are measured
(adaptation.py). If a plan leaves everything to one device, and its memory holds all that frames read of earlier frames, the
executor of that device does whole frames until a plan divides frames again. The plan never changes the bytes of the stream.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ...cuda_src.runtime.array import Event
from ..cuda_executor import CudaExecutor
from ..gpu_memory import GpuMemory
from ..stages import D2H
from ..threads.lazy_task import Task
from ..threads.parallel_steps import CompiledSteps
from ..threads.watchdog import Stuck, Watchdog
from .adaptation import Adaptation
from .issue_order import Group, IssueOrder
from .plan import HOST, Plan, is_gpu, memory_of
from .probing import Probing
from .recorded import BEGIN, END, KEPT, RecordedFrame, RecordedFrames, Sweep
from .residency import NOTHING, Residency, resident_in
from .route import FrameTraits, Run, all_resident_in, route
from .tuning.models import Models
from .workers import FRAMES_ON_DEVICE, CpuWorker, GpuWorker, Timed, Work

Result = TypeVar("Result")
MEASURED_EVERY = 8  # operations are measured until all have been, then in one of MEASURED_EVERY frames
MAX_CACHED_ORDERS = 256


@dataclass
class InFlightFrame:
    """A frame whose operations are being issued."""

    number: int
    order: IssueOrder
    work: Work
    done: list[bool]  # by operation: whether a CPU worker has done it, or it is issued to the GPU
    is_measured: bool
    events: dict[int, Event] = field(default_factory=dict)  # by operation of the GPU that another operation needs: its event
    at: list[int] = field(default_factory=list)  # of each queue: the next operation to issue
    refs_copied: Event | None = None
    error: BaseException | None = None
    ended: int = 0  # groups that a CPU worker has ended
    issued_at: int = -1  # `ended` when all was issued that could be
    replayed: RecordedFrame | None = None  # whose sweeps are replayed, by `ended`
    recorded: dict[int, Sweep] | None = None  # what is recorded for later frames


class HybridExecutor:
    """CPU workers and at most one GPU worker. See Executor for the methods that the coding loop calls.

    replan: makes a plan from models; None: the plan stays. models: takes the measurements (tuning/models.py).
    may_switch: whether the executor of one device may encode whole frames; None: if plans change. serial: see CudaExecutor.
    """

    tickets = by_rows = True

    def __init__(
        self, plan: Plan, workers: Sequence[CpuWorker | GpuWorker], watchdog: Watchdog, models: Models | None = None,
        replan: Callable[[Models], Plan] | None = None, may_switch: bool | None = None, serial: bool = False,
        probing: Probing | None = None, learn_meeting: Callable[[Plan, Models, float], float] | None = None,
    ) -> None:  # fmt: skip
        self.workers = {worker.device: worker for worker in workers}
        self.cpus = [worker for worker in workers if isinstance(worker, CpuWorker)]
        gpus = [worker for worker in workers if isinstance(worker, GpuWorker)]
        if len(gpus) > 1 or not self.cpus:
            raise ValueError(f"devices {list(self.workers)}: at least one CPU and at most one GPU")
        self.adaptation = Adaptation(plan, models, replan, probing, learn_meeting=learn_meeting)
        self.gpu_worker = gpus[0] if gpus else None
        self.frames_on_device = FRAMES_ON_DEVICE if gpus else 0
        self.parallel_b_frames = self.run_ahead = 0
        self.may_switch = replan is not None if may_switch is None else may_switch
        self.single_device_executor: CpuWorker | CudaExecutor | None = None  # the one that does whole frames now
        self._serial = serial
        self._gpu_executor: CudaExecutor | None = None  # made when the GPU first works alone
        self._gpu_user: GpuMemory | None = self.gpu_worker  # the user of the GPU that issued its last frame
        self._watchdog = watchdog
        self._valid: Residency = NOTHING
        self._valid_before: Residency = NOTHING  # before the last frame
        self._orders: dict[int, IssueOrder] = {}
        self._lock = threading.RLock()
        self._last: InFlightFrame | None = None
        self._events: list[Event] = []  # free events of ended frames
        self._recorded_frames = RecordedFrames()
        self._measures = self._may_record = False  # see `_choose_measured`

    # ---- memory
    def zeros(self, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """An array of the host; page-locked if there is a GPU."""
        if self.gpu_worker is None:
            return np.zeros(shape, dtype)
        with self.gpu_worker.gpu:
            return self.gpu_worker.gpu.pinned(shape, dtype)

    host_zeros = zeros

    def constant(self, values: np.ndarray) -> np.ndarray:
        """See Executor."""
        return values

    def put_constant(self, constant: np.ndarray, values: np.ndarray) -> None:
        """See Executor."""
        constant[:] = values

    def interior(self, plane: np.ndarray, border: int) -> np.ndarray:
        """See Executor."""
        return self.cpus[0].interior(plane, border)

    def fill(self, array: np.ndarray, value: int) -> None:
        """See Executor."""
        array.fill(value)

    def at_work(self, memory: str) -> AbstractContextManager[object]:
        """Around the use of arrays of a memory: makes its GPU context, if any, current in this thread."""
        return nullcontext() if self.gpu_worker is None or memory == HOST else self.gpu_worker.gpu

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """See CudaExecutor."""
        return self.gpu_worker.ordinal_of(pointer) if self.gpu_worker else (None, -1)

    # ---- frames on a single device
    def single_device_for(self, is_idr: bool) -> str | None:
        """The device that can do the next frame alone; None if the work is divided. An IDR frame needs no reference."""
        plan, device = self.adaptation.plan, self.adaptation.plan.single
        if device is None or not self.may_switch or self.adaptation.probe is not None or not self.adaptation.knows():
            return None
        return device if is_idr or all_resident_in(self._valid, memory_of(device), plan.mb_height) else None

    def executor_of(self, device: str) -> CpuWorker | CudaExecutor:
        """The executor of a device for whole frames."""
        worker = self.workers[device]
        if isinstance(worker, CpuWorker):
            return worker
        if self._gpu_executor is None:
            first = self.cpus[0]
            height = self.adaptation.plan.mb_height
            self._gpu_executor = CudaExecutor(
                worker.gpu, height, first.slices, worker.trace, self._serial, worker.has_b_frames, 0
            )
        return self._gpu_executor

    def switch_to(self, device: str) -> None:
        """Let the executor of one device do the next frames, ordered after all that was started."""
        executor = self.single_device_executor = self.executor_of(device)
        if isinstance(executor, CudaExecutor):
            self._give_gpu_to(executor)
        elif self._last is not None and self.gpu_worker is not None:  # copies to and from host arrays may not have ended
            self._wait_for_last_frame(self._last)
            self._last = None

    def finished_on_single_device(self, n_references: int, has_b_frames: bool) -> None:
        """Note that a frame was done by, or issued to, one device, after which there are `n_references` references.

        has_b_frames: of the stream.
        """
        on_gpu = self.gpu_worker is not None and self.single_device_executor is self._gpu_executor
        memory = self.gpu_worker.device if self.gpu_worker is not None and on_gpu else HOST
        self._valid_before = self._valid
        self._valid = resident_in(memory, n_references, self.adaptation.plan.mb_height, has_b_frames)

    def rewind(self) -> None:
        """The last frame, whose results are there, is coded again: references lie as before it."""
        self._valid = self._valid_before

    def _give_gpu_to(self, user: GpuMemory) -> None:
        if self._gpu_user is not user:
            assert self._gpu_user is not None
            user.order_after(self._gpu_user)
            self._gpu_user = user

    # ---- a frame
    def begin(self, number: int) -> None:
        """Called before any operation of frame `number` is issued."""
        self.single_device_executor = None
        self._choose_measured(number)
        if self.gpu_worker is not None:
            self._give_gpu_to(self.gpu_worker)
            with self.gpu_worker.gpu:
                self.gpu_worker.begin(number, self.gpu_worker.traced or self._measures, self._may_record)

    def _choose_measured(self, number: int) -> None:
        """Whether the operations of a frame are measured, and whether its calls may be recorded and replayed.

        Measured frames that may be recorded share their events: the times of the last such frame are read before.
        """
        gpu_worker = self.gpu_worker
        unread, traced = (False, False) if gpu_worker is None else (gpu_worker.unread, gpu_worker.traced)
        is_first = self._is_first()
        self._measures = self._is_due(number) and (is_first or not unread)
        self._may_record = len(self.cpus) == 1 and not traced and not (self._measures and is_first)

    def _is_first(self) -> bool:
        """Whether all frames like this one are measured."""
        return self.adaptation.probe is not None or not self.adaptation.knows()

    def _is_due(self, number: int) -> bool:
        """Whether the operations of a frame should be measured for the models."""
        return self.adaptation.models is not None and (self._is_first() or not number % MEASURED_EVERY)

    def run_frame(
        self, number: int, frame_traits: FrameTraits, work: Work, seconds: dict[str, float]
    ) -> tuple[InFlightFrame, Callable[[], None]]:
        """Do or issue all operations of a frame. Returns it, and a function that waits for its downloads."""
        self._valid_before = self._valid
        ops, self._valid = route(self.adaptation.this, frame_traits, self._valid)
        order = self._orders.get(id(ops))
        if order is None:
            if len(self._orders) >= MAX_CACHED_ORDERS:
                self._orders.clear()
            order = self._orders[id(ops)] = IssueOrder.of(ops)
        run = InFlightFrame(number, order, work, [False] * len(ops), self._measures, at=[0] * len(order.queues))
        key = work.key, self._measures
        if self.gpu_worker is not None and self._may_record:
            run.replayed = self._recorded_frames.find(order, key)
            if run.replayed is None:
                run.recorded = {}
            else:
                run.replayed.bind(work.ranges)
        others = [worker for worker in self.cpus[1:] if order.groups.get(worker.device)]
        ends = [threading.Event() for _ in others]
        for worker, end in zip(others, ends):
            worker.start(lambda worker=worker, end=end: self._do_groups(run, worker, seconds, end))  # type: ignore[misc]
        try:
            self._do_groups(run, self.cpus[0], seconds)
        finally:  # no worker works on a frame after it was abandoned
            for worker, end in zip(others, ends):
                self._wait_for_worker(worker, end, number)
        if run.error is not None:
            raise run.error
        ready, timed = self._end(run)
        if run.recorded is not None:
            self._recorded_frames.add(order, key, RecordedFrame(run.recorded, work.ranges, order, timed))
        self._last = run
        self.adaptation.issued(frame_traits.n_ref)
        return run, ready

    def _wait_for_worker(self, worker: CpuWorker, end: threading.Event, number: int) -> None:
        """Wait until a worker has ended its groups; one that hangs cannot be stopped and is abandoned."""
        try:
            self._watchdog.wait(end.is_set, lambda: f"{worker.doing} on {worker.device}, frame {number}")
        except Stuck:
            worker.abandoned = True
            raise

    def _do_groups(
        self, run: InFlightFrame, worker: CpuWorker, seconds: dict[str, float], end: threading.Event | None = None
    ) -> None:
        """Do the operations of one CPU worker; issue GPU operations that have become ready between its groups.

        end: set at the end, and errors are left in `run.error`; None: they are raised.
        """
        groups = run.order.groups.get(worker.device, ())
        try:
            with nullcontext() if self.gpu_worker is None else self.gpu_worker.gpu:
                before, compiled = self._last, run.work.compiled(worker, run.order)
                steps = None if compiled is None else compiled[0].steps(compiled[1], gated=True)
                spent = []
                with worker.sharing(steps):
                    self._issue_ready(run)
                    for k, group in enumerate(groups):
                        if k == 0 and before is not None and self.gpu_worker is not None:
                            self._wait_for_last_frame(before)
                        spent.append(self._do_group(run, worker, k, group, steps))
                        run.ended += 1
                    self._issue_ready(run)
                if compiled is not None and steps is not None:
                    spent = worker.seconds_by_step(compiled[0], steps)
                self._note(run, groups, spent, seconds)
        except BaseException as error:
            run.error = run.error or error
            if end is None:
                raise
        finally:
            if end is not None:
                end.set()

    def _do_group(
        self, run: InFlightFrame, worker: CpuWorker, k: int, group: Group, steps: CompiledSteps | None
    ) -> dict[str, float]:
        """Do group k of a CPU worker, and what can be issued to the GPU meanwhile. steps: of the frame, if they are compiled;
        None: returns the seconds of stages.
        """
        for need in group.needs:
            self._wait(run, partial(self._is_done, run, need), partial(self._name, run, need))
        worker.doing = ", ".join(group.stages)
        if steps is not None:
            steps.open_next()  # the threads begin while this one issues
        self._issue_ready(run)
        spent: dict[str, float] = {}
        with self._no_downloads(worker), self._watchdog.on(f"{worker.doing} on {worker.device}, frame {run.number}"):
            if steps is None:
                spent = dict(worker.work(group.stages, group.row0, group.row1, run.work.state(HOST, group.reference)))
            else:
                steps.work(k, k + 1)
                if steps.error is not None:
                    raise steps.error
        for index in group.runs:
            run.done[index] = True
        return spent

    def _note(
        self, run: InFlightFrame, groups: Sequence[Group], spent: Sequence[Mapping[str, float]], seconds: dict[str, float]
    ) -> None:
        """Add the seconds of stages, by group, to those of the frame, and to the measurements."""
        with self._lock:
            for group, of_group in zip(groups, spent):
                for index, name in zip(group.runs, group.stages):
                    took = of_group.get(name, 0.0)  # 0: a stage that makes no call
                    seconds[name] = seconds.get(name, 0.0) + took
                    if run.is_measured:
                        self.adaptation.measured.append((run.order.ops[index], took))

    @contextmanager
    def _no_downloads(self, worker: CpuWorker) -> Iterator[None]:
        """Around the work of a worker whose kernels are compared with their twins (check.py): no rows of the GPU arrive
        meanwhile in the host arrays, which are compared as a whole.
        """
        if not worker.is_compared or self.gpu_worker is None:
            yield
            return
        with self._lock:  # so that no other worker issues downloads
            with self.gpu_worker.gpu:
                self.gpu_worker.gpu.synchronize(self.gpu_worker.streams[D2H])
            yield

    def _wait_for_last_frame(self, before: InFlightFrame) -> None:
        """Wait for the copies of the frame before to and from host arrays that this frame uses."""
        gpu_worker = self.gpu_worker
        assert gpu_worker is not None
        gpu, uploaded = gpu_worker.gpu, gpu_worker.uploaded(before.number)
        message = f"an upload of frame {before.number} to {gpu_worker.device}"
        with gpu:
            self._wait(before, lambda: gpu.done(uploaded), lambda: message)
        self.wait_for_downloads(before)

    def wait_for_downloads(self, run: InFlightFrame) -> None:
        """Wait for the downloads of a frame that the host reads in the next frames."""
        gpu_worker = self.gpu_worker
        copied = run.refs_copied
        if copied is not None and gpu_worker is not None:
            gpu, message = gpu_worker.gpu, f"a copy of frame {run.number} from {gpu_worker.device}"
            with gpu:
                self._wait(run, lambda: gpu.done(copied), lambda: message)

    def _is_done(self, run: InFlightFrame, index: int) -> bool:
        op = run.order.ops[index]
        if isinstance(op, Run) and not is_gpu(op.device):
            return run.done[index]
        return self._has_ended(run, index) or (self._issue_ready(run) and self._has_ended(run, index))

    def _has_ended(self, run: InFlightFrame, index: int) -> bool:
        """Whether an operation of the GPU is issued and has ended."""
        return self.gpu_worker is not None and index in run.events and self.gpu_worker.gpu.done(run.events[index])

    def _wait(self, run: InFlightFrame, is_over: Callable[[], bool], name: Callable[[], str]) -> None:
        """Wait until `is_over()`; raise the error of a worker that failed. A GPU that exceeds the limit counts as lost."""

        def look() -> bool:
            if run.error is not None:
                raise run.error
            return is_over()

        try:
            self._watchdog.wait(look, name)
        except Stuck as stuck:
            gpu_worker = self.gpu_worker
            if gpu_worker is not None and gpu_worker.device in str(stuck):
                raise gpu_worker.gpu.failed("a wait", stuck) from None
            raise

    @staticmethod
    def _name(run: InFlightFrame, index: int) -> str:
        op = run.order.ops[index]
        what = f"{op.stage} on {op.device}" if isinstance(op, Run) else f"{op.array[0]} from {op.source} to {op.target}"
        return f"{what}, frame {run.number}"

    def _issue_ready(self, run: InFlightFrame) -> bool:
        """Issue all GPU operations whose needs are done or issued; False: there is none. The GPU's context is current."""
        gpu_worker, one_cpu = self.gpu_worker, len(self.cpus) == 1
        if gpu_worker is None or (one_cpu and run.issued_at == run.ended):
            return False
        with self._lock:
            if run.issued_at < 0:
                self._sweep(run, BEGIN, lambda: gpu_worker.begin_copies(run.number))
            self._sweep(run, run.ended, lambda: self._issue(run, gpu_worker))
            run.issued_at = run.ended
        return True

    def _sweep(self, run: InFlightFrame, number: int, issue: Callable[[], None]) -> None:
        """Issue what a sweep has, by `issue` if it was not recorded."""
        gpu_worker = self.gpu_worker
        assert gpu_worker is not None
        if run.replayed is not None:
            sweep = run.replayed.replay(number, gpu_worker.gpu)
            run.events, run.at, run.refs_copied = sweep.events, [*sweep.at], sweep.refs_copied
        elif run.recorded is not None:
            with gpu_worker.gpu.record_calls(KEPT, run.work.with_placeholders()) as recording:
                issue()
            run.recorded[number] = Sweep(recording, {**run.events}, (*run.at,), run.refs_copied)
        else:
            issue()

    def _issue(self, run: InFlightFrame, gpu_worker: GpuWorker) -> None:
        """Issue all operations whose needs are done or issued."""
        progress = True
        while progress:
            progress = False
            for queue, indices in enumerate(run.order.queues):
                while run.at[queue] < len(indices) and self._may_issue(run, indices[run.at[queue]]):
                    index = indices[run.at[queue]]
                    op = run.order.ops[index]
                    gpu_worker.issue(op, run.number, [run.events[k] for k in run.order.waits[index]], run.work)
                    run.done[index] = True
                    if index in run.order.waited_for:
                        run.events[index] = gpu_worker.mark(index, op)
                    if index == run.order.refs_copied:
                        run.refs_copied = gpu_worker.record_refs_copied(run.number)
                    run.at[queue] += 1
                    progress = True

    def _may_issue(self, run: InFlightFrame, index: int) -> bool:
        return all(run.done[need] for need in run.order.ops[index].needs)

    def _end(self, run: InFlightFrame) -> tuple[Callable[[], None], Timed]:
        """A function that waits for the downloads of a frame, and its timed operations."""
        gpu_worker = self.gpu_worker
        if gpu_worker is None:
            return lambda: None, Timed([], [])
        with gpu_worker.gpu:
            event = self._events.pop() if self._events else gpu_worker.gpu.event()
            self._sweep(run, END, lambda: gpu_worker.end_copies(run.number))
            downloaded, timed = gpu_worker.end(event)
        if run.replayed is not None:
            timed = run.replayed.timed
        unread = [timed]

        def wait() -> None:
            assert gpu_worker is not None
            with gpu_worker.gpu:
                self._wait(run, lambda: gpu_worker.gpu.done(downloaded), lambda: f"frame {run.number} on {gpu_worker.device}")
                gpu_worker.gpu.synchronize(downloaded)
                while unread:  # this may be called again after an interrupt
                    self.adaptation.measured.extend(gpu_worker.seconds(unread.pop()))
            if downloaded not in self._events:
                self._events.append(downloaded)

        return wait, timed

    # ---- tasks
    def submit(self, ready: Callable[[], None], function: Callable[..., Result], *args: object) -> Task[Result]:
        """See Executor."""
        return (self.single_device_executor or self.cpus[0]).submit(ready, function, *args)

    def result(self, task: Task[Result]) -> Result:
        """See Executor; for tasks of every executor."""
        return self.cpus[0].result(task)

    def close(self, keep_host: bool = False) -> None:
        """End the threads and free memory; keep_host: see Executor.close."""
        self._watchdog.close()
        self.adaptation.wait_for_planner()
        if self._gpu_executor is not None:
            self._gpu_executor.finish()
        self._recorded_frames.clear()
        for worker in self.workers.values():
            worker.close(keep_host)
