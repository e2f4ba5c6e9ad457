"""What is measured while pictures are encoded, into the models; and a new plan when these have moved far enough.

Devices that the plan leaves idle are measured now and then as well (probing.py).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from copy import deepcopy
from typing import Any

from ...start_threads import start_threads
from ..stages import STAGES
from .plan import Plan, is_gpu
from .probing import WINDOW, Probing, idle_devices, probe
from .route import COMPACT, Copy, Op

DRIFT = 0.1  # share of the measured time by which models have moved before there is a new plan
SETTLING = 3  # pictures between two plans at least
FIRST, FIRST_COUNTS = 3, 12  # the least of so many first measurements is taken into the average so many times
SPIKE = 2.0  # times what was expected: no later measurement counts for more


class Adaptation:
    """The plan, and what becomes of it. models: None: nothing is measured; replan: from models to a plan, None: it stays.

    probing: when idle devices are asked; None: never. clock: seconds. `probe`: the plan of this picture, if it is one.
    """

    mb_width = 1  # macroblocks in a row; the loop says it
    beside = True  # plans are made on a thread

    def __init__(
        self, plan: Plan, models: Any = None, replan: Callable[[Any], Plan] | None = None, probing: Probing | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        self.plan, self.models = plan, models
        self.plans = [plan]  # all so far
        self.probe: Plan | None = None
        self.probes = 0  # so far
        self.measured: deque[tuple[Op, float]] = deque()
        self._replan, self._clock = replan, clock
        self._probing = probing if replan is not None and models is not None else None
        self._idle = idle_devices(plan)
        self._window = self._turn = 0  # pictures until a probe is paid; whose turn it is
        self._asked = False  # a probe has not been answered yet
        self._begun = 0.0  # the last picture, or the last probe
        self._since_plan = 0
        self._planning: Future[Plan | None] | None = None
        self._planner: threading.Thread | None = None
        self._known: Plan | None = None  # of which everything was measured
        self._seen: dict[tuple[str, str], list[float]] = {}  # seconds a row, of the first ones on each device

    def knows(self) -> bool:
        """Whether everything that the plan says was measured: a plan from guesses for some stages would move just these."""
        if self.models is not None and self._known is not self.plan:
            pairs = [(stage, d) for stage, rows in self.plan.rows.items() for d, n in zip(self.plan.devices, rows) if n]
            if any(len(self._seen.get(pair, ())) <= FIRST for pair in pairs):
                return False
            self._known = self.plan
        return True

    @property
    def this(self) -> Plan:
        """The plan of this picture."""
        return self.probe or self.plan

    def learn(self, n_ref: int = 1) -> None:
        """Before a picture with so many references: what was measured, into the models; a new plan if they have drifted.

        It is made beside the pictures.
        """
        if self.models is None or self._planning is not None:  # who plans holds the interpreter, and others up
            self.measured.clear()
        answered = False
        while self.measured:
            answered |= self._take(*self.measured.popleft())
        self._since_plan += 1
        if self._planning is not None:
            if self._planning.done():
                self._adopt()
        elif self.models is not None and self.knows() and self._replan is not None:
            if self._since_plan > SETTLING and self.models.drift() > DRIFT:
                self._begin_plan()
            elif answered and self._asked and self._probing is not None:
                self._probing.confirmed()
            self._asked = self._asked and not answered
        if self._probing is not None:
            self._probe(n_ref)

    def _probe(self, n_ref: int) -> None:
        """Keep the account; make this picture a probe if it is time for one."""
        probing, now = self._probing, self._clock()
        assert probing is not None
        self.probe = None
        if self._window:
            self._window -= 1
            if self._window:
                return
            probing.paid(now - self._begun)
        elif self._begun:
            probing.passed(now - self._begun)
        self._begun = now
        if not self._idle or n_ref == 0 or self._planning is not None or not self.knows():
            return
        k = self._idle[self._turn % len(self._idle)]
        device = self.plan.devices[k]
        if probing.due(is_gpu(device) or any(of == device for _, of in self._seen)):
            self.probe = probe(self.plan, k)
            if self.probe is not None:
                self._window, self._asked = WINDOW, True
                self._turn += 1
                self.probes += 1

    def _begin_plan(self) -> None:
        self._planning = Future()
        work = self._planning, deepcopy(self.models)
        self.models.settle()
        if not self.beside:
            self._make_plan(*work)
            return
        self._planner = threading.Thread(target=self._make_plan, args=work, name="h264lite planner", daemon=True)
        if not start_threads([self._planner], []):
            self._planner = None
            self._make_plan(*work)

    def _adopt(self) -> None:
        """The plan that was made; None if it could not be."""
        assert self._planning is not None
        made, self._planning = self._planning.result(), None
        if self._probing is not None and made is not None:
            if made in self.plans:
                self._probing.confirmed()
            else:
                self._probing.changed()
        self.change(made if made is not None else self.plan)

    def change(self, plan: Plan) -> None:
        """What holds from the next picture on."""
        self._since_plan = 0
        if plan != self.plan:
            self.plans.append(plan)
            self._idle = idle_devices(plan)
        self.plan = plan

    def _take(self, op: Op, seconds: float) -> bool:
        """One measurement; whether it says how fast an idle device is. A stage's first loads kernels; the least of the next
        ones counts for many; spikes are cut off.
        """
        if isinstance(op, Copy):
            self.models.observe_copy(op.source, op.target, op.bytes, seconds)
            return False
        rows = op.row1 - op.row0
        if rows == 0 or op.stage == COMPACT:
            return False
        key, count = (op.stage, op.device), 1
        seen = self._seen.setdefault(key, [])
        if len(seen) <= FIRST:
            seen.append(seconds / rows)
            if len(seen) <= FIRST:
                return False
            seconds, count = rows * min(seen[1:]), FIRST_COUNTS
        elif self.models.knows(*key):
            seconds = min(seconds, SPIKE * self.models.seconds(*key, rows, self.mb_width))
        idle = any(self.plan.devices[k] == op.device for k in self._idle)
        for _ in range(count):
            self.models.observe(*key, rows, self.mb_width, seconds, self.plan.mb_height if idle else None)
        if idle:
            self.models.follow(op.device, STAGES)
        return idle

    def _make_plan(self, future: "Future[Plan | None]", models: Any) -> None:
        assert self._replan is not None
        try:
            future.set_result(self._replan(models))
        except Exception:  # the plan that there is goes on
            future.set_result(None)

    def settled(self) -> None:
        """Wait until no plan is being made."""
        if self._planner is not None:
            self._planner.join()
