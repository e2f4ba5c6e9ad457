"""8.7: the deblocking filter, macroblock by macroblock in raster order, in place on a finished picture.

Planes are flat here, uint8[H * W]; positions and steps in them are uint64, which spares the test for negative indices.
The bS of an edge's four pieces are one number of 4 bits each, the first piece lowest. A luma edge is filtered as eight
rows of 16 samples, p3 to q3, one column for each line across the edge: without branches, so that it becomes vectors.
"""

import numpy as np

from ..jit.intrinsics import inlined, outlined
from ..jit.kernel import closed_kernel, helper
from ..standard.sample_format import SAMPLE_MAX, Sample
from ..standard.tables import ALPHA, BETA, QP_CHROMA, TC0
from .layout import SLICE_ALPHA, SLICE_BETA, SLICE_CB, SLICE_DISABLE, is_intra, partition_size
from .unaligned import copy8, copy16, transpose_in, transpose_out

# bS 2 for the pieces whose bits are set, one bit a piece.
STRENGTHS_2 = np.array([sum(2 << 4 * k for k in range(4) if i >> k & 1) for i in range(16)], np.int64)


@helper
def clip3(low, high, value):
    """5.7: Clip3."""
    return min(high, max(low, value))


@helper
def one_vector(mb_type):
    """Whether all of a macroblock moves alike, by its type."""
    rows, columns = partition_size(mb_type)
    return rows + columns == 8


@helper
def far_apart(mv, p, q):
    """8.7.2.1: whether the vectors at mv[p] and mv[q] differ by a whole sample or more."""
    one = np.uint64(1)
    dx, dy = np.int64(mv[p]) - np.int64(mv[q]), np.int64(mv[p + one]) - np.int64(mv[q + one])
    return abs(dx) >= 4 or abs(dy) >= 4


@helper
def motion_differs(mv, ref_id, width, y_p, x_p, y_q, x_q):
    """8.7.2.1: whether 4x4 blocks p and q have other reference pictures, or vectors a sample or more apart (bS 1).

    mv int16[2 * H4 * W4 * 2], ref_id int32[2 * H8 * W8], flat; width: W4.
    """
    list1, half1 = np.uint64(mv.size >> 1), np.uint64(ref_id.size >> 1)
    p, q = np.uint64(2 * (y_p * width + x_p)), np.uint64(2 * (y_q * width + x_q))
    at_p = np.uint64((y_p >> 1) * (width >> 1) + (x_p >> 1))
    at_q = np.uint64((y_q >> 1) * (width >> 1) + (x_q >> 1))
    p0, p1, q0, q1 = ref_id[at_p], ref_id[at_p + half1], ref_id[at_q], ref_id[at_q + half1]
    if p0 == q0 and p1 == q1:
        if not ((p0 >= 0 and far_apart(mv, p, q)) or (p1 >= 0 and far_apart(mv, p + list1, q + list1))):
            return False
    if p0 == q1 and p1 == q0:
        return (p0 >= 0 and far_apart(mv, p, q + list1)) or (p1 >= 0 and far_apart(mv, p + list1, q))
    return True


@helper
def motion_pieces(mb_type, edge, vertical):
    """At how many pieces of an edge within a macroblock motion may change, by its type."""
    rows, columns = partition_size(mb_type)
    if rows + columns == 4:
        return 4
    return 1 if edge == 2 and (columns if vertical else rows) == 2 else 0


@helper
def coded_blocks(nonzero, transform_8x8, y4, x4):
    """8.7.2.1: bit 4 * y + x is set where the transform block with that 4x4 block of the macroblock has coefficients."""
    inlined()
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
def edge_strengths(mv, ref_id, width, coded_p, coded_q, edge, vertical, y4, x4, pieces):
    """8.7.2.1: bS of the pieces of an edge between inter blocks, (x4, y4) the first behind it.

    coded: of the macroblocks on both sides. pieces: at how many motion is looked at: 0 where it is the same on both
    sides, 1 where it is the same along the edge on either side, else 4.
    """
    inlined()
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
            differs = motion_differs(mv, ref_id, width, y - dy, x - dx, y, x)
        if differs and not bits >> k & 1:
            strengths |= 1 << 4 * k
    return strengths


@helper
def sample(lines, row, i):
    """The sample of a line, by row: 0 p3, 1 p2, ... 7 q3."""
    return np.int16(lines[np.uint64(16 * row + i)])


@helper
def near(a, b, limit):
    """Whether samples differ by less than `limit`."""
    return np.int16(abs(np.int16(a - b))) < limit


