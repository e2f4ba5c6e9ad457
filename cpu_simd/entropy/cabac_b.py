"""CABAC: the bins of B macroblocks that P macroblocks do not have alike: mb_skip_flag, mb_type, motion of both lists.

As in cabac_macroblock.py. B_Skip, B_Direct_16x16 and direct quadrants count as ref_idx 0 and mvd 0 for contexts, whatever
their motion is (9.3.3.1.1.6, 9.3.3.1.1.7); vectors are predicted from their motion as it is (8.4.1.3).
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import CTX_MB_TYPE_B, CTX_REF_IDX, CTX_SKIP_B, CTX_SUB_MB_TYPE_B
from ...standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    B_SUB_BI,
    B_SUB_DIRECT,
    B_SUB_L1,
    LAST_INTRA,
    B_8x8,
)
from ..inter.mv_prediction import predict_mv
from .cabac_motion import put_difference
from .cabac_residual import put_bin
from .macroblock_syntax import b_mb_type, b_partition_size, is_direct

# Table 9-37: bin strings of mb_type 0 .. 22 in B slices, and of the prefix of intra macroblocks
B_TYPE_BINS = (
    "0", "100", "101", "110000", "110001", "110010", "110011", "110100", "110101", "110110", "110111", "111110",
    "1110000", "1110001", "1110010", "1110011", "1110100", "1110101", "1110110", "1110111", "1111000", "1111001",
    "111111", "111101",
)  # fmt: skip
B_TYPE_LENGTH = np.array([len(text) for text in B_TYPE_BINS], np.uint8)
B_TYPE_VALUE = np.array([int(text, 2) for text in B_TYPE_BINS], np.uint8)
INTRA_PREFIX = len(B_TYPE_BINS) - 1


@helper
def put_b_skip_flag(bins, at, mb, flag, mb_type, left, above, mb_width):
    """9.3.3.1.1.1: mb_skip_flag of a B slice."""
    context = CTX_SKIP_B
    if left and mb_type[mb - 1] != B_SKIP:
        context += 1
    if above and mb_type[mb - mb_width] != B_SKIP:
        context += 1
    return put_bin(bins, at, context, flag)


@helper
def put_b_mb_type(bins, at, mb, m, left, above, mb_width):
    """9.3.3.1.1.3, 9.3.3.1.2, Table 9-37: mb_type of a B macroblock, not of B_Skip; of an intra macroblock its prefix."""
    number = np.int64(INTRA_PREFIX)
    if m.mb_type[mb] > LAST_INTRA:
        number = b_mb_type(m, mb)
    context = CTX_MB_TYPE_B
    if left and m.mb_type[mb - 1] != B_SKIP and m.mb_type[mb - 1] != B_DIRECT:
        context += 1
    if above and m.mb_type[mb - mb_width] != B_SKIP and m.mb_type[mb - mb_width] != B_DIRECT:
        context += 1
    value = np.int64(B_TYPE_VALUE[number])
    last = np.int64(B_TYPE_LENGTH[number]) - 1
    at = put_bin(bins, at, context, value >> last)
    context = CTX_MB_TYPE_B + 3
    while last > 0:
        last -= 1
        flag = value >> last & 1
        at = put_bin(bins, at, context, flag)
        context = CTX_MB_TYPE_B + (4 if context == CTX_MB_TYPE_B + 3 and flag else 5)
    return at


@helper
def put_b_sub_mb_type(bins, at, sub):
    """Table 9-38: sub_mb_type of a B macroblock without partitions below 8x8: 0, 100, 101, 11000."""
    at = put_bin(bins, at, CTX_SUB_MB_TYPE_B, sub != B_SUB_DIRECT)
    if sub == B_SUB_DIRECT:
        return at
    at = put_bin(bins, at, CTX_SUB_MB_TYPE_B + 1, sub == B_SUB_BI)
    if sub != B_SUB_BI:
        return put_bin(bins, at, CTX_SUB_MB_TYPE_B + 3, sub == B_SUB_L1)
    at = put_bin(bins, at, CTX_SUB_MB_TYPE_B + 2, 0)
    at = put_bin(bins, at, CTX_SUB_MB_TYPE_B + 3, 0)
    return put_bin(bins, at, CTX_SUB_MB_TYPE_B + 3, 0)


@helper
def b_vector_differences(mb, first_mb, mb_width, m, ref_idx, mv, mvd):
    """7.4.5.1: vector differences of macroblock mb in one list, as vector_differences; ref_idx, mv: those of the list."""
    mb_type = m.mb_type[mb]
    for k in range(16):
        mvd[mb, k, 0] = 0
        mvd[mb, k, 1] = 0
    if mb_type <= LAST_INTRA or mb_type == B_SKIP or mb_type == B_DIRECT:
        return
    wide, high = b_partition_size(mb_type)
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            ref = np.int64(ref_idx[mb, q])
            if ref < 0 or is_direct(m, mb, q):
                continue
            px, py = predict_mv(mb, x, y, wide, high, ref, ref_idx, mv, mb_width, first_mb)
            dx = np.int64(mv[mb, y * 4 + x, 0]) - px
            dy = np.int64(mv[mb, y * 4 + x, 1]) - py
            for j in range(y, y + high):
                for i in range(x, x + wide):
                    mvd[mb, j * 4 + i, 0] = dx
                    mvd[mb, j * 4 + i, 1] = dy


@helper
def is_later_entry(m, ref_idx, mb, q):
    """9.3.3.1.1.6: whether the ref_idx of quadrant q in the bits is above 0."""
    return ref_idx[mb, q] > 0 and not is_direct(m, mb, q)


@helper
def put_b_ref_idx(bins, at, mb, q, ref_idx, m, left, above, mb_width):
    """9.3.3.1.1.6: ref_idx of the partition that begins in quadrant q in one list."""
    inc = 0
    if q & 1:
        inc += is_later_entry(m, ref_idx, mb, q - 1)
    elif left:
        inc += is_later_entry(m, ref_idx, mb - 1, q + 1)
    if q & 2:
        inc += 2 * is_later_entry(m, ref_idx, mb, q - 2)
    elif above:
        inc += 2 * is_later_entry(m, ref_idx, mb - mb_width, q + 2)
    for _ in range(np.int64(ref_idx[mb, q])):
        at = put_bin(bins, at, CTX_REF_IDX + inc, 1)
        inc = (inc >> 2) + 4
    return put_bin(bins, at, CTX_REF_IDX + inc, 0)


@helper
def put_list_indices(bins, at, mb, ref_idx, m, left, above, mb_width):
    """7.3.5.1, 7.3.5.2: ref_idx of the partitions that use a list."""
    wide, high = b_partition_size(m.mb_type[mb])
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            if ref_idx[mb, q] >= 0 and not is_direct(m, mb, q):
                at = put_b_ref_idx(bins, at, mb, q, ref_idx, m, left, above, mb_width)
    return at


@helper
def put_list_differences(bins, at, mb, ref_idx, mvd, m, left, above, mb_width):
    """7.3.5.1, 7.3.5.2: mvd of the partitions that use a list."""
    wide, high = b_partition_size(m.mb_type[mb])
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            if ref_idx[mb, q] >= 0 and not is_direct(m, mb, q):
                at = put_difference(bins, at, mb, x, y, mvd, left, above, mb_width)
    return at


@helper
def put_b_motion(bins, at, mb, n_ref, n_ref1, m, mvd, left, above, mb_width):
    """7.3.5.1, 7.3.5.2: sub_mb_type, ref_idx and mvd of both lists of a B macroblock; mvd: of put_differences."""
    if m.mb_type[mb] == B_DIRECT:
        return at
    if m.mb_type[mb] == B_8x8:
        for q in range(4):
            at = put_b_sub_mb_type(bins, at, np.int64(m.sub_mb_type[mb, q]))
    if n_ref > 1:
        at = put_list_indices(bins, at, mb, m.ref_idx, m, left, above, mb_width)
    if n_ref1 > 1:
        at = put_list_indices(bins, at, mb, m.ref_idx1, m, left, above, mb_width)
    at = put_list_differences(bins, at, mb, m.ref_idx, mvd[0], m, left, above, mb_width)
    return put_list_differences(bins, at, mb, m.ref_idx1, mvd[1], m, left, above, mb_width)
