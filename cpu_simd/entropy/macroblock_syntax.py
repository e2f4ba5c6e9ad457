"""Values of syntax elements of macroblock_layer() (7.3.5), for any entropy coding mode: what is written, not how."""

import numpy as np

from ...jit.kernel import helper
from ...standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    B_SUB_DIRECT,
    BLOCK_TO_RASTER,
    I_PCM,
    P_SKIP,
    B_8x8,
    B_8x16,
    B_16x8,
    B_16x16,
    I_4x4,
    I_8x8,
    P_8x8,
    P_8x16,
    P_16x8,
    SUB_4x8,
    SUB_8x4,
    SUB_8x8,
)
from ...standard.tables import B_DIRECT_TYPE, B_MB_TYPES, I_PCM_TYPE, B_8x8_TYPE, I_NxN_TYPE
from ..layout import CB_DC, CR_DC, LUMA_DC

# 7.3.5.3: the order of the blocks of `levels` in residual()
RESIDUAL_ORDER = np.array([LUMA_DC, *range(16), CB_DC, CR_DC, *range(16, 24)], np.int64)


def _b_halves():
    """uint8[16]: mb_type of the B_*_16x8 types by the modes 4 first + second of their partitions; B_*_8x16: 1 more."""
    result = np.zeros(16, np.uint8)
    for mb_type, (n_partitions, width, _, first, second) in enumerate(B_MB_TYPES.tolist()):
        if (n_partitions, width) == (2, 16):
            result[4 * first + second] = mb_type
    return result


B_HALVES = _b_halves()


@helper
def intra_mb_type(mb_type, pattern, mode):
    """Table 7-11: mb_type of an intra macroblock in an I slice; pattern: its cbp, mode: intra16x16_mode."""
    if mb_type == I_4x4 or mb_type == I_8x8:
        return np.int64(I_NxN_TYPE)
    if mb_type == I_PCM:
        return np.int64(I_PCM_TYPE)
    return 1 + mode + 4 * (pattern >> 4) + (12 if pattern & 15 else 0)


@helper
def predicted_intra_mode(intra4x4_mode, mb, raster, left, above, mb_width):
    """8.3.1.1: predIntra4x4PredMode of a block; 8.3.2.1: predIntra8x8PredMode of the 8x8 block that begins with it.

    intra4x4_mode: int8[n_mb, 16], that of an 8x8 block in its four blocks; left, above: whether those macroblocks are
    available.
    """
    bx, by = raster & 3, raster >> 2
    if (bx == 0 and not left) or (by == 0 and not above):
        return np.int64(2)
    a = intra4x4_mode[mb, raster - 1] if bx > 0 else intra4x4_mode[mb - 1, raster + 3]
    b = intra4x4_mode[mb, raster - 4] if by > 0 else intra4x4_mode[mb - mb_width, raster + 12]
    return np.int64(min(a, b))


@helper
def rem_intra4x4_mode(intra4x4_mode, mb, k, left, above, mb_width):
    """7.4.5.1: rem_intra4x4_pred_mode of block k in decoding order, also for 8x8 blocks; -1: the mode is the predicted one.

    As for predicted_intra_mode.
    """
    raster = np.int64(BLOCK_TO_RASTER[k])
    predicted = predicted_intra_mode(intra4x4_mode, mb, raster, left, above, mb_width)
    mode = np.int64(intra4x4_mode[mb, raster])
    return -1 if mode == predicted else mode - (mode > predicted)


@helper
def partition_size(mb_type):
    """(width, height) in 4x4 blocks of a P macroblock's partitions, the quadrants for P_8x8."""
    return 2 if mb_type == P_8x16 or mb_type == P_8x8 else 4, 2 if mb_type == P_16x8 or mb_type == P_8x8 else 4


@helper
def sub_partition_size(sub):
    """(width, height) in 4x4 blocks of the partitions of a quadrant with sub_mb_type `sub`."""
    return 2 if sub == SUB_8x8 or sub == SUB_8x4 else 1, 2 if sub == SUB_8x8 or sub == SUB_4x8 else 1


@helper
def only_8x8_partitions(sub_mb_type, mb, mb_type):
    """7.3.5: NoSubMbPartSizeLessThan8x8Flag of an inter macroblock, without which it has no transform_size_8x8_flag.

    B macroblocks have no smaller partitions, those of direct prediction included: direct_8x8_inference_flag is 1.
    """
    subs = sub_mb_type
    return mb_type != P_8x8 or (subs[mb, 0] | subs[mb, 1] | subs[mb, 2] | subs[mb, 3]) == SUB_8x8


@helper
def skip_type(n_ref1):
    """The mb_type of skipped macroblocks of a slice with n_ref1 entries in list 1: one comparison tells them, not two."""
    return B_SKIP if n_ref1 else P_SKIP


@helper
def is_direct(m, mb, q):
    """Whether quadrant q of macroblock mb, in a B slice, is predicted directly: its motion is not in the bits."""
    mb_type = m.mb_type[mb]
    return mb_type == B_SKIP or mb_type == B_DIRECT or (mb_type == B_8x8 and m.sub_mb_type[mb, q] == B_SUB_DIRECT)


@helper
def used_lists(m, mb, q):
    """Table 7-14: the prediction mode of quadrant q: 1 Pred_L0, 2 Pred_L1, 3 BiPred."""
    return np.int64(m.ref_idx[mb, q] >= 0) | np.int64(m.ref_idx1[mb, q] >= 0) << 1


@helper
def b_mb_type(m, mb):
    """Table 7-14: mb_type of a B macroblock that is not B_Skip."""
    mb_type = m.mb_type[mb]
    if mb_type == B_DIRECT:
        return np.int64(B_DIRECT_TYPE)
    if mb_type == B_8x8:
        return np.int64(B_8x8_TYPE)
    first = used_lists(m, mb, 0)
    if mb_type == B_16x16:
        return first
    return np.int64(B_HALVES[4 * first + used_lists(m, mb, 3)]) + (mb_type == B_8x16)


@helper
def b_partition_size(mb_type):
    """(width, height) in 4x4 blocks of the partitions of a B macroblock with vectors, the quadrants for B_8x8."""
    return 2 if mb_type == B_8x16 or mb_type == B_8x8 else 4, 2 if mb_type == B_16x8 or mb_type == B_8x8 else 4


@helper
def qp_delta(qp, previous):
    """7.4.5: mb_qp_delta, -26..25: QPY wraps."""
    return (qp - previous + 26) % 52 - 26
