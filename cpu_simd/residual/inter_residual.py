"""Inter macroblocks: motion compensation, residual, transform, quantisation, reconstruction (8.4, 8.5)."""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import B_SKIP, I_PCM, LAST_INTRA, P_SKIP, RASTER_TO_BLOCK
from ...standard.sample_format import MB_SAMPLES, SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from ..costs.cabac_bits import B_SLICE, P_SLICE, LUMA_4x4
from ..decisions.quantise import (
    CHOICE_NEAR,
    DEAD_ZONE_INTER,
    THRESHOLD_CHROMA,
    TRELLIS_INTER,
    THRESHOLD_8x8,
    THRESHOLD_16x16,
    TRELLIS_THRESHOLD_8x8,
    TRELLIS_THRESHOLD_16x16,
)
from ..entropy.macroblock_syntax import only_8x8_partitions
from ..inter.motion_compensation import ask_for_samples, predict_inter
from ..layout import N_LEVEL_BLOCKS, SCALING_FINER, SCALING_SET
from ..quantiser.trellis import LONGEST
from ..simd.blocks import splat_u16x4
from ..simd.lanes import bit_length, squares_of_pairs
from ..simd.vector import add, load_u8x16, splat_i32x8, splat_u16x8, splat_u16x16, store, sub, widen
from .macroblock_coding import (
    AS_ROUNDED,
    BY_CAVLC,
    DECIMATE_MOST,
    Buffers,
    Rounding,
    by_cabac,
    clear_levels,
    code_chroma,
    decimate_score,
    forward_chosen,
    load_macroblock,
    pcm_is_cheaper,
    quantise_chosen,
    quantise_chosen_8x8,
    rounding_method,
    scan_luma,
    store_chroma,
    store_luma,
)
from .residual_range import leaves_16_bits
from .transform import BUFFER, ScalingLists, chroma_qp, forward_strips, quantise_kept, quantise_strips, reconstruct_strips
from .transform_8x8 import QUADRANT_8x8, forward_quadrants, quantise_kept_8x8, reconstruct_8x8, scan_8x8
from .transform_choice import N_CHOICE_BITS, N_QPS, luma_cost, table_of_qp

# Bit masks (raster) of the 4x4 blocks of the quadrants
BLOCKS_OF_QUADRANT = np.array([0x0033, 0x00CC, 0x3300, 0xCC00], np.int64)


@helper
def squared_error(a, b, lanes):
    """Sum of squared differences of two buffers Sample[MB_SAMPLES]; lanes: int32[8], scratch."""
    sums = splat_i32x8(0)
    for i in range(0, MB_SAMPLES, 16):
        sums = add(sums, squares_of_pairs(sub(widen(load_u8x16(a, i)), widen(load_u8x16(b, i)))))
    store(lanes, 0, sums)
    total = np.int64(0)
    for k in range(8):
        total += np.int64(lanes[k])
    return total


@helper
def _drop_cheap_levels(coded, quantised, mb, levels, total_coeff, rounding):
    """Zeroes luma levels that are not worth their bits; returns the luma coded_block_pattern. Not part of the standard.

    coded: bit mask of the blocks with levels, raster order; quantised int16[384].
    """
    least_8x8 = TRELLIS_THRESHOLD_8x8 if by_cabac(rounding) else THRESHOLD_8x8
    least_16x16 = TRELLIS_THRESHOLD_16x16 if by_cabac(rounding) else THRESHOLD_16x16
    cbp, total, dropped = 0, 0, np.int64(coded)
    for quadrant in range(4):
        score, rest = 0, coded & BLOCKS_OF_QUADRANT[quadrant]
        while rest != 0 and score < DECIMATE_MOST:
            k = bit_length(rest) - 1
            rest ^= np.int64(1) << k
            score += decimate_score(mb, RASTER_TO_BLOCK[k], levels)
        if score >= least_8x8:
            cbp |= 1 << quadrant
            total += score
            dropped &= ~BLOCKS_OF_QUADRANT[quadrant]
    if total < least_16x16:
        cbp, dropped = 0, np.int64(coded)
    while dropped != 0:
        k = bit_length(dropped) - 1
        dropped ^= np.int64(1) << k
        store(levels, 16 * (N_LEVEL_BLOCKS * mb + RASTER_TO_BLOCK[k]), splat_u16x16(0))
        total_coeff[mb, k] = 0
        at = 64 * (k >> 2) + 4 * (k & 3)
        for i in range(at, at + 64, 16):
            store(quantised, i, splat_u16x4(0))
    return cbp


