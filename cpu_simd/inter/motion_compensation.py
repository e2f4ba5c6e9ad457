"""Inter prediction of the samples of a macroblock from the reference pool (8.4.2)."""
# Samples of 8 bits only: weighted in 16 bits.

import numpy as np

from ...jit.kernel import helper
from ...standard.macroblock import P_8x8, P_8x16, P_16x8
from ...standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C
from ...standard.tables import QUARTER_SAMPLE_PAIRS
from ..layout import AVERAGE
from ..simd.blocks import high_8, join, low_2, low_4, low_8
from ..simd.vector import (
    add,
    average,
    clip_to_u8,
    load_u8x8,
    load_u8x16,
    mul,
    plus,
    prefetch,
    shift_right_s,
    splat_like,
    splat_u16x16,
    store,
    widen,
)
from .weighting import any_weights, weigh_prediction


@helper
def _store_row(out, at, row, width):
    """Stores the first `width` (16, 8 or 4) samples of a row."""
    if width == 16:
        store(out, at, row)
    elif width == 8:
        store(out, at, low_8(row))
    else:
        store(out, at, low_4(row))


@helper
def _luma_pair(luma, slot, pad, x, y, h, mvx, mvy):
    """8.4.2.2.1: offsets in `luma` of the two blocks of h rows whose mean is the prediction; see _predict_luma."""
    height, width = luma.shape[2], luma.shape[3]
    x0 = min(width - 17, max(0, x + pad + (mvx >> 2)))
    y0 = min(height - h - 1, max(0, y + pad + (mvy >> 2)))
    pair = 4 * (mvy & 3) + (mvx & 3)
    planes = 4 * slot * height * width + y0 * width + x0
    a = planes + QUARTER_SAMPLE_PAIRS[pair, 0] * height * width
    a += QUARTER_SAMPLE_PAIRS[pair, 2] * width + QUARTER_SAMPLE_PAIRS[pair, 1]
    b = planes + QUARTER_SAMPLE_PAIRS[pair, 3] * height * width
    b += QUARTER_SAMPLE_PAIRS[pair, 5] * width + QUARTER_SAMPLE_PAIRS[pair, 4]
    return a, b


@helper
def _predict_luma(luma, slot, pad, x, y, w, h, mvx, mvy, out, at):
    """8.4.2.2.1: w x h luma samples at frame position (x, y) moved by (mvx, mvy) quarter samples -> out[at...].

    luma Sample[n_slots, 4, Hp, Wp], planes G, b, h, j with borders of `pad`; out in rows of sixteen. A block beyond the
    border reads the outermost border samples, which also repeat the frame's edge.
    """
    a, b = _luma_pair(luma, slot, pad, x, y, h, mvx, mvy)
    width = luma.shape[3]
    for i in range(h):
        row = average(load_u8x16(luma, a + i * width), load_u8x16(luma, b + i * width))
        _store_row(out, at + 16 * i, row, w)


@helper
def _store_chroma_row(out, at, row, width):
    """Stores the first `width` (8, 4 or 2) samples of a row of Cb and, eight further, of one of Cr."""
    if width == 8:
        store(out, at, row)
    elif width == 4:
        store(out, at, low_4(row))
        store(out, at + 8, low_4(high_8(row)))
    else:
        store(out, at, low_2(row))
        store(out, at + 8, low_2(high_8(row)))


@helper
def _load_chroma(chroma, at, size):
    """u16x16: eight samples of Cb at chroma[at...] and of Cr, `size` further."""
    return widen(join(load_u8x8(chroma, at), load_u8x8(chroma, at + size)))


@helper
def _chroma_at(chroma, slot, pad, x, y, h, mvx, mvy):
    """Offset in `chroma` of the block of h rows of Cb that the vector points to, whole samples; see _predict_chroma."""
    height, width = chroma.shape[2], chroma.shape[3]
    x0 = min(width - 9, max(0, x + pad + (mvx >> 3)))
    y0 = min(height - h - 1, max(0, y + pad + (mvy >> 3)))
    return 2 * slot * height * width + y0 * width + x0


