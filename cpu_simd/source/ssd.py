"""Stage "ssd": squared error of the deblocked frame over the display area, for PSNR."""

import numpy as np

from ...jit.kernel import closed_kernel, helper, quick_kernel
from ..simd.lanes import squares_of_pairs
from ..simd.vector import add, load_u8x16, splat_i32x8, store, sub, widen


@helper
def _line(source, decoded, border, y, width, lanes):
    """Sum of squared differences of the `width` samples of row y. lanes: int32[8], scratch; 8192 * 255^2 fits."""
    at, decoded_at = y * source.shape[1], (y + border) * decoded.shape[1] + border
    sums = splat_i32x8(0)
    whole = width & ~15
    for x in range(0, whole, 16):
        difference = sub(widen(load_u8x16(source, at + x)), widen(load_u8x16(decoded, decoded_at + x)))
        sums = add(sums, squares_of_pairs(difference))
    store(lanes, 0, sums)
    total = np.int64(0)
    for k in range(8):
        total += np.int64(lanes[k])
    for x in range(whole, width):
        difference = np.int64(source[y, x]) - np.int64(decoded[y + border, x + border])
        total += difference * difference
    return total


@closed_kernel
def ssd(source, decoded, border, height, width, unit, row0, row1, errors):
    """Not part of the standard: sum of squared differences of one plane, by macroblock row.

    source Sample[h, w]; decoded Sample[h + 2 border, w + 2 border]; height, width of the display area in samples of this
    plane; unit samples a macroblock row (16 luma, 8 chroma); errors int64[mb_height] out.
    """
    lanes = np.empty(8, np.int32)
    for row in range(row0, row1):
        total = np.int64(0)
        for y in range(row * unit, min(height, row * unit + unit)):
            total += _line(source, decoded, border, y, width, lanes)
        errors[row] = total


@quick_kernel
def totals(mb_type, qp, transform_8x8, ssd_y, ssd_u, ssd_v, sums):
    """Not part of the standard: statistics of a frame. sums: int64[3 + 3 + 1 + 15] out, squared errors of Y, Cb, Cr; sum,
    minimum and maximum of qp; the number of macroblocks with transform_8x8; then that by mb_type."""
    counts = np.zeros(64, np.int64)  # of each fourth macroblock: counts in one place wait for one another
    for mb in range(len(mb_type)):
        counts[(mb & 3) << 4 | np.int64(mb_type[mb])] += 1
    sums[:] = 0
    for row in range(len(ssd_y)):
        sums[0] += ssd_y[row]
        sums[1] += ssd_u[row]
        sums[2] += ssd_v[row]
    total, wide, least, most = np.int64(0), np.int64(0), qp[0], qp[0]
    for mb in range(len(qp)):
        total += np.int64(qp[mb])
    for mb in range(len(qp)):
        least, most = min(least, qp[mb]), max(most, qp[mb])
    for mb in range(len(transform_8x8)):
        wide += np.int64(transform_8x8[mb] != 0)
    sums[3], sums[4], sums[5], sums[6] = total, np.int64(least), np.int64(most), wide
    for k in range(len(sums) - 7):
        sums[7 + k] = counts[k] + counts[16 + k] + counts[32 + k] + counts[48 + k]
