"""What is measured while pictures are encoded, into the models; and a new plan when these have moved far enough."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from copy import deepcopy
from typing import Any

from .plan import Plan
from .route import COMPACT, Copy, Op

DRIFT = 0.1  # share of the measured time by which models have moved before there is a new plan
SETTLING = 3  # pictures between two plans at least
FIRST, FIRST_COUNTS = 3, 12  # the least of so many first measurements is taken into the average so many times
SPIKE = 2.0  # times what was expected: no later measurement counts for more


class Adaptation:
    """The plan, and what becomes of it. models: None: nothing is measured; replan: from models to a plan, None: it stays."""

    mb_width = 1  # macroblocks in a row; the loop says it

    def __init__(self, plan: Plan, models: Any = None, replan: Callable[[Any], Plan] | None = None) -> None:
        self.plan, self.models = plan, models
        self.plans = [plan]  # all so far
        self.measured: deque[tuple[Op, float]] = deque()
        self._replan = replan
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

    def learn(self) -> None:
        """Before a picture: what was measured, into the models; a new plan if they have drifted. It is made beside the
        pictures."""
        if self.models is None or self._planning is not None:  # who plans holds the interpreter, and others up
            self.measured.clear()
        while self.measured:
            self._take(*self.measured.popleft())
        self._since_plan += 1
        if self._planning is not None:
            if self._planning.done():
                made, self._planning = self._planning.result(), None
                self.change(made if made is not None else self.plan)
        elif self.models is None or not self.knows():
            return
        elif self._replan is not None and self._since_plan > SETTLING and self.models.drift() > DRIFT:
            self._planning = Future()
            work = self._planning, deepcopy(self.models)
            self.models.settle()
            self._planner = threading.Thread(target=self._make_plan, args=work, name="h264lite planner", daemon=True)
            self._planner.start()

    def change(self, plan: Plan) -> None:
        """What holds from the next picture on."""
        self._since_plan = 0
        if plan != self.plan:
            self.plans.append(plan)
        self.plan = plan

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

    def settled(self) -> None:
        """Wait until no plan is being made."""
        if self._planner is not None:
            self._planner.join()
