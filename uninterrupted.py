"""Calls that the exception of a signal's handler cannot cut, and how such an exception differs from a failure of a file."""

import _imp
import _thread
import threading
from collections.abc import Callable
from contextlib import suppress


class Uninterrupted:
    """Makes one call in another thread than the main one, in which alone Python runs the handlers of signals."""

    def __init__(self) -> None:
        self.ended = False
        self._failure: BaseException | None = None
        self._claim = _thread.allocate_lock()  # never released: the thread that takes it makes the call
        self._running = _thread.allocate_lock()
        self._running.acquire()

    def run(self, call: Callable[[], object]) -> None:
        """Make the call and wait for its end, then raise what has struck meanwhile, or what the call has raised.

        An exception of a handler may still come before the first line or after the last one. So it may be called again: it
        waits for the call that runs, and only begins it if no thread has.
        """
        interrupt: BaseException | None = None
        is_started = False
        while not self.ended:
            try:
                if not is_started:
                    if _thread.get_ident() == threading.main_thread().ident:
                        # one operation of the interpreter, unlike Thread.start, which waits and can be cut
                        _thread.start_new_thread(self._work, (call,))
                    else:
                        self._work(call)
                    is_started = True
                self._running.acquire()
            except RuntimeError as error:
                if is_started:
                    interrupt = error
                else:  # no more threads
                    self._work(call)
            except BaseException as error:
                interrupt = error
        failure, self._failure = interrupt or self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure, interrupt  # else the exception would keep this frame, and this frame the exception

    def _work(self, call: Callable[[], object]) -> None:
        if self._claim.acquire(blocking=False):
            try:
                call()
            except BaseException as error:
                self._failure = error
            self.ended = True
            self._running.release()


def release_imports() -> None:
    """Release the interpreter's lock of imports where an interrupt has cut an import of this thread as it took the lock.

    Else the imports of other threads wait for ever. No thread holds the lock while it runs other code than importlib's.
    """
    if _imp.lock_held():
        with suppress(RuntimeError):  # another thread holds it, within an import
            _imp.release_lock()


def check_of_file(error: BaseException) -> None:
    """Raise it again if it is no failure of a file but an OSError without a number, such as the TimeoutError of a handler."""
    if isinstance(error, OSError) and error.errno is None and not isinstance(error, ValueError):
        try:
            raise error
        finally:
            del error  # else it would keep this frame, and this frame the exception