@helper
def _chroma_weights(mvx, mvy):
    """8.4.2.2.2: weights of the samples A, B, C and D, each u16x16."""
    fx, fy = mvx & 7, mvy & 7
    wa, wb = splat_u16x16((8 - fx) * (8 - fy)), splat_u16x16(fx * (8 - fy))
    return wa, wb, splat_u16x16((8 - fx) * fy), splat_u16x16(fx * fy)


@helper
def _predict_chroma(chroma, slot, pad, x, y, w, h, mvx, mvy, out, at):
    """8.4.2.2.2: w x h samples of Cb and Cr at (x, y) moved by (mvx, mvy) eighths of a sample -> out[at...], [at + 8...].

    chroma Sample[n_slots, 2, Hp, Wp] with borders of `pad` chroma samples; out in rows of sixteen.
    """
    width, size = chroma.shape[3], chroma.shape[2] * chroma.shape[3]
    from_at = _chroma_at(chroma, slot, pad, x, y, h, mvx, mvy)
    wa, wb, wc, wd = _chroma_weights(mvx, mvy)
    a, b = _load_chroma(chroma, from_at, size), _load_chroma(chroma, from_at + 1, size)
    for i in range(h):
        from_at += width
        c, d = _load_chroma(chroma, from_at, size), _load_chroma(chroma, from_at + 1, size)
        total = add(add(mul(a, wa), mul(b, wb)), add(mul(c, wc), mul(d, wd)))
        _store_chroma_row(out, at + 16 * i, clip_to_u8(shift_right_s(plus(total, 32), 6)), w)
        a, b = c, d


@helper
def _weighted_sum(first, second, weight):
    """8.4.2.3.2: two rows of samples by implicit weights: logWD 5, no offset; weight: -64..128, of `second`, of 64.

    The sum before the shift is in -16320..32672: it fits into 16 bits.
    """
    a, b = widen(first), widen(second)
    total = add(mul(a, splat_like(a, 64 - weight)), mul(b, splat_like(b, weight)))
    return clip_to_u8(shift_right_s(plus(total, 32), 6))


@helper
def _predict_luma_twice(luma, pair0, pair1, weight, w, h, out, at):
    """8.4.2.3: w x h luma samples from both lists -> out[at...]; pair0, pair1: of _luma_pair; weight: of list 1, of 64."""
    (a0, b0), (a1, b1) = pair0, pair1
    width = luma.shape[3]
    for i in range(h):
        first = average(load_u8x16(luma, a0 + i * width), load_u8x16(luma, b0 + i * width))
        second = average(load_u8x16(luma, a1 + i * width), load_u8x16(luma, b1 + i * width))
        if weight == AVERAGE:
            _store_row(out, at + 16 * i, average(first, second), w)
        else:
            _store_row(out, at + 16 * i, _weighted_sum(first, second, weight), w)


@helper
def _chroma_row(chroma, at, width, size, weights):
    """8.4.2.2.2: eight predicted samples of Cb, those at chroma[at...] with their neighbours right and below, and of Cr."""
    wa, wb, wc, wd = weights
    a, b = _load_chroma(chroma, at, size), _load_chroma(chroma, at + 1, size)
    c, d = _load_chroma(chroma, at + width, size), _load_chroma(chroma, at + width + 1, size)
    total = add(add(mul(a, wa), mul(b, wb)), add(mul(c, wc), mul(d, wd)))
    return clip_to_u8(shift_right_s(plus(total, 32), 6))


@helper
def _predict_chroma_twice(chroma, at0, at1, vectors, weight, w, h, out, at):
    """8.4.2.3: w x h samples of Cb and Cr from both lists -> out[at...]; at0, at1: of _chroma_at; vectors: x, y of both."""
    weights0, weights1 = _chroma_weights(vectors[0], vectors[1]), _chroma_weights(vectors[2], vectors[3])
    width, size = chroma.shape[3], chroma.shape[2] * chroma.shape[3]
    for i in range(h):
        first = _chroma_row(chroma, at0 + i * width, width, size, weights0)
        second = _chroma_row(chroma, at1 + i * width, width, size, weights1)
        if weight == AVERAGE:
            _store_chroma_row(out, at + 16 * i, average(first, second), w)
        else:
            _store_chroma_row(out, at + 16 * i, _weighted_sum(first, second, weight), w)


