"""Mode decision of P frames by squared error and actual bits: candidates of mode_decision are coded and reconstructed.

Slower than mode_decision, which it replaces from subme 6 on; threads share rows and wait for neighbours in the same way.
Not part of the standard.
"""

import numpy as np

from ...jit.atomics import fetch_add, store_release
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import P_SKIP, I_16x16, P_8x8, P_8x16, P_16x8, P_16x16, SUB_8x8
from ...standard.sample_format import MB_SAMPLES, Sample
from ...standard.tables import QUANT_MF
from ..bundles import CodingTools
from ..costs.bit_costs import MACROBLOCK_BYTES, macroblock_bits
from ..costs.block_costs import Layers, fill_layers
from ..costs.cabac_bits import N_BITS
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from ..costs.skip_probe import LEVEL_SCORES, probe_tables
from ..decisions.common import BITS_INTRA, LAMBDA, SATD
from ..decisions.decide import BITS_8x8, BITS_8x16, BITS_16x8
from ..decisions.quantise import DEAD_ZONE_INTER, TRELLIS_INTER
from ..inter.motion_compensation import predict_inter
from ..inter.mv_cache import Area, commit_motion, fill_mv_cache, inside, load_mv_cache
from ..inter.mv_prediction import predict_skip_mv
from ..layout import SCALING_FINER, SCALING_SET
from ..quantiser.trellis import LONGEST
from ..residual.inter_residual import code_inter, squared_error
from ..residual.macroblock_coding import BY_CAVLC, Buffers, Rounding, load_macroblock, rounding_method
from ..residual.transform import BUFFER, ScalingLists, chroma_qp
from ..simd.vector import aligned, load_u8x16, store, widen
from ..wavefront import wait_for_above
from .mode_decision import (
    Choice,
    choose_reference,
    choose_sub_type,
    find_distortions,
    whole_macroblock,
)

COST_MAX = 1 << 40
SCALE = 16  # factor of squared errors in costs with WEIGHT
# Cost of a bit by QP_Y in units of 1 / SCALE squared error: 0.6 * 2 ^ ((QP - 12) / 3)
WEIGHT = np.array([max(1, round(SCALE * 0.6 * 2 ** ((qp - 12) / 3))) for qp in range(52)], np.int64)
GATE = 3  # a division is coded if its estimated cost is less than the best one's plus one part in 2^GATE
INTRA_COUNT = 4  # assumed total_coeff of the blocks of an intra macroblock, which is coded later


@helper
def remember(mb, motion, total_coeff, kept):
    """Saves the state of macroblock mb in kept: int64[65]."""
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    kept[0] = mb_type[mb]
    for q in range(4):
        kept[1 + q] = sub_mb_type[mb, q]
        kept[5 + q] = ref_idx[mb, q]
    for k in range(16):
        kept[9 + 2 * k], kept[10 + 2 * k] = mv[mb, k, 0], mv[mb, k, 1]
    for k in range(24):
        kept[41 + k] = total_coeff[mb, k]


@helper
def recall(mb, motion, total_coeff, kept):
    """Restores the state of macroblock mb from kept: int64[65], the counterpart of remember."""
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    mb_type[mb] = kept[0]
    for q in range(4):
        sub_mb_type[mb, q] = kept[1 + q]
        ref_idx[mb, q] = kept[5 + q]
    for k in range(16):
        mv[mb, k, 0], mv[mb, k, 1] = kept[9 + 2 * k], kept[10 + 2 * k]
    for k in range(24):
        total_coeff[mb, k] = kept[41 + k]


