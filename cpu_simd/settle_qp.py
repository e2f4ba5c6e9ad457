"""Stage "settle_qp": the QP that a decoder has for each macroblock, where QP varies within frames (7.4.5)."""

import numpy as np

from ..jit.kernel import closed_kernel
from ..standard.macroblock import I_PCM, I_16x16


@closed_kernel
def settle_qp(mb_type, cbp, slice_first_mb, frame_params, mb_width, first_mb, end_mb, qp):
    """7.4.5: the QP of macroblocks without mb_qp_delta among first_mb .. end_mb - 1, whole slices, becomes QP_Y,PRED.

    That is the QP of the macroblock before in coding order, SliceQPY of a slice's first one: of skipped macroblocks, I_PCM
    and others without residual. mb_type, cbp: uint8[n_mb], final but for P_Skip and B_Skip, which have cbp 0;
    slice_first_mb: int32[mb_height]; frame_params: see layout.py; qp: uint8[n_mb], QP_Y as chosen, written.
    """
    predicted = np.int64(0)
    for mb in range(first_mb, end_mb):
        if mb == slice_first_mb[mb // mb_width]:
            predicted = np.int64(frame_params[0])
        if mb_type[mb] == I_16x16 or (mb_type[mb] != I_PCM and cbp[mb] != 0):
            predicted = np.int64(qp[mb])
        else:
            qp[mb] = predicted
