"""Adaptive quantisation in a thread without the interpreter: as in the thread of the calls, for all sizes and settings."""


import numpy as np
import pytest
from h264lite.encoder.decisions.adaptive_quantisation_async import AsyncAdaptiveQuantisation
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.threads.job_ring import MOST_JOBS

from ..inside import changed


def planes(rng, width, height):
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    return [rng.integers(0, rng.integers(2, 256), shape, np.uint8) for shape in shapes]


@pytest.mark.parametrize("size", [(64, 48), (33, 51), (16, 16), (1, 1), (146, 34)])
@pytest.mark.parametrize("mode", [1, 2, 3])
def test_the_same_numbers(size, mode):
    rng = np.random.default_rng(mode)
    config = Config.from_options(width=size[0], height=size[1], device="cpu", aq_mode=mode, aq_strength=0.7)
    plain, ahead = AsyncAdaptiveQuantisation(config), AsyncAdaptiveQuantisation(changed(config, device="cuda"))
    count = 2 * MOST_JOBS + 3  # the ring is full, and used again
    for _ in range(count):
        given = planes(rng, *size)
        plain.see(given)
        ahead.see(given)
    for n in (*range(1, count), 0):
        one, other = plain.take(n)(), ahead.take(n)()
        assert (one.offsets == other.offsets).all() and (one.error_weights == other.error_weights).all()
    assert len(ahead._threads) == 1 and not plain._threads
    ahead.close()


def test_without_the_tree_nothing_is_worth():
    config = Config.from_options(width=32, height=32, device="cpu", no_mbtree=True)
    ahead = AsyncAdaptiveQuantisation(changed(config, device="cuda"))
    ahead.see(planes(np.random.default_rng(1), 32, 32))
    assert ahead.take(0)().error_weights is None
    ahead.close()


def test_without_a_thread(monkeypatch):
    """The system starts none: the caller does the work."""
    monkeypatch.setattr("h264lite.scheduler.threads.semaphore.start_threads", lambda wanted, started: None)
    config = Config.from_options(width=32, height=32, device="cpu")
    ahead, plain = AsyncAdaptiveQuantisation(changed(config, device="cuda")), AsyncAdaptiveQuantisation(config)
    for one in (ahead, plain):
        one.see(planes(np.random.default_rng(1), 32, 32))
    assert (ahead.take(0)().offsets == plain.take(0)().offsets).all()
