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
        cost, search_cost = np.zeros(12, np.int32), np.full((2, 12, 41), 1 << 20, np.int32)
        for n_ref in (0, 2):
            for row0, row1 in ((1, 3), (0, 1)):
                intra_estimate(source, lam, search_cost, n_ref, row0, row1, cost)
            limit = search_cost[:n_ref, :, 40].min(0, initial=1 << 20) - (28 * lam if n_ref else 0)
            exact = [naive.intra_cost(source, lam, mb) for mb in range(12)]
            assert cost.tolist() == [c if c < most else 1 << 20 for c, most in zip(exact, limit.tolist())]
            # what stays below the inter cost by one is kept, what reaches it is not
            search_cost[rng.integers(0, 2, 12), np.arange(12), 40] = np.array(exact) + 28 * lam + rng.integers(-300, 301, 12)
            search_cost[0, ::3, 40] = np.array(exact)[::3] + 28 * lam + np.array([0, 1, 1, 0])
