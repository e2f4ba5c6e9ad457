"""Deblocking filter (8.7) of any band of macroblock rows, from samples before deblocking into a second frame.

Edges of neighbouring rows that affect the band are filtered too, in scratch: all vertical edges, horizontal edges 2 and 3
of the macroblocks above, 0 and 1 of those below. The result is exact, so bands do not wait for each other.
"""
# Samples of 8 bits only: transposes of bytes.

import numpy as np

from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import I_PCM, LAST_INTRA
from ...standard.sample_format import MB_HEIGHT_C, MB_WIDTH_C, SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from ...standard.tables import ALPHA, BETA, QP_CHROMA, TC0
from ..bundles import Planes
from ..simd.blocks import (
    bit_and,
    choose,
    high_8,
    join,
    less,
    load_columns,
    low_8,
    min_s,
    spread_2,
    spread_4,
    store_columns,
)
from ..simd.lanes import equal_lanes, nonzero_lanes
from ..simd.vector import (
    absolute,
    add,
    clip_to_u8,
    load_like,
    load_u8x8,
    load_u8x16,
    max_s,
    plus,
    shift_left,
    shift_right_s,
    splat_i32x8,
    splat_u16x16,
    store,
    sub,
    widen,
)

# Table 8-17 by bS 0..4 and indexA; -1 for bS 0 (not filtered).
_TC0 = np.concatenate([np.full((1, 52), -1), TC0[1:], np.zeros((1, 52))]).astype(np.int64)


@helper
def _moved(ref_idx, mv, duplicates, mb_p, p, mb_q, q):
    """8.7.2.1: whether two 4x4 blocks (raster) have different references, or vectors at least 4 quarters apart.

    References are frames: the entries of RefPicList0 up to number `duplicates` are one.
    """
    ref_p = np.int64(ref_idx[mb_p, (p >> 3) * 2 + ((p >> 1) & 1)])
    ref_q = np.int64(ref_idx[mb_q, (q >> 3) * 2 + ((q >> 1) & 1)])
    if max(ref_p, duplicates) != max(ref_q, duplicates):
        return True
    return (
        abs(np.int32(mv[mb_p, p, 0]) - np.int32(mv[mb_q, q, 0])) >= 4
        or abs(np.int32(mv[mb_p, p, 1]) - np.int32(mv[mb_q, q, 1])) >= 4
    )


@helper
def _frame_of(ref_idx, first, slots, mb, block):
    """Slot of the reference of a 4x4 block (raster) in the list whose entries begin at slots[first]; -1: none."""
    ref = np.int64(ref_idx[mb, (block >> 3) * 2 + ((block >> 1) & 1)])
    return np.int64(slots[first + ref]) if ref >= 0 else np.int64(-1)


@helper
def _apart(mv_p, mb_p, p, mv_q, mb_q, q):
    """8.7.2.1: whether the vectors of two 4x4 blocks are at least 4 quarters apart."""
    return (
        abs(np.int32(mv_p[mb_p, p, 0]) - np.int32(mv_q[mb_q, q, 0])) >= 4
        or abs(np.int32(mv_p[mb_p, p, 1]) - np.int32(mv_q[mb_q, q, 1])) >= 4
    )


@helper
def _moved_in_lists(data, mb_p, p, mb_q, q):
    """8.7.2.1: as _moved with both lists: other reference frames or numbers of vectors, or vectors apart.

    Frames are compared, whichever list they come from; the vector of an unused list is 0.
    """
    p0, p1 = _frame_of(data.ref_idx, 0, data.slots, mb_p, p), _frame_of(data.ref_idx1, data.n_ref, data.slots, mb_p, p)
    q0, q1 = _frame_of(data.ref_idx, 0, data.slots, mb_q, q), _frame_of(data.ref_idx1, data.n_ref, data.slots, mb_q, q)
    if not ((p0 == q0 and p1 == q1) or (p0 == q1 and p1 == q0)):
        return True
    straight = _apart(data.mv, mb_p, p, data.mv, mb_q, q) or _apart(data.mv1, mb_p, p, data.mv1, mb_q, q)
    crossed = _apart(data.mv, mb_p, p, data.mv1, mb_q, q) or _apart(data.mv1, mb_p, p, data.mv, mb_q, q)
    if p0 == p1:
        return straight and crossed
    return straight if p0 == q0 else crossed


