"""Deblocking (8.7) of any band of macroblock rows, from samples that are not deblocked yet, into a second picture.

The lines of the neighbouring rows that reach into the band are filtered too, in scratch: rows 6..15 with edges 2 and 3
of the macroblocks above, rows 0..5 with edges 0 and 1 of those below. That is exact: bands need not wait.
"""

import numpy as np

from ..standard.jit import kernel
from ..standard.macroblock import I_PCM
from ..standard.tables import ALPHA, BETA, QP_CHROMA, TC0
from .vector import load_u8x8, store

# Samples of luma rows beside a band that are copied with it: 10 above, 6 below (multiples of 2, for chroma).
ABOVE, BELOW = 10, 6


@kernel
def _moved(ref_idx, mv, mb_p, p, mb_q, q):
    """8.7.2.1: whether two 4x4 blocks (raster) have different references, or vectors at least 4 quarters apart."""
    if ref_idx[mb_p, (p >> 3) * 2 + ((p >> 1) & 1)] != ref_idx[mb_q, (q >> 3) * 2 + ((q >> 1) & 1)]:
        return True
    return (
        abs(np.int32(mv[mb_p, p, 0]) - np.int32(mv[mb_q, q, 0])) >= 4
        or abs(np.int32(mv[mb_p, p, 1]) - np.int32(mv[mb_q, q, 1])) >= 4
    )


@kernel
def strengths(mb, mb_width, mb_type, ref_idx, mv, total_coeff, left, top, bs):
    """8.7.2.1: bS of the macroblock's edges into bs uint8[32]: edge * 4 + k, vertical edges first.

    k counts 4x4 blocks along the edge; `left`, `top`: whether those macroblock edges are filtered at all.
    """
    for i in range(32):
        bs[i] = 0
    intra = mb_type[mb] <= I_PCM
    for direction in range(2):
        mb_before = mb - 1 if direction == 0 else mb - mb_width
        for edge in range(4):
            at = 16 * direction + 4 * edge
            mb_p = mb
            if edge == 0:
                if not (left if direction == 0 else top):
                    continue
                mb_p = mb_before
                if intra or mb_type[mb_p] <= I_PCM:
                    for k in range(4):
                        bs[at + k] = 4
                    continue
            elif intra:
                for k in range(4):
                    bs[at + k] = 3
                continue
            for k in range(4):
                q = 4 * k + edge if direction == 0 else 4 * edge + k
                step = 1 if direction == 0 else 4
                p = q - step if edge > 0 else q + 3 * step
                if total_coeff[mb, q] != 0 or total_coeff[mb_p, p] != 0:
                    bs[at + k] = 2
                elif _moved(ref_idx, mv, mb_p, p, mb, q):
                    bs[at + k] = 1


