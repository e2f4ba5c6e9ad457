"""Full integer motion search of all 41 partitions of every macroblock, with reuse of the SADs of the 4x4 blocks."""
# Samples of 8 bits only: differences of bytes, SADs of 16 bits.

from collections import namedtuple

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ..costs.bit_costs import se_bits
from ..costs.block_costs import load_layers
from ..decisions.common import COST_NOT_REFINED, LAMBDA, QUICK, QUIET
from ..decisions.search import ALL_PARTITIONS, EVERY, FIRST_LARGE, SMALL_PARTITIONS
from ..layout import PARTITIONS
from ..simd.blocks import splat_i32x16
from ..simd.lanes import bit_length, first_where, smallest
from ..simd.search import WINDOW, arranged_sads, candidates, keep_smallest, row_sads, row_sads_portable
from ..simd.vector import (
    PORTABLE,
    SIMD_LEVEL,
    WIDE,
    add,
    add_sat_u,
    aligned,
    lane_numbers_like,
    lanes_of,
    load_like,
    min_u,
    mul,
    shift_left,
    splat_like,
    store,
)
from .search_centre import macroblock_sad
from .search_windows import COST_OUTSIDE, Shape, arrange_windows, candidate, column_keys, first_column, motion_keys

# The best candidates so far of the 41 partitions.
Smallest = namedtuple("Smallest", (
    "keys",  # uint16[41, lanes], smallest key of each lane
    "steps",  # uint16[41, lanes], its step
))  # fmt: skip

# Motion costs of the candidates of a window.
Costs = namedtuple("Costs", (
    "x",  # int64[160], by column; in full_search COST_OUTSIDE behind the last one
    "y",  # int64[160], by row, the same
))  # fmt: skip


@helper
def block_sads(source, source_at, source_stride, windows, rows, sads, like):
    """SADs times 4 of the sixteen 4x4 blocks, for four rows of adjacent candidates.

    source_at: offset of the macroblock; windows: rows of the reference (arrange_row); rows: int64[4], the offset there of
    the first row of each row of candidates; like: a vector with a lane for each candidate; sads: uint16[4, 16, lanes],
    [row of candidates, block in raster order, candidate].
    """
    lanes = lanes_of(like)
    for i in range(4):
        for band in range(4):
            a = b = c = d = splat_like(like, 0)
            for y in range(4 * band, 4 * band + 4):
                at = rows[i] + y * WINDOW
                a1, b1, c1, d1 = arranged_sads(source, source_at + y * source_stride, windows, at, like)
                a, b, c, d = add(a, a1), add(b, b1), add(c, c1), add(d, d1)
            at = (i * 16 + band * 4) * lanes
            store(sads, at, shift_left(a, 2))
            store(sads, at + lanes, shift_left(b, 2))
            store(sads, at + 2 * lanes, shift_left(c, 2))
            store(sads, at + 3 * lanes, shift_left(d, 2))


@helper
def block_sads_portable(source, source_at, source_stride, windows, rows, sads, like):
    """block_sads for processors without AVX2."""
    lanes = lanes_of(like)
    for i in range(4):
        for band in range(4):
            a = b = c = d = splat_like(like, 0)
            for y in range(4 * band, 4 * band + 4):
                at = rows[i] + y * WINDOW
                a1, b1, c1, d1 = row_sads_portable(source, source_at + y * source_stride, windows, at, like)
                a, b, c, d = add(a, a1), add(b, b1), add(c, c1), add(d, d1)
            at = (i * 16 + band * 4) * lanes
            store(sads, at, shift_left(a, 2))
            store(sads, at + lanes, shift_left(b, 2))
            store(sads, at + 2 * lanes, shift_left(c, 2))
            store(sads, at + 3 * lanes, shift_left(d, 2))


