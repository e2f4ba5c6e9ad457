"""CAVLC: mb_type and motion of B macroblocks (7.3.5, 7.3.5.1, 7.3.5.2)."""

import numpy as np

from ...jit.kernel import helper
from ...standard.macroblock import B_DIRECT, B_8x8
from ..inter.mv_prediction import predict_mv
from .cavlc import put_se, put_te, put_ue
from .macroblock_syntax import b_mb_type, b_partition_size, is_direct


@helper
def put_list_indices(out, sink, mb, n, ref_idx, m):
    """7.3.5.1, 7.3.5.2: ref_idx of the partitions that use a list of n entries; ref_idx: that of the list."""
    wide, high = b_partition_size(m.mb_type[mb])
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            ref = np.int64(ref_idx[mb, q])
            if ref >= 0 and not is_direct(m, mb, q):
                put_te(out, sink, ref, n - 1)


@helper
def put_list_vectors(out, sink, mb, ref_idx, mv, m, mb_width, first_mb):
    """7.3.5.1, 7.3.5.2: mvd of the partitions that use a list; ref_idx, mv: those of the list."""
    wide, high = b_partition_size(m.mb_type[mb])
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            ref = np.int64(ref_idx[mb, q])
            if ref >= 0 and not is_direct(m, mb, q):
                px, py = predict_mv(mb, x, y, wide, high, ref, ref_idx, mv, mb_width, first_mb)
                put_se(out, sink, np.int64(mv[mb, y * 4 + x, 0]) - px)
                put_se(out, sink, np.int64(mv[mb, y * 4 + x, 1]) - py)


@helper
def put_b_inter(out, sink, mb, n_ref, n_ref1, m, mb_width, first_mb):
    """7.3.5, 7.3.5.1, 7.3.5.2: mb_type, sub_mb_type, ref_idx and mvd of both lists of a B macroblock, not of B_Skip.

    n_ref, n_ref1: entries of both lists; m: Macroblocks.
    """
    put_ue(out, sink, b_mb_type(m, mb))
    if m.mb_type[mb] == B_DIRECT:
        return
    if m.mb_type[mb] == B_8x8:
        for q in range(4):
            put_ue(out, sink, np.int64(m.sub_mb_type[mb, q]))
    if n_ref > 1:
        put_list_indices(out, sink, mb, n_ref, m.ref_idx, m)
    if n_ref1 > 1:
        put_list_indices(out, sink, mb, n_ref1, m.ref_idx1, m)
    put_list_vectors(out, sink, mb, m.ref_idx, m.mv, m, mb_width, first_mb)
    put_list_vectors(out, sink, mb, m.ref_idx1, m.mv1, m, mb_width, first_mb)
