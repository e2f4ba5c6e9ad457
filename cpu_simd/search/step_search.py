"""Integer motion search in steps: ever finer grids of candidates round the best so far, for all 41 partitions at once."""
# Samples of 8 bits only: differences of bytes, SADs of 16 bits.

import numpy as np

from ...jit.address_calls import Prepared
from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import Sample
from ..decisions.common import LAMBDA
from ..layout import PARTITIONS
from ..simd.blocks import join
from ..simd.lanes import make_shuffle
from ..simd.search import keep_smallest, octet_sads, octet_sads_portable, pack_sums
from ..simd.vector import PORTABLE, SIMD_LEVEL, add, add_sat_u, load_2_u8x16, load_u8x32, splat_u16x16, store
from .full_search import Costs, Smallest, motion_costs, search_weight

# Input: four rows of sixteen samples, the first two in the low halves of a and b. Output for octet_sads: columns 0, 1 (2, 3)
# of 4x4 blocks, with the first two rows side by side and the last two rows side by side.
_columns_01 = make_shuffle([h + r + c + i for h in (0, 16) for c in (0, 4) for r in (0, 32) for i in range(4)])
_columns_23 = make_shuffle([h + r + c + i for h in (0, 16) for c in (8, 12) for r in (0, 32) for i in range(4)])
_low, _high = make_shuffle(range(8)), make_shuffle(range(8, 16))

# Lanes of the SADs: 4x4 blocks in the order of two_bands and join, then halves of quadrants in an order that keeps sums
# within halves of a vector, then 8x8 and larger.
_HALVES = (16, 17, 18, 19, 24, 25, 26, 27, 20, 21, 22, 23, 28, 29, 30, 31)