@helper
def _same_motion(mb, p, q, motion):
    """Whether quadrants p and q of a B macroblock have the same references and vectors in both lists."""
    ref_idx, mv, ref_idx1, mv1 = motion.ref_idx, motion.mv, motion.ref_idx1, motion.mv1
    i, k = 4 * (p & 2) + 2 * (p & 1), 4 * (q & 2) + 2 * (q & 1)  # their first 4x4 blocks
    if ref_idx[mb, p] != ref_idx[mb, q] or ref_idx1[mb, p] != ref_idx1[mb, q]:
        return False
    if mv[mb, i, 0] != mv[mb, k, 0] or mv[mb, i, 1] != mv[mb, k, 1]:
        return False
    return mv1[mb, i, 0] == mv1[mb, k, 0] and mv1[mb, i, 1] == mv1[mb, k, 1]


@helper
def implicit_weight(references, entry0, entry1):
    """8.4.2.3.1: weight of the prediction from entry1 of list 1, of 64, beside one from entry0 of list 0."""
    n_ref1 = len(references.slots) - references.n_ref  # References.n_ref1 is None in streams without B frames
    return np.int64(references.bi_weights[entry0 * n_ref1 + entry1])


@helper
def _predict_b_partition(mb, q, x, y, w, h, references, motion, out):
    """8.4.2: w x h luma samples at (x, y), and their chroma, with the motion of quadrant q, the first in this rectangle."""
    luma, chroma, slots, pad = references.luma, references.chroma, references.slots, references.pad
    block = 4 * (q & 2) + 2 * (q & 1)
    entry0, entry1 = np.int64(motion.ref_idx[mb, q]), np.int64(motion.ref_idx1[mb, q])
    mvx, mvy = np.int64(motion.mv[mb, block, 0]), np.int64(motion.mv[mb, block, 1])
    mvx1, mvy1 = np.int64(motion.mv1[mb, block, 0]), np.int64(motion.mv1[mb, block, 1])
    slot, slot1 = np.int64(slots[max(entry0, 0)]), np.int64(slots[references.n_ref + max(entry1, 0)])
    to, to_chroma = 64 * (q & 2) + 8 * (q & 1), 256 + 32 * (q & 2) + 4 * (q & 1)
    pad_c, x_c, y_c = pad // SUB_WIDTH_C, x // SUB_WIDTH_C, y // SUB_HEIGHT_C
    w_c, h_c = w // SUB_WIDTH_C, h // SUB_HEIGHT_C
    if entry0 >= 0 and entry1 >= 0:
        weight = implicit_weight(references, entry0, entry1)
        pair0 = _luma_pair(luma, slot, pad, x, y, h, mvx, mvy)
        pair1 = _luma_pair(luma, slot1, pad, x, y, h, mvx1, mvy1)
        _predict_luma_twice(luma, pair0, pair1, weight, w, h, out, to)
        at0 = _chroma_at(chroma, slot, pad_c, x_c, y_c, h_c, mvx, mvy)
        at1 = _chroma_at(chroma, slot1, pad_c, x_c, y_c, h_c, mvx1, mvy1)
        vectors = mvx, mvy, mvx1, mvy1
        _predict_chroma_twice(chroma, at0, at1, vectors, weight, w_c, h_c, out, to_chroma)
        return
    if entry0 < 0:
        slot, mvx, mvy = slot1, mvx1, mvy1
    _predict_luma(luma, slot, pad, x, y, w, h, mvx, mvy, out, to)
    _predict_chroma(chroma, slot, pad_c, x_c, y_c, w_c, h_c, mvx, mvy, out, to_chroma)


