"""Rate-distortion-optimised quantisation: which levels of one are worth their bits (not part of the standard).

A level saves distortion, in units of the squared quantiser step whatever the quantiser is, and costs bits of CAVLC. What
a level of one costs depends on where the others lie, so blocks are weighed as sets of positions: a bit a scan position.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cavlc import COEFF_TOKEN_BITS, NC_CLASS, RUN_BEFORE_BITS, TOTAL_ZEROS_BITS
from ..standard.tables import ZIGZAG_4x4
from .simd.blocks import load_block, zigzag
from .simd.lanes import bit_count, bit_length, nonzero_lanes
from .simd.vector import store
from .transform import RATIOS

HALF = 2  # the dead zone of levels that will be weighed: rounded up from a half on
ONE = 64  # a level, in the unit of the ratios
SURE = 77  # |coefficient| / step from which a level of one stays
MANY, SURE_OF_MANY = 8, 43  # the same where a block has more levels than that: all cost few bits there
UP = 42  # levels above one round up from here on
BIT = 9  # what a bit is worth: lambda / step^2 is 0.136, in units of 1 / ONE

OFFSET = (ZIGZAG_4x4 >> 2) * 16 + (ZIGZAG_4x4 & 3)  # of a scan position in rows of sixteen


@helper
def bits_of(mask, ones, nc_class):
    """9.2: bits of a block with levels at `mask`, those at `ones` of magnitude one, but for what the larger ones cost."""
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
def worth(ratio):
    """What a level of one saves in distortion, in bits of ONE / BIT: r^2 - (r - 1)^2."""
    return 2 * ratio - ONE


@helper
def weigh(quantised, at, first, scratch):
    """Takes levels that are not worth their bits out of the 4x4 block at quantised[at], rows of sixteen.

    quantised: int16[768] of quantise_strips, rounded up from a half on; first: 1 leaves the DC out. scratch: int16[32].
    Returns how many levels are left.
    """
    store(scratch, 0, zigzag(load_block(quantised, at)))
    store(scratch, 16, zigzag(load_block(quantised, RATIOS + at)))
    mask = nonzero_lanes(scratch, 0)
    nc_class = NC_CLASS[min(16, bit_count(mask) + 2)]  # the neighbours that decide on the table have about as many
    large = ones = maybe = np.int64(0)
    sure = SURE if bit_count(mask) <= MANY else SURE_OF_MANY
    rest = mask
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        level, ratio = np.int64(scratch[i]), np.int64(scratch[16 + i])
        size = abs(level)
        if size > 1 and ratio < ONE * (size - 1) + UP:
            size -= 1
            quantised[at + OFFSET[i]] = size if level > 0 else -size
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
        if BIT * (bits - without) > worth(np.int64(scratch[16 + i])):
            mask ^= 1 << i
            ones &= ~(1 << i)
            bits = without
    if large == 0 and mask != 0:
        saved = np.int64(0)
        rest = mask
        while rest != 0:
            i = bit_length(rest) - 1
            rest ^= 1 << i
            saved += worth(np.int64(scratch[16 + i]))
        if BIT * (bits - np.int64(COEFF_TOKEN_BITS[nc_class, 0, 0])) > saved:
            mask = np.int64(0)
    rest = maybe & ~mask | ones & ~mask
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= 1 << i
        quantised[at + OFFSET[i]] = 0
    return bit_count(mask)


@helper
def weigh_blocks(quantised, coded, first_block, end_block, first, scratch):
    """weigh for the blocks [first_block, end_block) among the bits of `coded`, 4 * strip + block; returns what is left."""
    for k in range(first_block, end_block):
        if coded >> k & 1 and weigh(quantised, 64 * (k >> 2) + 4 * (k & 3), first, scratch) == 0:
            coded &= ~(1 << k)
    return coded
