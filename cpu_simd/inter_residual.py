"""Inter macroblocks: motion compensation, residual, transform, quantisation, reconstruction (8.4, 8.5)."""

import numpy as np

from ..standard.jit import kernel
from ..standard.macroblock import BLOCK_TO_RASTER, I_PCM, LUMA_DC, N_LEVEL_BLOCKS
from .macroblock_coding import cheap_score, code_chroma, load_lanes, pcm_is_cheaper, scan_lane, store_lanes, subtract_lanes
from .motion_compensation import predict_inter
from .transform import DEAD_ZONE_INTER, LANES, forward_4x4, inverse_4x4, quantise_4x4, scale_4x4

# Luma residual whose cheap score stays below these is dropped, a quadrant or the macroblock; chroma AC likewise, a plane.
THRESHOLD_8x8, THRESHOLD_16x16, THRESHOLD_CHROMA = 4, 6, 7


@kernel
def _drop_cheap_levels(levels, total_coeff, coefficients):
    """Zeroes the luma levels that are not worth their bits; returns the luma coded_block_pattern. Not in the standard.

    levels int16[27, 16], total_coeff uint8[24] of the macroblock, coefficients int32 lanes.
    """
    cbp = 0
    total = 0
    for quadrant in range(4):
        score = 0
        for block in range(4 * quadrant, 4 * quadrant + 4):
            score += cheap_score(levels[block], total_coeff[BLOCK_TO_RASTER[block]])
        if score >= THRESHOLD_8x8:
            cbp |= 1 << quadrant
            total += score
    if total < THRESHOLD_16x16:
        cbp = 0
    for block in range(16):
        if (cbp >> (block >> 2)) & 1 == 0:
            k = BLOCK_TO_RASTER[block]
            levels[block] = 0
            total_coeff[k] = 0
            for p in range(16):
                coefficients[p * LANES + k] = 0
    return cbp


@kernel
def _code_luma(src_y, x0, y0, qp, predicted, rec_y, scratch, coefficients, levels, total_coeff):
    """8.5.1: the luma residual of one inter macroblock; returns the luma part of coded_block_pattern."""
    load_lanes(src_y, x0, y0, 2, 16, scratch[0], 0)
    load_lanes(predicted, 0, 0, 2, 16, scratch[1], 0)
    subtract_lanes(scratch[0], scratch[1], scratch[2], 16)
    forward_4x4(scratch[2], coefficients, 16)
    levels[LUMA_DC] = 0
    cbp = 0
    if quantise_4x4(coefficients, 16, qp, DEAD_ZONE_INTER, 0):
        levels[:16] = 0
        total_coeff[:16] = 0
    else:
        for block in range(16):
            k = BLOCK_TO_RASTER[block]
            total_coeff[k] = scan_lane(coefficients, k, 0, levels[block])
        cbp = _drop_cheap_levels(levels, total_coeff, coefficients)
    if cbp == 0:
        rec_y[y0 : y0 + 16, x0 : x0 + 16] = predicted
    else:
        scale_4x4(coefficients, 16, qp, 0)
        inverse_4x4(coefficients, 16)
        store_lanes(scratch[1], coefficients, rec_y, x0, y0, 2, 16, 0)
    return cbp


@kernel
def inter_residual(
    src_y, src_u, src_v, ref_luma, ref_chroma, ref_slots, pad, mb_type, sub_mb_type, ref_idx, mv, qp, chroma_qp_offset,
    row0, row1, rec_y, rec_u, rec_v, levels, total_coeff, cbp,
):  # fmt: skip
    """Predicts, codes and reconstructs every inter macroblock of the rows [row0, row1); 8.4, 8.5.

    Planes uint8; ref_luma uint8[n_slots, 4, H + 2 * pad, W + 2 * pad], ref_chroma uint8[n_slots, 2, ...] with borders of
    pad / 2; ref_slots int32[n_ref]: slot of each reference index; the state arrays of encoder/frame.py. A macroblock that
    I_PCM would code in fewer bits becomes one (ref_idx -1, mv 0), and intra( ) codes it.
    """
    mb_width = src_y.shape[1] // 16
    predicted = np.zeros((3, 16, 16), np.uint8)
    scratch = np.zeros((3, 16 * LANES), np.int16)
    coefficients = np.zeros(16 * LANES, np.int32)
    dc = np.zeros(16, np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        if mb_type[mb] <= I_PCM:
            continue
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        q = np.int64(qp[mb])
        predict_inter(mb, x0, y0, ref_luma, ref_chroma, ref_slots, pad, mb_type, sub_mb_type, ref_idx, mv, predicted)
        luma = _code_luma(src_y, x0, y0, q, predicted[0], rec_y, scratch, coefficients, levels[mb], total_coeff[mb])
        load_lanes(src_u, x0 // 2, y0 // 2, 1, 4, scratch[0], 0)
        load_lanes(src_v, x0 // 2, y0 // 2, 1, 4, scratch[0], 4)
        load_lanes(predicted[1], 0, 0, 1, 4, scratch[1], 0)
        load_lanes(predicted[2], 0, 0, 1, 4, scratch[1], 4)
        levels[mb, LUMA_DC:N_LEVEL_BLOCKS] = 0
        chroma = code_chroma(
            scratch[0], scratch[1], scratch[2], coefficients, dc, q, chroma_qp_offset, DEAD_ZONE_INTER,
            THRESHOLD_CHROMA, levels[mb], total_coeff[mb],
        )  # fmt: skip
        store_lanes(scratch[1], coefficients, rec_u, x0 // 2, y0 // 2, 1, 4, 0)
        store_lanes(scratch[1], coefficients, rec_v, x0 // 2, y0 // 2, 1, 4, 4)
        cbp[mb] = luma + 16 * chroma
        if pcm_is_cheaper(levels[mb], total_coeff[mb]):
            mb_type[mb] = I_PCM
            ref_idx[mb] = -1
            mv[mb] = 0
