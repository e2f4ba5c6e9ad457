"""CABAC: the bins of macroblocks (9.3.2, 9.3.3.1), from their arrays and those of the macroblocks to the left and above.

A bin is a uint16: ctxIdx << 1 | binVal, with BYPASS and TERMINATE in place of ctxIdx (layout.py). Functions append bins to
`bins` uint16[] from index `at` on and return the index after them. `left`, `above`: whether those macroblocks are available.

Order of the bins of a macroblock in slice_data() (7.3.4):
1. mb_skip_flag in P and B slices; of P_Skip and B_Skip nothing but end_of_slice_flag follows
2. mb_type; in I_PCM its second bin (third in P slices, eighth in B slices) is TERMINATE with 1: the engine ends, zeros up to
   a byte, 384 bytes of samples, the engine begins anew, contexts stay; end_of_slice_flag is its first bin
3. intra: transform_size_8x8_flag of I_NxN, prediction modes, intra_chroma_pred_mode
   inter: four sub_mb_type, then all ref_idx, then mvd of each partition, x before y (cabac_motion.py, cabac_b.py)
4. coded_block_pattern but for I_16x16; transform_size_8x8_flag of inter macroblocks
5. mb_qp_delta, then blocks of levels in the order of residual(): each its coded_block_flag, the pairs significant_coeff_flag
   and last_significant_coeff_flag upwards, levels downwards (prefix, suffix, sign)
6. end_of_slice_flag (TERMINATE), which put_end_of_slice appends

No bins of other macroblocks are read, so that all macroblocks can be done at once. Two values come from macroblocks before
in coding order: QP_Y,PRED and whether mb_qp_delta of the macroblock before is not 0 (has_qp_delta, qp_delta). Vector
differences of the neighbours are read from `mvd`, which put_differences fills for each macroblock from its own and its
neighbours' vectors: on a GPU for all macroblocks before any bins, on the CPU macroblock by macroblock. That takes less time
than predicting the neighbours' vectors once more.
"""

import numpy as np

from ...jit.intrinsics import inlined
from ...jit.kernel import helper
from ...standard.cabac_contexts import (
    CTX_CBP_CHROMA,
    CTX_CBP_LUMA,
    CTX_INTRA_CHROMA,
    CTX_MB_QP_DELTA,
    CTX_MB_TYPE_B_INTRA,
    CTX_MB_TYPE_I,
    CTX_MB_TYPE_P,
    CTX_MB_TYPE_P_INTRA,
    CTX_PREV_INTRA_MODE,
    CTX_REM_INTRA_MODE,
    CTX_SKIP_P,
    CTX_TRANSFORM_8x8,
)
from ...standard.macroblock import I_PCM, LAST_INTRA, P_SKIP, I_4x4, I_8x8, I_16x16, P_8x8, P_8x16, P_16x8
from ..layout import TERMINATE
from .cabac_b import b_vector_differences, put_b_mb_type, put_b_motion, put_b_skip_flag
from .cabac_motion import put_motion, vector_differences
from .cabac_residual import put_bin, put_residual
from .macroblock_syntax import only_8x8_partitions, qp_delta, rem_intra4x4_mode, skip_type

# Effective coded_block_pattern of neighbours for contexts (9.3.3.1.1.4)
_CBP_UNAVAILABLE, _CBP_PCM = 15, 47


@helper
def has_qp_delta(m, mb, skip):
    """7.3.5: whether macroblock mb has mb_qp_delta; skip: skip_type."""
    mb_type = m.mb_type[mb]
    return mb_type == I_16x16 or (mb_type != I_PCM and mb_type != skip and m.cbp[mb] != 0)


@helper
def put_differences(mb, first_mb, mb_width, n_ref1, m, mvd):
    """7.4.5.1: vector differences of macroblock mb in a P or B slice, for contexts and for its own bins.

    n_ref1: entries of list 1, 0 in P slices, None in streams without B frames; mvd: of both lists, see vector_differences.
    """
    if n_ref1 is not None:  # None is known while Numba finds types: functions of B macroblocks are not compiled
        if n_ref1 > 0:
            b_vector_differences(mb, first_mb, mb_width, m, m.ref_idx, m.mv, mvd[0])
            b_vector_differences(mb, first_mb, mb_width, m, m.ref_idx1, m.mv1, mvd[1])
            return
    vector_differences(mb, first_mb, mb_width, m, mvd[0])


@helper
def put_skip_flag(bins, at, mb, flag, n_ref1, mb_type, left, above, mb_width):
    """9.3.3.1.1.1: mb_skip_flag of a P or B slice."""
    if n_ref1 is not None:
        if n_ref1 > 0:
            return put_b_skip_flag(bins, at, mb, flag, mb_type, left, above, mb_width)
    context = CTX_SKIP_P
    if left and mb_type[mb - 1] != P_SKIP:
        context += 1
    if above and mb_type[mb - mb_width] != P_SKIP:
        context += 1
    return put_bin(bins, at, context, flag)


