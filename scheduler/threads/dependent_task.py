"""Work that waits for other such work: frames in flight beside each other, for those that they refer to; decisions."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")
Starter = Callable[[Callable[[], object]], object]  # takes a function that a free thread may run


class DependentTask:
    """A function that may run when others have run. It runs once, however often it is called, unless it raises."""

    __slots__ = ("_function", "_others", "_wake", "error", "is_over", "urgent")

    def __init__(
        self, function: Callable[[], object], others: "Sequence[DependentTask]", wake: Callable[[], None], urgent: bool
    ) -> None:
        """wake: called at the end, for threads that look for work; urgent: before work that is not."""
        self._function, self._others, self._wake = function, others, wake
        self.is_over, self.urgent = False, urgent
        self.error: Exception | None = None  # of the last call

    def may_run(self) -> bool:
        """Whether a call would not wait; after an error of another one it raises that."""
        return all(other.is_over or other.error is not None for other in self._others)

    def __call__(self) -> None:
        """Run the function, in the thread that calls; one at a time."""
        if self.is_over:
            return
        self.error = None
        try:
            for other in self._others:
                if not other.is_over and other.error is not None:
                    raise other.error
            self._function()
            self._others, self._function = (), _nothing  # what they hold is free
            self.is_over = True
        except Exception as error:
            self.error = error
            raise
        finally:
            self._wake()


class ComputeOnce(Generic[Value]):
    """A value that the first thread computes that comes: one that is free, or one that needs it; others wait for that."""

    __slots__ = ("_function", "_lock", "_value")

    def __init__(self, function: Callable[[], Value]) -> None:
        self._function: Callable[[], Value] | None = function
        self._lock = threading.Lock()

    def __call__(self) -> Value:
        with self._lock:
            if self._function is not None:
                self._value = self._function()
                self._function = None
            return self._value


def _nothing() -> None:
    """What has run already."""
