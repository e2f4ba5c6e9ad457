"""Choice of the 4x4 or 8x8 transform for the luma of an inter macroblock, by distortion and bits; not part of the standard.

Distortion is measured at the coefficients, in units of the quantiser step, which both transforms have in common: nothing is
reconstructed before the choice. Bits are those of CABAC by frozen states (cabac_bits.py). A quadrant's levels are kept if
they save more distortion than their bits cost.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_LUMA
from ..standard.macroblock import BLOCK_TO_RASTER
from .cabac_bits import LUMA_4x4, LUMA_8x8, residual_block_bits
from .decisions import CHOICE_DISTORTION, CHOICE_MOST_RATIO
from .simd.blocks import load_block, zigzag
from .simd.lanes import squares_of_pairs
from .simd.vector import absolute, add, load_u16x16, min_u, shift_left, splat_i32x8, splat_u16x16, store, sub
from .transform import RATIOS
from .transform_8x8 import PLACE_8x8, QUADRANT_8x8


@helper
def _mean_bits(bits, context, value):
    """Bits of a bin, the mean of four contexts from `context` on, by the values of the neighbours."""
    total = 0
    for k in range(context, context + 4):
        total += np.int64(bits[2 * k + value])
    return total >> 2


@helper
def _bits_4x4(quantised, quadrant, bits, block):
    """Bits of the four 4x4 blocks of a quadrant."""
    total = np.int64(0)
    for n in range(4 * quadrant, 4 * quadrant + 4):
        k = np.int64(BLOCK_TO_RASTER[n])
        store(block, 0, zigzag(load_block(quantised, 64 * (k >> 2) + 4 * (k & 3))))
        own = residual_block_bits(bits, LUMA_4x4, block, 0, 16)
        total += own + _mean_bits(bits, np.int64(CODED_BLOCK_BASE[LUMA_4x4]), 1 if own else 0)
    return total


@helper
def _bits_8x8(quantised, quadrant, bits, block):
    """Bits of the 8x8 block of a quadrant."""
    at = QUADRANT_8x8[quadrant]
    for i in range(64):
        block[i] = quantised[at + PLACE_8x8[i]]
    return residual_block_bits(bits, LUMA_8x8, block, 0, 64)


@helper
def _distortions(quantised, pair, lanes):
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
    cabac_bits.fill_bits; block: int16[64], lanes: int32[16], scratch.
    """
    zero, one = _mean_bits(bits, CTX_CBP_LUMA, 0), _mean_bits(bits, CTX_CBP_LUMA, 1)
    total = np.int64(0)
    pattern = 0
    for q in range(4):
        if q & 1 == 0:
            _distortions(quantised, q >> 1, lanes)
        cost = (_sum(lanes, 4 * (q & 1)) * CHOICE_DISTORTION >> 8) + zero
        if coded >> q & 1:
            own = _bits_8x8(quantised, q, bits, block) if is_8x8 else _bits_4x4(quantised, q, bits, block)
            own += (_sum(lanes, 8 + 4 * (q & 1)) * CHOICE_DISTORTION >> 8) + one
            if own < cost:
                cost = own
                pattern |= 1 << q
        total += cost
    return total, pattern
