"""8.7: the deblocking filter, macroblock by macroblock in raster order, in place on a finished picture.

Planes are flat here, uint8[H * W]; positions and steps in them are uint64, which spares the test for negative indices.
The bS of an edge's four pieces are one number of 4 bits each, the first piece lowest.
"""

import numpy as np

from ..standard.jit import helper, kernel
from ..standard.macroblock import I_PCM, P_SKIP, P_16x16
from ..standard.tables import ALPHA, BETA, QP_CHROMA, TC0
from .layout import SLICE_ALPHA, SLICE_BETA, SLICE_CB, SLICE_DISABLE, B_16x16, I_8x8
from .outline import outlined
from .transform import clip1

# bS 2 for the pieces whose bits are set, one bit a piece.
STRENGTHS_2 = np.array([sum(2 << 4 * k for k in range(4) if i >> k & 1) for i in range(16)], np.int64)


@helper
def clip3(low, high, value):
    """5.7: Clip3."""
    return min(high, max(low, value))


@helper
def is_intra(mb_type):
    """Whether a macroblock is predicted within the picture."""
    return mb_type <= I_PCM or mb_type == I_8x8


@helper
def one_vector(mb_type):
    """Whether all of a macroblock moves alike, by its type."""
    return mb_type == P_SKIP or mb_type == P_16x16 or mb_type == B_16x16


@helper
def far_apart(mv, k, y_p, x_p, l, y_q, x_q):
    """8.7.2.1: whether the vector of block p in list k and that of q in list l differ by a whole sample or more."""
    dx = np.int64(mv[k, y_p, x_p, 0]) - np.int64(mv[l, y_q, x_q, 0])
    dy = np.int64(mv[k, y_p, x_p, 1]) - np.int64(mv[l, y_q, x_q, 1])
    return abs(dx) >= 4 or abs(dy) >= 4


@helper
def motion_differs(mv, ref_id, y_p, x_p, y_q, x_q):
    """8.7.2.1: whether 4x4 blocks p and q have other reference pictures, or vectors a sample or more apart (bS 1)."""
    outlined()
    p0, p1 = ref_id[0, y_p >> 1, x_p >> 1], ref_id[1, y_p >> 1, x_p >> 1]
    q0, q1 = ref_id[0, y_q >> 1, x_q >> 1], ref_id[1, y_q >> 1, x_q >> 1]
    if p0 == q0 and p1 == q1:
        if not far_apart(mv, 0, y_p, x_p, 0, y_q, x_q) and (p1 < 0 or not far_apart(mv, 1, y_p, x_p, 1, y_q, x_q)):
            return False
    if p0 == q1 and p1 == q0:
        return far_apart(mv, 0, y_p, x_p, 1, y_q, x_q) or far_apart(mv, 1, y_p, x_p, 0, y_q, x_q)
    return True


@helper
def coded_blocks(nonzero, transform_8x8, y4, x4):
    """8.7.2.1: bit 4 * y + x is set where the transform block with that 4x4 block of the macroblock has coefficients."""
    outlined()
    coded = 0
    for y in range(4):
        for x in range(4):
            coded |= (nonzero[y4 + y, x4 + x] != 0) << (4 * y + x)
    if transform_8x8:
        coded = (coded | coded >> 1) & 0x5555
        coded = (coded | coded >> 4) & 0x0505
        coded |= coded << 1
        coded |= coded << 4
    return coded


@helper
def edge_strengths(mv, ref_id, coded_p, coded_q, edge, vertical, y4, x4, pieces):
    """8.7.2.1: bS of the pieces of an edge between inter blocks, (x4, y4) the first behind it.

    coded: of the macroblocks on both sides. pieces: at how many motion is looked at: 0 where it is the same on both
    sides, 1 where it is the same along the edge on either side, else 4.
    """
    outlined()
    if vertical:
        bits = (coded_q >> edge | coded_p >> (edge - 1 & 3)) & 0x1111
        bits = (bits | bits >> 3 | bits >> 6 | bits >> 9) & 15
    else:
        bits = (coded_q >> 4 * edge | coded_p >> 4 * (edge - 1 & 3)) & 15
    strengths = np.int64(STRENGTHS_2[bits])
    if bits == 15 or pieces == 0:
        return strengths
    dy, dx = (0, 1) if vertical else (1, 0)
    differs = False
    for k in range(4):
        y, x = y4 + k * dx, x4 + k * dy
        if k < pieces:
            differs = motion_differs(mv, ref_id, y - dy, x - dx, y, x)
        if differs and not bits >> k & 1:
            strengths |= 1 << 4 * k
    return strengths


