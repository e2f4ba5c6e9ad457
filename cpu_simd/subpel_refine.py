"""Half- and quarter-sample refinement of the 41 searched vectors of every macroblock."""

import numpy as np

from ..standard.jit import helper, kernel
from .cost import (
    QUARTER_SAMPLES,
    SAD,
    SATD,
    mvd_bits,
    quarter_offsets,
    strip_4_4_4_4,
    strip_8_8,
    strip_16,
)
from .vector import add, splat_u16x16, sums_of_4

# The seven ways to cover a macroblock: partition width and height in 4x4 blocks, bit of `kinds`, and the partition at
# [band][column], bands counted in units of the height, columns in units of the width.
LAYERS = np.array([(1, 1, 3), (2, 1, 3), (1, 2, 3), (2, 2, 2), (4, 2, 1), (2, 4, 1), (4, 4, 0)], np.int64)
PARTITION_AT = np.zeros((7, 4, 4), np.int64)
PARTITION_AT[0] = np.arange(16).reshape(4, 4)
PARTITION_AT[1, :, :2] = [[16, 18], [17, 19], [20, 22], [21, 23]]
PARTITION_AT[2, :2] = [[24, 25, 26, 27], [28, 29, 30, 31]]
PARTITION_AT[3, :2, :2] = [[32, 33], [34, 35]]
PARTITION_AT[4, :2, 0] = [36, 37]
PARTITION_AT[5, 0, :2] = [38, 39]
PARTITION_AT[6, 0, 0] = 40
ALL_KINDS = 15  # bit 0 16x16, 1 16x8 and 8x16, 2 8x8, 3 8x4, 4x8 and 4x4

# subme -> (half step, half step's metric, quarter step, its metric). Not part of the standard.
# 0 integer vectors; 1 half; 2 half and quarter by SAD; 3, 4 quarter step by SATD; 5 and more both by SATD
_SUBME = ((0, SAD, 0, SAD), (1, SAD, 0, SAD), (1, SAD, 1, SAD), (1, SAD, 1, SATD), (1, SAD, 1, SATD), (1, SATD, 1, SATD))

# The centre first, then its eight neighbours in raster order: on equal cost the earlier one stays.
NEIGHBOURS = np.array([(0, 0), (-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)], np.int64)


