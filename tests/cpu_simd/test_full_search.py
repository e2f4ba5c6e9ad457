"""full_search against its definition: every range, extreme samples, any centre, both paths, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED, LAMBDA, QUICK, QUIET
from h264lite.cpu_simd.decisions.search import ALL_PARTITIONS, EVERY
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.simd.vector import NATIVE, PORTABLE, SIMD_LEVEL

from ..support import naive
from ..support.quantiser import constant

SEED = 20261121


def picture_pair(rng, kind, width, height, pad):
    """A source and a padded reference of one kind."""
    h, w = height + 2 * pad, width + 2 * pad
    if kind == "random":
        return rng.integers(0, 256, (height, width)), rng.integers(0, 256, (h, w))
    if kind == "flat":
        return np.full((height, width), 128), np.full((h, w), 128)
    if kind == "opposite":
        return np.full((height, width), 255), np.zeros((h, w))
    if kind == "checkerboard":
        return np.indices((height, width)).sum(0) % 2 * 255, np.indices((h, w)).sum(0) % 2 * 255
    if kind == "stripes":
        return np.indices((height, width))[0] // 4 % 2 * 255, np.indices((h, w))[1] // 4 % 2 * 255
    reference = np.cumsum(np.cumsum(rng.normal(0, 3, (h, w)), 0), 1)
    reference = (reference - reference.min()) / np.ptp(reference) * 255
    shift = rng.integers(-5, 6, 2)
    y, x = pad + shift[0], pad + shift[1]
    return np.clip(reference[y : y + height, x : x + width] + rng.normal(0, 2, (height, width)), 0, 255), reference


def run(source, reference, pad, centre, predictor, qp, merange, level, splits=1, mask=ALL_PARTITIONS, subme=EVERY):
    rows = source.shape[0] // 16
    start, n_mb = SearchStart(centre, predictor), len(centre)
    searched = SearchResult(np.full((n_mb, 41), -1, np.int32), np.zeros((n_mb, 41, 2), np.int16))
    edges = np.linspace(0, rows, splits + 1).astype(int).tolist()
    for row0, row1 in reversed(list(zip(edges[:-1], edges[1:], strict=True))):
        full_search(source, reference, pad, start, constant(n_mb, qp), merange, row0, row1, searched, mask, subme, level)
    return searched


@pytest.mark.parametrize("kind", ["random", "flat", "opposite", "checkerboard", "stripes", "smooth"])
@pytest.mark.parametrize("merange", [4, 5, 8, 11, 16])
def test_against_the_definition(kind, merange):
    print("seed", SEED)
    rng = np.random.default_rng(SEED + merange)
    width, height, pad = 48, 32, 48
    source, reference = (a.astype(np.uint8) for a in picture_pair(rng, kind, width, height, pad))
    n_mb = width * height // 256
    for qp in (0, 24, 34, 51):
        centre = rng.integers(-6, 7, (n_mb, 2)).astype(np.int16)
        predictor = rng.integers(-60, 61, (n_mb, 2)).astype(np.int16)
        cost, mv = run(source, reference, pad, centre, predictor, qp, merange, min(NATIVE, SIMD_LEVEL))
        for mb in range(n_mb):
            expected = naive.full_search(source, reference, pad, centre, predictor, LAMBDA[qp], merange, mb, width // 16)
            np.testing.assert_array_equal(cost[mb], expected[0], err_msg=f"qp {qp} mb {mb}")
            np.testing.assert_array_equal(mv[mb], expected[1], err_msg=f"qp {qp} mb {mb}")
        for level in {PORTABLE, SIMD_LEVEL}:
            other = run(source, reference, pad, centre, predictor, qp, merange, level, splits=2)
            np.testing.assert_array_equal(cost, other[0])
            np.testing.assert_array_equal(mv, other[1])


@pytest.mark.parametrize("merange", [4, 6, 7, 9, 13, 23, 24, 31, 40, 63, 64])
def test_ranges(merange):
    rng = np.random.default_rng(SEED + merange)
    pad = 96
    source, reference = (a.astype(np.uint8) for a in picture_pair(rng, "smooth", 32, 16, pad))
    centre = np.array([[0, 0], [3, -8]], np.int16)
    predictor = np.array([[0, 0], [13, -21]], np.int16)
    cost, mv = run(source, reference, pad, centre, predictor, 26, merange, min(NATIVE, SIMD_LEVEL))
    for mb in range(2):
        expected = naive.full_search(source, reference, pad, centre, predictor, LAMBDA[26], merange, mb, 2)
        np.testing.assert_array_equal(cost[mb], expected[0])
        np.testing.assert_array_equal(mv[mb], expected[1])
    for level in range(SIMD_LEVEL + 1):
        other = run(source, reference, pad, centre, predictor, 26, merange, level)
        np.testing.assert_array_equal(cost, other[0])
        np.testing.assert_array_equal(mv, other[1])


@pytest.mark.parametrize("mask", [ALL_PARTITIONS, 7])
def test_quiet_macroblocks_are_not_searched(mask):
    """Up to subme QUICK those that are cheap at the centre keep it, undivided; all others are searched as above it."""
    rng, quiet = np.random.default_rng(SEED), []
    for kind, qp in (("smooth", 20), ("smooth", 30), ("flat", 51), ("random", 51), ("opposite", 10)):
        source, reference = (a.astype(np.uint8) for a in picture_pair(rng, kind, 48, 32, 48))
        centre = rng.integers(-4, 5, (6, 2)).astype(np.int16)
        predictor = (4 * centre + rng.integers(-3, 4, (6, 2))).astype(np.int16)
        level = min(NATIVE, SIMD_LEVEL)
        searched = run(source, reference, 48, centre, predictor, qp, 8, level, mask=mask)
        for one in {PORTABLE, SIMD_LEVEL}:
            skipping = run(source, reference, 48, centre, predictor, qp, 8, one, splits=2, mask=mask, subme=QUICK)
            for mb in range(6):
                y, x = divmod(mb, 3)
                there = reference[48 + 16 * y + centre[mb, 1] :, 48 + 16 * x + centre[mb, 0] :][:16, :16].astype(int)
                value = int(abs(there - source[16 * y : 16 * y + 16, 16 * x : 16 * x + 16]).sum())
                value += LAMBDA[qp] * sum(naive.se_bits(int(d)) for d in 4 * centre[mb].astype(int) - predictor[mb])
                quiet.append(value < QUIET * LAMBDA[qp])
                if quiet[-1]:
                    assert (skipping.cost[mb, :40] == COST_NOT_REFINED).all() and skipping.cost[mb, 40] == value
                    assert skipping.mv[mb, 40].tolist() == (4 * centre[mb]).tolist()
                else:
                    np.testing.assert_array_equal(skipping.cost[mb], searched.cost[mb])
                    np.testing.assert_array_equal(skipping.mv[mb], searched.mv[mb])
    assert 0 < sum(quiet) < len(quiet)


@pytest.mark.parametrize("kind", ["random", "opposite", "smooth"])
@pytest.mark.parametrize("merange", [5, 16])
def test_large_partitions_alone(kind, merange):
    """Without sizes below 8x8 the others are as with them."""
    rng = np.random.default_rng(SEED + merange)
    source, reference = (a.astype(np.uint8) for a in picture_pair(rng, kind, 48, 32, 48))
    centre, predictor = (rng.integers(-6, 7, (6, 2)).astype(np.int16) for _ in range(2))
    for level in range(SIMD_LEVEL + 1):
        whole = run(source, reference, 48, centre, predictor, 27, merange, level)
        large = run(source, reference, 48, centre, predictor, 27, merange, level, mask=7)
        np.testing.assert_array_equal(large.cost[:, 32:], whole.cost[:, 32:])
        np.testing.assert_array_equal(large.mv[:, 32:], whole.mv[:, 32:])
        assert (large.cost[:, :32] == COST_NOT_REFINED).all()
        assert not large.mv[:, :32].any()