@helper
def clear_quadrants(quantised, pattern):
    """Zeroes the levels of the quadrants that are not set in `pattern`; they lie alike in both transforms."""
    zero = splat_u16x8(0)
    for q in range(4):
        if pattern >> q & 1 == 0:
            for i in range(0, 128, 16):
                store(quantised, QUADRANT_8x8[q] + i, zero)


@helper
def _quadrants_of(coded):
    """Bit mask of the quadrants with 4x4 blocks set in `coded` (raster)."""
    quadrants = 0
    for q in range(4):
        quadrants |= (coded & BLOCKS_OF_QUADRANT[q] != 0) << q
    return quadrants


@helper
def _code_either(mb, buffers, qp, rounding, residual):
    """As _code_4x4 with the transform that costs less, see transform_choice.py; sets transform_8x8.

    Costs are those of levels rounded by the dead zone. If levels are chosen by bits, that is done for the transform that
    costs less, or for both where they are nearly alike, and their costs then count.
    """
    source, predicted, out, quantised, dc, _, scratch, quantised_8x8 = buffers
    levels, total_coeff, bits, scaling = residual.levels, residual.total_coeff, rounding.bits, rounding.scaling
    dead_zone = rounding.dead_zone
    may_4x4 = forward_strips(source, predicted, 0, 4, 0, qp, dead_zone, scaling, quantised)
    may_8x8 = forward_quadrants(source, predicted, qp, dead_zone, scaling, quantised_8x8)
    if not may_4x4 and not may_8x8:
        return 0
    coded = quantise_kept(0, 4, 0, qp, dead_zone, True, scaling, quantised)
    coded_8x8 = quantise_kept_8x8(qp, dead_zone, True, scaling, quantised_8x8)
    if coded | coded_8x8 == 0:
        return 0
    cost, pattern = luma_cost(quantised, _quadrants_of(coded), False, bits, scratch, dc)
    cost_8x8, pattern_8x8 = luma_cost(quantised_8x8, coded_8x8, True, bits, scratch, dc)
    if rounding.method:
        try_4x4 = cost <= cost_8x8 + (cost_8x8 >> CHOICE_NEAR)
        try_8x8 = cost_8x8 < cost + (cost >> CHOICE_NEAR)
        cost = cost_8x8 = np.int64(1) << 40
        if try_4x4:
            coded = quantise_chosen(buffers, 0, 4, LUMA_4x4, qp, False, rounding)
            cost, pattern = luma_cost(quantised, _quadrants_of(coded), False, bits, scratch, dc)
        if try_8x8:
            coded_8x8 = quantise_chosen_8x8(buffers, qp, rounding)
            cost_8x8, pattern_8x8 = luma_cost(quantised_8x8, coded_8x8, True, bits, scratch, dc)
    if cost_8x8 < cost:
        clear_quadrants(quantised_8x8, pattern_8x8)
        for q in range(4):
            if pattern_8x8 >> q & 1:
                scan_8x8(quantised_8x8, q, mb, levels, total_coeff)
        if pattern_8x8:
            residual.transform_8x8[mb] = 1
            reconstruct_8x8(quantised_8x8, predicted, qp, scaling, out)
        return pattern_8x8
    clear_quadrants(quantised, pattern)
    for q in range(4):
        if pattern >> q & 1:
            scan_luma(quantised, coded & BLOCKS_OF_QUADRANT[q], mb, levels, total_coeff)
    if pattern:
        for i in range(64):
            dc[i] = 0
        reconstruct_strips(quantised, dc, predicted, 0, 4, qp, scaling, out)
    return pattern


@helper
def _code_4x4(mb, buffers, qp, rounding, residual):
    """8.5.1: codes the luma by the 4x4 transform, reconstructs it unless its coded_block_pattern is 0; returns this."""
    source, predicted, out, quantised, dc, _, _, _ = buffers
    if rounding.method == AS_ROUNDED:  # in one pass: nothing else reads the coefficients
        coded = quantise_strips(source, predicted, 0, 4, 0, qp, rounding.dead_zone, False, rounding.scaling, quantised, dc)
    else:
        if not forward_chosen(buffers, 0, 4, LUMA_4x4, qp, rounding):
            return 0
        coded = quantise_chosen(buffers, 0, 4, LUMA_4x4, qp, True, rounding)
    luma = 0
    if coded:
        scan_luma(quantised, coded, mb, residual.levels, residual.total_coeff)
        luma = _drop_cheap_levels(coded, quantised, mb, residual.levels, residual.total_coeff, rounding)
    if luma:
        for i in range(64):
            dc[i] = 0
        reconstruct_strips(quantised, dc, predicted, 0, 4, qp, rounding.scaling, out)
    return luma


