"""QPs of macroblocks, for kernels under test."""

import numpy as np


def constant(n_mb: int, qp: int) -> np.ndarray:
    """uint8[n_mb]: the same QP for each macroblock."""
    return np.full(n_mb, qp, np.uint8)


def varying(rng: np.random.Generator, n_mb: int) -> np.ndarray:
    """uint8[n_mb]: a random QP for each macroblock."""
    return rng.integers(0, 52, n_mb).astype(np.uint8)
