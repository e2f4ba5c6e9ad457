"""subpel_refine against its definition: every effort, noise and extremes, partitions left out, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED, LAMBDA
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.search.subpel_refine import subpel_refine

from ..support import naive
from ..support.quantiser import constant

SEED, QP = 99, 26


def searched(rng, kind, pad=48, width=32, height=48):
    """source, half-sample planes, predictor, and what full_search found."""
    inside = rng.integers(0, 256, (height, width))
    if kind == "extreme":
        inside = inside // 128 * 255
    if kind == "smooth":
        inside = (np.add.outer(np.arange(height) ** 2 / 9, np.arange(width) * 3) + rng.normal(0, 2, (height, width))) % 256
    luma = naive.half_samples(np.pad(inside.astype(np.uint8), pad, mode="edge"))
    source = np.clip(np.roll(inside, (1, 2), (0, 1)) + rng.integers(-3, 4, inside.shape), 0, 255).astype(np.uint8)
    n_mb = width * height // 256
    centre = rng.integers(-4, 5, (n_mb, 2)).astype(np.int16)
    predictor = rng.integers(-40, 41, (n_mb, 2)).astype(np.int16)
    search = SearchResult(np.zeros((n_mb, 41), np.int32), np.zeros((n_mb, 41, 2), np.int16))
    start = SearchStart(centre, predictor)
    full_search(source, luma[0], pad, start, constant(n_mb, QP), 8, 0, height // 16, search)
    return source, luma, pad, predictor, *search


@pytest.mark.parametrize("kind", ["random", "extreme", "smooth"])
@pytest.mark.parametrize("subme", [0, 1, 2, 3, 4, 5, 7])
def test_against_the_definition(kind, subme):
    print("seed", SEED)
    source, luma, pad, predictor, cost, mv = searched(np.random.default_rng(SEED), kind)
    result = refined, vectors = SearchResult(cost.copy(), mv.copy())
    for row0, row1 in ((1, 3), (0, 1)):
        subpel_refine(source, luma, pad, predictor, constant(len(cost), QP), subme, row0, row1, result)
    for mb in range(len(cost)):
        expected = naive.subpel_refine(source, luma, pad, predictor, LAMBDA[QP], subme, mb, 2, cost[mb], mv[mb])
        np.testing.assert_array_equal(refined[mb], expected[0])
        np.testing.assert_array_equal(vectors[mb], expected[1])


@pytest.mark.parametrize("subme", [3, 4, 5])
@pytest.mark.parametrize("kinds", [1, 3, 5, 7, 15, 31])
def test_kinds_left_out(kinds, subme):
    source, luma, pad, predictor, cost, mv = searched(np.random.default_rng(SEED), "smooth")
    result = refined, vectors = SearchResult(cost.copy(), mv.copy())
    subpel_refine(source, luma, pad, predictor, constant(len(cost), QP), subme, 0, 3, result, kinds)
    left_out = refined == COST_NOT_REFINED
    for mb in range(len(cost)):
        expected = naive.subpel_refine(source, luma, pad, predictor, LAMBDA[QP], subme, mb, 2, cost[mb], mv[mb], kinds)
        np.testing.assert_array_equal(refined[mb], expected[0])
        np.testing.assert_array_equal(vectors[mb], expected[1])
    assert not left_out[:, 40].any() and left_out.any() == (kinds < 31 or subme < 5)
    np.testing.assert_array_equal(vectors[left_out], mv[left_out])
