"""The lookahead by its definitions, in plain Python and NumPy: half-size frames, costs of macroblocks."""

from fractions import Fraction

import numpy as np
from h264lite.cpu_simd.layout import COARSE_PAD

from . import naive
from .naive_8x8 import predict_8x8
from .naive_reconstruction import predict_plane

PAD = 40
BESIDE, BEFORE = [(0, -1), (-1, 0), (1, 0), (0, 1)], [(0, -1), (-1, 0)]
AROUND = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]


def mean_of_2(a, b):
    """Rounded."""
    return (a.astype(int) + b + 1) >> 1


def half_size(luma):
    """(planes, coarse, tiny) with borders, of uint8[H, W]."""
    height, width = luma.shape
    rows, columns = -(-height // 16), -(-width // 16)
    big = np.pad(luma, ((0, 16 * rows + 1 - height), (0, 16 * columns + 1 - width)), mode="edge")
    vertical = mean_of_2(big[:-1], big[1:])
    means = mean_of_2(vertical[:, :-1], vertical[:, 1:])
    planes = np.array([np.pad(means[y::2, x::2], PAD, mode="edge") for y in range(2) for x in range(2)])
    plane = means[::2, ::2]
    vertical = mean_of_2(plane[::2], plane[1::2])
    coarse = mean_of_2(vertical[:, ::2], vertical[:, 1::2])
    tiny = (coarse.reshape(rows, 4, columns, 4).sum((1, 3)) + 8) >> 4
    return planes, np.pad(coarse, COARSE_PAD, mode="edge"), tiny


def block(planes, mx, my, x=0, y=0):
    """8x8 samples of macroblock (mx, my) moved by (x, y) source samples; None: not all within the borders."""
    top, left = PAD + 8 * my + (y >> 1), PAD + 8 * mx + (x >> 1)
    samples = planes[(y & 1) * 2 + (x & 1)][max(0, top) : top + 8, max(0, left) : left + 8]
    return samples if samples.shape == (8, 8) and top >= 0 and left >= 0 else None


def satd(a, b):
    """Of two blocks."""
    return naive.satd(a.astype(int) - b)


def bits(x, y, px=0, py=0):
    """Of a vector in source samples of half-size frames: quarter samples count."""
    return naive.se_bits(2 * (x - px)) + naive.se_bits(2 * (y - py))


def camera(current, reference):
    """Motion of the frame in quarter-size samples."""
    here, there = current[2], reference[2]
    height, width = here.shape
    rx, ry = min(12, width // 2), min(6, height // 2)
    padded = np.pad(there.astype(float), ((ry, ry), (rx, rx)), constant_values=np.nan)

    def difference(v):
        moved = padded[ry + v[1] : ry + v[1] + height, rx + v[0] : rx + v[0] + width]
        common = abs(moved - here)[~np.isnan(moved)]
        return Fraction(int(common.sum()), common.size)

    x, y = min([(0, 0), *((x, y) for y in range(-ry, ry + 1) for x in range(-rx, rx + 1))], key=difference)
    return 4 * x, 4 * y


def first_round(current, reference, moved, quick=False):
    """Vectors by whole half-size samples; moved: of camera."""
    rows, columns = current[2].shape
    return {(mx, my): first_vector(current, reference, moved, mx, my, quick) for my in range(rows) for mx in range(columns)}


def first_vector(current, reference, moved, mx, my, quick):
    """That of a macroblock."""
    rows, columns = current[2].shape
    here = block(current[0], mx, my)

    def cost(v):
        return satd(here, block(reference[0], mx, my, *v)) + bits(*v)

    if cost((0, 0)) - bits(0, 0) < 64:
        return 0, 0
    cx = max(-4 * mx, min(4 * (columns - 1 - mx), moved[0]))
    cy = max(-4 * my, min(4 * (rows - 1 - my), moved[1]))
    top, left = COARSE_PAD + 4 * my - 2, COARSE_PAD + 4 * mx - 2
    source = current[1][top : top + 8, left : left + 8]

    def coarse_cost(v):
        window = reference[1][top + cy + v[1] :, left + cx + v[0] :][:8, :8]
        return min(65535, int(abs(window - source).sum()) + naive.se_bits(v[0]) + naive.se_bits(v[1]))

    x, y = min([(x, y) for y in range(-10, 10) for x in range(-16, 16)], key=coarse_cost)
    best = min([(0, 0), (4 * (cx + x), 4 * (cy + y))], key=cost)
    return min([best, *((best[0] + 2 * dx, best[1] + 2 * dy) for dx, dy in (BESIDE if quick else AROUND))], key=cost)


def second_round(current, reference, vectors, quick=False):
    """(vector, cost) by macroblock."""
    return {at: second_vector(current, reference, vectors, *at, quick) for at in vectors}


def second_vector(current, reference, vectors, mx, my, quick):
    """(vector, cost) of a macroblock."""
    here, vector = block(current[0], mx, my), vectors[mx, my]
    still = satd(here, block(reference[0], mx, my))
    if vector == (0, 0) and still < 64:
        return vector, still + 4
    a, b, c = (vectors.get(at, (0, 0)) for at in ((mx - 1, my), (mx, my - 1), (mx + 1, my - 1)))
    px, py = (sorted(v)[1] for v in zip(a, b, c)) if my else a

    def cost(v):
        return satd(here, block(reference[0], mx, my, *v)) + bits(*v, px, py)

    near = [vectors[mx + dx, my + dy] for dx, dy in (BEFORE if quick else AROUND) if (mx + dx, my + dy) in vectors]
    near = [v for v in near if block(reference[0], mx, my, *v) is not None]
    x, y = min([(0, 0), vector, *near], key=cost)
    around = [(x + dx, y + dy) for dx, dy in (BESIDE if quick else AROUND)]
    around = [v for v in around if block(reference[0], mx, my, *v) is not None]
    best = min([(x, y), *around], key=cost)
    return best, cost(best) - 2 + 5 * (best != (0, 0)) + 4


def intra(current):
    """Costs by macroblock."""
    rows, columns = current[2].shape
    costs = []
    plane = current[0][0]
    for my in range(rows):
        for mx in range(columns):
            here, x, y = block(current[0], mx, my), PAD + 8 * mx, PAD + 8 * my
            predictions = [np.array(predict_8x8(plane, x, y, mode, True, True, True)) for mode in range(9)]
            predictions.append(np.array(predict_plane(plane, x, y, 8)))
            costs.append(min(satd(here, p) for p in predictions) + 9)
    return costs


def both(current, earlier, later, position, motions):
    """Costs of a B frame by macroblock; motions: from the earlier, from the later, of the later from the earlier one."""
    return [b_cost(current, earlier, later, position, [motion[at] for motion in motions], at) for at in motions[0]]


def b_cost(current, earlier, later, position, motions, at):
    """Of the macroblock `at`, with its motions."""
    (own_0, cost_0), (own_1, cost_1), (direct, _) = motions
    here = block(current[0], *at)

    def cost(v0, v1):
        a, b = block(earlier[0], *at, *v0), block(later[0], *at, *v1)
        return 1 << 20 if b is None else satd(here, mean_of_2(a, b))

    scaled = tuple((v * position + 128) >> 8 for v in direct)
    back = tuple(a - b for a, b in zip(scaled, direct))
    vector = 5 if any(own_0) or any(own_1) else 0
    tried = cost((0, 0), (0, 0)), cost(scaled, back), cost(own_0, own_1) + vector
    return min(min(tried) + 4, cost_0, cost_1)


def b_motion(current, earlier, later, position, motions, at):
    """Cost as b_cost, vectors from both frames and lists (1 earlier, 2 later, 3 both) of a macroblock; the first on a tie."""
    (own_0, cost_0), (own_1, cost_1), (direct, _) = motions
    still, scaled = (0, 0), tuple((v * position + 128) >> 8 for v in direct)
    back = tuple(a - b for a, b in zip(scaled, direct))
    here = block(current[0], *at)
    best = (1 << 20,)
    for v0, v1, more in ((still, still, 4), (scaled, back, 4), (own_0, own_1, 9)):
        a, b = block(earlier[0], *at, *v0), block(later[0], *at, *v1)
        cost = 1 << 20 if a is None or b is None else satd(here, mean_of_2(a, b)) + more
        if cost < best[0]:
            best = cost, v0, v1, 3
    for cost, kind in ((cost_0, 1), (cost_1, 2)):
        if cost < best[0]:
            best = cost, own_0, own_1, kind
    return best