@helper
def estimate_division(mb, shape, choice, lam, limit, sub_mb_type):
    """Cost of 16x8, 8x16 or 8x8 (shape 0, 1, 2) as in mode_decision, the choice in its mv_cache; early exit at `limit`."""
    if shape < 2:
        k, w, h = (36, 4, 2) if shape == 0 else (38, 2, 4)
        cost = lam * (BITS_16x8 if shape == 0 else BITS_8x16)
        for i in range(2):
            bx, by = (0, 2 * i) if shape == 0 else (2 * i, 0)
            cost += choose_reference(choice, k + i, bx, by, w, h, mb, lam)
            if cost >= limit:
                break
        return cost
    cost = lam * BITS_8x8
    for q in range(4):
        value, sub = choose_sub_type(choice, q, mb, lam)
        sub_mb_type[mb, q] = sub
        cost += value
        if cost >= limit:
            break
    return cost


@helper
def set_up(step, estimate, x0, y0, mb, skip_x, skip_y, choice, lam, area, kept, motion):
    """Stores candidate `step` in the state of macroblock mb. Returns (whether it is to be tried, lowest estimate so far).

    0: P_16x16 as in the mv_cache; 1: P_Skip; 2, 3, 4: 16x8, 8x16, 8x8; from 5 on, if P_16x16 is the best so far (kept: see
    remember): its vector moved by a quarter sample.
    """
    inlined()
    mv_cache, partition_mask = choice.mv_cache, choice.partition_mask
    if step == 1 or step > 4:
        x, y, ref = skip_x, skip_y, np.int64(0)
        if step > 4:
            n = step - 5
            x, y, ref = kept[9] + (n == 2) - (n == 1), kept[10] + (n == 3) - (n == 0), kept[5]
        if not inside(x, y, x0, y0, area) or (step > 4 and kept[0] != P_16x16):
            return False, estimate
        fill_mv_cache(mv_cache, 0, 0, 4, 4, ref, x, y)
    elif step > 1:
        if not partition_mask & (2 if step < 4 else 4):
            return False, estimate
        limit = estimate + (estimate >> GATE)
        cost = estimate_division(mb, step - 2, choice, lam, limit, motion.sub_mb_type)
        if cost >= limit:
            return False, estimate
        estimate = min(estimate, cost)
    commit_motion(mv_cache, mb, motion.ref_idx, motion.mv)
    chosen = P_SKIP if step == 1 else P_16x8 if step == 2 else P_8x16 if step == 3 else P_8x8 if step == 4 else P_16x16
    motion.mb_type[mb] = chosen
    return True, estimate


