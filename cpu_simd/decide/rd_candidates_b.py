"""True costs of the choices of B macroblocks, by squared error and bits.

Each division is coded without its neighbours, as in rd_candidates.py. mode_decision_b adds the bits of types, references and
vectors, and compares. Direct prediction, which follows from the neighbours' motion, is estimated here: each neighbour has its
best undivided choice. Not part of the standard but for 8.4.1.2.2.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import B_8x8, B_8x16, B_16x8, B_16x16
from ...standard.sample_format import MB_SAMPLES, Sample
from ..bundles import Motion
from ..costs.bit_costs import mvd_bits, ref_idx_bits
from ..costs.cabac_bits import B_SLICE, ONE_BIT
from ..costs.cost import strip_satd
from ..costs.psy import luma_energy
from ..decisions.common import INTER_IS_CHEAPER, LAMBDA, RD_MOST
from ..decisions.decide import (
    RD_B_BITS,
    RD_B_BOTH,
    RD_B_DIVISIONS,
    RD_B_SKIP,
    RD_BITS_INTRA,
    RD_COST_MAX,
    RD_GATE,
    RD_NEAR,
    RD_ROUNDS,
)
from ..inter.motion_compensation import predict_inter
from ..inter.mv_cache import Area
from ..inter.mv_prediction import choose_predictor
from ..layout import (
    B_EXTRA_DIRECT,
    B_QUADRANT,
    B_WHOLE,
    N_B_EXTRAS,
    SCALING_FINER,
    SCALING_SET,
    B_8x16_PARTITION,
    B_16x8_PARTITION,
    B_EXTRA_8x8,
    B_EXTRA_8x16,
    B_EXTRA_16x8,
)
from ..residual.macroblock_coding import load_macroblock
from ..residual.transform import ScalingLists, chroma_qp
from ..residual.transform_choice import N_CHOICE_BITS, N_QPS, table_of_qp
from ..simd.lanes import sum_of_lanes
from ..simd.vector import load_u8x16, sub, widen
from .rd_candidates import move_vector, residual_cost
from .rd_cost import Residue, chroma_of

NOWHERE = -1  # address of a neighbour outside of the frame


@helper
def _difference_row(source, predicted, at):
    return sub(widen(load_u8x16(source, at)), widen(load_u8x16(predicted, at)))


@helper
def _satd(source, predicted):
    """SATD of the luma of two buffers Sample[MB_SAMPLES]."""
    total = np.int64(0)
    for at in range(0, 256, 64):
        total += np.int64(
            sum_of_lanes(
                strip_satd(
                    _difference_row(source, predicted, at),
                    _difference_row(source, predicted, at + 16),
                    _difference_row(source, predicted, at + 32),
                    _difference_row(source, predicted, at + 48),
                )
            )
        )
    return total


@helper
def _best_whole(mb, lam, candidates):
    """The undivided choice of macroblock mb with the least SATD and bits of the mode; the first where mb is NOWHERE."""
    best, chosen = np.int64(RD_COST_MAX), B_WHOLE
    if mb != NOWHERE:
        for k in range(B_WHOLE, B_WHOLE + 3):
            cost = np.int64(candidates.cost[mb, k]) + lam * RD_B_BITS[k - B_WHOLE]
            if cost < best:
                best, chosen = cost, k
    return chosen


@helper
def _motion_in(mb, k, n, candidates):
    """Choice k of macroblock mb as a neighbour in list n: see choose_predictor."""
    if mb == NOWHERE:
        return np.int64(-2), np.int64(0), np.int64(0)
    ref = np.int64(candidates.ref[mb, k, n])
    if ref < 0:
        return np.int64(-1), np.int64(0), np.int64(0)
    return ref, np.int64(candidates.mv[mb, k, n, 0]), np.int64(candidates.mv[mb, k, n, 1])


@helper
def _min_positive(x, y):
    """8.4.1.2.2: MinPositive(x, y)."""
    return min(x, y) if x >= 0 and y >= 0 else max(x, y)


@helper
def _estimate_direct(mb, mb_width, lam, candidates, direct):
    """8.4.1.2.2 with the neighbours' best undivided choices, without co-located blocks -> direct int64[2, 3].

    By list its entry, below 0 where it is not used, and the vector. Slices are not regarded.
    """
    column, above = mb % mb_width, mb - mb_width
    at_a = mb - 1 if column > 0 else NOWHERE
    at_b, at_c = above if above >= 0 else NOWHERE, NOWHERE
    if above >= 0:
        if column < mb_width - 1:
            at_c = above + 1
        elif column > 0:
            at_c = above - 1  # D replaces C
    k_a, k_b, k_c = _best_whole(at_a, lam, candidates), _best_whole(at_b, lam, candidates), _best_whole(at_c, lam, candidates)
    for n in range(2):
        a, b = _motion_in(at_a, k_a, n, candidates), _motion_in(at_b, k_b, n, candidates)
        c = _motion_in(at_c, k_c, n, candidates)
        direct[n, 0] = ref = _min_positive(a[0], _min_positive(b[0], c[0]))
        direct[n, 1] = direct[n, 2] = 0
        if ref >= 0:
            direct[n, 1], direct[n, 2] = choose_predictor(0, 0, 4, 4, ref, a, b, c)
    if direct[0, 0] < 0 and direct[1, 0] < 0:
        direct[0, 0] = direct[1, 0] = 0


@helper
def _set_quadrant(q, ref, x, y, ref_idx, mv):
    """Stores the motion of quadrant q in one list: its entry, -1 where the list is not used, and its vector."""
    ref_idx[0, q] = max(ref, -1)
    first = 8 * (q >> 1) + 2 * (q & 1)
    for k in (first, first + 1, first + 4, first + 5):
        mv[0, k, 0], mv[0, k, 1] = (x, y) if ref >= 0 else (np.int64(0), np.int64(0))


@helper
def _set_direct(direct, motion):
    """Stores estimated direct prediction in motion of one macroblock."""
    motion.mb_type[0] = B_16x16
    for q in range(4):
        _set_quadrant(q, direct[0, 0], direct[0, 1], direct[0, 2], motion.ref_idx, motion.mv)
        _set_quadrant(q, direct[1, 0], direct[1, 1], direct[1, 2], motion.ref_idx1, motion.mv1)


@helper
def _set_division(mb, shape, candidates, motion):
    """Stores the choices of a division, numbered as in `b_extra`, in motion of one macroblock."""
    ref, mv = candidates.ref, candidates.mv
    motion.mb_type[0] = B_16x16
    if shape == B_EXTRA_16x8:
        motion.mb_type[0] = B_16x8
    elif shape == B_EXTRA_8x16:
        motion.mb_type[0] = B_8x16
    elif shape == B_EXTRA_8x8:
        motion.mb_type[0] = B_8x8
    for q in range(4):
        k = B_WHOLE + shape
        if shape == B_EXTRA_16x8:
            k = B_16x8_PARTITION + (q >> 1)
        elif shape == B_EXTRA_8x16:
            k = B_8x16_PARTITION + (q & 1)
        elif shape == B_EXTRA_8x8:
            k = B_QUADRANT + q
        for n in range(2):
            entry, x, y = np.int64(ref[mb, k, n]), np.int64(mv[mb, k, n, 0]), np.int64(mv[mb, k, n, 1])
            if n == 0:
                _set_quadrant(q, entry, x, y, motion.ref_idx, motion.mv)
            else:
                _set_quadrant(q, entry, x, y, motion.ref_idx1, motion.mv1)


@helper
def _partitions_of(shape):
    """The first choice of a division, and how many it has."""
    if shape == B_EXTRA_16x8:
        return B_16x8_PARTITION, 2
    if shape == B_EXTRA_8x16:
        return B_8x16_PARTITION, 2
    if shape == B_EXTRA_8x8:
        return B_QUADRANT, 4
    return B_WHOLE + shape, 1


@helper
def _estimate(mb, shape, n_ref, n_ref1, candidates, direct):
    """SATD of a division and its estimated bits; the vector of direct prediction stands for the predictors of each list."""
    k, count = _partitions_of(shape)
    satd, bits = np.int64(0), np.int64(RD_B_BITS[shape])
    for i in range(k, k + count):
        satd += np.int64(candidates.cost[mb, i])
        n_lists = 0
        for n in range(2):
            ref = np.int64(candidates.ref[mb, i, n])
            if ref >= 0:
                x, y = np.int64(candidates.mv[mb, i, n, 0]), np.int64(candidates.mv[mb, i, n, 1])
                bits += ref_idx_bits(ref, n_ref if n == 0 else n_ref1) + mvd_bits(x, y, direct[n, 1], direct[n, 2])
                n_lists += 1
        if n_lists == 2 and count > 1:
            bits += RD_B_BOTH
    return satd, bits


@helper
def _block_of(shape, i):
    """The block (bx, by, bw, bh) of partition i of a division."""
    if shape == B_EXTRA_16x8:
        return 0, 2 * i, 4, 2
    if shape == B_EXTRA_8x16:
        return 2 * i, 0, 2, 4
    if shape == B_EXTRA_8x8:
        return 2 * (i & 1), i & 2, 2, 2
    return 0, 0, 4, 4


@helper
def _refine(mb, x0, y0, shape, true, references, area, candidates, direct, motion, residue, scale):
    """Moves the vectors of a division, which is in `motion`; returns its true cost, which was `true`.

    Each partition's in list 0, then in list 1, RD_ROUNDS times at most. Neighbours read the vectors of undivided choices,
    which are therefore moved in candidates.moved.
    """
    k, count = _partitions_of(shape)
    for i in range(count):
        goes_on, left, block = True, RD_ROUNDS, _block_of(shape, i)
        while goes_on and left > 0:
            goes_on = False
            for n in range(2):
                if candidates.ref[mb, k + i, n] >= 0:
                    vector = candidates.moved[mb, shape, n] if shape < B_EXTRA_16x8 else candidates.mv[mb, k + i, n]
                    middle, mv = (direct[n, 1], direct[n, 2]), motion.mv if n == 0 else motion.mv1
                    true, more = move_vector(
                        x0, y0, block, vector, middle, true, mv, references, area, motion, residue, scale
                    )
                    goes_on |= more < 0
            left -= 1
    return true


@helper
def _refine_all(mb, x0, y0, weighed, gains, references, area, candidates, direct, motion, residue, scale):
    """Moves the vectors of all divisions whose true cost is near the least. weighed: estimates, SATD and `extra` by division.

    Writes gains: int64[N_B_EXTRAS], by how much true costs change.
    """
    estimates, satds, extras = weighed
    least = np.int64(RD_COST_MAX)
    for k in range(3):
        for n in range(2):
            for i in range(2):
                candidates.moved[mb, k, n, i] = candidates.mv[mb, B_WHOLE + k, n, i]
    for shape in range(N_B_EXTRAS):
        gains[shape], least = 0, min(least, extras[shape] + estimates[shape])
    for shape in range(B_EXTRA_DIRECT):
        if extras[shape] + estimates[shape] <= least + (least >> RD_NEAR):
            _set_division(mb, shape, candidates, motion)
            true = extras[shape] + satds[shape]
            moved = _refine(mb, x0, y0, shape, true, references, area, candidates, direct, motion, residue, scale)
            gains[shape] = moved - true


@closed_kernel
def rd_candidates_b(source, references, quantiser, settings, tools, row0, row1, candidates, other_costs):
    """True costs less SATD of the choices of B macroblocks, of the macroblock rows [row0, row1).

    Bundles: Planes source, References with n_ref1 > 0, Quantiser, DecisionSettings, CodingTools, MovedCandidates, those of
    bipredict, of the row above too, OtherCosts with intra_cost of intra_estimate. The true cost of the residual (rd_cost) is
    determined for each division, and for the estimated direct prediction, whose estimated cost is near the best; for others
    the difference to SATD is that of the best by estimates.

    Writes candidates.extra; from subme RD_B_DIVISIONS on candidates.mv, where true costs move vectors of halves and
    quadrants, and candidates.moved, those of undivided choices; intra_cost: the difference of the best division is added;
    skip_limit: the cost of the squared error of chroma without a residual at direct prediction, in units of SATD, less
    RD_B_SKIP bits.
    """
    n_ref, n_ref1, partition_mask = references.n_ref, references.n_ref1, settings.partition_mask
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(SCALING_SET), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    intra_cost, skip_limit = other_costs
    mb_width = source.y.shape[1] // 16
    types, refs, vectors = np.zeros((1, 4), np.uint8), np.zeros((2, 1, 4), np.int8), np.zeros((2, 1, 16, 2), np.int16)
    motion = Motion(np.zeros(1, np.uint8), types, refs[0], vectors[0], refs[1], vectors[1])
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
    estimates, satds, extras = np.zeros(N_B_EXTRAS, np.int64), np.zeros(N_B_EXTRAS, np.int64), np.zeros(N_B_EXTRAS, np.int64)
    direct, gains = np.zeros((2, 3), np.int64), np.zeros(N_B_EXTRAS, np.int64)
    area = Area(source.y.shape[1], source.y.shape[0], references.pad, settings.max_mv_y)
    may_be_8x8 = tools.transform_8x8_mode != 0  # direct_8x8_inference_flag is 1, and no partition is smaller
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
        q_y = np.int64(qp[mb])
        q_c, lam = chroma_qp(q_y, chroma_qp_offset), LAMBDA[q_y]
        if q_y != bits_qp:
            known = table_of_qp(bits, B_SLICE, q_y, kept, known)
            bits_qp = q_y
        load_macroblock(source, x0, y0, residue.source)
        if settings.psy_rd:
            luma_energy(residue.source, residue.energy)
        _estimate_direct(mb, mb_width, lam, candidates, direct)
        _set_direct(direct, motion)
        predict_inter(0, x0, y0, references, motion, residue.predicted)
        best = B_EXTRA_DIRECT
        satds[best] = _satd(residue.source, residue.predicted)
        estimates[best] = satds[best] + lam * RD_B_BITS[best]
        for shape in range(B_EXTRA_DIRECT):
            estimates[shape] = RD_COST_MAX
            if shape < B_EXTRA_16x8 or partition_mask & (4 if shape == B_EXTRA_8x8 else 2):
                satds[shape], estimated_bits = _estimate(mb, shape, n_ref, n_ref1, candidates, direct)
                estimates[shape] = satds[shape] + lam * estimated_bits
                if estimates[shape] < estimates[best]:
                    best = shape
        limit = estimates[best] + (estimates[best] >> RD_GATE)
        for n in range(N_B_EXTRAS):
            shape = B_EXTRA_DIRECT if n == 0 else n - 1  # direct first: it is predicted
            is_near = shape == best or estimates[shape] < limit
            extras[shape] = RD_COST_MAX
            if n > 0 and is_near:
                _set_division(mb, shape, candidates, motion)
                predict_inter(0, x0, y0, references, motion, residue.predicted)
            if is_near:
                cost, without = residual_cost(residue, q_y, q_c, lam, may_be_8x8)
                extras[shape] = cost - satds[shape]
            elif n == 0:
                _, error = chroma_of(residue, q_y, q_c)
                without = min(error * lam // ONE_BIT, RD_MOST)
            if n == 0:
                skip_limit[mb] = without - lam * RD_B_SKIP
        if settings.subme >= RD_B_DIVISIONS:
            weighed, scale = (estimates, satds, extras), (q_y, q_c, lam, may_be_8x8)
            _refine_all(mb, x0, y0, weighed, gains, references, area, candidates, direct, motion, residue, scale)
        for shape in range(N_B_EXTRAS):
            candidates.extra[mb, shape] = extras[best if extras[shape] == RD_COST_MAX else shape] + gains[shape]
        if intra_cost[mb] < INTER_IS_CHEAPER:
            intra_cost[mb] += extras[best] + lam * RD_BITS_INTRA
