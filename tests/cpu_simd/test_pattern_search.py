"""pattern_search against its definition: every pattern and range, extremes, both paths, quiet macroblocks, any split."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED, LAMBDA, QUICK, QUIET
from h264lite.cpu_simd.decisions.search import ALL_PARTITIONS, DIA, EVERY, HEX, SMALL_PARTITIONS, UMH
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.search.pattern_search import pattern_search
from h264lite.cpu_simd.simd.vector import PORTABLE, SIMD_LEVEL

from ..support import naive
from ..support.quantiser import constant
from .test_full_search import picture_pair

SEED = 20261126
PATTERNS = {"dia": DIA, "hex": HEX, "umh": UMH}
LARGE = ALL_PARTITIONS & ~SMALL_PARTITIONS


def run(
    source, reference, pad, centre, predictor, qp, merange, pattern, level=SIMD_LEVEL, splits=1, mask=ALL_PARTITIONS,
    subme=EVERY,
):  # fmt: skip
    rows = source.shape[0] // 16
    start, n_mb = SearchStart(centre, predictor), len(centre)
    searched = SearchResult(np.full((n_mb, 41), -1, np.int32), np.zeros((n_mb, 41, 2), np.int16))
    edges, qp = np.linspace(0, rows, splits + 1).astype(int).tolist(), constant(n_mb, qp)
    for row0, row1 in reversed(list(zip(edges, edges[1:]))):
        which = PATTERNS[pattern], merange
        pattern_search(source, reference, pad, start, qp, which, row0, row1, searched, mask, subme, level)
    return searched


def check(expected, searched, mb, first=0):
    np.testing.assert_array_equal(searched.cost[mb, first:], expected[0][first:], err_msg=f"macroblock {mb}")
    np.testing.assert_array_equal(searched.mv[mb, first:], expected[1][first:], err_msg=f"macroblock {mb}")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", ["random", "flat", "opposite", "checkerboard", "stripes", "smooth"])
def test_against_the_definition(kind, pattern):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    width, height, pad = 16, 32, 96
    source, reference = (a.astype(np.uint8) for a in picture_pair(rng, kind, width, height, pad))
    n_mb = width * height // 256
    for qp, merange in ((0, 16), (24, 16), (51, 4), (34, 11), (26, 24), (29, 64)):
        centre = rng.integers(-6, 7, (n_mb, 2)).astype(np.int16)
        predictor = rng.integers(-60, 61, (n_mb, 2)).astype(np.int16)
        where = source, reference, pad, centre, predictor
        searched = run(*where, qp, merange, pattern)
        large = run(*where, qp, merange, pattern, splits=2, mask=LARGE)
        for mb in range(n_mb):
            expected = naive.pattern_search(*where, LAMBDA[qp], merange, pattern, mb, width // 16)
            check(expected, searched, mb)
            check(expected, large, mb, 32)
        assert (large.cost[:, :32] == COST_NOT_REFINED).all()
        for mask, other in ((ALL_PARTITIONS, searched), (LARGE, large)):
            portable = run(*where, qp, merange, pattern, PORTABLE, 2, mask)
            np.testing.assert_array_equal(portable.cost, other.cost)
            np.testing.assert_array_equal(portable.mv[:, 32:], other.mv[:, 32:])
        np.testing.assert_array_equal(run(*where, qp, merange, pattern, PORTABLE).mv, searched.mv)


def test_the_patterns_are_those_of_their_names():
    """On a flat picture the search stays at the predictor: the first rounds alone."""
    flat = np.full((16 + 192, 16 + 192), 9, np.uint8)
    zero = np.zeros((1, 2), np.int16)
    seen, early = (
        {p: naive.pattern_search(flat[:16, :16] + more, flat, 96, zero, zero, 4, 16, p, 0, 1)[2] for p in PATTERNS}
        for more in (31, 0)
    )
    assert len(early["umh"]) == 2 + 4 + 14  # ends early
    assert {p: len(s) for p, s in seen.items()} == {"dia": 6, "hex": 16, "umh": 2 + 4 + 14 + 6 + 24 + 58 + 14}
    assert {abs(x) + abs(y) for x, y in seen["dia"]} == {0, 1}
    assert {x * x + y * y for x, y in seen["hex"]} == {0, 4, 5, 1, 2}
    assert max(x for x, _ in seen["umh"]) == 15 and min(x for x, _ in seen["umh"]) == -16


@pytest.mark.parametrize("pattern", PATTERNS)
def test_where_valleys_lead_to_the_best(pattern):
    """Macroblocks find what the full search finds, and never anything better; few are misled by their own texture."""
    y, x = np.mgrid[: 64 + 192, : 64 + 192]
    reference = (((x - 128) ** 2 + (y - 128) ** 2) // 140).astype(np.uint8)
    source = reference[96 + 5 : 96 + 5 + 64, 96 - 9 : 96 - 9 + 64].copy()
    zero = np.zeros((16, 2), np.int16)
    best = SearchResult(np.zeros((16, 41), np.int32), np.zeros((16, 41, 2), np.int16))
    full_search(source, reference, 96, SearchStart(zero, zero), constant(16, 0), 16, 0, 4, best)
    searched = run(source, reference, 96, zero, zero, 0, 16, pattern)
    assert (searched.cost - naive.vector_bits(searched.mv) >= best.cost - naive.vector_bits(best.mv)).all()  # LAMBDA[0] is 1
    assert (searched.mv[:, 40] == best.mv[:, 40]).all(1).mean() > (0.6 if pattern == "umh" else 0.2)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_quiet_macroblocks_are_not_searched(pattern):
    rng = np.random.default_rng(SEED)
    pad, quiet = 48, 0
    reference = rng.integers(90, 110, (64 + 2 * pad, 64 + 2 * pad)).astype(np.uint8)
    source = (reference[pad : pad + 64, pad : pad + 64] + rng.integers(0, 8, (64, 64))).astype(np.uint8)
    source[:32] = rng.integers(0, 255, (32, 64))
    zero = np.zeros((16, 2), np.int16)
    where = source, reference, pad, zero, zero
    for mask in (ALL_PARTITIONS, LARGE):
        searched = run(*where, 34, 16, pattern, mask=mask, subme=QUICK)
        for mb in range(16):
            y, x = mb // 4 * 16, mb % 4 * 16
            here = source[y : y + 16, x : x + 16].astype(int), reference[pad + y : pad + y + 16, pad + x : pad + x + 16]
            value = int(abs(here[0] - here[1]).sum()) + 2 * LAMBDA[34]
            if value < QUIET * LAMBDA[34]:
                quiet += 1
                assert searched.cost[mb, 40] == value and (searched.mv[mb, 40] == 0).all()
                assert (searched.cost[mb, :40] == COST_NOT_REFINED).all()
            else:
                check(naive.pattern_search(*where, LAMBDA[34], 16, pattern, mb, 4), searched, mb, 32)
    assert 0 < quiet < 32


@pytest.mark.parametrize("pattern", PATTERNS)
def test_extreme_predictors_saturate(pattern):
    """Costs above 65535 count as 65535, and the centre has it first."""
    source, reference = np.zeros((16, 16), np.uint8), np.full((16 + 192, 16 + 192), 255, np.uint8)
    centre, predictor = np.array([[3, -2]], np.int16), np.array([[30000, -30000]], np.int16)
    searched = run(source, reference, 96, centre, predictor, 51, 16, pattern)
    check(naive.pattern_search(source, reference, 96, centre, predictor, LAMBDA[51], 16, pattern, 0, 1), searched, 0)
    assert (searched.mv[0, 32:] == (12, -8)).all()
