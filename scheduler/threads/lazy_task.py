"""Tasks with a result for one thread: run by that thread (LazyTask) or by a worker thread (QueuedTask)."""

import threading
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

Result = TypeVar("Result")


class LazyTask(Generic[Result]):
    """A task that runs in the thread that asks for its result. Only one thread may ask.

    Another thread would not be faster: its waking and its wait for the interpreter's lock take longer than the task.
    """

    __slots__ = ("_args", "_error", "_function", "_ready", "_value")
    _value: Result  # once it exists

    def __init__(self, ready: Callable[[], bool], function: Callable[..., Result], *args: object) -> None:
        """ready: whether the task can run without waiting."""
        self._ready, self._args = ready, args
        self._function: Callable[..., Result] | None = function
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether the result exists, or can be computed without waiting."""
        return self._function is None or self._ready()

    def result(self) -> Result:
        """Run the task if it is not done. Returns its result or raises its error."""
        if error := self.exception():
            raise error
        return self._value

    def exception(self) -> Exception | None:
        """Run the task if it is not done. Returns its error or None. After an interrupt the caller may ask again."""
        if self._function is not None:
            try:
                self._value = self._function(*self._args)
            except Exception as error:
                self._error = error
            self._function = None
        return self._error


class QueuedTask(Generic[Result]):
    """A task that a thread of a WorkerPool runs. Only one thread may ask for its result.

    Not concurrent.futures.Future: its Condition is Python code, where an interrupt of the asking thread can leave a lock
    held, for which the other thread then waits for ever.
    """

    __slots__ = ("_args", "_done", "_error", "_function", "_over", "_value", "by_asker", "may_run")
    _value: Result  # once it exists

    def __init__(self, function: Callable[..., Result], *args: object, may_run: Callable[[], bool] | None = None) -> None:
        """may_run: whether a thread may take it from the queue; a thread that asks for the result does so when it may run."""
        self._function, self._args, self.may_run = function, args, may_run
        self._error: BaseException | None = None
        self._done = False
        self.by_asker = False  # run by the asking thread, and again after an interrupt
        self._over = threading.Lock()  # held until the task is done
        self._over.acquire()

    def run(self) -> None:
        """Run the task in this thread. An interrupt (no Exception) passes through, and the task stays undone."""
        if self._done:
            return
        try:
            self._value = self._function(*self._args)
        except Exception as error:
            self._error = error
        self._finish()

    def cancel(self) -> None:
        """End the task without running it: `result` raises CancelledError."""
        from concurrent.futures import CancelledError  # 3 ms, with the module logging

        self._error = CancelledError()
        self._finish()

    def _finish(self) -> None:
        self._done = True
        self._over.release()

    def done(self) -> bool:
        """Whether the task has ended."""
        return self._done

    def result(self) -> Result:
        """Wait for the task. Returns its result or raises its error."""
        if error := self.exception():
            raise error
        return self._value

    def exception(self) -> BaseException | None:
        """Wait for the task. Returns its error or None."""
        if self.by_asker:
            self.run()
        while not self._done:
            self._over.acquire()
        return self._error


Task: TypeAlias = QueuedTask[Result] | LazyTask[Result]  # run by a thread of a WorkerPool, or by the thread that asks