@helper
def keep_partitions(sads, motion, index, smallest_of, like):
    """One step of the search: updates the smallest keys of 41 partitions (Smallest) with four rows of candidates.

    motion: uint16[4, lanes], motion cost of a candidate times 4 plus the row's number (the low bits of the key).
    """
    best, position = smallest_of
    lanes = lanes_of(like)
    step = splat_like(like, index)
    for q in range(4):
        first = ((q >> 1) * 8 + (q & 1) * 2) * lanes
        top = splat_like(like, 65535)
        m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = m8 = top
        for i in range(4):
            cost = load_like(like, motion, i * lanes)
            at = i * 16 * lanes + first
            s0 = load_like(like, sads, at)
            s1 = load_like(like, sads, at + lanes)
            s2 = load_like(like, sads, at + 4 * lanes)
            s3 = load_like(like, sads, at + 5 * lanes)
            m0 = min_u(m0, add_sat_u(s0, cost))
            m1 = min_u(m1, add_sat_u(s1, cost))
            m2 = min_u(m2, add_sat_u(s2, cost))
            m3 = min_u(m3, add_sat_u(s3, cost))
            m6 = min_u(m6, add_sat_u(add(s0, s2), cost))
            m7 = min_u(m7, add_sat_u(add(s1, s3), cost))
            s0 = add(s0, s1)
            s2 = add(s2, s3)
            m4 = min_u(m4, add_sat_u(s0, cost))
            m5 = min_u(m5, add_sat_u(s2, cost))
            s0 = add_sat_u(s0, s2)
            m8 = min_u(m8, add_sat_u(s0, cost))
            store(sads, at, s0)  # the SAD of the 8x8 block replaces that of its first 4x4 block
        k = (q >> 1) * 8 + (q & 1) * 2
        keep_smallest(best, position, k, m0, step)
        keep_smallest(best, position, k + 1, m1, step)
        keep_smallest(best, position, k + 4, m2, step)
        keep_smallest(best, position, k + 5, m3, step)
        keep_smallest(best, position, 16 + 2 * q, m4, step)
        keep_smallest(best, position, 17 + 2 * q, m5, step)
        keep_smallest(best, position, 24 + 2 * q, m6, step)
        keep_smallest(best, position, 25 + 2 * q, m7, step)
        keep_smallest(best, position, 32 + q, m8, step)
    m0 = m1 = m2 = m3 = m4 = splat_like(like, 65535)
    for i in range(4):
        cost = load_like(like, motion, i * lanes)
        at = i * 16 * lanes
        s0 = load_like(like, sads, at)
        s1 = load_like(like, sads, at + 2 * lanes)
        s2 = load_like(like, sads, at + 8 * lanes)
        s3 = load_like(like, sads, at + 10 * lanes)
        m2 = min_u(m2, add_sat_u(add_sat_u(s0, s2), cost))
        m3 = min_u(m3, add_sat_u(add_sat_u(s1, s3), cost))
        s0 = add_sat_u(s0, s1)
        s2 = add_sat_u(s2, s3)
        m0 = min_u(m0, add_sat_u(s0, cost))
        m1 = min_u(m1, add_sat_u(s2, cost))
        m4 = min_u(m4, add_sat_u(add_sat_u(s0, s2), cost))
    keep_smallest(best, position, 36, m0, step)
    keep_smallest(best, position, 37, m1, step)
    keep_smallest(best, position, 38, m2, step)
    keep_smallest(best, position, 39, m3, step)
    keep_smallest(best, position, 40, m4, step)


@helper
def _halves(source, source_at, source_stride, windows, rows, from_rows, like):
    """SADs times 4 of two 8x8 blocks side by side, for four rows of adjacent candidates: the left blocks', the right ones'.

    Rows of the source are loaded once for all. from_rows: what the blocks lie behind `rows` (block_sads).
    """
    inlined()
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat_like(like, 0)
    for y in range(8):
        at, more = source_at + y * source_stride, from_rows + y * WINDOW
        a, b, c, d = arranged_sads(source, at, windows, rows[0] + more, like)
        a0, b0 = add(a0, add(a, b)), add(b0, add(c, d))
        a, b, c, d = arranged_sads(source, at, windows, rows[1] + more, like)
        a1, b1 = add(a1, add(a, b)), add(b1, add(c, d))
        a, b, c, d = arranged_sads(source, at, windows, rows[2] + more, like)
        a2, b2 = add(a2, add(a, b)), add(b2, add(c, d))
        a, b, c, d = arranged_sads(source, at, windows, rows[3] + more, like)
        a3, b3 = add(a3, add(a, b)), add(b3, add(c, d))
    left = shift_left(a0, 2), shift_left(a1, 2), shift_left(a2, 2), shift_left(a3, 2)
    return left, (shift_left(b0, 2), shift_left(b1, 2), shift_left(b2, 2), shift_left(b3, 2))


