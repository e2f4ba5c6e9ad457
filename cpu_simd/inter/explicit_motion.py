"""Direct macroblocks whose neighbours became I_PCM after the mode decision: their motion is written explicitly."""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import B_DIRECT, B_SKIP, B_SUB_DIRECT, B_SUB_L0, B_8x8
from ..decide.mode_decision import is_beside_intra
from .direct import direct_motion
from .mv_cache import load_mv_cache


@helper
def _has_motion(mb, q, k, ref_idx, mv, direct):
    """Whether direct quadrant q has the derived motion of list k. direct: see direct_motion."""
    zero, block = direct[k, 3] >> q & 1, 8 * (q >> 1) + 2 * (q & 1)
    x, y = (0, 0) if zero else (direct[k, 1], direct[k, 2])
    return ref_idx[mb, q] == direct[k, 0] and mv[mb, block, 0] == x and mv[mb, block, 1] == y


@closed_kernel
def explicit_motion(motion, colocated_still, slice_first_mb, mb_width, row0, row1):
    """8.4.1.2.2: where a decoder derives other motion for direct macroblocks and direct sub-macroblocks of rows [row0, row1),
    they become B_8x8 with sub-macroblocks that say theirs.

    That happens after a neighbour took fewer bits as I_PCM in inter_residual, which the mode decision cannot know.
    Bundle Motion: ref_idx and mv of both lists must be final; mb_type and sub_mb_type are written. colocated_still:
    uint8[n_mb], as for mode_decision_b. slice_first_mb: int32[n_mb].
    """
    sub_mb_type = motion.sub_mb_type
    mv_caches = np.zeros((5, 6, 3), np.int64), np.zeros((5, 6, 3), np.int64)
    direct = np.zeros((2, 4), np.int64)
    for mb in range(row0 * mb_width, row1 * mb_width):
        mb_type = motion.mb_type[mb]
        if mb_type != B_SKIP and mb_type != B_DIRECT and mb_type != B_8x8:
            continue
        if not (is_beside_intra(mb, motion.ref_idx, mb_width) and is_beside_intra(mb, motion.ref_idx1, mb_width)):
            continue
        first_mb = np.int64(slice_first_mb[mb])
        load_mv_cache(mb, motion.ref_idx, motion.mv, mb_width, first_mb, mv_caches[0])
        load_mv_cache(mb, motion.ref_idx1, motion.mv1, mb_width, first_mb, mv_caches[1])
        direct_motion(mv_caches, np.int64(colocated_still[mb]), direct)
        same = True
        for q in range(4):
            if mb_type != B_8x8 or sub_mb_type[mb, q] == B_SUB_DIRECT:
                same &= _has_motion(mb, q, 0, motion.ref_idx, motion.mv, direct)
                same &= _has_motion(mb, q, 1, motion.ref_idx1, motion.mv1, direct)
        if same:
            continue
        for q in range(4):
            if mb_type != B_8x8 or sub_mb_type[mb, q] == B_SUB_DIRECT:
                lists = np.int64(motion.ref_idx[mb, q] >= 0) + 2 * np.int64(motion.ref_idx1[mb, q] >= 0)
                sub_mb_type[mb, q] = B_SUB_L0 - 1 + lists
        motion.mb_type[mb] = B_8x8
