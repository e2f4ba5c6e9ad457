"""Least differences between blocks of two frames, against plain loops."""

import numpy as np
import pytest
from h264lite.cpu_simd.source.block_differences import least_differences


def plain(current, reference):
    """The definition, a block at a time."""
    height, width = current.shape
    least = np.empty((height, width), np.int32)
    for y, x in np.ndindex(height, width):
        near = reference[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].astype(np.int64)
        least[y, x] = np.abs(near - current[y, x]).min()
    return least


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 1), (2, 2), (18, 22), (5, 33)], ids=str)
@pytest.mark.parametrize("high", [300, 2**30])
def test_least_differences(size, high):
    rng = np.random.default_rng(3)
    current, reference = rng.integers(1 - high, high, (2, *size), np.int32)
    least = np.full(size, -1, np.int32)
    want = plain(current, reference)
    assert least_differences(current, reference, least) == want.sum(dtype=np.int64)
    np.testing.assert_array_equal(least, want)


def test_motion_by_a_block_counts_not():
    reference = np.arange(48, dtype=np.int32).reshape(6, 8) ** 2
    least = np.empty_like(reference)
    moved = reference.copy()
    moved[1:, 1:] = reference[:-1, :-1]
    assert least_differences(moved, reference, least) == 0
    moved[3, 4] += 5
    assert least_differences(moved, reference, least) == least[3, 4] == 5
