"""Paper 003: every memory gives the vectors of the definition, so none gives PSNR; other candidates do."""

from functools import cache

import numpy as np
import pytest
from h264lite.papers.kernels import memory
from h264lite.papers.kernels.texture import Texture, pitched

from ..cuda_emulator.driver import EmulatedDriver
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_papers as naive
from ..support.cuda_cases import KINDS, SEED, plane


def pair(kind, height, width, reach):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    scene = plane(rng, kind, height + 2 * reach, width + 2 * reach)
    dx, dy = rng.integers(0, 2 * reach, 2)
    noise = rng.integers(-2, 3, (height, width))
    current = np.clip(scene[dy : dy + height, dx : dx + width] + noise, 0, 255).astype(np.uint8)
    return current, np.ascontiguousarray(scene[reach : reach + height, reach : reach + width])


@cache
def expected(kind, height, width, reach, inside):
    return naive.full(*pair(kind, height, width, reach), 16, reach, inside)


def searched(gpu, name, current, reference, reach):
    search = memory.Search(gpu, memory.MEMORY[name], current.shape, reach)
    keys = search.run(search.stage(current), search.stage(reference))
    result = search.vectors(keys)
    search.close()
    return result


@pytest.mark.parametrize("name", memory.MEMORY)
@pytest.mark.parametrize("kind,height,width,reach", [
    *((kind, 32, 48, 8) for kind in KINDS), ("smooth", 40, 56, 5), ("smooth", 24, 40, 16), ("random", 4, 16, 3),
])  # fmt: skip
def test_variants(device, name, kind, height, width, reach):  # noqa: F811
    """Also pictures whose last blocks are cut, and candidates that do not share out evenly."""
    vectors, sads = searched(device, name, *pair(kind, height, width, reach), reach)
    wanted = expected(kind, height, width, reach, memory.MEMORY[name].inside)
    np.testing.assert_array_equal(sads, wanted[1])
    np.testing.assert_array_equal(vectors, wanted[0])


def test_largest_range_and_sad(device):  # noqa: F811
    current, reference = np.zeros((16, 16), np.uint8), np.full((16, 16), 255, np.uint8)
    for name in memory.MEMORY:
        vectors, sads = searched(device, name, current, reference, 32)
        inside = memory.MEMORY[name].inside
        assert sads.tolist() == [65280] and vectors.tolist() == [[0, 0] if inside else [-32, -32]]


def test_where_the_8_db_come_from(device):  # noqa: F811
    """A texture adds nothing to the same candidates. Candidates outside the picture, which its clamping gives away, may:

    here the picture opens like a curtain, its edge columns move inwards, and 8 dB lie between the two searches.
    """
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    reference = np.repeat(rng.integers(0, 256, (48, 1)), 64, 1).astype(np.uint8)
    reference[:, 12:52] = rng.integers(0, 256, (48, 40))
    current = np.roll(reference, 10, 1)
    current[:, :10] = reference[:, :1]
    quality = {}
    for name in memory.MEMORY:
        vectors, _ = searched(device, name, current, reference, 16)
        quality[name] = memory.psnr(current, memory.predicted(reference, vectors))
    assert quality["texture"] == quality["shared-repeat"] == quality["local-repeat"]
    assert quality["texture-inside"] == quality["shared"] == quality["local"] == quality["pinned"]
    gain = quality["texture"] - quality["shared"]
    print("gain", gain)
    defined = [memory.psnr(current, memory.predicted(reference, naive.full(current, reference, 16, 16, inside)[0]))
               for inside in (False, True)]
    assert gain == defined[0] - defined[1] and gain > 8


def test_prediction_by_definition():
    rng = np.random.default_rng(SEED)
    reference, vectors = plane(rng, "random", 40, 56), rng.integers(-20, 21, (12, 2))
    whole = memory.predicted(reference, vectors)
    for (x, y, w, h), (dx, dy) in zip(naive.blocks_of(reference.shape, 16), vectors):
        assert np.array_equal(whole[y : y + h, x : x + w], naive.candidate(reference, x, y, w, h, dx, dy))
    assert memory.psnr(whole, whole) == float("inf")
    assert memory.psnr(np.zeros((2, 2)), np.full((2, 2), 255)) == 0


def test_textures_are_given_back_and_refused_by_name(device):  # noqa: F811
    with pytest.raises(ValueError, match="stride 40: a multiple of 32"):
        Texture(device, device.array((4, 40), np.uint8), 40)
    with pytest.raises(ValueError, match="reach 33: 1 to 32"):
        memory.Search(device, memory.MEMORY["local"], (16, 16), 33)
    search = memory.Search(device, memory.MEMORY["texture"], (16, 40), 4)
    if isinstance(device.driver, EmulatedDriver):
        assert len(device.driver.libcuda.textures) == 2
    search.close()
    if isinstance(device.driver, EmulatedDriver):
        assert not device.driver.libcuda.textures
    assert pitched(np.ones((3, 40), np.uint8)).shape == (3, 64)
