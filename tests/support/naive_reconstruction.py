"""Decoding of one macroblock's samples as 8.3, 8.4.2 and 8.5 describe it: plain Python and NumPy, from the clauses."""

import numpy as np
from h264lite.cpu_simd.layout import CB_DC, LUMA_DC, PARTITIONS
from h264lite.standard import tables
from h264lite.standard.macroblock import BLOCK_TO_RASTER, I_PCM, LAST_INTRA, I_4x4, I_8x8, I_16x16, P_8x8, P_8x16, P_16x8

from .naive_8x8 import intra_8x8_macroblock, inverse_scan_8x8, residual_8x8


def clip1(value):
    return np.clip(value, 0, 255)


def level_scale(m, i, j, weights=None):
    """8.5.9: LevelScale4x4; weights: weightScale4x4[i][j], 16 everywhere if None."""
    v = [(10, 16, 13), (11, 18, 14), (13, 20, 16), (14, 23, 18), (16, 25, 20), (18, 29, 23)][m]
    weight = 16 if weights is None else int(weights[i][j])
    return weight * (v[0] if i % 2 == 0 and j % 2 == 0 else v[1] if i % 2 == 1 and j % 2 == 1 else v[2])


def chroma_qp(qp, offset):
    return int(tables.QP_CHROMA[min(51, max(0, qp + offset))])


def inverse_scan(levels):
    """8.5.6: 16 levels in zig-zag order -> c[i][j], row i, column j."""
    order = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2)]
    order += [(2, 1), (3, 0), (3, 1), (2, 2), (1, 3), (2, 3), (3, 2), (3, 3)]
    c = [[0] * 4 for _ in range(4)]
    for level, (i, j) in zip(levels, order):
        c[i][j] = int(level)
    return c


