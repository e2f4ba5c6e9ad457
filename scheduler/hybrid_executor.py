"""Runs a route: every side goes through its own operations in order, and waits where one needs what another side does.

The thread that calls is the processor's; before each of its steps it gives the card whatever can be given by then, so a
card waits for the processor only where it needs its rows, and the processor for a card only where it reads them. Operations
are measured; when the models have drifted far enough from what the plan was made with, there is a new plan. Bytes never
change with the plan.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .hybrid_program import Program
from .plan import HOST, Plan, is_card
from .route import COMPACT, Copy, Op, Picture, Run, route
from .sides import TWINS, CardSide, CpuSide
from .state import NOTHING, Valid
from .watchdog import Stuck, Watchdog

DRIFT = 0.1  # share of the measured time by which models have moved before there is a new plan
SETTLING = 3  # pictures between two plans at least
EVERY = 8  # the card's clock runs until everything was measured, then for one picture of so many
FIRST, FIRST_COUNTS = 3, 12  # the least of so many first measurements is taken into the average so many times
SPIKE = 2.0  # times what was expected: no later measurement counts for more
MOST_PROGRAMS = 256


class Work(Protocol):
    """What the loop knows of a picture: arrays by side."""

    def state(self, device: str, reference: int) -> Mapping[str, Any]:
        """What stages may ask for, in a step for one reference."""

    def pairs(self, card: str, op: Copy) -> Sequence[tuple[Any, np.ndarray]]:
        """(there, host) of the rows of a copy."""


@dataclass
class UnderWay:
    """A picture whose operations are being given out."""

    number: int
    program: Program
    work: Work
    over: list[bool]  # operations of CPU devices
    events: dict[int, Any] = field(default_factory=dict)  # behind operations of the card that somebody waits for
    at: list[int] = field(default_factory=list)  # of each queue
    carried: Any = None
    error: BaseException | None = None


class HybridExecutor:
    """CPU sides and at most one card. See Executor for what the loop asks of it.

    replan: makes a plan from models, None: the plan stays. models: takes what was measured (scheduler/models.py).
    """

    def __init__(
        self, plan: Plan, sides: Sequence[CpuSide | CardSide], watchdog: Watchdog, models: Any = None,
        replan: Callable[[Any], Plan] | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.sides, self.models = plan, {side.device: side for side in sides}, models
        self.cpus = [side for side in sides if isinstance(side, CpuSide)]
        cards = [side for side in sides if isinstance(side, CardSide)]
        if len(cards) > 1 or not self.cpus:
            raise ValueError(f"devices {list(self.sides)}: at least one CPU and at most one card")
        self.side = cards[0] if cards else None
        self.twins = TWINS if cards else 0
        self.plans = [plan]  # all so far
        self.loop_seconds: list[float] = []  # of the last P pictures
        self._replan, self._watchdog = replan, watchdog
        self._valid: Valid = NOTHING
        self._programs: dict[int, Program] = {}
        self._lock = threading.RLock()
        self._last: UnderWay | None = None
        self._measured: deque[tuple[Op, float]] = deque()
        self._events: list[Any] = []  # for the host's waiting, to be used again
        self._since_plan = 0
        self._planning: Future[Plan | None] | None = None
        self._planner: threading.Thread | None = None
        self._known: Plan | None = None  # of which everything was measured
        self._seen: dict[tuple[str, str], list[float]] = {}  # seconds a row, of the first ones on each device

    # ---- memory
    def zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An array of the host, where a card reaches it."""
        if self.side is None:
            return np.zeros(shape, dtype)
        with self.side.card:
            array = self.side.card.pinned(shape, dtype)
        array.fill(0)
        return array

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
        return nullcontext() if self.side is None or memory == HOST else self.side.card

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """See CudaExecutor."""
        return self.side.ordinal_of(pointer) if self.side else (None, -1)

    # ---- a picture
    def begin(self, number: int) -> None:
        """Before anything of picture `number` is given to a side; a new plan, if it is time for one."""
        self._learn()
        if self.side is not None:
            with self.side.card:
                self.side.begin(number, self._clocked(number))

    def _clocked(self, number: int) -> bool:
        """Whether the card's operations of a picture are timed."""
        side = self.side
        return side is not None and (side.traced or (self.models is not None and (not number % EVERY or not self._knows())))

    def _knows(self) -> bool:
        """Whether everything that the plan says was measured: a plan from guesses for some stages would move just these."""
        if self._known is not self.plan:
            pairs = [(stage, d) for stage, rows in self.plan.rows.items() for d, n in zip(self.plan.devices, rows) if n]
            if any(len(self._seen.get(pair, ())) <= FIRST for pair in pairs):
                return False
            self._known = self.plan
        return True

    def picture(self, number: int, picture: Picture, work: Work, seconds: dict[str, float]) -> tuple["UnderWay", Any]:
        """All operations of a picture. Returns it, and what waits until all is at home."""
        ops, self._valid = route(self.plan, picture, self._valid)
        program = self._programs.get(id(ops))
        if program is None:
            if len(self._programs) >= MOST_PROGRAMS:
                self._programs.clear()
            program = self._programs[id(ops)] = Program.of(ops)
        run = UnderWay(number, program, work, [False] * len(ops), at=[0] * len(program.queues))
        begin = time.perf_counter()
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
        if picture.n_ref:
            self.loop_seconds = [*self.loop_seconds[-63:], time.perf_counter() - begin]
        self._last = run
        return run, ready

    def _leave(self, side: CpuSide, done: threading.Event, number: int) -> None:
        """Wait until a side has left the picture; one that does not is left alone, as nobody can stop it."""
        try:
            self._watchdog.wait(done.is_set, lambda: f"{side.doing} on {side.device}, frame {number}")
        except Stuck:
            side.abandoned = True
            raise

    def _through(
        self, run: UnderWay, side: CpuSide, seconds: dict[str, float], done: threading.Event | None = None
    ) -> None:
        """One CPU device's way through a picture; whoever comes by gives the card what it can be given."""
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
                    self._measured.append((run.program.ops[index], took))
                self._pump(run)
        except BaseException as error:
            run.error = run.error or error
            if done is None:
                raise
        finally:
            if done is not None:
                done.set()

    def _wait_for_the_last(self, before: UnderWay) -> None:
        """What the picture before still copies from or to arrays of the host that this one uses."""
        side = self.side
        assert side is not None
        card, uploaded = side.card, side.uploaded(before.number)
        with card:
            self._wait(before, lambda: card.done(uploaded), lambda: f"an upload of frame {before.number} to {side.device}")
        self.settle(before)

    def settle(self, run: UnderWay) -> None:
        """Wait until what the host needs of a picture for the next ones is there."""
        side = self.side
        if run.carried is not None and side is not None:
            card = side.card
            with card:
                self._wait(run, lambda: card.done(run.carried), lambda: f"a copy of frame {run.number} from {side.device}")

    def _is_over(self, run: UnderWay, index: int) -> bool:
        op = run.program.ops[index]
        if isinstance(op, Run) and not is_card(op.device):
            return run.over[index]
        self._pump(run)
        if index not in run.events or self.side is None:
            return False
        with self.side.card:
            return self.side.card.done(run.events[index])

    def _wait(self, run: UnderWay, over: Callable[[], bool], what: Callable[[], str]) -> None:
        """Until something is over, unless something failed meanwhile; a card that does not come back counts as lost."""

        def look() -> bool:
            if run.error is not None:
                raise run.error
            return over()

        try:
            self._watchdog.wait(look, what)
        except Stuck as stuck:
            side = self.side
            if side is not None and side.device in str(stuck):
                raise side.card.failed("a wait", stuck) from None
            raise

    @staticmethod
    def _name(run: UnderWay, index: int) -> str:
        op = run.program.ops[index]
        what = f"{op.stage} on {op.device}" if isinstance(op, Run) else f"{op.array[0]} from {op.source} to {op.target}"
        return f"{what}, frame {run.number}"

    def _pump(self, run: UnderWay) -> None:
        """Give the card's streams all operations whose needs are over or given."""
        side = self.side
        if side is None or all(k == len(q) for k, q in zip(run.at, run.program.queues)):
            return
        with self._lock, side.card:
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
                        if index == run.program.carried:
                            run.carried = side.carry(run.number)
                        run.at[queue] += 1
                        going = True

    def _may_go(self, run: UnderWay, index: int) -> bool:
        return all(run.over[need] or need in run.events for need in run.program.ops[index].needs)

    def _end(self, run: UnderWay) -> Callable[[], None]:
        side = self.side
        if side is None:
            return lambda: None
        with side.card:
            home, spans, timed = side.end(run.number, self._events.pop() if self._events else side.card.event())

        def wait() -> None:
            assert side is not None
            with side.card:
                self._wait(run, lambda: side.card.done(home), lambda: f"frame {run.number} on {side.device}")
                side.card.synchronize(home)
                self._measured.extend(side.seconds(spans, timed))
            self._events.append(home)

        return wait

    # ---- adaptation
    def _learn(self) -> None:
        """What was measured into the models; a new plan if they have drifted. It is made beside the pictures."""
        if self.models is None or self._planning is not None:  # who plans holds the interpreter, and others up
            self._measured.clear()
        while self._measured:
            self._take(*self._measured.popleft())
        self._since_plan += 1
        if self._planning is not None:
            if self._planning.done():
                self._adopt(self._planning.result())
        elif self.models is None or not self._knows():
            return
        elif self._replan is not None and self._since_plan > SETTLING and self.models.drift() > DRIFT:
            self._planning = Future()
            work = self._planning, deepcopy(self.models)
            self.models.settle()
            self._planner = threading.Thread(target=self._make_plan, args=work, name="h264lite planner", daemon=True)
            self._planner.start()

    def _take(self, op: Op, seconds: float) -> None:
        """One measurement. A stage's first loads kernels; the least of the next ones counts for many; spikes are cut off."""
        if isinstance(op, Copy):
            self.models.observe_copy(op.source, op.target, op.bytes, seconds)
            return
        rows = op.row1 - op.row0
        if rows == 0 or op.stage == COMPACT:
            return
        key, count = (op.stage, op.device), 1
        seen = self._seen.setdefault(key, [])
        if len(seen) <= FIRST:
            seen.append(seconds / rows)
            if len(seen) <= FIRST:
                return
            seconds, count = rows * min(seen[1:]), FIRST_COUNTS
        elif self.models.knows(*key):
            seconds = min(seconds, SPIKE * self.models.seconds(*key, rows, self.mb_width))
        for _ in range(count):
            self.models.observe(*key, rows, self.mb_width, seconds)

    def _make_plan(self, future: "Future[Plan | None]", models: Any) -> None:
        assert self._replan is not None
        try:
            future.set_result(self._replan(models))
        except Exception:  # the plan that there is goes on
            future.set_result(None)

    def _adopt(self, plan: Plan | None) -> None:
        self._planning, self._since_plan = None, 0
        if plan is not None:
            if plan != self.plan:
                self.plans.append(plan)
            self.plan = plan

    mb_width = 1  # macroblocks in a row; the loop says it

    # ---- tasks
    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """See Executor."""
        return self.cpus[0].submit(function, *args)

    def result(self, future: "Future[Any]") -> Any:
        """See Executor."""
        return self.cpus[0].result(future)

    def close(self, keep_host: bool = False) -> None:
        """End the threads, give memory back."""
        self._watchdog.close()
        if self._planner is not None:
            self._planner.join()
        for side in self.sides.values():
            side.close(keep_host)
