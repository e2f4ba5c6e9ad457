"""Costs of a GPU are those of the host: random frames and questions, batches of any size, bounded memory, lost GPUs."""

from contextlib import suppress

import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import DeviceMemoryError, GpuLost
from h264lite.scheduler.lookahead import gpu_costs
from h264lite.scheduler.lookahead.costs import CostPending
from h264lite.scheduler.lookahead.gpu_costs import GpuCosts
from h264lite.scheduler.lookahead.gpu_or_host import GpuOrHostCosts
from h264lite.scheduler.lookahead.host_costs import FrameCosts
from h264lite.scheduler.lookahead.lookahead_memory import LookaheadMemory

from ..cuda_emulator.fixtures import device, driver, on_gpus  # noqa: F401
from ..support.cuda_cases import SEED

WIDTH, HEIGHT = 68, 50


def frames(count, width=WIDTH, height=HEIGHT):
    """Moved noise, with a cut in the middle."""
    rng = np.random.default_rng([SEED, count])
    scenes = [np.kron(rng.integers(0, 256, (60, 70)), np.ones((3, 3))).astype(int) for _ in range(2)]
    lumas = []
    for n in range(count):
        moved = scenes[2 * n // count][2 * n : 2 * n + height, n : n + width] + rng.integers(-9, 10, (height, width))
        lumas.append(np.clip(moved, 0, 255).astype(np.uint8))
    return lumas


def host_costs(first):
    return FrameCosts(WIDTH, HEIGHT, 1, first)


def answers(costs, questions):
    return [answer(costs, question) for question in questions]


def answer(costs, question):
    """As asked for until it is there."""
    ask = {1: costs.intra, 2: costs.p, 3: costs.b}[len(question)]
    if len(question) == 3 and question[1] == question[2]:
        ask, question = costs.p_of_levels, question[:2]
    for _ in range(2):
        with suppress(CostPending):
            return ask(*question)
        costs.wait()
    return ask(*question)


def questions_of(rng, first, count):
    """By chance, of frames that are kept."""
    queries = []
    for _ in range(6):
        some = sorted(rng.permutation(np.arange(first, count))[: rng.integers(1, 4)].tolist())
        if len(some) == 2 and rng.integers(2):
            some.insert(1, some[1])  # with equal levels
        queries.append((some[0], some[2], some[1]) if len(some) == 3 else tuple(some))
    return queries


@pytest.mark.parametrize(("size", "quick"), [((WIDTH, HEIGHT), False), ((WIDTH, HEIGHT), True), ((33, 17), False)])
def test_same_costs(device, size, quick, monkeypatch):  # noqa: F811
    monkeypatch.setattr(gpu_costs, "MOST_PAIRS", 3)  # questions need several batches
    monkeypatch.setattr(gpu_costs, "MOST_TRIPLES", 2)
    monkeypatch.setattr(gpu_costs, "MOST_BATCHES", 2)
    """Whatever is asked, and in however many batches."""
    rng, host, gpu = np.random.default_rng(SEED), FrameCosts(*size, quick=quick), GpuCosts(device, *size, quick=quick)
    for n, luma in enumerate(frames(14, *size)):
        host.add([luma])
        gpu.add([luma])
        questions = questions_of(rng, gpu.first, n + 1)
        gpu.ahead([question for question in questions[:4] if len(question) < 3 or question[1] != question[2]])
        assert answers(gpu, questions) == answers(host, questions)
        assert [gpu.sharpness(number) for number in range(gpu.first, n)] == [host.sharpness(k) for k in range(gpu.first, n)]
        for number in {question[0] for question in questions if len(question) == 3 and question[1] == question[2]}:
            assert np.array_equal(gpu.brightness(number), host.brightness(number))
        before = max(0, n - 6)
        host.forget(before)
        gpu.forget(before)
    gpu.wait()
    with pytest.raises(KeyError):
        gpu.p(0, 13)


def test_memory_is_bounded(device):  # noqa: F811
    """Frames, motions and batches of forgotten frames are reused; answers about them are dropped."""
    gpu, held = GpuCosts(device, WIDTH, HEIGHT), []
    for n in range(40):
        gpu.add([np.full((HEIGHT, WIDTH), n, np.uint8)])
        gpu.ahead([(earlier, n) for earlier in range(max(0, n - 3), n)])
        if n >= 2:
            gpu.ahead([(n - 2, n, n - 1)])
        gpu.forget(n - 4)
        held.append(device.allocated_bytes)
    assert len(set(held[12:])) == 1
    gpu.wait()
    assert len(gpu.known) <= 6 * 5 and len(gpu._motions) <= 6 * 4
    assert len(gpu._frames) + len(gpu._memory._frames[False]) <= 6


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
@pytest.mark.parametrize("may_change", (False, True))
def test_a_lost_gpu(driver, silent, may_change):  # noqa: F811
    """The host goes on with the frames that are kept; a GPU that was named is missed."""
    lumas, rng = frames(8), np.random.default_rng(SEED)
    for fail_after in (0, 1, 5, 12, 30, 61):
        host, gpu_or_host = FrameCosts(WIDTH, HEIGHT), GpuOrHostCosts(0, WIDTH, HEIGHT, may_change, host_costs)
        driver.launches, driver.fail_after, driver.silent = 0, fail_after, silent
        try:
            for n, luma in enumerate(lumas):
                host.add([luma])
                gpu_or_host.add([luma])
                questions = questions_of(rng, max(0, n - 3), n + 1)
                gpu_or_host.ahead([(0, n)] if n < 3 else [])
                assert answers(gpu_or_host, questions) == answers(host, questions)
                for costs in (host, gpu_or_host):
                    costs.forget(n - 2)
            assert may_change
        except GpuLost:
            assert not may_change
        finally:
            driver.fail_after = None
            gpu_or_host.close()


def test_a_gpu_without_memory(driver, monkeypatch):  # noqa: F811
    def full(*_):
        raise DeviceMemoryError("full")

    luma = frames(2)[0]
    for may_change in (False, True):
        costs = GpuOrHostCosts(0, WIDTH, HEIGHT, may_change, host_costs)
        with monkeypatch.context() as patch:
            patch.setattr(LookaheadMemory, "_make_frames", full)
            if not may_change:
                with pytest.raises(DeviceMemoryError):
                    costs.add([luma])
            else:
                costs.add([luma])
                assert costs.intra(0) > 0
        costs.close()
    assert not driver.allocations
