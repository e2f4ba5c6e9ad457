"""Motion of a decoded frame, kept for later frames: for their searches, and for direct prediction in B frames (8.4.1.2.2)."""

import numpy as np

from ...jit.kernel import closed_kernel, helper


@helper
def _is_still(ref, mv, mb, block):
    """8.4.1.2.2: whether refIdxCol is 0 and no component of mvCol, that of `block`, is outside of -1..1."""
    return ref == 0 and abs(np.int64(mv[mb, block, 0])) <= 1 and abs(np.int64(mv[mb, block, 1])) <= 1


@closed_kernel
def keep_motion(motion, mb_width, row0, row1, kept):
    """8.4.1.2.1, 8.4.1.2.2: keeps the motion of macroblock rows [row0, row1) of a decoded frame.

    Bundles: Motion, of any frame type, of intra macroblocks with ref_idx -1 and mv 0 in both lists; KeptMotion, written:
    list 0, and colZeroFlag of quadrant q in bit q of `still`, as for a B frame whose RefPicList1[0] is this frame, by
    direct_8x8_inference_flag 1 from the 4x4 block in the macroblock's corner: from list 0 where it is used, else list 1.
    """
    ref_idx, mv, ref_idx1, mv1 = motion.ref_idx, motion.mv, motion.ref_idx1, motion.mv1
    for mb in range(row0 * mb_width, row1 * mb_width):
        for k in range(16):
            kept.mv[mb, k, 0] = mv[mb, k, 0]
            kept.mv[mb, k, 1] = mv[mb, k, 1]
        still = 0
        for q in range(4):
            kept.ref_idx[mb, q] = ref_idx[mb, q]
            corner = 12 * (q >> 1) + 3 * (q & 1)
            if ref_idx[mb, q] >= 0:
                is_still = _is_still(ref_idx[mb, q], mv, mb, corner)
            else:
                is_still = _is_still(ref_idx1[mb, q], mv1, mb, corner)
            still |= np.int64(is_still) << q
        kept.still[mb] = still
