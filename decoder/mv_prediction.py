"""8.4.1.1, 8.4.1.3: prediction of motion vectors from the partitions around, in one list.

Throughout: mv int16[H4, W4, 2], quarter samples (x, y); ref_idx int8[H8, W8], -1 where the list
is not used; `available`: macroblocks around as neighbours() tells; (x0, y0): first 4x4 block of the macroblock in the
picture, (bx, by): that of the partition within the macroblock; sizes in 4x4 blocks.
"""

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from ..standard.macroblock import RASTER_TO_BLOCK
from .neighbours import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT

UNAVAILABLE = -2


@helper
def median(a, b, c):
    """5.7: Median."""
    return max(min(a, b), min(max(a, b), c))


@helper
def reference_at(ref_idx, available, y0, x0, by, bx, block):
    """6.4.11.7: ref_idx of the 4x4 block (bx, by) relative to the macroblock; UNAVAILABLE where there is none.

    `block`: luma4x4BlkIdx of the partition that asks: within the macroblock what comes later is not available.
    """
    outlined()
    if by < 0:
        if not available & (ABOVE_LEFT if bx < 0 else ABOVE if bx < 4 else ABOVE_RIGHT):
            return UNAVAILABLE
    elif bx < 0:
        if not available & LEFT:
            return UNAVAILABLE
    elif bx > 3 or RASTER_TO_BLOCK[4 * by + bx] > block:
        return UNAVAILABLE
    return np.int64(ref_idx[(y0 + by) >> 1, (x0 + bx) >> 1])


@helper
def neighbour_c(ref_idx, available, y0, x0, by, bx, width):
    """8.4.1.3.2: column and ref_idx of neighbour C in the row above the partition; of D where there is no C."""
    block = np.int64(RASTER_TO_BLOCK[4 * by + bx])
    ref = reference_at(ref_idx, available, y0, x0, by - 1, bx + width, block)
    if ref != UNAVAILABLE:
        return bx + width, ref
    return bx - 1, reference_at(ref_idx, available, y0, x0, by - 1, bx - 1, block)


@helper
def predict_mv(mv, ref_idx, available, y0, x0, by, bx, height, width, ref):
    """8.4.1.3: (x, y) predicted for a partition with reference `ref`."""
    outlined()
    ref_a = reference_at(ref_idx, available, y0, x0, by, bx - 1, 16)
    ref_b = reference_at(ref_idx, available, y0, x0, by - 1, bx, 16)
    column, ref_c = neighbour_c(ref_idx, available, y0, x0, by, bx, width)
    ax = ay = bx_ = by_ = cx = cy = 0
    if ref_a >= 0:
        ax, ay = np.int64(mv[y0 + by, x0 + bx - 1, 0]), np.int64(mv[y0 + by, x0 + bx - 1, 1])
    if ref_b >= 0:
        bx_, by_ = np.int64(mv[y0 + by - 1, x0 + bx, 0]), np.int64(mv[y0 + by - 1, x0 + bx, 1])
    if ref_c >= 0:
        cx, cy = np.int64(mv[y0 + by - 1, x0 + column, 0]), np.int64(mv[y0 + by - 1, x0 + column, 1])
    if width == 4 and height == 2:  # 16x8
        if by == 0 and ref_b == ref:
            return bx_, by_
        if by > 0 and ref_a == ref:
            return ax, ay
    elif width == 2 and height == 4:  # 8x16
        if bx == 0 and ref_a == ref:
            return ax, ay
        if bx > 0 and ref_c == ref:
            return cx, cy
    if ref_b == UNAVAILABLE and ref_c == UNAVAILABLE and ref_a != UNAVAILABLE:
        return ax, ay
    matches = (ref_a == ref) + (ref_b == ref) + (ref_c == ref)
    if matches == 1:
        if ref_a == ref:
            return ax, ay
        if ref_b == ref:
            return bx_, by_
        return cx, cy
    return median(ax, bx_, cx), median(ay, by_, cy)


@helper
def predict_skip_mv(mv, ref_idx, available, y0, x0):
    """8.4.1.1: (x, y) of P_Skip."""
    if not (available & LEFT and available & ABOVE):
        return 0, 0
    if ref_idx[y0 >> 1, (x0 - 1) >> 1] == 0 and mv[y0, x0 - 1, 0] == 0 and mv[y0, x0 - 1, 1] == 0:
        return 0, 0
    if ref_idx[(y0 - 1) >> 1, x0 >> 1] == 0 and mv[y0 - 1, x0, 0] == 0 and mv[y0 - 1, x0, 1] == 0:
        return 0, 0
    return predict_mv(mv, ref_idx, available, y0, x0, 0, 0, 4, 4, 0)
