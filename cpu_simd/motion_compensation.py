"""Inter prediction of the samples of a macroblock from the reference pool (8.4.2)."""

import numpy as np

from ..jit.kernel import helper
from ..standard.macroblock import P_8x8, P_8x16, P_16x8
from ..standard.tables import QUARTER_SAMPLE_PAIRS
from .simd.blocks import low_2, low_4, low_8
from .simd.vector import add, average, clip_to_u8, load_u8x8, load_u8x16, mul, plus, shift_right_s, splat_u16x8, store, widen
from .weighting import any_weights, weigh_prediction


@helper
def _store_part(out, at, row, width):
    """Stores the first `width` (16, 8 or 4) samples of a row."""
    if width == 16:
        store(out, at, row)
    elif width == 8:
        store(out, at, low_8(row))
    else:
        store(out, at, low_4(row))


@helper
def _predict_luma(luma, slot, pad, x, y, w, h, mvx, mvy, out, at):
    """8.4.2.2.1: w x h luma samples at frame position (x, y) moved by (mvx, mvy) quarter samples -> out[at...].

    luma uint8[n_slots, 4, Hp, Wp], planes G, b, h, j with borders of `pad`; out in rows of sixteen. A block beyond the
    border reads the outermost border samples, which also repeat the frame's edge.
    """
    height, width = luma.shape[2], luma.shape[3]
    x0 = min(width - 17, max(0, x + pad + (mvx >> 2)))
    y0 = min(height - h - 1, max(0, y + pad + (mvy >> 2)))
    pair = 4 * (mvy & 3) + (mvx & 3)
    planes = 4 * slot * height * width + y0 * width + x0
    a = planes + QUARTER_SAMPLE_PAIRS[pair, 0] * height * width
    a += QUARTER_SAMPLE_PAIRS[pair, 2] * width + QUARTER_SAMPLE_PAIRS[pair, 1]
    b = planes + QUARTER_SAMPLE_PAIRS[pair, 3] * height * width
    b += QUARTER_SAMPLE_PAIRS[pair, 5] * width + QUARTER_SAMPLE_PAIRS[pair, 4]
    for i in range(h):
        row = average(load_u8x16(luma, a + i * width), load_u8x16(luma, b + i * width))
        _store_part(out, at + 16 * i, row, w)


@helper
def _predict_chroma(chroma, plane, pad, x, y, w, h, mvx, mvy, out, at):
    """8.4.2.2.2: w x h samples of a chroma plane at (x, y) moved by (mvx, mvy) eighths of a sample -> out[at...].

    chroma uint8[n_slots, 2, Hp, Wp] with borders of `pad` chroma samples; plane = 2 * slot + component; out in rows of
    sixteen.
    """
    height, width = chroma.shape[2], chroma.shape[3]
    x0 = min(width - 9, max(0, x + pad + (mvx >> 3)))
    y0 = min(height - h - 1, max(0, y + pad + (mvy >> 3)))
    from_at = plane * height * width + y0 * width + x0
    fx, fy = mvx & 7, mvy & 7
    wa, wb = splat_u16x8((8 - fx) * (8 - fy)), splat_u16x8(fx * (8 - fy))
    wc, wd = splat_u16x8((8 - fx) * fy), splat_u16x8(fx * fy)
    a, b = widen(load_u8x8(chroma, from_at)), widen(load_u8x8(chroma, from_at + 1))
    for i in range(h):
        from_at += width
        c, d = widen(load_u8x8(chroma, from_at)), widen(load_u8x8(chroma, from_at + 1))
        total = add(add(mul(a, wa), mul(b, wb)), add(mul(c, wc), mul(d, wd)))
        row = clip_to_u8(shift_right_s(plus(total, 32), 6))
        to = at + 16 * i
        if w == 8:
            store(out, to, row)
        elif w == 4:
            store(out, to, low_4(row))
        else:
            store(out, to, low_2(row))
        a, b = c, d


@helper
def predict_inter(mb, x0, y0, references, motion, out):
    """8.4.2: all partitions, weighted, of macroblock mb at (x0, y0) -> out uint8[384], rows of sixteen (transform.py)."""
    ref_luma, ref_chroma, ref_slots, pad = references.luma, references.chroma, references.slots, references.pad
    weights = references.weights
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    kind = mb_type[mb]
    for q in range(4):
        bx, by = 2 * (q & 1), q & 2
        w, h = 2, 2  # in 4x4 blocks
        if kind == P_8x8:
            sub = sub_mb_type[mb, q]
            w, h = 1 if sub >= 2 else 2, 1 if sub & 1 else 2
        elif kind == P_16x8:
            if bx > 0:
                continue
            w = 4
        elif kind == P_8x16:
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
                _predict_luma(
                    ref_luma, slot, pad, x0 + 4 * sx, y0 + 4 * sy, 4 * w, 4 * h, mvx, mvy, out, 64 * sy + 4 * sx
                )
                for c in range(2):
                    _predict_chroma(
                        ref_chroma, 2 * slot + c, pad // 2, x0 // 2 + 2 * sx, y0 // 2 + 2 * sy, 2 * w, 2 * h, mvx, mvy,
                        out, 256 + 8 * c + 32 * sy + 2 * sx,
                    )  # fmt: skip
    if any_weights(weights):
        weigh_prediction(mb, ref_idx, weights, out)
