"""Crew: every part once, steps in order, tasks beside them, errors and interrupts end the steps and nothing hangs."""

import gc
import threading
import time

import numpy as np
import pytest
from h264lite.scheduler.crew import PATIENCE, Crew
from h264lite.scheduler.executor import bands, shares


@pytest.fixture(params=[1, 2, 5])
def crew(request):
    crew = Crew(request.param)
    yield crew
    crew.close()


def test_every_part_once_and_steps_in_order(crew):
    for round_ in range(50):
        done: list[tuple[int, int]] = []
        sizes = [1, 7, 0, 3, 20]

        def part(step, k, done=done, sizes=sizes):
            def run():
                before = [other for other, _ in done if other < step]
                assert len(before) == sum(sizes[:step])
                done.append((step, k))

            return run

        crew.run([[part(step, k) for k in range(size)] for step, size in enumerate(sizes)])
        assert sorted(done) == [(step, k) for step, size in enumerate(sizes) for k in range(size)], round_


def test_tasks_run_beside_the_steps(crew):
    futures = [crew.submit(pow, k, 2) for k in range(20)]
    crew.run([[lambda: None] * 4] * 3)
    assert [crew.result(future) for future in futures] == [k * k for k in range(20)]
    failing = crew.submit(divmod, 1, 0)
    with pytest.raises(ZeroDivisionError):
        crew.result(failing)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_steps(crew, error):
    later = []

    def fail():
        raise error("here")

    with pytest.raises(error, match="here"):
        crew.run([[lambda: None] * 3, [fail, *[lambda: time.sleep(0.001)] * 6], [lambda: later.append(1)]])
    assert not later
    crew.run([[lambda: later.append(2)]])  # and the crew goes on
    assert later == [2]


def test_waiting_threads_sleep_and_wake():
    crew = Crew(3)
    time.sleep(10 * PATIENCE + 0.05)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1
    together = threading.Barrier(3)
    crew.run([[lambda: together.wait(20)] * 3])  # BrokenBarrierError if one of three does not wake
    crew.close()


def test_a_crew_that_is_dropped_ends_its_threads():
    before = threading.active_count()
    crew = Crew(4)
    assert threading.active_count() == before + 3
    del crew
    gc.collect()
    limit = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < limit:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_bands_cover_all_rows():
    rng = np.random.default_rng(5)
    for _ in range(300):
        rows, threads, least = (int(n) for n in rng.integers(1, (200, 70, 9)))
        for cut in (bands(rows, threads), shares(rows, threads, least)):
            assert [row for row0, row1 in cut for row in range(row0, row1)] == list(range(rows))
            assert all(row0 < row1 for row0, row1 in cut)
        if rows >= least:
            assert min(row1 - row0 for row0, row1 in cut) >= least
