"""Mode decision of B frames: type, direct prediction, partitions, lists and vectors, in decoding order.

As in mode_decision.py, predictors depend on the choices of the neighbours to the left and above, direct motion too, and
threads take rows by ticket. Not part of the standard.
"""

from collections import namedtuple

import numpy as np

from ...jit.atomics import fetch_add, store_release
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import B_DIRECT, B_SKIP, B_SUB_DIRECT, B_SUB_L0, B_8x8, B_8x16, B_16x8, B_16x16, I_16x16
from ...standard.sample_format import Sample
from ...standard.tables import QUANT_MF
from ..costs.bit_costs import mvd_bits, ref_idx_bits
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from ..costs.psy import predicted_difference
from ..costs.skip_probe import LEVEL_SCORES, probe_tables, quantises_to_zero
from ..decisions.common import BY_COST, LAMBDA, SAD, SATD
from ..decisions.decide import (
    BITS_B_DIRECT,
    BITS_B_INTRA,
    BITS_B_SUB,
    BITS_SKIP,
    PSY_ERROR,
    RD_B_DIVISIONS,
    RD_SKIP_WEIGHT,
    BITS_B_8x8,
    BITS_B_8x16,
    BITS_B_16x8,
    BITS_B_16x16,
)
from ..inter.direct import direct_motion, predict_direct, put_direct, quadrant_distortions
from ..inter.mv_cache import commit_motion, fill_mv_cache, load_mv_cache, predict
from ..layout import (
    B_EXTRA_DIRECT,
    B_QUADRANT,
    B_WHOLE,
    B_8x16_PARTITION,
    B_16x8_PARTITION,
    B_EXTRA_8x8,
    B_EXTRA_8x16,
    B_EXTRA_16x8,
)
from ..simd.vector import load_u8x16, store, widen
from ..wavefront import wait_for_above
from .mode_decision import COST_MAX, whole_error

# What the parts of a macroblock are chosen from, and the choice.
ChoiceB = namedtuple("ChoiceB", (
    "mv_caches",  # of both lists, each int64[5, 6, 3], see load_mv_cache
    "candidates",  # MovedCandidates
    "direct",  # int64[2, 4], see direct_motion
    "direct_cost",  # int64[4], SAD or SATD of the direct quadrants
    "counts",  # entries of both lists
    "has_moved",  # whether the vectors of undivided choices are candidates.moved
))  # fmt: skip


@helper
def lists_of(candidates, mb, c):
    """The lists that choice c uses: 0, 1, or 2 for both."""
    if candidates.ref[mb, c, 0] < 0:
        return 1
    return 0 if candidates.ref[mb, c, 1] < 0 else 2


@helper
def _vector(choice, mb, c, k):
    """The vector of choice c in list k."""
    if choice.has_moved and c >= B_WHOLE:
        moved = choice.candidates.moved
        return np.int64(moved[mb, c - B_WHOLE, k, 0]), np.int64(moved[mb, c - B_WHOLE, k, 1])
    return np.int64(choice.candidates.mv[mb, c, k, 0]), np.int64(choice.candidates.mv[mb, c, k, 1])


@helper
def choice_cost(choice, mb, c, bx, by, bw, bh, lam):
    """Cost of choice c for the partition at block (bx, by), bw x bh blocks, with bits of ref_idx and of the vectors by their
    actual predictors, without those of the type.
    """
    candidates, bits = choice.candidates, 0
    for k in range(2):
        ref = np.int64(candidates.ref[mb, c, k])
        if ref >= 0:
            px, py = predict(choice.mv_caches[k], bx, by, bw, bh, ref)
            x, y = _vector(choice, mb, c, k)
            bits += ref_idx_bits(ref, choice.counts[k]) + mvd_bits(x, y, px, py)
    return np.int64(candidates.cost[mb, c]) + lam * bits


@helper
def put_choice(choice, mb, c, bx, by, bw, bh):
    """Stores choice c in the mv_caches of both lists."""
    candidates = choice.candidates
    for k in range(2):
        ref, x, y = np.int64(candidates.ref[mb, c, k]), np.int64(0), np.int64(0)
        if ref >= 0:
            x, y = _vector(choice, mb, c, k)
        fill_mv_cache(choice.mv_caches[k], bx, by, bw, bh, ref, x, y)


@helper
def commit_both(mv_caches, mb, motion):
    """Copies the macroblock's 16 blocks of the mv_caches to its state."""
    commit_motion(mv_caches[0], mb, motion.ref_idx, motion.mv)
    commit_motion(mv_caches[1], mb, motion.ref_idx1, motion.mv1)


