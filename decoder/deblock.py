"""8.7: the deblocking filter, macroblock by macroblock in raster order, in place on a finished picture."""

import numpy as np

from ..standard.jit import helper, kernel
from ..standard.macroblock import P_SKIP, P_16x16
from ..standard.tables import ALPHA, BETA, QP_CHROMA, TC0
from .layout import SLICE_ALPHA, SLICE_BETA, SLICE_CB, SLICE_DISABLE, B_16x16
from .outline import outlined
from .reconstruct import is_intra
from .transform import clip1


@helper
def clip3(low, high, value):
    """5.7: Clip3."""
    return min(high, max(low, value))


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
    straight = p0 == q0 and p1 == q1
    crossed = p0 == q1 and p1 == q0
    if straight and not (far_apart(mv, 0, y_p, x_p, 0, y_q, x_q) or far_apart(mv, 1, y_p, x_p, 1, y_q, x_q)):
        return False
    if crossed and not (far_apart(mv, 0, y_p, x_p, 1, y_q, x_q) or far_apart(mv, 1, y_p, x_p, 0, y_q, x_q)):
        return False
    return True


@helper
def has_coefficients(nonzero, transform_8x8, y4, x4):
    """8.7.2.1: whether the transform block with the 4x4 block (x4, y4) has coefficients."""
    if not transform_8x8:
        return nonzero[y4, x4] != 0
    y, x = y4 & ~1, x4 & ~1
    return (nonzero[y, x] | nonzero[y, x + 1] | nonzero[y + 1, x] | nonzero[y + 1, x + 1]) != 0


@helper
def edge_strengths(m, mv, ref_id, mb_p, mb, edge, vertical, y4, x4, strengths):
    """8.7.2.1: bS of the four pieces of an edge of macroblock `mb`, (x4, y4) its first 4x4 block; True if any is not 0.

    mb_p: the macroblock on the other side; the same for inner edges.
    """
    if is_intra(m.mb_type[mb]) or is_intra(m.mb_type[mb_p]):
        for k in range(4):
            strengths[k] = 4 if edge == 0 else 3
        return True
    any_piece = False
    for k in range(4):
        y_q, x_q = (y4 + k, x4 + edge) if vertical else (y4 + edge, x4 + k)
        y_p, x_p = (y_q, x_q - 1) if vertical else (y_q - 1, x_q)
        strength = 0
        if has_coefficients(m.nonzero, m.transform_8x8[mb], y_q, x_q):
            strength = 2
        elif has_coefficients(m.nonzero, m.transform_8x8[mb_p], y_p, x_p):
            strength = 2
        elif motion_differs(mv, ref_id, y_p, x_p, y_q, x_q):
            strength = 1
        strengths[k] = strength
        any_piece = any_piece or strength > 0
    return any_piece


