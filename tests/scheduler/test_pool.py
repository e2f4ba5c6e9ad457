"""WorkerPool: every part once, steps in order, tasks beside them, errors and interrupts end the steps and nothing hangs."""

import gc
import threading
import time

import numpy as np
import pytest
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.executor import bands, shares
from h264lite.scheduler.threads.pool import WorkerPool

from ..support.waiting import wait_for


@pytest.fixture(params=[1, 2, 5])
def pool(request):
    pool = WorkerPool(request.param)
    yield pool
    pool.close()


def test_every_part_once_and_steps_in_order(pool):
    for round_ in range(50):
        done: list[tuple[int, int]] = []
        sizes = [1, 7, 0, 3, 20]

        def part(step, k, done=done, sizes=sizes):
            def run():
                before = [other for other, _ in done if other < step]
                assert len(before) == sum(sizes[:step])
                done.append((step, k))

            return run

        pool.run([[part(step, k) for k in range(size)] for step, size in enumerate(sizes)])
        assert sorted(done) == [(step, k) for step, size in enumerate(sizes) for k in range(size)], round_


def test_tasks_run_beside_the_steps(pool):
    futures = [pool.submit(pow, k, 2) for k in range(20)]
    pool.run([[lambda: None] * 4] * 3)
    assert [pool.result(future) for future in futures] == [k * k for k in range(20)]
    failing = pool.submit(divmod, 1, 0)
    with pytest.raises(ZeroDivisionError):
        pool.result(failing)


def test_an_interrupt_leaves_a_task_to_be_asked_for_again(pool):
    """In the thread that asks; others have none."""
    here, interrupts = threading.current_thread(), [KeyboardInterrupt] * 2

    def task():
        if threading.current_thread() is here and interrupts:
            raise interrupts.pop()
        return 7

    future, raised = pool.submit(task), 0
    for _ in range(3):
        try:
            result = pool.result(future)
        except KeyboardInterrupt:
            raised += 1
    assert result == 7 and raised == 2 - len(interrupts) and (raised == 2 or pool._threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_pictures_come_whole_behind_an_interrupt(threads, monkeypatch):
    """While the caller writes the bits of one."""
    pipeline = Pipeline(Config.from_options(width=32, height=32, device="cpu", threads=threads, qp=26, bframes=0))
    write, interrupts, frames = pipeline.writer.access_unit, [KeyboardInterrupt], []

    def access_unit(frame):
        if frame.spec.display_index == 2 and threading.current_thread() is threading.main_thread() and interrupts:
            raise interrupts.pop()
        return write(frame)

    monkeypatch.setattr(pipeline.writer, "access_unit", access_unit)
    for n in range(6):
        try:
            frames += pipeline.encode(tuple(np.full((size, size), 40 * n, np.uint8) for size in (32, 16, 16)))
        except KeyboardInterrupt:
            continue
    for _ in range(2):
        try:
            frames += pipeline.flush()
        except KeyboardInterrupt:
            continue
    pipeline.close()
    assert [frame.index for frame in frames] == list(range(6))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_steps(pool, error):
    later = []

    def fail():
        raise error("here")

    with pytest.raises(error, match="here"):
        pool.run([[lambda: None] * 3, [fail, *[lambda: time.sleep(0.001)] * 6], [lambda: later.append(1)]])
    assert not later
    pool.run([[lambda: later.append(2)]])  # and the pool goes on
    assert later == [2]


def test_waiting_threads_sleep_and_wake():
    pool = WorkerPool(3)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1
    together = threading.Barrier(3)
    pool.run([[lambda: together.wait(20)] * 3])  # BrokenBarrierError if one of three does not wake
    pool.close()


def test_a_crew_that_is_dropped_ends_its_threads():
    before = threading.active_count()
    pool = WorkerPool(4)
    assert threading.active_count() == before + 3
    del pool
    gc.collect()
    wait_for(lambda: threading.active_count() == before, 5)


def test_bands_cover_all_rows():
    rng = np.random.default_rng(5)
    for _ in range(300):
        rows, threads, least = (int(n) for n in rng.integers(1, (200, 70, 9)))
        for cut in (bands(rows, threads), shares(rows, threads, least)):
            assert [row for row0, row1 in cut for row in range(row0, row1)] == list(range(rows))
            assert all(row0 < row1 for row0, row1 in cut)
        if rows >= least:
            assert min(row1 - row0 for row0, row1 in cut) >= least
