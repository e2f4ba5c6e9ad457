"""Decisions about frames that wait, in threads of the CPU: while frames before are coded, ahead of these."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..scheduler.executor import Executor
from ..scheduler.frame_spec import FrameSpec
from ..scheduler.frames.held_sources import HeldSource
from ..scheduler.threads.after import After
from ..scheduler.threads.lazy_task import Task
from .held_frames import HeldFrames
from .settings.config import Config
from .settings.requests import Request

_MOST = 8  # frames whose decision has not ended: what the caller may be ahead


class HeldBeside:
    """As HeldFrames: the same decisions in the same order, each in a task, of which one runs at a time.

    Frames leave evenly, so that there are some to be coded while the next decisions are made. Errors of decisions are raised
    by a later call.
    """

    def __init__(self, config: Config, warn: Callable[[str], None] | None, executor: Executor) -> None:
        """warn: may be called in another thread."""
        self._held, self._executor = HeldFrames(config, warn, start=executor.start_soon), executor
        self._last: list[After] = []
        self._pending: deque[Task] = deque()
        self._request: Request | None = None
        self.count = 0  # frames entered

    @property
    def ahead(self) -> tuple[FrameSpec, ...]:
        """See HeldFrames."""
        return self._held.ahead

    @property
    def reads_from(self) -> int:
        """See HeldFrames."""
        return self._held.reads_from

    @property
    def is_whole(self) -> bool:
        """See HeldFrames."""
        for task in self._pending:
            task.exception()  # waits, and raises nothing
        return self._held.is_whole

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, source: Any, planes: Sequence[np.ndarray] | HeldSource = ()) -> None:
        """See HeldFrames. Waits while too many decisions are pending."""
        self._settle(_MOST - 1)
        decide = partial(self._decide, self._request, source, planes)
        self._last = [self._executor.after(decide, self._last, urgent=True)]
        self._pending.append(self._executor.submit(self._last[0], self._last[0]))
        self._held.expect(self.count, planes)
        self.count += 1

    def leave(self, evenly: bool = True) -> Iterator[tuple[FrameSpec, Any]]:
        """See HeldFrames."""
        while self._pending and self._pending[0].done():
            self._settle(len(self._pending) - 1)
        return self._held.leave(evenly)

    def end(self) -> Iterator[tuple[FrameSpec, Any]]:
        """See HeldFrames."""
        self._settle(0)
        return self._held.end()

    def request(self, request: Request | None) -> None:
        """See HeldFrames."""
        self._request = request

    def close(self) -> None:
        """See HeldFrames. The executor is closed: no decision is under way."""
        self._held.close()

    def _settle(self, most: int) -> None:
        """Wait until at most so many decisions are pending."""
        while len(self._pending) > most:
            self._executor.result(self._pending[0])
            self._pending.popleft()

    def _decide(self, request: Request | None, source: Any, planes: Sequence[np.ndarray] | HeldSource) -> None:
        if self._held.is_decided:  # else an interrupt has ended the decision before
            self._held.request(request)
            self._held.enter(source, planes)