@helper
def commit_direct(choice, mb, motion):
    """Stores direct motion of the whole macroblock in its state."""
    for q in range(4):
        put_direct(choice.mv_caches, q, choice.direct)
    commit_both(choice.mv_caches, mb, motion)


@helper
def whole_choice(choice, mb, lam):
    """The best of 16x16 from list 0, from list 1 and from both: (cost, choice)."""
    best, chosen = COST_MAX, B_WHOLE
    for k in range(3):
        c = B_WHOLE + k
        cost = choice_cost(choice, mb, c, 0, 0, 4, 4, lam) + np.int64(choice.candidates.extra[mb, k])
        cost += lam * BITS_B_16x16[lists_of(choice.candidates, mb, c)]
        if cost < best:
            best, chosen = cost, c
    return best, chosen


@helper
def halves_b(choice, mb, lam, best, motion):
    """Tries 16x8 and 8x16 against `best`; a cheaper one is stored in the macroblock's state. Returns the lowest cost."""
    inlined()
    candidates = choice.candidates
    for shape in range(2):
        c, extra = (B_16x8_PARTITION, B_EXTRA_16x8) if shape == 0 else (B_8x16_PARTITION, B_EXTRA_8x16)
        w, h = (4, 2) if shape == 0 else (2, 4)
        bits = BITS_B_16x8 if shape == 0 else BITS_B_8x16
        cost = np.int64(candidates.extra[mb, extra])
        cost += lam * bits[lists_of(candidates, mb, c), lists_of(candidates, mb, c + 1)]
        for i in range(2):
            bx, by = (0, 2 * i) if shape == 0 else (2 * i, 0)
            cost += choice_cost(choice, mb, c + i, bx, by, w, h, lam)
            if cost >= best:
                break
            put_choice(choice, mb, c + i, bx, by, w, h)
        if cost < best:
            best = cost
            motion.mb_type[mb] = B_16x8 if shape == 0 else B_8x16
            commit_both(choice.mv_caches, mb, motion)
    return best


@helper
def quarters_b(choice, mb, lam, best, motion):
    """Tries 8x8, each quadrant its choice or direct, against `best`; a cheaper one is stored. Returns the lowest cost."""
    inlined()
    candidates = choice.candidates
    cost = np.int64(candidates.extra[mb, B_EXTRA_8x8]) + lam * BITS_B_8x8
    subs = 0  # two bits a quadrant
    for q in range(4):
        bx, by = 2 * (q & 1), q & 2
        sub = B_SUB_L0 + lists_of(candidates, mb, B_QUADRANT + q)
        value = choice_cost(choice, mb, B_QUADRANT + q, bx, by, 2, 2, lam) + lam * BITS_B_SUB[sub]
        direct = choice.direct_cost[q] + lam * BITS_B_SUB[B_SUB_DIRECT]
        if direct <= value:
            value, sub = direct, B_SUB_DIRECT
            put_direct(choice.mv_caches, q, choice.direct)
        else:
            put_choice(choice, mb, B_QUADRANT + q, bx, by, 2, 2)
        subs |= sub << 2 * q
        cost += value
        if cost >= best:
            return best
    motion.mb_type[mb] = B_8x8
    for q in range(4):
        motion.sub_mb_type[mb, q] = subs >> 2 * q & 3
    commit_both(choice.mv_caches, mb, motion)
    return cost


