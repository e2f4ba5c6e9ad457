"""CABAC: the bins of the motion of P macroblocks (7.3.5.1, 7.3.5.2): sub_mb_type, ref_idx_l0, mvd_l0.

As in cabac_macroblock.py. Differences of vectors and their bins are those of B macroblocks too (cabac_b.py).
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import CTX_MVD_X, CTX_MVD_Y, CTX_REF_IDX, CTX_SUB_MB_TYPE_P, MVD_PREFIX
from ...standard.macroblock import LAST_INTRA, P_SKIP, P_8x8, SUB_4x4, SUB_8x4, SUB_8x8
from ..inter.mv_prediction import predict_mv
from .cabac_residual import put_bin, put_bypass, put_exp_golomb
from .macroblock_syntax import partition_size, sub_partition_size


@helper
def vector_differences(mb, first_mb, mb_width, m, mvd):
    """7.4.5.1: mvd_l0 of macroblock mb -> mvd int16[n_mb, 16, 2] (x, y), in all 4x4 blocks of a partition; else 0."""
    mb_type = np.int64(m.mb_type[mb])
    if mb_type <= LAST_INTRA or mb_type == P_SKIP:
        for k in range(16):
            mvd[mb, k, 0] = 0
            mvd[mb, k, 1] = 0
        return
    wide, high = partition_size(mb_type)
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            ref = np.int64(m.ref_idx[mb, q])
            bw = wide
            bh = high
            if mb_type == P_8x8:
                bw, bh = sub_partition_size(m.sub_mb_type[mb, q])
            for by in range(y, y + high, bh):
                for bx in range(x, x + wide, bw):
                    px, py = predict_mv(mb, bx, by, bw, bh, ref, m.ref_idx, m.mv, mb_width, first_mb)
                    dx = np.int64(m.mv[mb, by * 4 + bx, 0]) - px
                    dy = np.int64(m.mv[mb, by * 4 + bx, 1]) - py
                    for j in range(by, by + bh):
                        for i in range(bx, bx + bw):
                            mvd[mb, j * 4 + i, 0] = dx
                            mvd[mb, j * 4 + i, 1] = dy


@helper
def put_sub_mb_type(bins, at, sub):
    """Table 9-37: sub_mb_type of a P macroblock."""
    at = put_bin(bins, at, CTX_SUB_MB_TYPE_P, sub == SUB_8x8)
    if sub != SUB_8x8:
        at = put_bin(bins, at, CTX_SUB_MB_TYPE_P + 1, sub != SUB_8x4)
        if sub != SUB_8x4:
            at = put_bin(bins, at, CTX_SUB_MB_TYPE_P + 2, sub != SUB_4x4)
    return at


@helper
def put_ref_idx(bins, at, mb, q, ref_idx, left, above, mb_width):
    """9.3.3.1.1.6: ref_idx_l0 of the partition that begins in quadrant q."""
    inc = 0
    if q & 1:
        inc += ref_idx[mb, q - 1] > 0
    elif left:
        inc += ref_idx[mb - 1, q + 1] > 0
    if q & 2:
        inc += 2 * (ref_idx[mb, q - 2] > 0)
    elif above:
        inc += 2 * (ref_idx[mb - mb_width, q + 2] > 0)
    for _ in range(np.int64(ref_idx[mb, q])):
        at = put_bin(bins, at, CTX_REF_IDX + inc, 1)
        inc = (inc >> 2) + 4
    return put_bin(bins, at, CTX_REF_IDX + inc, 0)


@helper
def put_mvd(bins, at, context, value, total):
    """9.3.2.3, 9.3.3.1.1.7: a component of mvd_l0; total: absMvdComp, the sum of the magnitudes of the neighbours'."""
    size = abs(value)
    first = context + (0 if total < 3 else 1 if total <= 32 else 2)
    at = put_bin(bins, at, first, size > 0)
    if size == 0:
        return at
    for k in range(1, min(size, MVD_PREFIX)):
        at = put_bin(bins, at, context + min(2 + k, 6), 1)
    if size < MVD_PREFIX:
        at = put_bin(bins, at, context + min(2 + size, 6), 0)
    else:
        at = put_exp_golomb(bins, at, size - MVD_PREFIX, 3)
    return put_bypass(bins, at, np.int64(value < 0))


@helper
def put_difference(bins, at, mb, bx, by, mvd, left, above, mb_width):
    """7.3.5.1: mvd_l0 of the partition that begins at 4x4 block (bx, by), x then y."""
    block = by * 4 + bx
    total_x = 0
    total_y = 0
    if bx > 0 or left:
        n, b = (mb, block - 1) if bx > 0 else (mb - 1, block + 3)
        total_x += abs(np.int64(mvd[n, b, 0]))
        total_y += abs(np.int64(mvd[n, b, 1]))
    if by > 0 or above:
        n, b = (mb, block - 4) if by > 0 else (mb - mb_width, block + 12)
        total_x += abs(np.int64(mvd[n, b, 0]))
        total_y += abs(np.int64(mvd[n, b, 1]))
    at = put_mvd(bins, at, CTX_MVD_X, np.int64(mvd[mb, block, 0]), total_x)
    return put_mvd(bins, at, CTX_MVD_Y, np.int64(mvd[mb, block, 1]), total_y)


@helper
def put_motion(bins, at, mb, n_ref, m, mvd, left, above, mb_width):
    """7.3.5.1, 7.3.5.2: sub_mb_type, ref_idx_l0 and mvd_l0 of a P macroblock."""
    mb_type = np.int64(m.mb_type[mb])
    wide, high = partition_size(mb_type)
    if mb_type == P_8x8:
        for q in range(4):
            at = put_sub_mb_type(bins, at, np.int64(m.sub_mb_type[mb, q]))
    if n_ref > 1:
        for y in range(0, 4, high):
            for x in range(0, 4, wide):
                at = put_ref_idx(bins, at, mb, y + (x >> 1), m.ref_idx, left, above, mb_width)
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            bw = wide
            bh = high
            if mb_type == P_8x8:
                bw, bh = sub_partition_size(m.sub_mb_type[mb, y + (x >> 1)])
            for by in range(y, y + high, bh):
                for bx in range(x, x + wide, bw):
                    at = put_difference(bins, at, mb, bx, by, mvd, left, above, mb_width)
    return at
