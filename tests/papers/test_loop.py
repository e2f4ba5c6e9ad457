"""Paper 004: its search and refinement find what the product's search and the definition find."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult, SearchStart
from h264lite.cpu_simd.layout import PARTITIONS
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.simd.vector import PORTABLE
from h264lite.papers.kernels import loop

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive
from ..support.cuda_cases import KINDS, SEED, plane, shifted
from ..support.quantiser import constant


def pictures(kind, height, width, pad):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    reference = plane(rng, kind, height + 2 * pad, width + 2 * pad)
    return shifted(rng, reference, pad), reference


@pytest.mark.parametrize("name", loop.SEARCHES)
@pytest.mark.parametrize("kind,reach", [*((kind, 8) for kind in KINDS), ("smooth", 24), ("random", 64)])
def test_search(device, name, kind, reach):  # noqa: F811
    """The product's portable search, itself tested against the definition; at QP 0 vectors cost nothing while it searches."""
    pad, n_mb = 80, 2
    source, reference = pictures(kind, 16, 32, pad)
    if reach == 64 and name == "anew":
        pytest.skip("the same code as with 8, and slow")
    zero = np.zeros((n_mb, 2), np.int16)
    cost, mv = np.zeros((n_mb, 41), np.int32), np.zeros((n_mb, 41, 2), np.int16)
    start, searched = SearchStart(zero, zero), SearchResult(cost, mv)
    full_search(source, reference, pad, start, constant(n_mb, 0), reach, 0, 1, searched, level=PORTABLE)
    cost -= naive.vector_bits(mv)
    out = device.array(cost.shape, np.int32).fill(0xEE), device.array(mv.shape, np.int16).fill(0xEE)
    loop.search(name, device.upload(source), device.upload(reference), pad, reach, *out)
    np.testing.assert_array_equal(out[0].get(), cost)
    np.testing.assert_array_equal(out[1].get(), mv)


def refined_by_definition(source, luma, pad, mv):
    quarter = {(x, y): naive.quarter_plane(luma, x, y) for x in range(4) for y in range(4)}
    cost, refined = np.zeros(mv.shape[:2], np.int32), np.zeros_like(mv)
    for mb, k in np.ndindex(mv.shape[:2]):
        px, py, w, h = PARTITIONS[k]
        x, y = mb % (source.shape[1] // 16) * 16 + px, mb // (source.shape[1] // 16) * 16 + py
        tried = []
        for c in range(25):
            vx, vy = mv[mb, k, 0] + c % 5 - 2, mv[mb, k, 1] + c // 5 - 2
            left, top = x + pad + (vx >> 2), y + pad + (vy >> 2)
            prediction = quarter[vx & 3, vy & 3][top : top + h, left : left + w]
            tried.append((int(np.abs(source[y : y + h, x : x + w] - prediction).sum()), c, vx, vy))
        best = min(tried)
        cost[mb, k], refined[mb, k] = best[0], best[2:]
    return cost, refined


@pytest.mark.parametrize("kind", KINDS)
def test_refinement(device, kind):  # noqa: F811
    """In seven streams and in one launch: all 41 vectors of macroblocks, the one beside the other."""
    pad = 32
    source, reference = pictures(kind, 32, 32, pad)
    luma = naive.half_samples(reference)
    mv = (4 * np.random.default_rng(SEED).integers(-8, 9, (4, 41, 2))).astype(np.int16)
    cost, refined = refined_by_definition(source.astype(int), luma, pad, mv)
    inputs = [device.upload(a) for a in (source, luma)]
    for streams in ((), [device.stream() for _ in loop.COUNTS]):
        out = device.array(cost.shape, np.int32).fill(0xEE), device.array(mv.shape, np.int16).fill(0xEE)
        device.synchronize()
        loop.refine(*inputs, pad, device.upload(mv), *out, streams)
        np.testing.assert_array_equal(out[0].get(), cost)
        np.testing.assert_array_equal(out[1].get(), refined)


def test_refused_by_name(device):  # noqa: F811
    a = device.array((16, 16), np.uint8)
    for reach in (12, 72, 40):
        with pytest.raises(ValueError, match=f"reach {reach}: 8, 16"):
            loop.search("whole", a, a, 32, reach, a, a)
