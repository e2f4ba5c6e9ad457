"""Motion vector prediction from the macroblock state arrays: median predictor and P_Skip vector (8.4.1)."""

import numpy as np

from ...jit.kernel import helper


@helper
def median(a, b, c):
    """8.4.1.3.1: Median(a, b, c) of three integers."""
    return max(min(a, b), min(max(a, b), c))


@helper
def choose_predictor(bx, by, bw, bh, ref, a, b, c):
    """8.4.1.3: the predictor from the neighbours A, B, C (C already replaced by D according to 8.4.1.3.2).

    bx, by, bw, bh: position and size of the partition in 4x4 blocks; a, b, c: (reference index, -1 if the neighbour is
    intra, -2 if it is not available; mv x; mv y), vector (0, 0) where the index is negative. Returns (px, py), quarter
    samples.
    """
    ref_a, ax, ay = a
    ref_b, b_x, b_y = b
    ref_c, cx, cy = c
    if bw == 4 and bh == 2:  # 16x8: B for the upper partition, A for the lower
        if by == 0:
            if ref_b == ref:
                return b_x, b_y
        elif ref_a == ref:
            return ax, ay
    elif bw == 2 and bh == 4:  # 8x16: A for the left partition, C for the right
        if bx == 0:
            if ref_a == ref:
                return ax, ay
        elif ref_c == ref:
            return cx, cy
    if ref_b == -2 and ref_c == -2 and ref_a != -2:
        return ax, ay  # 8.4.1.3.1: A replaces B and C: three equal vectors, zeros if A is intra
    same_a = ref_a == ref
    same_b = ref_b == ref
    same_c = ref_c == ref
    if same_a and not same_b and not same_c:
        return ax, ay
    if same_b and not same_a and not same_c:
        return b_x, b_y
    if same_c and not same_a and not same_b:
        return cx, cy
    return median(ax, b_x, cx), median(ay, b_y, cy)


@helper
def neighbour(mb, bx, by, ref_idx, mv, mb_width, first_mb):
    """6.4.12: the 4x4 block at (bx, by) relative to macroblock mb, -1 <= by <= 3, -1 <= bx <= 4.

    Returns (reference index, -1 for intra or -2 if outside the frame or slice; mv x; mv y).
    """
    n = mb
    column = mb % mb_width
    if bx < 0:
        if column == 0:
            return -2, 0, 0
        n -= 1
    elif bx > 3:
        if column == mb_width - 1:
            return -2, 0, 0
        n += 1
    if by < 0:
        n -= mb_width
    if n < first_mb:
        return -2, 0, 0
    x = bx & 3
    y = by & 3
    ref = int(ref_idx[n, (y >> 1) * 2 + (x >> 1)])
    if ref < 0:
        return -1, 0, 0
    return ref, int(mv[n, y * 4 + x, 0]), int(mv[n, y * 4 + x, 1])


@helper
def corner_available(bx, by, bw):
    """6.4.11.7: whether the block above right of a partition, if it lies in this macroblock row, precedes the partition.

    Above the macroblock (by == 0), frame and slice decide. Inside, the block must belong to an earlier 8x8 quadrant or to
    the same one (only for the lower left 4x4 block of a quadrant, whose C is the upper right block).
    """
    if by == 0:
        return True
    x = bx + bw
    if x > 3:
        return False
    return ((by - 1) >> 1) * 2 + (x >> 1) <= (by >> 1) * 2 + (bx >> 1)


@helper
def predict_mv(mb, bx, by, bw, bh, ref, ref_idx, mv, mb_width, first_mb):
    """8.4.1.3: luma motion vector prediction of the partition at 4x4 block (bx, by), bw x bh blocks, reference ref.

    ref_idx: int8[n_mb, 4]; mv: int16[n_mb, 16, 2], quarter samples; first_mb: first address of the slice. The arrays must
    hold the earlier partitions of macroblock mb; later partitions are not read. Returns (px, py).
    """
    a = neighbour(mb, bx - 1, by, ref_idx, mv, mb_width, first_mb)
    b = neighbour(mb, bx, by - 1, ref_idx, mv, mb_width, first_mb)
    c = np.int64(-2), np.int64(0), np.int64(0)
    if corner_available(bx, by, bw):
        c = neighbour(mb, bx + bw, by - 1, ref_idx, mv, mb_width, first_mb)
    if c[0] == -2:
        c = neighbour(mb, bx - 1, by - 1, ref_idx, mv, mb_width, first_mb)
    return choose_predictor(bx, by, bw, bh, ref, a, b, c)


@helper
def predict_skip_mv(mb, ref_idx, mv, mb_width, first_mb):
    """8.4.1.1: the motion vector of a P_Skip macroblock, (px, py) in quarter samples; its reference index is 0."""
    a = neighbour(mb, -1, 0, ref_idx, mv, mb_width, first_mb)
    b = neighbour(mb, 0, -1, ref_idx, mv, mb_width, first_mb)
    if a[0] == -2 or b[0] == -2 or a == (0, 0, 0) or b == (0, 0, 0):
        return 0, 0
    c = neighbour(mb, 4, -1, ref_idx, mv, mb_width, first_mb)
    if c[0] == -2:
        c = neighbour(mb, -1, -1, ref_idx, mv, mb_width, first_mb)
    return choose_predictor(0, 0, 4, 4, 0, a, b, c)
