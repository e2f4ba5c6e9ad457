"""Decisions in threads beside the loop: in order, one at a time; errors, and what an interrupt leaves."""

import threading
import time

import numpy as np
import pytest
from h264lite.encoder import threaded_decision_queue
from h264lite.encoder.decision_queue import DecisionQueue
from h264lite.encoder.threaded_decision_queue import ThreadedDecisionQueue
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.lookahead.host_costs import FrameCosts


class Held(DecisionQueue):
    """Decides about a frame when three later ones are there."""

    def __init__(self, config, warn=None, start=None):
        self.is_decided = self._have_left = True
        self.log, self.at_once, self.lock, self.fails_at = [], 0, threading.Lock(), config
        self._waiting, self._free, self.expected = [], [], []

    def request(self, request):
        self.log.append(("request", request))

    def enter(self, source, planes=()):
        self.is_decided = False
        assert self.lock.acquire(blocking=False), "two decisions at once"
        time.sleep(0.001)
        if source == self.fails_at:
            self.lock.release()
            raise MemoryError(source)
        self._waiting.append(source)
        self._free += self._waiting[:-3]
        self._waiting = self._waiting[-3:]
        self.lock.release()
        self.is_decided = True

    def expect(self, number, planes):
        self.expected.append(number)

    def leave(self, evenly=False):
        free, self._free = self._free, []
        return iter(free)

    def end(self):
        return iter([*self._free, *self._waiting] if self.is_whole else [])

    def close(self):
        self.log.append("closed")


@pytest.fixture(params=((2, False), (4, True)), ids=str)
def executor(request):
    threads, has_b_frames = request.param
    threads_of_cpu = Executor(threads, 4, [(0, 16)], has_b_frames=has_b_frames)
    yield threads_of_cpu
    threads_of_cpu.close()


@pytest.fixture(autouse=True)
def _held(monkeypatch):
    monkeypatch.setattr(threaded_decision_queue, "DecisionQueue", Held)


def test_frames_leave_in_order(executor):
    held, left = ThreadedDecisionQueue(None, None, executor), []
    for k in range(50):
        held.request(k if k % 10 == 4 else None)
        held.enter(k)
        assert held.count == k + 1 and len(held._pending) <= threaded_decision_queue._MOST_PENDING
        left += held.leave()
    left += held.end()
    assert left == list(range(50)) == held._decisions.expected and held.is_whole
    assert [request for name, request in held._decisions.log if request is not None] == [4, 14, 24, 34, 44]


def test_an_error_comes_later_and_ends_the_stream(executor):
    held, entered = ThreadedDecisionQueue(20, None, executor), 0
    with pytest.raises(MemoryError):
        for k in range(50):
            held.enter(k)
            entered += 1
            list(held.leave())
    assert 20 <= entered <= 20 + threaded_decision_queue._MOST_PENDING + 1
    assert not held.is_whole


def test_no_decision_follows_one_that_was_interrupted(executor):
    held = ThreadedDecisionQueue(None, None, executor)
    held.enter(0)
    assert held.is_whole
    held._decisions.is_decided = False  # as an interrupt leaves it
    held.enter(1)
    assert not held.is_whole and held._decisions._waiting == [0]


@pytest.mark.parametrize("start", (lambda work: work(), lambda work: None, "threads"), ids=("at once", "never", "threads"))
def test_costs_are_the_same_when_other_threads_search_ahead(executor, start):
    """A pair is searched by a free thread, or by the one that asks: the same costs."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 256, (80, 96), dtype=np.uint8)
    frames = [np.roll(base, (k, 2 * k), (0, 1)) for k in range(7)]
    plain = FrameCosts(96, 80)
    costs = FrameCosts(96, 80, start=executor.start_soon if start == "threads" else start)
    for n, luma in enumerate(frames):
        plain.add(luma)
        if n % 3:  # others are added before they are expected
            costs.expect(n, luma)
        costs.add(luma)
        assert costs.intra(n) == plain.intra(n)
        questions = [(n - 1, n), (0, n), (0, n, n // 2), (n - 1, n, n)] if n > 1 else []
        costs.ahead(questions)
        for question in questions[:3]:
            ask = "p" if len(question) == 2 else "b"
            assert getattr(costs, ask)(*question) == getattr(plain, ask)(*question), question


def test_motion_that_is_kept_is_the_same():
    """What the macroblock tree uses of B frames whose costs were asked for before, and of others."""
    rng = np.random.default_rng(4)
    base = rng.integers(0, 256, (80, 96), dtype=np.uint8)
    plain, keeping = FrameCosts(96, 80), FrameCosts(96, 80, keeps_used=True)
    for k in range(5):
        luma = np.clip(np.roll(base, (k, 2 * k), (0, 1)) + rng.integers(-9, 10, base.shape), 0, 255).astype(np.uint8)
        plain.add(luma)
        keeping.add(luma)
    assert plain.b(0, 4, 2) == keeping.b(0, 4, 2)
    for question in ((0, 4, 2), (0, 2, 1)):
        expected, kept = plain.used_of_b(*question), keeping.used_of_b(*question)
        assert all(np.array_equal(*pair) for pair in zip(expected, kept, strict=True)), question
