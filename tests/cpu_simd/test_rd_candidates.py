"""rd_candidates against its definition."""

import numpy as np
from h264lite.cpu_simd.bundles import Searches
from h264lite.cpu_simd.decisions import LAMBDA


def searched(rng, n_mb, n_ref, qp):
    """Searches with vectors of neighbouring samples and costs for which several divisions are near the best."""
    area = np.array([1] * 16 + [2] * 16 + [4] * 4 + [8] * 4 + [16])
    mv = rng.integers(-12, 13, (n_ref, n_mb, 1, 2)) + rng.integers(-3, 4, (n_ref, n_mb, 41, 2))
    cost = area * rng.integers(10, 400, (n_ref, n_mb, 1)) + rng.integers(0, 30, (n_ref, n_mb, 41)) + 12 * LAMBDA[qp][:, None]
    predictor = rng.integers(-20, 21, (n_ref, n_mb, 2))
    return Searches(cost.astype(np.int32), mv.astype(np.int16), predictor.astype(np.int16))
