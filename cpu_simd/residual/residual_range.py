"""Residuals that leave the 16 bits of a decoder (8.5.12.2, 8.5.13): their macroblocks become I_PCM."""

import numpy as np

from ...jit.intrinsics import outlined
from ...jit.kernel import helper
from ...standard.macroblock import RASTER_TO_BLOCK
from ...standard.tables import ZIGZAG_4x4
from ..decisions.quantise import MOST_RESIDUAL, RANGE_QP
from ..layout import CB_DC, CR_DC, LUMA_DC, N_LEVEL_BLOCKS
from ..quantiser.rdo_quant import OFFSET
from ..simd.lanes import sums_of_4
from ..simd.vector import absolute, add, load_u16x16, max_s, splat_u16x16
from .transform import reconstruct_strips, scale_chroma_dc, scale_luma_dc
from .transform_8x8 import PLACE_8x8, QUADRANT_8x8, reconstruct_8x8

# At QP 0 with flat lists a level adds at most this to a residual sample times 64: 29 in 4x4, 9 / 4 * 58 / 4 in 8x8 blocks
_MOST_SCALED = 33


@helper
def _magnitudes(mb, block, levels):
    return absolute(load_u16x16(levels, 16 * (N_LEVEL_BLOCKS * mb + block)))


@helper
def _largest_sum(mb, residual):
    """At least the sum of magnitudes of any block's levels, with those of its DC block."""
    levels, most = residual.levels, splat_u16x16(0)
    for n in range(0, 24, 4):
        a, b = _magnitudes(mb, n, levels), _magnitudes(mb, n + 1, levels)
        c, d = _magnitudes(mb, n + 2, levels), _magnitudes(mb, n + 3, levels)
        if residual.transform_8x8[mb]:
            most = max_s(most, add(add(a, b), add(c, d)))
        else:
            most = max_s(most, max_s(max_s(a, b), max_s(c, d)))
    dc = max_s(_magnitudes(mb, LUMA_DC, levels), max_s(_magnitudes(mb, CB_DC, levels), _magnitudes(mb, CR_DC, levels)))
    a, b, c, d = sums_of_4(add(most, dc))
    return a + b + c + d


@helper
def _is_beyond(mb, qp, qp_c, scaling, buffers, residual):
    """Whether any residual sample of macroblock mb is beyond MOST_RESIDUAL, from its levels; overwrites `buffers`."""
    outlined()
    _, predicted, out, quantised, dc, values, _, quantised_8x8 = buffers
    levels = residual.levels
    for i in range(96):
        dc[i] = 0
    for k in range(24):
        n = RASTER_TO_BLOCK[k] if k < 16 else k
        at = 64 * (k >> 2) + 4 * (k & 3) if k < 16 else 256 + 64 * (k >> 1 & 1) + 8 * (k >> 2 & 1) + 4 * (k & 1)
        for i in range(16):
            quantised[at + OFFSET[i]] = levels[mb, n, i]
    if residual.transform_8x8[mb]:
        for q in range(4):
            for i in range(64):
                quantised_8x8[QUADRANT_8x8[q] + PLACE_8x8[i]] = levels[mb, 4 * q + (i & 3), i >> 2]
        beyond = reconstruct_8x8(quantised_8x8, predicted, qp, scaling, out)
    else:
        for i in range(16):
            values[ZIGZAG_4x4[i]] = levels[mb, LUMA_DC, i]
        scale_luma_dc(values, qp, scaling)
        for k in range(16):
            dc[4 * k] = values[k]
        beyond = reconstruct_strips(quantised, dc, predicted, 0, 4, qp, scaling, out)
    for k in range(8):
        values[k] = levels[mb, CB_DC + (k >> 2), k & 3]
    scale_chroma_dc(values, 0, qp_c, scaling)
    scale_chroma_dc(values, 4, qp_c, scaling)
    for k in range(8):
        dc[64 + 16 * (k >> 1 & 1) + 8 * (k >> 2) + 4 * (k & 1)] = values[k]
    return reconstruct_strips(quantised, dc, predicted, 4, 6, qp_c, scaling, out) or beyond


@helper
def leaves_16_bits(mb, qp, qp_c, scaling, buffers, residual):
    """Whether macroblock mb may hold data that 8.5.12.2 and 8.5.13 exclude; overwrites `buffers` but the source.

    qp, qp_c: QP_Y, QP_C. The transforms' other values are at most 1.44 times as large as the largest of the residual (6 / 5
    a direction), so all have 16 bits if no sample is beyond MOST_RESIDUAL. Below RANGE_QP, with flat scaling lists,
    quantisers are too fine to add as much to differences of 255.
    """
    largest = np.int64(max(qp, qp_c))
    if not scaling.has_scaling_lists and largest < RANGE_QP:
        return False
    levels = _largest_sum(mb, residual)
    if levels == 0 or (not scaling.has_scaling_lists and (levels * _MOST_SCALED << largest // 6) <= 64 * (MOST_RESIDUAL - 1)):
        return False
    return _is_beyond(mb, qp, qp_c, scaling, buffers, residual)
