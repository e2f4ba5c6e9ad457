"""True cost of the residual of an inter macroblock: squared error and bits, in units of 1 / 256 bit.

Not part of the standard. Errors are measured at the coefficients, as transform_choice.py has them: nothing is reconstructed.
"""

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_CHROMA
from ..costs.cabac_bits import CHROMA_AC, CHROMA_DC, levels_bits
from ..costs.psy import energy_difference
from ..decisions.common import RD_CHROMA_LEAST, RD_CHROMA_WEIGHT
from ..decisions.decide import PSY_BITS
from ..decisions.quantise import CHOICE_DISTORTION, CHOICE_MOST_RATIO, DEAD_ZONE_INTER
from ..residual.inter_residual import BLOCKS_OF_QUADRANT, clear_quadrants
from ..residual.transform import CB, dc_multiplier, hadamard_2x2, quantise_dc, quantise_strips, reconstruct_strips
from ..residual.transform_8x8 import quantise_8x8, reconstruct_8x8
from ..residual.transform_choice import distortions, luma_cost, mean_bits
from ..simd.blocks import load_block, zigzag
from ..simd.lanes import nonzero_lanes
from ..simd.vector import store

# What the residual of a macroblock is measured in; a buffer has the samples of transform.py.
Residue = namedtuple("Residue", (
    "source",  # Sample[MB_SAMPLES]
    "predicted",  # Sample[MB_SAMPLES]
    "quantised",  # int16[768], levels and ratios
    "dc",  # int32[96]
    "lanes",  # int32[16]
    "values",  # int64[8], chroma DC
    "block",  # int16[64]
    "bits",  # int32[N_CHOICE_BITS], of cabac_bits.fill_bits and fill_choice_bits
    "scaling",  # ScalingLists of transform.py
    "psy_rd",  # weight of energies, 1 / 256
    "energy",  # int64[4], of the source (psy.luma_energy), if psy_rd
    "out",  # Sample[MB_SAMPLES], the reconstruction, if psy_rd
))  # fmt: skip


@helper
def _psy_cost(residue, pattern, is_8x8, qp):
    """Cost of the difference in energy of the reconstruction, in 1 / 256 bit. pattern: luma part of coded_block_pattern."""
    quantised, dc, out = residue.quantised, residue.dc, residue.out
    if pattern == 0:
        difference = energy_difference(residue.predicted, residue.energy)
    else:
        clear_quadrants(quantised, pattern)
        if is_8x8:
            reconstruct_8x8(quantised, residue.predicted, qp, residue.scaling, out)
        else:
            for i in range(64):
                dc[i] = 0
            reconstruct_strips(quantised, dc, residue.predicted, 0, 4, qp, residue.scaling, out)
        difference = energy_difference(out, residue.energy)
    return difference * residue.psy_rd * PSY_BITS[qp] >> 16


@helper
def luma_of(residue, qp, may_be_8x8):
    """Least cost of the luma with its part of coded_block_pattern, by either transform. may_be_8x8: whether both may be."""
    source, predicted, quantised = residue.source, residue.predicted, residue.quantised
    bits, scaling = residue.bits, residue.scaling
    coded = quantise_strips(source, predicted, 0, 4, 0, qp, DEAD_ZONE_INTER, True, scaling, quantised, residue.dc)
    quadrants = 0
    for q in range(4):
        quadrants |= (coded & BLOCKS_OF_QUADRANT[q] != 0) << q
    best, pattern = luma_cost(quantised, quadrants, False, bits, residue.block, residue.lanes)
    if residue.psy_rd:
        best += _psy_cost(residue, pattern, False, qp)
    if may_be_8x8:
        coded = quantise_8x8(source, predicted, qp, DEAD_ZONE_INTER, scaling, quantised)
        if coded:
            cost, pattern = luma_cost(quantised, coded, True, bits, residue.block, residue.lanes)
            if residue.psy_rd:
                cost += _psy_cost(residue, pattern, True, qp)
            best = min(best, cost)
    return best


@helper
def _chroma_dc(residue, qp_c):
    """Squared errors without and with levels of chroma DC, (step / 64)^2, bits of both blocks, and whether any is left."""
    values, block, scaling = residue.values, residue.block, residue.scaling
    none, some, total, has_levels = np.int64(0), np.int64(0), np.int64(0), False
    for plane in range(2):
        for k in range(4):
            values[4 * plane + k] = residue.dc[64 + 16 * (k >> 1) + 8 * plane + 4 * (k & 1)]
        hadamard_2x2(values, 4 * plane)
        multiplier = dc_multiplier(scaling, CB + plane, qp_c)
        mask = 0
        for k in range(4):
            value = values[4 * plane + k]
            level = quantise_dc(value, qp_c, DEAD_ZONE_INTER, multiplier, scaling.finer)
            ratio = abs(value) * multiplier >> (10 + qp_c // 6 - scaling.finer)
            left = min(abs(ratio - 64 * abs(level)), CHOICE_MOST_RATIO)
            ratio = min(ratio, CHOICE_MOST_RATIO)
            none += ratio * ratio
            some += left * left
            block[k] = level
            mask |= (level != 0) << k
        total += mean_bits(residue.bits, np.int64(CODED_BLOCK_BASE[CHROMA_DC]), 1 if mask else 0)
        total += levels_bits(residue.bits, CHROMA_DC, block, 0, mask)
        has_levels |= mask != 0
    return none, some, total, has_levels


@helper
def chroma_of(residue, qp, qp_c):
    """Least cost of the chroma with its part of coded_block_pattern, and the squared error without levels as a cost.

    qp, qp_c: QP_Y, QP_C. The blocks beside it are taken for coded in half of the macroblocks.
    """
    quantised, bits, lanes = residue.quantised, residue.bits, residue.lanes
    coded = quantise_strips(
        residue.source, residue.predicted, 4, 6, 1, qp_c, DEAD_ZONE_INTER, True, residue.scaling, quantised, residue.dc
    )
    distortions(quantised, 2, lanes)
    none, some, total = np.int64(0), np.int64(0), np.int64(0)
    for i in range(8):
        none += np.int64(lanes[i])
        some += np.int64(lanes[8 + i])
    if coded:
        for k in range(16, 24):
            coded_k = coded >> k & 1
            total += mean_bits(bits, np.int64(CODED_BLOCK_BASE[CHROMA_AC]), coded_k)
            if coded_k:
                store(residue.block, 0, zigzag(load_block(quantised, 64 * (k >> 2) + 4 * (k & 3))))
                total += levels_bits(bits, CHROMA_AC, residue.block, 1, nonzero_lanes(residue.block, 0) >> 1)
    dc_none, dc_some, dc_bits, any_dc = _chroma_dc(residue, qp_c)
    weight = CHOICE_DISTORTION * np.int64(RD_CHROMA_WEIGHT[max(0, qp - qp_c + RD_CHROMA_LEAST)])
    any_bits, ac_bits = CTX_CBP_CHROMA, CTX_CBP_CHROMA + 4
    without = (none + dc_none) * weight >> 16
    best = without + mean_bits(bits, any_bits, 0)
    if any_dc:
        pattern = mean_bits(bits, any_bits, 1) + mean_bits(bits, ac_bits, 0)
        best = min(best, ((none + dc_some) * weight >> 16) + dc_bits + pattern)
    if coded:
        pattern = mean_bits(bits, any_bits, 1) + mean_bits(bits, ac_bits, 1)
        best = min(best, ((some + dc_some) * weight >> 16) + dc_bits + total + pattern)
    return best, without