@helper
def strength_of(strengths, i, lines):
    """bS of line i of 16; `lines`: how many lines a piece has, 4 or 2."""
    shift = np.int16(i & 12 if lines == 4 else i << 1 & 12)
    return np.int16(np.int16(np.int16(strengths) >> shift) & np.int16(15))


@helper
def tc0_of(strength, thresholds):
    """8.7.2.3: tC0 for a bS of 1 to 3; -1 for 0."""
    _, _, of_1, of_2, of_3 = thresholds
    return of_3 if strength == 3 else of_2 if strength == 2 else of_1 if strength == 1 else np.int16(-1)


@helper
def filter_normal(lines, strengths, thresholds):
    """8.7.2.3: filtering with bS below 4, in place, of 16 lines."""
    outlined()
    alpha, beta = thresholds[0], thresholds[1]
    one, four = np.int16(1), np.int16(4)
    for i in range(16):
        p2, p1, p0 = sample(lines, 1, i), sample(lines, 2, i), sample(lines, 3, i)
        q0, q1, q2 = sample(lines, 4, i), sample(lines, 5, i), sample(lines, 6, i)
        tc0 = tc0_of(strength_of(strengths, i, 4), thresholds)
        on = (tc0 >= 0) & near(p0, q0, alpha) & near(p1, p0, beta) & near(q1, q0, beta)
        mask = np.int16(-np.int16(on))
        mask_p, mask_q = np.int16(-np.int16(near(p2, p0, beta))), np.int16(-np.int16(near(q2, q0, beta)))
        tc = np.int16(np.int16(tc0 - mask_p) - mask_q)
        delta = np.int16(np.int16(np.int16(q0 - p0) * four) + np.int16(np.int16(p1 - q1) + four))
        delta = np.int16(min(tc, max(np.int16(-tc), np.int16(delta >> 3))) & mask)
        middle = np.int16(np.int16(np.int16(p0 + q0) + one) >> 1)
        change_p = np.int16(np.int16(np.int16(p2 + middle) - np.int16(p1 + p1)) >> 1)
        change_q = np.int16(np.int16(np.int16(q2 + middle) - np.int16(q1 + q1)) >> 1)
        change_p = np.int16(min(tc0, max(np.int16(-tc0), change_p)) & np.int16(mask & mask_p))
        change_q = np.int16(min(tc0, max(np.int16(-tc0), change_q)) & np.int16(mask & mask_q))
        lines[np.uint64(i + 32)] = np.int16(p1 + change_p)
        lines[np.uint64(i + 48)] = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(p0 + delta)))
        lines[np.uint64(i + 64)] = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(q0 - delta)))
        lines[np.uint64(i + 80)] = np.int16(q1 + change_q)


@helper
def smoothed(strong, p3, p2, p1, p0, q0, q1):
    """8.7.2.4: p0, p1, p2 filtered, as one side of an edge of bS 4 with samples p3 to q1; without `strong` p0 alone."""
    if strong:
        total = np.int16(np.int16(p2 + p1) + np.int16(p0 + q0))
        a = np.int16(np.int16(total + total) + np.int16(np.int16(q1 - p2) + np.int16(4)))
        c = np.int16(np.int16(total + np.int16(p3 + p3)) + np.int16(np.int16(p2 + p2) + np.int16(4)))
        return np.int16(a >> 3), np.int16(np.int16(total + np.int16(2)) >> 2), np.int16(c >> 3)
    return np.int16(np.int16(np.int16(p1 + p1) + np.int16(np.int16(p0 + q1) + np.int16(2))) >> 2), p1, p2


@helper
def filter_strong(lines, alpha, beta):
    """8.7.2.4: filtering with bS 4, in place, of 16 lines."""
    outlined()
    for i in range(16):
        p3, p2, p1, p0 = sample(lines, 0, i), sample(lines, 1, i), sample(lines, 2, i), sample(lines, 3, i)
        q0, q1, q2, q3 = sample(lines, 4, i), sample(lines, 5, i), sample(lines, 6, i), sample(lines, 7, i)
        on = near(p0, q0, alpha) & near(p1, p0, beta) & near(q1, q0, beta)
        close = near(p0, q0, np.int16((alpha >> 2) + 2))
        a, b, c = smoothed(close & near(p2, p0, beta), p3, p2, p1, p0, q0, q1)
        d, e, f = smoothed(close & near(q2, q0, beta), q3, q2, q1, q0, p0, p1)
        lines[np.uint64(i + 16)] = c if on else p2
        lines[np.uint64(i + 32)] = b if on else p1
        lines[np.uint64(i + 48)] = a if on else p0
        lines[np.uint64(i + 64)] = d if on else q0
        lines[np.uint64(i + 80)] = e if on else q1
        lines[np.uint64(i + 96)] = f if on else q2


