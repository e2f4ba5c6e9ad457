"""Mode decision of P frames: type, partitions, references and vectors of each macroblock, in decoding order.

Predictors and the P_Skip vector depend on the choices of the neighbours, so a macroblock is decided after those to the left
and above: threads take rows by ticket, and each row stays two macroblocks behind the row above. Not part of the standard.
"""

from collections import namedtuple

import numpy as np

from ...jit.atomics import fetch_add, store_release
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    P_SKIP,
    I_16x16,
    P_8x8,
    P_8x16,
    P_16x8,
    P_16x16,
    SUB_4x4,
    SUB_4x8,
    SUB_8x4,
    SUB_8x8,
)
from ...standard.tables import QUANT_MF
from ..costs.bit_costs import mvd_bits, ref_idx_bits, se_bits, sub_type_bits
from ..costs.block_costs import Layers, fill_layers, fill_samples, predict_layers, sads_of_octets, satds
from ..costs.cost import QUARTER_SAMPLES, Target, quarter_offsets, row_16
from ..costs.psy import predicted_difference
from ..costs.skip_probe import LEVEL_SCORES, probe_tables, quantises_to_zero
from ..decisions.common import BITS_INTRA, BY_COST, LAMBDA, SAD, SATD
from ..decisions.decide import BITS_LEAST, BITS_SKIP, PSY_ERROR, RD_SKIP_WEIGHT, BITS_8x8, BITS_8x16, BITS_16x8, BITS_16x16
from ..decisions.search import SMALL_PARTITIONS
from ..inter.mv_cache import Area, commit_motion, commit_whole, fill_mv_cache, inside, load_mv_cache, predict
from ..inter.mv_prediction import predict_skip_mv
from ..simd.blocks import load_i32x16, splat_i32x16
from ..simd.lanes import bit_lengths, squares_of_pairs, sum_of_lanes
from ..simd.vector import (
    absolute,
    add,
    aligned,
    load_u8x16,
    load_u16x16,
    mul,
    plus,
    prefetch,
    shift_left,
    shift_right_s,
    splat_i32x8,
    store,
    widen,
)
from ..simd.vector import sub as difference
from ..wavefront import wait_for_above

COST_MAX = 1 << 40

# What partitions of a macroblock are chosen from, and the choice.
Choice = namedtuple("Choice", (
    "mv_cache",  # int64[5, 6, 3], see load_mv_cache
    "distortion",  # int32[n_ref, 41], see find_distortions
    "search_mv",  # int16[>= n_ref, n_mb, 41, 2], quarter samples (x, y)
    "n_ref",
    "partition_mask",  # sizes of partitions allowed
    "probe",  # whether the P_Skip vector is taken at once where nothing of its residual is worth coding
    "layers",  # Layers of the source macroblock
))  # fmt: skip


@helper
def partition_cost(mv_cache, base, bx, by, bw, bh, ref, mv_x, mv_y, lam):
    """Cost of a partition in one reference with its actual predictor; base: without bits of the vector."""
    px, py = predict(mv_cache, bx, by, bw, bh, ref)
    return base + lam * mvd_bits(mv_x, mv_y, px, py)


@helper
def choose_reference(choice, k, bx, by, bw, bh, mb, lam):
    """Stores the best reference of partition k in the mv_cache. Returns its cost, bits of ref_idx included."""
    best, ref, x, y = best_reference(choice, k, bx, by, bw, bh, mb, lam)
    fill_mv_cache(choice.mv_cache, bx, by, bw, bh, ref, x, y)
    return best


@helper
def best_reference(choice, k, bx, by, bw, bh, mb, lam):
    """The best reference of partition k: (cost, bits of ref_idx included; reference; its vector, x and y)."""
    inlined()
    mv_cache, distortion, search_mv, n_ref = choice.mv_cache, choice.distortion, choice.search_mv, choice.n_ref
    best, ref = COST_MAX, 0
    for r in range(n_ref):
        base = np.int64(distortion[r, k]) + lam * ref_idx_bits(r, n_ref)
        if base < best:
            cost = partition_cost(
                mv_cache, base, bx, by, bw, bh, r, np.int64(search_mv[r, mb, k, 0]), np.int64(search_mv[r, mb, k, 1]), lam
            )
            if cost < best:
                best, ref = cost, r
    return best, ref, np.int64(search_mv[ref, mb, k, 0]), np.int64(search_mv[ref, mb, k, 1])


