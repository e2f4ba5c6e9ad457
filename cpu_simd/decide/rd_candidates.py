"""True costs of the divisions of each macroblock in a P frame at their searched vectors, by squared error and bits.

Each division is coded without its neighbours, so macroblocks are independent. mode_decision, which knows the neighbours, adds
the bits of vectors, references and types, and compares. Not part of the standard.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import P_8x8, P_8x16, P_16x8, P_16x16, SUB_4x4, SUB_4x8, SUB_8x4, SUB_8x8
from ...standard.sample_format import MB_SAMPLES, Sample
from ..bundles import Motion
from ..costs.bit_costs import mvd_bits, ref_idx_bits, sub_type_bits
from ..costs.cabac_bits import ONE_BIT, P_SLICE
from ..costs.psy import luma_energy
from ..decisions.common import INTER_IS_CHEAPER, LAMBDA, RD_MOST
from ..decisions.decide import (
    LEFT,
    QUARTERS,
    RD_BITS_INTRA,
    RD_COST_MAX,
    RD_DIVISIONS,
    RD_GATE,
    RD_NEAR,
    RD_ROUNDS,
    RD_VECTORS,
    UPPER,
    WHOLE,
    BITS_8x8,
    BITS_8x16,
    BITS_16x8,
    BITS_16x16,
)
from ..entropy.macroblock_syntax import only_8x8_partitions
from ..inter.motion_compensation import predict_inter
from ..inter.mv_cache import Area, inside
from ..layout import SCALING_FINER, SCALING_SET
from ..residual.macroblock_coding import load_macroblock
from ..residual.transform import ScalingLists, chroma_qp
from ..residual.transform_choice import N_CHOICE_BITS, N_QPS, table_of_qp
from .rd_cost import Residue, chroma_of, luma_of


@helper
def _take(mb, k, bx, by, bw, bh, ref, searches, motion):
    """Stores the searched vector of partition k in `ref`, at block (bx, by), bw x bh blocks, in motion of one macroblock."""
    x, y = searches.mv[ref, mb, k, 0], searches.mv[ref, mb, k, 1]
    for r in range(by, by + bh):
        for c in range(bx, bx + bw):
            motion.mv[0, 4 * r + c, 0], motion.mv[0, 4 * r + c, 1] = x, y
            motion.ref_idx[0, (r >> 1) * 2 + (c >> 1)] = ref


@helper
def _distortion(mb, k, ref, lam, searches):
    """SATD of partition k at its searched vector in `ref`."""
    x, y = np.int64(searches.mv[ref, mb, k, 0]), np.int64(searches.mv[ref, mb, k, 1])
    px, py = np.int64(searches.predictor[ref, mb, 0]), np.int64(searches.predictor[ref, mb, 1])
    return np.int64(searches.cost[ref, mb, k]) - lam * mvd_bits(x, y, px, py)


@helper
def _best_reference(mb, k, n_ref, lam, searches):
    """The reference of the least estimated cost of partition k, and that cost."""
    best, ref = np.int64(RD_COST_MAX), 0
    for r in range(n_ref):
        cost = np.int64(searches.cost[r, mb, k]) + lam * ref_idx_bits(r, n_ref)
        if cost < best:
            best, ref = cost, r
    return ref, best


@helper
def _sub_partition(q, sub, i):
    """The partition (layout.py) and the block (bx, by, bw, bh) of sub-partition i of quadrant q; how many there are."""
    bx, by = 2 * (q & 1), q & 2
    if sub == SUB_8x8:
        return 32 + q, bx, by, 2, 2
    if sub == SUB_8x4:
        return 16 + 2 * q + i, bx, by + i, 2, 1
    if sub == SUB_4x8:
        return 24 + 2 * q + i, bx + i, by, 1, 2
    bx, by = bx + (i & 1), by + (i >> 1)
    return 4 * by + bx, bx, by, 1, 1


@helper
def _count(sub):
    return 1 if sub == SUB_8x8 else 4 if sub == SUB_4x4 else 2


@helper
def _choose_quarter(mb, q, n_ref, lam, partition_mask, searches, sub_mb_type):
    """Best reference and sub_mb_type of quadrant q by estimates; the type is stored. Returns the reference and the cost."""
    ref, best = _best_reference(mb, 32 + q, n_ref, lam, searches)
    fixed, chosen = lam * ref_idx_bits(ref, n_ref), SUB_8x8
    best += lam * sub_type_bits(SUB_8x8)
    if partition_mask & 8:
        for sub in range(SUB_8x4, SUB_4x4 + (1 if partition_mask & 16 else 0)):
            cost = fixed + lam * sub_type_bits(sub)
            for i in range(_count(sub)):
                cost += np.int64(searches.cost[ref, mb, _sub_partition(q, sub, i)[0]])
            if cost < best:
                best, chosen = cost, sub
    sub_mb_type[0, q] = chosen
    return ref, best


@helper
def _set_division(mb, shape, n_ref, lam, partition_mask, searches, motion):
    """Stores a division's vectors, chosen by estimates, in motion of one macroblock: (estimated cost, its SATD)."""
    estimate, satd = np.int64(0), np.int64(0)
    if shape == QUARTERS:
        motion.mb_type[0], estimate = P_8x8, lam * BITS_8x8
        for q in range(4):
            ref, cost = _choose_quarter(mb, q, n_ref, lam, partition_mask, searches, motion.sub_mb_type)
            estimate += cost
            sub = motion.sub_mb_type[0, q]
            for i in range(_count(sub)):
                k, bx, by, bw, bh = _sub_partition(q, sub, i)
                _take(mb, k, bx, by, bw, bh, ref, searches, motion)
                satd += _distortion(mb, k, ref, lam, searches)
        return estimate, satd
    if shape == WHOLE:
        motion.mb_type[0], k, count, bw, bh = P_16x16, 40, 1, 4, 4
        estimate = lam * BITS_16x16
    elif shape == UPPER:
        motion.mb_type[0], k, count, bw, bh = P_16x8, 36, 2, 4, 2
        estimate = lam * BITS_16x8
    else:
        motion.mb_type[0], k, count, bw, bh = P_8x16, 38, 2, 2, 4
        estimate = lam * BITS_8x16
    for i in range(count):
        ref, cost = _best_reference(mb, k + i, n_ref, lam, searches)
        estimate += cost
        satd += _distortion(mb, k + i, ref, lam, searches)
        _take(mb, k + i, 2 * i if shape == LEFT else 0, 2 * i if shape == UPPER else 0, bw, bh, ref, searches, motion)
    return estimate, satd