@kernel
def _filter_luma(s, at, across, along, first, end, bs, bs_at, index_a, alpha, beta):
    """8.7.2.2 - 8.7.2.4: lines first..end - 1 of one luma edge; s uint8[...] flat, q0 of line 0 at `at`."""
    for k in range(first, end):
        strength = np.int32(bs[bs_at + (k >> 2)])
        if strength == 0:
            continue
        i = at + k * along
        p0, p1 = np.int32(s[i - across]), np.int32(s[i - 2 * across])
        q0, q1 = np.int32(s[i]), np.int32(s[i + across])
        if abs(p0 - q0) >= alpha or abs(p1 - p0) >= beta or abs(q1 - q0) >= beta:
            continue
        p2, q2 = np.int32(s[i - 3 * across]), np.int32(s[i + 2 * across])
        near_p, near_q = abs(p2 - p0) < beta, abs(q2 - q0) < beta
        if strength < 4:
            tc0 = np.int32(TC0[strength, index_a])
            tc = tc0 + near_p + near_q
            delta = min(tc, max(-tc, (((q0 - p0) << 2) + (p1 - q1) + 4) >> 3))
            s[i - across] = min(255, max(0, p0 + delta))
            s[i] = min(255, max(0, q0 - delta))
            if near_p:
                s[i - 2 * across] = p1 + min(tc0, max(-tc0, (p2 + ((p0 + q0 + 1) >> 1) - (p1 << 1)) >> 1))
            if near_q:
                s[i + across] = q1 + min(tc0, max(-tc0, (q2 + ((p0 + q0 + 1) >> 1) - (q1 << 1)) >> 1))
        else:
            strong = abs(p0 - q0) < (alpha >> 2) + 2
            if near_p and strong:
                p3 = np.int32(s[i - 4 * across])
                s[i - across] = (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3
                s[i - 2 * across] = (p2 + p1 + p0 + q0 + 2) >> 2
                s[i - 3 * across] = (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3
            else:
                s[i - across] = (2 * p1 + p0 + q1 + 2) >> 2
            if near_q and strong:
                q3 = np.int32(s[i + 3 * across])
                s[i] = (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3
                s[i + across] = (p0 + q0 + q1 + q2 + 2) >> 2
                s[i + 2 * across] = (2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3
            else:
                s[i] = (2 * q1 + q0 + p1 + 2) >> 2


@kernel
def _filter_chroma(s, at, across, along, first, end, bs, bs_at, index_a, alpha, beta):
    """8.7.2.2 - 8.7.2.4 for chroma: lines first..end - 1 of one edge, two lines to a bS; s uint8[...] flat."""
    for k in range(first, end):
        strength = np.int32(bs[bs_at + (k >> 1)])
        if strength == 0:
            continue
        i = at + k * along
        p0, p1 = np.int32(s[i - across]), np.int32(s[i - 2 * across])
        q0, q1 = np.int32(s[i]), np.int32(s[i + across])
        if abs(p0 - q0) >= alpha or abs(p1 - p0) >= beta or abs(q1 - q0) >= beta:
            continue
        if strength < 4:
            tc = np.int32(TC0[strength, index_a]) + 1
            delta = min(tc, max(-tc, (((q0 - p0) << 2) + (p1 - q1) + 4) >> 3))
            s[i - across] = min(255, max(0, p0 + delta))
            s[i] = min(255, max(0, q0 - delta))
        else:
            s[i - across] = (2 * p1 + p0 + q1 + 2) >> 2
            s[i] = (2 * q1 + q0 + p1 + 2) >> 2


@kernel
def _filter_macroblock(
    y, u, v, at_y, at_c, stride, first, end, edge0, edge1, mb, mb_width, mb_type, qp, chroma_qp_offset, alpha_offset,
    beta_offset, bs,
):  # fmt: skip
    """8.7.1: one macroblock's vertical edges on luma rows first..end - 1, then its horizontal edges edge0..edge1 - 1.

    Planes flat, luma row stride `stride`, chroma half of it; the macroblock starts at y[at_y], u[at_c], v[at_c].
    """
    qp_q = np.int32(qp[mb]) if mb_type[mb] != I_PCM else np.int32(0)
    chroma_q = QP_CHROMA[min(51, max(0, qp_q + chroma_qp_offset))]
    half = stride // 2
    for direction in range(2):
        across = 1 if direction == 0 else stride
        along = stride if direction == 0 else 1
        across_c = 1 if direction == 0 else half
        along_c = half if direction == 0 else 1
        a, b = (0, 4) if direction == 0 else (edge0, edge1)
        line0, line1 = (first, end) if direction == 0 else (0, 16)
        for edge in range(a, b):
            bs_at = 16 * direction + 4 * edge
            if bs[bs_at] | bs[bs_at + 1] | bs[bs_at + 2] | bs[bs_at + 3] == 0:
                continue
            average, average_c = qp_q, chroma_q
            if edge == 0:
                mb_p = mb - 1 if direction == 0 else mb - mb_width
                qp_p = np.int32(qp[mb_p]) if mb_type[mb_p] != I_PCM else np.int32(0)
                average = (qp_p + qp_q + 1) >> 1
                average_c = (QP_CHROMA[min(51, max(0, qp_p + chroma_qp_offset))] + chroma_q + 1) >> 1
            index_a = min(51, max(0, average + alpha_offset))
            beta = BETA[min(51, max(0, average + beta_offset))]
            if ALPHA[index_a] > 0 and beta > 0:
                _filter_luma(
                    y, at_y + 4 * edge * across, across, along, line0, line1, bs, bs_at, index_a, ALPHA[index_a], beta
                )
            if edge & 1:
                continue
            index_a = min(51, max(0, average_c + alpha_offset))
            alpha, beta = ALPHA[index_a], BETA[min(51, max(0, average_c + beta_offset))]
            if alpha > 0 and beta > 0:
                at = at_c + 2 * edge * across_c
                _filter_chroma(u, at, across_c, along_c, line0 // 2, line1 // 2, bs, bs_at, index_a, alpha, beta)
                _filter_chroma(v, at, across_c, along_c, line0 // 2, line1 // 2, bs, bs_at, index_a, alpha, beta)


@kernel
def _copy(plane, y0, y1):
    """Rows [y0, y1) of a plane, whose width is a multiple of 8, as a flat array."""
    width = plane.shape[1]
    flat = np.empty((y1 - y0) * width, np.uint8)
    for i in range(0, (y1 - y0) * width, 8):
        store(flat, i, load_u8x8(plane, y0 * width + i))
    return flat


@kernel
def _copy_back(flat, y0, first, end, width, out):
    """Rows [first, end) of the picture from `flat`, which begins at row y0, into out, a view of any row stride."""
    stride = out.strides[0]
    for i in range(first, end):
        for j in range(0, width, 8):
            store(out, i * stride + j, load_u8x8(flat, (i - y0) * width + j))


@kernel
def deblock(
    rec_y, rec_u, rec_v, mb_type, ref_idx, mv, total_coeff, qp, chroma_qp_offset, alpha_offset, beta_offset,
    disable_idc, slice_first_mb, row0, row1, out_y, out_u, out_v,
):  # fmt: skip
    """8.7: deblocks macroblock rows [row0, row1) of the picture rec_* into the same rows of out_*.

    rec_* uint8[H, W], not changed; out_* uint8, may be views with a longer row. alpha_offset, beta_offset:
    FilterOffsetA and B; disable_idc: disable_deblocking_filter_idc. Any split of a picture gives the same samples.
    """
    height, width = rec_y.shape
    mb_width, mb_height = width // 16, height // 16
    y0 = max(0, 16 * row0 - ABOVE)
    y1 = min(height, 16 * row1 + BELOW)
    y = _copy(rec_y, y0, y1)
    u = _copy(rec_u, y0 // 2, y1 // 2)
    v = _copy(rec_v, y0 // 2, y1 // 2)
    bs = np.zeros(32, np.uint8)
    for my in range(max(0, row0 - 1), min(mb_height, row1 + 1)):
        if disable_idc == 1:
            break
        first = 16 - ABOVE if my < row0 else 0
        end = BELOW if my >= row1 else 16
        edge0 = 2 if my < row0 else 0
        edge1 = 2 if my >= row1 else 4
        for mx in range(mb_width):
            mb = my * mb_width + mx
            top = my > 0 and (disable_idc == 0 or mb - mb_width >= slice_first_mb[my])
            strengths(mb, mb_width, mb_type, ref_idx, mv, total_coeff, mx > 0, top, bs)
            at_y = (16 * my - y0) * width + 16 * mx
            at_c = (8 * my - y0 // 2) * (width // 2) + 8 * mx
            _filter_macroblock(
                y, u, v, at_y, at_c, width, first, end, edge0, edge1, mb, mb_width, mb_type, qp, chroma_qp_offset,
                alpha_offset, beta_offset, bs,
            )  # fmt: skip
    _copy_back(y, y0, 16 * row0, 16 * row1, width, out_y)
    _copy_back(u, y0 // 2, 8 * row0, 8 * row1, width // 2, out_u)
    _copy_back(v, y0 // 2, 8 * row0, 8 * row1, width // 2, out_v)
