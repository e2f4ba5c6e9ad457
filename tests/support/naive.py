"""The slow, obvious version of what only an encoder does, in NumPy and plain Python: the reference of the tests."""

import numpy as np
from h264lite.cpu_simd.decisions.search import UMH_ENOUGH
from h264lite.cpu_simd.layout import COARSE_PAD, PARTITIONS

from . import naive_8x8


def decoded_before(bx: int, by: int, x: int, y: int) -> bool:
    """Whether 4x4 block (x, y) precedes the partition that starts at (bx, by), in luma4x4BlkIdx order (6.4.3)."""
    order = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    return order[y * 4 + x] < order[by * 4 + bx]


def neighbour(mb, bx, by, ref_idx, mv, mb_width, first_mb, start):
    """None if not available, else (ref, (x, y)); `start` is the first block of the current partition."""
    column, row = mb % mb_width, mb // mb_width
    x, y = column * 4 + bx, row * 4 + by
    if x < 0 or y < 0 or x >= mb_width * 4:
        return None
    n = (y // 4) * mb_width + x // 4
    if n > mb or n < first_mb:
        return None
    if n == mb and not decoded_before(*start, bx, by):
        return None
    ref = int(ref_idx[n, (y % 4 // 2) * 2 + x % 4 // 2])
    if ref < 0:
        return -1, (0, 0)
    vector = mv[n, (y % 4) * 4 + x % 4]
    return ref, (int(vector[0]), int(vector[1]))


def predict_mv(mb, bx, by, bw, bh, ref, ref_idx, mv, mb_width, first_mb):
    """8.4.1.3 word by word."""

    def at(x, y):
        return neighbour(mb, x, y, ref_idx, mv, mb_width, first_mb, (bx, by))

    a, b, c = at(bx - 1, by), at(bx, by - 1), at(bx + bw, by - 1)
    if c is None:
        c = at(bx - 1, by - 1)
    n = {"a": a or (-1, (0, 0)), "b": b or (-1, (0, 0)), "c": c or (-1, (0, 0))}
    if (bw, bh) == (4, 2):
        side = "b" if by == 0 else "a"
        if n[side][0] == ref:
            return n[side][1]
    if (bw, bh) == (2, 4):
        side = "a" if bx == 0 else "c"
        if n[side][0] == ref:
            return n[side][1]
    if b is None and c is None and a is not None:
        n["b"] = n["c"] = n["a"]
    same = [s for s in "abc" if n[s][0] == ref]
    if len(same) == 1:
        return n[same[0]][1]
    return tuple(sorted(n[s][1][k] for s in "abc")[1] for k in (0, 1))


def predict_skip_mv(mb, ref_idx, mv, mb_width, first_mb):
    """8.4.1.1 word by word."""
    a = neighbour(mb, -1, 0, ref_idx, mv, mb_width, first_mb, (0, 0))
    b = neighbour(mb, 0, -1, ref_idx, mv, mb_width, first_mb, (0, 0))
    if a is None or b is None or a == (0, (0, 0)) or b == (0, (0, 0)):
        return 0, 0
    return predict_mv(mb, 0, 0, 4, 4, 0, ref_idx, mv, mb_width, first_mb)


def ue_bits(code_num: int) -> int:
    """9.1: the code has as many leading zeros as code_num + 1 has bits after its first one."""
    return 2 * (code_num + 1).bit_length() - 1


def se_bits(value: int) -> int:
    """9.1.1: positive values have the odd code numbers."""
    return ue_bits(2 * value - 1 if value > 0 else -2 * value)


def vector_bits(mv):
    """Bits of vectors [..., 2], the predictor 0."""
    return np.vectorize(se_bits, otypes=[int])(mv).sum(-1)


def full_search(source, reference, pad, centre, predictor, lam, merange, mb, mb_width):
    """cost int[41], mv int[41, 2] of one macroblock, by the definition."""
    y, x = mb // mb_width * 16, mb % mb_width * 16
    block = source[y : y + 16, x : x + 16].astype(int)
    size = 2 * merange
    cx, cy = int(centre[mb, 0]) - merange, int(centre[mb, 1]) - merange
    y, x = y + cy + pad, x + cx + pad
    windows = np.lib.stride_tricks.sliding_window_view(
        reference[y : y + size + 15, x : x + size + 15].astype(int), (16, 16)
    )
    difference = abs(windows - block)
    px, py = int(predictor[mb, 0]), int(predictor[mb, 1])
    bits_x = np.array([se_bits(4 * (cx + d) - px) for d in range(size)])
    bits_y = np.array([se_bits(4 * (cy + d) - py) for d in range(size)])
    bits = bits_y[:, None] + bits_x
    cost, mv = np.zeros(41, int), np.zeros((41, 2), int)
    for k, (px, py, w, h) in enumerate(PARTITIONS.tolist()):
        total = np.minimum(65535, difference[:, :, py : py + h, px : px + w].sum((2, 3)) + lam // 2 * bits)
        dy, dx = divmod(int(total.argmin()), size)  # the first one
        cost[k] = total[dy, dx] + (lam - lam // 2) * bits[dy, dx]
        mv[k] = 4 * (cx + dx), 4 * (cy + dy)
    return cost, mv


def coarse(plane):
    """Means of 4x4 samples, COARSE_PAD of them repeated all round."""
    height, width = plane.shape
    return np.pad((plane.astype(int).reshape(height // 4, 4, width // 4, 4).sum((1, 3)) + 8) >> 4, COARSE_PAD, mode="edge")


def search_centre(source, reference, pad, ref_idx, mv, distance, lam, merange, max_mv_y, mb, mb_width):
    """(x, y), integer samples, of one macroblock's search window, by the definition."""
    height, width = source.shape
    x0, y0 = mb % mb_width * 16, mb // mb_width * 16
    small, small_reference = coarse(source), coarse(reference[pad : pad + height, pad : pad + width])
    top, left = COARSE_PAD + y0 // 4 - 2, COARSE_PAD + x0 // 4 - 2
    vectors = [(x, y) for y in range(-10, 10) for x in range(-16, 16)]

    def coarse_cost(v):
        window = small_reference[top + v[1] : top + v[1] + 8, left + v[0] : left + v[0] + 8]
        total = int(abs(window - small[top : top + 8, left : left + 8]).sum())
        return min(65535, total + lam * (se_bits(v[0]) + se_bits(v[1])))

    x, y = min(vectors, key=coarse_cost)
    candidates = [(0, 0)]
    if ref_idx[mb, 0] >= 0:
        candidates.append(tuple((int(v) * distance // (int(ref_idx[mb, 0]) + 1) + 2) >> 2 for v in mv[mb, 0]))
    candidates += [(4 * x + i, 4 * y + j) for j in (-2, 0, 2) for i in (-2, 0, 2)]
    reach = max(merange, 12) + 3
    low = max(-x0 - pad + reach, merange - 2047), max(-y0 - pad + reach, min(0, merange + 1 - max_mv_y))
    high = (min(width + pad - x0 - 15 - reach, 2047 - merange),
            min(height + pad - y0 - 15 - reach, max(0, max_mv_y - merange - 1)))  # fmt: skip
    candidates = [tuple(max(a, min(b, v)) for a, b, v in zip(low, high, candidate)) for candidate in candidates]
    block = source[y0 : y0 + 16, x0 : x0 + 16].astype(int)

    def cost(v):
        window = reference[y0 + v[1] + pad : y0 + v[1] + pad + 16, x0 + v[0] + pad : x0 + v[0] + pad + 16]
        return int(abs(window - block).sum()) + lam * (se_bits(4 * v[0]) + se_bits(4 * v[1]))

    return min(candidates, key=cost)


def step_search(source, reference, pad, centre, predictor, lam, merange, grid, mb, mb_width):
    """cost int[41], mv int[41, 2] of one macroblock, and the candidates looked at, in order, as [x, y]."""
    y0, x0 = mb // mb_width * 16, mb % mb_width * 16
    block = source[y0 : y0 + 16, x0 : x0 + 16].astype(int)
    (cx, cy), (px, py) = centre[mb].tolist(), predictor[mb].tolist()
    divisor = {3: 2, 7: 4, 13: 8}[grid]
    best = [(65536, 0, 0, 0)] * 41
    seen = []

    def look(x, y):
        if not (-merange <= x < merange and -merange <= y < merange):
            return
        seen.append((x, y))
        top, left = y0 + cy + y + pad, x0 + cx + x + pad
        difference = abs(reference[top : top + 16, left : left + 16].astype(int) - block)
        bits = se_bits(4 * (cx + x) - px) + se_bits(4 * (cy + y) - py)
        for k, (bx, by, w, h) in enumerate(PARTITIONS.tolist()):
            cost = min(65535, int(difference[by : by + h, bx : bx + w].sum()) + lam // 2 * bits)
            if cost < best[k][0]:
                best[k] = cost, x, y, bits

    look(0, 0)
    distance = max(1, merange // divisor)
    while True:
        _, x, y, _ = best[40]
        for j in range(-(grid // 2), grid // 2 + 1):
            for i in range(-(grid // 2), grid // 2 + 1):
                look(x + i * distance, y + j * distance)
        if distance == 1:
            break
        distance = max(1, distance // divisor)
    cost = np.array([value + (lam - lam // 2) * bits for value, _, _, bits in best])
    return cost, np.array([(4 * (cx + x), 4 * (cy + y)) for _, x, y, _ in best]), seen


def pattern_search(source, reference, pad, centre, predictor, lam, merange, pattern, mb, mb_width):
    """cost int[41], mv int[41, 2] of one macroblock, and the candidates looked at, in order, as [x, y].

    pattern: "dia", "hex", "umh".
    """
    y0, x0 = mb // mb_width * 16, mb % mb_width * 16
    block = source[y0 : y0 + 16, x0 : x0 + 16].astype(int)
    (cx, cy), (px, py) = centre[mb].tolist(), predictor[mb].tolist()
    best = [(65535, 0, 0)] * 41
    seen = []

    def bits(x, y):
        return se_bits(4 * (cx + x) - px) + se_bits(4 * (cy + y) - py)

    def look(points):
        """Returns the best of 16x16 after all of them."""
        for x, y in points:
            if not (-merange <= x < merange and -merange <= y < merange):
                continue
            seen.append((x, y))
            top, left = y0 + cy + y + pad, x0 + cx + x + pad
            difference = abs(reference[top : top + 16, left : left + 16].astype(int) - block)
            for k, (bx, by, w, h) in enumerate(PARTITIONS.tolist()):
                value = min(65535, int(difference[by : by + h, bx : bx + w].sum()) + lam // 2 * bits(x, y))
                if value < best[k][0]:
                    best[k] = value, x, y
        return best[40][1:]

    def round_about(middle, points):
        return look([(middle[0] + x, middle[1] + y) for x, y in points])

    diamond = [(0, -1), (-1, 0), (1, 0), (0, 1)]
    hexagon = [(-2, 0), (-1, 2), (1, 2), (2, 0), (1, -2), (-1, -2)]
    square = sorted([(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1) if (x, y) != (0, 0)], key=lambda v: v[::-1])
    ring = [(x, y) for y in range(-2, 3) for x in range(-2, 3) if max(abs(x), abs(y)) == 2]
    quarter, signs = ((4, 0), (4, 1), (4, 2), (2, 3), (0, 4)), (1, -1)
    sixteen = sorted({(i * x, j * y) for x, y in quarter for i in signs for j in signs}, key=lambda v: v[::-1])
    lead = look([(0, 0), (-cx, -cy)])
    if pattern == "dia":
        while (nearby := round_about(lead, diamond)) != lead:
            lead = nearby
    if pattern == "umh":
        lead = round_about(lead, diamond)
    if pattern == "umh" and best[40][0] >= UMH_ENOUGH * lam:
        cross = [(sign * s, 0) for s in range(3, merange, 2) for sign in (-1, 1)]
        lead = round_about(lead, cross + [(0, sign * s) for s in range(3, merange // 2, 2) for sign in (-1, 1)])
        lead = round_about(lead, square + ring)
        lead = round_about(lead, [(s * x, s * y) for s in range(1, merange // 4 + 1) for x, y in sixteen])
    if pattern != "dia":
        nearby = round_about(lead, hexagon)
        while nearby != lead:
            n = hexagon.index((nearby[0] - lead[0], nearby[1] - lead[1]))
            lead, nearby = nearby, round_about(nearby, [hexagon[(n + i) % 6] for i in (-1, 0, 1)])
        lead = round_about(lead, square)
    for k in range(32, 36):
        if best[k][1:] != lead:
            round_about(best[k][1:], square)
    cost = np.array([value + (lam - lam // 2) * bits(x, y) for value, x, y in best])
    return cost, np.array([(4 * (cx + x), 4 * (cy + y)) for _, x, y in best]), seen


def half_samples(plane):
    """8.4.2.2.1: planes G, b, h, j of a padded plane, reads outside it clamped."""
    height, width = plane.shape
    ys, xs = np.arange(-2, height + 3).clip(0, height - 1), np.arange(-2, width + 3).clip(0, width - 1)
    g = plane.astype(int)[ys][:, xs]
    taps = (1, -5, 20, 20, -5, 1)
    b1 = sum(t * g[:, i : i + width] for i, t in enumerate(taps))
    h1 = sum(t * g[i : i + height] for i, t in enumerate(taps))
    j1 = sum(t * b1[i : i + height] for i, t in enumerate(taps))
    b, h = ((x + 16 >> 5).clip(0, 255) for x in (b1[2 : 2 + height], h1[:, 2 : 2 + width]))
    return np.stack([plane, b, h, (j1 + 512 >> 10).clip(0, 255)]).astype(np.uint8)


def quarter_plane(planes, fx, fy):
    """8.4.2.2.1: the samples at (fx, fy) quarters right and below of every integer sample; the last row, column wrap."""
    g, b, h, j = planes.astype(int)
    m, s = np.roll(h, -1, 1), np.roll(b, -1, 0)
    right, below = np.roll(g, -1, 1), np.roll(g, -1, 0)
    pairs = [
        [(g, g), (g, b), (b, b), (b, right)],
        [(g, h), (b, h), (b, j), (b, m)],
        [(h, h), (h, j), (j, j), (j, m)],
        [(h, below), (h, s), (j, s), (m, s)],
    ]
    p, q = pairs[fy][fx]
    return (p + q + 1) >> 1


def sad(difference):
    return int(abs(difference).sum())


def satd(difference):
    """Half the sum of absolute 4x4 Hadamard coefficients."""
    hadamard = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
    height, width = difference.shape
    total = 0
    for y in range(0, height, 4):
        for x in range(0, width, 4):
            total += abs(hadamard @ difference[y : y + 4, x : x + 4] @ hadamard).sum()
    return int(total) // 2


def worth_refining(cost, lam, kinds, quiet):
    """Which of 41 partitions are refined up to subme 4: those whose layer costs little more than the undivided block.

    None if that costs less than `quiet`.
    """
    wanted = np.zeros(41, bool)
    wanted[40] = True
    if cost[40] < quiet:
        return wanted
    if kinds & 2:
        wanted[36:38] = cost[36] + cost[37] < cost[40] + 12 * lam
        wanted[38:40] = cost[38] + cost[39] < cost[40] + 12 * lam
    if kinds & 4 and cost[32:36].sum() < cost[40] + 8 * lam:
        wanted[32:36] = True
        for q in range(4 if kinds & 8 else 0):
            blocks = np.array([0, 1, 4, 5]) + (q // 2 * 8 + q % 2 * 2)
            for layer, slack in (((16 + 2 * q, 17 + 2 * q), -4), ((24 + 2 * q, 25 + 2 * q), -4), (blocks, -8)):
                if len(layer) == 4 and not kinds & 16:
                    continue
                wanted[list(layer)] = cost[list(layer)].sum() < cost[32 + q] + slack * lam
    return wanted


def subpel_refine(source, luma, pad, predictor, lam, subme, mb, mb_width, cost, mv, kinds=31):
    """cost int[41], mv int[41, 2] of one macroblock after refinement, by the definition."""
    y0, x0 = mb // mb_width * 16, mb % mb_width * 16
    cost, mv = cost.astype(int), mv.astype(int)
    if subme == 0:
        return cost, mv
    wanted = worth_refining(cost, lam if subme < 5 else 1 << 20, kinds if subme < 5 else 7, 96 * lam if subme < 4 else 0)
    wanted[:16] |= subme >= 5 and kinds & 16 > 0
    wanted[16:32] |= subme >= 5 and kinds & 8 > 0
    wanted[36:40] &= kinds & 2 > 0
    wanted[32:36] &= kinds & 4 > 0
    metrics = {1: (sad,), 2: (sad, sad), 3: (sad, satd)}.get(subme, (satd, satd))
    before = sad
    order = [(0, 0), (-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]
    fractions = {(fx, fy): quarter_plane(luma, fx, fy) for fx in range(4) for fy in range(4)}
    for step, metric in zip((2, 1), metrics):
        for k, (x, y, w, h) in enumerate(PARTITIONS.tolist()):
            if not wanted[k]:
                cost[k] = 1 << 20
                continue
            block = source[y0 + y : y0 + y + h, x0 + x : x0 + x + w].astype(int)
            start, best = mv[k].copy(), None
            for dx, dy in order:
                vx, vy = start[0] + step * dx, start[1] + step * dy
                if (dx, dy) == (0, 0) and metric is before:
                    value = cost[k]
                else:
                    py, px = y0 + y + pad + (vy >> 2), x0 + x + pad + (vx >> 2)
                    prediction = fractions[vx & 3, vy & 3][py : py + h, px : px + w]
                    bits = se_bits(int(vx - predictor[mb, 0])) + se_bits(int(vy - predictor[mb, 1]))
                    value = metric(prediction - block) + lam * bits
                if best is None or value < best:
                    best, mv[k] = value, (vx, vy)
            cost[k] = best
        before = metric
    return cost, mv


def intra_4x4_predictions(p, left, top):
    """8.3.1.2: {mode: 4x4 prediction} from p[x, y], the neighbouring samples as a function of position."""

    def each(f):
        return np.array([[f(int(c), int(r)) for c in range(4)] for r in range(4)])

    def three(a, b, c):
        return (p(*a) + 2 * p(*b) + p(*c) + 2) >> 2

    def two(a, b):
        return (p(*a) + p(*b) + 1) >> 1

    known = [p(c, -1) for c in range(4)] * top + [p(-1, r) for r in range(4)] * left
    modes = {2: np.full((4, 4), (sum(known) + len(known) // 2) // len(known) if known else 128)}
    if top:
        modes[0] = each(lambda x, y: p(x, -1))
        modes[3] = each(
            lambda x, y: (p(6, -1) + 3 * p(7, -1) + 2) >> 2
            if x == y == 3
            else three((x + y, -1), (x + y + 1, -1), (x + y + 2, -1))
        )
        modes[7] = each(
            lambda x, y: two((x + y // 2, -1), (x + y // 2 + 1, -1))
            if y % 2 == 0
            else three((x + y // 2, -1), (x + y // 2 + 1, -1), (x + y // 2 + 2, -1))
        )
    if left:
        modes[1] = each(lambda x, y: p(-1, y))

        def up(x, y):
            z = x + 2 * y
            if z > 5:
                return p(-1, 3)
            if z == 5:
                return (p(-1, 2) + 3 * p(-1, 3) + 2) >> 2
            k = y + x // 2
            return two((-1, k), (-1, k + 1)) if z % 2 == 0 else three((-1, k), (-1, k + 1), (-1, k + 2))

        modes[8] = each(up)
    if left and top:

        def down_right(x, y):
            if x > y:
                return three((x - y - 2, -1), (x - y - 1, -1), (x - y, -1))
            if x < y:
                return three((-1, y - x - 2), (-1, y - x - 1), (-1, y - x))
            return three((0, -1), (-1, -1), (-1, 0))

        def right(x, y):
            z, k = 2 * x - y, x - y // 2
            if z >= 0:
                return two((k - 1, -1), (k, -1)) if z % 2 == 0 else three((k - 2, -1), (k - 1, -1), (k, -1))
            if z == -1:
                return three((-1, 0), (-1, -1), (0, -1))
            return three((-1, y - 1), (-1, y - 2), (-1, y - 3))

        def down(x, y):
            z, k = 2 * y - x, y - x // 2
            if z >= 0:
                return two((-1, k - 1), (-1, k)) if z % 2 == 0 else three((-1, k - 2), (-1, k - 1), (-1, k))
            if z == -1:
                return three((-1, 0), (-1, -1), (0, -1))
            return three((x - 1, -1), (x - 2, -1), (x - 3, -1))

        modes[4], modes[5], modes[6] = each(down_right), each(right), each(down)
    return modes


def _estimate_8x8(source, lam, x0, y0, mb_left, top):
    """Cost as Intra_8x8 and the sixteen given modes."""
    hadamard = np.array([[1]])
    for _ in range(3):
        hadamard = np.kron(hadamard, [[1, 1], [1, -1]])
    total, chosen = lam * (12 + ue_bits(5)), []
    for q in range(4):
        x, y = x0 + 8 * (q % 2), y0 + 8 * (q // 2)
        left, above = mb_left or q % 2 > 0, top or q > 1
        predicted = min(chosen[q - 1] if q % 2 else 2, chosen[q - 2] if q > 1 else 2)
        best = []
        for mode in (2, *(0, 3, 7) * above, *(1, 8) * left, *(4, 5, 6) * (left and above)):
            right = q % 2 == 0 or (q == 1 and x + 8 < source.shape[1])
            prediction = naive_8x8.predict_8x8(source, x, y, mode, left, above, right)
            transformed = hadamard @ (source[y : y + 8, x : x + 8] - prediction) @ hadamard
            best.append(((int(abs(transformed).sum()) + 2) // 4 + lam * (1 if mode == predicted else 4), mode))
        total += min(best)[0]
        chosen.append(min(best)[1])
    return total, [32 + chosen[2 * (k // 8) + k % 4 // 2] for k in range(16)]


def intra_estimate(source, lam, mb, first_mb=0, with_8x8=False):
    """The estimate for macroblock mb of the slice that begins at first_mb by its definition: cost, sixteen given modes."""
    source = source.astype(int)
    width = source.shape[1]
    mb_width = width // 16
    x0, y0 = mb % mb_width * 16, mb // mb_width * 16
    block = source[y0 : y0 + 16, x0 : x0 + 16]
    left, top = x0 > 0 and mb > first_mb, mb - mb_width >= first_mb
    has_corner = left and mb - mb_width > first_mb
    above = source[y0 - 1, x0 : x0 + 16] if top else np.zeros(0, int)
    beside = source[y0 : y0 + 16, x0 - 1] if left else np.zeros(0, int)
    known = [*above, *beside]
    dc = (sum(known) + len(known) // 2) // len(known) if known else 128
    costs = [(satd(block - dc) + lam * ue_bits(8), 2)]
    if top:
        costs.append((satd(block - above) + lam * ue_bits(6), 0))
    if left:
        costs.append((satd(block - beside[:, None]) + lam * ue_bits(7), 1))
    if has_corner:
        corner = source[y0 - 1, x0 - 1]
        t, l = [corner, *above], [corner, *beside]
        h = sum(i * (t[8 + i] - t[8 - i]) for i in range(1, 9))
        v = sum(i * (l[8 + i] - l[8 - i]) for i in range(1, 9))
        b, c = (5 * h + 32) >> 6, (5 * v + 32) >> 6
        y, x = np.indices((16, 16))
        plane = (16 * (t[16] + l[16]) + b * (x - 7) + c * (y - 7) + 16) >> 5
        costs.append((satd(block - plane.clip(0, 255)) + lam * ue_bits(9), 3))
    total, chosen = lam * (24 + ue_bits(5)), {}
    for k in [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]:
        bx, by = k % 4, k // 4
        x, y = x0 + 4 * bx, y0 + 4 * by
        later = by > 0 and (bx == 3 or not decoded_before(bx, by, bx + 1, by - 1))
        last = 3 if later or x + 4 >= width else 7

        def sample(c, r, x=x, y=y, last=last):
            return int(source[y + r, x + min(c, last)])

        predicted = min(chosen.get((bx - 1, by), 2), chosen.get((bx, by - 1), 2))
        best = None
        for mode, prediction in intra_4x4_predictions(sample, left or bx > 0, top or by > 0).items():
            if k == 0 and mode in (4, 5, 6) and not has_corner:
                continue
            value = satd(source[y : y + 4, x : x + 4] - prediction) + lam * (1 if mode == predicted else 4)
            key = (value, [2, 0, 3, 7, 1, 8, 4, 5, 6].index(mode))
            if best is None or key < best:
                best, chosen[bx, by] = key, mode
        total += best[0]
    cost, mode = min(costs, key=lambda pair: pair[0])  # the first of several
    modes = [16 + mode] * 16
    if with_8x8 and (has_corner or not left or not top):
        cost, modes = min((cost, modes), _estimate_8x8(source, lam, x0, y0, left, top), key=lambda pair: pair[0])
    return min(cost, total), [chosen[k % 4, k // 4] for k in range(16)] if total < cost else modes
