"""8x8 blocks as 8.3.2 and 8.5.13 describe them: plain Python and NumPy, from the clauses."""

import numpy as np


def level_scale_8x8(m, i, j, weights=None):
    """8.5.9: LevelScale8x8; weights: weightScale8x8[i][j], 16 everywhere if None."""
    v = [
        (20, 18, 32, 19, 25, 24), (22, 19, 35, 21, 28, 26), (26, 23, 42, 24, 33, 31),
        (28, 25, 45, 26, 35, 33), (32, 28, 51, 30, 40, 38), (36, 32, 58, 34, 46, 43),
    ][m]  # fmt: skip
    kinds = {(0, 0): 0, (1, 1): 1, (2, 2): 2, (0, 1): 3, (1, 0): 3, (0, 2): 4, (2, 0): 4}
    kind = [k if k < 3 else 1 if k % 2 else k for k in (i % 4, j % 4)]
    return (16 if weights is None else int(weights[i][j])) * v[kinds.get(tuple(kind), 5)]


def inverse_scan_8x8(levels):
    """8.5.7, 7.3.5.3.2: the 4 x 16 interleaved levels of a quadrant -> c[i][j]; the zig-zag of Figure 8-9 as a walk."""
    c, i, j, up = [[0] * 8 for _ in range(8)], 0, 0, True
    for k in range(64):
        c[i][j] = int(levels[k % 4][k // 4])
        if (up and j == 7) or (not up and i == 7):
            i, j, up = (i + 1, j, False) if up else (i, j + 1, True)
        elif (up and i == 0) or (not up and j == 0):
            i, j, up = (i, j + 1, False) if up else (i + 1, j, True)
        else:
            i, j = (i - 1, j + 1) if up else (i + 1, j - 1)
    return c


def residual_8x8(c, qp, weights=None):
    """8.5.13: scaling and transformation of an 8x8 block."""

    def scaled(i, j):
        d = c[i][j] * level_scale_8x8(qp % 6, i, j, weights)
        return d << (qp // 6 - 6) if qp >= 36 else (d + (1 << (5 - qp // 6))) >> (6 - qp // 6)

    def one_dimension(x):
        a = (
            x[0] + x[4], -x[3] + x[5] - x[7] - (x[7] >> 1), x[0] - x[4], x[1] + x[7] - x[3] - (x[3] >> 1),
            (x[2] >> 1) - x[6], -x[1] + x[7] + x[5] + (x[5] >> 1), x[2] + (x[6] >> 1), x[3] + x[5] + x[1] + (x[1] >> 1),
        )  # fmt: skip
        b = (
            a[0] + a[6], a[1] + (a[7] >> 2), a[2] + a[4], a[3] + (a[5] >> 2),
            a[2] - a[4], (a[3] >> 2) - a[5], a[0] - a[6], a[7] - (a[1] >> 2),
        )  # fmt: skip
        return [b[0] + b[7], b[2] + b[5], b[4] + b[3], b[6] + b[1], b[6] - b[1], b[4] - b[3], b[2] - b[5], b[0] - b[7]]

    g = [one_dimension([scaled(i, j) for j in range(8)]) for i in range(8)]
    m = [one_dimension([g[i][j] for i in range(8)]) for j in range(8)]
    return np.array([[(m[j][i] + 32) >> 6 for j in range(8)] for i in range(8)])


def reference_samples(rec, x0, y0, left, top, above_right):
    """8.3.2.2, 8.3.2.2.1: p'[x, y] of the available samples round the block at (x0, y0), as a dictionary."""
    p = {}
    if left:
        p |= {(-1, y): int(rec[y0 + y, x0 - 1]) for y in range(8)}
    if top:
        p |= {(x, -1): int(rec[y0 - 1, x0 + (x if above_right or x < 8 else 7)]) for x in range(16)}
    if left and top:
        p[-1, -1] = int(rec[y0 - 1, x0 - 1])
    f = {}
    if top:
        f[0, -1] = (p[-1, -1] + 2 * p[0, -1] + p[1, -1] + 2) >> 2 if left else (3 * p[0, -1] + p[1, -1] + 2) >> 2
        f |= {(x, -1): (p[x - 1, -1] + 2 * p[x, -1] + p[x + 1, -1] + 2) >> 2 for x in range(1, 15)}
        f[15, -1] = (p[14, -1] + 3 * p[15, -1] + 2) >> 2
    if left and top:
        f[-1, -1] = (p[0, -1] + 2 * p[-1, -1] + p[-1, 0] + 2) >> 2
    if left:
        f[-1, 0] = (p[-1, -1] + 2 * p[-1, 0] + p[-1, 1] + 2) >> 2 if top else (3 * p[-1, 0] + p[-1, 1] + 2) >> 2
        f |= {(-1, y): (p[-1, y - 1] + 2 * p[-1, y] + p[-1, y + 1] + 2) >> 2 for y in range(1, 7)}
        f[-1, 7] = (p[-1, 6] + 3 * p[-1, 7] + 2) >> 2
    return f


def predicted_sample(p, mode, x, y):
    """8.3.2.2.2 to 8.3.2.2.10 but for DC: the formulas of each mode."""

    def three(a, b, c):
        return (p[a] + 2 * p[b] + p[c] + 2) >> 2

    def two(a, b):
        return (p[a] + p[b] + 1) >> 1

    if mode == 0:
        return p[x, -1]
    if mode == 1:
        return p[-1, y]
    if mode == 3:
        if x == 7 and y == 7:
            return (p[14, -1] + 3 * p[15, -1] + 2) >> 2
        return three((x + y, -1), (x + y + 1, -1), (x + y + 2, -1))
    if mode == 4:
        if x > y:
            return three((x - y - 2, -1), (x - y - 1, -1), (x - y, -1))
        if x < y:
            return three((-1, y - x - 2), (-1, y - x - 1), (-1, y - x))
        return three((0, -1), (-1, -1), (-1, 0))
    if mode == 5:
        z, k = 2 * x - y, x - (y >> 1)
        if z >= 0:
            return three((k - 2, -1), (k - 1, -1), (k, -1)) if z % 2 else two((k - 1, -1), (k, -1))
        if z == -1:
            return three((-1, 0), (-1, -1), (0, -1))
        return three((-1, y - 2 * x - 1), (-1, y - 2 * x - 2), (-1, y - 2 * x - 3))
    if mode == 6:
        z, k = 2 * y - x, y - (x >> 1)
        if z >= 0:
            return three((-1, k - 2), (-1, k - 1), (-1, k)) if z % 2 else two((-1, k - 1), (-1, k))
        if z == -1:
            return three((-1, 0), (-1, -1), (0, -1))
        return three((x - 2 * y - 1, -1), (x - 2 * y - 2, -1), (x - 2 * y - 3, -1))
    if mode == 7:
        k = x + (y >> 1)
        return three((k, -1), (k + 1, -1), (k + 2, -1)) if y % 2 else two((k, -1), (k + 1, -1))
    z, k = x + 2 * y, y + (x >> 1)
    if z > 13:
        return p[-1, 7]
    if z == 13:
        return (p[-1, 6] + 3 * p[-1, 7] + 2) >> 2
    return three((-1, k), (-1, k + 1), (-1, k + 2)) if z % 2 else two((-1, k), (-1, k + 1))


def predict_8x8(rec, x0, y0, mode, left, top, above_right):
    """8.3.2.2: prediction of an 8x8 block, int[8, 8]."""
    p = reference_samples(rec, x0, y0, left, top, above_right)
    if mode != 2:
        return np.array([[predicted_sample(p, mode, x, y) for x in range(8)] for y in range(8)])
    near = [p[-1, k] for k in range(8) if left] + [p[k, -1] for k in range(8) if top]
    return np.full((8, 8), (sum(near) + len(near) // 2) // len(near) if near else 128)


def intra_8x8_macroblock(rec, x0, y0, modes, levels, qp, left, top, right):
    """8.3.2, 8.5.3: luma of an I_8x8 macroblock into rec; modes: of its 4x4 blocks, alike in each quadrant."""
    for q in range(4):
        x, y = x0 + 8 * (q % 2), y0 + 8 * (q // 2)
        of_quadrant = {int(modes[4 * (2 * (q // 2) + j) + 2 * (q % 2) + i]) for j in range(2) for i in range(2)}
        assert len(of_quadrant) == 1
        above_right = (top, right, True, False)[q]
        prediction = predict_8x8(rec, x, y, of_quadrant.pop(), left or q % 2 > 0, top or q > 1, above_right)
        residual = residual_8x8(inverse_scan_8x8(levels[4 * q : 4 * q + 4]), qp)
        rec[y : y + 8, x : x + 8] = np.clip(prediction + residual, 0, 255)
