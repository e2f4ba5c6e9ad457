"""step_search against its definition: every grid and range, extreme samples, both paths, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.search.step_search import step_search
from h264lite.cpu_simd.simd.vector import PORTABLE, SIMD_LEVEL

from ..support import naive
from ..support.quantiser import constant
from .test_full_search import picture_pair

SEED = 20261122
GRIDS = (3, 7, 13)


def run(source, reference, pad, centre, predictor, qp, merange, grid, level=SIMD_LEVEL, splits=1):
    rows = source.shape[0] // 16
    start, n_mb = SearchStart(centre, predictor), len(centre)
    searched = SearchResult(np.full((n_mb, 41), -1, np.int32), np.zeros((n_mb, 41, 2), np.int16))
    edges = np.linspace(0, rows, splits + 1).astype(int).tolist()
    for row0, row1 in reversed(list(zip(edges, edges[1:]))):
        step_search(source, reference, pad, start, constant(n_mb, qp), merange, grid, row0, row1, searched, level)
    return searched


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("kind", ["random", "flat", "opposite", "checkerboard", "stripes", "smooth"])
def test_against_the_definition(kind, grid):
    print("seed", SEED)
    rng = np.random.default_rng(SEED + grid)
    width, height, pad = 16, 32, 96
    source, reference = (a.astype(np.uint8) for a in picture_pair(rng, kind, width, height, pad))
    n_mb = width * height // 256
    for qp, merange in ((0, 16), (24, 16), (51, 4), (34, 11), (26, 24), (29, 64)):
        lam = LAMBDA[qp]
        centre = rng.integers(-6, 7, (n_mb, 2)).astype(np.int16)
        predictor = rng.integers(-60, 61, (n_mb, 2)).astype(np.int16)
        cost, mv = run(source, reference, pad, centre, predictor, qp, merange, grid)
        for mb in range(n_mb):
            expected = naive.step_search(source, reference, pad, centre, predictor, lam, merange, grid, mb, width // 16)
            np.testing.assert_array_equal(cost[mb], expected[0], err_msg=f"qp {qp} merange {merange} mb {mb}")
            np.testing.assert_array_equal(mv[mb], expected[1], err_msg=f"qp {qp} merange {merange} mb {mb}")
        other = run(source, reference, pad, centre, predictor, qp, merange, grid, PORTABLE, splits=2)
        np.testing.assert_array_equal(cost, other[0])
        np.testing.assert_array_equal(mv, other[1])


@pytest.mark.parametrize(("grid", "steps"), [(3, (32, 16, 8, 4, 2, 1)), (7, (16, 4, 1)), (13, (8, 1))])
def test_the_steps_are_those_of_the_paper(grid, steps):
    """Range 64: six, three or two steps. On a flat picture the search stays where it is cheapest, at the predictor."""
    flat = np.full((16 + 192, 16 + 192), 9, np.uint8)
    zero = np.zeros((1, 2), np.int16)
    seen = naive.step_search(flat[:16, :16], flat, 96, zero, zero, 4, 64, grid, 0, 1)[2]
    reach = range(-(grid // 2), grid // 2 + 1)
    assert set(seen) == {(x * d, y * d) for d in steps for x in reach for y in reach if max(x * d, y * d) < 64}


def test_it_finds_what_the_full_search_finds_where_valleys_lead_there():
    """And never anything better; a finer grid sees more."""
    y, x = np.mgrid[: 64 + 192, : 64 + 192]
    reference = (((x - 128) ** 2 + (y - 128) ** 2) // 140).astype(np.uint8)
    source = reference[96 + 5 : 96 + 5 + 64, 96 - 9 : 96 - 9 + 64].copy()
    zero = np.zeros((16, 2), np.int16)
    best, best_mv = np.zeros((16, 41), np.int32), np.zeros((16, 41, 2), np.int16)
    start, searched = SearchStart(zero, zero), SearchResult(best, best_mv)
    full_search(source, reference, 96, start, constant(16, 0), 16, 0, 4, searched)
    best -= naive.vector_bits(best_mv)  # LAMBDA[0] is 1
    assert (best[:, 40] == 0).all() and (best_mv[:, 40] == (-36, 20)).all()
    shares = []
    for grid in GRIDS:
        cost, mv = run(source, reference, 96, zero, zero, 0, 16, grid)
        assert (cost - naive.vector_bits(mv) >= best).all()
        shares.append((mv[:, 40] == best_mv[:, 40]).all(1).mean())
    assert shares == sorted(shares) and 0.2 < shares[0] and 0.7 < shares[2], shares


def test_extreme_predictors_saturate():
    """Costs above 65535 count as 65535, and the first candidate that has it wins: the centre."""
    source, reference = np.zeros((16, 16), np.uint8), np.full((16 + 192, 16 + 192), 255, np.uint8)
    centre, predictor = np.array([[3, -2]], np.int16), np.array([[30000, -30000]], np.int16)
    for grid in GRIDS:
        cost, mv = run(source, reference, 96, centre, predictor, 51, 16, grid)
        expected = naive.step_search(source, reference, 96, centre, predictor, LAMBDA[51], 16, grid, 0, 1)
        np.testing.assert_array_equal(cost[0], expected[0])
        assert (mv[0] == (12, -8)).all()
