"""8.4.1.2: motion of direct macroblocks and sub-macroblocks of B slices: spatial and temporal prediction."""

import numpy as np

from ..jit.kernel import helper
from .errors import E_NO_COLOCATED, E_NO_REFERENCE
from .layout import P_COL_SHORT, P_COL_SLOT, P_REFS_0, P_SLOT, P_SPATIAL_DIRECT, SUB_DIRECT, P_DIRECT_8x8
from .mv_prediction import neighbour_c, predict_mv, reference_at
from .neighbours import set_vectors

UNSCALED = 9999  # instead of DistScaleFactor: the vector is taken as it is (long-term reference, or no distance)


@helper
def colocated(mv, ref_idx, y4, x4):
    """8.4.1.2.1: list, mvCol x and y of the co-located block, from list 0 where it is used; list -1: intra."""
    for k in range(2):
        if ref_idx[k, y4 >> 1, x4 >> 1] >= 0:
            return k, np.int64(mv[k, y4, x4, 0]), np.int64(mv[k, y4, x4, 1])
    return -1, 0, 0


@helper
def min_positive(a, b):
    """8.4.1.2.2: MinPositive."""
    return min(a, b) if a >= 0 and b >= 0 else max(a, b)


@helper
def spatial_reference(ref_idx, available, y0, x0):
    """8.4.1.2.2: refIdx of a list from the neighbours A, B and C of the macroblock; negative: list not used."""
    ref_a = reference_at(ref_idx, available, y0, x0, 0, -1, 16)
    ref_b = reference_at(ref_idx, available, y0, x0, -1, 0, 16)
    _, ref_c = neighbour_c(ref_idx, available, y0, x0, 0, 0, 4)
    return min_positive(ref_a, min_positive(ref_b, ref_c))


@helper
def spatial_direct(p, sub_type, motion, mb, available, y0, x0):
    """8.4.1.2.2: spatial direct prediction of the direct quadrants of a macroblock."""
    slot, col = p[P_SLOT], p[P_COL_SLOT]
    mv, ref_idx = motion.mv[slot], motion.ref_idx[slot]
    ref0 = spatial_reference(ref_idx[0], available, y0, x0)
    ref1 = spatial_reference(ref_idx[1], available, y0, x0)
    mx0 = my0 = mx1 = my1 = 0
    if ref0 >= 0:
        mx0, my0 = predict_mv(mv[0], ref_idx[0], available, y0, x0, 0, 0, 4, 4, ref0)
    if ref1 >= 0:
        mx1, my1 = predict_mv(mv[1], ref_idx[1], available, y0, x0, 0, 0, 4, 4, ref1)
    ref0, ref1 = max(ref0, -1), max(ref1, -1)
    if ref0 < 0 and ref1 < 0:
        ref0 = ref1 = 0
    for q in range(4):
        if sub_type[mb, q] != SUB_DIRECT:
            continue
        ref_idx[0, (y0 >> 1) + (q >> 1), (x0 >> 1) + (q & 1)] = ref0
        ref_idx[1, (y0 >> 1) + (q >> 1), (x0 >> 1) + (q & 1)] = ref1
        for block in range(4):
            y, x = y0 + (q >> 1) * 2 + (block >> 1), x0 + (q & 1) * 2 + (block & 1)
            zero0 = zero1 = False
            if p[P_COL_SHORT] and (ref0 == 0 or ref1 == 0):  # colZeroFlag
                cy, cx = y, x
                if p[P_DIRECT_8x8]:
                    cy, cx = y0 + (q >> 1) * 3, x0 + (q & 1) * 3
                k, mvx, mvy = colocated(motion.mv[col], motion.ref_idx[col], cy, cx)
                if k >= 0 and motion.ref_idx[col, k, cy >> 1, cx >> 1] == 0 and abs(mvx) <= 1 and abs(mvy) <= 1:
                    zero0, zero1 = ref0 == 0, ref1 == 0
            set_vectors(mv[0], y, x, 1, 1, 0 if zero0 else mx0, 0 if zero0 else my0)
            set_vectors(mv[1], y, x, 1, 1, 0 if zero1 else mx1, 0 if zero1 else my1)


@helper
def temporal_direct(p, sub_type, motion, references, mb, y0, x0):
    """8.4.1.2.3: temporal direct prediction of the direct quadrants of a macroblock; 0 or an error."""
    slot, col = p[P_SLOT], p[P_COL_SLOT]
    mv, ref_idx = motion.mv[slot], motion.ref_idx[slot]
    for q in range(4):
        if sub_type[mb, q] != SUB_DIRECT:
            continue
        for block in range(4):
            y, x = y0 + (q >> 1) * 2 + (block >> 1), x0 + (q & 1) * 2 + (block & 1)
            cy, cx = y, x
            if p[P_DIRECT_8x8]:
                cy, cx = y0 + (q >> 1) * 3, x0 + (q & 1) * 3
            k, mvx, mvy = colocated(motion.mv[col], motion.ref_idx[col], cy, cx)
            ref0 = 0
            if k >= 0:  # the lowest index in list 0 of the picture the co-located block refers to
                picture = motion.ref_id[col, k, cy >> 1, cx >> 1]
                while ref0 < p[P_REFS_0] and references.ids[0, ref0] != picture:
                    ref0 += 1
                if ref0 == p[P_REFS_0]:
                    return E_NO_REFERENCE
            ref_idx[0, y >> 1, x >> 1] = ref0
            ref_idx[1, y >> 1, x >> 1] = 0
            scale = np.int64(references.scale[ref0])
            if scale == UNSCALED:
                set_vectors(mv[0], y, x, 1, 1, mvx, mvy)
                set_vectors(mv[1], y, x, 1, 1, 0, 0)
            else:
                sx, sy = (scale * mvx + 128) >> 8, (scale * mvy + 128) >> 8
                set_vectors(mv[0], y, x, 1, 1, sx, sy)
                set_vectors(mv[1], y, x, 1, 1, sx - mvx, sy - mvy)
    return 0


@helper
def direct_motion(p, sub_type, motion, references, mb, available, y0, x0):
    """8.4.1.2: references and vectors of the direct quadrants of the macroblock at (x0, y0); 0 or an error."""
    if p[P_COL_SLOT] < 0:
        return E_NO_COLOCATED
    if p[P_SPATIAL_DIRECT]:
        spatial_direct(p, sub_type, motion, mb, available, y0, x0)
        return 0
    return temporal_direct(p, sub_type, motion, references, mb, y0, x0)