@helper
def filter_line(plane, y, x, dy, dx, strength, luma, alpha, beta, tc0):
    """8.7.2.2 to 8.7.2.4: samples across an edge: q0 at (x, y), q1 at (x + dx, y + dy), p0 on the other side."""
    p0, p1 = np.int64(plane[y - dy, x - dx]), np.int64(plane[y - 2 * dy, x - 2 * dx])
    q0, q1 = np.int64(plane[y, x]), np.int64(plane[y + dy, x + dx])
    if abs(p0 - q0) >= alpha or abs(p1 - p0) >= beta or abs(q1 - q0) >= beta:
        return
    if not luma:
        if strength == 4:
            plane[y - dy, x - dx] = (2 * p1 + p0 + q1 + 2) >> 2
            plane[y, x] = (2 * q1 + q0 + p1 + 2) >> 2
        else:
            delta = clip3(-tc0 - 1, tc0 + 1, ((q0 - p0) * 4 + (p1 - q1) + 4) >> 3)
            plane[y - dy, x - dx] = clip1(p0 + delta)
            plane[y, x] = clip1(q0 - delta)
        return
    p2, q2 = np.int64(plane[y - 3 * dy, x - 3 * dx]), np.int64(plane[y + 2 * dy, x + 2 * dx])
    smooth_p, smooth_q = abs(p2 - p0) < beta, abs(q2 - q0) < beta
    if strength < 4:
        tc = tc0 + smooth_p + smooth_q
        delta = clip3(-tc, tc, ((q0 - p0) * 4 + (p1 - q1) + 4) >> 3)
        plane[y - dy, x - dx] = clip1(p0 + delta)
        plane[y, x] = clip1(q0 - delta)
        if smooth_p:
            plane[y - 2 * dy, x - 2 * dx] = p1 + clip3(-tc0, tc0, (p2 + ((p0 + q0 + 1) >> 1) - 2 * p1) >> 1)
        if smooth_q:
            plane[y + dy, x + dx] = q1 + clip3(-tc0, tc0, (q2 + ((p0 + q0 + 1) >> 1) - 2 * q1) >> 1)
        return
    close = abs(p0 - q0) < (alpha >> 2) + 2
    if smooth_p and close:
        p3 = np.int64(plane[y - 4 * dy, x - 4 * dx])
        plane[y - dy, x - dx] = (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3
        plane[y - 2 * dy, x - 2 * dx] = (p2 + p1 + p0 + q0 + 2) >> 2
        plane[y - 3 * dy, x - 3 * dx] = (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3
    else:
        plane[y - dy, x - dx] = (2 * p1 + p0 + q1 + 2) >> 2
    if smooth_q and close:
        q3 = np.int64(plane[y + 3 * dy, x + 3 * dx])
        plane[y, x] = (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3
        plane[y + dy, x + dx] = (p0 + q0 + q1 + q2 + 2) >> 2
        plane[y + 2 * dy, x + 2 * dx] = (2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3
    else:
        plane[y, x] = (2 * q1 + q0 + p1 + 2) >> 2


@helper
def filter_edge(plane, y0, x0, vertical, strengths, luma, qp, alpha_offset, beta_offset):
    """8.7.2: an edge of 16 luma or 8 chroma samples that begins at (x0, y0); qp: qPav of both sides."""
    outlined()
    index_a = clip3(0, 51, qp + alpha_offset)
    alpha, beta = np.int64(ALPHA[index_a]), np.int64(BETA[clip3(0, 51, qp + beta_offset)])
    if alpha == 0 or beta == 0:
        return
    dy, dx = (0, 1) if vertical else (1, 0)
    piece = 4 if luma else 2
    for k in range(4):
        strength = np.int64(strengths[k])
        if strength == 0:
            continue
        tc0 = np.int64(TC0[strength & 3, index_a])
        for i in range(k * piece, (k + 1) * piece):
            filter_line(plane, y0 + i * dx, x0 + i * dy, dy, dx, strength, luma, alpha, beta, tc0)


@helper
def chroma_qp(qp, offset):
    """8.5.8: QP_C of a QP_Y."""
    return np.int64(QP_CHROMA[clip3(0, 51, np.int64(qp) + offset)])


@helper
def deblock_edge(m, row, mb_p, mb, edge, vertical, y_plane, u_plane, v_plane, y0, x0, strengths):
    """8.7.1: luma and chroma of one edge of the macroblock at (x0, y0); row: its slice's row of the slice table."""
    alpha, beta = np.int64(row[SLICE_ALPHA]), np.int64(row[SLICE_BETA])
    offset_y, offset_x = (0, 4 * edge) if vertical else (4 * edge, 0)
    qp = (np.int64(m.qp[mb_p]) + np.int64(m.qp[mb]) + 1) >> 1
    filter_edge(y_plane, y0 + offset_y, x0 + offset_x, vertical, strengths, True, qp, alpha, beta)
    if edge & 1:
        return
    y, x = (y0 + offset_y) >> 1, (x0 + offset_x) >> 1
    for c in range(2):
        offset = np.int64(row[SLICE_CB + c])
        qp = (chroma_qp(m.qp[mb_p], offset) + chroma_qp(m.qp[mb], offset) + 1) >> 1
        filter_edge(u_plane if c == 0 else v_plane, y, x, vertical, strengths, False, qp, alpha, beta)


@kernel
def deblock_picture(m, slice_table, mb_width, planes, motion, slot):
    """8.7: all macroblocks of a picture in order of their addresses; slice_table int32[n_slices, N_SLICE_COLUMNS]."""
    y_plane, u_plane, v_plane = planes.y[slot], planes.u[slot], planes.v[slot]
    mv, ref_id = motion.mv[slot], motion.ref_id[slot]
    strengths = np.zeros(4, np.int64)
    for mb in range(m.mb_type.size):
        row = slice_table[m.slice_id[mb]]
        disable = row[SLICE_DISABLE]
        if disable == 1:
            continue
        y, x = mb // mb_width, mb % mb_width
        mb_type = m.mb_type[mb]
        whole = m.cbp[mb] & 15 == 0 and (mb_type == P_SKIP or mb_type == P_16x16 or mb_type == B_16x16)
        for direction in range(2):
            vertical = direction == 0
            step = 1 if vertical else mb_width
            outer = x > 0 if vertical else y > 0
            if outer and disable == 2:
                outer = m.slice_id[mb - step] == m.slice_id[mb]
            for edge in range(4):
                if edge == 0:
                    if not outer:
                        continue
                elif whole or (edge & 1 and m.transform_8x8[mb]):
                    continue
                mb_p = mb - step if edge == 0 else mb
                if edge_strengths(m, mv, ref_id, mb_p, mb, edge, vertical, 4 * y, 4 * x, strengths):
                    deblock_edge(
                        m, row, mb_p, mb, edge, vertical, y_plane, u_plane, v_plane, 16 * y, 16 * x, strengths
                    )
