"""Choice of the 4x4 or 8x8 transform for the luma of an inter macroblock, by distortion and bits; not part of the standard.

Distortion is measured at the coefficients, in units of the quantiser step, which both transforms have in common: nothing is
reconstructed before the choice. Bits are those of CABAC by frozen states (cabac_bits.py). A quadrant's levels are kept if
they save more distortion than their bits cost.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_LUMA
from ...standard.macroblock import BLOCK_TO_RASTER
from ..costs.cabac_bits import N_BITS, LUMA_4x4, LUMA_8x8, fill_bits, levels_bits
from ..decisions.quantise import CHOICE_DISTORTION, CHOICE_MOST_RATIO
from ..simd.block_rows import load_u16x32
from ..simd.blocks import load_block, splat_i32x16, zigzag
from ..simd.lanes import bit_length, make_shuffle, nonzero_lanes, squares_of_pairs
from ..simd.vector import absolute, add, min_u, shift_left, splat_u16x32, store, sub
from .transform import RATIOS
from .transform_8x8 import QUADRANT_8x8, SCAN_8x8, nonzero_8x8

# Elements of a table of bits after those of cabac_bits.fill_bits, see fill_choice_bits
MEANS = N_BITS  # coded_block_flag 0, 1 of a 4x4 block, bit 0, 1 of coded_block_pattern: each the mean of its four contexts
N_CHOICE_BITS = MEANS + 4
N_QPS = 52

_even_rows, _odd_rows = make_shuffle([*range(8)]), make_shuffle([*range(8, 16)])


@helper
def mean_bits(bits, context, value):
    """Bits of a bin, the mean of four contexts from `context` on, by the values of the neighbours."""
    total = 0
    for k in range(context, context + 4):
        total += np.int64(bits[2 * k + value])
    return total >> 2


@helper
def fill_choice_bits(bits):
    """Sums of the elements of fill_bits that luma_cost needs: bits int32[N_CHOICE_BITS], from N_BITS on."""
    for k in range(4):
        first = CTX_CBP_LUMA if k > 1 else np.int64(CODED_BLOCK_BASE[LUMA_4x4])
        total = np.int64(0)
        for context in range(first, first + 4):
            total += np.int64(bits[2 * context + (k & 1)])
        bits[MEANS + k] = total >> 2


@helper
def table_of_qp(bits, slice_type, qp, kept, known):
    """fill_bits and fill_choice_bits, or a copy of what they have given before: a tenth of the time. Returns `known` with qp.

    bits: int32[N_CHOICE_BITS]; kept: int32[N_QPS, N_CHOICE_BITS], scratch, the tables of QPs whose bit in `known` is set.
    """
    if known >> qp & 1:
        for k in range(N_CHOICE_BITS):
            bits[k] = kept[qp, k]
        return known
    fill_bits(bits, slice_type, qp)
    fill_choice_bits(bits)
    for k in range(N_CHOICE_BITS):
        kept[qp, k] = bits[k]
    return known | np.int64(1) << qp


@helper
def _bits_4x4(quantised, quadrant, bits, block):
    """Bits of the four 4x4 blocks of a quadrant."""
    total = np.int64(0)
    for n in range(4 * quadrant, 4 * quadrant + 4):
        k = np.int64(BLOCK_TO_RASTER[n])
        store(block, 0, zigzag(load_block(quantised, 64 * (k >> 2) + 4 * (k & 3))))
        mask = nonzero_lanes(block, 0)
        if mask:
            total += np.int64(bits[MEANS + 1]) + levels_bits(bits, LUMA_4x4, block, 0, mask)
        else:
            total += np.int64(bits[MEANS])
    return total


@helper
def bits_8x8(quantised, quadrant, bits, block):
    """Bits of the levels of a quadrant's 8x8 block; block: int16[64], scratch."""
    at = QUADRANT_8x8[quadrant]
    rest, mask = nonzero_8x8(quantised, quadrant), np.int64(0)
    while rest != 0:
        k = bit_length(rest) - 1
        rest ^= np.int64(1) << k
        i = SCAN_8x8[k]
        block[i] = quantised[at + 16 * (k >> 3) + (k & 7)]
        mask |= np.int64(1) << i
    return levels_bits(bits, LUMA_8x8, block, 0, mask)


@helper
def distortions(quantised, pair, lanes):
    """Squared errors of two quadrants, (step / 64)^2, without their levels and with them -> lanes int32[16].

    Sums of four lanes: elements 0 and 4 without levels, 8 and 12 with. Both transforms have two quadrants side by side.
    """
    most = splat_u16x32(CHOICE_MOST_RATIO)
    dropped, kept = splat_i32x16(0), splat_i32x16(0)
    for at in range(128 * pair, 128 * pair + 128, 32):
        ratios = load_u16x32(quantised, RATIOS + at)
        left = sub(ratios, shift_left(absolute(load_u16x32(quantised, at)), 6))
        dropped = add(dropped, squares_of_pairs(min_u(ratios, most)))
        kept = add(kept, squares_of_pairs(min_u(absolute(left), most)))
    store(lanes, 0, add(_even_rows(dropped, dropped), _odd_rows(dropped, dropped)))
    store(lanes, 8, add(_even_rows(kept, kept), _odd_rows(kept, kept)))


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
        q_cost = (_sum(lanes, 8 + 4 * (q & 1)) * CHOICE_DISTORTION >> 8) + one
        if coded >> q & 1 and q_cost < cost:
            q_cost += bits_8x8(quantised, q, bits, block) if is_8x8 else _bits_4x4(quantised, q, bits, block)
            if q_cost < cost:
                cost = q_cost
                pattern |= 1 << q
        total += cost
    return total, pattern
