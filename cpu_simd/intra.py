"""Intra macroblocks: choice of type and modes, coding and reconstruction in raster order (8.3, 8.5)."""

import numpy as np

from ..standard.jit import kernel
from ..standard.macroblock import BLOCK_TO_RASTER, CB_DC, LUMA_DC, I_4x4, I_16x16, I_PCM
from ..standard.tables import UE_BITS, ZIGZAG_4x4
from .intra_prediction import (
    ABOVE_RIGHT_INSIDE,
    INTRA_4x4_VALUES,
    N_MODES_4x4,
    predict_16x16,
    predict_chroma,
    values_4x4,
)
from .macroblock_coding import (
    code_chroma,
    code_pcm,
    load_lanes,
    pcm_is_cheaper,
    scan_lane,
    store_lanes,
    subtract_lanes,
)
from .transform import (
    DEAD_ZONE_INTRA,
    LANES,
    code_luma_dc,
    forward_4x4,
    inverse_4x4,
    quantise_4x4,
    satd_lanes,
    scale_4x4,
    scale_luma_dc,
)

# What an Intra_4x4 macroblock costs in bits beyond its modes and the SATD, set against Intra_16x16; found by trial.
BITS_4x4 = 4

# Rows of the scratch array int16[N_SCRATCH, 16 * LANES]
SOURCE, PREDICTION, DIFFERENCE, HADAMARD, SATD, VALUES, N_SCRATCH = range(7)


@kernel
def _mode_16x16(rec_y, x0, y0, left, top, corner, lam, scratch):
    """The Intra_16x16 mode of lowest SATD + lam * bits and that cost; the source lies in scratch[SOURCE]."""
    best, best_cost = 2, 1 << 30
    for mode in range(4):
        if (mode == 0 and not top) or (mode == 1 and not left) or (mode == 3 and not corner):
            continue
        predict_16x16(rec_y, x0, y0, mode, left, top, scratch[PREDICTION])
        subtract_lanes(scratch[SOURCE], scratch[PREDICTION], scratch[DIFFERENCE], 16)
        satd_lanes(scratch[DIFFERENCE], scratch[HADAMARD], scratch[SATD], 16)
        cost = lam * int(UE_BITS[1 + mode])
        for k in range(16):
            cost += int(scratch[SATD, k])
        if cost < best_cost:
            best, best_cost = mode, cost
    return best, best_cost


@kernel
def _code_16x16(rec_y, x0, y0, mode, left, top, qp, scratch, coefficients, dc, levels, total_coeff):
    """8.3.3, 8.5.2: codes the luma of an Intra_16x16 macroblock; returns the luma part of coded_block_pattern (0, 15)."""
    predict_16x16(rec_y, x0, y0, mode, left, top, scratch[PREDICTION])
    subtract_lanes(scratch[SOURCE], scratch[PREDICTION], scratch[DIFFERENCE], 16)
    forward_4x4(scratch[DIFFERENCE], coefficients, 16)
    for k in range(16):
        dc[k] = coefficients[k]
    empty = quantise_4x4(coefficients, 16, qp, DEAD_ZONE_INTRA, 1)
    code_luma_dc(dc, qp)
    for i in range(16):
        levels[LUMA_DC, i] = dc[ZIGZAG_4x4[i]]
    for block in range(16):
        k = BLOCK_TO_RASTER[block]
        total_coeff[k] = scan_lane(coefficients, k, 1, levels[block])
    scale_luma_dc(dc, qp)
    scale_4x4(coefficients, 16, qp, 1)
    for k in range(16):
        coefficients[k] = dc[k]
    inverse_4x4(coefficients, 16)
    store_lanes(scratch[PREDICTION], coefficients, rec_y, x0, y0, 2, 16, 0)
    return 0 if empty else 15


@kernel
def _mode_4x4(mb, k, left, top, mb_width, intra4x4_mode):
    """8.3.1.1: predIntra4x4PredMode of block k (raster); `left`, `top`: availability of the neighbouring macroblocks."""
    bx, by = k & 3, k >> 2
    if (bx == 0 and not left) or (by == 0 and not top):
        return 2
    a = intra4x4_mode[mb, k - 1] if bx > 0 else intra4x4_mode[mb - 1, k + 3]
    b = intra4x4_mode[mb, k - 4] if by > 0 else intra4x4_mode[mb - mb_width, k + 12]
    return min(int(a), int(b))


