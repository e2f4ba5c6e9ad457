"""Weighted copies of references, and sums of source planes, against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.inter.weighting import block_sums, weight_reference
from h264lite.cpu_simd.layout import sum_block

from . import plain_weights
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


@pytest.mark.parametrize("size", [(1, 1), (4, 16), (33, 17), (36, 352), (51, 70), (720, 1290), (1082, 600)])
def test_block_sums(size):
    rng = np.random.default_rng(8)
    shapes = size, *2 * [((size[0] + 1) // 2, (size[1] + 1) // 2)]
    planes = [rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    want = plain_weights.frame_sums(planes)
    block, lines = sum_block(*size[::-1])
    for step, of_rows in ((lines, planes), (1, [np.ascontiguousarray(plane[::lines]) for plane in planes])):
        sums = np.full_like(want, -1, np.int32)
        block_sums(*of_rows, block, block // lines, step, sums)
        np.testing.assert_array_equal(sums, want)