@closed_kernel
def rd_decision(
    source, references, searches, intra_cost, slice_first_mb, quantiser, settings, progress, row0, row1, motion, residual
):
    """As mode_decision, but compares candidates by squared error of the reconstruction and actual bits.

    Candidates: the best 16x16, P_Skip without a residual, each of 16x8, 8x16, 8x8 whose estimated cost is near the best,
    and if 16x16 is best, the four vectors a quarter sample from it. Intra is compared by estimates. Luma and chroma count.
    Bundles: Planes source, References, Searches, Quantiser, DecisionSettings. Besides the Motion of mode_decision, writes a
    Residual, by which the bits of neighbours are counted until inter_residual and intra write it, and P_Skip, which
    inter_residual codes without a residual.
    """
    ref_luma, ref_slots, pad, n_ref = references.luma, references.searched, references.pad, references.n_ref
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    total_coeff = residual.total_coeff
    dead_zone = np.int64(DEAD_ZONE_INTER)
    method = rounding_method(CodingTools(settings.trellis, None, None, dead_zone, dead_zone, None), BY_CAVLC)
    rounding = Rounding(method, dead_zone, dead_zone, np.int64(TRELLIS_INTER), np.zeros(N_BITS, np.int32), scaling, None)
    height, width = source.y.shape
    mb_width = width // 16
    stride = ref_luma.shape[3]
    plane = ref_luma.shape[2] * stride
    offsets, tables = np.empty((2, 16), np.int64), np.empty((3, 4, 16), np.int16)
    quarter_offsets(plane, stride, QUARTER_SAMPLES, offsets)
    tables_qp = np.int64(-1)  # QP of `tables`
    current, mv_cache, distortion = np.empty(256, np.int16), np.zeros((5, 6, 3), np.int64), np.empty((n_ref, 41), np.int32)
    source_mb, predicted, out = np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample)
    quantised, scratch, dc = np.zeros(BUFFER, np.int16), np.zeros(2 * LONGEST, np.int16), np.zeros(96, np.int32)
    values, lanes, sink = np.zeros(16, np.int64), np.zeros(8, np.int32), np.zeros(3, np.int64)
    written, kept = np.zeros(MACROBLOCK_BYTES, np.uint8), np.zeros(65, np.int64)
    target, area = Target(current, ref_luma, offsets), Area(width, height, pad, settings.max_mv_y)
    layers = Layers(aligned(256), aligned(512).view(np.int16))
    choice = Choice(mv_cache, distortion, searches.mv, n_ref, settings.partition_mask, True, layers)
    buffers = Buffers(source_mb, predicted, out, quantised, dc, values, scratch, np.zeros(BUFFER, np.int16))
    my = row0 + fetch_add(progress, 0, 1)
    while my < row1:
        for mx in range(mb_width):
            mb, x0, y0 = my * mb_width + mx, 16 * mx, 16 * my
            q_y, first_mb = np.int64(qp[mb]), np.int64(slice_first_mb[mb])
            q_c, lam = chroma_qp(q_y, chroma_qp_offset), LAMBDA[q_y]
            if q_y != tables_qp:
                probe_tables(q_y, QUANT_MF, LEVEL_SCORES, tables)
                tables_qp = q_y
            load_macroblock(source, x0, y0, source_mb)
            for y in range(16):
                store(current, y * 16, widen(load_u8x16(source_mb, y * 16)))
            fill_layers(source_mb, 0, 16, layers)
            find_distortions(mb, n_ref, lam, searches, True, distortion)
            wait_for_above(progress, my, mx, mb_width, first_mb, row0)
            load_mv_cache(mb, ref_idx, mv, mb_width, first_mb, mv_cache)
            at = np.int64(ref_slots[0]) * 4 * plane + (y0 + pad) * stride + x0 + pad
            estimate, _, ref, x, y = whole_macroblock(
                mb, x0, y0, first_mb, target, at, tables, area, SATD, choice, lam, motion
            )
            fill_mv_cache(mv_cache, 0, 0, 4, 4, ref, x, y)
            sx, sy = predict_skip_mv(mb, ref_idx, mv, mb_width, first_mb)
            best = COST_MAX
            for step in range(9):
                there, estimate = set_up(step, estimate, x0, y0, mb, sx, sy, choice, lam, area, kept, motion)
                if not there:
                    continue
                predict_inter(mb, x0, y0, references, motion, predicted)
                bits, pattern = np.int64(1), np.int64(0)
                if step == 1:
                    for k in range(24):
                        total_coeff[mb, k] = 0
                else:
                    pattern = code_inter(mb, buffers, q_y, q_c, None, rounding, residual)
                    divided = 2 <= step <= 4
                    if divided or pattern or ref_idx[mb, 0] or mv[mb, 0, 0] != sx or mv[mb, 0, 1] != sy:  # else P_Skip
                        bits = macroblock_bits(mb, pattern, n_ref, motion, residual, mb_width, first_mb, written, sink)
                cost = SCALE * squared_error(source_mb, predicted if step == 1 else out, lanes) + WEIGHT[q_y] * bits
                if cost < best:
                    best = cost
                    remember(mb, motion, total_coeff, kept)
            recall(mb, motion, total_coeff, kept)
            if intra_cost[mb] + lam * BITS_INTRA < estimate:
                mb_type[mb] = I_16x16
                fill_mv_cache(mv_cache, 0, 0, 4, 4, -1, 0, 0)
                commit_motion(mv_cache, mb, ref_idx, mv)
                for k in range(24):
                    total_coeff[mb, k] = INTRA_COUNT
            if mb_type[mb] != P_8x8:
                for q in range(4):
                    sub_mb_type[mb, q] = SUB_8x8
            store_release(progress, 1 + my, mx + 1)
        my = row0 + fetch_add(progress, 0, 1)
