"""Choice of the 4x4 or 8x8 transform for the luma of an inter macroblock, by distortion and bits; not part of the standard.

Distortion is measured at the coefficients, in units of the quantiser step, which both transforms have in common: nothing is
reconstructed before the choice. Bits are those of CABAC by frozen states (cabac_bits.py). A quadrant's levels are kept if
they save more distortion than their bits cost.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cabac_contexts import ABS_LEVEL_BASE, CODED_BLOCK_BASE, CTX_CBP_LUMA
from ..standard.macroblock import BLOCK_TO_RASTER
from .cabac_bits import N_BITS, ONE_BIT, LUMA_4x4, LUMA_8x8, large_level_bits, significance_contexts
from .decisions import CHOICE_DISTORTION, CHOICE_MOST_RATIO
from .simd.blocks import load_block, zigzag
from .simd.lanes import bit_length, nonzero_lanes, squares_of_pairs
from .simd.vector import absolute, add, load_u16x16, min_u, shift_left, splat_i32x8, splat_u16x16, store, sub
from .transform import RATIOS
from .transform_8x8 import QUADRANT_8x8, SCAN_8x8, nonzero_8x8

# Elements of a table of bits after those of cabac_bits.fill_bits, see fill_choice_bits
MEANS = N_BITS  # coded_block_flag 0, 1 of a 4x4 block, bit 0, 1 of coded_block_pattern: each the mean of its four contexts
LAST_4x4 = MEANS + 4  # [16]: the last level is at this position: significance of all positions as if the others were 0
OTHER_4x4 = LAST_4x4 + 16  # [16]: what another level at this position adds to that
LAST_8x8 = OTHER_4x4 + 16  # [64]
OTHER_8x8 = LAST_8x8 + 64  # [64]
N_CHOICE_BITS = OTHER_8x8 + 64


@helper
def mean_bits(bits, context, value):
    """Bits of a bin, the mean of four contexts from `context` on, by the values of the neighbours."""
    total = 0
    for k in range(context, context + 4):
        total += np.int64(bits[2 * k + value])
    return total >> 2


@helper
def _fill_significance(bits, category, size, to):
    """LAST and OTHER of a ctxBlockCat with `size` positions, from bits[to] on."""
    zeros = np.int64(0)
    for i in range(size):
        significant, last = significance_contexts(category, min(i, size - 2))
        zero, one = np.int64(bits[2 * significant]), np.int64(bits[2 * significant + 1])
        is_end = i == size - 1
        bits[to + i] = zeros + (0 if is_end else one + np.int64(bits[2 * last + 1]))
        bits[to + size + i] = 0 if is_end else one + np.int64(bits[2 * last]) - zero
        zeros += zero


@helper
def fill_choice_bits(bits):
    """Sums of the elements of fill_bits that luma_cost needs: bits int32[N_CHOICE_BITS], from N_BITS on."""
    for k in range(4):
        first = CTX_CBP_LUMA if k > 1 else np.int64(CODED_BLOCK_BASE[LUMA_4x4])
        total = np.int64(0)
        for context in range(first, first + 4):
            total += np.int64(bits[2 * context + (k & 1)])
        bits[MEANS + k] = total >> 2
    _fill_significance(bits, LUMA_4x4, 16, LAST_4x4)
    _fill_significance(bits, LUMA_8x8, 64, LAST_8x8)


@helper
def _block_bits(bits, category, last_table, other_table, block, mask):
    """residual_block_bits of a block by the bit mask of its levels, not 0; block: int16[64], in scan order."""
    base = np.int64(ABS_LEVEL_BASE[category])
    last = bit_length(mask) - 1
    total = np.int64(bits[last_table + last]) - np.int64(bits[other_table + last])
    first, greater = 1, 0
    rest = mask
    while rest != 0:
        i = bit_length(rest) - 1
        rest ^= np.int64(1) << i
        total += np.int64(bits[other_table + i])
        size = abs(np.int64(block[i]))
        if size == 1:
            total += np.int64(bits[2 * (base + first)]) + ONE_BIT
            if first:
                first = min(first + 1, 4)
        else:
            total += np.int64(bits[2 * (base + first) + 1]) + large_level_bits(bits, base + 5 + greater, size)
            first, greater = 0, min(greater + 1, 4)
    return total


@helper
def _bits_4x4(quantised, quadrant, bits, block):
    """Bits of the four 4x4 blocks of a quadrant."""
    total = np.int64(0)
    for n in range(4 * quadrant, 4 * quadrant + 4):
        k = np.int64(BLOCK_TO_RASTER[n])
        store(block, 0, zigzag(load_block(quantised, 64 * (k >> 2) + 4 * (k & 3))))
        mask = nonzero_lanes(block, 0)
        if mask:
            total += np.int64(bits[MEANS + 1]) + _block_bits(bits, LUMA_4x4, LAST_4x4, OTHER_4x4, block, mask)
        else:
            total += np.int64(bits[MEANS])
    return total


@helper
def _bits_8x8(quantised, quadrant, bits, block):
    """Bits of the 8x8 block of a quadrant, which has levels."""
    at = QUADRANT_8x8[quadrant]
    rest, mask = nonzero_8x8(quantised, quadrant), np.int64(0)
    while rest != 0:
        k = bit_length(rest) - 1
        rest ^= np.int64(1) << k
        i = SCAN_8x8[k]
        block[i] = quantised[at + 16 * (k >> 3) + (k & 7)]
        mask |= np.int64(1) << i
    return _block_bits(bits, LUMA_8x8, LAST_8x8, OTHER_8x8, block, mask)


@helper
def distortions(quantised, pair, lanes):
    """Squared errors of two quadrants, (step / 64)^2, without their levels and with them -> lanes int32[16].

    Sums of four lanes: elements 0 and 4 without levels, 8 and 12 with. Both transforms have two quadrants side by side.
    """
    most = splat_u16x16(CHOICE_MOST_RATIO)
    dropped, kept = splat_i32x8(0), splat_i32x8(0)
    for at in range(128 * pair, 128 * pair + 128, 16):
        ratios = load_u16x16(quantised, RATIOS + at)
        left = sub(ratios, shift_left(absolute(load_u16x16(quantised, at)), 6))
        dropped = add(dropped, squares_of_pairs(min_u(ratios, most)))
        kept = add(kept, squares_of_pairs(min_u(absolute(left), most)))
    store(lanes, 0, dropped)
    store(lanes, 8, kept)


@helper
def _sum(lanes, at):
    return np.int64(lanes[at]) + np.int64(lanes[at + 1]) + np.int64(lanes[at + 2]) + np.int64(lanes[at + 3])


@helper
def luma_cost(quantised, coded, is_8x8, bits, block, lanes):
    """Cost of the luma of an inter macroblock, in 1 / 256 bit, and the coded_block_pattern for which it is lowest.

    quantised: int16[768] of quantise_strips or quantise_8x8; coded: bit mask of the quadrants with levels; bits: of
    fill_choice_bits; block: int16[64], lanes: int32[16], scratch.
    """
    zero, one = np.int64(bits[MEANS + 2]), np.int64(bits[MEANS + 3])
    total = np.int64(0)
    pattern = 0
    for q in range(4):
        if q & 1 == 0:
            distortions(quantised, q >> 1, lanes)
        cost = (_sum(lanes, 4 * (q & 1)) * CHOICE_DISTORTION >> 8) + zero
        own = (_sum(lanes, 8 + 4 * (q & 1)) * CHOICE_DISTORTION >> 8) + one
        if coded >> q & 1 and own < cost:
            own += _bits_8x8(quantised, q, bits, block) if is_8x8 else _bits_4x4(quantised, q, bits, block)
            if own < cost:
                cost = own
                pattern |= 1 << q
        total += cost
    return total, pattern
