"""Weighted copies of references, and sums of source planes, against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.inter.weighting import block_sums, weight_reference

from .test_inter_residual import WEIGHTS


def weighted_planes(planes, weights):
    """8.4.2.3.2 for uint8 samples."""
    _, log2, weight, offset, *_ = weights
    scaled = planes.astype(int) * weight
    scaled = scaled + 2 ** (log2 - 1) >> log2 if log2 else scaled
    return np.clip(scaled + offset, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("weights", WEIGHTS[:4])
def test_copy(weights):
    rng = np.random.default_rng(7)
    pad, rows = 16, 3
    luma = rng.integers(0, 256, (3, 4, 16 * rows + 2 * pad, 32 + 2 * pad)).astype(np.uint8)
    want = luma.copy()
    want[2] = weighted_planes(luma[1], weights)
    for row0, row1 in pairwise((0, 1, 3)):
        weight_reference(luma[1], np.array(weights, np.int32), pad, row0, row1, luma[2])
    np.testing.assert_array_equal(luma, want)


@pytest.mark.parametrize("size", [(1, 1), (4, 16), (5, 17), (36, 352), (11, 30)])
def test_block_sums(size):
    lines = np.random.default_rng(8).integers(0, 256, size).astype(np.uint8)
    sums = np.full((-(-size[0] // 4), -(-size[1] // 16)), -1, np.int32)
    assert block_sums(lines, sums) == (lines.astype(int) ** 2).sum()
    for y, x in np.ndindex(sums.shape):
        assert sums[y, x] == lines[4 * y : 4 * y + 4, 16 * x : 16 * x + 16].sum()
