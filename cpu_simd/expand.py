"""Levels as they come from the GPU (cuda_src/compact.py), back into the array of a frame."""

import numpy as np

from ..jit.kernel import closed_kernel
from ..standard.macroblock import N_LEVEL_BLOCKS
from .simd.vector import load_u16x16, splat_u16x16, store


@closed_kernel
def expand(index, blocks, mb_width, row0, row1, held, levels):
    """Not part of the standard: levels int16[n_mb, 27, 16] of macroblock rows [row0, row1), rows in any order.

    index: uint32[mb_height + 1 + n_mb], blocks before each row, then the blocks of each macroblock as bits; blocks:
    int16[n, 16]; held: uint32[n_mb], which blocks of `levels` may not be 0 (all 0 with levels all 0 at first), so that
    only those are cleared.
    """
    zero = splat_u16x16(0)
    masks = len(index) - len(held)
    for row in range(row0, row1):
        at = np.int64(index[row])
        for mb in range(row * mb_width, (row + 1) * mb_width):
            mask = np.int64(index[masks + mb])
            left = mask | np.int64(held[mb])
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
            held[mb] = mask