@helper
def filter_chroma_lines(lines, strengths, of_u, of_v):
    """8.7.2.3, 8.7.2.4: chroma filtering, in place, of 8 lines of Cb and 8 of Cr."""
    outlined()
    two, four = np.int16(2), np.int16(4)
    for i in range(16):
        p1, p0, q0, q1 = sample(lines, 2, i), sample(lines, 3, i), sample(lines, 4, i), sample(lines, 5, i)
        strength = strength_of(strengths, i, 2)
        tc0 = tc0_of(strength, of_u) if i < 8 else tc0_of(strength, of_v)
        alpha, beta = of_u[0] if i < 8 else of_v[0], of_u[1] if i < 8 else of_v[1]
        on = (strength > 0) & near(p0, q0, alpha) & near(p1, p0, beta) & near(q1, q0, beta)
        tc = np.int16(tc0 + np.int16(1))
        delta = np.int16(np.int16(np.int16(q0 - p0) * four) + np.int16(np.int16(p1 - q1) + four))
        delta = min(tc, max(np.int16(-tc), np.int16(delta >> 3)))
        new_p = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(p0 + delta)))
        new_q = min(np.int16(SAMPLE_MAX), max(np.int16(0), np.int16(q0 - delta)))
        if strength == 4:
            new_p = np.int16(np.int16(np.int16(p1 + p1) + np.int16(np.int16(p0 + q1) + two)) >> 2)
            new_q = np.int16(np.int16(np.int16(q1 + q1) + np.int16(np.int16(q0 + p1) + two)) >> 2)
        lines[np.uint64(i + 48)] = new_p if on else p0
        lines[np.uint64(i + 64)] = new_q if on else q0


@helper
def filter_luma(plane, start, across, along, strengths, thresholds, lines):
    """8.7.2: a luma edge of 16 lines; `start`: q0 of the first, p0 lies `across` before, the next line `along`.

    lines Sample[128]: scratch.
    """
    first = start - np.uint64(4) * across
    if across == 1:
        transpose_in(lines, plane, first, plane, first + np.uint64(8) * along, along)
    else:
        for row in range(8):
            copy16(lines, np.uint64(16 * row), plane, first + np.uint64(row) * across)
    if strengths == 0x4444:  # bS 4 is of whole edges
        filter_strong(lines, thresholds[0], thresholds[1])
    else:
        filter_normal(lines, strengths, thresholds)
    if across == 1:
        transpose_out(lines, plane, first, plane, first + np.uint64(8) * along, along)
    else:
        for row in range(1, 7):
            copy16(plane, first + np.uint64(row) * across, lines, np.uint64(16 * row))


@helper
def filter_chroma(u_plane, v_plane, start, across, along, strengths, of_u, of_v, lines):
    """8.7.2: an edge of 8 lines of Cb and of Cr, side by side; of_u, of_v: their thresholds; else as filter_luma."""
    eight = np.uint64(8)
    first = start - np.uint64(4) * across
    if across == 1:
        transpose_in(lines, u_plane, first, v_plane, first, along)
    else:
        for row in range(2, 6):
            at, to = first + np.uint64(row) * across, np.uint64(16 * row)
            copy8(lines, to, u_plane, at)
            copy8(lines, to + eight, v_plane, at)
    filter_chroma_lines(lines, strengths, of_u, of_v)
    if across == 1:
        transpose_out(lines, u_plane, first, v_plane, first, along)
    else:
        for row in range(3, 5):
            at, to = first + np.uint64(row) * across, np.uint64(16 * row)
            copy8(u_plane, at, lines, to)
            copy8(v_plane, at, lines, to + eight)


@helper
def edge_thresholds(row, qp):
    """8.7.2.2, 8.7.2.3: alpha, beta, and tC0 for a bS of 1, 2 and 3, for the mean QP of both sides."""
    index_a, index_b = clip3(0, 51, qp + np.int64(row[SLICE_ALPHA])), clip3(0, 51, qp + np.int64(row[SLICE_BETA]))
    tc0_1, tc0_2, tc0_3 = np.int16(TC0[1, index_a]), np.int16(TC0[2, index_a]), np.int16(TC0[3, index_a])
    return np.int16(ALPHA[index_a]), np.int16(BETA[index_b]), tc0_1, tc0_2, tc0_3


