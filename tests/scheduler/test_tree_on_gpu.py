"""The macroblock tree of a GPU is that of the host: random motion, B pyramids, any size; lost GPUs; without waits."""

import numpy as np
import pytest
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.lookahead.costs import CostPending
from h264lite.scheduler.lookahead.gpu_tree import GpuTree

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support.cuda_cases import SEED

WIDTH, HEIGHT = 68, 50


def clip_of(count):
    """Noise that moves by chance, with another part that does not, and a cut."""
    rng = np.random.default_rng([SEED, count])
    pictures = []
    for n in range(count):
        if n in (0, 2 * count // 3):
            scene = np.kron(rng.integers(0, 256, (40, 50)), np.ones((3, 3)))
            x = y = 20
        x, y = np.clip([x + rng.integers(-3, 4), y + rng.integers(-3, 4)], 0, 40)
        luma = scene[y : y + HEIGHT, x : x + WIDTH] + rng.integers(-6, 7, (HEIGHT, WIDTH))
        luma[:16, :20] = scene[:16, :20]
        chroma = rng.integers(0, rng.integers(2, 256), (2, HEIGHT // 2, WIDTH // 2), np.uint8)
        pictures.append((np.clip(luma, 0, 255).astype(np.uint8), *chroma))
    return pictures


def decided(device, clip, stop=None, **options):
    """Specs in coding order; stop: closed after so many frames, without a flush."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, device=device, threads=1, **{"crf": 24, **options})
    types = FrameDecider(config)
    try:
        specs = [spec for planes in clip[:stop] for spec in types.add(planes)]
        return specs if stop else specs + types.flush()
    finally:
        types.close()


CASES = (
    {"rc_lookahead": 5},
    {"rc_lookahead": 9, "bframes": 3, "scenecut": 40, "min_keyint": 2},
    {"rc_lookahead": 8, "bframes": 5, "b_pyramid": "dyadic", "ref": 3, "b_adapt": 0, "scenecut": 0, "aq_mode": 2},
    {"rc_lookahead": 20, "bframes": 2, "keyint": 7, "aq_mode": 1, "aq_strength": 2, "qcomp": 0},
)


@on_gpus
@pytest.mark.parametrize("options", CASES, ids=str)
def test_the_same_qps(driver, options):  # noqa: F811
    clip = clip_of(23)
    expected = decided("cpu", clip, **options)
    assert sum(bool(spec.mb_qp) for spec in expected) > 5 and len({spec.mb_qp for spec in expected}) > 5
    assert decided("cuda", clip, **options) == expected
    assert any(name == "tree_propagate" for name, *_ in driver.log)
    assert not driver.allocations


@on_gpus
@pytest.mark.parametrize("silent", (False, True))
def test_a_gpu_that_is_lost(driver, silent):  # noqa: F811
    """At any place, some of them between the start of a tree and its end."""
    clip, options = clip_of(16), {"rc_lookahead": 4, "bframes": 3, "aq_mode": 1}
    expected = decided("cpu", clip, **options)
    driver.launches = 0
    assert decided("auto", clip, **options) == expected
    total = driver.launches
    trees = [n for n, (name, *_) in enumerate(driver.log[-total:]) if name.startswith("tree")]
    for place in sorted({0, 7, total - 1, *trees[1::7], *(n + 1 for n in trees[::9])}):
        driver.launches, driver.fail_after, driver.silent = 0, place, silent
        assert decided("auto", clip, **options) == expected, place
        driver.fail_after = None


@on_gpus
def test_closed_early(driver):  # noqa: F811
    for stop in (1, 5, 7, 12):
        decided("cuda", clip_of(14), stop, rc_lookahead=4)
    assert not driver.allocations


@on_gpus
def test_late_trees_and_bounded_memory(driver, monkeypatch):  # noqa: F811
    """A tree that is late is waited for when the next one starts, not before; memory of frames that have left is reused."""
    clip, options = clip_of(4) * 8, {"rc_lookahead": 8, "keyint": 100, "scenecut": 0}
    expected, waits, held = decided("cpu", clip, **options), [], []
    result, make = GpuTree.result, GpuTree._make_memory

    def late(tree, wait):
        waits.append(wait)
        if not wait:
            raise CostPending
        return result(tree, wait)

    with monkeypatch.context() as patch:
        patch.setattr(GpuTree, "_make_memory", lambda self, frames: held.append(frames) or make(self, frames))
        assert decided("cuda", clip, **options) == expected
        assert held == [16]
        patch.setattr(GpuTree, "result", late)
        assert decided("cuda", clip, **options) == expected
    assert waits.count(True) <= len(clip) // 2 < len(waits) and waits[0] is False