@helper
def choose_sub_type(choice, q, mb, lam):
    """Stores the best reference and sub-partitions of 8x8 quadrant q in the mv_cache. Returns (cost, sub_mb_type).

    Sub-partitions are tried only in the best reference of the undivided 8x8 block.
    """
    mv_cache, distortion, search_mv, n_ref, partition_mask, _, _ = choice
    bx, by = (q & 1) * 2, (q >> 1) * 2
    best = choose_reference(choice, 32 + q, bx, by, 2, 2, mb, lam)
    best += lam * sub_type_bits(SUB_8x8)
    chosen = SUB_8x8
    if not partition_mask & 8:
        return best, chosen
    ref = mv_cache[by + 1, bx + 1, 0]
    x, y = mv_cache[by + 1, bx + 1, 1], mv_cache[by + 1, bx + 1, 2]
    fixed = lam * ref_idx_bits(ref, n_ref)
    b = by * 4 + bx
    for sub in range(SUB_8x4, SUB_4x4 + (1 if partition_mask & 16 else 0)):
        if sub == SUB_8x4:
            first, step, count, w, h = 16 + 2 * q, 1, 2, 2, 1
        elif sub == SUB_4x8:
            first, step, count, w, h = 24 + 2 * q, 1, 2, 1, 2
        else:
            first, step, count, w, h = b, 1, 4, 1, 1
        cost = fixed + lam * sub_type_bits(sub)
        for i in range(count):
            k = first + i * step + (2 if sub == SUB_4x4 and i >= 2 else 0)
            cost += np.int64(distortion[ref, k]) + BITS_LEAST * lam
        if cost >= best:
            continue
        cost -= BITS_LEAST * lam * count
        for i in range(count):
            k = first + i * step + (2 if sub == SUB_4x4 and i >= 2 else 0)
            px = bx + (i & 1) * (w == 1)
            py = by + (i if sub == SUB_8x4 else i >> 1)
            vx, vy = np.int64(search_mv[ref, mb, k, 0]), np.int64(search_mv[ref, mb, k, 1])
            cost += partition_cost(mv_cache, 0, px, py, w, h, ref, vx, vy, lam)
            fill_mv_cache(mv_cache, px, py, w, h, ref, vx, vy)
        if cost < best:
            best, chosen = cost, sub
    # the mv_cache holds the last trial: restore the choice
    if chosen == SUB_8x8:
        fill_mv_cache(mv_cache, bx, by, 2, 2, ref, x, y)
    else:
        for j in range(4):
            dx, dy = j & 1, j >> 1
            if chosen == SUB_8x4:
                k = 16 + 2 * q + dy
            elif chosen == SUB_4x8:
                k = 24 + 2 * q + dx
            else:
                k = b + 4 * dy + dx
            vx, vy = np.int64(search_mv[ref, mb, k, 0]), np.int64(search_mv[ref, mb, k, 1])
            fill_mv_cache(mv_cache, bx + dx, by + dy, 1, 1, ref, vx, vy)
    return best, chosen


@helper
def whole_distortion(target, layers, at, x, y, metric):
    """SAD or SATD of the macroblock against the prediction at vector (x, y); at: its corner's offset in target.luma."""
    _, ref_luma, offsets = target
    stride = ref_luma.shape[3]
    base = at + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    a, b = base + offsets[0, f], base + offsets[1, f]
    predicted = predict_layers(ref_luma, a, b, stride)
    return np.int64(sum_of_lanes(satds(layers, predicted) if metric == SATD else sads_of_octets(layers, predicted)))


@helper
def _prefetch_samples(target, at, x, y):
    """Prefetches the samples that predict a macroblock at vector (x, y), before they are needed; see whole_distortion."""
    _, ref_luma, offsets = target
    stride = ref_luma.shape[3]
    base = at + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    for row in range(16):
        prefetch(ref_luma, base + row * stride + offsets[0, f])
        prefetch(ref_luma, base + row * stride + offsets[1, f])


@helper
def whole_error(target, at, x, y):
    """Squared error of the macroblock against the prediction at vector (x, y); see whole_distortion."""
    current, ref_luma, offsets = target
    stride = ref_luma.shape[3]
    base = at + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    a, b = base + offsets[0, f], base + offsets[1, f]
    sums = splat_i32x8(0)
    for row in range(16):
        error = difference(row_16(ref_luma, a, b, row * stride), load_u16x16(current, 16 * row))
        sums = add(sums, squares_of_pairs(error))
    return np.int64(sum_of_lanes(sums))


