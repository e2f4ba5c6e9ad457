"""Half- and quarter-sample refinement of the 41 searched vectors of every macroblock."""

import numpy as np

from ..standard.jit import closed_kernel, helper
from ..standard.macroblock import PARTITIONS
from .cost import QUARTER_SAMPLES, SAD, SATD, mvd_bits, quarter_offsets, strip_16
from .vector import load_u8x16, store, widen
from .vector_lanes import sums_of_4

# Of each partition: bit in the mask of those to refine, and mask of the 16x4 strips it lies in. Bits 0 16x16, 1 16x8,
# 2 8x16, 3 8x8; of quadrant q: 4 + 3 q 8x4, 5 + 3 q 4x8, 6 + 3 q 4x4
_BIT = {(16, 16): 0, (16, 8): 1, (8, 16): 2, (8, 8): 3, (8, 4): 4, (4, 8): 5, (4, 4): 6}
ABOUT = np.array(
    [(_BIT[w, h] + (3 * (y // 8 * 2 + x // 8) if w * h < 64 else 0), ((1 << h // 4) - 1) << y // 4)
     for x, y, w, h in PARTITIONS.tolist()], np.int64
)  # fmt: skip

# Up to subme 4 a division of the macroblock is refined if its integer vectors cost less than the undivided one's plus
# this many lambdas: 16x8 and 8x16; 8x8; of a quadrant 8x4 and 4x8; 4x4. Refinement favours the larger partitions.
HOPE_HALVES, HOPE_8x8, HOPE_8x4, HOPE_4x4 = 12, 8, -4, -8
HOPELESS = 1 << 20  # cost of a partition that was not refined

# Partition k >= 16 is two earlier ones: 8x4 and 4x8 are of 4x4, 8x8 of 8x4, 16x8 and 8x16 of 8x8, 16x16 of 16x8.
HALVES = np.zeros((41, 2), np.int64)
for _q, _b in enumerate((0, 2, 8, 10)):
    HALVES[16 + 2 * _q : 18 + 2 * _q] = (_b, _b + 1), (_b + 4, _b + 5)
    HALVES[24 + 2 * _q : 26 + 2 * _q] = (_b, _b + 4), (_b + 1, _b + 5)
    HALVES[32 + _q] = 16 + 2 * _q, 17 + 2 * _q
HALVES[36:] = (32, 33), (34, 35), (32, 34), (33, 35), (36, 37)
FAR = 1 << 40
ALL_KINDS = 31  # bit 0 16x16, 1 16x8 and 8x16, 2 8x8, 3 8x4 and 4x8, 4 4x4 (not without 3)

EVERY = 5  # from this subme on all partitions are refined
# subme -> (half step, half step's metric, quarter step, its metric). Not part of the standard.
# 0 integer vectors; 1 half; 2 half and quarter by SAD; 3 quarter step by SATD; 4 and more both by SATD
_SUBME = ((0, SAD, 0, SAD), (1, SAD, 0, SAD), (1, SAD, 1, SAD), (1, SAD, 1, SATD), (1, SATD, 1, SATD))

# The centre first, then its eight neighbours in raster order: on equal cost the earlier one stays.
NEIGHBOURS = np.array([(0, 0), (-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)], np.int64)


@helper
def hopeful(cost, mb, lam, kinds, every):
    """Mask of the partitions to refine in macroblock mb: those of `kinds` (see ALL_KINDS) that may still win, or every one.

    cost: int32[n_mb, 41], of integer vectors.
    """
    mask = np.int64(1)
    whole = np.int64(cost[mb, 40])
    if kinds & 2:
        if every or np.int64(cost[mb, 36]) + cost[mb, 37] < whole + HOPE_HALVES * lam:
            mask |= 2
        if every or np.int64(cost[mb, 38]) + cost[mb, 39] < whole + HOPE_HALVES * lam:
            mask |= 4
    if kinds & 4:
        quarters = np.int64(cost[mb, 32]) + cost[mb, 33] + cost[mb, 34] + cost[mb, 35]
        if every or quarters < whole + HOPE_8x8 * lam:
            mask |= 8
            if kinds & 8:
                for q in range(4):
                    mask |= hopeful_quadrant(cost, mb, lam, kinds, q, every) << 4 + 3 * q
    return mask


@helper
def hopeful_quadrant(cost, mb, lam, kinds, q, every):
    """The three bits of quadrant q in the mask of `hopeful`: 8x4, 4x8, 4x4."""
    whole = np.int64(cost[mb, 32 + q])
    mask = np.int64(0)
    if every or np.int64(cost[mb, 16 + 2 * q]) + cost[mb, 17 + 2 * q] < whole + HOPE_8x4 * lam:
        mask |= 1
    if every or np.int64(cost[mb, 24 + 2 * q]) + cost[mb, 25 + 2 * q] < whole + HOPE_8x4 * lam:
        mask |= 2
    b = (q >> 1) * 8 + (q & 1) * 2
    if not kinds & 16:
        return mask
    if every or np.int64(cost[mb, b]) + cost[mb, b + 1] + cost[mb, b + 4] + cost[mb, b + 5] < whole + HOPE_4x4 * lam:
        mask |= 4
    return mask


@helper
def group_vectors(mv, mb, wanted, about, group, after):
    """The partitions of macroblock mb that share a vector, as chains. Returns the number of groups.

    group: int64[5, 41] gets x, y, the first partition, the union of strips and the last partition of each group; after:
    int64[41] gets the next partition of the same group, or -1.
    mv: int16[n_mb, 41, 2]; wanted: mask of partitions; about: ABOUT.
    """
    count = 0
    for k in range(40, -1, -1):
        if not wanted >> about[k, 0] & 1:
            continue
        x, y = np.int64(mv[mb, k, 0]), np.int64(mv[mb, k, 1])
        g = 0
        while g < count and (group[0, g] != x or group[1, g] != y):
            g += 1
        if g == count:
            group[0, g], group[1, g], group[2, g], group[3, g], group[4, g] = x, y, -1, 0, k
            count += 1
        after[k] = group[2, g]
        group[2, g] = k
        group[3, g] |= about[k, 1]
    return count


@helper
def partition_values(current, luma, stride, a, b, strips, last, metric, halves, value):
    """value: int64[41], distortions of partitions up to `last` at one vector, sums of those of the 4x4 blocks.

    current: int16[256]; a, b: offsets in luma of the two predictions' samples; strips: mask of the 16x4 strips wanted,
    where a partition reaches into others its value means nothing; halves: HALVES.
    """
    for strip in range(4):
        if strips >> strip & 1:
            row = 4 * strip * stride
            s0, s1, s2, s3 = sums_of_4(strip_16(current, strip, luma, a + row, b + row, stride, metric))
            value[4 * strip], value[4 * strip + 1], value[4 * strip + 2], value[4 * strip + 3] = s0, s1, s2, s3
    for k in range(16, last + 1):
        value[k] = value[halves[k, 0]] + value[halves[k, 1]]


@helper
def refine_step(
    current, luma, origin, offsets, px, py, lam, wanted, step, metric, centre_too, neighbours, about, halves, mb, cost, mv,
    group, scratch,
):  # fmt: skip
    """One step of one macroblock: every partition moves to the best of its vector and the eight `step` quarters away.

    origin: offset of the macroblock's corner in plane G; (px, py): predictor; centre_too: the centre's cost has to be
    computed (a new metric), else cost holds it; cost: int32[n_mb, 41], mv: int16[n_mb, 41, 2], in place;
    group: int64[5, 41], scratch: int64[4, 41].
    """
    stride = luma.shape[2]
    value, best, choice, after = scratch[0], scratch[1], scratch[2], scratch[3]
    count = group_vectors(mv, mb, wanted, about, group, after)
    for k in range(41):
        best[k] = FAR if centre_too and wanted >> about[k, 0] & 1 else np.int64(cost[mb, k])
        choice[k] = 0
    for g in range(count):
        for n in range(0 if centre_too else 1, 9):
            x, y = group[0, g] + step * neighbours[n, 0], group[1, g] + step * neighbours[n, 1]
            base = origin + (y >> 2) * stride + (x >> 2)
            f = (y & 3) * 4 + (x & 3)
            partition_values(
                current, luma, stride, base + offsets[0, f], base + offsets[1, f], group[3, g], group[4, g], metric,
                halves, value,
            )  # fmt: skip
            bits = lam * mvd_bits(x, y, px, py)
            k = group[2, g]
            while k >= 0:
                total = value[k] + bits
                if total < best[k]:
                    best[k] = total
                    choice[k] = n
                k = after[k]
    for k in range(41):
        cost[mb, k] = best[k]
        mv[mb, k, 0] += step * neighbours[choice[k], 0]
        mv[mb, k, 1] += step * neighbours[choice[k], 1]


@closed_kernel
def _refine_rows(
    source, luma, pad, predictor, lam, half, half_metric, quarter, quarter_metric, kinds, every, row0, row1, cost, mv,
    samples, neighbours, about, halves,
):  # fmt: skip
    """The kernel behind subpel_refine."""
    width = source.shape[1]
    mb_width = width // 16
    stride = luma.shape[2]
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[1] * stride, stride, samples, offsets)
    current = np.empty(256, np.int16)
    scratch = np.zeros((4, 41), np.int64)
    group = np.zeros((5, 41), np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0 = mb % mb_width * 16
        y0 = mb // mb_width * 16
        for y in range(16):
            store(current, y * 16, widen(load_u8x16(source, (y0 + y) * width + x0)))
        origin = (y0 + pad) * stride + x0 + pad
        px, py = np.int64(predictor[mb, 0]), np.int64(predictor[mb, 1])
        wanted = hopeful(cost, mb, lam, kinds, every)
        for k in range(41):
            if not wanted >> about[k, 0] & 1:
                cost[mb, k] = HOPELESS
        if half:
            refine_step(
                current, luma, origin, offsets, px, py, lam, wanted, 2, half_metric, half_metric != SAD, neighbours, about,
                halves, mb, cost, mv, group, scratch,
            )  # fmt: skip
        if quarter:
            refine_step(
                current, luma, origin, offsets, px, py, lam, wanted, 1, quarter_metric, quarter_metric != half_metric,
                neighbours, about, halves, mb, cost, mv, group, scratch,
            )  # fmt: skip


def subpel_refine(source, luma, pad, predictor, lam, subme, row0, row1, cost, mv, kinds=ALL_KINDS):
    """Refine the integer vectors of full_search to half, then quarter samples (not part of the standard).

    source: uint8[H, W]; luma: uint8[4, H+2*pad, W+2*pad], planes G, b, h, j; predictor: int16[n_mb, 2]; [row0, row1):
    macroblock rows; cost: int32[n_mb, 41] and mv: int16[n_mb, 41, 2] (quarter samples), in place. Each step looks at the
    vector and its eight neighbours, at two quarters and then at one; cost becomes distortion (SAD or SATD, see _SUBME)
    + lam * bits of the vector difference. kinds: bit mask of the partition sizes wanted (see ALL_KINDS); the others, and up
    to subme 4 those that cannot win any more (HOPE_*), get the cost HOPELESS. subme 0 changes nothing.
    """
    if subme == 0:
        return
    half, half_metric, quarter, quarter_metric = _SUBME[min(subme, len(_SUBME) - 1)]
    _refine_rows(
        source, luma, pad, predictor, lam, half, half_metric, quarter, quarter_metric, kinds, subme >= EVERY, row0, row1,
        cost, mv, QUARTER_SAMPLES, NEIGHBOURS, ABOUT, HALVES,
    )
