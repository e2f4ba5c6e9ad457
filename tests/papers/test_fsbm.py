"""Papers 000 and 002: every rung of the ladder finds what the definition finds, with the candidates it leaves out."""

from functools import cache

import numpy as np
import pytest
from h264lite.papers.kernels import fsbm, scalar

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_papers as naive
from ..support.cuda_cases import KINDS, SEED, plane

REACH = 8
DISTANCES = {3: (32, 16, 8, 4, 2, 1), 7: (16, 4, 1), 13: (8, 1)}


def moving(kind, height, width, pictures, reach=REACH):
    """uint8 pictures of a scene that moves by up to reach samples, with noise."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    scene = plane(rng, kind, height + 2 * reach, width + 2 * reach)
    places = rng.integers(0, 2 * reach, (pictures, 2))
    noise = rng.integers(-2, 3, (pictures, height, width))
    return [np.clip(scene[y : y + height, x : x + width] + n, 0, 255).astype(np.uint8) for (y, x), n in zip(places, noise)]


@cache
def expected(current, reference, shape, grid, inside):
    """Of two pictures as bytes, so that each pair is searched once."""
    a, b = (np.frombuffer(p, np.uint8).reshape(shape) for p in (current, reference))
    return naive.step(a, b, 32, DISTANCES[grid], grid, inside) if grid else naive.full(a, b, 32, REACH, inside)


def check(results, pictures, inside, blocks, grid=0):
    vectors, sads = results
    for n in range(1, len(pictures)):
        wanted = expected(pictures[n].tobytes(), pictures[n - 1].tobytes(), pictures[n].shape, grid, inside)
        np.testing.assert_array_equal(sads[n - 1], wanted[1][blocks])
        np.testing.assert_array_equal(vectors[n - 1], wanted[0][blocks])


@pytest.mark.parametrize("name", fsbm.FSBM)
def test_full_search(device, name):  # noqa: F811
    variant = fsbm.FSBM[name]
    slow = variant.search in fsbm.SLOW
    pictures = moving("smooth", 80, 112, 2 if slow else 3)  # the last row of blocks is cut
    blocks = [2, 5, 11] if slow else list(range(12))
    results = fsbm.Ladder(device, variant, pictures, REACH).run(blocks=blocks)
    check(results, pictures, variant.borders == "leave out", blocks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["all-on-gpu", "threads-in-z", "streams-result"])
def test_kinds_of_pictures(device, kind, name):  # noqa: F811
    """Also ties, and a search area that leaves on all sides."""
    pictures = moving(kind, 32, 48, 2)
    variant = fsbm.FSBM[name]
    check(fsbm.Ladder(device, variant, pictures, REACH).run(), pictures, variant.borders == "leave out", [0, 1])


@pytest.mark.parametrize("name", fsbm.STEP)
def test_step_search(device, name):  # noqa: F811
    variant = fsbm.STEP[name]
    pictures = moving("smooth", 48, 80, 3, 40)
    check(fsbm.Ladder(device, variant, pictures).run(), pictures, True, list(range(6)), variant.grid)


def test_black_and_white(device):  # noqa: F811
    """The largest SAD, in all candidates: the first."""
    pictures = [np.zeros((128, 128), np.uint8), np.full((128, 128), 255, np.uint8)]
    for name in ("parallel-fsbm", "streams-result", "threads-in-z"):
        vectors, sads = fsbm.Ladder(device, fsbm.FSBM[name], pictures, REACH).run(blocks=[5])
        assert sads.tolist() == [[32 * 32 * 255]] and vectors.tolist() == [[[-REACH, -REACH]]]


def test_borders_go_to_the_cpu(device):  # noqa: F811
    """Only the blocks whose area lies inside are launched."""
    pictures = moving("random", 96, 128, 2)
    ladder = fsbm.Ladder(device, fsbm.FSBM["parallel-fsbm"], pictures, REACH)
    cut, whole = [], ladder._cut
    ladder._cut = lambda n, x, y: (cut.append((x, y)), whole(n, x, y))
    ladder.run()
    assert cut == [(32, 32), (64, 32)]


@pytest.mark.parametrize("inside", [False, True])
def test_the_scalar_programs(inside):
    a, b = moving("smooth", 48, 80, 2)
    for size in (16, 32):
        blocks = np.arange(len(naive.blocks_of(a.shape, size)))
        vectors, sads = np.zeros((len(blocks), 2), np.int16), np.zeros(len(blocks), np.int32)
        scalar.full(b, a, size, size, REACH, inside, blocks, vectors, sads)
        wanted = naive.full(b, a, size, REACH, inside)
        assert np.array_equal(vectors, wanted[0]) and np.array_equal(sads, wanted[1])
        scalar.step(b, a, size, 8, 3, 13, inside, blocks, vectors, sads)
        wanted = naive.step(b, a, size, DISTANCES[13], 13, inside)
        assert np.array_equal(vectors, wanted[0]) and np.array_equal(sads, wanted[1])


def test_refused_by_name(device):  # noqa: F811
    pictures = moving("flat", 32, 32, 2)
    with pytest.raises(ValueError, match="reach 9"):
        fsbm.Ladder(device, fsbm.FSBM["pinned"], pictures, 9)
    with pytest.raises(ValueError, match="the step search has 64"):
        fsbm.Ladder(device, fsbm.STEP["step-3"], pictures, 32)