@helper
def whole_macroblock(mb, x0, y0, first_mb, target, at, tables, area, metric, choice, lam, motion):
    """The best P_16x16 vector: searched, P_Skip, predictor, or a quarter sample from the best.

    at: see whole_distortion; tables: see probe_tables. Returns (cost, skipped, reference, x, y); skipped: the P_Skip vector
    costs no more than the searched vector, and its residual quantises to nothing worth coding.
    """
    inlined()
    mv_cache, n_ref = choice.mv_cache, choice.n_ref
    best, ref, best_x, best_y = best_reference(choice, 40, 0, 0, 4, 4, mb, lam)
    best += lam * BITS_16x16
    fixed = BITS_16x16 + ref_idx_bits(0, n_ref)
    sx, sy = predict_skip_mv(mb, motion.ref_idx, motion.mv, area.width // 16, first_mb)
    px, py = predict(mv_cache, 0, 0, 4, 4, 0)
    for n in range(2):
        x, y = (sx, sy) if n == 0 else (px, py)
        if n == 1 and x == sx and y == sy:
            continue
        if not inside(x, y, x0, y0, area):
            continue
        value = whole_distortion(target, choice.layers, at, x, y, metric)
        if n == 0 and choice.probe and value + lam * BITS_SKIP <= best and quantises_to_zero(target, at, x, y, tables):
            return best, True, np.int64(0), np.int64(x), np.int64(y)
        value += lam * (fixed + mvd_bits(x, y, px, py))
        if value < best:
            best, ref, best_x, best_y = value, 0, x, y
    if ref == 0:  # the search estimated the predictor; with the actual one, refine round the best vector
        cx, cy = best_x, best_y
        all_inside = inside(cx - 1, cy - 1, x0, y0, area) and inside(cx + 1, cy + 1, x0, y0, area)
        for dy in range(-1, 2):
            y = cy + dy
            bits = fixed + se_bits(y - py)
            for dx in range(-1, 2):
                x = cx + dx
                if (dx == 0 and dy == 0) or (x == sx and y == sy) or (x == px and y == py):
                    continue  # those were tried
                if not all_inside and not inside(x, y, x0, y0, area):
                    continue
                value = whole_distortion(target, choice.layers, at, x, y, metric)
                value += lam * (bits + se_bits(x - px))
                if value < best:
                    best, best_x, best_y = value, x, y
    return best, False, ref, best_x, best_y


@helper
def _least_cost(choice, k, count, bits, lam):
    """Partitions k to k + count - 1 cost at least so much together, with `bits` more."""
    total = lam * (bits + BITS_LEAST * count)
    for i in range(k, k + count):
        least = np.int64(choice.distortion[0, i])
        for r in range(1, choice.n_ref):
            least = min(least, np.int64(choice.distortion[r, i]))
        total += least
    return total


@helper
def smaller_partitions(mb, choice, lam, best, motion):
    """Tries 16x8, 8x16 and 8x8 against `best`; a cheaper one is stored in the macroblock's state. Returns the lowest cost."""
    inlined()
    mv_cache, partition_mask = choice.mv_cache, choice.partition_mask
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    if partition_mask & 2:
        for shape in range(2):
            bits = BITS_16x8 if shape == 0 else BITS_8x16
            k, w, h = (36, 4, 2) if shape == 0 else (38, 2, 4)
            if _least_cost(choice, k, 2, bits, lam) >= best:
                continue
            cost = lam * bits
            for i in range(2):
                bx, by = (0, 2 * i) if shape == 0 else (2 * i, 0)
                cost += choose_reference(choice, k + i, bx, by, w, h, mb, lam)
                if cost >= best:
                    break
            if cost < best:
                best = cost
                mb_type[mb] = P_16x8 if shape == 0 else P_8x16
                commit_motion(mv_cache, mb, ref_idx, mv)
    if partition_mask & 4 and (partition_mask & 8 or _least_cost(choice, 32, 4, BITS_8x8, lam) < best):
        cost = lam * BITS_8x8
        subs = 0  # two bits a quadrant
        for q in range(4):
            value, sub = choose_sub_type(choice, q, mb, lam)
            subs |= sub << 2 * q
            cost += value
            if cost >= best:
                break
        if cost < best:
            best = cost
            mb_type[mb] = P_8x8
            for q in range(4):
                sub_mb_type[mb, q] = subs >> 2 * q & 3
            commit_motion(mv_cache, mb, ref_idx, mv)
    return best


@helper
def _distortions(search_cost, search_mv, at, px, py, lam, distortion, to):
    """find_distortions of sixteen partitions in one reference, from search_cost[at] to distortion[to]."""
    vectors = load_i32x16(search_mv, 2 * at)
    x, y = shift_right_s(shift_left(vectors, 16), 16), shift_right_s(vectors, 16)
    bits = add(bit_lengths(absolute(difference(x, px))), bit_lengths(absolute(difference(y, py))))
    bits = plus(add(bits, bits), 2)
    store(distortion, to, difference(load_i32x16(search_cost, at), mul(bits, splat_i32x16(lam))))


@helper
def find_distortions(mb, n_ref, lam, searches, small, distortion):
    """distortion: int32[n_ref, 41]: cost of partitions in Searches minus the cost of their vector bits.

    small: also of those below 8x8; without, of the last sixteen.
    """
    search_cost, search_mv, predictor = searches
    for r in range(n_ref):
        px, py = splat_i32x16(np.int64(predictor[r, mb, 0])), splat_i32x16(np.int64(predictor[r, mb, 1]))
        at = 41 * (r * search_cost.shape[1] + mb)
        if small:
            _distortions(search_cost, search_mv, at, px, py, lam, distortion, 41 * r)
            _distortions(search_cost, search_mv, at + 16, px, py, lam, distortion, 41 * r + 16)
        _distortions(search_cost, search_mv, at + 25, px, py, lam, distortion, 41 * r + 25)


@closed_kernel
def mode_decision(source, references, searches, other_costs, slice_first_mb, qp, settings, progress, row0, row1, motion):
    """Decides the macroblock rows [row0, row1), shared with all other threads that call this with the same arguments.

    source: Sample[H, W]; bundles: LumaReferences; Searches, results of full_search and subpel_refine; DecisionSettings.
    OtherCosts; slice_first_mb: int32[n_mb]; qp: uint8[n_mb], QP_Y; progress: int64[1 + mb_height],
    initially 0: rows taken, then the macroblocks decided in each row. Row row0 - 1 must be final if it is of the same slice.

    Writes motion: Motion, with mb_type P_16x16, P_16x8, P_8x16, P_8x8 or I_16x16 for "intra, the intra stage chooses". The
    lowest distortion + lam * bits wins; on equal cost the earlier of 16x16, the P_Skip vector, the predictor, 16x8, 8x16,
    8x8, intra. The P_Skip vector is taken at once if it costs no more than the best 16x16 and its residual quantises to
    nothing worth coding.

    From subme BY_COST on the costs are those of rd_candidates, and P_Skip is chosen at the end, if the squared error of luma
    at its vector costs no more than the best choice plus skip_limit.
    """
    ref_luma, ref_slots, pad, n_ref = references.luma, references.slots, references.pad, references.n_ref
    intra_cost, skip_limit = other_costs
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    metric, by_cost = SATD if settings.subme >= 3 else SAD, settings.subme >= BY_COST
    height, width = source.shape
    mb_width = width // 16
    stride = ref_luma.shape[3]
    plane = ref_luma.shape[2] * stride
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(plane, stride, QUARTER_SAMPLES, offsets)
    tables = np.empty((3, 4, 16), np.int16)
    tables_qp = np.int64(-1)  # QP of `tables`
    current = np.empty(256, np.int16)
    mv_cache = np.zeros((5, 6, 3), np.int64)
    distortion = np.empty((n_ref, 41), np.int32)
    target, area = Target(current, ref_luma, offsets), Area(width, height, pad, settings.max_mv_y)
    layers = Layers(aligned(256), aligned(512).view(np.int16))
    choice = Choice(mv_cache, distortion, searches.mv, n_ref, settings.partition_mask, not by_cost, layers)
    small = settings.partition_mask & SMALL_PARTITIONS != 0
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
                store(current, y * 16, widen(load_u8x16(source, (y0 + y) * width + x0)))
            if metric == SATD:
                fill_layers(source, y0 * width + x0, width, layers)
            else:
                fill_samples(source, y0 * width + x0, width, layers)
            find_distortions(mb, n_ref, lam, searches, small, distortion)
            for q in range(4):
                sub_mb_type[mb, q] = SUB_8x8
            mb_type[mb] = P_16x16
            wait_for_above(progress, my, mx, mb_width, first_mb, row0)
            load_mv_cache(mb, ref_idx, mv, mb_width, first_mb, mv_cache)
            at = np.int64(ref_slots[0]) * 4 * plane + (y0 + pad) * stride + x0 + pad
            if mx + 1 < mb_width:
                x, y = np.int64(searches.mv[0, mb + 1, 40, 0]), np.int64(searches.mv[0, mb + 1, 40, 1])
                _prefetch_samples(target, at + 16, x, y)
            best, skipped, ref, x, y = whole_macroblock(
                mb, x0, y0, first_mb, target, at, tables, area, metric, choice, lam, motion
            )
            commit_whole(ref, x, y, mb, ref_idx, mv)
            if not skipped:
                best = smaller_partitions(mb, choice, lam, best, motion)
                if intra_cost[mb] + lam * BITS_INTRA < best:
                    best = intra_cost[mb] + lam * BITS_INTRA
                    mb_type[mb] = I_16x16
                    for q in range(4):
                        sub_mb_type[mb, q] = SUB_8x8
                    commit_whole(np.int64(-1), np.int64(0), np.int64(0), mb, ref_idx, mv)
                if by_cost:
                    x, y = predict_skip_mv(mb, ref_idx, mv, mb_width, first_mb)
                    if inside(x, y, x0, y0, area):
                        error = whole_error(target, at, x, y)
                        if settings.psy_rd:
                            error += predicted_difference(target, at, x, y) * settings.psy_rd * PSY_ERROR[q_y] >> 24
                        cost = error * RD_SKIP_WEIGHT[q_y] >> 16
                        if cost <= best + skip_limit[mb]:
                            mb_type[mb] = P_SKIP
                            for q in range(4):
                                sub_mb_type[mb, q] = SUB_8x8
                            commit_whole(np.int64(0), x, y, mb, ref_idx, mv)
            store_release(progress, 1 + my, mx + 1)
        my = row0 + fetch_add(progress, 0, 1)


@helper
def is_beside_intra(mb, ref_idx, mb_width):
    """Whether one of the neighbours A, B, C, D of a macroblock may be intra, by its ref_idx in one list; those in other
    slices may count too.
    """
    column, above = mb % mb_width, mb >= mb_width
    if column > 0 and (ref_idx[mb - 1, 0] < 0 or (above and ref_idx[mb - mb_width - 1, 0] < 0)):
        return True
    if not above:
        return False
    return ref_idx[mb - mb_width, 0] < 0 or (column < mb_width - 1 and ref_idx[mb - mb_width + 1, 0] < 0)


@closed_kernel
def mark_skipped(slice_first_mb, ref_idx, mv, cbp, mb_width, row0, row1, mb_type):
    """8.4.1.1: turns P_16x16 macroblocks of reference 0 with the P_Skip vector and no coded residual into P_Skip.

    Table 7-14: turns B_Direct_16x16 without coded residual into B_Skip, which has the same motion. P_Skip becomes P_16x16
    where a neighbour took fewer bits as I_PCM after the mode decision, so that a decoder derives another vector.
    [row0, row1): macroblock rows; ref_idx and mv of neighbours must be final; writes mb_type: uint8[n_mb].
    """
    for mb in range(row0 * mb_width, row1 * mb_width):
        if mb_type[mb] == P_16x16 and cbp[mb] == 0 and ref_idx[mb, 0] == 0:
            x, y = predict_skip_mv(mb, ref_idx, mv, mb_width, np.int64(slice_first_mb[mb]))
            if mv[mb, 0, 0] == x and mv[mb, 0, 1] == y:
                mb_type[mb] = P_SKIP
        elif mb_type[mb] == B_DIRECT and cbp[mb] == 0:
            mb_type[mb] = B_SKIP
        elif mb_type[mb] == P_SKIP and is_beside_intra(mb, ref_idx, mb_width):
            x, y = predict_skip_mv(mb, ref_idx, mv, mb_width, np.int64(slice_first_mb[mb]))
            if mv[mb, 0, 0] != x or mv[mb, 0, 1] != y:
                mb_type[mb] = P_16x16
