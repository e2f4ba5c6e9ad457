"""Inter prediction of a macroblock's samples from the reference pool (8.4.2.2)."""

import numpy as np

from ..standard.jit import kernel
from ..standard.macroblock import P_8x8, P_8x16, P_16x8
from ..standard.tables import QUARTER_SAMPLE_PAIRS


@kernel
def _predict_luma(luma, pad, x, y, w, h, mvx, mvy, out, ox, oy):
    """8.4.2.2.1: w x h luma samples at picture position (x, y) moved by (mvx, mvy) quarter samples -> out at (ox, oy).

    luma uint8[4, Hp, Wp], planes G, b, h, j with borders of `pad`; out uint8[16, 16]. A block beyond the border reads
    the border's outermost samples: they repeat the picture's edge there just as well.
    """
    x0 = min(luma.shape[2] - w - 1, max(0, x + pad + (mvx >> 2)))
    y0 = min(luma.shape[1] - h - 1, max(0, y + pad + (mvy >> 2)))
    pair = 4 * (mvy & 3) + (mvx & 3)
    plane_a, xa, ya = (QUARTER_SAMPLE_PAIRS[pair, 0], x0 + QUARTER_SAMPLE_PAIRS[pair, 1], y0 + QUARTER_SAMPLE_PAIRS[pair, 2])
    plane_b, xb, yb = (QUARTER_SAMPLE_PAIRS[pair, 3], x0 + QUARTER_SAMPLE_PAIRS[pair, 4], y0 + QUARTER_SAMPLE_PAIRS[pair, 5])
    for i in range(h):
        for j in range(w):
            a = np.int32(luma[plane_a, ya + i, xa + j])
            b = np.int32(luma[plane_b, yb + i, xb + j])
            out[oy + i, ox + j] = (a + b + 1) >> 1


@kernel
def _predict_chroma(chroma, pad, x, y, w, h, mvx, mvy, out, ox, oy):
    """8.4.2.2.2: w x h samples of one chroma plane at (x, y) moved by (mvx, mvy) eighths of a chroma sample -> out.

    chroma uint8[Hp, Wp] with borders of `pad` chroma samples; out uint8[8, 8].
    """
    x0 = min(chroma.shape[1] - w - 1, max(0, x + pad + (mvx >> 3)))
    y0 = min(chroma.shape[0] - h - 1, max(0, y + pad + (mvy >> 3)))
    fx, fy = np.int32(mvx & 7), np.int32(mvy & 7)
    wa, wb, wc, wd = (8 - fx) * (8 - fy), fx * (8 - fy), (8 - fx) * fy, fx * fy
    for i in range(h):
        for j in range(w):
            a, b = np.int32(chroma[y0 + i, x0 + j]), np.int32(chroma[y0 + i, x0 + j + 1])
            c, d = np.int32(chroma[y0 + i + 1, x0 + j]), np.int32(chroma[y0 + i + 1, x0 + j + 1])
            out[oy + i, ox + j] = (wa * a + wb * b + wc * c + wd * d + 32) >> 6


@kernel
def predict_inter(mb, x0, y0, ref_luma, ref_chroma, ref_slots, pad, mb_type, sub_mb_type, ref_idx, mv, out):
    """8.4.2: all partitions of macroblock mb at (x0, y0).

    ref_luma uint8[n_slots, 4, Hp, Wp], ref_chroma uint8[n_slots, 2, Hp / 2, Wp / 2]; out uint8[3, 16, 16]: Y, Cb, Cr.
    """
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
        slot = ref_slots[ref_idx[mb, q]]
        for sy in range(by, by + max(h, 2), h):
            for sx in range(bx, bx + max(w, 2), w):
                mvx, mvy = np.int64(mv[mb, 4 * sy + sx, 0]), np.int64(mv[mb, 4 * sy + sx, 1])
                _predict_luma(
                    ref_luma[slot], pad, x0 + 4 * sx, y0 + 4 * sy, 4 * w, 4 * h, mvx, mvy, out[0], 4 * sx, 4 * sy
                )
                for c in range(2):
                    _predict_chroma(
                        ref_chroma[slot, c], pad // 2, x0 // 2 + 2 * sx, y0 // 2 + 2 * sy, 2 * w, 2 * h, mvx, mvy,
                        out[1 + c], 2 * sx, 2 * sy,
                    )  # fmt: skip