@helper
def code_inter(mb, buffers, q, chroma_q, may_be_8x8, rounding, residual):
    """8.5: codes and reconstructs the residual of inter macroblock mb; returns its coded_block_pattern.

    q, chroma_q: QP_Y, QP_C; may_be_8x8: whether it may have transform_size_8x8_flag; rounding: Rounding, with bits if so;
    writes the Residual of mb.
    """
    predicted, out = buffers.predicted, buffers.out
    clear_levels(mb, residual)
    if may_be_8x8:
        luma = _code_either(mb, buffers, q, rounding, residual)
    else:
        luma = _code_4x4(mb, buffers, q, rounding, residual)
    if luma == 0:
        for i in range(0, 256, 16):
            store(out, i, load_u8x16(predicted, i))
    chroma = code_chroma(buffers, chroma_q, rounding, THRESHOLD_CHROMA, mb, residual)
    return luma + 16 * chroma


@helper
def clear_motion(mb, ref_idx, mv):
    """The motion of one list of an intra macroblock."""
    for k in range(4):
        ref_idx[mb, k] = -1
    for k in range(16):
        mv[mb, k, 0] = 0
        mv[mb, k, 1] = 0


@closed_kernel
def inter_residual(source, references, motion, quantiser, tools, row0, row1, rec, residual):
    """8.4, 8.5: predicts, codes and reconstructs every inter macroblock of the rows [row0, row1).

    Bundles: Planes source and rec, References, Motion, Quantiser, CodingTools, Residual; trellis 1 chooses levels by rate and
    distortion (rdo_quant, with CABAC trellis), transform_8x8_mode the transform (transform_choice). P_Skip and B_Skip have no
    residual. A macroblock that takes fewer bits as I_PCM becomes I_PCM (ref_idx -1, mv 0), to be coded by intra().
    """
    mb_type, sub_mb_type = motion.mb_type, motion.sub_mb_type
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    rec_y, rec_u, rec_v = rec
    cbp = residual.cbp
    mb_width = source.y.shape[1] // 16
    source_mb, predicted, out = np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample)
    quantised, scratch, dc = np.zeros(BUFFER, np.int16), np.zeros(2 * LONGEST, np.int16), np.zeros(96, np.int32)
    bits, bits_qp = np.zeros(N_CHOICE_BITS, np.int32), np.int64(-1)
    kept, known = np.empty((N_QPS, N_CHOICE_BITS), np.int32), np.int64(0)
    method, dead_zone = rounding_method(tools, BY_CAVLC), np.int64(tools.dead_zone_inter)
    rounding = Rounding(method, dead_zone, np.int64(DEAD_ZONE_INTER), np.int64(TRELLIS_INTER), bits, scaling, tools.cabac)
    values, quantised_8x8 = np.zeros(16, np.int64), np.zeros(BUFFER, np.int16)
    buffers = Buffers(source_mb, predicted, out, quantised, dc, values, scratch, quantised_8x8)
    for mb in range(row0 * mb_width, row1 * mb_width):
        if mb_type[mb] <= LAST_INTRA:
            continue
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        q = np.int64(qp[mb])
        if mb + 1 < row1 * mb_width:
            ask_for_samples(mb + 1, x0 + 16, y0, references, motion)
        load_macroblock(source, x0, y0, source_mb)
        predict_inter(mb, x0, y0, references, motion, predicted)
        if mb_type[mb] == P_SKIP or mb_type[mb] == B_SKIP:
            clear_levels(mb, residual)
            cbp[mb] = 0
            store_luma(predicted, rec_y, x0, y0)
            store_chroma(predicted, rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
            continue
        if (tools.cabac or tools.transform_8x8_mode) and q != bits_qp:
            known = table_of_qp(bits, B_SLICE if references.n_ref1 else P_SLICE, q, kept, known)
            bits_qp = q
        may_be_8x8 = bool(tools.transform_8x8_mode) and only_8x8_partitions(sub_mb_type, mb, mb_type[mb])
        q_c = chroma_qp(q, chroma_qp_offset)
        cbp[mb] = code_inter(mb, buffers, q, q_c, may_be_8x8, rounding, residual)
        store_luma(out, rec_y, x0, y0)
        store_chroma(out, rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
        if cbp[mb] == 0:
            continue
        if pcm_is_cheaper(mb, has_scaling_lists, residual) or leaves_16_bits(mb, q, q_c, scaling, buffers, residual):
            mb_type[mb] = I_PCM
            clear_motion(mb, motion.ref_idx, motion.mv)
            if references.n_ref1:
                clear_motion(mb, motion.ref_idx1, motion.mv1)