def _block_lane(x, y):
    """Lane of the 4x4 block in column x, row y."""
    return 8 * (y // 2) + 4 * (x % 2) + 2 * (y % 2) + x // 2


def _halves_blocks(n):
    """Lanes of the first (n 0) or second 4x4 block of each of _HALVES."""
    return [_block_lane((x + n * (w - 4)) // 4, (y + n * (h - 4)) // 4) for x, y, w, h in PARTITIONS[list(_HALVES)].tolist()]


LANE = np.array(
    [*(_block_lane(b % 4, b // 4) for b in range(16)), *(16 + _HALVES.index(k) for k in range(16, 32)), *range(32, 41)]
)  # lane of each partition
_halves_a, _halves_b = make_shuffle(_halves_blocks(0)), make_shuffle(_halves_blocks(1))
_quadrants_a, _quadrants_b = make_shuffle([0, 2, 8, 10]), make_shuffle([1, 3, 9, 11])
_pairs_a, _pairs_b = make_shuffle([0, 2, 0, 1]), make_shuffle([1, 3, 2, 3])
_whole_a, _whole_b = make_shuffle([0] * 8), make_shuffle([1] * 8)


@helper
def arrange(source, at, stride, arranged):
    """Arranges the 16x16 samples at an offset for octet_sads. arranged: Sample[4, 2, 32], [band, columns, sample]."""
    for band in range(4):
        row = at + 4 * band * stride
        a = load_2_u8x16(source, row, row + 2 * stride)
        b = load_2_u8x16(source, row + stride, row + 3 * stride)
        store(arranged, 64 * band, _columns_01(a, b))
        store(arranged, 64 * band + 32, _columns_23(a, b))


@helper
def two_bands(arranged, band, reference, row, stride, native):
    """SADs of the eight 4x4 blocks of `band` and the next band for the candidate whose rows begin at offset `row`."""
    a0 = load_2_u8x16(reference, row, row + 2 * stride)
    b0 = load_2_u8x16(reference, row + stride, row + 3 * stride)
    row += 4 * stride
    a1 = load_2_u8x16(reference, row, row + 2 * stride)
    b1 = load_2_u8x16(reference, row + stride, row + 3 * stride)
    s0, s1 = load_u8x32(arranged, 64 * band), load_u8x32(arranged, 64 * band + 32)
    s2, s3 = load_u8x32(arranged, 64 * band + 64), load_u8x32(arranged, 64 * band + 96)
    if native:
        sums = pack_sums(
            octet_sads(_columns_01(a0, b0), s0),
            octet_sads(_columns_23(a0, b0), s1),
            octet_sads(_columns_01(a1, b1), s2),
            octet_sads(_columns_23(a1, b1), s3),
        )
    else:
        sums = pack_sums(
            octet_sads_portable(_columns_01(a0, b0), s0),
            octet_sads_portable(_columns_23(a0, b0), s1),
            octet_sads_portable(_columns_01(a1, b1), s2),
            octet_sads_portable(_columns_23(a1, b1), s3),
        )
    return add(_low(sums, sums), _high(sums, sums))  # first two rows + last two rows


@helper
def digits_of(grid):
    """Binary digits of the vector that a step with a grid of 3, 7 or 13 determines."""
    return 1 if grid == 3 else 2 if grid == 7 else 3


@helper
def sums_of_quadrants(quadrants):
    """u16x16 for Smallest, vector 2: SADs of 8x8 (as given), of halves of the macroblock, of all of it."""
    pairs = add(_pairs_a(quadrants, quadrants), _pairs_b(quadrants, quadrants))
    whole = add(_whole_a(pairs, pairs), _whole_b(pairs, pairs))
    return join(join(quadrants, pairs), whole)


@helper
def compare(arranged, reference, corner, x, y, costs, smallest_of, native):
    """Compares candidate (x, y) with the best so far of all partitions, see `look`."""
    stride = reference.shape[1]
    best, position = smallest_of
    at = corner + y * stride + x
    upper = two_bands(arranged, 0, reference, at, stride, native)
    lower = two_bands(arranged, 2, reference, at + 8 * stride, stride, native)
    blocks = join(upper, lower)
    halves = add(_halves_a(blocks, blocks), _halves_b(blocks, blocks))
    quadrants = add(_quadrants_a(halves, halves), _quadrants_b(halves, halves))
    motion, here = splat_u16x16(min(65535, costs.x[x] + costs.y[y])), splat_u16x16(y << 7 | x)
    keep_smallest(best, position, 0, add_sat_u(blocks, motion), here)
    keep_smallest(best, position, 1, add_sat_u(halves, motion), here)
    keep_smallest(best, position, 2, add_sat_u(sums_of_quadrants(quadrants), motion), here)


@helper
def look(arranged, reference, corner, x, y, distance, reach, size, costs, smallest_of, native):
    """Compares candidates round (x, y), `distance` apart, `reach` on each side, with the best so far of all partitions.

    corner: offset of candidate (0, 0); size: candidates a side; smallest_of: keys uint16[48], by lane: lowest
    min(65535, SAD + cost), steps uint16[48]: 128 * y + x of its candidate.
    (x, y) itself is a candidate only if reach is 0.
    """
    for j in range(-reach, reach + 1):
        dy = y + j * distance
        if dy < 0 or dy >= size:
            continue
        for i in range(-reach, reach + 1):
            dx = x + i * distance
            if dx < 0 or dx >= size or (i == 0 and j == 0 and reach > 0):
                continue
            compare(arranged, reference, corner, dx, dy, costs, smallest_of, native)


@closed_kernel
def _search_rows(source, reference, pad, start, qp, merange, grid, row0, row1, search_result, lane, native):
    """Implements step_search."""
    centre, predictor = start
    cost, mv = search_result
    digits = digits_of(grid)
    mb_width = source.shape[1] // 16
    stride = reference.shape[1]
    size = 2 * merange
    x_cost = np.empty(128, np.int64)
    y_cost = np.empty(128, np.int64)
    x_bits = np.empty(128, np.int64)
    y_bits = np.empty(128, np.int64)
    arranged = np.empty((4, 2, 32), Sample)
    best = np.empty(48, np.uint16)
    position = np.empty(48, np.uint16)
    smallest_of, costs = Smallest(best, position), Costs(x_cost, y_cost)
    for mb in range(row0 * mb_width, row1 * mb_width):
        lam = LAMBDA[qp[mb]]
        weight = search_weight(lam)
        sx = mb % mb_width * 16
        sy = mb // mb_width * 16
        left = int(centre[mb, 0]) - merange
        top = int(centre[mb, 1]) - merange
        corner = (sy + top + pad) * stride + sx + left + pad
        motion_costs(left, int(predictor[mb, 0]), weight, size, x_bits, x_cost)
        motion_costs(top, int(predictor[mb, 1]), weight, size, y_bits, y_cost)
        arrange(source, sy * source.shape[1] + sx, source.shape[1], arranged)
        x = y = merange
        for k in range(3):
            store(best, 16 * k, splat_u16x16(65535))
            store(position, 16 * k, splat_u16x16(y << 7 | x))
        distance, reach = max(1, merange >> digits), 0  # the centre first, then grids
        while True:
            look(arranged, reference, corner, x, y, distance, reach, size, costs, smallest_of, native)
            number = np.int64(position[lane[40]])
            x, y = number & 127, number >> 7
            if reach == 0:
                reach = grid // 2
            elif distance > 1:
                distance = max(1, distance >> digits)
            else:
                break
        for k in range(41):
            number = np.int64(position[lane[k]])
            dx, dy = number & 127, number >> 7
            cost[mb, k] = np.int64(best[lane[k]]) + (lam - weight) * (x_bits[dx] + y_bits[dy])
            mv[mb, k, 0] = 4 * (left + dx)
            mv[mb, k, 1] = 4 * (top + dy)


@Prepared
def step_search(source, reference, pad, start, qp, merange, grid, row0, row1, search_result, level=SIMD_LEVEL):
    """Integer search in steps with motion cost (not part of the standard).

    Arguments, candidates and costs as in full_search, but only some candidates are tested: first the centre, then in
    each step a grid x grid (3, 7 or 13) round the best so far for 16x16, `distance` apart, in raster order, within the
    window. The distance begins at merange / 2 (4, 8) and is divided by 2 (4, 8) down to 1, the last step: a grid of 7 (13)
    replaces two (three) steps of grid 3 and tests more candidates. Each of the 41 partitions keeps the best of all tested
    candidates, on equal cost the earlier one.
    """
    arguments = source, reference, pad, start, qp, merange, grid, row0, row1, search_result, LANE, level != PORTABLE
    return [(_search_rows, arguments)]