@kernel
def _choose_4x4(src_y, x, y, predicted, usable, lam, scratch):
    """The Intra_4x4 mode of lowest SATD + lam * bits of the block at (x, y) from scratch[VALUES], and that cost.

    Leaves the difference of mode m in lane m of scratch[DIFFERENCE].
    """
    values, difference = scratch[VALUES], scratch[DIFFERENCE]
    for p in range(16):
        sample = int(src_y[y + (p >> 2), x + (p & 3)])
        for mode in range(N_MODES_4x4):
            difference[p * LANES + mode] = sample - int(values[INTRA_4x4_VALUES[p, mode]])
    satd_lanes(difference, scratch[HADAMARD], scratch[SATD], 16)
    best, best_cost = 2, 1 << 30
    for mode in range(N_MODES_4x4):
        if (usable >> mode) & 1:
            cost = int(scratch[SATD, mode]) + lam * (1 if mode == predicted else 4)
            if cost < best_cost:
                best, best_cost = mode, cost
    return best, best_cost


@kernel
def _code_4x4(
    src_y, mb, x0, y0, left, top, corner, right, mb_width, lam, limit, qp, intra4x4_mode, rec_y, scratch, coefficients,
    levels, total_coeff,
):  # fmt: skip
    """8.3.1, 8.5.1: chooses and codes the 16 blocks of an Intra_4x4 macroblock one after the other.

    Returns the luma part of coded_block_pattern, or -1 as soon as the cost reaches `limit`.
    """
    cost = lam * BITS_4x4
    cbp = 0
    values, residual = scratch[VALUES], scratch[HADAMARD]
    for block in range(16):
        k = BLOCK_TO_RASTER[block]
        bx, by = k & 3, k >> 2
        x, y = x0 + 4 * bx, y0 + 4 * by
        if by == 0:
            above_right = right if bx == 3 else top
        else:
            above_right = (ABOVE_RIGHT_INSIDE >> k) & 1 != 0
        has_corner = (left or bx > 0) and (top or by > 0) and (corner or k > 0)
        usable = values_4x4(rec_y, x, y, left or bx > 0, top or by > 0, has_corner, above_right, values)
        predicted = _mode_4x4(mb, k, left, top, mb_width, intra4x4_mode)
        mode, block_cost = _choose_4x4(src_y, x, y, predicted, usable, lam, scratch)
        cost += block_cost
        if cost >= limit:
            return -1
        intra4x4_mode[mb, k] = mode
        for p in range(16):
            residual[p * LANES] = scratch[DIFFERENCE, p * LANES + mode]
        forward_4x4(residual, coefficients, 1)
        empty = quantise_4x4(coefficients, 1, qp, DEAD_ZONE_INTRA, 0)
        if empty:
            levels[block] = 0
            total_coeff[k] = 0
            for p in range(16):
                rec_y[y + (p >> 2), x + (p & 3)] = values[INTRA_4x4_VALUES[p, mode]]
        else:
            cbp |= 1 << (block >> 2)
            total_coeff[k] = scan_lane(coefficients, 0, 0, levels[block])
            scale_4x4(coefficients, 1, qp, 0)
            inverse_4x4(coefficients, 1)
            for p in range(16):
                sample = int(values[INTRA_4x4_VALUES[p, mode]]) + int(coefficients[p * LANES])
                rec_y[y + (p >> 2), x + (p & 3)] = min(255, max(0, sample))
    levels[LUMA_DC] = 0
    return cbp