@helper
def _moved_between(data, mb_p, p, mb_q, q):
    """8.7.2.1: _moved or, in frames with two lists, _moved_in_lists."""
    if data.n_ref1:
        return _moved_in_lists(data, mb_p, p, mb_q, q)
    return _moved(data.ref_idx, data.mv, data.duplicates, mb_p, p, mb_q, q)


@helper
def _is_uniform(ref_idx, mv, mb):
    """Whether the blocks of macroblock mb all have the same entry and vector in a list."""
    vector = splat_i32x8((np.int64(mv[mb, 0, 0]) & 0xFFFF) | np.int64(mv[mb, 0, 1]) << 16)
    same = equal_lanes(load_like(vector, mv, 32 * mb), vector) & equal_lanes(load_like(vector, mv, 32 * mb + 16), vector)
    entries = (ref_idx[mb, 0] == ref_idx[mb, 1]) & (ref_idx[mb, 0] == ref_idx[mb, 2]) & (ref_idx[mb, 0] == ref_idx[mb, 3])
    return same == 255 and entries


@helper
def _moves_as_one(data, mb):
    """Whether the blocks of an inter macroblock all have the same motion: no edge between them has bS 1."""
    if not _is_uniform(data.ref_idx, data.mv, mb):
        return False
    if data.n_ref1:
        return _is_uniform(data.ref_idx1, data.mv1, mb)
    return True


@helper
def _coded_blocks(total_coeff, transform_8x8, mb):
    """8.7.2.1: bit mask (raster) of the 4x4 blocks of macroblock mb whose transform block has levels."""
    coded = nonzero_lanes(total_coeff, 24 * mb)
    if transform_8x8[mb]:
        quadrants = (coded | coded >> 1 | coded >> 4 | coded >> 5) & 0x0505  # bits 0, 2, 8, 10
        coded = quadrants * 0x33
    return coded


@helper
def strengths(mb, mb_width, strength_data, left, top, bs):
    """8.7.2.1: bS of the macroblock's luma edges into bs uint8[32]: edge * 4 + k, vertical edges first.

    k counts 4x4 blocks along the edge; `left`, `top`: whether those macroblock edges are filtered at all. With
    transform_size_8x8_flag edges 1 and 3, which chroma has not, are no edges of transform blocks (8.7).
    """
    inlined()
    mb_type, total_coeff, transform_8x8 = strength_data.mb_type, strength_data.total_coeff, strength_data.transform_8x8
    for i in range(32):
        bs[i] = 0
    intra = mb_type[mb] <= LAST_INTRA
    every = 2 if transform_8x8[mb] else 1
    coded_q = _coded_blocks(total_coeff, transform_8x8, mb)
    one_q = not intra and _moves_as_one(strength_data, mb)
    for direction in range(2):
        mb_before = mb - 1 if direction == 0 else mb - mb_width
        for edge in range(0, 4, every):
            at = 16 * direction + 4 * edge
            mb_p, coded_p, one = mb, coded_q, one_q
            if edge == 0:
                if not (left if direction == 0 else top):
                    continue
                mb_p = mb_before
                if intra or mb_type[mb_p] <= LAST_INTRA:
                    for k in range(4):
                        bs[at + k] = 4
                    continue
                coded_p = _coded_blocks(total_coeff, transform_8x8, mb_p)
                one = one_q and _moves_as_one(strength_data, mb_p)
            elif intra:
                for k in range(4):
                    bs[at + k] = 3
                continue
            moved = one and edge == 0 and _moved_between(strength_data, mb_p, 0, mb, 0)
            if one and not moved and coded_q | coded_p == 0:
                continue
            for k in range(4):
                q = 4 * k + edge if direction == 0 else 4 * edge + k
                step = 1 if direction == 0 else 4
                p = q - step if edge > 0 else q + 3 * step
                if (coded_q >> q | coded_p >> p) & 1:
                    bs[at + k] = 2
                else:
                    bs[at + k] = moved if one else _moved_between(strength_data, mb_p, p, mb, q)


@helper
def _clip(x, limit):
    """Clip3(-limit, limit, x)."""
    return min_s(max_s(x, sub(splat_u16x16(0), limit)), limit)


@helper
def _mask(p1, p0, q0, q1, alpha, beta):
    """8.7.2.2: filterSamplesFlag without the condition on bS."""
    inside = bit_and(less(absolute(sub(p1, p0)), beta), less(absolute(sub(q1, q0)), beta))
    return bit_and(inside, less(absolute(sub(p0, q0)), alpha))


