"""mode_decision_b against its definition: lists, slices, both metrics, skipping, any number of threads."""

import threading

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import DecisionSettingsB, Planes
from h264lite.cpu_simd.mode_decision_b import mode_decision_b
from h264lite.standard.macroblock import B_8x8, B_8x16, B_16x8, B_16x16, B_DIRECT, B_SKIP, I_16x16

from ..b_scenes import results, scene
from ..naive_mode_decision_b import DecisionB
from ..quantiser import constant, varying

SEED = 43
WIDTH, HEIGHT = 80, 64
N_MB, ROWS = WIDTH * HEIGHT // 256, HEIGHT // 16


def decide(s, settings, threads=1, rows=(0, ROWS), out=None):
    out = out or results(N_MB, 99)
    progress = np.zeros(1 + ROWS, np.int64)
    source = Planes(s["source"], s["source"][:1], s["source"][:1])
    where = s["candidates"], s["still"], s["other_costs"], s["first"], s["qp"]

    def run():
        mode_decision_b(source, s["references"], *where, settings, progress, *rows, out)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return out


def assert_defined(s, settings, out):
    state = results(N_MB)
    for mb in range(N_MB):
        prior = [(state.ref_idx, state.mv), (state.ref_idx1, state.mv1)]
        kind, subs, motion = DecisionB(s, mb, prior, settings).choose()
        assert (out.mb_type[mb], out.sub_mb_type[mb].tolist()) == (kind, list(subs)), mb
        for k, (ref_idx, mv) in enumerate(motion):
            prior[k][0][mb], prior[k][1][mb] = ref_idx, mv
            np.testing.assert_array_equal(out[2 + 2 * k][mb], ref_idx, err_msg=f"{mb}")
            np.testing.assert_array_equal(out[3 + 2 * k][mb], mv, err_msg=f"{mb}")


@pytest.mark.parametrize("cabac", [0, 1])
def test_against_the_definition(cabac):
    print("seed", SEED)
    seen: set[int] = set()
    for n, (n_ref, n_ref1, subme, mask, qp, psy) in enumerate((
        (1, 1, 5, 31, 27, 0), (2, 1, 7, 31, 24, 0), (3, 2, 6, 7, 30, 0), (1, 1, 2, 31, 27, 0), (2, 2, 6, 15, None, 300),
        (1, 1, 6, 3, 34, 256), (4, 1, 5, 1, 20, 0), (2, 1, 7, 31, None, 0),
    )):  # fmt: skip
        rng = np.random.default_rng(SEED + n)
        qps = varying(rng, N_MB) if qp is None else constant(N_MB, qp)
        s = scene(rng, WIDTH, HEIGHT, n_ref, n_ref1, qps, weighted=n % 2 == 1, reach=(6, 3, 900)[n % 3])
        settings = DecisionSettingsB(subme, cabac, mask, psy)
        out = decide(s, settings)
        assert_defined(s, settings, out)
        seen |= set(out.mb_type.tolist())
        for threads in (2, 5):
            for a, b in zip(decide(s, settings, threads), out):
                np.testing.assert_array_equal(a, b)
        halves = decide(s, settings, rows=(0, 1))
        for a, b in zip(decide(s, settings, 2, (1, ROWS), halves), out):
            np.testing.assert_array_equal(a, b)
    expected = {B_16x16, B_16x8, B_8x16, B_8x8, B_DIRECT, I_16x16}
    assert seen == (expected | {B_SKIP} if cabac else expected)
