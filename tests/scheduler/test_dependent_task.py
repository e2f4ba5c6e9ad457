"""Tasks that wait for others: order, errors, and what may not be taken yet."""

import threading
from functools import partial

import pytest
from h264lite.scheduler.threads.dependent_task import ComputeOnce, DependentTask
from h264lite.scheduler.threads.pool import WorkerPool


@pytest.fixture(params=((1, True), (3, True), (1, False), (2, False), (5, False)), ids=str)
def pool(request):
    threads, caller_works = request.param
    workers = WorkerPool(threads, caller_works=caller_works)
    yield workers
    workers.close()


def start(pool, function, others=(), urgent=False):
    """The After and its task."""
    after = DependentTask(function, others, pool.wake, urgent)
    return after, pool.submit(after, may_run=after.may_run, urgent=urgent)


def test_each_runs_after_those_it_waits_for(pool):
    """Each of 60 waits for up to three of those before; the queue is not in order of the waits."""
    run_order, lock, dependents, tasks = [], threading.Lock(), [], []

    def note(k):
        with lock:
            run_order.append(k)

    for k in range(60):
        others = [dependents[j] for j in {k - 1 - k % 7, k - 3, k - 11} if j >= 0]
        after, task = start(pool, partial(note, k), others, k % 5 == 0)
        dependents.append(after)
        tasks.append(task)
    for task in tasks:
        pool.result(task)
    assert sorted(run_order) == list(range(60))
    place = {k: n for n, k in enumerate(run_order)}
    for k in range(60):
        assert all(place[j] < place[k] for j in {k - 1 - k % 7, k - 3, k - 11} if j >= 0)


def test_an_error_reaches_those_that_wait_and_is_gone_when_repeated(pool):
    fails = [True]

    def first():
        if fails[0]:
            raise ValueError("once")

    done = []
    one, task = start(pool, first)
    other, later = start(pool, lambda: done.append(1), [one])
    for failed in (task, later):
        with pytest.raises(ValueError, match="once"):
            pool.result(failed)
    assert not done and not one.is_over
    fails[0] = False
    pool.result(pool.submit(one))
    pool.result(pool.submit(other))
    other()
    assert done == [1] and one.is_over and other.error is None


def test_urgent_tasks_come_first():
    pool, gate, run_order = WorkerPool(1, caller_works=False), threading.Event(), []
    tasks = [pool.submit(gate.wait), *(pool.submit(run_order.append, k) for k in range(3))]
    tasks += [pool.submit(run_order.append, k, urgent=True) for k in (7, 8)]
    gate.set()
    for task in tasks:
        pool.result(task)
    assert run_order == [7, 8, 0, 1, 2]
    pool.close()


def test_a_task_runs_steps_with_the_others_help():
    """As many parts at once as the team has threads, and no more."""
    pool, lock, now, most = WorkerPool(6, team=3, caller_works=False), threading.Lock(), [0], [0]
    together = threading.Barrier(3)

    def part():
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(20)  # BrokenBarrierError if fewer take part
        with lock:
            now[0] -= 1

    for _ in range(20):
        pool.result(pool.submit(pool.run, [[part] * 3] * 2))
    assert most[0] == 3
    pool.close()


def test_closing_cancels_what_waits():
    pool, gate = WorkerPool(2, caller_works=False), threading.Event()
    one, task = start(pool, gate.wait)
    _, later = start(pool, lambda: None, [one])
    threading.Timer(0.1, gate.set).start()
    pool.close()
    assert task.done() and later.done()


def test_a_value_is_computed_once_by_whoever_comes_first():
    runs, gate = [], threading.Event()

    def value():
        runs.append(threading.get_ident())
        gate.wait(20)
        return 7

    once, computed = ComputeOnce(value), []
    threads = [threading.Thread(target=lambda: computed.append(once())) for _ in range(5)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert computed == [7] * 5 and len(runs) == 1 and once() == 7


def test_a_value_whose_computation_failed_is_computed_again():
    values = iter((ZeroDivisionError, 3))

    def value():
        outcome = next(values)
        if outcome is ZeroDivisionError:
            raise outcome
        return outcome

    once = ComputeOnce(value)
    with pytest.raises(ZeroDivisionError):
        once()
    assert once() == once() == 3
