"""Turns of threads: one at a time, in the order of coming; who waits or is stopped holds up nobody."""

import threading
import time

import pytest
from h264lite.cuda_src.runtime import turns
from h264lite.cuda_src.runtime.turns import pause, turn


@pytest.fixture(autouse=True)
def nobodys(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 20.0)
    yield
    assert not turns._owner and not turns._waiting


def started(run, *arguments):
    thread = threading.Thread(target=run, args=arguments, daemon=True)
    thread.start()
    return thread


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_one_at_a_time_in_the_order_of_coming():
    order, at_work = [], []

    def run(number):
        with turn:
            at_work.append(number)
            time.sleep(0.002)
            order.append(number)
            assert at_work == [number]
            at_work.clear()

    threads = []
    with turn:
        assert turns.is_mine()
        for number in range(6):
            threads.append(started(run, number))
            wait_until(lambda: len(turns._waiting) == len(threads))
        assert not order
    assert not turns.is_mine()
    for thread in threads:
        thread.join(20)
    assert order == list(range(6))


def test_others_work_in_a_pause():
    with turn:
        with pause:
            other = started(lambda: turn.__enter__() or turn.__exit__())
            other.join(20)
            assert not other.is_alive() and not turns.is_mine()
        assert turns.is_mine()


def test_a_turn_within_a_turn_is_the_same():
    with turn:
        with turn:
            assert turns.is_mine()
        assert not turns.is_mine(), "others come first"
    assert not turns.is_mine()


def test_a_turn_that_does_not_end_is_taken_over(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.01)
    started(turn.__enter__).join(20)  # the thread was stopped in its turn
    with turn:
        assert turns.is_mine()


def test_an_exception_in_a_turn_ends_it():
    with pytest.raises(ZeroDivisionError), turn:
        raise ZeroDivisionError
