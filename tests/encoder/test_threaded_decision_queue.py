"""Decisions in threads beside the loop: in order, one at a time; errors, and what an interrupt leaves."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.encoder import decision_queue, threaded_decision_queue
from h264lite.encoder.settings.config import Config
from h264lite.encoder.threaded_decision_queue import ThreadedDecisionQueue
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.lookahead.host_costs import FrameCosts

CONFIG = Config.from_options(width=16, height=16, device="cpu", threads=1)


class Decider:
    """In place of FrameDecider: decides about a frame when three later ones are there."""

    fails_at = None

    def __init__(self, *_):
        self.log, self.lock, self.expected, self.count = [], threading.Lock(), [], 0
        self.requests = SimpleNamespace(of_caller=lambda request: self.log.append(request))

    def check_next(self):
        pass

    def add(self, planes):
        assert self.lock.acquire(blocking=False), "two decisions at once"
        time.sleep(0.001)
        self.lock.release()
        if self.count == self.fails_at:
            raise MemoryError(self.count)
        self.count += 1
        return [self.spec(self.count - 4)] if self.count > 3 else []

    def flush(self):
        return [self.spec(k) for k in range(max(0, self.count - 3), self.count)]

    def spec(self, index):
        return SimpleNamespace(display_index=index)

    def expect(self, number, planes):
        self.expected.append(number)


@pytest.fixture(params=((2, False), (4, True)), ids=str)
def executor(request):
    threads, has_b_frames = request.param
    threads_of_cpu = Executor(threads, 4, [(0, 16)], has_b_frames=has_b_frames)
    yield threads_of_cpu
    threads_of_cpu.close()


@pytest.fixture(autouse=True)
def _decider(monkeypatch):
    monkeypatch.setattr(decision_queue, "FrameDecider", Decider)


def sources(frames):
    return [source for _, source in frames]


def test_frames_leave_in_order(executor):
    queue, numbers = ThreadedDecisionQueue(CONFIG, None, executor), []
    for k in range(50):
        queue.request(k if k % 10 == 4 else None)
        queue.enter(k)
        assert queue.count == k + 1 and len(queue._pending) <= threaded_decision_queue._MOST_PENDING
        numbers += sources(queue.leave())
    numbers += sources(queue.end())
    assert numbers == list(range(50)) == queue._decider.expected and queue.is_whole
    assert [request for request in queue._decider.log if request is not None] == [4, 14, 24, 34, 44]


def test_an_error_comes_later_and_ends_the_stream(executor, monkeypatch):
    monkeypatch.setattr(Decider, "fails_at", 20)
    queue, entered = ThreadedDecisionQueue(CONFIG, None, executor), 0
    with pytest.raises(MemoryError):
        for k in range(50):
            queue.enter(k)
            entered += 1
            list(queue.leave())
    assert 20 <= entered <= 20 + threaded_decision_queue._MOST_PENDING + 1
    assert not queue.is_whole


def test_no_decision_follows_one_that_was_interrupted(executor):
    queue = ThreadedDecisionQueue(CONFIG, None, executor)
    queue.enter(0)
    assert queue.is_whole
    queue.is_decided = False  # as an interrupt leaves it
    queue.enter(1)
    assert not queue.is_whole and queue._decider.count == 1


@pytest.mark.parametrize("start", (lambda work: work(), lambda work: None, "threads"), ids=("at once", "never", "threads"))
def test_costs_are_the_same_when_other_threads_search_ahead(executor, start):
    """A pair is searched by a free thread, or by the one that asks: the same costs."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 256, (80, 96), dtype=np.uint8)
    frames = [np.roll(base, (k, 2 * k), (0, 1)) for k in range(7)]
    plain = FrameCosts(96, 80)
    costs = FrameCosts(96, 80, start=executor.start_soon if start == "threads" else start)
    for n, luma in enumerate(frames):
        plain.add([luma])
        if n % 3:  # others are added before they are expected
            costs.expect(n, luma)
        costs.add([luma])
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
        plain.add([luma])
        keeping.add([luma])
    assert plain.b(0, 4, 2) == keeping.b(0, 4, 2)
    for question in ((0, 4, 2), (0, 2, 1)):
        expected, kept = plain.used_of_b(*question), keeping.used_of_b(*question)
        assert all(np.array_equal(*pair) for pair in zip(expected, kept, strict=True)), question
