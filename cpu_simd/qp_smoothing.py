"""QPs of macroblocks from fractions of a QP, with few changes from one macroblock to the next; not part of the standard."""

import numpy as np

from ..jit.kernel import closed_kernel


@closed_kernel
def smoothed_qps(qp, offsets, limits, reach, smoothed):
    """QP_Y of macroblocks -> smoothed: uint8[n_mb]. Returns their sum.

    A macroblock keeps the QP of the one before while that is at most `reach` from what it wants; else it has the nearest: an
    mb_qp_delta takes some bits wherever a macroblock has residual. The QP before the first macroblock is that of the frame.

    qp: int, of the frame; offsets: int32[n_mb], both in 1 / 256; limits: (least, most), ints; reach: int, in 1 / 256.
    """
    least, most = limits
    before = max(least, min(most, (np.int64(qp) + 128) >> 8))
    total = np.int64(0)
    for mb in range(len(offsets)):
        wanted = max(256 * least, min(256 * most, np.int64(qp) + offsets[mb]))
        if abs(256 * before - wanted) > reach:
            before = (wanted + 128) >> 8
        smoothed[mb] = before
        total += before
    return total
