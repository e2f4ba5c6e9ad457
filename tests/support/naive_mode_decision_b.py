"""mode_decision_b by its definition, one macroblock at a time in plain Python."""

import numpy as np
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.decisions.decide import PSY_ERROR, RD_SKIP_WEIGHT
from h264lite.standard.macroblock import B_DIRECT, B_SKIP, B_8x8, B_8x16, B_16x8, B_16x16, I_16x16

from . import naive
from .naive_modes import empty, te_bits

# Table 7-14: mb_type by the lists of the parts (list 0, list 1, both) of 16x8; of 8x16 it is one more
PAIRS = ((4, 8, 12), (10, 6, 14), (16, 18, 20))
HADAMARD = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
QUADRANTS = ((0, 0), (2, 0), (0, 2), (2, 2))


def predicted_block(planes, pad, x, y, size, vector):
    """8.4.2.2.1: samples of the block at frame position (x, y); beyond the border the border's edge is repeated."""
    height, width = planes.shape[1:]
    plane = naive.quarter_plane(planes, vector[0] & 3, vector[1] & 3)
    rows = (np.arange(size) + y + pad + (vector[1] >> 2)).clip(0, height - 2)
    columns = (np.arange(size) + x + pad + (vector[0] >> 2)).clip(0, width - 2)
    return plane[rows][:, columns]


def direct_motion(mb, still, motion, mb_width, first):
    """8.4.1.2.2 word by word: (reference, vectors of the quadrants) of both lists. motion: (ref_idx, mv) of both."""
    of_lists = []
    for ref_idx, mv in motion:
        a, b, c = (naive.neighbour(mb, *at, ref_idx, mv, mb_width, first, (0, 0)) for at in ((-1, 0), (0, -1), (4, -1)))
        if c is None:
            c = naive.neighbour(mb, -1, -1, ref_idx, mv, mb_width, first, (0, 0))
        used = [n[0] for n in (a, b, c) if n is not None and n[0] >= 0]
        ref = min(used) if used else -1  # MinPositive of three
        vector = naive.predict_mv(mb, 0, 0, 4, 4, ref, ref_idx, mv, mb_width, first) if ref >= 0 else (0, 0)
        of_lists.append((ref, [(0, 0) if ref == 0 and still >> q & 1 else tuple(vector) for q in range(4)]))
    if of_lists[0][0] < 0 and of_lists[1][0] < 0:
        return [(0, [(0, 0)] * 4)] * 2
    return of_lists


def direct_luma(r, x0, y0, direct):
    """8.4.2: luma of the macroblock at (x0, y0) by direct prediction. r: References; direct: as of direct_motion."""
    out = np.zeros((16, 16), int)
    for q, (bx, by) in enumerate(QUADRANTS):
        parts = []
        for k, (ref, vectors) in enumerate(direct):
            if ref >= 0:
                planes = r.luma[r.slots[ref + k * r.n_ref]]
                parts.append(predicted_block(planes, r.pad, x0 + 4 * bx, y0 + 4 * by, 8, vectors[q]))
        if len(parts) == 2:
            w1 = int(r.bi_weights[direct[0][0] * r.n_ref1 + direct[1][0]])
            parts = [((parts[0] * (64 - w1) + parts[1] * w1 + 32) >> 6).clip(0, 255)]
        out[4 * by : 4 * by + 8, 4 * bx : 4 * bx + 8] = parts[0]
    return out