@closed_kernel
def mode_decision_b(
    source, references, candidates, colocated_still, other_costs, slice_first_mb, settings, progress, row0, row1, motion
):
    """Decides the macroblock rows [row0, row1), shared with all other threads that call this with the same arguments.

    Bundles: Planes source, of which y is read; References; MovedCandidates; OtherCosts; DecisionSettingsB.
    colocated_still: uint8[n_mb], colZeroFlag of the quadrants of RefPicList1[0], a bit each; slice_first_mb, progress and
    row0 - 1: as in mode_decision.

    Writes motion: Motion of both lists, with mb_type B_16x16, B_16x8, B_8x16, B_8x8, B_DIRECT, B_SKIP or I_16x16 for "intra,
    the intra stage chooses". The lowest distortion + extra + lam * bits wins; on equal cost the earlier of 16x16 from list 0,
    list 1, both, then direct, 16x8, 8x16, 8x8 (in it direct before the choice), intra. Direct prediction is taken at once if
    it costs no more than the best 16x16 and its residual quantises to nothing worth coding.

    With CABAC from subme BY_COST on the costs are those of rd_candidates_b, and B_Skip is chosen at the end, if the squared
    error of luma by direct prediction and skip_limit cost no more than the best choice.
    """
    intra_cost, skip_limit = other_costs
    mb_type, sub_mb_type = motion.mb_type, motion.sub_mb_type
    metric = SATD if settings.subme >= 3 else SAD
    by_cost = settings.subme >= BY_COST and settings.cabac
    width = source.y.shape[1]
    mb_width = width // 16
    offsets, of_predicted = np.empty((2, 16), np.int64), np.zeros((2, 16), np.int64)
    stride = references.luma.shape[3]
    quarter_offsets(references.luma.shape[2] * stride, stride, QUARTER_SAMPLES, offsets)
    tables = np.empty((3, 4, 16), np.int16)
    qp, tables_qp = settings.qp, np.int64(-1)  # tables_qp: QP of `tables`
    current, predicted = np.empty(256, np.int16), np.empty((1, 1, 16, 16), Sample)
    mv_caches = np.zeros((5, 6, 3), np.int64), np.zeros((5, 6, 3), np.int64)
    direct, direct_cost = np.zeros((2, 4), np.int64), np.zeros(4, np.int64)
    target = Target(current, predicted, of_predicted)
    counts, subme = (np.int64(references.n_ref), np.int64(references.n_ref1)), settings.subme
    choice = ChoiceB(mv_caches, candidates, direct, direct_cost, counts, bool(by_cost and subme >= RD_B_DIVISIONS))
    my = row0 + fetch_add(progress, 0, 1)
    while my < row1:
        for mx in range(mb_width):
            mb, x0, y0 = my * mb_width + mx, 16 * mx, 16 * my
            q_y, first_mb = np.int64(qp[mb]), np.int64(slice_first_mb[mb])
            lam = LAMBDA[q_y]
            if q_y != tables_qp:
                probe_tables(q_y, QUANT_MF, LEVEL_SCORES, tables)
                tables_qp = q_y
            for y in range(16):
                store(current, y * 16, widen(load_u8x16(source.y, (y0 + y) * width + x0)))
            for q in range(4):
                sub_mb_type[mb, q] = 0
            wait_for_above(progress, my, mx, mb_width, first_mb, row0)
            load_mv_cache(mb, motion.ref_idx, motion.mv, mb_width, first_mb, mv_caches[0])
            load_mv_cache(mb, motion.ref_idx1, motion.mv1, mb_width, first_mb, mv_caches[1])
            direct_motion(mv_caches, np.int64(colocated_still[mb]), direct)
            predict_direct(references, direct, x0, y0, offsets, predicted)
            quadrant_distortions(current, predicted, metric, direct_cost)
            whole_direct = direct_cost[0] + direct_cost[1] + direct_cost[2] + direct_cost[3]
            best, c = whole_choice(choice, mb, lam)
            empty = not by_cost and whole_direct + lam * BITS_SKIP <= best and quantises_to_zero(target, 0, 0, 0, tables)
            whole_direct += np.int64(candidates.extra[mb, B_EXTRA_DIRECT]) + lam * BITS_B_DIRECT
            if empty or whole_direct < best:
                best = whole_direct
                mb_type[mb] = B_DIRECT
                commit_direct(choice, mb, motion)
            else:
                mb_type[mb] = B_16x16
                put_choice(choice, mb, c, 0, 0, 4, 4)
                commit_both(mv_caches, mb, motion)
            if not empty:
                if settings.partition_mask & 2:
                    best = halves_b(choice, mb, lam, best, motion)
                if settings.partition_mask & 4:
                    best = quarters_b(choice, mb, lam, best, motion)
                if intra_cost[mb] + lam * BITS_B_INTRA < best:
                    best = intra_cost[mb] + lam * BITS_B_INTRA
                    mb_type[mb] = I_16x16
                    for q in range(4):
                        sub_mb_type[mb, q] = 0
                    for k in range(2):
                        fill_mv_cache(mv_caches[k], 0, 0, 4, 4, -1, 0, 0)
                    commit_both(mv_caches, mb, motion)
                if by_cost:
                    error = whole_error(target, 0, 0, 0)
                    if settings.psy_rd:
                        error += predicted_difference(target, 0, 0, 0) * settings.psy_rd * PSY_ERROR[q_y] >> 24
                    cost = (error * RD_SKIP_WEIGHT[q_y] >> 16) + skip_limit[mb] + lam * BITS_SKIP
                    if cost <= best:
                        mb_type[mb] = B_SKIP
                        for q in range(4):
                            sub_mb_type[mb, q] = 0
                        commit_direct(choice, mb, motion)
            store_release(progress, 1 + my, mx + 1)
        my = row0 + fetch_add(progress, 0, 1)
