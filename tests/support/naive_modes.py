"""mode_decision by its definition, one macroblock at a time in plain Python."""

import numpy as np
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.decisions.decide import RD_SKIP_WEIGHT
from h264lite.standard.macroblock import P_SKIP, I_16x16, P_8x8, P_8x16, P_16x8, P_16x16
from h264lite.standard.tables import QUANT_MF

from . import naive

SHAPES = {P_16x16: (0, 0, 4, 4), P_16x8: (0, 0, 4, 2), P_8x16: (0, 0, 2, 4)}
CORE = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])
LEVEL_SCORES = np.array([[3, 2, 1, 1], [2, 1, 1, 0], [2, 1, 0, 0], [0, 0, 0, 0]])


def te_bits(ref, n_ref):
    return 0 if n_ref == 1 else 1 if n_ref == 2 else naive.ue_bits(ref)


def empty(difference, qp):
    """Whether the levels of a 16x16 residual are not worth coding."""
    score, shift = 0, 15 + qp // 6
    for y in range(0, 16, 4):
        for x in range(0, 16, 4):
            size = abs(CORE @ difference[y : y + 4, x : x + 4] @ CORE.T)
            level = (size * QUANT_MF[qp % 6].reshape(4, 4).astype(int) + (1 << shift) // 6) >> shift
            score += (LEVEL_SCORES * (level > 0)).sum() + 6 * (level > 1).sum()
    return score < 6


class Decision:
    """The choice for macroblock mb; `prior` = (ref_idx, mv) of those before it; by_cost: with P_Skip by squared error."""

    def __init__(self, s, mb, prior, qp, metric, max_mv_y, n_ref, kinds, by_cost=False):
        self.by_cost = by_cost
        self.s, self.mb, self.lam, self.qp, self.n_ref, self.kinds = s, mb, int(LAMBDA[qp]), qp, n_ref, kinds
        self.metric, self.max_mv_y = metric, max_mv_y
        self.ref_idx, self.mv = prior[0].copy(), prior[1].astype(int)
        self.mb_width = s["source"].shape[1] // 16
        self.first = int(s["slice_first_mb"][mb])

    def distortion(self, k, ref):
        bits = sum(
            naive.se_bits(int(a - b)) for a, b in zip(self.s["mv"][ref, self.mb, k], self.s["predictor"][ref, self.mb])
        )
        return int(self.s["cost"][ref, self.mb, k]) - self.lam * bits

    def vector_cost(self, bx, by, bw, bh, ref, vector):
        predictor = naive.predict_mv(self.mb, bx, by, bw, bh, ref, self.ref_idx, self.mv, self.mb_width, self.first)
        return self.lam * sum(naive.se_bits(int(a - b)) for a, b in zip(vector, predictor))

    def put(self, bx, by, bw, bh, ref, vector):
        for y in range(by, by + bh):
            for x in range(bx, bx + bw):
                self.mv[self.mb, y * 4 + x] = vector
                self.ref_idx[self.mb, y // 2 * 2 + x // 2] = ref

    def partition(self, k, bx, by, bw, bh, refs, fixed=0):
        """Cheapest reference of one partition, put in place."""
        best = None
        for ref in refs:
            vector = self.s["mv"][ref, self.mb, k]
            cost = self.distortion(k, ref) + self.vector_cost(bx, by, bw, bh, ref, vector)
            cost += self.lam * te_bits(ref, self.n_ref) * (not fixed)
            if best is None or cost < best[0]:
                best = cost, ref, vector
        self.put(bx, by, bw, bh, *best[1:])
        return best[0]

    def quadrant(self, q):
        bx, by = q % 2 * 2, q // 2 * 2
        layouts = {
            0: [(32 + q, 0, 0, 2, 2)],
            1: [(16 + 2 * q, 0, 0, 2, 1), (17 + 2 * q, 0, 1, 2, 1)],
            2: [(24 + 2 * q, 0, 0, 1, 2), (25 + 2 * q, 1, 0, 1, 2)],
            3: [((by + y) * 4 + bx + x, x, y, 1, 1) for y in (0, 1) for x in (0, 1)],
        }
        best = None
        for sub, parts in layouts.items():
            if sub == 0:
                cost = self.partition(32 + q, bx, by, 2, 2, range(self.n_ref)) + self.lam
                ref = int(self.ref_idx[self.mb, q])
            elif not self.kinds & (16 if sub == 3 else 8):
                break
            else:
                cost = self.lam * (naive.ue_bits(sub) + te_bits(ref, self.n_ref))
                cost += sum(self.partition(k, bx + x, by + y, w, h, [ref], 1) for k, x, y, w, h in parts)
            if best is None or cost < best[0]:
                best = cost, sub, self.ref_idx.copy(), self.mv.copy()
        self.ref_idx, self.mv = best[2], best[3]
        return best[:2]

    def prediction(self, x, y):
        """16x16 samples of reference 0 at a vector, None if some are missing."""
        s, pad = self.s, self.s["pad"]
        height, width = s["source"].shape
        left, top = self.mb % self.mb_width * 16 + (x >> 2), self.mb // self.mb_width * 16 + (y >> 2)
        if left < -pad or left + 17 > width + pad or top < -pad or top + 17 > height + pad:
            return None
        if abs(x) >= 4 * 2047 or not -4 * self.max_mv_y <= y < 4 * self.max_mv_y:
            return None
        plane = naive.quarter_plane(s["luma"][s["slots"][0]], x & 3, y & 3)
        return plane[top + pad : top + pad + 16, left + pad : left + pad + 16]

    def choose(self):
        """(mb_type, sub_mb_type, ref_idx[4], mv[16, 2])"""
        mb, lam = self.mb, self.lam
        y0, x0 = mb // self.mb_width * 16, mb % self.mb_width * 16
        block = self.s["source"][y0 : y0 + 16, x0 : x0 + 16].astype(int)
        skip = naive.predict_skip_mv(mb, self.ref_idx, self.mv, self.mb_width, self.first)
        median = naive.predict_mv(mb, 0, 0, 4, 4, 0, self.ref_idx, self.mv, self.mb_width, self.first)
        best = self.partition(40, 0, 0, 4, 4, range(self.n_ref)) + 2 * lam
        for n, vector in enumerate((skip, median)):
            prediction = self.prediction(*vector)
            if prediction is None or (n == 1 and vector == skip):
                continue
            value = self.metric(prediction - block)
            if n == 0 and not self.by_cost and value + lam <= best and empty(block - prediction, self.qp):
                self.put(0, 0, 4, 4, 0, vector)
                return P_16x16, [0] * 4, self.ref_idx[mb], self.mv[mb]
            value += lam * (2 + te_bits(0, self.n_ref)) + self.vector_cost(0, 0, 4, 4, 0, vector)
            if value < best:
                best = value
                self.put(0, 0, 4, 4, 0, vector)
        if self.ref_idx[mb, 0] == 0:
            cx, cy = self.mv[mb, 0].tolist()
            for x, y in ((cx + dx, cy + dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy):
                prediction = self.prediction(x, y)
                if prediction is None:
                    continue
                value = self.metric(prediction - block) + lam * (2 + te_bits(0, self.n_ref))
                value += self.vector_cost(0, 0, 4, 4, 0, (x, y))
                if value < best:
                    best = value
                    self.put(0, 0, 4, 4, 0, (x, y))
        chosen = best, P_16x16, [0] * 4, self.ref_idx.copy(), self.mv.copy()
        refs = range(self.n_ref)
        for shape, k in ((P_16x8, 36), (P_8x16, 38)):
            if not self.kinds & 2:
                break
            x, y, w, h = SHAPES[shape]
            cost = 4 * lam + self.partition(k, x, y, w, h, refs)
            cost += self.partition(k + 1, x + w & 3, y + h & 3, w, h, refs)
            if cost < chosen[0]:
                chosen = cost, shape, [0] * 4, self.ref_idx.copy(), self.mv.copy()
        if self.kinds & 4:
            costs, subs = zip(*(self.quadrant(q) for q in range(4)))
            if 6 * lam + sum(costs) < chosen[0]:
                chosen = 6 * lam + sum(costs), P_8x8, list(subs), self.ref_idx.copy(), self.mv.copy()
        intra = int(self.s["intra_cost"][mb]) + 28 * lam
        prediction = self.prediction(*skip)
        if self.by_cost and prediction is not None:
            error = int(((block - prediction) ** 2).sum()) * int(RD_SKIP_WEIGHT[self.qp]) >> 16
            if error <= min(chosen[0], intra) + int(self.s["skip_limit"][mb]):
                self.put(0, 0, 4, 4, 0, skip)
                return P_SKIP, [0] * 4, self.ref_idx[mb], self.mv[mb]
        if intra < chosen[0]:
            return I_16x16, [0] * 4, np.full(4, -1), np.zeros((16, 2), int)
        return chosen[1], chosen[2], chosen[3][mb], chosen[4][mb]
