"""Unpacks levels that were packed on the GPU (cuda_src/residual/compact.py) into a frame's array of levels."""

import numpy as np

from ...jit.kernel import closed_kernel
from ..layout import N_LEVEL_BLOCKS
from ..simd.vector import load_u16x16, splat_u16x16, store


@closed_kernel
def expand(index, blocks, mb_width, row0, row1, masks_before, levels):
    """Not part of the standard: unpacks macroblock rows [row0, row1) into levels int16[n_mb, 27, 16]; rows in any order.

    index: uint32[mb_height + 1 + n_mb], the number of blocks before each row, then a bit mask of each macroblock's blocks;
    blocks: int16[n, 16]; masks_before: uint32[n_mb], updated, a bit mask of the blocks of `levels` that may be nonzero: only
    those are cleared (initially all 0, with levels all 0).
    """
    zero = splat_u16x16(0)
    masks = len(index) - len(masks_before)
    for row in range(row0, row1):
        at = np.int64(index[row])
        for mb in range(row * mb_width, (row + 1) * mb_width):
            mask = np.int64(index[masks + mb])
            left = mask | np.int64(masks_before[mb])
            if left == 0:
                continue
            to = N_LEVEL_BLOCKS * 16 * mb
            bit = 1
            while left != 0:
                if left & 1:
                    if mask & bit:
                        store(levels, to, load_u16x16(blocks, 16 * at))
                        at += 1
                    else:
                        store(levels, to, zero)
                left >>= 1
                bit <<= 1
                to += 16
            masks_before[mb] = mask
