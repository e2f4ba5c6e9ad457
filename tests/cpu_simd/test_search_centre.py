"""search_centre: finds large motion, stays within picture and level limits, does not depend on how rows are split."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Coarse, PreviousMotion, SearchStart
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.search.search_centre import search_centre, subsample

from ..support import naive
from ..support.bundles import coarse_shape
from ..support.cuda_cases import textured
from ..support.quantiser import constant

SEED = 5


def run(source, reference, pad, merange, max_mv_y, splits, previous=None):
    height, width = source.shape
    rows, n_mb = height // 16, height * width // 256
    coarse = Coarse(*(np.zeros(coarse_shape(height, width), np.uint8) for _ in range(2)))
    start = SearchStart(*np.zeros((2, n_mb, 2), np.int16))
    previous = previous or (np.full((n_mb, 4), -1, np.int8), np.zeros((n_mb, 16, 2), np.int16))
    before = PreviousMotion(*previous, np.ones(1, np.int32), np.ones(1, np.int32), np.zeros(2, np.int16))
    edges = np.linspace(0, rows, splits + 1).astype(int).tolist()
    spans = [(a, b) for a, b in zip(edges, edges[1:]) if a < b]
    for row0, row1 in reversed(spans):
        subsample(source, reference, pad, row0, row1, coarse)
    for row0, row1 in reversed(spans):
        search_centre(source, reference, pad, coarse, before, constant(n_mb, 24), merange, max_mv_y, row0, row1, start)
    return start


@pytest.mark.parametrize("motion", [(0, 0), (37, -20), (-50, 30)])
def test_finds_the_motion_of_the_camera(motion):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    height, width, pad = 160, 192, 64
    big = textured(rng, height + 200, width + 200)
    reference = np.pad(big[100 : 100 + height, 100 : 100 + width], pad, mode="edge")
    x, y = motion
    source = np.ascontiguousarray(big[100 + y : 100 + y + height, 100 + x : 100 + x + width])
    centre, predictor = run(source, reference, pad, 16, 512, 1)
    inner = centre.reshape(height // 16, width // 16, 2)[3:-3, 3:-3].reshape(-1, 2)
    assert (abs(inner - motion) <= 8).all(1).mean() > 0.9
    np.testing.assert_array_equal(predictor, 4 * centre)
    for splits in (2, 5, 10):
        np.testing.assert_array_equal(run(source, reference, pad, 16, 512, splits)[0], centre)


@pytest.mark.parametrize(("merange", "max_mv_y"), [(4, 64), (16, 64), (40, 128), (63, 64), (64, 512)])
def test_limits(merange, max_mv_y):
    rng = np.random.default_rng(SEED + merange)
    height, width = 64, 80
    pad = -(-(merange + 24) // 16) * 16
    n_mb = height * width // 256
    source = textured(rng, height, width)
    reference = np.pad(textured(rng, height, width), pad, mode="edge")
    previous = np.zeros((n_mb, 4), np.int8), rng.choice([-8000, -300, 0, 300, 8000], (n_mb, 16, 2)).astype(np.int16)
    centre, _ = run(source, reference, pad, merange, max_mv_y, 1, previous)
    window = max(merange, 12)
    x, y = np.arange(n_mb) % 5 * 16 + centre[:, 0], np.arange(n_mb) // 5 * 16 + centre[:, 1]
    assert (x - window - 3 >= -pad).all() and (x + window - 1 + 16 + 3 <= width + pad).all()
    assert (y - window - 3 >= -pad).all() and (y + window - 1 + 16 + 3 <= height + pad).all()
    assert (abs(centre[:, 1].astype(int)) + merange + 1 <= max_mv_y).all()


@pytest.mark.parametrize("kind", ["texture", "flat", "noise", "opposite", "checkerboard"])
def test_against_the_definition(kind):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    height, width, pad = 48, 64, 48
    shapes = (height, width), (height + 2 * pad, width + 2 * pad)
    for qp, merange, max_mv_y, distance in ((24, 16, 64, 1), (0, 8, 128, 3), (51, 4, 64, 2)):
        source, reference = {
            "texture": lambda: (textured(rng, *shapes[0]), textured(rng, *shapes[1])),
            "flat": lambda: tuple(np.full(shape, 77, np.uint8) for shape in shapes),
            "noise": lambda: tuple(rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes),
            "opposite": lambda: (np.zeros(shapes[0], np.uint8), np.full(shapes[1], 255, np.uint8)),
            "checkerboard": lambda: tuple((np.indices(shape).sum(0) // 4 % 2 * 255).astype(np.uint8) for shape in shapes),
        }[kind]()
        n_mb = height * width // 256
        ref_idx = rng.integers(-1, 3, (n_mb, 4)).astype(np.int8)
        mv = rng.integers(-300, 300, (n_mb, 16, 2)).astype(np.int16)
        coarse = Coarse(*(np.zeros(coarse_shape(height, width), np.uint8) for _ in range(2)))
        start, duplicates = SearchStart(*np.zeros((2, n_mb, 2), np.int16)), qp % 3
        distances = np.array([max(k - duplicates, 0) + 1 for k in range(3)], np.int32)
        before = PreviousMotion(ref_idx, mv, np.array([distance], np.int32), distances, np.zeros(2, np.int16))
        subsample(source, reference, pad, 0, 3, coarse)
        np.testing.assert_array_equal(coarse[0], naive.coarse(source))
        np.testing.assert_array_equal(coarse[1], naive.coarse(reference[pad:-pad, pad:-pad]))
        search_centre(source, reference, pad, coarse, before, constant(n_mb, qp), merange, max_mv_y, 0, 3, start)
        frames = np.where(ref_idx < 0, -1, np.maximum(ref_idx - duplicates, 0))  # of which the entries are
        where = source, reference, pad, frames, mv, distance, LAMBDA[qp], merange, max_mv_y
        expected = [naive.search_centre(*where, mb, width // 16) for mb in range(n_mb)]
        np.testing.assert_array_equal(start.centre, expected, err_msg=str((qp, merange)))
        np.testing.assert_array_equal(start.predictor, 4 * start.centre)
