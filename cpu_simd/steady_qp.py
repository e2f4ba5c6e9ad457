"""QPs of macroblocks from fractions of a QP, with few changes from one macroblock to the next; not part of the standard."""

import numpy as np

from ..jit.kernel import quick_kernel


@quick_kernel
def steady_qps(wanted, first, reach, qp):
    """A macroblock keeps the QP of the one before while that is at most `reach` from what it wants; else it has the nearest.

    wanted: int32[n_mb], in 1 / 256, 0 .. 51 QPs; first: the QP before the first macroblock; reach: in 1 / 256; qp:
    uint8[n_mb] out. An mb_qp_delta takes some bits wherever a macroblock has residual.
    """
    before = np.int64(first)
    for mb in range(len(wanted)):
        target = np.int64(wanted[mb])
        if abs(256 * before - target) > reach:
            before = (target + 128) >> 8
        qp[mb] = before