@helper
def _halves_portable(source, source_at, source_stride, windows, rows, from_rows, like):
    """_halves for processors without AVX2."""
    inlined()
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat_like(like, 0)
    for y in range(8):
        at, more = source_at + y * source_stride, from_rows + y * WINDOW
        a, b, c, d = row_sads_portable(source, at, windows, rows[0] + more, like)
        a0, b0 = add(a0, add(a, b)), add(b0, add(c, d))
        a, b, c, d = row_sads_portable(source, at, windows, rows[1] + more, like)
        a1, b1 = add(a1, add(a, b)), add(b1, add(c, d))
        a, b, c, d = row_sads_portable(source, at, windows, rows[2] + more, like)
        a2, b2 = add(a2, add(a, b)), add(b2, add(c, d))
        a, b, c, d = row_sads_portable(source, at, windows, rows[3] + more, like)
        a3, b3 = add(a3, add(a, b)), add(b3, add(c, d))
    left = shift_left(a0, 2), shift_left(a1, 2), shift_left(a2, 2), shift_left(a3, 2)
    return left, (shift_left(b0, 2), shift_left(b1, 2), shift_left(b2, 2), shift_left(b3, 2))


@helper
def _least_of_4(sads, costs):
    """The least SAD + cost of four rows of candidates."""
    inlined()
    upper = min_u(add_sat_u(sads[0], costs[0]), add_sat_u(sads[1], costs[1]))
    return min_u(upper, min_u(add_sat_u(sads[2], costs[2]), add_sat_u(sads[3], costs[3])))


@helper
def _sums_of_4(a, b):
    inlined()
    return add_sat_u(a[0], b[0]), add_sat_u(a[1], b[1]), add_sat_u(a[2], b[2]), add_sat_u(a[3], b[3])


@helper
def search_large(source, source_at, source_stride, windows, rows, motion, index, smallest_of, native, like):
    """block_sads and keep_partitions for the partitions from 8x8 on alone, whose SADs stay in registers."""
    best, position = smallest_of
    lanes, step = lanes_of(like), splat_like(like, index)
    costs = (
        load_like(like, motion, 0),
        load_like(like, motion, lanes),
        load_like(like, motion, 2 * lanes),
        load_like(like, motion, 3 * lanes),
    )
    below, more = source_at + 8 * source_stride, 8 * WINDOW
    if native:
        q0, q1 = _halves(source, source_at, source_stride, windows, rows, 0, like)
        q2, q3 = _halves(source, below, source_stride, windows, rows, more, like)
    else:
        q0, q1 = _halves_portable(source, source_at, source_stride, windows, rows, 0, like)
        q2, q3 = _halves_portable(source, below, source_stride, windows, rows, more, like)
    keep_smallest(best, position, 32, _least_of_4(q0, costs), step)
    keep_smallest(best, position, 33, _least_of_4(q1, costs), step)
    keep_smallest(best, position, 34, _least_of_4(q2, costs), step)
    keep_smallest(best, position, 35, _least_of_4(q3, costs), step)
    keep_smallest(best, position, 38, _least_of_4(_sums_of_4(q0, q2), costs), step)
    keep_smallest(best, position, 39, _least_of_4(_sums_of_4(q1, q3), costs), step)
    upper, lower = _sums_of_4(q0, q1), _sums_of_4(q2, q3)
    keep_smallest(best, position, 36, _least_of_4(upper, costs), step)
    keep_smallest(best, position, 37, _least_of_4(lower, costs), step)
    keep_smallest(best, position, 40, _least_of_4(_sums_of_4(upper, lower), costs), step)


@helper
def exact_search(k, source, source_at, reference, first, size, costs, x_keys, smallest_of, native, like):
    """Searches one partition row by row with keys without a row number, for costs too large for 16-bit keys with one.

    Returns (cost, dx, dy), dx, dy from 0. source_at: offset of the macroblock; first: offset of its first candidate;
    size: candidates a side. Overwrites x_keys: uint16[256] and row k of the Smallest.
    """
    lanes = lanes_of(like)
    best, position = smallest_of
    source_stride, reference_stride = source.shape[1], reference.shape[1]
    groups = (size + lanes - 1) // lanes
    left, top, width, height = PARTITIONS[k, 0], PARTITIONS[k, 1], PARTITIONS[k, 2], PARTITIONS[k, 3]
    for g in range(groups):
        for lane in range(lanes):
            x_keys[g * lanes + lane] = min(COST_OUTSIDE, costs.x[first_column(g, lanes, size) + lane])
    store(best, k * lanes, splat_like(like, 65535))
    store(position, k * lanes, splat_like(like, 0))
    for dy in range(size):
        y_key = splat_like(like, min(COST_OUTSIDE, costs.y[dy]))
        for g in range(groups):
            total = splat_like(like, 0)
            for y in range(top, top + height):
                at = source_at + y * source_stride
                there = first + (dy + y) * reference_stride + first_column(g, lanes, size)
                if native:
                    a, b, c, d = row_sads(source, at, reference, there, like)
                else:
                    a, b, c, d = row_sads_portable(source, at, reference, there, like)
                if left == 0:
                    total = add(total, a)
                if left <= 4 < left + width:
                    total = add(total, b)
                if left <= 8 < left + width:
                    total = add(total, c)
                if left + width == 16:
                    total = add(total, d)
            key = add_sat_u(total, add_sat_u(y_key, load_like(like, x_keys, g * lanes)))
            keep_smallest(best, position, k, key, splat_like(like, dy * groups + g))
    value, rank = first_smallest(smallest_of, k, lanes, lane_numbers_like(like))
    step = rank // lanes
    return value, first_column(step % groups, lanes, size) + rank % lanes, step // groups


