"""8.4.1: second walk over a slice: motion vectors and reference pictures of its inter macroblocks."""

import numpy as np

from ..jit.intrinsics import inlined
from ..jit.kernel import closed_kernel, helper
from ..standard.macroblock import P_SKIP, B_8x8, P_8x8
from .direct import direct_motion
from .errors import E_MV
from .layout import (
    P_END_MB,
    P_FIRST_MB,
    P_SLICE_TYPE,
    P_SLOT,
    SLICE_B,
    SUB_DIRECT,
    is_intra,
    partition_size,
)
from .mv_prediction import predict_mv, predict_skip_mv
from .neighbours import mb_position, neighbours, set_vectors


@helper
def partition_motion(m, mv, ref_idx, mb, available, y0, x0, by, bx, height, width):
    """8.4.1: vector of one partition in one list, the block (bx, by) of the macroblock at (x0, y0); 0 or an error.

    mv int16[H4, W4, 2], ref_idx int8[H8, W8] of that list; sizes in 4x4 blocks; m: its mvd int16[H4, W4, 2].
    """
    ref = np.int64(ref_idx[(y0 + by) >> 1, (x0 + bx) >> 1])
    if ref < 0:
        return 0
    px, py = predict_mv(mv, ref_idx, available, y0, x0, by, bx, height, width, ref)
    x = px + m[y0 + by, x0 + bx, 0]
    y = py + m[y0 + by, x0 + bx, 1]
    if x < -32768 or x > 32767 or y < -32768 or y > 32767:
        return E_MV
    set_vectors(mv, y0 + by, x0 + bx, height, width, x, y)
    return 0


@helper
def sub_macroblock_motion(mvd, sub_type, mv, ref_idx, mb, available, y0, x0):
    """8.4.1: vectors of the sub-macroblocks of P_8x8 or B_8x8 in one list, except direct ones; 0 or an error."""
    inlined()
    for q in range(4):
        sub = sub_type[mb, q]
        if sub == SUB_DIRECT:
            continue
        height = 1 if sub & 1 else 2
        width = 1 if sub & 2 else 2
        for y in range(0, 2, height):
            for x in range(0, 2, width):
                by, bx = (q >> 1) * 2 + y, (q & 1) * 2 + x
                error = partition_motion(mvd, mv, ref_idx, mb, available, y0, x0, by, bx, height, width)
                if error:
                    return error
    return 0


@helper
def macroblock_motion(mvd, mb_type, sub_type, mv, ref_idx, mb, available, y0, x0):
    """8.4.1: vectors of a macroblock in one list, except where they are inferred; 0 or an error."""
    inlined()
    type_of_mb = mb_type[mb]
    if type_of_mb == P_8x8 or type_of_mb == B_8x8:
        return sub_macroblock_motion(mvd, sub_type, mv, ref_idx, mb, available, y0, x0)
    height, width = partition_size(type_of_mb)
    for by in range(0, 4, height):
        for bx in range(0, 4, width):
            error = partition_motion(mvd, mv, ref_idx, mb, available, y0, x0, by, bx, height, width)
            if error:
                return error
    return 0


@helper
def name_references(ref_idx, ref_id, ids, y8, x8, lists):
    """The numbers of the pictures an inter macroblock refers to, for deblocking and co-located blocks."""
    for k in range(lists):
        for y in range(y8, y8 + 2):
            for x in range(x8, x8 + 2):
                ref = ref_idx[k, y, x]
                ref_id[k, y, x] = ids[k, ref] if ref >= 0 else -1


@closed_kernel
def derive_motion(p, m, motion, references):
    """8.4.1: all macroblocks of a parsed P or B slice; (error or 0, macroblock)."""
    slot = p[P_SLOT]
    mv, ref_idx, ref_id = motion.mv[slot], motion.ref_idx[slot], motion.ref_id[slot]
    is_b = p[P_SLICE_TYPE] == SLICE_B
    for mb in range(p[P_FIRST_MB], p[P_END_MB]):
        y, x = mb_position(p, mb)
        y0, x0 = 4 * y, 4 * x
        mb_type = m.mb_type[mb]
        error = 0
        if not is_intra(mb_type):
            available = neighbours(p, m.slice_id, mb)
            if mb_type == P_SKIP:
                x, y = predict_skip_mv(mv[0], ref_idx[0], available, y0, x0)
                set_vectors(mv[0], y0, x0, 4, 4, x, y)
            else:
                if is_b and (mb_type == B_8x8 or m.sub_type[mb, 0] == SUB_DIRECT):
                    error = direct_motion(p, m.sub_type, motion, references, mb, available, y0, x0)
                if m.sub_type[mb, 0] != SUB_DIRECT or mb_type == B_8x8:
                    for k in range(2 if is_b else 1):
                        if error == 0:
                            error = macroblock_motion(
                                m.mvd[k], m.mb_type, m.sub_type, mv[k], ref_idx[k], mb, available, y0, x0
                            )
            name_references(ref_idx, ref_id, references.ids, y0 >> 1, x0 >> 1, 2 if is_b else 1)
        if error:
            return error, mb
    return 0, 0
