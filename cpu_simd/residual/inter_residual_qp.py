"""Inter macroblocks as inter_residual.py codes them, each with the QP that costs least; not part of the standard.

A macroblock is coded with its QP and those near it. Levels are chosen at the multiplier of its QP: an error costs the same
whichever quantiser makes it. A cost is the squared error of the samples and the bits of the levels and of mb_qp_delta,
as if the macroblocks around kept their QPs: macroblocks do not depend on each other. Macroblocks without a level at their
QP keep it.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_CHROMA
from ...standard.macroblock import B_SKIP, I_PCM, LAST_INTRA, P_SKIP
from ...standard.sample_format import MB_SAMPLES, SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from ..bundles import Residual
from ..costs.cabac_bits import B_SLICE, CHROMA_AC, CHROMA_DC, ONE_BIT, P_SLICE, TABLE_QP, LUMA_4x4, LUMA_8x8, levels_bits
from ..decisions.quantise import (
    DEAD_ZONE_INTER,
    QP_CHANGE_BITS,
    QP_DISTORTION,
    QP_FACTOR,
    QP_REACH,
    TRELLIS_INTER,
)
from ..entropy.macroblock_syntax import only_8x8_partitions
from ..inter.motion_compensation import ask_for_samples, predict_inter
from ..layout import CB_DC, N_LEVEL_BLOCKS, SCALING_FINER, SCALING_SET
from ..quantiser.trellis import LONGEST
from ..simd.lanes import nonzero_lanes
from ..simd.vector import load_u16x16, store
from .inter_residual import clear_motion, code_inter, squared_error
from .macroblock_coding import (
    BY_CABAC,
    Buffers,
    Rounding,
    clear_levels,
    load_macroblock,
    pcm_is_cheaper,
    store_chroma,
    store_luma,
)
from .residual_range import leaves_16_bits
from .transform import BUFFER, ScalingLists, chroma_qp
from .transform_choice import MEANS, N_CHOICE_BITS, N_QPS, mean_bits, table_of_qp

WORST = 1 << 60  # more than any cost


@helper
def _levels_of(bits, category, coded, first, mb, n, levels):
    """Bits of the 4x4 block n of macroblock mb from scan position `first` on; coded: bits of coded_block_flag 0, 1."""
    at = 16 * (N_LEVEL_BLOCKS * mb + n) + first
    mask = nonzero_lanes(levels, at - first) >> first
    return coded[1] + levels_bits(bits, category, levels, at, mask) if mask else coded[0]


@helper
def residual_bits(bits, mb, cbp, residual, levels, block):
    """Bits of the levels of macroblock mb and of coded_block_pattern, `cbp`; bits: of fill_choice_bits; block: int16[64].

    levels: those of residual as int16[n].
    """
    total = np.int64(0)
    coded = np.int64(bits[MEANS]), np.int64(bits[MEANS + 1])
    for q in range(4):
        total += np.int64(bits[MEANS + 2 + (cbp >> q & 1)])
        if cbp >> q & 1 == 0:
            continue
        if residual.transform_8x8[mb]:
            mask = np.int64(0)
            for i in range(64):
                block[i] = residual.levels[mb, 4 * q + (i & 3), i >> 2]
                mask |= np.int64(block[i] != 0) << i
            total += levels_bits(bits, LUMA_8x8, block, 0, mask)
        else:
            for n in range(4 * q, 4 * q + 4):
                total += _levels_of(bits, LUMA_4x4, coded, 0, mb, n, levels)
    total += mean_bits(bits, CTX_CBP_CHROMA, 1 if cbp >> 4 else 0)
    if cbp >> 4 == 0:
        return total
    total += mean_bits(bits, CTX_CBP_CHROMA + 4, cbp >> 5)
    context = np.int64(CODED_BLOCK_BASE[CHROMA_DC])
    coded = mean_bits(bits, context, 0), mean_bits(bits, context, 1)
    for n in range(CB_DC, CB_DC + 2):
        total += _levels_of(bits, CHROMA_DC, coded, 0, mb, n, levels)
    if cbp >> 5:
        context = np.int64(CODED_BLOCK_BASE[CHROMA_AC])
        coded = mean_bits(bits, context, 0), mean_bits(bits, context, 1)
        for n in range(16, 24):
            total += _levels_of(bits, CHROMA_AC, coded, 1, mb, n, levels)
    return total


@helper
def _take(mb, slot, tried, residual):
    """The levels of macroblock `slot` of the Residual `tried` become those of macroblock mb."""
    for n in range(N_LEVEL_BLOCKS):
        store(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + n), load_u16x16(tried.levels, 16 * (N_LEVEL_BLOCKS * slot + n)))
    for k in range(24):
        residual.total_coeff[mb, k] = tried.total_coeff[slot, k]
    residual.transform_8x8[mb] = tried.transform_8x8[slot]
    residual.cbp[mb] = tried.cbp[slot]


@closed_kernel
def inter_residual_qp(source, references, motion, quantiser, tools, least_qp, most_qp, row0, row1, rec, residual):
    """inter_residual with the trellis of CABAC that also writes quantiser.qp, of macroblocks with levels.

    QPs that are tried are within least_qp and most_qp. Ties go to the smaller change, then to the higher QP.
    """
    mb_type, sub_mb_type = motion.mb_type, motion.sub_mb_type
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    rec_y, rec_u, rec_v = rec
    mb_width = source.y.shape[1] // 16
    source_mb, predicted, outs = np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample), np.zeros((2, MB_SAMPLES), Sample)
    quantised, quantised_8x8 = np.zeros(BUFFER, np.int16), np.zeros(BUFFER, np.int16)
    values, scratch, dc = np.zeros(16, np.int64), np.zeros(2 * LONGEST, np.int16), np.zeros(96, np.int32)
    bits, bits_qp = np.zeros(N_CHOICE_BITS, np.int32), np.int64(-1)
    kept, known = np.empty((N_QPS, N_CHOICE_BITS), np.int32), np.int64(0)
    flat_levels, total_coeff = np.zeros(2 * N_LEVEL_BLOCKS * 16, np.int16), np.zeros((2, 24), np.uint8)
    levels = flat_levels.reshape(2, N_LEVEL_BLOCKS, 16)
    transform_8x8, patterns = np.zeros(2, np.uint8), np.zeros(2, np.uint8)
    tried = Residual(levels, total_coeff, transform_8x8, patterns)
    for mb in range(row0 * mb_width, row1 * mb_width):
        if mb_type[mb] <= LAST_INTRA:
            continue
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        of_mb = np.int64(qp[mb])
        if mb + 1 < row1 * mb_width:
            ask_for_samples(mb + 1, x0 + 16, y0, references, motion)
        load_macroblock(source, x0, y0, source_mb)
        predict_inter(mb, x0, y0, references, motion, predicted)
        if mb_type[mb] == P_SKIP or mb_type[mb] == B_SKIP:
            clear_levels(mb, residual)
            residual.cbp[mb] = 0
            store_luma(predicted, rec_y, x0, y0)
            store_chroma(predicted, rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
            continue
        if of_mb != bits_qp:
            known = table_of_qp(bits, B_SLICE if references.n_ref1 else P_SLICE, of_mb, kept, known)
            bits_qp = of_mb
        may_be_8x8 = bool(tools.transform_8x8_mode) and only_8x8_partitions(sub_mb_type, mb, mb_type[mb])
        best, best_qp, slot = np.int64(WORST), of_mb, 0  # the best is in the other slot
        for turn in range(2 * QP_REACH + 1):
            q = of_mb + ((turn + 1) >> 1 if turn & 1 else -(turn >> 1))
            if turn and (q < least_qp or q > most_qp):
                continue
            bits[TABLE_QP] = q  # by which chroma's step is weighed
            change = QP_REACH + q - of_mb
            factor = np.int64(TRELLIS_INTER) * QP_FACTOR[change] >> 8
            dead_zone = np.int64(DEAD_ZONE_INTER)
            rounding = Rounding(np.int64(BY_CABAC), dead_zone, dead_zone, factor, bits, scaling, tools.cabac)
            buffers = Buffers(source_mb, predicted, outs[slot], quantised, dc, values, scratch, quantised_8x8)
            cbp = code_inter(slot, buffers, q, chroma_qp(q, chroma_qp_offset), may_be_8x8, rounding, tried)
            patterns[slot] = cbp
            if turn == 0 and cbp == 0:
                slot = 1
                break
            cost = squared_error(source_mb, outs[slot], dc) * QP_DISTORTION[of_mb] >> 8
            cost += residual_bits(bits, slot, cbp, tried, flat_levels, scratch)
            if cbp:
                cost += ONE_BIT * QP_CHANGE_BITS[change]
            if cost < best:
                best, best_qp, slot = cost, q, 1 - slot
        bits[TABLE_QP] = of_mb
        slot = 1 - slot
        _take(mb, slot, tried, residual)
        store_luma(outs[slot], rec_y, x0, y0)
        store_chroma(outs[slot], rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
        if residual.cbp[mb] == 0:
            continue
        buffers = Buffers(source_mb, predicted, outs[slot], quantised, dc, values, scratch, quantised_8x8)
        qp_c = chroma_qp(best_qp, chroma_qp_offset)
        if pcm_is_cheaper(mb, has_scaling_lists, residual) or leaves_16_bits(mb, best_qp, qp_c, scaling, buffers, residual):
            mb_type[mb] = I_PCM
            clear_motion(mb, motion.ref_idx, motion.mv)
            if references.n_ref1:
                clear_motion(mb, motion.ref_idx1, motion.mv1)
        else:
            qp[mb] = best_qp