@helper
def _delta(p1, p0, q0, q1, tc):
    """8.7.2.3: the change of p0 and q0."""
    return _clip(shift_right_s(plus(add(shift_left(sub(q0, p0), 2), sub(p1, q1)), 4), 3), tc)


@helper
def _normal(p2, p1, p0, q0, q1, q2, mask, beta, tc0):
    """8.7.2.3 for luma: sixteen lines with bS below 4, tc0 -1 where bS is 0; returns p1, p0, q0, q1."""
    mask = bit_and(mask, less(splat_u16x16(-1), tc0))
    near_p, near_q = less(absolute(sub(p2, p0)), beta), less(absolute(sub(q2, q0)), beta)
    delta = _delta(p1, p0, q0, q1, bit_and(mask, sub(sub(tc0, near_p), near_q)))
    middle = shift_right_s(plus(add(p0, q0), 1), 1)
    delta_p = _clip(shift_right_s(sub(add(p2, middle), add(p1, p1)), 1), bit_and(bit_and(mask, near_p), tc0))
    delta_q = _clip(shift_right_s(sub(add(q2, middle), add(q1, q1)), 1), bit_and(bit_and(mask, near_q), tc0))
    return add(p1, delta_p), add(p0, delta), sub(q0, delta), add(q1, delta_q)


@helper
def _strong(p3, p2, p1, p0, q0, q1, mask, near, flat):
    """8.7.2.4 for one side of sixteen luma lines, bS 4: returns p2, p1, p0; near: ap < beta, flat: p0 close to q0."""
    smooth = bit_and(mask, bit_and(near, flat))
    sum3 = add(add(p1, p0), q0)
    new_p2 = shift_right_s(plus(add(add(shift_left(p3, 1), add(add(p2, p2), p2)), sum3), 4), 3)
    new_p1 = shift_right_s(plus(add(p2, sum3), 2), 2)
    new_p0 = shift_right_s(plus(add(add(p2, q1), shift_left(sum3, 1)), 4), 3)
    weak_p0 = shift_right_s(plus(add(add(p1, p1), add(p0, q1)), 2), 2)
    return choose(smooth, new_p2, p2), choose(smooth, new_p1, p1), choose(smooth, new_p0, choose(mask, weak_p0, p0))


@helper
def _luma(c0, c1, c2, c3, c4, c5, c6, c7, strong, tc0, alpha, beta):
    """8.7.2.2 - 8.7.2.4: the six inner samples p2..q2 of sixteen luma lines p3..q3 (u8x16 each)."""
    p3, p2, p1, p0 = widen(c0), widen(c1), widen(c2), widen(c3)
    q0, q1, q2, q3 = widen(c4), widen(c5), widen(c6), widen(c7)
    wide_beta = splat_u16x16(beta)
    mask = _mask(p1, p0, q0, q1, splat_u16x16(alpha), wide_beta)
    if strong:
        flat = less(absolute(sub(p0, q0)), splat_u16x16((alpha >> 2) + 2))
        near_p, near_q = less(absolute(sub(p2, p0)), wide_beta), less(absolute(sub(q2, q0)), wide_beta)
        new_p2, new_p1, new_p0 = _strong(p3, p2, p1, p0, q0, q1, mask, near_p, flat)
        new_q2, new_q1, new_q0 = _strong(q3, q2, q1, q0, p0, p1, mask, near_q, flat)
        return (
            clip_to_u8(new_p2), clip_to_u8(new_p1), clip_to_u8(new_p0),
            clip_to_u8(new_q0), clip_to_u8(new_q1), clip_to_u8(new_q2),
        )  # fmt: skip
    new_p1, new_p0, new_q0, new_q1 = _normal(p2, p1, p0, q0, q1, q2, mask, wide_beta, tc0)
    return c1, clip_to_u8(new_p1), clip_to_u8(new_p0), clip_to_u8(new_q0), clip_to_u8(new_q1), c6


@helper
def _chroma(c0, c1, c2, c3, strong, tc0, alpha, beta):
    """8.7.2.2 - 8.7.2.4 for chroma: p0 and q0 of eight Cb and eight Cr lines p1 p0 q0 q1 (u8x16 each)."""
    p1, p0, q0, q1 = widen(c0), widen(c1), widen(c2), widen(c3)
    mask = _mask(p1, p0, q0, q1, splat_u16x16(alpha), splat_u16x16(beta))
    if strong:
        new_p0 = shift_right_s(plus(add(add(p1, p1), add(p0, q1)), 2), 2)
        new_q0 = shift_right_s(plus(add(add(q1, q1), add(q0, p1)), 2), 2)
        return clip_to_u8(choose(mask, new_p0, p0)), clip_to_u8(choose(mask, new_q0, q0))
    delta = _delta(p1, p0, q0, q1, bit_and(mask, plus(tc0, 1)))
    return clip_to_u8(add(p0, delta)), clip_to_u8(sub(q0, delta))


