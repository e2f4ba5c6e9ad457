"""Inputs that the CUDA tests share: planes of each interesting kind."""

import numpy as np

SEED = 20261121
SIZES = [(48, 32), (16, 16), (80, 48)]  # width, height in luma samples


def plane(rng: np.random.Generator, kind: str, height: int, width: int) -> np.ndarray:
    """uint8[height, width]."""
    if kind == "random":
        return rng.integers(0, 256, (height, width)).astype(np.uint8)
    if kind == "flat":
        return np.full((height, width), rng.integers(0, 256), np.uint8)
    if kind == "checkerboard":
        return (np.indices((height, width)).sum(0) % 2 * 255).astype(np.uint8)
    steps = np.kron(rng.integers(-9, 10, (height // 4 + 1, width // 4 + 1)), np.ones((4, 4), int))[:height, :width]
    slope = np.cumsum(rng.integers(-2, 3, (height, width)), 1) + np.cumsum(rng.integers(-2, 3, (height, width)), 0)
    return np.clip(rng.integers(60, 190) + slope + steps, 0, 255).astype(np.uint8)


KINDS = ["random", "flat", "checkerboard", "smooth"]


def padded(interior: np.ndarray, pad: int) -> np.ndarray:
    return np.pad(interior, pad, mode="edge")


def shifted(rng: np.random.Generator, reference: np.ndarray, pad: int, noise: int = 3) -> np.ndarray:
    """A source frame: the interior of a padded reference, moved by a few samples, with noise."""
    h, w = reference.shape[0] - 2 * pad, reference.shape[1] - 2 * pad
    dx, dy = rng.integers(-6, 7, 2)
    moved = reference[pad + dy : pad + dy + h, pad + dx : pad + dx + w].astype(int)
    return np.clip(moved + rng.integers(-noise, noise + 1, (h, w)), 0, 255).astype(np.uint8)
