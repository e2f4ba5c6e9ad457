"""True cost of the residual of an inter macroblock: squared error and bits, in units of 1 / 256 bit; not part of the standard.

Errors are measured at the coefficients: the transform keeps squared errors, so nothing is reconstructed.
"""

from collections import namedtuple

import numpy as np

from ..jit.kernel import helper
from ..standard.tables import QUANT_MF
from .decisions import RD_CHROMA_LEAST, RD_CHROMA_WEIGHT, RD_DC_INC, RD_DEAD_ZONE, RD_DISTORTION, RD_MOST_ERROR
from .rd_bits import RD_AC, RD_DC, RD_LUMA, block_flag_bits, chroma_pattern_bits, level_block_bits, luma_pattern_bits
from .simd.blocks import load_block, zigzag
from .simd.lanes import nonzero_lanes, squares_of_pairs
from .simd.vector import absolute, add, load_u16x16, min_u, shift_left, splat_i32x8, splat_u16x16, store, sub
from .transform import RATIOS, hadamard_2x2, quantise_dc, quantise_strips

# What the residual of a macroblock is measured in; a buffer has the samples of transform.py.
Residue = namedtuple("Residue", (
    "source",  # uint8[384]
    "predicted",  # uint8[384]
    "quantised",  # int16[768], levels and ratios
    "dc",  # int32[96]
    "dropped",  # int32[48], squares without levels: [8 * strip + 2 * block], two parts each
    "kept",  # int32[48], with the levels
    "values",  # int64[8], chroma DC
    "scratch",  # int16[16]
))  # fmt: skip


@helper
def squares(residue, strip0, strip1):
    """Squared errors of the blocks of strips [strip0, strip1), (step / 64)^2, from quantised to dropped and kept."""
    quantised, most = residue.quantised, splat_u16x16(RD_MOST_ERROR)
    for strip in range(strip0, strip1):
        dropped, kept = splat_i32x8(0), splat_i32x8(0)
        for at in range(64 * strip, 64 * strip + 64, 16):
            ratios = load_u16x16(quantised, RATIOS + at)
            left = sub(ratios, shift_left(absolute(load_u16x16(quantised, at)), 6))
            dropped = add(dropped, squares_of_pairs(min_u(ratios, most)))
            kept = add(kept, squares_of_pairs(min_u(absolute(left), most)))
        store(residue.dropped, 8 * strip, dropped)
        store(residue.kept, 8 * strip, kept)


@helper
def _block_cost(residue, k, qp, kind, inc):
    """Bits of coded block k (4 * strip + block) with its flag."""
    block = zigzag(load_block(residue.quantised, 64 * (k >> 2) + 4 * (k & 3)))
    store(residue.scratch, 0, block)
    mask = nonzero_lanes(residue.scratch, 0)
    at = 0
    if kind == RD_AC:
        mask >>= 1
        at = 1
    return level_block_bits(qp, kind, residue.scratch, at, mask) + block_flag_bits(qp, kind, inc, 1)


@helper
def luma_cost(residue, qp):
    """Least cost of the luma with its part of coded_block_pattern; levels of a quadrant are left out where that is cheaper."""
    dropped, kept = residue.dropped, residue.kept
    coded = quantise_strips(
        residue.source, residue.predicted, 0, 4, 0, qp, RD_DEAD_ZONE, residue.quantised, residue.dc
    )
    squares(residue, 0, 4)
    without, total, pattern = np.int64(0), np.int64(0), 0
    for q in range(4):
        none, some, bits, k = np.int64(0), np.int64(0), np.int64(0), 8 * (q >> 1) + 2 * (q & 1)
        any_coded = coded >> k & 0x33
        for j in range(4):
            block = k + (j & 1) + 4 * (j >> 1)
            at = 2 * block
            none += np.int64(dropped[at]) + np.int64(dropped[at + 1])
            if any_coded:
                some += np.int64(kept[at]) + np.int64(kept[at + 1])
                inc = (coded >> (block ^ 1) & 1) + 2 * (coded >> (block ^ 4) & 1)
                if coded >> block & 1:
                    bits += _block_cost(residue, block, qp, RD_LUMA, inc)
                else:
                    bits += block_flag_bits(qp, RD_LUMA, inc, 0)
        none = none * RD_DISTORTION >> 8
        some = (some * RD_DISTORTION >> 8) + bits
        without += none
        if any_coded and some < none:
            pattern |= 1 << q
            total += some
        else:
            total += none
    without += luma_pattern_bits(qp, 0)
    if pattern == 0:
        return without
    return min(without, total + luma_pattern_bits(qp, pattern))


@helper
def _chroma_dc_cost(residue, qp, qp_c):
    """Squared errors without and with the levels of chroma DC, (step / 64)^2, bits of both blocks, and whether any is left."""
    values, scratch = residue.values, residue.scratch
    none, some, bits, found = np.int64(0), np.int64(0), np.int64(0), False
    for plane in range(2):
        mask = 0
        for k in range(4):
            values[4 * plane + k] = residue.dc[64 + 16 * (k >> 1) + 8 * plane + 4 * (k & 1)]
        hadamard_2x2(values, 4 * plane)
        for k in range(4):
            value = values[4 * plane + k]
            level = quantise_dc(value, qp_c, RD_DEAD_ZONE)
            ratio = abs(value) * np.int64(QUANT_MF[qp_c % 6, 0]) >> (10 + qp_c // 6)
            left = min(abs(ratio - 64 * abs(level)), RD_MOST_ERROR)
            ratio = min(ratio, RD_MOST_ERROR)
            none += ratio * ratio
            some += left * left
            scratch[k] = level
            mask |= (level != 0) << k
        bits += block_flag_bits(qp, RD_DC, RD_DC_INC, 1 if mask else 0)
        if mask:
            bits += level_block_bits(qp, RD_DC, scratch, 0, mask)
            found = True
    return none, some, bits, found


@helper
def chroma_cost(residue, qp, qp_c):
    """Least cost of the chroma with its part of coded_block_pattern, and the squared error without levels as a cost.

    qp, qp_c: QP_Y, QP_C.
    """
    dropped, kept = residue.dropped, residue.kept
    coded = quantise_strips(
        residue.source, residue.predicted, 4, 6, 1, qp_c, RD_DEAD_ZONE, residue.quantised, residue.dc
    )
    squares(residue, 4, 6)
    none, some, bits = np.int64(0), np.int64(0), np.int64(0)
    for k in range(16, 24):
        none += np.int64(dropped[2 * k]) + np.int64(dropped[2 * k + 1])
        if coded:
            some += np.int64(kept[2 * k]) + np.int64(kept[2 * k + 1])
            inc = (coded >> (k ^ 1) & 1) + 2 * (coded >> (k ^ 4) & 1)
            if coded >> k & 1:
                bits += _block_cost(residue, k, qp, RD_AC, inc)
            else:
                bits += block_flag_bits(qp, RD_AC, inc, 0)
    dc_none, dc_some, dc_bits, any_dc = _chroma_dc_cost(residue, qp, qp_c)
    weight = RD_DISTORTION * np.int64(RD_CHROMA_WEIGHT[max(0, qp - qp_c + RD_CHROMA_LEAST)])
    without = (none + dc_none) * weight >> 16
    best = without + chroma_pattern_bits(qp, 0)
    if any_dc:
        best = min(best, ((none + dc_some) * weight >> 16) + dc_bits + chroma_pattern_bits(qp, 1))
    if coded:
        best = min(best, ((some + dc_some) * weight >> 16) + dc_bits + bits + chroma_pattern_bits(qp, 2))
    return best, without
