"""interpolate and extend_borders against NumPy: noise, extremes, small sizes, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.inter.interpolate import extend_borders, interpolate

from ..support import naive

SEED = 31


@pytest.mark.parametrize("size", [(16, 16), (48, 64)])
@pytest.mark.parametrize("kind", ["random", "checkerboard", "steps", "black", "white"])
def test_planes(size, kind):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    height, _ = size
    pad = 32
    y, x = np.indices(size)
    inside = {
        "random": rng.integers(0, 256, size),
        "checkerboard": (x + y) % 2 * 255,
        "steps": (x // 3 + y // 3) % 2 * 255,
        "black": np.zeros(size),
        "white": np.full(size, 255),
    }[kind].astype(np.uint8)
    expected = naive.half_samples(np.pad(inside, pad, mode="edge"))
    rows = height // 16
    for split in range(rows):
        luma = rng.integers(0, 256, expected.shape).astype(np.uint8)
        luma[0, pad:-pad, pad:-pad] = inside
        extend_borders(luma[0], pad)
        if split:
            interpolate(luma, pad, split, rows)
        interpolate(luma, pad, 0, split or rows)
        np.testing.assert_array_equal(luma, expected)
