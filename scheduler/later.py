"""What is left to do with a picture when a card is done with it: little, so whoever asks for the result does it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias


class Later:
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


Task: TypeAlias = Future[Any] | Later  # of a thread, or of whoever asks
