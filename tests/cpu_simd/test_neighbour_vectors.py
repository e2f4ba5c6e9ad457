"""neighbour_vectors against its definition: both rounds, borders of the frame, illegal vectors, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.layout import PARTITIONS
from h264lite.cpu_simd.search.neighbour_vectors import neighbour_vectors, neighbour_vectors_again

from ..support import naive
from ..support.quantiser import varying

SEED, PAD, MAX_MV_Y = 31, 48, 64
AROUND = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]


def searched(rng, kind, width, height, spread):
    """source, half-sample planes, predictor, SearchResult: SATD and bits of a reference and its vectors are consistent."""
    inside = rng.integers(0, 256, (height, width))
    if kind == "smooth":
        inside = (np.add.outer(np.arange(height) ** 2 / 9, np.arange(width) * 3) + rng.normal(0, 9, (height, width))) % 256
    luma = naive.half_samples(np.pad(inside.astype(np.uint8), PAD, mode="edge"))
    source = np.clip(np.roll(inside, (1, 2), (0, 1)) + rng.integers(-9, 10, inside.shape), 0, 255).astype(np.uint8)
    n_mb = width * height // 256
    predictor = rng.integers(-40, 41, (n_mb, 2)).astype(np.int16)
    mv = rng.integers(-spread, spread + 1, (n_mb, 1, 2)) + rng.integers(-3, 4, (n_mb, 41, 2))
    area = PARTITIONS[:, 2] * PARTITIONS[:, 3]
    cost = area * rng.integers(2, 60, (n_mb, 41)) + rng.integers(0, 40, (n_mb, 41)) + 4000 * (kind == "dear")
    return source, luma, predictor, SearchResult(cost.astype(np.int32), mv.astype(np.int16))


def bits(vector, predictor):
    return naive.vector_bits(np.asarray(vector, int) - np.asarray(predictor, int))


def legal(vector, x0, y0, width, height):
    left, top = x0 + (vector[0] >> 2), y0 + (vector[1] >> 2)
    in_frame = -PAD <= left <= width + PAD - 17 and -PAD <= top <= height + PAD - 17
    return in_frame and abs(vector[0]) < 4 * 2047 and -4 * MAX_MV_Y <= vector[1] < 4 * MAX_MV_Y


def expected_round(source, fractions, lam, again, predictor, whole, cost, mv):
    """One round of all macroblocks; whole: their undivided vectors before it. Returns predictors, costs, vectors."""
    height, width = source.shape
    mbw, mbh = width // 16, height // 16
    predictor, cost, mv = predictor.astype(int), cost.astype(int), mv.astype(int)
    for mb in range(mbw * mbh):
        mx, my = mb % mbw, mb // mbw
        mv[mb, 40] = whole[mb]
        near = {
            (dx, dy): whole[mb + dy * mbw + dx].astype(int)
            for dx, dy in AROUND if 0 <= mx + dx < mbw and 0 <= my + dy < mbh
        }  # fmt: skip
        zero = np.zeros(2, int)
        a, b = near.get((-1, 0), zero), near.get((0, -1), zero)
        c = near.get((1, -1), near.get((-1, -1), zero))
        p = np.median([a, b, c], axis=0).astype(int) if my else a
        cost[mb] += lam[mb] * (bits(mv[mb], p) - bits(mv[mb], predictor[mb]))
        predictor[mb] = p

        def attempt(tried, mb=mb, mx=mx, my=my, p=p):
            for vx, vy in tried:
                if not legal((vx, vy), 16 * mx, 16 * my, width, height):
                    continue
                top, left = 16 * my + PAD + (vy >> 2), 16 * mx + PAD + (vx >> 2)
                block = fractions[vx & 3, vy & 3][top : top + 16, left : left + 16]
                difference = block - source[16 * my : 16 * my + 16, 16 * mx : 16 * mx + 16].astype(int)
                for k, (x, y, w, h) in enumerate(PARTITIONS.tolist()):
                    value = naive.satd(difference[y : y + h, x : x + w]) + lam[mb] * bits((vx, vy), p)
                    if value < cost[mb, k]:
                        cost[mb, k], mv[mb, k] = value, (vx, vy)

        attempt([tuple(v.tolist()) for v in (p, *near.values(), *(() if again else mv[mb, 32:]))])
        cx, cy = mv[mb, 40].tolist()
        attempt([(cx + dx, cy + dy) for dx, dy in AROUND if again])
    return predictor, cost, mv


@pytest.mark.parametrize("kind", ["random", "smooth", "dear"])
@pytest.mark.parametrize(("width", "height", "spread"), [(48, 48, 9), (32, 32, 300), (16, 32, 6), (48, 16, 40)])
def test_against_the_definition(kind, width, height, spread):
    print("seed", SEED)
    rng = np.random.default_rng([SEED, width, height])
    source, luma, predictor, search = searched(rng, kind, width, height, spread)
    fractions = {(fx, fy): naive.quarter_plane(luma, fx, fy) for fx in range(4) for fy in range(4)}
    n_mb, rows = width * height // 256, height // 16
    search.mv[:, :, 1] = search.mv[:, :, 1].clip(-4 * MAX_MV_Y, 4 * MAX_MV_Y - 1)
    search.mv[0, 40], qp = (4 * -60, 4 * -60), varying(rng, n_mb)  # outside for its neighbours' macroblocks
    whole_mv = np.full((n_mb, 2), 999, np.int16)
    expected = predictor, search.cost, search.mv
    searched_whole = search.mv[:, 40].copy()
    for stage in (neighbour_vectors, neighbour_vectors_again):
        again = stage is neighbour_vectors_again
        whole = (whole_mv if again else searched_whole).copy()
        expected = expected_round(source, fractions, LAMBDA[qp], again, expected[0], whole, *expected[1:])
        for row in reversed(range(rows)):
            stage(source, luma, PAD, qp, MAX_MV_Y, row, row + 1, predictor, whole_mv, search)
        np.testing.assert_array_equal(predictor, expected[0])
        np.testing.assert_array_equal(search.cost, expected[1])
        undivided = search.mv[:, 40] if again else whole_mv
        np.testing.assert_array_equal(undivided, expected[2][:, 40])
        np.testing.assert_array_equal(search.mv[:, :40], expected[2][:, :40])
        if not again:
            np.testing.assert_array_equal(search.mv[:, 40], searched_whole)


@pytest.mark.parametrize("kind", ["random", "smooth"])
def test_large_partitions_alone(kind):
    """Without sizes below 8x8 the others are as with them after the first round, these stay, and there is no second trial."""
    rng = np.random.default_rng(SEED)
    source, luma, predictor, search = searched(rng, kind, 48, 48, 9)
    search.mv[::2] = search.mv[::2, 40:]  # all partitions alike
    search.cost[...] = 1 << 20  # so that other vectors win
    qp, whole_mv = varying(rng, 9), np.zeros((9, 2), np.int16)
    copies = [a.copy() for a in (predictor, whole_mv, *search)]
    large = SearchResult(*copies[2:])
    kept = large.cost[:, :32].copy(), large.mv[:, :32].copy()
    neighbour_vectors(source, luma, PAD, qp, MAX_MV_Y, 0, 3, predictor, whole_mv, search)
    neighbour_vectors(source, luma, PAD, qp, MAX_MV_Y, 0, 3, copies[0], copies[1], large, 7)
    assert (whole_mv != search.mv[:, 40]).any()
    neighbour_vectors_again(source, luma, PAD, qp, MAX_MV_Y, 1, 3, copies[0], copies[1], large, 7)
    neighbour_vectors_again(source, luma, PAD, qp, MAX_MV_Y, 0, 1, copies[0], copies[1], large, 7)
    search.mv[:, 40] = whole_mv
    np.testing.assert_array_equal(copies[0], predictor)
    np.testing.assert_array_equal(copies[1], whole_mv)
    for ours, theirs, before in zip(large, search, kept, strict=True):
        np.testing.assert_array_equal(ours[:, 32:], theirs[:, 32:])
        np.testing.assert_array_equal(ours[:, :32], before)