@helper
def _luma_edge(y, at, stride, vertical, strong, tc0, alpha, beta):
    """One luma edge of sixteen lines, in place; q0 of the first one at y[at]."""
    if vertical:
        low = at + 8 * stride - 4
        c0, c1, c2, c3, c4, c5, c6, c7 = load_columns(y, at - 4, y, low, stride)
        c1, c2, c3, c4, c5, c6 = _luma(c0, c1, c2, c3, c4, c5, c6, c7, strong, tc0, alpha, beta)
        store_columns(y, at - 4, y, low, stride, (c0, c1, c2, c3, c4, c5, c6, c7))
    else:
        c0, c1 = load_u8x16(y, at - 4 * stride), load_u8x16(y, at - 3 * stride)
        c2, c3 = load_u8x16(y, at - 2 * stride), load_u8x16(y, at - stride)
        c4, c5 = load_u8x16(y, at), load_u8x16(y, at + stride)
        c6, c7 = load_u8x16(y, at + 2 * stride), load_u8x16(y, at + 3 * stride)
        c1, c2, c3, c4, c5, c6 = _luma(c0, c1, c2, c3, c4, c5, c6, c7, strong, tc0, alpha, beta)
        store(y, at - 3 * stride, c1)
        store(y, at - 2 * stride, c2)
        store(y, at - stride, c3)
        store(y, at, c4)
        store(y, at + stride, c5)
        store(y, at + 2 * stride, c6)


@helper
def _chroma_edge(u, v, at, stride, vertical, strong, tc0, alpha, beta):
    """The same edge of both chroma planes, eight lines each, in place; q0 of the first one at `at`."""
    if vertical:
        c0, c1, c2, c3, c4, c5, c6, c7 = load_columns(u, at - 4, v, at - 4, stride)
        c3, c4 = _chroma(c2, c3, c4, c5, strong, tc0, alpha, beta)
        store_columns(u, at - 4, v, at - 4, stride, (c0, c1, c2, c3, c4, c5, c6, c7))
    else:
        p1 = join(load_u8x8(u, at - 2 * stride), load_u8x8(v, at - 2 * stride))
        p0 = join(load_u8x8(u, at - stride), load_u8x8(v, at - stride))
        q0 = join(load_u8x8(u, at), load_u8x8(v, at))
        q1 = join(load_u8x8(u, at + stride), load_u8x8(v, at + stride))
        p0, q0 = _chroma(p1, p0, q0, q1, strong, tc0, alpha, beta)
        store(u, at - stride, low_8(p0))
        store(v, at - stride, high_8(p0))
        store(u, at, low_8(q0))
        store(v, at, high_8(q0))


@helper
def _filter_macroblock(planes, at_y, at_c, stride, edge0, edge1, mb, mb_width, mb_type, quantiser, deblocking, bs):
    """8.7.1: one macroblock's vertical edges, then its horizontal edges edge0..edge1 - 1.

    Planes flat, luma row stride `stride`, chroma half of it; the macroblock starts at y[at_y], u[at_c], v[at_c].
    """
    inlined()
    qp, chroma_qp_offset = quantiser.qp, quantiser.chroma_offset
    alpha_offset, beta_offset = deblocking.alpha_offset, deblocking.beta_offset
    qp_q = np.int64(qp[mb]) if mb_type[mb] != I_PCM else 0
    chroma_q = np.int64(QP_CHROMA[min(51, max(0, qp_q + chroma_qp_offset))])
    half = stride // SUB_WIDTH_C
    for direction in range(2):
        vertical = direction == 0
        for edge in range(0 if vertical else edge0, 4 if vertical else edge1):
            k = 16 * direction + 4 * edge
            b0, b1, b2, b3 = np.int64(bs[k]), np.int64(bs[k + 1]), np.int64(bs[k + 2]), np.int64(bs[k + 3])
            if b0 + b1 + b2 + b3 == 0:
                continue
            strong = b0 == 4  # if one bS is 4, all four of the edge are
            average, average_c = qp_q, chroma_q
            if edge == 0:
                mb_p = mb - 1 if vertical else mb - mb_width
                qp_p = np.int64(qp[mb_p]) if mb_type[mb_p] != I_PCM else 0
                average = (qp_p + qp_q + 1) >> 1
                average_c = (np.int64(QP_CHROMA[min(51, max(0, qp_p + chroma_qp_offset))]) + chroma_q + 1) >> 1
            a = min(51, max(0, average + alpha_offset))
            alpha, beta = np.int64(ALPHA[a]), np.int64(BETA[min(51, max(0, average + beta_offset))])
            if alpha > 0 and beta > 0:
                tc0 = spread_4(_TC0[b0, a], _TC0[b1, a], _TC0[b2, a], _TC0[b3, a])
                step = 4 * edge if vertical else 4 * edge * stride
                _luma_edge(planes.y, at_y + step, stride, vertical, strong, tc0, alpha, beta)
            if edge & 1:
                continue
            a = min(51, max(0, average_c + alpha_offset))
            alpha, beta = np.int64(ALPHA[a]), np.int64(BETA[min(51, max(0, average_c + beta_offset))])
            if alpha > 0 and beta > 0:
                tc0 = spread_2(_TC0[b0, a], _TC0[b1, a], _TC0[b2, a], _TC0[b3, a])
                step = 2 * edge if vertical else 2 * edge * half
                _chroma_edge(planes.u, planes.v, at_c + step, half, vertical, strong, tc0, alpha, beta)


