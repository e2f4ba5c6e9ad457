"""intra_estimate against its definition, on noise, gradients and extremes; any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.intra_estimate import intra_estimate

from . import naive

SEED = 12


@pytest.mark.parametrize("kind", ["random", "gradient", "diagonal", "extreme", "flat"])
def test_against_the_definition(kind):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    y, x = np.indices((48, 64))
    source = {
        "random": rng.integers(0, 256, (48, 64)),
        "gradient": 2 * x + 3 * y + rng.integers(0, 4, (48, 64)),
        "diagonal": (x + 2 * y) % 37 * 6,
        "extreme": rng.integers(0, 2, (48, 64)) * 255,
        "flat": np.full((48, 64), 255),
    }[kind].astype(np.uint8)
    for lam in (1, 20):
        cost = np.zeros(12, np.int32)
        for row0, row1 in ((1, 3), (0, 1)):
            intra_estimate(source, lam, row0, row1, cost)
        assert cost.tolist() == [naive.intra_cost(source, lam, mb) for mb in range(12)]