@helper
def _add_to_search(mb, shape, extra, n_ref, cost):
    """Adds `extra` to the costs of a division in all references: its first half or quadrant's in each of its forms."""
    for r in range(n_ref):
        if shape == UPPER:
            cost[r, mb, 36] += extra
        elif shape == LEFT:
            cost[r, mb, 38] += extra
        else:
            for k in (0, 16, 24, 32):
                cost[r, mb, k] += extra


@helper
def residual_cost(residue, q_y, q_c, lam, may_be_8x8):
    """Cost of the residual in units of SATD, and that of the error of chroma without levels."""
    chroma, without = chroma_of(residue, q_y, q_c)
    cost = (chroma + luma_of(residue, q_y, may_be_8x8)) * lam // ONE_BIT
    return min(cost, RD_MOST), min(without * lam // ONE_BIT, RD_MOST)


@helper
def _may_be_8x8(motion, transform_8x8_mode):
    """Whether the division in `motion` may have the 8x8 transform."""
    return transform_8x8_mode != 0 and only_8x8_partitions(motion.sub_mb_type, 0, motion.mb_type[0])


@helper
def _true_cost(x0, y0, references, motion, residue, q_y, q_c, lam, transform_8x8_mode):
    """residual_cost of a division, without the bits of its motion."""
    predict_inter(0, x0, y0, references, motion, residue.predicted)
    return residual_cost(residue, q_y, q_c, lam, _may_be_8x8(motion, transform_8x8_mode))


@helper
def _partition_counts(shape, sub):
    """Partitions in a half or a quadrant of a division, with sub_mb_type `sub`; how many of these a division has."""
    if shape == QUARTERS:
        return _count(sub), 4
    return 1, 1 if shape == WHOLE else 2


@helper
def _partition(shape, i, sub, j):
    """Partition j of half or quadrant i of a division, and its block: see _sub_partition."""
    if shape == QUARTERS:
        return _sub_partition(i, sub, j)
    if shape == UPPER:
        return 36 + i, 0, 2 * i, 4, 2
    if shape == LEFT:
        return 38 + i, 2 * i, 0, 2, 4
    return 40, 0, 0, 4, 4


@helper
def _set_vector(block, x, y, mv):
    """Stores the vector of the partition at block (bx, by) of bw x bh blocks. mv: of one macroblock, in one list."""
    bx, by, bw, bh = block
    for r in range(by, by + bh):
        for c in range(bx, bx + bw):
            mv[0, 4 * r + c, 0], mv[0, 4 * r + c, 1] = x, y


@helper
def move_vector(x0, y0, block, vector, middle, true, mv, references, area, motion, residue, scale):
    """Moves a vector by a quarter sample if that lowers the true cost of its division, which is in `motion`.

    block: (bx, by, bw, bh) of its partition; vector: int16[2], written; middle: what stands for its predictor; true: the true
    cost before; mv: its list's vectors in `motion`; scale: (QP_Y, QP_C, lambda, may_be_8x8). Returns the true cost, and what
    the vector adds to the sum of that and its bits: less than 0 if it has moved, else 0.
    """
    q_y, q_c, lam, may_be_8x8 = scale
    px, py = middle
    cx, cy = np.int64(vector[0]), np.int64(vector[1])
    before = true + lam * mvd_bits(cx, cy, px, py)
    best, best_x, best_y = before, cx, cy
    for n in range(4):
        x, y = cx + (n == 2) - (n == 1), cy + (n == 3) - (n == 0)
        if not inside(x, y, x0, y0, area):
            continue
        _set_vector(block, x, y, mv)
        predict_inter(0, x0, y0, references, motion, residue.predicted)
        value, _ = residual_cost(residue, q_y, q_c, lam, may_be_8x8)
        cost = value + lam * mvd_bits(x, y, px, py)
        if cost < best:
            best, best_x, best_y, true = cost, x, y, value
    _set_vector(block, best_x, best_y, mv)
    vector[0], vector[1] = best_x, best_y
    return true, best - before


@helper
def _refine(mb, x0, y0, shape, true, rounds, references, area, searches, motion, residue, scale):
    """Moves the vectors of a division, which is in `motion`, one after another, `rounds` times at most; what that saves is
    taken off the partitions' costs. true: the division's true cost; scale: (QP_Y, QP_C, lambda, transform_8x8_mode).
    """
    q_y, q_c, lam, transform_8x8_mode = scale
    of_division = q_y, q_c, lam, _may_be_8x8(motion, transform_8x8_mode)
    n_partitions, i = 1, 0
    while i < n_partitions:
        sub = motion.sub_mb_type[0, i]
        count, n_partitions = _partition_counts(shape, sub)
        for j in range(count):
            k, bx, by, bw, bh = _partition(shape, i, sub, j)
            ref = np.int64(motion.ref_idx[0, (by >> 1) * 2 + (bx >> 1)])
            middle = np.int64(searches.predictor[ref, mb, 0]), np.int64(searches.predictor[ref, mb, 1])
            block, vector = (bx, by, bw, bh), searches.mv[ref, mb, k]
            more, left = np.int64(-1), rounds
            while more < 0 and left > 0:
                true, more = move_vector(
                    x0, y0, block, vector, middle, true, motion.mv, references, area, motion, residue, of_division
                )
                searches.cost[ref, mb, k] += more
                left -= 1
        i += 1


@closed_kernel
def rd_candidates(source, references, quantiser, settings, tools, row0, row1, searches, other_costs):
    """Makes the estimated costs of the macroblock rows [row0, row1) true ones, relative to the undivided macroblock's.

    Bundles: Planes source, References, Quantiser, DecisionSettings, CodingTools, Searches of subpel_refine, OtherCosts with
    intra_cost of intra_estimate. The true cost of the residual (rd_cost) less SATD is determined for the undivided
    macroblock, and for each division whose estimated cost is near the best; for others it is that of the best by estimates.

    Writes searches.cost: to the costs of a division its difference is added less that of the undivided macroblock; from
    subme RD_VECTORS on searches.mv, where true costs move vectors, and what that saves is taken off their cost;
    intra_cost: likewise with the difference of the best division; and skip_limit: the difference of the undivided macroblock
    less the cost of the squared error of chroma without a residual.
    """
    n_ref, partition_mask = references.n_ref, settings.partition_mask
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    intra_cost, skip_limit = other_costs
    mb_width = source.y.shape[1] // 16
    motion = Motion(
        np.zeros(1, np.uint8),
        np.zeros((1, 4), np.uint8),
        np.zeros((1, 4), np.int8),
        np.zeros((1, 16, 2), np.int16),
        np.zeros((0, 4), np.int8),
        np.zeros((0, 16, 2), np.int16),
    )
    bits, bits_qp = np.zeros(N_CHOICE_BITS, np.int32), np.int64(-1)
    kept, known = np.empty((N_QPS, N_CHOICE_BITS), np.int32), np.int64(0)
    residue = Residue(
        np.zeros(MB_SAMPLES, Sample),
        np.zeros(MB_SAMPLES, Sample),
        np.zeros(768, np.int16),
        np.zeros(96, np.int32),
        np.zeros(16, np.int32),
        np.zeros(8, np.int64),
        np.zeros(64, np.int16),
        bits,
        scaling,
        np.int64(settings.psy_rd),
        np.zeros(4, np.int64),
        np.zeros(MB_SAMPLES, Sample),
    )
    area = Area(source.y.shape[1], source.y.shape[0], references.pad, settings.max_mv_y)
    estimates, satds, extras = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    shapes = QUARTERS + 1 if partition_mask & 4 else LEFT + 1 if partition_mask & 2 else 1
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        q_y = np.int64(qp[mb])
        q_c, lam = chroma_qp(q_y, chroma_qp_offset), LAMBDA[q_y]
        if q_y != bits_qp:
            known = table_of_qp(bits, P_SLICE, q_y, kept, known)
            bits_qp = q_y
        scale = q_y, q_c, lam, np.int64(tools.transform_8x8_mode)
        load_macroblock(source, x0, y0, residue.source)
        if settings.psy_rd:
            luma_energy(residue.source, residue.energy)
        best, least = 0, np.int64(RD_COST_MAX)
        for shape in range(shapes):
            estimates[shape], satds[shape] = _set_division(mb, shape, n_ref, lam, partition_mask, searches, motion)
            if estimates[shape] < estimates[best]:
                best = shape
        limit = estimates[best] + (estimates[best] >> RD_GATE)
        for shape in range(shapes):
            if shape == WHOLE or shape == best or estimates[shape] < limit:
                _set_division(mb, shape, n_ref, lam, partition_mask, searches, motion)
                cost, without = _true_cost(x0, y0, references, motion, residue, *scale)
                extras[shape] = cost - satds[shape]
                least = min(least, extras[shape] + estimates[shape])
                if shape == WHOLE:
                    skip_limit[mb] = extras[WHOLE] - without
            else:
                extras[shape] = RD_COST_MAX
        if settings.subme >= RD_VECTORS:
            of_all = settings.subme >= RD_DIVISIONS
            limit, rounds = (least + (least >> RD_NEAR), RD_ROUNDS) if of_all else (least, 1)
            for shape in range(shapes if of_all else 1):
                if extras[shape] + estimates[shape] <= limit:
                    _set_division(mb, shape, n_ref, lam, partition_mask, searches, motion)
                    true = extras[shape] + satds[shape]
                    _refine(mb, x0, y0, shape, true, rounds, references, area, searches, motion, residue, scale)
        for shape in range(1, shapes):
            extra = extras[best if extras[shape] == RD_COST_MAX else shape] - extras[WHOLE]
            _add_to_search(mb, shape, extra, n_ref, searches.cost)
        if intra_cost[mb] < INTER_IS_CHEAPER:
            intra_cost[mb] += extras[best] - extras[WHOLE] + lam * RD_BITS_INTRA