@helper
def _copy(plane, y0, flat):
    """Rows of a plane from y0 on, whose width is a multiple of 8, into a flat array."""
    width = plane.shape[1]
    for i in range(0, flat.size, 8):
        store(flat, i, load_u8x8(plane, y0 * width + i))


@helper
def _copy_back(flat, y0, first, end, width, out):
    """Copies rows [first, end) of the plane from `flat`, which begins at row y0, into out, a view of any row stride."""
    stride = out.strides[0]
    for i in range(first, end):
        for j in range(0, width, 8):
            store(out, i * stride + j, load_u8x8(flat, (i - y0) * width + j))


@closed_kernel
def deblock(rec, strength_data, quantiser, deblocking, slice_first_mb, row0, row1, out):
    """8.7: deblocks macroblock rows [row0, row1) of the frame rec into the same rows of out.

    Bundles: Planes rec, not changed, and out; StrengthData, Quantiser, Deblocking. Any split of a frame into bands gives the
    same samples.
    """
    height, width = rec.y.shape
    mb_width, mb_height = width // 16, height // 16
    mb_type = strength_data.mb_type
    disable_idc = deblocking.disable_idc
    y0 = max(0, 16 * (row0 - 1))
    y1 = min(height, 16 * (row1 + 1))
    size = (y1 - y0) * width
    size_c = size // (SUB_WIDTH_C * SUB_HEIGHT_C)
    planes = Planes(np.empty(size, Sample), np.empty(size_c, Sample), np.empty(size_c, Sample))
    _copy(rec.y, y0, planes.y)
    _copy(rec.u, y0 // SUB_HEIGHT_C, planes.u)
    _copy(rec.v, y0 // SUB_HEIGHT_C, planes.v)
    bs = np.zeros(32, np.uint8)
    for my in range(max(0, row0 - 1), min(mb_height, row1 + 1)):
        if disable_idc == 1:
            break
        edge0 = 2 if my < row0 else 0
        edge1 = 2 if my >= row1 else 4
        for mx in range(mb_width):
            mb = my * mb_width + mx
            top = my > 0 and (disable_idc == 0 or mb - mb_width >= slice_first_mb[mb])
            left = mx > 0 and (disable_idc == 0 or mb > slice_first_mb[mb])
            strengths(mb, mb_width, strength_data, left, top, bs)
            at_y = (16 * my - y0) * width + 16 * mx
            at_c = (MB_HEIGHT_C * my - y0 // SUB_HEIGHT_C) * (width // SUB_WIDTH_C) + MB_WIDTH_C * mx
            _filter_macroblock(planes, at_y, at_c, width, edge0, edge1, mb, mb_width, mb_type, quantiser, deblocking, bs)
    _copy_back(planes.y, y0, 16 * row0, 16 * row1, width, out.y)
    y0, first, end = y0 // SUB_HEIGHT_C, MB_HEIGHT_C * row0, MB_HEIGHT_C * row1
    _copy_back(planes.u, y0, first, end, width // SUB_WIDTH_C, out.u)
    _copy_back(planes.v, y0, first, end, width // SUB_WIDTH_C, out.v)
