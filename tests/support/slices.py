"""Slices of a frame as kernels have them: the address of the first macroblock of the slice that holds each macroblock."""

from collections.abc import Sequence

import numpy as np


def of_rows(firsts: Sequence[int] | np.ndarray, mb_width: int) -> np.ndarray:
    """int32[n_mb]; firsts: first macroblocks by row."""
    return np.repeat(np.array(firsts, np.int32), mb_width)


def anywhere(rng: np.random.Generator, n_mb: int, chance: float) -> np.ndarray:
    """int32[n_mb] of slices that begin at any macroblock; chance: that one does."""
    begins = np.where(rng.random(n_mb) < chance, np.arange(n_mb), 0)
    return np.maximum.accumulate(begins).astype(np.int32)