@helper
def first_smallest(smallest_of, k, across, lane_offsets):
    """(smallest key of a partition, its rank): the least step * across + offset of its lane."""
    best, position = smallest_of
    lanes = lanes_of(lane_offsets)
    keys = load_like(lane_offsets, best, k * lanes)
    key = smallest(keys)
    ranks = add(mul(load_like(lane_offsets, position, k * lanes), splat_like(lane_offsets, across)), lane_offsets)
    return key, np.int64(first_where(keys, key, ranks))


@helper
def search_weight(lam):
    """lambda of the search: motion bits weigh half, because the predictor is an estimate."""
    return lam >> 1


@helper
def motion_costs(start, predictor, weight, size, bits, costs):
    """bits[i]: bits of integer position start + i minus a predictor in quarter samples; costs[i]: weight * bits[i]."""
    for i in range(size):
        bits[i] = se_bits(4 * (start + i) - predictor)
        costs[i] = weight * bits[i]


@helper
def is_quiet(source, at, reference, there, mb, lam, quiet, start, search_result):
    """Whether a macroblock costs less than `quiet` lambdas at the centre of its window, which then is its only result.

    at, there: offsets of its samples in source and, at that vector, in reference.
    """
    x, y = 4 * int(start.centre[mb, 0]), 4 * int(start.centre[mb, 1])
    value = lam * (se_bits(x - int(start.predictor[mb, 0])) + se_bits(y - int(start.predictor[mb, 1])))
    value += macroblock_sad(load_layers(source, at, source.shape[1]), reference, there, reference.shape[1])
    if value >= quiet * lam:
        return False
    cost, mv = search_result
    for k in range(40):
        cost[mb, k] = COST_NOT_REFINED
    cost[mb, 40] = value
    mv[mb, 40, 0], mv[mb, 40, 1] = x, y
    return True


