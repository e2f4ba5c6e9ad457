"""Rate-distortion-optimised quantisation: removes levels of one not worth their bits (not part of the standard).

The saving of distortion, in units of the squared quantiser step (the same for all quantisers), is compared with CAVLC bits.
The bits of a level of one depend on the positions of the other levels, so a block is a bit mask, one bit a scan position.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cavlc import COEFF_TOKEN_BITS, NC_CLASS, RUN_BEFORE_BITS, TOTAL_ZEROS_BITS
from ...standard.tables import ZIGZAG_4x4
from ..decisions.quantise import (
    DEAD_ZONE_NEAREST,
    RDO_BIT,
    RDO_MANY_LEVELS,
    RDO_ONE,
    RDO_SURE_RATIO,
    RDO_SURE_RATIO_OF_MANY,
    RDO_UP,
)
from ..residual.transform import RATIOS
from ..residual.transform_8x8 import PLACE_8x8, QUADRANT_8x8
from ..simd.blocks import load_block, zigzag
from ..simd.lanes import bit_count, bit_length, nonzero_lanes
from ..simd.vector import store

HALF = DEAD_ZONE_NEAREST  # of levels to be weighed

OFFSET = (ZIGZAG_4x4 >> 2) * 16 + (ZIGZAG_4x4 & 3)  # offset of each scan position in rows of sixteen
# The same for 4x4 blocks, then for the four blocks of an 8x8 block that CAVLC sends (7.3.5.3.2)
_OFFSETS = np.concatenate([OFFSET, PLACE_8x8.reshape(16, 4).T.ravel()]).astype(np.int64)


@helper
def bits_of(mask, ones, nc_class):
    """9.2: bits of a block with levels at `mask`, those at `ones` of magnitude one, without the codes of larger levels."""
    total = bit_count(mask)
    if total == 0:
        return np.int64(COEFF_TOKEN_BITS[nc_class, 0, 0])
    rest, trailing = mask, 0
    while rest != 0 and trailing < 3:
        last = bit_length(rest) - 1
        if not ones >> last & 1:
            break
        trailing += 1
        rest ^= 1 << last
    bits = np.int64(COEFF_TOKEN_BITS[nc_class, total, trailing]) + trailing + 2 * bit_count(rest & ones)
    last = bit_length(mask) - 1
    zeros = last + 1 - total
    bits += np.int64(TOTAL_ZEROS_BITS[total, zeros])
    rest = mask ^ 1 << last
    while zeros > 0 and rest != 0:
        here = bit_length(rest) - 1
        run = last - here - 1
        bits += np.int64(RUN_BEFORE_BITS[min(zeros, 7), run])
        zeros -= run
        rest ^= 1 << here
        last = here
    return bits


@helper
def distortion_saved(ratio):
    """Distortion that a level of one saves, in units of 1 / RDO_ONE: r^2 - (r - 1)^2 with r = ratio / RDO_ONE."""
    return 2 * ratio - RDO_ONE


@helper
def weigh(quantised, at, offsets, first, scratch):
    """Removes levels that are not worth their bits from a block of sixteen levels: quantised[at + _OFFSETS[offsets + i]].

    quantised: int16[768] of quantise_strips or quantise_8x8, rounded up from one half on; first: 1 leaves the DC out.
    scratch: int16[32], the levels and the ratios in scan order. Returns the number of levels left.
    """
    mask = nonzero_lanes(scratch, 0)
    nc_class = NC_CLASS[min(16, bit_count(mask) + 2)]  # estimate: the neighbours have about as many levels
    large = ones = maybe = np.int64(0)
    sure = RDO_SURE_RATIO if bit_count(mask) <= RDO_MANY_LEVELS else RDO_SURE_RATIO_OF_MANY
    rest = mask
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        level, ratio = np.int64(scratch[i]), np.int64(scratch[16 + i])
        size = abs(level)
        if size > 1 and ratio < RDO_ONE * (size - 1) + RDO_UP:
            size -= 1
            quantised[at + _OFFSETS[offsets + i]] = size if level > 0 else -size
        if size > 1:
            large |= 1 << i
        else:
            ones |= 1 << i
            if ratio < sure:
                maybe |= 1 << i
    if maybe == 0:
        return bit_count(mask)
    bits = bits_of(mask >> first, ones >> first, nc_class)
    rest = maybe
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        without = bits_of((mask ^ 1 << i) >> first, (ones & ~(1 << i)) >> first, nc_class)
        if RDO_BIT * (bits - without) > distortion_saved(np.int64(scratch[16 + i])):
            mask ^= 1 << i
            ones &= ~(1 << i)
            bits = without
    if large == 0 and mask != 0:
        saved = np.int64(0)
        rest = mask
        while rest != 0:
            i = bit_length(rest) - 1
            rest ^= 1 << i
            saved += distortion_saved(np.int64(scratch[16 + i]))
        if RDO_BIT * (bits - np.int64(COEFF_TOKEN_BITS[nc_class, 0, 0])) > saved:
            mask = np.int64(0)
    rest = maybe & ~mask | ones & ~mask
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        quantised[at + _OFFSETS[offsets + i]] = 0
    return bit_count(mask)


@helper
def weigh_blocks(quantised, coded, first_block, end_block, first, scratch):
    """weigh for blocks [first_block, end_block) set in `coded` (bit 4 * strip + block); returns it without emptied blocks."""
    for k in range(first_block, end_block):
        if coded >> k & 1:
            at = 64 * (k >> 2) + 4 * (k & 3)
            store(scratch, 0, zigzag(load_block(quantised, at)))
            store(scratch, 16, zigzag(load_block(quantised, RATIOS + at)))
            if weigh(quantised, at, 0, first, scratch) == 0:
                coded &= ~(1 << k)
    return coded


@helper
def weigh_8x8(quantised, coded, scratch):
    """weigh for the quadrants set in `coded`, each as four blocks; returns it without emptied quadrants."""
    for q in range(4):
        if coded >> q & 1 == 0:
            continue
        left = 0
        for offsets in range(16, 80, 16):
            for i in range(16):
                at = QUADRANT_8x8[q] + _OFFSETS[offsets + i]
                scratch[i] = quantised[at]
                scratch[16 + i] = quantised[RATIOS + at]
            left += weigh(quantised, QUADRANT_8x8[q], offsets, 0, scratch)
        if left == 0:
            coded &= ~(1 << q)
    return coded