def energies(block):
    """Of the quadrants: magnitudes of Hadamard coefficients of their 4x4 blocks without the DC."""
    total = [0] * 4
    for y in range(0, 16, 4):
        for x in range(0, 16, 4):
            c = abs(HADAMARD @ block[y : y + 4, x : x + 4] @ HADAMARD)
            total[y // 8 * 2 + x // 8] += int(c.sum() - c[0, 0])
    return total


class DecisionB:
    """The choice for macroblock mb of a scene; prior: (ref_idx, mv) of both lists of the macroblocks before it."""

    def __init__(self, s, mb, prior, settings):
        self.s, self.mb, self.settings = s, mb, settings
        self.qp = int(s["qp"][mb])
        self.lam = int(LAMBDA[self.qp])
        self.motion = [(ref_idx.copy(), mv.astype(int)) for ref_idx, mv in prior]
        self.mb_width = s["source"].shape[1] // 16
        self.first = int(s["first"][mb])
        self.metric = naive.satd if settings.subme >= 3 else naive.sad
        self.counts = s["references"].n_ref, s["references"].n_ref1

    def put(self, bx, by, bw, bh, pair):
        """pair: (reference, vector) of both lists."""
        for (ref_idx, mv), (ref, vector) in zip(self.motion, pair):
            for y in range(by, by + bh):
                for x in range(bx, bx + bw):
                    mv[self.mb, 4 * y + x] = vector
                    ref_idx[self.mb, y // 2 * 2 + x // 2] = ref

    def pair(self, c):
        ref, mv = self.s["candidates"].ref[self.mb, c], self.s["candidates"].mv[self.mb, c]
        if c >= 8 and self.settings.cabac and self.settings.subme >= 9:
            mv = self.s["candidates"].moved[self.mb, c - 8]
        return [(int(ref[k]), tuple(mv[k].tolist()) if ref[k] >= 0 else (0, 0)) for k in range(2)]

    def kind(self, c):
        used = [ref >= 0 for ref, _ in self.pair(c)]
        return 2 if all(used) else used.index(True)

    def part(self, c, bx, by, bw, bh):
        """Cost of a choice by the actual predictors; it is put in place."""
        bits = 0
        for k, (ref, vector) in enumerate(self.pair(c)):
            if ref >= 0:
                p = naive.predict_mv(self.mb, bx, by, bw, bh, ref, *self.motion[k], self.mb_width, self.first)
                bits += te_bits(ref, self.counts[k]) + sum(naive.se_bits(int(a - b)) for a, b in zip(vector, p))
        self.put(bx, by, bw, bh, self.pair(c))
        return int(self.s["candidates"].cost[self.mb, c]) + self.lam * bits

    def state(self):
        return [(ref_idx[self.mb].copy(), mv[self.mb].copy()) for ref_idx, mv in self.motion]

    def put_direct(self, direct, q):
        self.put(*QUADRANTS[q], 2, 2, [(ref, vectors[q]) for ref, vectors in direct])

    def options(self, direct, direct_costs):
        """(cost, mb_type, sub_mb_type, motion) of all inter types but B_Skip, in the order of preference."""
        mask, mb, lam = self.settings.partition_mask, self.mb, self.lam
        extra = self.s["candidates"].extra[mb].astype(int)
        for k in range(3):
            cost = self.part(8 + k, 0, 0, 4, 4) + int(extra[k])
            yield cost + lam * (1 + naive.ue_bits(1 + self.kind(8 + k))), B_16x16, [0] * 4, self.state()
        for q in range(4):
            self.put_direct(direct, q)
        yield sum(direct_costs) + int(extra[6]) + 2 * lam, B_DIRECT, [0] * 4, self.state()
        for shape in range(2 if mask & 2 else 0):
            parts = [(4, 0, 0, 4, 2), (5, 0, 2, 4, 2)] if shape == 0 else [(6, 0, 0, 2, 4), (7, 2, 0, 2, 4)]
            bits = 1 + naive.ue_bits(PAIRS[self.kind(parts[0][0])][self.kind(parts[1][0])] + shape)
            cost = int(extra[3 + shape]) + lam * bits + sum(self.part(*part) for part in parts)
            yield cost, (B_16x8, B_8x16)[shape], [0] * 4, self.state()
        if mask & 4:
            cost, subs = int(extra[5]) + lam * (1 + naive.ue_bits(22)), []
            for q in range(4):
                sub = 1 + self.kind(q)
                value, explicit = self.part(q, *QUADRANTS[q], 2, 2) + lam * naive.ue_bits(sub), direct_costs[q] + lam
                if explicit <= value:
                    value, sub = explicit, 0
                    self.put_direct(direct, q)
                subs.append(sub)
                cost += value
            yield cost, B_8x8, subs, self.state()
        intra = int(self.s["other_costs"].intra_cost[mb]) + 32 * lam
        yield intra, I_16x16, [0] * 4, [(np.full(4, -1), np.zeros((16, 2), int))] * 2

    def choose(self):
        """(mb_type, sub_mb_type, (ref_idx[4], mv[16, 2]) of both lists)"""
        mb, lam = self.mb, self.lam
        y0, x0 = mb // self.mb_width * 16, mb % self.mb_width * 16
        block = self.s["source"][y0 : y0 + 16, x0 : x0 + 16].astype(int)
        direct = direct_motion(mb, int(self.s["still"][mb]), self.motion, self.mb_width, self.first)
        luma = direct_luma(self.s["references"], x0, y0, direct)
        costs = [self.metric((luma - block)[4 * y : 4 * y + 8, 4 * x : 4 * x + 8]) for x, y in QUADRANTS]
        options = list(self.options(direct, costs))
        best = min(options, key=lambda option: option[0])  # the first of equal ones
        if not (self.settings.cabac and self.settings.subme >= 6):
            if sum(costs) + lam <= min(cost for cost, *_ in options[:3]) and empty(block - luma, self.qp):
                return options[3][1:]
            return best[1:]
        error = int(((block - luma) ** 2).sum())
        difference = sum(abs(a - b) for a, b in zip(energies(luma), energies(block)))
        error += difference * self.settings.psy_rd * int(PSY_ERROR[self.qp]) >> 24
        cost = error * int(RD_SKIP_WEIGHT[self.qp]) >> 16
        if cost + int(self.s["other_costs"].skip_limit[mb]) + lam <= best[0]:
            return B_SKIP, *options[3][2:]
        return best[1:]