@helper
def _predict_b(mb, x0, y0, references, motion, out):
    """8.4.2: macroblock mb of a B frame, of any type, in few rectangles of quadrants with the same motion."""
    across = _same_motion(mb, 0, 1, motion) and _same_motion(mb, 2, 3, motion)
    down = _same_motion(mb, 0, 2, motion) and _same_motion(mb, 1, 3, motion)
    w, h = 16 if across else 8, 16 if down else 8
    for q in range(4):
        x, y = 8 * (q & 1), 4 * (q & 2)
        if (across and x) or (down and y):
            continue
        _predict_b_partition(mb, q, x0 + x, y0 + y, w, h, references, motion, out)


@helper
def ask_for_samples(mb, x0, y0, references, motion):
    """Asks for the luma that predict_inter reads for a macroblock without partitions, before it is needed."""
    if motion.ref_idx[mb, 0] >= 0:
        _ask_for(references, np.int64(references.slots[motion.ref_idx[mb, 0]]), x0, y0, motion.mv, mb)
    if references.n_ref1:
        if motion.ref_idx1[mb, 0] >= 0:
            slot = np.int64(references.slots[references.n_ref + motion.ref_idx1[mb, 0]])
            _ask_for(references, slot, x0, y0, motion.mv1, mb)


@helper
def _ask_for(references, slot, x0, y0, mv, mb):
    """The luma of one list."""
    mvx, mvy = np.int64(mv[mb, 0, 0]), np.int64(mv[mb, 0, 1])
    a, b = _luma_pair(references.luma, slot, references.pad, x0, y0, 16, mvx, mvy)
    width = references.luma.shape[3]
    for i in range(16):
        prefetch(references.luma, a + i * width)
        if a != b:
            prefetch(references.luma, b + i * width)


@helper
def predict_inter(mb, x0, y0, references, motion, out):
    """8.4.2: all partitions, weighted, of macroblock mb at (x0, y0) -> out Sample[MB_SAMPLES], rows as in transform.py.

    In a B frame mb_type is not read: both lists of Motion say what each quadrant is predicted from.
    """
    if references.n_ref1:
        _predict_b(mb, x0, y0, references, motion, out)
        return
    ref_luma, ref_chroma, ref_slots, pad = references.luma, references.chroma, references.slots, references.pad
    weights = references.weights
    sub_mb_type, ref_idx, mv = motion.sub_mb_type, motion.ref_idx, motion.mv
    mb_type = motion.mb_type[mb]
    for q in range(4):
        bx, by = 2 * (q & 1), q & 2
        w, h = 2, 2  # in 4x4 blocks
        if mb_type == P_8x8:
            sub = sub_mb_type[mb, q]
            w, h = 1 if sub >= 2 else 2, 1 if sub & 1 else 2
        elif mb_type == P_16x8:
            if bx > 0:
                continue
            w = 4
        elif mb_type == P_8x16:
            if by > 0:
                continue
            h = 4
        else:
            if q > 0:
                continue
            w, h = 4, 4
        slot = np.int64(ref_slots[ref_idx[mb, q]])
        for sy in range(by, by + max(h, 2), h):
            for sx in range(bx, bx + max(w, 2), w):
                mvx, mvy = np.int64(mv[mb, 4 * sy + sx, 0]), np.int64(mv[mb, 4 * sy + sx, 1])
                _predict_luma(ref_luma, slot, pad, x0 + 4 * sx, y0 + 4 * sy, 4 * w, 4 * h, mvx, mvy, out, 64 * sy + 4 * sx)
                _predict_chroma(
                    ref_chroma,
                    slot,
                    pad // SUB_WIDTH_C,
                    x0 // SUB_WIDTH_C + 2 * sx,
                    y0 // SUB_HEIGHT_C + 2 * sy,
                    2 * w,
                    2 * h,
                    mvx,
                    mvy,
                    out,
                    256 + 32 * sy + 2 * sx,
                )
    if any_weights(weights):
        weigh_prediction(mb, ref_idx, weights, out)
