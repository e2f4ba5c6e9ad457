"""Differences between the sums of blocks of two frames: what weights of a reference are decided by."""

import numpy as np

from ...jit.kernel import quick_kernel


@quick_kernel
def least_differences(current, reference, least):
    """Not part of the standard: for each block the least absolute difference from a block of the reference at most one block
    away, so that small motion does not count; returns the sum of these differences.

    current, reference, least (out): int32[h, w], below 2^30.
    """
    height, width = current.shape
    total = np.int64(0)
    for y in range(height):
        first, last = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            least[y, x] = abs(current[y, x] - reference[y, x])
        for v in range(first, last + 1):
            for x in range(width):
                least[y, x] = min(least[y, x], abs(current[y, x] - reference[v, x]))
            for x in range(1, width):
                least[y, x] = min(least[y, x], abs(current[y, x] - reference[v, x - 1]))
            for x in range(width - 1):
                least[y, x] = min(least[y, x], abs(current[y, x] - reference[v, x + 1]))
        for x in range(width):
            total += np.int64(least[y, x])
    return total
