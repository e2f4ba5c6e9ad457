"""Tasks whose result one thread asks for: run by that thread, or by a thread of a crew."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeAlias


class LazyTask:
    """As a Future of a task that runs when its result is asked for, in the thread that asks; one thread alone asks.

    A thread of its own would wait for the interpreter's lock, and others for its waking, longer than the task takes.
    """

    __slots__ = ("_args", "_error", "_function", "_ready", "_value")

    def __init__(self, ready: Callable[[], bool], function: Callable[..., Any], *args: Any) -> None:
        """ready: whether the task would not have to wait."""
        self._ready, self._args = ready, args
        self._function: Callable[..., Any] | None = function
        self._value: Any = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether the result is there, or can be had without waiting."""
        return self._function is None or self._ready()

    def result(self) -> Any:
        """Do it, if it is not done; what it returned."""
        if error := self.exception():
            raise error
        return self._value

    def exception(self) -> Exception | None:
        """Do it, if it is not done; what it raised. An interrupt goes to whoever asks, who may ask again."""
        if self._function is not None:
            try:
                self._value = self._function(*self._args)
            except Exception as error:
                self._error = error
            self._function = None
        return self._error


class QueuedTask:
    """A task that a thread of a crew runs; one thread alone asks for its result.

    Not concurrent.futures.Future: its Condition is Python code, in which an interrupt of the asking thread leaves a lock
    held, for which the other thread then waits for ever.
    """

    __slots__ = ("_args", "_done", "_error", "_function", "_over", "_value", "by_asker")

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._function, self._args = function, args
        self._value: Any = None
        self._error: BaseException | None = None
        self._done = False
        self.by_asker = False  # the asking thread runs it, and runs it again after an interrupt
        self._over = threading.Lock()  # held until the task is done
        self._over.acquire()

    def run(self) -> None:
        """Run it here. An interrupt (no Exception) passes through and leaves it undone."""
        if self._done:
            return
        try:
            self._value = self._function(*self._args)
        except Exception as error:
            self._error = error
        self._finish()

    def cancel(self) -> None:
        """Not run: its result is CancelledError."""
        self._error = CancelledError()
        self._finish()

    def _finish(self) -> None:
        self._done = True
        self._over.release()

    def done(self) -> bool:
        """Whether the result is there."""
        return self._done

    def result(self) -> Any:
        """What it returned; waits for it. Raises what it raised."""
        if error := self.exception():
            raise error
        return self._value

    def exception(self) -> BaseException | None:
        """What it raised; waits for it."""
        if self.by_asker:
            self.run()
        while not self._done:
            self._over.acquire()
        return self._error


Task: TypeAlias = QueuedTask | LazyTask  # run by a thread of a crew, or by the one that asks
