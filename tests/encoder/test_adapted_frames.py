"""Adaptive quantisation of frames that wait: the same numbers by a GPU with their costs, by other threads, by the caller."""

from functools import partial

import numpy as np
import pytest
from h264lite.encoder.decisions.adapted_frames import AdaptedFrames
from h264lite.encoder.decisions.adaptive_quantisation import AqSettings
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.lookahead.gpu_or_host import GpuOrHostCosts
from h264lite.scheduler.lookahead.host_costs import FrameCosts

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401

SIZES = [(64, 48), (33, 51), (16, 16), (1, 1), (146, 34)]


def planes(rng, width, height):
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    return [rng.integers(0, rng.integers(2, 256), shape, np.uint8) for shape in shapes]


def config_of(size, **options):
    return Config.from_options(width=size[0], height=size[1], device="cpu", **options)


def assert_same(one, other):
    np.testing.assert_array_equal(one.offsets, other.offsets)
    np.testing.assert_array_equal(one.error_weights, other.error_weights)


@pytest.mark.parametrize("size", SIZES)
def test_other_threads(size):
    """Work that another thread has done, or not begun, when a frame is taken."""
    rng, config, waiting = np.random.default_rng(1), config_of(size), []
    plain = AdaptedFrames(config, FrameCosts(*size))
    ahead = AdaptedFrames(config, FrameCosts(*size), waiting.append)
    for _ in range(6):
        given = planes(rng, *size)
        plain.see(given)
        ahead.see(given)
    for work in waiting[::2]:
        work()
    assert len(waiting) == 6
    for n in (*range(1, 6), 0):
        assert_same(plain.take(n)(), ahead.take(n)())


@on_gpus
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize("copies", [False, True])
def test_a_gpu(driver, size, mode, copies):  # noqa: F811
    """As long as the costs of a frame are kept, in batches of any size, in memory that is used again."""
    rng, config = np.random.default_rng(mode), config_of(size, aq_mode=mode, aq_strength=0.7)
    costs = GpuOrHostCosts(0, *size, False, partial(FrameCosts, *size), copies, aq=AqSettings.of(config))
    plain, on_gpu = AdaptedFrames(config, FrameCosts(*size)), AdaptedFrames(config, costs)
    for n in range(12):
        given = planes(rng, *size)
        plain.see([plane.copy() for plane in given])
        on_gpu.see(given)
        costs.add(given)
        if copies:
            for plane in given:
                plane[...] = 0
        if n % 5 == 4:
            for taken in range(n - 4, n + 1):
                assert_same(plain.take(taken)(), on_gpu.take(taken)())
            costs.forget(n)
    assert sum(name == "aq_offsets" for name, *_ in driver.log) >= 10
    costs.close()
    assert not driver.allocations


@on_gpus
def test_a_lost_gpu(driver):  # noqa: F811
    """The host goes on, with the planes."""
    size, rng = (64, 48), np.random.default_rng(2)
    config = config_of(size)
    for fail_after in (0, 3, 9, 20):
        driver.launches, driver.fail_after = 0, fail_after
        costs = GpuOrHostCosts(0, *size, True, partial(FrameCosts, *size, 1), aq=AqSettings.of(config))
        plain, on_gpu = AdaptedFrames(config, FrameCosts(*size)), AdaptedFrames(config, costs)
        for n in range(6):
            given = planes(rng, *size)
            plain.see(given)
            on_gpu.see(given)
            costs.add(given)
            if n % 2:
                for taken in (n - 1, n):
                    assert_same(plain.take(taken)(), on_gpu.take(taken)())
        driver.fail_after = None
        costs.close()
