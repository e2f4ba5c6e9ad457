"""Decisions about frames that wait, in threads of the CPU: while frames before are coded, ahead of these."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..scheduler.executor import Executor
from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.gpu_sources import GpuSource
from ..scheduler.threads.dependent_task import DependentTask
from ..scheduler.threads.lazy_task import Task
from .decision_queue import DecisionQueue
from .settings.config import Config
from .settings.frame_requests import Request

_MOST_PENDING = 8  # frames whose decision has not ended: what the caller may be ahead


class ThreadedDecisionQueue:
    """As DecisionQueue: the same decisions in the same order, each in a task, of which one runs at a time.

    Frames leave evenly, so that there are some to be coded while the next decisions are made. Errors of decisions are raised
    by a later call.
    """

    def __init__(self, config: Config, warn: Callable[[str], None] | None, executor: Executor) -> None:
        """warn: may be called in another thread."""
        self._decisions, self._executor = DecisionQueue(config, warn, start=executor.start_soon), executor
        self._last: list[DependentTask] = []
        self._pending: deque[Task] = deque()
        self._request: Request | None = None
        self.count = 0  # frames entered

    @property
    def ahead(self) -> tuple[FrameSpec, ...]:
        """See DecisionQueue."""
        return self._decisions.ahead

    @property
    def reads_from(self) -> int:
        """See DecisionQueue."""
        return self._decisions.reads_from

    @property
    def is_whole(self) -> bool:
        """See DecisionQueue."""
        for task in self._pending:
            task.exception()  # waits, and raises nothing
        return self._decisions.is_whole

    def __len__(self) -> int:
        return len(self._decisions)

    def enter(self, source: Any, planes: Sequence[np.ndarray] | GpuSource = ()) -> None:
        """See DecisionQueue. Waits while too many decisions are pending."""
        self._wait_for(_MOST_PENDING - 1)
        decide = partial(self._decide, self._request, source, planes)
        self._last = [self._executor.after(decide, self._last, urgent=True)]
        self._pending.append(self._executor.submit(self._last[0], self._last[0]))
        self._decisions.expect(self.count, planes)
        self.count += 1

    def leave(self, evenly: bool = True) -> Iterator[tuple[FrameSpec, Any]]:
        """See DecisionQueue."""
        while self._pending and self._pending[0].done():
            self._wait_for(len(self._pending) - 1)
        return self._decisions.leave(evenly)

    def end(self) -> Iterator[tuple[FrameSpec, Any]]:
        """See DecisionQueue."""
        self._wait_for(0)
        return self._decisions.end()

    def request(self, request: Request | None) -> None:
        """See DecisionQueue."""
        self._request = request

    def close(self) -> None:
        """See DecisionQueue. The executor is closed: no decision is under way."""
        self._decisions.close()

    def _wait_for(self, most: int) -> None:
        """Wait until at most so many decisions are pending."""
        while len(self._pending) > most:
            self._executor.result(self._pending[0])
            self._pending.popleft()

    def _decide(self, request: Request | None, source: Any, planes: Sequence[np.ndarray] | GpuSource) -> None:
        if self._decisions.is_decided:  # else an interrupt has ended the decision before
            self._decisions.request(request)
            self._decisions.enter(source, planes)