@helper
def layer_costs(current, luma, stride, layer, width, height, at, first, second, metric, value):
    """Distortions of the partitions of one layer at one vector each.

    current: int16[256]; luma: uint8[4, H+2*pad, W+2*pad]; at: PARTITION_AT; first, second: int64[41], offsets in luma of
    the two predictions' samples for the macroblock's corner; value: int64[41], written for this layer's partitions.
    """
    for band in range(4 // height):
        total = splat_u16x16(0)
        for strip in range(band * height, (band + 1) * height):
            row = strip * 4 * stride
            p0, p1 = at[layer, band, 0], at[layer, band, 1]
            if width == 4:
                part = strip_16(current, strip, luma, first[p0] + row, second[p0] + row, stride, metric)
            elif width == 2:
                part = strip_8_8(
                    current,
                    strip,
                    luma,
                    first[p0] + row,
                    first[p1] + row + 8,
                    second[p0] + row,
                    second[p1] + row + 8,
                    stride,
                    metric,
                )
            else:
                p2, p3 = at[layer, band, 2], at[layer, band, 3]
                part = strip_4_4_4_4(
                    current,
                    strip,
                    luma,
                    first[p0] + row,
                    first[p1] + row + 4,
                    first[p2] + row + 8,
                    first[p3] + row + 12,
                    second[p0] + row,
                    second[p1] + row + 4,
                    second[p2] + row + 8,
                    second[p3] + row + 12,
                    stride,
                    metric,
                )
            total = add(total, part)
        a, b, c, d = sums_of_4(total)
        if width == 4:
            value[at[layer, band, 0]] = a + b + c + d
        elif width == 2:
            value[at[layer, band, 0]] = a + b
            value[at[layer, band, 1]] = c + d
        else:
            value[at[layer, band, 0]] = a
            value[at[layer, band, 1]] = b
            value[at[layer, band, 2]] = c
            value[at[layer, band, 3]] = d


@helper
def refine_step(
    current, luma, origin, offsets, px, py, lam, kinds, step, metric, centre_too, tables, neighbours, at, cost, mv, scratch
):
    """One step of one macroblock: every partition moves to the best of its vector and the eight `step` quarters away.

    origin: offset of the macroblock's corner in plane G; (px, py): predictor; centre_too: the centre's cost has to be
    computed (a new metric), else cost holds it; cost: int32[41], mv: int16[41, 2], in place; tables: LAYERS;
    scratch: int64[5, 41].
    """
    stride = luma.shape[2]
    first, second, value, best, choice = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    for k in range(41):
        best[k] = cost[k]
        choice[k] = 0
        if centre_too:
            best[k] = 1 << 40
    for n in range(0 if centre_too else 1, 9):
        dx, dy = step * neighbours[n, 0], step * neighbours[n, 1]
        for k in range(41):
            x, y = mv[k, 0] + dx, mv[k, 1] + dy
            base = origin + (y >> 2) * stride + (x >> 2)
            f = (y & 3) * 4 + (x & 3)
            first[k] = base + offsets[0, f]
            second[k] = base + offsets[1, f]
        for layer in range(7):
            if kinds >> tables[layer, 2] & 1:
                layer_costs(
                    current, luma, stride, layer, tables[layer, 0], tables[layer, 1], at, first, second, metric, value
                )
        for k in range(41):
            total = value[k] + lam * mvd_bits(mv[k, 0] + dx, mv[k, 1] + dy, px, py)
            if total < best[k]:
                best[k] = total
                choice[k] = n
    for k in range(41):
        cost[k] = best[k]
        mv[k, 0] += step * neighbours[choice[k], 0]
        mv[k, 1] += step * neighbours[choice[k], 1]


@kernel
def _refine_rows(
    source, luma, pad, predictor, lam, half, half_metric, quarter, quarter_metric, kinds, row0, row1, cost, mv, samples,
    tables, neighbours, at,
):
    """The kernel behind subpel_refine."""
    mb_width = source.shape[1] // 16
    stride = luma.shape[2]
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[1] * stride, stride, samples, offsets)
    current = np.empty(256, np.int16)
    scratch = np.zeros((5, 41), np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        x0 = mb % mb_width * 16
        y0 = mb // mb_width * 16
        for y in range(16):
            for x in range(16):
                current[y * 16 + x] = source[y0 + y, x0 + x]
        origin = (y0 + pad) * stride + x0 + pad
        px, py = np.int64(predictor[mb, 0]), np.int64(predictor[mb, 1])
        if half:
            refine_step(
                current, luma, origin, offsets, px, py, lam, kinds, 2, half_metric, half_metric != SAD, tables,
                neighbours, at, cost[mb], mv[mb], scratch,
            )
        if quarter:
            refine_step(
                current, luma, origin, offsets, px, py, lam, kinds, 1, quarter_metric, quarter_metric != half_metric,
                tables, neighbours, at, cost[mb], mv[mb], scratch,
            )


def subpel_refine(source, luma, pad, predictor, lam, subme, row0, row1, cost, mv, kinds=ALL_KINDS):
    """Refine the integer vectors of full_search to half, then quarter samples (not part of the standard).

    source: uint8[H, W]; luma: uint8[4, H+2*pad, W+2*pad], planes G, b, h, j; predictor: int16[n_mb, 2]; [row0, row1):
    macroblock rows; cost: int32[n_mb, 41] and mv: int16[n_mb, 41, 2] (quarter samples), in place. Each step looks at the
    vector and its eight neighbours, at two quarters and then at one; cost becomes distortion (SAD or SATD, see _SUBME)
    + lam * bits of the vector difference. kinds: bit mask of the partition sizes wanted (see ALL_KINDS); the cost of the
    others becomes meaningless.
    """
    half, half_metric, quarter, quarter_metric = _SUBME[min(subme, len(_SUBME) - 1)]
    _refine_rows(
        source, luma, pad, predictor, lam, half, half_metric, quarter, quarter_metric, kinds, row0, row1, cost, mv,
        QUARTER_SAMPLES, LAYERS, NEIGHBOURS, PARTITION_AT,
    )