def residual_4x4(c, qp, dc=None, weights=None):
    """8.5.12: scaling and transformation of a 4x4 block; dc: the scaled DC of Intra_16x16 and chroma blocks."""
    d = [[0] * 4 for _ in range(4)]
    for i in range(4):
        for j in range(4):
            scaled = c[i][j] * level_scale(qp % 6, i, j, weights)
            d[i][j] = scaled << (qp // 6 - 4) if qp >= 24 else (scaled + (1 << (3 - qp // 6))) >> (4 - qp // 6)
    if dc is not None:
        d[0][0] = dc

    def one_dimension(w):
        e = (w[0] + w[2], w[0] - w[2], (w[1] >> 1) - w[3], w[1] + (w[3] >> 1))
        return [e[0] + e[3], e[1] + e[2], e[1] - e[2], e[0] - e[3]]

    f = [one_dimension(row) for row in d]
    h = [one_dimension([f[i][j] for i in range(4)]) for j in range(4)]
    return np.array([[(h[j][i] + 32) >> 6 for j in range(4)] for i in range(4)])


def luma_dc(levels, qp, weights=None):
    """8.5.10: the scaled DC values of an Intra_16x16 macroblock, [row of blocks][column of blocks]."""
    a = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
    f = a @ np.array(inverse_scan(levels)) @ a
    scale = level_scale(qp % 6, 0, 0, weights)
    return (f * scale) << (qp // 6 - 6) if qp >= 36 else (f * scale + (1 << (5 - qp // 6))) >> (6 - qp // 6)


def chroma_dc(levels, qp_c, weights=None):
    """8.5.11: the scaled DC values of one chroma plane, [row][column]."""
    a = np.array([[1, 1], [1, -1]])
    f = a @ np.array(levels[:4], int).reshape(2, 2) @ a
    return ((f * level_scale(qp_c % 6, 0, 0, weights)) << (qp_c // 6)) >> 5


def predict_4x4(rec, x0, y0, mode, left, top_available, above_right):
    """8.3.1.2: prediction of a 4x4 block; the formulas of each mode, with p[x, y] as the standard writes it."""

    def p(x, y):
        if y == -1 and x > 3 and not above_right:
            x = 3
        return int(rec[y0 + y, x0 + x])

    def dc():
        total = sum(p(-1, y) for y in range(4)) if left else 0
        total += sum(p(x, -1) for x in range(4)) if top_available else 0
        if left and top_available:
            return (total + 4) >> 3
        return (total + 2) >> 2 if left or top_available else 128

    out = np.zeros((4, 4), int)
    for y in range(4):
        for x in range(4):
            if mode == 0:
                value = p(x, -1)
            elif mode == 1:
                value = p(-1, y)
            elif mode == 2:
                value = dc()
            elif mode == 3:
                if x == 3 and y == 3:
                    value = (p(6, -1) + 3 * p(7, -1) + 2) >> 2
                else:
                    value = (p(x + y, -1) + 2 * p(x + y + 1, -1) + p(x + y + 2, -1) + 2) >> 2
            elif mode == 4:
                if x > y:
                    value = (p(x - y - 2, -1) + 2 * p(x - y - 1, -1) + p(x - y, -1) + 2) >> 2
                elif x < y:
                    value = (p(-1, y - x - 2) + 2 * p(-1, y - x - 1) + p(-1, y - x) + 2) >> 2
                else:
                    value = (p(0, -1) + 2 * p(-1, -1) + p(-1, 0) + 2) >> 2
            elif mode == 5:
                z = 2 * x - y
                if z >= 0 and z % 2 == 0:
                    value = (p(x - (y >> 1) - 1, -1) + p(x - (y >> 1), -1) + 1) >> 1
                elif z >= 0:
                    value = (p(x - (y >> 1) - 2, -1) + 2 * p(x - (y >> 1) - 1, -1) + p(x - (y >> 1), -1) + 2) >> 2
                elif z == -1:
                    value = (p(-1, 0) + 2 * p(-1, -1) + p(0, -1) + 2) >> 2
                else:
                    value = (p(-1, y - 1) + 2 * p(-1, y - 2) + p(-1, y - 3) + 2) >> 2
            elif mode == 6:
                z = 2 * y - x
                if z >= 0 and z % 2 == 0:
                    value = (p(-1, y - (x >> 1) - 1) + p(-1, y - (x >> 1)) + 1) >> 1
                elif z >= 0:
                    value = (p(-1, y - (x >> 1) - 2) + 2 * p(-1, y - (x >> 1) - 1) + p(-1, y - (x >> 1)) + 2) >> 2
                elif z == -1:
                    value = (p(-1, 0) + 2 * p(-1, -1) + p(0, -1) + 2) >> 2
                else:
                    value = (p(x - 1, -1) + 2 * p(x - 2, -1) + p(x - 3, -1) + 2) >> 2
            elif mode == 7:
                if y % 2 == 0:
                    value = (p(x + (y >> 1), -1) + p(x + (y >> 1) + 1, -1) + 1) >> 1
                else:
                    value = (p(x + (y >> 1), -1) + 2 * p(x + (y >> 1) + 1, -1) + p(x + (y >> 1) + 2, -1) + 2) >> 2
            else:
                z = x + 2 * y
                if z > 5:
                    value = p(-1, 3)
                elif z == 5:
                    value = (p(-1, 2) + 3 * p(-1, 3) + 2) >> 2
                elif z % 2 == 0:
                    value = (p(-1, y + (x >> 1)) + p(-1, y + (x >> 1) + 1) + 1) >> 1
                else:
                    value = (p(-1, y + (x >> 1)) + 2 * p(-1, y + (x >> 1) + 1) + p(-1, y + (x >> 1) + 2) + 2) >> 2
            out[y, x] = value
    return out


def predict_plane(rec, x0, y0, size):
    """8.3.3.4, 8.3.4.4: plane prediction of a luma (16) or chroma (8) macroblock."""
    half = size // 2
    h = sum((i + 1) * (int(rec[y0 - 1, x0 + half + i]) - int(rec[y0 - 1, x0 + half - 2 - i])) for i in range(half))
    v = sum((i + 1) * (int(rec[y0 + half + i, x0 - 1]) - int(rec[y0 + half - 2 - i, x0 - 1])) for i in range(half))
    a = 16 * (int(rec[y0 + size - 1, x0 - 1]) + int(rec[y0 - 1, x0 + size - 1]))
    b, c = ((5 * h + 32) >> 6, (5 * v + 32) >> 6) if size == 16 else ((34 * h + 32) >> 6, (34 * v + 32) >> 6)
    y, x = np.mgrid[:size, :size]
    return clip1((a + b * (x - half + 1) + c * (y - half + 1) + 16) >> 5)


def mean_of(parts):
    total, n = sum(int(p.sum()) for p in parts), sum(p.size for p in parts)
    return (total + n // 2) // n if n else 128


def predict_16x16(rec, x0, y0, mode, left, top):
    """8.3.3."""
    if mode == 0:
        return np.tile(rec[y0 - 1, x0 : x0 + 16].astype(int), (16, 1))
    if mode == 1:
        return np.tile(rec[y0 : y0 + 16, x0 - 1].astype(int)[:, None], (1, 16))
    if mode == 3:
        return predict_plane(rec, x0, y0, 16)
    parts = [rec[y0 - 1, x0 : x0 + 16]] if top else []
    parts += [rec[y0 : y0 + 16, x0 - 1]] if left else []
    return np.full((16, 16), mean_of(parts))


def predict_chroma(rec, x0, y0, mode, left, top):
    """8.3.4."""
    if mode == 1:
        return np.tile(rec[y0 : y0 + 8, x0 - 1].astype(int)[:, None], (1, 8))
    if mode == 2:
        return np.tile(rec[y0 - 1, x0 : x0 + 8].astype(int), (8, 1))
    if mode == 3:
        return predict_plane(rec, x0, y0, 8)
    out = np.zeros((8, 8), int)
    for y in (0, 4):
        for x in (0, 4):
            above = [rec[y0 - 1, x0 + x : x0 + x + 4]] if top else []
            column = [rec[y0 + y : y0 + y + 4, x0 - 1]] if left else []
            if x > 0 and y == 0:
                parts = above or column
            elif x == 0 and y > 0:
                parts = column or above
            else:
                parts = above + column
            out[y : y + 4, x : x + 4] = mean_of(parts)
    return out


def six_tap(a, b, c, d, e, f):
    return a - 5 * b + 20 * c + 20 * d - 5 * e + f


def quarter_sample(picture, x, y, x_frac, y_frac):
    """8.4.2.2.1: one luma sample at integer position (x, y) plus quarter samples."""
    height, width = picture.shape

    def full(dx, dy):
        return int(picture[min(height - 1, max(0, y + dy)), min(width - 1, max(0, x + dx))])

    def half(value):
        return min(255, max(0, (value + 16) >> 5))

    def b1(dy):
        return six_tap(*(full(dx, dy) for dx in range(-2, 4)))

    def h1(dx):
        return six_tap(*(full(dx, dy) for dy in range(-2, 4)))

    g, h_, m_, n_ = full(0, 0), full(1, 0), full(0, 1), full(1, 1)  # G, H, M, N
    b, s, h, m = half(b1(0)), half(b1(1)), half(h1(0)), half(h1(1))
    j = min(255, max(0, (six_tap(*(b1(dy) for dy in range(-2, 4))) + 512) >> 10))
    del n_
    pairs = [
        [(g, g), (g, b), (b, b), (b, h_)],
        [(g, h), (b, h), (b, j), (b, m)],
        [(h, h), (h, j), (j, j), (j, m)],
        [(h, m_), (h, s), (j, s), (s, m)],
    ]
    first, second = pairs[y_frac][x_frac]
    return (first + second + 1) >> 1


def chroma_sample(picture, x, y, x_frac, y_frac):
    """8.4.2.2.2: one chroma sample at integer position (x, y) plus eighths."""
    height, width = picture.shape

    def at(dx, dy):
        return int(picture[min(height - 1, max(0, y + dy)), min(width - 1, max(0, x + dx))])

    top = (8 - x_frac) * at(0, 0) + x_frac * at(1, 0)
    bottom = (8 - x_frac) * at(0, 1) + x_frac * at(1, 1)
    return ((8 - y_frac) * top + y_frac * bottom + 32) >> 6


def predict_inter(pictures, state, mb, x0, y0):
    """8.4.2: the three predictions of a macroblock; pictures: list over ref_idx of (y, u, v)."""
    luma, cb, cr = np.zeros((16, 16), int), np.zeros((8, 8), int), np.zeros((8, 8), int)
    for y in range(16):
        for x in range(16):
            mvx, mvy = (int(c) for c in state["mv"][mb, 4 * (y // 4) + x // 4])
            picture = pictures[state["ref_idx"][mb, 2 * (y // 8) + x // 8]]
            luma[y, x] = quarter_sample(picture[0], x0 + x + (mvx >> 2), y0 + y + (mvy >> 2), mvx & 3, mvy & 3)
            if x % 2 == 0 and y % 2 == 0:
                cx, cy = (x0 + x) // 2 + (mvx >> 3), (y0 + y) // 2 + (mvy >> 3)
                cb[y // 2, x // 2] = chroma_sample(picture[1], cx, cy, mvx & 7, mvy & 7)
                cr[y // 2, x // 2] = chroma_sample(picture[2], cx, cy, mvx & 7, mvy & 7)
    return luma, cb, cr


def weighted(planes, ref_idx, weights):
    """8.4.2.3.2: the predictions of a macroblock; ref_idx by 8x8 quadrant; weights: of the first entries of the list."""
    for number, plane in enumerate(planes):
        side = len(plane) // 2
        for y, x in np.ndindex(plane.shape):
            ref = ref_idx[2 * (y // side) + x // side]
            of = weights[ref] if ref < len(weights) else 9 * (0,)
            used, (log2, weight, offset) = of[0] & (2 if number else 1), ((of[1:4]), (of[4:7]), (of[4], *of[7:9]))[number]
            if used:
                scaled = plane[y, x] * weight
                scaled = (scaled + 2 ** (log2 - 1) >> log2) if log2 >= 1 else scaled
                plane[y, x] = clip1(scaled + offset)
    return planes


def predict_b(lists, state, mb, x0, y0, weights):
    """8.4.2.3: the three predictions of a macroblock of a B frame.

    lists: of (y, u, v) over ref_idx of list 0, and of list 1; weights[refIdxL0][refIdxL1]: implicit weight of list 1, of 64.
    """
    alone = []
    for pictures, suffix in zip(lists, ("", "1")):
        of_list = {"mv": state["mv" + suffix], "ref_idx": np.maximum(state["ref_idx" + suffix], 0)}
        alone.append(predict_inter(pictures, of_list, mb, x0, y0))
    out = []
    for first, second in zip(*alone):
        side = len(first) // 2
        both = np.zeros_like(first)
        for y, x in np.ndindex(first.shape):
            q = 2 * (y // side) + x // side
            ref0, ref1 = state["ref_idx"][mb, q], state["ref_idx1"][mb, q]
            if ref0 >= 0 and ref1 >= 0:
                w1 = int(weights[ref0][ref1])
                both[y, x] = clip1((first[y, x] * (64 - w1) + second[y, x] * w1 + 2**5) >> 6)
            else:
                both[y, x] = first[y, x] if ref0 >= 0 else second[y, x]
        out.append(both)
    return out


def decode_picture(state, source, shape, chroma_qp_offset, slice_first_mb, pictures=(), weights=(), lists=None):
    """What a decoder reconstructs from the state arrays, before deblocking; I_PCM samples from `source`.

    pictures, weights: of P frames; lists: both lists of a B frame, whose implicit weights are `weights`.
    """
    height, width = shape
    rec = [np.zeros((height, width), int)] + [np.zeros((height // 2, width // 2), int) for _ in range(2)]
    mb_width = width // 16
    for mb in range(width * height // 256):
        mx, my = mb % mb_width, mb // mb_width
        x0, y0 = 16 * mx, 16 * my
        kind, qp, levels = state["mb_type"][mb], int(state["qp"][mb]), state["levels"][mb]
        first_mb = int(slice_first_mb[mb])
        left, top = mx > 0 and mb > first_mb, mb - mb_width >= first_mb
        edges = set(range(9)) if left and top and mb - mb_width > first_mb else {0, 1, 2, 3, 7, 8}  # without a corner
        right = top and mx + 1 < mb_width
        if kind == I_PCM:
            for plane, samples, size in zip(rec, source, (16, 8, 8)):
                y, x = size * my, size * mx
                plane[y : y + size, x : x + size] = samples[y : y + size, x : x + size]
            continue
        inter = None
        if kind > LAST_INTRA and lists:
            inter = predict_b(lists, state, mb, x0, y0, weights)
        elif kind > LAST_INTRA:
            inter = weighted(predict_inter(pictures, state, mb, x0, y0), state["ref_idx"][mb], weights)
        if kind == I_4x4:
            for block in range(16):
                k = int(BLOCK_TO_RASTER[block])
                bx, by = k % 4, k // 4
                x, y = x0 + 4 * bx, y0 + 4 * by
                if by == 0:
                    above_right = right if bx == 3 else top
                else:
                    above_right = block not in (3, 5, 7, 11, 13, 15)
                mode = state["intra4x4_mode"][mb, k]
                prediction = predict_4x4(rec[0], x, y, mode, left or bx > 0, top or by > 0, above_right)
                assert k or mode in edges
                residual = residual_4x4(inverse_scan(levels[block]), qp)
                rec[0][y : y + 4, x : x + 4] = clip1(prediction + residual)
        elif kind == I_8x8:
            intra_8x8_macroblock(rec[0], x0, y0, state["intra4x4_mode"][mb], levels, qp, left, top, right)
            assert 4 in edges or not left or not top
        else:
            dc = [[None] * 4] * 4
            if kind == I_16x16:
                luma = predict_16x16(rec[0], x0, y0, state["intra16x16_mode"][mb], left, top)
                assert state["intra16x16_mode"][mb] < 3 or 4 in edges
                dc = luma_dc(levels[LUMA_DC], qp)
            else:
                luma = inter[0]
            for q in range(4 * int(state["transform_8x8"][mb])):
                x, y = 8 * (q % 2), 8 * (q // 2)
                samples = luma[y : y + 8, x : x + 8] + residual_8x8(inverse_scan_8x8(levels[4 * q : 4 * q + 4]), qp)
                rec[0][y0 + y : y0 + y + 8, x0 + x : x0 + x + 8] = clip1(samples)
            for block in range(0 if state["transform_8x8"][mb] else 16):
                k = int(BLOCK_TO_RASTER[block])
                bx, by = k % 4, k // 4
                residual = residual_4x4(inverse_scan(levels[block]), qp, dc[by][bx])
                prediction = luma[4 * by : 4 * by + 4, 4 * bx : 4 * bx + 4]
                x, y = x0 + 4 * bx, y0 + 4 * by
                rec[0][y : y + 4, x : x + 4] = clip1(prediction + residual)
        qp_c = chroma_qp(qp, chroma_qp_offset)
        for c in range(2):
            plane, x, y = rec[1 + c], x0 // 2, y0 // 2
            if kind > LAST_INTRA:
                prediction = inter[1 + c]
            else:
                prediction = predict_chroma(plane, x, y, state["intra_chroma_mode"][mb], left, top)
                assert state["intra_chroma_mode"][mb] < 3 or 4 in edges
            dc = chroma_dc(levels[CB_DC + c], qp_c)
            for k in range(4):
                residual = residual_4x4(inverse_scan(levels[16 + 4 * c + k]), qp_c, dc[k // 2][k % 2])
                i, j = 4 * (k // 2), 4 * (k % 2)
                plane[y + i : y + i + 4, x + j : x + j + 4] = clip1(prediction[i : i + 4, j : j + 4] + residual)
    return [plane.astype(np.uint8) for plane in rec]


def check_counts(state):
    """cbp and total_coeff say what the levels are: 7.4.5, 9.2.1."""
    for mb in range(len(state["mb_type"])):
        kind, cbp, levels = state["mb_type"][mb], int(state["cbp"][mb]), state["levels"][mb]
        counts, is_8x8 = state["total_coeff"][mb], state["transform_8x8"][mb]
        assert not is_8x8 or kind == I_8x8 or (kind > LAST_INTRA and cbp & 15)
        if kind == I_PCM:
            assert (counts == 16).all()
            continue
        for block in range(24):
            expected = np.count_nonzero(levels[block])
            place = int(BLOCK_TO_RASTER[block]) if block < 16 else block
            assert counts[place] == expected, (mb, block)
        quadrants = [bool(np.any(levels[4 * q : 4 * q + 4])) for q in range(4)]
        luma = (15 if any(quadrants) else 0) if kind == I_16x16 else sum(1 << q for q in range(4) if quadrants[q])
        chroma = 2 if np.any(levels[16:24]) else 1 if np.any(levels[CB_DC:]) else 0
        assert cbp == luma + 16 * chroma, (mb, cbp, luma, chroma)
        if kind == I_16x16:
            assert not np.any(levels[:16, 0])
        else:
            assert not np.any(levels[LUMA_DC])
        assert not np.any(levels[16:24, 0])
        assert np.abs(levels.astype(int)).max() <= 2063


def partition_vectors(rng, kind, sub, largest):
    """Random vectors int16[16, 2] of one macroblock, equal inside each of its partitions."""
    mv = np.zeros((4, 4, 2), np.int16)

    def fill(partition):
        x, y, w, h = (int(v) // 4 for v in PARTITIONS[partition])
        mv[y : y + h, x : x + w] = rng.integers(-largest, largest + 1, 2)

    if kind == P_8x8:
        for q in range(4):
            first = {0: [32 + q], 1: [16 + 2 * q, 17 + 2 * q], 2: [24 + 2 * q, 25 + 2 * q]}
            x, y = 2 * (q % 2), 2 * (q // 2)
            for partition in first.get(int(sub[q]), [4 * (y + i) + x + j for i in range(2) for j in range(2)]):
                fill(partition)
    else:
        for partition in {P_16x8: (36, 37), P_8x16: (38, 39)}.get(int(kind), (40,)):
            fill(partition)
    return mv.reshape(16, 2)