@helper
def chroma_qp(row, k, qp_p, qp_q):
    """8.5.8, 8.7.2.2: mean QP_C of both sides in plane k (0 Cb, 1 Cr)."""
    offset = np.int64(row[SLICE_CB + k])
    return (np.int64(QP_CHROMA[clip3(0, 51, qp_p + offset)]) + np.int64(QP_CHROMA[clip3(0, 51, qp_q + offset)]) + 1) >> 1


@helper
def deblock_edge(planes, row, qp_p, qp_q, edge, vertical, y0, x0, width, strengths, lines):
    """8.7.1: luma and chroma of one edge of the macroblock at (x0, y0); row: its slice's row of the slice table."""
    inlined()
    one, stride, half = np.uint64(1), np.uint64(width), np.uint64(width >> 1)
    y, x = (y0, x0 + 4 * edge) if vertical else (y0 + 4 * edge, x0)
    thresholds = edge_thresholds(row, qp_p + qp_q + 1 >> 1)
    if thresholds[0] and thresholds[1]:
        across, along = (one, stride) if vertical else (stride, one)
        filter_luma(planes[0], np.uint64(y * width + x), across, along, strengths, thresholds, lines)
    if edge & 1:
        return
    of_u = edge_thresholds(row, chroma_qp(row, 0, qp_p, qp_q))
    of_v = edge_thresholds(row, chroma_qp(row, 1, qp_p, qp_q))
    if (of_u[0] and of_u[1]) or (of_v[0] and of_v[1]):
        at = np.uint64((y >> 1) * (width >> 1) + (x >> 1))
        across, along = (one, half) if vertical else (half, one)
        filter_chroma(planes[1], planes[2], at, across, along, strengths, of_u, of_v, lines)


@helper
def keep_strengths(kept, strengths, vertical, y4, x4):
    """bS of an edge of a macroblock, whose first 4x4 block behind the edge is (x4, y4), for the observer."""
    for k in range(4):
        bs = strengths >> 4 * k & 15
        if vertical:
            kept[0, y4 + k, x4] = bs
        else:
            kept[1, y4, x4 + k] = bs


@closed_kernel
def deblock_picture(mbs, slice_table, mb_width, planes, motion, slot, kept):
    """8.7: all macroblocks of a picture in order of their addresses; slice_table int32[n_slices, N_SLICE_COLUMNS].

    mbs: slice_id, mb_type, cbp, qp, transform_8x8, nonzero of layout.Macroblocks. kept: Traces.strengths, or empty.
    """
    slice_id, mb_type, cbp, qp, transform_8x8, nonzero = mbs
    flat = (planes.y[slot].ravel(), planes.u[slot].ravel(), planes.v[slot].ravel())
    mv, ref_id = motion.mv[slot].ravel(), motion.ref_id[slot].ravel()
    lines = np.zeros(128, Sample)
    coded = np.zeros(mb_type.size, np.uint16)
    x = y = 0
    for mb in range(mb_type.size):
        row = slice_table[slice_id[mb]]
        disable = row[SLICE_DISABLE]
        mb_type_q = mb_type[mb]
        intra, alike = is_intra(mb_type_q), one_vector(mb_type_q)
        if cbp[mb] & 15 and not intra:
            coded[mb] = coded_blocks(nonzero, transform_8x8[mb], 4 * y, 4 * x)
        coded_q, qp_q = np.int64(coded[mb]), np.int64(qp[mb])
        for direction in range(0 if disable == 1 else 2):
            vertical = direction == 0
            for edge in range(1 if alike and coded_q == 0 else 4):
                mb_p, pieces = mb, motion_pieces(mb_type_q, edge, vertical)
                if edge == 0:
                    if (x if vertical else y) == 0:
                        continue
                    mb_p = mb - (1 if vertical else mb_width)
                    if disable == 2 and slice_id[mb_p] != slice_id[mb]:
                        continue
                    pieces = 1 if alike and one_vector(mb_type[mb_p]) else 4
                elif edge & 1 and transform_8x8[mb]:
                    continue
                y4, x4 = (4 * y, 4 * x + edge) if vertical else (4 * y + edge, 4 * x)
                if intra or is_intra(mb_type[mb_p]):
                    strengths = 0x4444 if edge == 0 else 0x3333
                else:
                    coded_p = np.int64(coded[mb_p])
                    strengths = edge_strengths(mv, ref_id, 4 * mb_width, coded_p, coded_q, edge, vertical, y4, x4, pieces)
                if kept.size:
                    keep_strengths(kept, strengths, vertical, y4, x4)
                if strengths:
                    deblock_edge(
                        flat, row, np.int64(qp[mb_p]), qp_q, edge, vertical, 16 * y, 16 * x, 16 * mb_width, strengths, lines
                    )
        x += 1
        if x == mb_width:
            x, y = 0, y + 1
