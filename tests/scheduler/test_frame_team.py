"""Threads take part in compiled steps frame by frame, wait at gates, run tasks: a FrameTeam, and fewer threads."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.jit.atomics import fetch_add, give_way, load_acquire
from h264lite.jit.kernel import kernel
from h264lite.scheduler.compiled_frame import CompiledFrame
from h264lite.scheduler.threads.frame_team import WANTED, WENT
from h264lite.scheduler.threads.pool import LEAST_TEAM, WorkerPool

from ..support.waiting import wait_for

FEW, MANY = 3, LEAST_TEAM + 1


@kernel
def count(done, k):
    """One more call of part k."""
    fetch_add(done, k, 1)
    return 0


@kernel
def meet(done, k):
    """The same, and a wait until all parts are there, which need threads of their own."""
    fetch_add(done, k, 1)
    for other in range(done.size):
        while load_acquire(done, other) == 0:
            give_way()
    return 0


@pytest.fixture(params=[FEW, MANY])
def pool(request):
    pool = WorkerPool(request.param)
    yield pool
    pool.close()


def frame_of(done, sizes, function=count):
    """A frame of steps with so many parts; each part is a call with a number of its own."""
    numbers = iter(range(sum(sizes)))

    def stage(k):
        return SimpleNamespace(name=f"part {k}", cpu_function=function, around_span=lambda state: ([done, k], []))

    steps = [[[(stage(next(numbers)), (), {})] for _ in range(size)] for size in sizes]
    return CompiledFrame(lambda states: steps, [])


def test_every_part_once_in_every_frame(pool):
    done, frames, tasks = np.zeros(20, np.int64), 300, []
    frame = frame_of(done, [7, 1, 12])
    words = frame.words([])
    for n in range(frames):
        if n % 3 == 0:
            tasks.append(pool.submit(pow, n, 2))
        frame.run(words, {}, True, None, pool.run_steps)
        assert (done == n + 1).all()
    assert [pool.result(task) for task in tasks] == [n * n for n in range(0, frames, 3)]
    posts = pool._shared.team.posts
    if len(pool._threads) >= LEAST_TEAM:
        assert posts[WENT] <= posts[WANTED] == len(tasks)  # no task calls more threads than one to the interpreter


@pytest.mark.parametrize("sleep", [0.0, 0.1])  # they wait for the next frame, or have fallen asleep
def test_all_threads_take_part(pool, sleep):
    done = np.zeros(1 + len(pool._threads), np.int64)
    frame = frame_of(done, [done.size], meet)
    for _ in range(3):
        time.sleep(sleep)
        done[:] = 0
        steps = frame.steps(frame.words([]))
        pool.run_steps(steps)
        ran = {steps.threads.get(thread) for thread in steps.times[:, 2].tolist()}
        assert ran == {threading.current_thread().name, *(thread.name for thread in pool._threads)}


def test_a_step_begins_when_it_is_opened(pool):
    done = np.zeros(9, np.int64)
    frame = frame_of(done, [3, 3, 3])
    steps = frame.steps(frame.words([]), gated=True)
    with pool.sharing(steps):
        for k in range(3):
            time.sleep(0.01)
            assert done.sum() == 3 * k
            steps.open_next()
            wait_for(lambda k=k: done.sum() == 3 * k + 3)  # by the others
            steps.work(k, k + 1)
    by_step = frame.seconds_by_step(steps, None)
    assert [sum(seconds > 0 for seconds in of_step.values()) for of_step in by_step] == [3, 3, 3]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_threads_leave_a_frame_that_is_abandoned(pool, error):
    done = np.zeros(6, np.int64)
    frame = frame_of(done, [3, 3])
    for n in range(20):
        steps = frame.steps(frame.words([]), gated=True)
        with pytest.raises(error), pool.sharing(steps):
            steps.open_next()
            steps.work(0, 1)
            raise error
        assert done.tolist() == [n + 1] * 3 + [0] * 3  # the second step was opened for them to leave, not to work
    frame.run(frame.words([]), {}, True, None, pool.run_steps)
    assert done.tolist() == [21] * 3 + [1] * 3
