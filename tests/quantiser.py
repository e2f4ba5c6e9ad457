"""QP and lambda as arrays, for kernels under test."""

import numpy as np
from h264lite.encoder.decisions.quantiser import LAMBDA


def constant(n_mb: int, lam: int, qp: int = 26) -> tuple[np.ndarray, np.ndarray]:
    """(qp uint8[n_mb], lambdas int32[52]): one QP, and the same lambda for every QP."""
    return np.full(n_mb, qp, np.uint8), np.full(52, lam, np.int32)


def varying(rng: np.random.Generator, n_mb: int) -> tuple[np.ndarray, np.ndarray]:
    """(qp uint8[n_mb], lambdas int32[52]): a random QP for each macroblock, and the encoder's lambdas."""
    return rng.integers(0, 52, n_mb).astype(np.uint8), LAMBDA