@helper
def filter_luma(plane, start, across, along, strengths, index_a, alpha, beta):
    """8.7.2: a luma edge of 16 samples; `start`: q0 of its first line, p0 lies `across` before, the next line `along`."""
    outlined()
    two, three, four = across + across, across + across + across, across + across + across + across
    for k in range(4):
        strength = strengths >> 4 * k & 15
        at = start + np.uint64(4 * k) * along
        if strength == 0:
            continue
        tc0 = np.int32(TC0[strength & 3, index_a])
        for _ in range(4):
            p0, p1 = np.int32(plane[at - across]), np.int32(plane[at - two])
            q0, q1 = np.int32(plane[at]), np.int32(plane[at + across])
            if abs(p0 - q0) < alpha and abs(p1 - p0) < beta and abs(q1 - q0) < beta:
                p2, q2 = np.int32(plane[at - three]), np.int32(plane[at + two])
                smooth_p, smooth_q = abs(p2 - p0) < beta, abs(q2 - q0) < beta
                if strength < 4:  # 8.7.2.3
                    tc = tc0 + smooth_p + smooth_q
                    delta = clip3(-tc, tc, ((q0 - p0) * 4 + (p1 - q1) + 4) >> 3)
                    plane[at - across] = clip1(p0 + delta)
                    plane[at] = clip1(q0 - delta)
                    if smooth_p:
                        plane[at - two] = p1 + clip3(-tc0, tc0, (p2 + ((p0 + q0 + 1) >> 1) - 2 * p1) >> 1)
                    if smooth_q:
                        plane[at + across] = q1 + clip3(-tc0, tc0, (q2 + ((p0 + q0 + 1) >> 1) - 2 * q1) >> 1)
                else:  # 8.7.2.4
                    close = abs(p0 - q0) < (alpha >> 2) + 2
                    if smooth_p and close:
                        p3 = np.int32(plane[at - four])
                        plane[at - across] = (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3
                        plane[at - two] = (p2 + p1 + p0 + q0 + 2) >> 2
                        plane[at - three] = (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3
                    else:
                        plane[at - across] = (2 * p1 + p0 + q1 + 2) >> 2
                    if smooth_q and close:
                        q3 = np.int32(plane[at + three])
                        plane[at] = (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3
                        plane[at + across] = (p0 + q0 + q1 + q2 + 2) >> 2
                        plane[at + two] = (2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3
                    else:
                        plane[at] = (2 * q1 + q0 + p1 + 2) >> 2
            at += along


@helper
def filter_chroma(plane, start, across, along, strengths, index_a, alpha, beta):
    """8.7.2: a chroma edge of 8 samples; arguments as of filter_luma."""
    outlined()
    two = across + across
    at = start
    for k in range(8):
        strength = strengths >> 4 * (k >> 1) & 15
        if strength:
            p0, p1 = np.int32(plane[at - across]), np.int32(plane[at - two])
            q0, q1 = np.int32(plane[at]), np.int32(plane[at + across])
            if abs(p0 - q0) < alpha and abs(p1 - p0) < beta and abs(q1 - q0) < beta:
                if strength == 4:
                    plane[at - across] = (2 * p1 + p0 + q1 + 2) >> 2
                    plane[at] = (2 * q1 + q0 + p1 + 2) >> 2
                else:
                    tc = np.int32(TC0[strength, index_a]) + 1
                    delta = clip3(-tc, tc, ((q0 - p0) * 4 + (p1 - q1) + 4) >> 3)
                    plane[at - across] = clip1(p0 + delta)
                    plane[at] = clip1(q0 - delta)
        at += along


@helper
def deblock_edge(y_plane, u_plane, v_plane, row, qp_p, qp_q, edge, vertical, y0, x0, width, strengths):
    """8.7.1: luma and chroma of one edge of the macroblock at (x0, y0); row: its slice's row of the slice table."""
    outlined()
    one, stride, half = np.uint64(1), np.uint64(width), np.uint64(width >> 1)
    y, x = (y0, x0 + 4 * edge) if vertical else (y0 + 4 * edge, x0)
    for c in range(3 if edge & 1 == 0 else 1):
        qp = qp_p + qp_q + 1 >> 1
        if c:  # 8.5.8: QP_C
            offset = np.int64(row[SLICE_CB + c - 1])
            qp = np.int64(QP_CHROMA[clip3(0, 51, qp_p + offset)]) + np.int64(QP_CHROMA[clip3(0, 51, qp_q + offset)])
            qp = qp + 1 >> 1
        index_a = clip3(0, 51, qp + np.int64(row[SLICE_ALPHA]))
        alpha = np.int32(ALPHA[index_a])
        beta = np.int32(BETA[clip3(0, 51, qp + np.int64(row[SLICE_BETA]))])
        if alpha == 0 or beta == 0:
            continue
        if c == 0:
            at = np.uint64(y * width + x)
            across, along = (one, stride) if vertical else (stride, one)
            filter_luma(y_plane, at, across, along, strengths, index_a, alpha, beta)
        else:
            at = np.uint64((y >> 1) * (width >> 1) + (x >> 1))
            across, along = (one, half) if vertical else (half, one)
            filter_chroma(u_plane if c == 1 else v_plane, at, across, along, strengths, index_a, alpha, beta)


@kernel
def deblock_picture(mbs, slice_table, mb_width, planes, motion, slot):
    """8.7: all macroblocks of a picture in order of their addresses; slice_table int32[n_slices, N_SLICE_COLUMNS].

    mbs: slice_id, mb_type, qp, transform_8x8, nonzero of layout.Macroblocks.
    """
    slice_id, mb_type, qp, transform_8x8, nonzero = mbs
    y_plane, u_plane, v_plane = planes.y[slot].ravel(), planes.u[slot].ravel(), planes.v[slot].ravel()
    mv, ref_id = motion.mv[slot], motion.ref_id[slot]
    coded = np.zeros(mb_type.size, np.uint16)
    x = y = 0
    for mb in range(mb_type.size):
        row = slice_table[slice_id[mb]]
        disable = row[SLICE_DISABLE]
        kind = mb_type[mb]
        intra, alike = is_intra(kind), one_vector(kind)
        if not intra:
            coded[mb] = coded_blocks(nonzero, transform_8x8[mb], 4 * y, 4 * x)
        coded_q, qp_q = np.int64(coded[mb]), np.int64(qp[mb])
        for direction in range(0 if disable == 1 else 2):
            vertical = direction == 0
            for edge in range(1 if alike and coded_q == 0 else 4):
                mb_p, pieces = mb, 0 if alike else 4
                if edge == 0:
                    if (x if vertical else y) == 0:
                        continue
                    mb_p = mb - (1 if vertical else mb_width)
                    if disable == 2 and slice_id[mb_p] != slice_id[mb]:
                        continue
                    pieces = 1 if alike and one_vector(mb_type[mb_p]) else 4
                elif edge & 1 and transform_8x8[mb]:
                    continue
                if intra or is_intra(mb_type[mb_p]):
                    strengths = 0x4444 if edge == 0 else 0x3333
                else:
                    y4, x4 = (4 * y, 4 * x + edge) if vertical else (4 * y + edge, 4 * x)
                    strengths = edge_strengths(
                        mv, ref_id, np.int64(coded[mb_p]), coded_q, edge, vertical, y4, x4, pieces
                    )
                if strengths:
                    deblock_edge(
                        y_plane, u_plane, v_plane, row, np.int64(qp[mb_p]), qp_q, edge, vertical, 16 * y, 16 * x,
                        16 * mb_width, strengths,
                    )  # fmt: skip
        x += 1
        if x == mb_width:
            x, y = 0, y + 1