@helper
def put_inter(bins, at, mb, n_ref, n_ref1, m, mvd, left, above, mb_width):
    """7.3.5.1, 7.3.5.2: sub_mb_type, ref_idx and mvd of a P or B macroblock."""
    if n_ref1 is not None:
        if n_ref1 > 0:
            return put_b_motion(bins, at, mb, n_ref, n_ref1, m, mvd, left, above, mb_width)
    return put_motion(bins, at, mb, n_ref, m, mvd[0], left, above, mb_width)


@helper
def put_intra_type(bins, at, mb_type, pattern, mode, context, step):
    """Tables 9-36, 9-37: mb_type of an intra macroblock that is not I_NxN, after its first bin.

    context: ctxIdx of the first bin after the terminating one; step: 1 in I slices, 0 in others, where bins share contexts.
    """
    at = put_bin(bins, at, TERMINATE, mb_type == I_PCM)
    if mb_type == I_PCM:
        return at
    at = put_bin(bins, at, context, (pattern & 15) != 0)
    at = put_bin(bins, at, context + 1, pattern >> 4 != 0)
    if pattern >> 4:
        at = put_bin(bins, at, context + 1 + step, pattern >> 5)
    at = put_bin(bins, at, context + 2 + step, mode >> 1)
    return put_bin(bins, at, context + 2 + 2 * step, mode & 1)


@helper
def put_inter_mb_type(bins, at, mb, n_ref1, m, left, above, mb_width):
    """Table 9-37: mb_type of an inter macroblock; the prefix of an intra macroblock. Returns the ctxIdx after that, too."""
    if n_ref1 is not None:
        if n_ref1 > 0:
            return put_b_mb_type(bins, at, mb, m, left, above, mb_width), np.int64(CTX_MB_TYPE_B_INTRA)
    mb_type = np.int64(m.mb_type[mb])
    at = put_bin(bins, at, CTX_MB_TYPE_P, mb_type <= LAST_INTRA)
    if mb_type > LAST_INTRA:
        halves = mb_type == P_16x8 or mb_type == P_8x16
        at = put_bin(bins, at, CTX_MB_TYPE_P + 1, halves)
        if halves:
            at = put_bin(bins, at, CTX_MB_TYPE_P + 3, mb_type == P_16x8)
        else:
            at = put_bin(bins, at, CTX_MB_TYPE_P + 2, mb_type == P_8x8)
    return at, np.int64(CTX_MB_TYPE_P_INTRA)


@helper
def put_mb_type(bins, at, mb, entries, m, left, above, mb_width):
    """9.3.3.1.1.3, Tables 9-36, 9-37: mb_type."""
    n_ref, n_ref1 = entries
    mb_type = np.int64(m.mb_type[mb])
    pattern = np.int64(m.cbp[mb])
    mode = np.int64(m.intra16x16_mode[mb])
    is_nxn = mb_type == I_4x4 or mb_type == I_8x8
    if n_ref > 0:
        at, context = put_inter_mb_type(bins, at, mb, n_ref1, m, left, above, mb_width)
        if mb_type > LAST_INTRA:
            return at
        at = put_bin(bins, at, context, not is_nxn)
        return at if is_nxn else put_intra_type(bins, at, mb_type, pattern, mode, context + 1, 0)
    context = CTX_MB_TYPE_I
    if left and m.mb_type[mb - 1] != I_4x4 and m.mb_type[mb - 1] != I_8x8:
        context += 1
    if above and m.mb_type[mb - mb_width] != I_4x4 and m.mb_type[mb - mb_width] != I_8x8:
        context += 1
    at = put_bin(bins, at, context, not is_nxn)
    return at if is_nxn else put_intra_type(bins, at, mb_type, pattern, mode, CTX_MB_TYPE_I + 3, 1)


@helper
def put_transform_flag(bins, at, mb, transform_8x8, left, above, mb_width):
    """9.3.3.1.1.10: transform_size_8x8_flag."""
    context = CTX_TRANSFORM_8x8
    if left:
        context += np.int64(transform_8x8[mb - 1])
    if above:
        context += np.int64(transform_8x8[mb - mb_width])
    return put_bin(bins, at, context, transform_8x8[mb])


@helper
def put_intra_modes(bins, at, mb, size, intra4x4_mode, left, above, mb_width):
    """7.3.5.1: prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode of 4x4 blocks, size 1, or of 8x8 blocks, size 4."""
    for k in range(0, 16, size):
        rem = rem_intra4x4_mode(intra4x4_mode, mb, k, left, above, mb_width)
        at = put_bin(bins, at, CTX_PREV_INTRA_MODE, rem < 0)
        if rem >= 0:
            for i in range(3):
                at = put_bin(bins, at, CTX_REM_INTRA_MODE, rem >> i & 1)
    return at


@helper
def has_chroma_mode(m, mb):
    """9.3.3.1.1.8: whether intra_chroma_pred_mode of macroblock mb is there and not 0."""
    return m.mb_type[mb] < I_PCM and m.intra_chroma_mode[mb] != 0


