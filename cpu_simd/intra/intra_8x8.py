"""Luma of Intra_8x8 macroblocks: choice of modes, coding, reconstruction (8.3.2, 8.5.3); the luma of a macroblock kept."""

import numpy as np

from ...jit.kernel import helper
from ..costs.bit_costs import mode_4x4_bits
from ..decisions.common import LAMBDA
from ..decisions.intra import AS_8x8, BITS_INTRA_8x8, N_MODES_4x4
from ..entropy.macroblock_syntax import predicted_intra_mode
from ..layout import N_LEVEL_BLOCKS
from ..quantiser.trellis import lower_8x8
from ..residual.macroblock_coding import HALF
from ..residual.transform_8x8 import QUADRANT_8x8, quantise_quadrant, reconstruct_quadrant, scan_8x8
from ..simd.vector import load_u8x8, load_u8x16, load_u16x16, store
from .intra_prediction_8x8 import mode_satds_8x8, predict_8x8

KEPT = 256 + 512 + 32  # bytes: samples, levels, modes and total_coeff


@helper
def keep_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, kept):
    """Saves the reconstruction, levels, modes and total_coeff of the luma of macroblock mb in kept: uint8[KEPT]."""
    width = rec_y.shape[1]
    for i in range(16):
        store(kept, 16 * i, load_u8x16(rec_y, (y0 + i) * width + x0))
        store(kept, 256 + 32 * i, load_u16x16(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + i)))
    store(kept, 768, load_u8x16(intra4x4_mode, 16 * mb))
    store(kept, 784, load_u8x16(residual.total_coeff, 24 * mb))


@helper
def restore_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, kept):
    """The counterpart of keep_luma."""
    width = rec_y.shape[1]
    for i in range(16):
        store(rec_y, (y0 + i) * width + x0, load_u8x16(kept, 16 * i))
        store(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + i), load_u16x16(kept, 256 + 32 * i))
    store(intra4x4_mode, 16 * mb, load_u8x16(kept, 768))
    store(residual.total_coeff, 24 * mb, load_u8x16(kept, 784))


@helper
def best_mode_8x8(source, at, predictions, usable, predicted, lam):
    """The usable mode with the lowest SATD + lam * bits, the lower number on a tie, and this cost.

    source: rows of sixteen, the block from `at` on; predictions: of predict_8x8; predicted: the mode that costs one bit.
    """
    best, best_cost, mode = np.int64(2), np.int64(1 << 30), np.int64(0)
    for satd in mode_satds_8x8(source, at, predictions):
        cost = satd + lam * mode_4x4_bits(mode, predicted)
        if usable >> mode & 1 and cost < best_cost:
            best, best_cost = mode, cost
        mode += 1
    return best, best_cost


@helper
def code_quadrant(buffers, mb, q, predictions, mode, qp, rounding, rec_y, rec_at, residual):
    """8.5.3: codes quadrant q with a mode of predict_8x8, to the plane rec_y from offset rec_at on; whether it has levels."""
    stride, levels = rec_y.shape[1], buffers.quantised_8x8
    dead_zone = HALF if rounding.method else rounding.dead_zone
    quantise_quadrant(buffers.source, q, predictions, 64 * mode, qp, dead_zone, rounding.scaling, levels)
    if rounding.method:
        lower_8x8(levels, 1 << q, rounding, buffers.scratch)
    if scan_8x8(levels, q, mb, residual.levels, residual.total_coeff) == 0:
        for i in range(8):
            store(rec_y, rec_at + i * stride, load_u8x8(predictions, 64 * mode + 8 * i))
        return False
    reconstruct_quadrant(levels, q, predictions, 64 * mode, qp, rounding.scaling, rec_y, rec_at, stride)
    return True


@helper
def code_8x8(buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, given, intra_modes):
    """8.3.2, 8.5.3: chooses modes of and codes the four blocks of an Intra_8x8 macroblock with cleared levels.

    predicted: Predictions. Modes come from intra_modes if `given`, else from the lowest SATD + lam * bits. Returns the luma
    part of coded_block_pattern and the cost; -1 and `limit` as soon as the cost of modes that are not given reaches it.
    """
    left, top, right, _ = around
    predictions, edge = predicted.samples, predicted.edge
    stride, lam = rec_y.shape[1], LAMBDA[qp]
    mb_width = stride // 16
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    cost = np.int64(lam * BITS_INTRA_8x8)
    cbp = np.int64(0)
    for q in range(4):
        bx, by = q & 1, q >> 1
        k = 8 * by + 2 * bx  # its first 4x4 block, raster
        x, y = x0 + 8 * bx, y0 + 8 * by
        above_right = (right if bx else top) if by == 0 else bx == 0
        mode, wanted = np.int64(2), (1 << N_MODES_4x4) - 1
        if given:
            mode = np.int64(intra_modes[mb, k]) - AS_8x8
            wanted = 1 << mode
        usable = predict_8x8(rec_y, x, y, left or bx > 0, top or by > 0, above_right, wanted, edge, predictions)
        if not given:
            likely = predicted_intra_mode(intra4x4_mode, mb, k, left, top, mb_width)
            mode, mode_cost = best_mode_8x8(buffers.source, QUADRANT_8x8[q], predictions, usable, likely, lam)
            cost += mode_cost
            if cost >= limit:
                return np.int64(-1), np.int64(limit)
        for i in (k, k + 1, k + 4, k + 5):
            intra4x4_mode[mb, i] = mode
        if code_quadrant(buffers, mb, q, predictions, mode, qp, rounding, rec_y, y * stride + x, residual):
            cbp |= 1 << q
    return cbp, cost
