"""Decisions about frames that wait, in threads of the CPU: while frames before are coded, ahead of these."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ..scheduler.executor import Executor
from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.device_frame import GpuSource
from ..scheduler.threads.dependent_task import DependentTask
from ..scheduler.threads.lazy_task import Task
from .decision_queue import AnySource, DecisionQueue
from .settings.config import Config
from .settings.frame_requests import Request

_MOST_PENDING = 8  # frames whose decision has not ended: what the caller may be ahead


class ThreadedDecisionQueue(DecisionQueue[AnySource]):
    """The same decisions in the same order, each in a task, of which one runs at a time. Errors are raised by a later call.

    The executor is closed before the queue: no decision is under way then.
    """

    def __init__(self, config: Config, warn: Callable[[str], None] | None, executor: Executor) -> None:
        """warn: may be called in another thread."""
        super().__init__(config, warn, start=executor.start_soon)
        self._executor = executor
        self._last: list[DependentTask] = []
        self._pending: deque[Task] = deque()

    @property
    def is_whole(self) -> bool:
        """Waits for the decisions that are pending."""
        for task in self._pending:
            task.exception()  # waits, and raises nothing
        return super().is_whole

    def enter(self, source: AnySource, planes: Sequence[np.ndarray] | GpuSource = ()) -> None:
        """Waits while too many decisions are pending."""
        self._wait_for(_MOST_PENDING - 1)
        decide = partial(self._decide_next, self.count, self._request, source, planes)
        self._last = [self._executor.after(decide, self._last, urgent=True)]
        self._pending.append(self._executor.submit(self._last[0], self._last[0]))
        self._decider.expect(self.count, planes)
        self.count += 1

    def leave(self, evenly: bool = True) -> Iterator[tuple[FrameSpec, AnySource]]:
        """Evenly, so that there are frames to be coded while the next decisions are made."""
        while self._pending and self._pending[0].done():
            self._wait_for(len(self._pending) - 1)
        return super().leave(evenly)

    def end(self) -> Iterator[tuple[FrameSpec, AnySource]]:
        """Waits for the decisions that are pending."""
        self._wait_for(0)
        return super().end()

    def _wait_for(self, most: int) -> None:
        """Wait until at most so many decisions are pending."""
        while len(self._pending) > most:
            self._executor.result(self._pending[0])
            self._pending.popleft()

    def _decide_next(
        self, number: int, request: Request | None, source: AnySource, planes: Sequence[np.ndarray] | GpuSource
    ) -> None:
        if self.is_decided:  # else an interrupt has ended the decision before
            self._decide(number, request, source, planes)