@kernel
def _code_chroma(
    src_u, src_v, x0, y0, left, top, corner, lam, qp, chroma_qp_offset, rec_u, rec_v, scratch, coefficients, dc,
    levels, total_coeff,
):  # fmt: skip
    """8.3.4, 8.5.4: chooses the chroma mode by SATD of both planes and codes them; returns mode and chroma cbp."""
    source, prediction = scratch[SOURCE], scratch[PREDICTION]
    load_lanes(src_u, x0, y0, 1, 4, source, 0)
    load_lanes(src_v, x0, y0, 1, 4, source, 4)
    best, best_cost = 0, 1 << 30
    for mode in range(4):
        if (mode == 1 and not left) or (mode == 2 and not top) or (mode == 3 and not corner):
            continue
        predict_chroma(rec_u, x0, y0, mode, left, top, prediction, 0)
        predict_chroma(rec_v, x0, y0, mode, left, top, prediction, 4)
        subtract_lanes(source, prediction, scratch[DIFFERENCE], 8)
        satd_lanes(scratch[DIFFERENCE], scratch[HADAMARD], scratch[SATD], 8)
        cost = lam * int(UE_BITS[mode])
        for k in range(8):
            cost += int(scratch[SATD, k])
        if cost < best_cost:
            best, best_cost = mode, cost
    predict_chroma(rec_u, x0, y0, best, left, top, prediction, 0)
    predict_chroma(rec_v, x0, y0, best, left, top, prediction, 4)
    levels[CB_DC] = 0
    levels[CB_DC + 1] = 0
    cbp = code_chroma(
        source, prediction, scratch[DIFFERENCE], coefficients, dc, qp, chroma_qp_offset, DEAD_ZONE_INTRA, 0, levels,
        total_coeff,
    )  # fmt: skip
    store_lanes(prediction, coefficients, rec_u, x0, y0, 1, 4, 0)
    store_lanes(prediction, coefficients, rec_v, x0, y0, 1, 4, 4)
    return best, cbp


@kernel
def intra(
    src_y, src_u, src_v, slice_first_mb, lam, chroma_qp_offset, first_mb, end_mb, mb_type, intra4x4_mode,
    intra16x16_mode, intra_chroma_mode, qp, rec_y, rec_u, rec_v, levels, total_coeff, cbp,
):  # fmt: skip
    """Codes every intra macroblock of [first_mb, end_mb) in raster order: decisions by SATD + lam * bits; 8.3, 8.5.

    Planes uint8; the state arrays of encoder/frame.py. mb_type tells intra macroblocks (any intra type) from inter ones
    and receives the type chosen. Needs the reconstruction of inter macroblocks; slices are independent of each other.
    """
    mb_width = src_y.shape[1] // 16
    scratch = np.zeros((N_SCRATCH, 16 * LANES), np.int16)
    coefficients = np.zeros(16 * LANES, np.int32)
    dc = np.zeros(16, np.int64)
    for mb in range(first_mb, end_mb):
        if mb_type[mb] > I_PCM:
            intra4x4_mode[mb] = 2
            continue
        mx, my = mb % mb_width, mb // mb_width
        x0, y0 = 16 * mx, 16 * my
        left = mx > 0
        top = mb - mb_width >= slice_first_mb[my]
        corner = left and top
        right = top and mx + 1 < mb_width
        q = np.int64(qp[mb])

        load_lanes(src_y, x0, y0, 2, 16, scratch[SOURCE], 0)
        mode, cost = _mode_16x16(rec_y, x0, y0, left, top, corner, lam, scratch)
        luma = _code_4x4(
            src_y, mb, x0, y0, left, top, corner, right, mb_width, lam, cost, q, intra4x4_mode, rec_y, scratch,
            coefficients, levels[mb], total_coeff[mb],
        )  # fmt: skip
        if luma >= 0:
            mb_type[mb] = I_4x4
            intra16x16_mode[mb] = 0
        else:
            mb_type[mb] = I_16x16
            intra16x16_mode[mb] = mode
            intra4x4_mode[mb] = 2
            luma = _code_16x16(
                rec_y, x0, y0, mode, left, top, q, scratch, coefficients, dc, levels[mb], total_coeff[mb]
            )
        chroma_mode, chroma = _code_chroma(
            src_u, src_v, x0 // 2, y0 // 2, left, top, corner, lam, q, chroma_qp_offset, rec_u, rec_v, scratch,
            coefficients, dc, levels[mb], total_coeff[mb],
        )  # fmt: skip
        intra_chroma_mode[mb] = chroma_mode
        cbp[mb] = luma + 16 * chroma
        if pcm_is_cheaper(levels[mb], total_coeff[mb]):
            mb_type[mb] = code_pcm(
                src_y, src_u, src_v, x0, y0, rec_y, rec_u, rec_v, levels[mb], total_coeff[mb]
            )
            intra4x4_mode[mb] = 2
            intra16x16_mode[mb] = 0
            intra_chroma_mode[mb] = 0
            cbp[mb] = 47