@closed_kernel
def _search_rows(source, reference, pad, start, qp, merange, row0, row1, search_result, limits, native, wide):
    """Implements full_search. limits: large_alone, QUIET or 0, and candidates side by side; wide: steps of 32 candidates,
    for AVX-512; None: of 16.
    """
    like = candidates(wide)
    native = native or wide is not None  # known while compiling where it is wide: no portable code
    large, quiet, across = limits
    first = 0 if large is None else FIRST_LARGE
    centre, predictor = start
    cost, mv = search_result
    lanes = lanes_of(like)
    mb_width = source.shape[1] // 16
    source_stride = source.shape[1]
    reference_stride = reference.shape[1]
    size = 2 * merange
    quarter, height = (size + 3) // 4, size + 15  # of the window: rows of candidates of a macroblock
    groups, steps = (size + across - 1) // across, (quarter * across + lanes - 1) // lanes
    shape = Shape(size, quarter, across, bit_length(across) - 1, steps, groups, height)
    x_cost, y_cost = np.empty(160, np.int64), np.empty(160, np.int64)
    for x in range(160):
        x_cost[x] = y_cost[x] = COST_OUTSIDE
    x_bits, y_bits = np.empty(128, np.int64), np.empty(128, np.int64)
    costs = Costs(x_cost, y_cost)
    x_keys = np.empty(256, np.uint16)
    motion = aligned(8 * lanes).view(np.uint16).reshape((4, lanes))
    sads = aligned(128 * lanes).view(np.uint16).reshape((4, 16, lanes))
    best = aligned(82 * lanes).view(np.uint16).reshape((41, lanes))
    position = aligned(82 * lanes).view(np.uint16).reshape((41, lanes))
    smallest_of = Smallest(best, position)
    windows = aligned(groups * height * WINDOW)
    rows = np.empty(4, np.int64)
    lane_offsets = np.empty(lanes, np.uint16)
    for lane in range(lanes):
        lane_offsets[lane] = lane // across * steps * groups * across + lane % across
    for mb in range(row0 * mb_width, row1 * mb_width):
        lam = LAMBDA[qp[mb]]
        weight = search_weight(lam)
        sx = mb % mb_width * 16
        sy = mb // mb_width * 16
        cx = int(centre[mb, 0]) - merange
        cy = int(centre[mb, 1]) - merange
        corner = (sy + cy + pad) * reference_stride + sx + cx + pad
        at = sy * source_stride + sx
        if quiet > 0 and is_quiet(
            source, at, reference, corner + merange * (reference_stride + 1), mb, lam, quiet, start, search_result
        ):
            continue
        motion_costs(cx, int(predictor[mb, 0]), weight, size, x_bits, x_cost)
        motion_costs(cy, int(predictor[mb, 1]), weight, size, y_bits, y_cost)
        column_keys(shape, x_cost, x_keys)
        for k in range(first, 41):
            store(best, k * lanes, splat_like(like, 65535))
            store(position, k * lanes, splat_like(like, 0))
        arrange_windows(reference, corner, shape, windows, native, like)
        for j in range(steps):
            for g in range(groups):
                for i in range(4):
                    rows[i] = (g * height + min(i * quarter + j, size - 1)) * WINDOW
                motion_keys(j, g, shape, x_keys, y_cost, lanes, motion)
                if large is not None:
                    search_large(source, at, source_stride, windows, rows, motion, j * groups + g, smallest_of, native, like)
                else:
                    if native:
                        block_sads(source, at, source_stride, windows, rows, sads, like)
                    else:
                        block_sads_portable(source, at, source_stride, windows, rows, sads, like)
                    keep_partitions(sads, motion, j * groups + g, smallest_of, like)
        if large is not None:
            store(cost, 41 * mb, splat_i32x16(COST_NOT_REFINED))
            store(cost, 41 * mb + 16, splat_i32x16(COST_NOT_REFINED))
        for k in range(first, 41):
            key, rank = first_smallest(smallest_of, k, across, load_like(like, lane_offsets, 0))
            if key == 65535:
                value, dx, dy = exact_search(k, source, at, reference, corner, size, costs, x_keys, smallest_of, native, like)
            else:
                value = key >> 2
                dx, dy = candidate(key, rank, shape)
            cost[mb, k] = value + (lam - weight) * (x_bits[dx] + y_bits[dy])
            mv[mb, k, 0] = 4 * (cx + dx)
            mv[mb, k, 1] = 4 * (cy + dy)


def large_alone(partition_mask):
    """For kernels: 1 without 8x4, 4x8 and 4x4, which removes all code for them, else None."""
    return None if partition_mask & SMALL_PARTITIONS else 1


@Prepared
def full_search(
    source, reference, pad, start, qp, merange, row0, row1, search_result, partition_mask=ALL_PARTITIONS, subme=EVERY,
    level=SIMD_LEVEL,
):  # fmt: skip
    """Integer full search with motion cost (not part of the standard).

    source: Sample[H, W]; reference: Sample[H+2*pad, W+2*pad], sample (0, 0) of the frame at [pad, pad]; start: SearchStart;
    qp: uint8[n_mb], QP_Y; merange: 4..64; [row0, row1): macroblock rows. Writes search_result: SearchResult. Candidates: dx,
    dy in [-merange, merange-1] round the centre; the lowest min(65535, SAD + lam // 2 * bits) wins, on a tie the first in
    raster order (dy outer). The window round the centre (at least 12 samples) must lie in the padded reference.
    partition_mask: sizes wanted (see ALL_PARTITIONS); without 8x4, 4x8 and 4x4 these cost COST_NOT_REFINED, and their vectors
    are not written. Up to subme QUICK a macroblock that costs less than QUIET lambdas at the centre has this vector,
    undivided, without a search; other partitions then cost COST_NOT_REFINED, and their vectors are not written.

    Method: a key is 4 * cost + i in 16 bits, where i numbers four rows of candidates a quarter of the window apart, so
    that the minimum over the four rows includes the lowest row; the step (row in the quarter, group of columns) is stored
    with it. Steps are in raster order, so the smallest key at its first step is the first candidate in raster order. Where
    rows of candidates are too short for a vector, it holds two, of the upper and the lower half of each quarter. A
    partition with no key below 65535 (costs above 16383, as after a cut from black to white) is searched again with keys
    without a row number.
    """
    wide = 1 if level == WIDE else None
    across = 32 if level == WIDE and merange >= 16 else 16
    limits = large_alone(partition_mask), QUIET if subme <= QUICK else 0, across
    arguments = source, reference, pad, start, qp, merange, row0, row1, search_result, limits, level != PORTABLE, wide
    return [(_search_rows, arguments)]
