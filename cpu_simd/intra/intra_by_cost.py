"""Modes of Intra_4x4, Intra_8x8 and chroma by true cost: each block is coded in its likeliest modes.

Not part of the standard. The modes with the lowest SATD + lambda * bits are coded, of chroma all; the lowest cost
(intra_cost.py) wins.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import CODED_BLOCK_BASE
from ...standard.macroblock import BLOCK_TO_RASTER
from ..costs.bit_costs import mode_4x4_bits
from ..costs.cabac_bits import LUMA_4x4
from ..decisions.common import LAMBDA
from ..decisions.intra import ABOVE_RIGHT_INSIDE, INTRA_TRIALS, N_MODES_4x4
from ..entropy.macroblock_syntax import predicted_intra_mode
from ..layout import CB_AC, LUMA_DC, N_LEVEL_BLOCKS
from ..residual.macroblock_coding import code_block, code_chroma
from ..residual.transform_8x8 import QUADRANT_8x8
from ..residual.transform_choice import mean_bits
from ..simd.lanes import block_satd
from ..simd.vector import load_4_u8x4, load_u8x16, splat_u16x16, store, sub, widen
from .intra_8x8 import code_quadrant
from .intra_cost import (
    COST_MAX,
    cost_chroma,
    cost_of,
    error_4x4,
    error_8x8,
    error_chroma,
    levels_bits_4x4,
    levels_bits_8x8,
    mode_bits,
    next_mode,
    pattern_bits,
    type_bits,
)
from .intra_prediction import predict_4x4
from .intra_prediction_8x8 import mode_satds_8x8, predict_8x8

_ALL = (1 << N_MODES_4x4) - 1


@helper
def _code_cleared(buffers, mb, q, predictions, mode, qp, rounding, rec_y, rec_at, residual):
    """code_quadrant after the levels of an earlier mode."""
    for i in range(4 * q, 4 * q + 4):
        store(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + i), splat_u16x16(0))
    return code_quadrant(buffers, mb, q, predictions, mode, qp, rounding, rec_y, rec_at, residual)


@helper
def _best_quadrant(buffers, mb, q, predictions, likely, qp, rounding, rec_y, rec_at, residual, scale):
    """Codes quadrant q in the mode of lowest true cost. Returns the mode, whether it has levels, and the cost.

    scale.costs: those of all modes by SATD; likely: predIntra8x8PredMode.
    """
    best, last, least, coded = np.int64(-1), np.int64(-1), np.int64(COST_MAX), False
    for _ in range(INTRA_TRIALS):
        mode = next_mode(scale.costs)
        if mode < 0:
            break
        last = mode
        coded = _code_cleared(buffers, mb, q, predictions, mode, qp, rounding, rec_y, rec_at, residual)
        bits = levels_bits_8x8(scale, buffers.quantised_8x8, q, coded) + mode_bits(scale.bits, mode, likely)
        error = error_8x8(buffers.source, np.int64(QUADRANT_8x8[q]), rec_y, rec_at, rec_y.shape[1])
        cost = cost_of(error, bits, qp)
        if cost < least:
            best, least = mode, cost
    if last != best:
        coded = _code_cleared(buffers, mb, q, predictions, best, qp, rounding, rec_y, rec_at, residual)
    return best, coded, least


@helper
def best_8x8(buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, scale):
    """8.3.2, 8.5.3: chooses modes of and codes the four blocks of an Intra_8x8 macroblock with cleared levels.

    predicted: Predictions; scale: Scale. Returns the luma part of coded_block_pattern and the cost, or -1 and `limit` as soon
    as the cost reaches it.
    """
    left, top, right, _ = around
    stride, lam, samples = rec_y.shape[1], LAMBDA[qp], predicted.samples
    mb_width = stride // 16
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    total, cbp = type_bits(scale, 0, 0), np.int64(0)
    for q in range(4):
        bx, by = q & 1, q >> 1
        k = 8 * by + 2 * bx  # its first 4x4 block, raster
        x, y = x0 + 8 * bx, y0 + 8 * by
        above_right = (right if bx else top) if by == 0 else bx == 0
        usable = predict_8x8(rec_y, x, y, left or bx > 0, top or by > 0, above_right, _ALL, predicted.edge, samples)
        likely = predicted_intra_mode(intra4x4_mode, mb, k, left, top, mb_width)
        mode = np.int64(0)
        for satd in mode_satds_8x8(buffers.source, np.int64(QUADRANT_8x8[q]), samples):
            scale.costs[mode] = satd + lam * mode_4x4_bits(mode, likely) if usable >> mode & 1 else COST_MAX
            mode += 1
        best, coded, cost = _best_quadrant(
            buffers, mb, q, samples, likely, qp, rounding, rec_y, y * stride + x, residual, scale
        )
        total += cost
        if coded:
            cbp |= 1 << q
        if total >= limit:
            return np.int64(-1), limit
        for i in (k, k + 1, k + 4, k + 5):
            intra4x4_mode[mb, i] = best
    return cbp, total


@helper
def _best_block(samples, predictions, likely, qp, rounding, levels, levels_at, rec_y, at, scratch, scale):
    """_best_quadrant for a block of Intra_4x4, with the number of levels: see code_block."""
    best, last, least, count, stride = np.int64(-1), np.int64(-1), np.int64(COST_MAX), 0, rec_y.shape[1]
    for _ in range(INTRA_TRIALS):
        mode = next_mode(scale.costs)
        if mode < 0:
            break
        last = mode
        count = code_block(
            samples, load_u8x16(predictions, 16 * mode), qp, rounding, levels, levels_at, rec_y, at, stride, scratch
        )
        bits = levels_bits_4x4(scale, levels, levels_at) + mode_bits(scale.bits, mode, likely)
        cost = cost_of(error_4x4(samples, rec_y, at, stride), bits, qp)
        if cost < least:
            best, least = mode, cost
    if last != best:
        count = code_block(
            samples, load_u8x16(predictions, 16 * best), qp, rounding, levels, levels_at, rec_y, at, stride, scratch
        )
    return best, count, least


@helper
def best_4x4(buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, scale):
    """As best_8x8 for the blocks of an Intra_4x4 macroblock, in decoding order (8.3.1, 8.5.1)."""
    left, top, right, corner = around
    stride, lam, samples = rec_y.shape[1], LAMBDA[qp], predicted.samples
    mb_width = stride // 16
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    total, cbp = type_bits(scale, 0, 0), np.int64(0)
    without = 4 * mean_bits(scale.bits, np.int64(CODED_BLOCK_BASE[LUMA_4x4]), 0)
    for block in range(16):
        k = np.int64(BLOCK_TO_RASTER[block])
        bx, by = k & 3, k >> 2
        x, y, at = x0 + 4 * bx, y0 + 4 * by, 64 * by + 4 * bx
        above_right = (ABOVE_RIGHT_INSIDE >> k) & 1 != 0
        if by == 0:
            above_right = right if bx == 3 else top
        left_k, top_k = left or bx > 0, top or by > 0
        corner_k = left_k and top_k if k else corner
        usable = predict_4x4(rec_y, x, y, left_k, top_k, corner_k, above_right, _ALL, predicted.edge, samples)
        likely = predicted_intra_mode(intra4x4_mode, mb, k, left, top, mb_width)
        source_block = load_4_u8x4(buffers.source, at, at + 16, at + 32, at + 48)
        for mode in range(N_MODES_4x4):
            scale.costs[mode] = COST_MAX
            if (usable >> mode) & 1:
                satd = block_satd(sub(widen(source_block), widen(load_u8x16(samples, 16 * mode))))
                scale.costs[mode] = satd + lam * mode_4x4_bits(mode, likely)
        best, count, cost = _best_block(
            source_block,
            samples,
            likely,
            qp,
            rounding,
            residual.levels,
            16 * (N_LEVEL_BLOCKS * mb + block),
            rec_y,
            y * stride + x,
            buffers.scratch,
            scale,
        )
        total += cost
        intra4x4_mode[mb, k] = best
        residual.total_coeff[mb, k] = count
        if count:
            cbp |= 1 << (block >> 2)
        if block & 3 == 3:  # the cost of the rest is not negative
            coded = cbp >> (block >> 2) & 1
            total += pattern_bits(scale.bits, coded) - (0 if coded else without)
            if total >= limit:
                return np.int64(-1), limit
    return cbp, total


@helper
def _code_chroma_cleared(buffers, predictions, mode, qp_c, rounding, mb, residual):
    """code_chroma in a mode of predict_chroma, after the levels of an earlier one."""
    for i in range(0, 128, 16):
        store(buffers.predicted, 256 + i, load_u8x16(predictions, 128 * mode + i))
    for n in range(CB_AC, N_LEVEL_BLOCKS):
        if n != LUMA_DC:
            store(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + n), splat_u16x16(0))
    for k in range(16, 24):
        residual.total_coeff[mb, k] = 0
    return np.int64(code_chroma(buffers, qp_c, rounding, 0, mb, residual))


@helper
def best_chroma(buffers, mb, usable, qp, qp_c, rounding, predictions, residual, scale):
    """8.3.4, 8.5.4: codes the chroma of a macroblock with its best mode among the `usable` (bit mask).

    qp, qp_c: QP_Y, QP_C. Returns intra_chroma_pred_mode and the chroma part of coded_block_pattern.
    """
    best, last, least, pattern = np.int64(-1), np.int64(-1), np.int64(COST_MAX), np.int64(0)
    for mode in range(4):
        if (usable >> mode) & 1:
            last = np.int64(mode)
            pattern = _code_chroma_cleared(buffers, predictions, last, qp_c, rounding, mb, residual)
            cost = cost_chroma(scale, mb, last, error_chroma(buffers.source, buffers.out), pattern, qp, residual)
            if cost < least:
                best, least = last, cost
    if best != last:
        pattern = _code_chroma_cleared(buffers, predictions, best, qp_c, rounding, mb, residual)
    return best, pattern
