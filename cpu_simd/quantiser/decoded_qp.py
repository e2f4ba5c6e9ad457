"""QPs of macroblocks, where they vary within frames: few changes are chosen; stage "decoded_qp" finds those of a decoder."""

import numpy as np

from ...jit.kernel import closed_kernel, quick_kernel
from ...standard.macroblock import I_PCM, I_16x16
from ..simd.lanes import bit_count


@closed_kernel
def decoded_qp(mb_type, cbp, slice_first_mb, frame_params, mb_width, first_mb, end_mb, qp):
    """7.4.5: the QP of macroblocks without mb_qp_delta among first_mb .. end_mb - 1, whole slices, becomes QP_Y,PRED.

    That is the QP of the macroblock before in coding order, SliceQPY of a slice's first one: of skipped macroblocks, I_PCM
    and others without residual. mb_type, cbp: uint8[n_mb], final but for P_Skip and B_Skip, which have cbp 0;
    slice_first_mb: int32[n_mb]; frame_params: see layout.py; qp: uint8[n_mb], QP_Y as chosen, written.
    """
    predicted = np.int64(0)
    for mb in range(first_mb, end_mb):
        if mb == slice_first_mb[mb]:
            predicted = np.int64(frame_params[0])
        if mb_type[mb] == I_16x16 or (mb_type[mb] != I_PCM and cbp[mb] != 0):
            predicted = np.int64(qp[mb])
        else:
            qp[mb] = predicted


@quick_kernel
def smoothed_qps(qp, offsets, more, limits, reach, smoothed):
    """QP_Y of macroblocks, from fractions of a QP -> smoothed: uint8[n_mb]. Returns their sum. Not part of the standard.

    A macroblock keeps the QP of the one before while that is at most `reach` from what it wants; else it has the nearest: an
    mb_qp_delta takes some bits wherever a macroblock has residual. The QP before the first macroblock is that of the frame.

    qp: int, of the frame; offsets: int32[n_mb]; more: int32[n_mb], added to them; all in 1 / 256; limits: (least, most),
    ints; reach: int, in 1 / 256, half a QP or more and less than one.
    """
    least, most = np.int32(limits[0] << 8), np.int32(limits[1] << 8)
    of_frame, far = np.int32(qp), np.int32((1 << 8) - reach)
    # two QPs can be kept: the nearest, and perhaps the next one on a side. This loop, in SIMD, finds both
    for mb in range(offsets.size):
        wanted = np.int32(max(least, min(most, np.int32(of_frame + np.int32(offsets[mb] + more[mb])))))
        nearest = np.int32(wanted + 128) >> 8
        above = np.int32(wanted - np.int32(nearest << 8))
        upper, lower = np.int32(2) if above >= far else np.int32(0), np.int32(1) if np.int32(-above) >= far else np.int32(0)
        smoothed[mb] = np.int32(nearest << 2) + np.int32(upper + lower)
    # QPs as bits 1 << QP: a comparison would become a jump, which no processor predicts
    kept = np.int64(1) << (np.int64(np.int32(max(least, min(most, of_frame))) + 128) >> 8)
    total = np.int64(0)
    for mb in range(offsets.size):
        nearest, sides = np.int64(smoothed[mb]) >> 2, np.int64(smoothed[mb]) & 3
        lower, upper = (sides & 1) << ((nearest - 1) & 63), (sides & 2) << nearest
        kept = (np.int64(1) << nearest) - (kept & lower) + ((kept & upper) >> 1)
        smoothed[mb] = bit_count(kept - 1)
        total += np.int64(smoothed[mb])
    return total
