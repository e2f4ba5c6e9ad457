"""Adapts the plan during an encode: measurements update the models, and a new plan is made when the models have drifted.

Devices that the plan leaves idle are measured from time to time (probing.py). What a frame on several devices takes beyond
its stages and copies is the cost of their meetings; it is learned when frames do not take what the plan predicts.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ...process import start_threads
from ..stages import STAGES
from .plan import Plan, is_gpu
from .probing import WINDOW, Probing, idle_devices, probe
from .route import COMPACT, Copy, Op

DRIFT = 0.1  # share of the measured time by which models must change, or a prediction be wrong, before a new plan is made
JUDGING = 16  # frames of a plan before its prediction is judged
JUDGING_WEIGHT = 0.03  # of a frame in their average: one that takes long is no reason for another plan
SETTLING = 3  # minimum frames between two plans
FIRST, FIRST_COUNTS = 3, 12  # the least of the FIRST first measurements enters the average FIRST_COUNTS times
SPIKE = 2.0  # limit of later measurements, as a multiple of the expected time


@dataclass(eq=False)
class Planning:
    """A plan that is made, maybe by a thread. No lock: an interrupt in a caller that looks would leave it held."""

    plan: Plan | None = None
    meeting: float | None = None  # that of the models from now on; None: as it is
    is_done: bool = False  # then `plan` is there; None: none could be made


class Adaptation:
    """The current plan and its changes. models: None: nothing is measured; replan: makes a plan from models, None: it stays.

    probing: decides when idle devices are measured; None: never. clock: seconds. `probe`: the plan of this frame if it is a
    probe. learn_meeting: Models.meeting by a plan, models, and seconds a frame; None: it is not learned.
    """

    mb_width = 1  # macroblocks in a row; set by the loop
    in_thread = True  # plans are made on a thread

    def __init__(
        self, plan: Plan, models: Any = None, replan: Callable[[Any], Plan] | None = None, probing: Probing | None = None,
        clock: Callable[[], float] = time.perf_counter,
        learn_meeting: Callable[[Plan, Any, float], float] | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.models = plan, models
        self.plans = [plan]  # all so far
        self.probe: Plan | None = None
        self.probes = 0  # so far
        self.measured: deque[tuple[Op, float]] = deque()
        self._replan, self._clock, self._learn_meeting = replan, clock, learn_meeting
        self._frame_begun = 0.0
        self._judged, self._mean = 0, 0.0  # frames of this plan on several devices, and their average seconds
        self._probing = probing if replan is not None and models is not None else None
        self._idle = idle_devices(plan)
        self._window = self._turn = 0  # frames left in the WINDOW of a probe; index of the next idle device
        self._is_unanswered = False  # no measurement of the last probe has arrived yet
        self._begun = 0.0  # time at which the last frame or probe began
        self._since_plan = 0
        self._planning: Planning | None = None
        self._planner: threading.Thread | None = None
        self._known: Plan | None = None  # the last plan with all stages measured
        self._seen: dict[tuple[str, str], list[float]] = {}  # by (stage, device): seconds a row of the first measurements

    def knows(self) -> bool:
        """Whether all stages of the plan were measured; otherwise a new plan would move just the guessed stages."""
        if self.models is not None and self._known is not self.plan:
            pairs = [(stage, d) for stage, rows in self.plan.rows.items() for d, n in zip(self.plan.devices, rows) if n]
            if any(len(self._seen.get(pair, ())) <= FIRST for pair in pairs):
                return False
            self._known = self.plan
        return True

    @property
    def this(self) -> Plan:
        """The plan of this frame."""
        return self.probe or self.plan

    def learn(self, n_ref: int = 1) -> None:
        """Called before a frame with `n_ref` references: update the models, and start a new plan if they have drifted.

        The plan is made in a thread while frames are encoded.
        """
        self._frame_begun = self._clock()
        if self.models is None or self._planning is not None:  # planning holds the interpreter's lock
            self.measured.clear()
        answered = False
        while self.measured:
            answered |= self._add_measurement(*self.measured.popleft())
        self._since_plan += 1
        if self._planning is not None:
            if self._planning.is_done:
                self._adopt()
        elif self.models is not None and self.knows() and self._replan is not None:
            if self._since_plan > SETTLING and (self.models.drift() > DRIFT or self._is_mispredicted()):
                self._begin_plan()
            elif answered and self._is_unanswered and self._probing is not None:
                self._probing.confirmed()
            self._is_unanswered = self._is_unanswered and not answered
        if self._probing is not None:
            self._probe(n_ref)

    def issued(self, n_ref: int) -> None:
        """Called when all of a frame with `n_ref` references is done by the CPU, and issued to the GPU.

        A wait for the next frame is outside, so that a live source does not count. Frames that differ are left out: the first
        of a plan, probes, those without references, and those while a plan is made.
        """
        is_usual = self._since_plan > SETTLING and not self._window and self._planning is None and n_ref and self.knows()
        if self.plan.single is not None or not is_usual:
            return
        seconds = self._clock() - self._frame_begun
        if self._judged:
            seconds = min(seconds, SPIKE * self._mean)
        self._judged += 1
        self._mean += max(JUDGING_WEIGHT, 1 / self._judged) * (seconds - self._mean)

    def _is_mispredicted(self) -> bool:
        """Whether frames take longer or shorter than the plan says."""
        if self._learn_meeting is None or self._judged < JUDGING:
            return False
        error = self._mean - self.plan.seconds
        return abs(error) > DRIFT * self._mean and (error > 0 or self.models.meeting > 0)

    def _probe(self, n_ref: int) -> None:
        """Update the probing account; make this frame a probe if one is due."""
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
                self._window, self._is_unanswered = WINDOW, True
                self._turn += 1
                self.probes += 1

    def _begin_plan(self) -> None:
        self._planning = Planning()
        work = self._planning, deepcopy(self.models), self._mean if self._judged >= JUDGING else 0.0
        self.models.mark_planned()
        if not self.in_thread:
            self._make_plan(*work)
            return
        self._planner = threading.Thread(target=self._make_plan, args=work, name="h264lite planner", daemon=True)
        if not start_threads([self._planner], []):
            self._planner = None
            self._make_plan(*work)

    def _adopt(self) -> None:
        """Use the plan that was made, or keep the old one if planning failed."""
        assert self._planning is not None
        new_plan, meeting, self._planning = self._planning.plan, self._planning.meeting, None
        if meeting is not None:
            self.models.meeting = meeting
        if self._probing is not None and new_plan is not None:
            if new_plan in self.plans:
                self._probing.confirmed()
            else:
                self._probing.changed()
        self.change(new_plan if new_plan is not None else self.plan)

    def change(self, plan: Plan) -> None:
        """Use a plan from the next frame on."""
        self._since_plan = self._judged = 0
        self._mean = 0.0
        if plan != self.plan:
            self.plans.append(plan)
            self._idle = idle_devices(plan)
        self.plan = plan

    def _add_measurement(self, op: Op, seconds: float) -> bool:
        """Take one measurement. Returns whether it is of an idle device.

        The first of a stage is dropped, because it loads kernels; the least of the next FIRST counts FIRST_COUNTS times;
        later ones are limited to SPIKE times the expected time.
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

    def _make_plan(self, planning: Planning, models: Any, seconds: float) -> None:
        """Make a plan. seconds: measured, a frame of this plan on several devices; 0: not known."""
        assert self._replan is not None
        with suppress(Exception):  # the current plan stays
            if seconds and self._learn_meeting is not None:
                planning.meeting = models.meeting = self._learn_meeting(self.plan, models, seconds)
            planning.plan = self._replan(models)
        planning.is_done = True

    def wait_for_planner(self) -> None:
        """Wait until no plan is made. A thread that an interrupt has cut off at its start counts as ended, and makes none."""
        while self._planning is not None and not self._planning.is_done and self._planner is not None:
            if not self._planner.is_alive():
                break
            time.sleep(0.001)