@helper
def put_chroma_mode(bins, at, mb, m, left, above, mb_width):
    """9.3.3.1.1.8: intra_chroma_pred_mode: at most three bins."""
    mode = np.int64(m.intra_chroma_mode[mb])
    context = CTX_INTRA_CHROMA
    if left and has_chroma_mode(m, mb - 1):
        context += 1
    if above and has_chroma_mode(m, mb - mb_width):
        context += 1
    at = put_bin(bins, at, context, mode > 0)
    if mode > 0:
        at = put_bin(bins, at, CTX_INTRA_CHROMA + 3, mode > 1)
        if mode > 1:
            at = put_bin(bins, at, CTX_INTRA_CHROMA + 3, mode > 2)
    return at


@helper
def context_cbp(m, mb, available, skip):
    """9.3.3.1.1.4: the coded_block_pattern that contexts assume of macroblock mb; skip: skip_type."""
    if not available:
        return np.int64(_CBP_UNAVAILABLE)
    mb_type = m.mb_type[mb]
    if mb_type == I_PCM:
        return np.int64(_CBP_PCM)
    return np.int64(0) if mb_type == skip else np.int64(m.cbp[mb])


@helper
def put_cbp(bins, at, mb, m, skip, left, above, mb_width):
    """9.3.3.1.1.4: coded_block_pattern: four bins of luma, then one or two of chroma."""
    pattern = np.int64(m.cbp[mb])
    cbp_a = context_cbp(m, mb - 1, left, skip)
    cbp_b = context_cbp(m, mb - mb_width, above, skip)
    for q in range(4):
        coded_a = pattern >> (q - 1) & 1 if q & 1 else cbp_a >> (q + 1) & 1
        coded_b = pattern >> (q - 2) & 1 if q & 2 else cbp_b >> (q + 2) & 1
        at = put_bin(bins, at, CTX_CBP_LUMA + (1 - coded_a) + 2 * (1 - coded_b), pattern >> q & 1)
    chroma, chroma_a, chroma_b = pattern >> 4, cbp_a >> 4, cbp_b >> 4
    at = put_bin(bins, at, CTX_CBP_CHROMA + (chroma_a > 0) + 2 * (chroma_b > 0), chroma > 0)
    if chroma > 0:
        at = put_bin(bins, at, CTX_CBP_CHROMA + 4 + (chroma_a == 2) + 2 * (chroma_b == 2), chroma == 2)
    return at


@helper
def put_qp_delta(bins, at, delta, after_delta):
    """9.3.2.7, 9.3.3.1.1.5: mb_qp_delta; after_delta: whether that of the macroblock before in coding order is not 0."""
    context = CTX_MB_QP_DELTA + (1 if after_delta else 0)
    for k in range(2 * delta - 1 if delta > 0 else -2 * delta):
        at = put_bin(bins, at, context, 1)
        context = CTX_MB_QP_DELTA + (2 if k == 0 else 3)
    return put_bin(bins, at, context, 0)


@helper
def put_end_of_slice(bins, at, flag):
    """7.3.4: end_of_slice_flag."""
    return put_bin(bins, at, TERMINATE, flag)


@helper
def macroblock_bins(bins, at, mb, first_mb, mb_width, entries, transform_8x8_mode, previous_qp, after_delta, mvd, m):
    """7.3.4, 7.3.5: the bins of macroblock mb without end_of_slice_flag; of I_PCM those up to the terminating one.

    first_mb: of the slice; entries: Entries; previous_qp: QP_Y,PRED;
    after_delta: see put_qp_delta; mvd: of put_differences; m: Macroblocks.
    """
    inlined()
    n_ref, n_ref1 = entries
    mb_type = np.int64(m.mb_type[mb])
    left = mb % mb_width > 0 and mb > first_mb
    above = mb - mb_width >= first_mb
    skip = skip_type(n_ref1)
    if n_ref > 0:
        at = put_skip_flag(bins, at, mb, mb_type == skip, n_ref1, m.mb_type, left, above, mb_width)
        if mb_type == skip:
            return at
    at = put_mb_type(bins, at, mb, entries, m, left, above, mb_width)
    if mb_type == I_PCM:
        return at
    if mb_type <= LAST_INTRA:
        if mb_type != I_16x16:
            if transform_8x8_mode:
                at = put_transform_flag(bins, at, mb, m.transform_8x8, left, above, mb_width)
            at = put_intra_modes(bins, at, mb, 4 if mb_type == I_8x8 else 1, m.intra4x4_mode, left, above, mb_width)
        at = put_chroma_mode(bins, at, mb, m, left, above, mb_width)
    else:
        at = put_inter(bins, at, mb, n_ref, n_ref1, m, mvd, left, above, mb_width)
    if mb_type != I_16x16:
        at = put_cbp(bins, at, mb, m, skip, left, above, mb_width)
        if mb_type > LAST_INTRA and transform_8x8_mode and m.cbp[mb] & 15 and only_8x8_partitions(m.sub_mb_type, mb, mb_type):
            at = put_transform_flag(bins, at, mb, m.transform_8x8, left, above, mb_width)
    if not has_qp_delta(m, mb, skip):
        return at
    at = put_qp_delta(bins, at, qp_delta(np.int64(m.qp[mb]), previous_qp), after_delta)
    return put_residual(bins, at, mb, m, left, above, mb_width)
