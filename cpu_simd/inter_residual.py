"""Inter macroblocks: motion compensation, residual, transform, quantisation, reconstruction (8.4, 8.5)."""

import numpy as np

from ..jit.kernel import closed_kernel, helper
from ..standard.macroblock import BLOCK_TO_RASTER, I_PCM, LAST_INTRA, P_SKIP
from .cabac_bits import N_BITS, P_SLICE, LUMA_4x4, fill_bits
from .decisions import DEAD_ZONE_INTER, THRESHOLD_CHROMA, TRELLIS_INTER, THRESHOLD_8x8, THRESHOLD_16x16
from .layout import N_LEVEL_BLOCKS
from .macroblock_coding import (
    BY_CAVLC,
    Buffers,
    Rounding,
    clear_levels,
    code_chroma,
    decimate_score,
    load_macroblock,
    pcm_is_cheaper,
    quantise_chosen,
    rounding_kind,
    scan_luma,
    store_chroma,
    store_luma,
)
from .motion_compensation import predict_inter
from .simd.vector import load_u8x16, splat_u16x16, store
from .transform import chroma_qp, reconstruct_strips
from .trellis import LONGEST


@helper
def _drop_cheap_levels(coded, quantised, mb, levels, total_coeff):
    """Zeroes luma levels that are not worth their bits; returns the luma coded_block_pattern. Not part of the standard.

    coded: bit mask of the blocks with levels, raster order; quantised int16[384].
    """
    cbp = 0
    total = 0
    for quadrant in range(4):
        score = 0
        for block in range(4 * quadrant, 4 * quadrant + 4):
            if (coded >> BLOCK_TO_RASTER[block]) & 1:
                score += decimate_score(mb, block, levels)
        if score >= THRESHOLD_8x8:
            cbp |= 1 << quadrant
            total += score
    if total < THRESHOLD_16x16:
        cbp = 0
    for block in range(16):
        k = BLOCK_TO_RASTER[block]
        if (coded >> k) & 1 and (cbp >> (block >> 2)) & 1 == 0:
            store(levels, 16 * (N_LEVEL_BLOCKS * mb + block), splat_u16x16(0))
            total_coeff[mb, k] = 0
            at = 64 * (k >> 2) + 4 * (k & 3)
            for i in range(4):
                for j in range(4):
                    quantised[at + 16 * i + j] = 0
    return cbp


@helper
def code_inter(mb, buffers, q, chroma_q, rounding, residual):
    """8.5: codes and reconstructs the residual of inter macroblock mb; returns its coded_block_pattern.

    q, chroma_q: QP_Y, QP_C; rounding: Rounding; writes the Residual of mb.
    """
    _, predicted, out, quantised, dc, _, _ = buffers
    levels, total_coeff = residual.levels, residual.total_coeff
    clear_levels(mb, residual)
    luma = 0
    coded = quantise_chosen(buffers, 0, 4, LUMA_4x4, q, rounding)
    if coded:
        scan_luma(quantised, coded, mb, levels, total_coeff)
        luma = _drop_cheap_levels(coded, quantised, mb, levels, total_coeff)
    if luma:
        for i in range(64):
            dc[i] = 0
        reconstruct_strips(quantised, dc, predicted, 0, 4, q, out)
    else:
        for i in range(0, 256, 16):
            store(out, i, load_u8x16(predicted, i))
    chroma = code_chroma(buffers, chroma_q, rounding, THRESHOLD_CHROMA, mb, residual)
    return luma + 16 * chroma


@closed_kernel
def inter_residual(source, references, motion, quantiser, tools, row0, row1, rec, residual):
    """8.4, 8.5: predicts, codes and reconstructs every inter macroblock of the rows [row0, row1).

    Bundles: Planes source and rec, References, Motion, Quantiser, CodingTools, Residual; trellis 1 chooses levels by rate and
    distortion (rdo_quant, with CABAC trellis). P_Skip has no residual.
    A macroblock that takes fewer bits as I_PCM becomes I_PCM (ref_idx -1, mv 0), to be coded by intra().
    """
    mb_type, _, ref_idx, mv = motion
    qp, chroma_qp_offset = quantiser
    rec_y, rec_u, rec_v = rec
    levels, total_coeff, cbp = residual.levels, residual.total_coeff, residual.cbp
    mb_width = source.y.shape[1] // 16
    own, predicted, out = np.zeros(384, np.uint8), np.zeros(384, np.uint8), np.zeros(384, np.uint8)
    quantised, scratch, dc = np.zeros(768, np.int16), np.zeros(2 * LONGEST, np.int16), np.zeros(96, np.int32)
    bits, bits_qp = np.zeros(N_BITS, np.int32), np.int64(-1)
    rounding = Rounding(rounding_kind(tools, BY_CAVLC), np.int64(DEAD_ZONE_INTER), np.int64(TRELLIS_INTER), bits)
    buffers = Buffers(own, predicted, out, quantised, dc, np.zeros(16, np.int64), scratch)
    for mb in range(row0 * mb_width, row1 * mb_width):
        if mb_type[mb] <= LAST_INTRA:
            continue
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        q = np.int64(qp[mb])
        load_macroblock(source, x0, y0, own)
        predict_inter(mb, x0, y0, references, motion, predicted)
        if mb_type[mb] == P_SKIP:
            clear_levels(mb, residual)
            cbp[mb] = 0
            store_luma(predicted, rec_y, x0, y0)
            store_chroma(predicted, rec_u, rec_v, x0 // 2, y0 // 2)
            continue
        if tools.cabac and q != bits_qp:
            fill_bits(bits, P_SLICE, q)
            bits_qp = q
        cbp[mb] = code_inter(mb, buffers, q, chroma_qp(q, chroma_qp_offset), rounding, residual)
        store_luma(out, rec_y, x0, y0)
        store_chroma(out, rec_u, rec_v, x0 // 2, y0 // 2)
        if pcm_is_cheaper(mb, levels, total_coeff):
            mb_type[mb] = I_PCM
            for k in range(4):
                ref_idx[mb, k] = -1
            for k in range(16):
                mv[mb, k, 0] = 0
                mv[mb, k, 1] = 0
