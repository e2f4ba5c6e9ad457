"""Worker pool: threads that run lists of steps together, and tasks alone.

Stages of a small frame take tens of microseconds; a pool of futures would cost as much again for each stage. So all threads
run a whole list of steps (parallel_steps.py). The caller is one of the threads, unless all work is tasks: then a task may run
a list, with the help of threads that are free. Between lists the threads poll for a while, then sleep.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ...jit.address_calls import MOST_WORDS
from ...jit.atomics import wait_until
from ...process import start_threads
from .frame_team import FrameTeam
from .lazy_task import LazyTask, QueuedTask, Task
from .parallel_steps import CompiledSteps, Part, PythonSteps, Steps

Result = TypeVar("Result")

# Threads beside the caller that wait for frames in compiled code. Fewer delay the caller less than their polling costs
# where two threads share a core.
LEAST_TEAM = 7
ROUNDS_OF_TASKS = 4_000  # reads of a counter before a thread sleeps where all work is tasks: it delays those that work


class _Shared:
    """The state that threads share with their WorkerPool, without a reference to the pool.

    The calling thread takes `lock` itself: an interrupt in the Python code of Condition would leave it held.
    """

    def __init__(self, caller_works: bool) -> None:
        self.caller_works = caller_works
        self.steps: Steps | None = None
        self.team = FrameTeam()
        self.tasks: deque[QueuedTask[Any]] = deque()
        self.urgent: deque[QueuedTask[Any]] = deque()
        self.asleep = 0
        self.lock = threading.RLock()
        self.wake = threading.Condition(self.lock)
        self.closing = False

    def post(self, threads: int) -> None:
        """There is work for so many threads."""
        self.team.post(threads)
        self.wake_some(threads)

    def wake_some(self, threads: int) -> None:
        """The same for those that sleep."""
        if self.asleep:
            with self.lock:
                self.wake.notify(threads)

    def notify(self) -> None:
        with self.lock:
            self.wake.notify_all()

    def run_task(self, by_asker: bool = False) -> bool:
        """Run one queued task. Returns whether there was one."""
        if not self.tasks and not self.urgent:  # without the lock, because threads poll this
            return False
        with self.lock:
            task = self._runnable(self.urgent, by_asker) or self._runnable(self.tasks, by_asker)
        if task is None:
            return False
        task.run()
        return True

    def _runnable(self, tasks: deque[QueuedTask[Any]], by_asker: bool) -> QueuedTask[Any] | None:
        """The first task that may run, out of its queue; None: there is none."""
        for task in tuple(tasks):  # others may be appended without the lock
            if task.may_run is None or task.may_run():
                task.by_asker = by_asker  # set before the task leaves the queue, so that an interrupt loses no task
                tasks.remove(task)
                return task
        return None

    def sleep(self, seen: int) -> None:
        with self.wake:
            self.asleep += 1  # before the posts are read; post() writes them before it reads `asleep`
            while not self.closing and self.team.posts[0] == seen:
                self.wake.wait()
            self.asleep -= 1


def _work(shared: _Shared) -> None:
    """Main loop of a thread: tasks first, then the current steps, then polling. Steps that a task runs come first: they are
    those of a frame that others wait for.
    """
    team, mine = shared.team, np.zeros(MOST_WORDS, np.int64)
    team.names[threading.get_native_id()] = threading.current_thread().name
    while not shared.closing:
        seen = int(team.posts[0])
        if not shared.caller_works:
            _help(shared)
        if shared.run_task():
            continue
        if shared.caller_works:
            _help(shared)
            seen = team.serve(seen, mine)
        elif wait_until(team.posts, 0, seen + 1, ROUNDS_OF_TASKS):
            continue
        if seen >= 0:
            shared.sleep(seen)


def _help(shared: _Shared) -> None:
    """Take part in the current steps."""
    steps = shared.steps
    if steps is not None and steps.join():
        steps.work()


def _always() -> bool:
    """A task without threads can always run."""
    return True


class WorkerPool:
    """`threads` threads including the caller, or fewer if the system starts no more. With one, all runs in the caller."""

    def __init__(self, threads: int, name: str = "h264lite", team: int | None = None, caller_works: bool = True) -> None:
        """team: of these that run the steps of a list; None: all. caller_works: it is one of the threads; else it sleeps
        while it waits, and there is one thread more.
        """
        self._team = threads if team is None else team
        self._caller_works = caller_works
        self._process, self._shared = os.getpid(), _Shared(caller_works)
        # The first kernel imports what loads kernels. Threads would wait for ever where an interrupt has cut an import of the
        # caller, which leaves the interpreter's lock of imports taken.
        self._shared.post(0)
        self._threads: list[threading.Thread] = []
        while not self._start(threads, name):  # half of those that started: later code needs memory and threads too
            threads = caller_works + len(self._threads) // 2
            self.close()
            self._shared = _Shared(caller_works)

    def _start(self, threads: int, name: str) -> bool:
        wanted = (
            threading.Thread(target=_work, args=(self._shared,), name=f"{name}-{k}", daemon=True)
            for k in range(self._caller_works, threads)
        )
        return start_threads(wanted, self._threads)

    def run(self, steps: Sequence[Sequence[Part]]) -> None:
        """Run steps in sequence. Raises the error of a part, and then skips the rest."""
        if not self._threads:
            for parts in steps:
                for part in parts:
                    part()
            return
        self.run_steps(PythonSteps(steps))

    def run_steps(self, work: Steps) -> None:
        """The same for steps that are made, with at least one thread beside the caller."""
        with self.sharing(work):
            work.work()

    @contextmanager
    def sharing(self, work: Steps, team: int | None = None) -> Iterator[None]:
        """Around the caller's part in steps: the other threads take part. Raises the error of a part. team: see __init__."""
        others, shared = (team or self._team) - 1, self._shared
        waits = shared.caller_works and others >= LEAST_TEAM  # for frames in compiled code
        compiled = work if waits and isinstance(work, CompiledSteps) else None
        try:
            if compiled is not None:
                shared.team.open(compiled, others)
                shared.wake_some(others)
            else:
                work.begin(others)
                shared.steps = work
                shared.post(others)
            yield
        except BaseException as error:  # for an interrupt between two parts
            work.error = error
            work.stop()
            raise
        finally:
            if compiled is not None:
                shared.team.close()
            elif shared.steps is work:
                shared.steps = None
        if work.error is not None:
            raise work.error

    @property
    def has_threads(self) -> bool:
        """Whether there are others than the caller."""
        return bool(self._threads)

    def submit(
        self, function: Callable[..., Result], *args: object, may_run: Callable[[], bool] | None = None, urgent: bool = False
    ) -> Task[Result]:
        """Start a task that runs concurrently; with one thread it runs when its result is asked for.

        may_run: see QueuedTask; `wake` follows when it changes. urgent: before the others.
        """
        if not self._threads:
            return LazyTask(_always, function, *args)
        task = QueuedTask(function, *args, may_run=may_run)
        (self._shared.urgent if urgent else self._shared.tasks).append(task)
        if may_run is None or may_run():
            self._shared.post(1)
        return task

    def wake(self) -> None:
        """Tasks may run that could not before."""
        waiting = *self._shared.urgent, *self._shared.tasks
        if ready := sum(task.may_run is None or task.may_run() for task in waiting):
            self._shared.post(ready)

    def result(self, task: Task[Result]) -> Result:
        """The result of a task. A caller that works runs queued tasks while it waits."""
        while self._caller_works and not task.done() and self._shared.run_task(by_asker=True):
            pass
        return task.result()

    def close(self) -> None:
        """Wait for running tasks and end the threads; queued tasks are cancelled."""
        self._shared.closing = True
        with self._shared.lock:  # no thread takes one meanwhile
            for tasks in (self._shared.urgent, self._shared.tasks):
                while tasks:
                    tasks.pop().cancel()
        self._shared.post(len(self._threads))
        for thread in self._threads:
            thread.join()
        self._threads = []

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:  # a name of the module is gone when Python ends
        shared = getattr(self, "_shared", None)  # none where its constructor was interrupted
        if shared is not None and self._process == getpid():  # after a fork the threads exist only in the parent
            shared.closing = True
            shared.notify()
