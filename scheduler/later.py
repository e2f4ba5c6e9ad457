"""What is left to do with a picture when a card is done with it: little, so whoever asks for the result does it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Later(Future[Any]):
    """A task that runs when its result is asked for, in the thread that asks; one thread alone asks.

    A thread of its own would wait for the interpreter's lock, and others for its waking, longer than the task takes.
    """

    def __init__(self, ready: Callable[[], bool], function: Callable[..., Any], *args: Any) -> None:
        """ready: whether the task would not have to wait."""
        super().__init__()
        self._ready, self._function, self._args = ready, function, args

    def done(self) -> bool:
        """Whether the result is there, or can be had without waiting."""
        return super().done() or self._ready()

    def result(self, timeout: float | None = None) -> Any:
        """Do it, if it is not done; what it returned."""
        self._run()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Do it, if it is not done; what it raised."""
        self._run()
        return super().exception(timeout)

    def _run(self) -> None:
        if super().done():
            return
        try:
            value = self._function(*self._args)
        except Exception as error:  # as of any future; an interrupt goes to whoever asked, who may ask again
            self.set_exception(error)
        else:
            self.set_result(value)
