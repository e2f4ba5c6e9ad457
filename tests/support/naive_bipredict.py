"""bipredict by its definition, one prediction of one partition at a time: the reference of its tests."""

import numpy as np
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED
from h264lite.cpu_simd.decisions.decide import B_REFINED
from h264lite.cpu_simd.layout import PARTITIONS

from . import naive

AROUND = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]
NO_CHOICE = 1 << 28, (-1, -1), ((0, 0), (0, 0))


def reference_bits(ref, count):
    return naive.ue_bits(ref) if count > 2 else count - 1


def plus(vector, step, sign=1):
    return vector[0] + sign * step[0], vector[1] + sign * step[1]


class Macroblock:
    """One macroblock of the frame.

    fractions: of each slot, the planes of the samples at (x, y) quarters; bundles: LumaReferences, Searches.
    """

    def __init__(self, mb, source, fractions, references, searches, lam, subme, max_mv_y):
        height, width = source.shape
        self.mb, self.lam, self.subme, self.max_mv_y, self.size = mb, lam, subme, max_mv_y, (width, height)
        self.x, self.y = mb % (width // 16) * 16, mb // (width // 16) * 16
        self.block = source[self.y : self.y + 16, self.x : self.x + 16].astype(int)
        self.fractions, self.references, self.searches = fractions, references, searches

    def entry(self, side, ref):
        return self.references.n_ref * side + ref

    def predicted(self, side, ref, vector):
        """int[16, 16]."""
        pad, (x, y) = self.references.pad, vector
        plane = self.fractions[self.references.slots[self.entry(side, ref)]][x & 3, y & 3]
        top, left = self.y + pad + (y >> 2), self.x + pad + (x >> 2)
        return plane[top : top + 16, left : left + 16].astype(int)

    def bits(self, side, ref, vector):
        predictor = self.searches.predictor[self.entry(side, ref), self.mb].astype(int)
        count = self.references.n_ref1 if side else self.references.n_ref
        return int(naive.vector_bits(np.array(vector) - predictor)) + reference_bits(ref, count)

    def legal(self, vector):
        pad, (width, height) = self.references.pad, self.size
        left, top = self.x + (vector[0] >> 2), self.y + (vector[1] >> 2)
        in_frame = -pad <= left <= width + pad - 17 and -pad <= top <= height + pad - 17
        return in_frame and abs(vector[0]) < 8188 and -4 * self.max_mv_y <= vector[1] < 4 * self.max_mv_y

    def distortion(self, prediction, k):
        x, y, w, h = PARTITIONS[k].tolist()
        difference = (prediction - self.block)[y : y + h, x : x + w]
        return naive.satd(difference) if self.subme >= 3 else int(abs(difference).sum())

    def both(self, pair, k):
        """(distortion, cost) of a pair ((ref, vector), (ref, vector)) for partition k."""
        (r0, v0), (r1, v1) = pair
        w1 = int(self.references.bi_weights[r0 * self.references.n_ref1 + r1])
        a, b = self.predicted(0, r0, v0), self.predicted(1, r1, v1)
        value = self.distortion(((a * (64 - w1) + b * w1 + 32) >> 6).clip(0, 255), k)
        return value, value + self.lam * (self.bits(0, r0, v0) + self.bits(1, r1, v1))

    def best_entry(self, side, k):
        """(cost, (ref, vector)), or None if the partition was not refined."""
        count, best = (self.references.n_ref1 if side else self.references.n_ref), None
        for ref in range(count):
            cost = int(self.searches.cost[self.entry(side, ref), self.mb, k]) + self.lam * reference_bits(ref, count)
            if cost < COST_NOT_REFINED // 2 and (best is None or cost < best[0]):
                best = cost, (ref, tuple(self.searches.mv[self.entry(side, ref), self.mb, k].tolist()))
        return best

    def pairs(self, entries):
        """All pairs in the order of the trials. entries: by partition, best_entry of both lists."""
        tried = []
        for k in (40, *range(32, 40)):
            if k in entries and None not in entries[k]:
                tried.append(tuple(entry for _, entry in entries[k]))
        tried = [pair for pair in tried if self.legal(pair[0][1]) and self.legal(pair[1][1])]
        if not tried or self.subme < B_REFINED:
            return tried
        of_lists = [best[0] if best else COST_NOT_REFINED // 2 for best in entries[40]]
        one = min(of_lists[0] + self.lam, of_lists[1] + 2 * self.lam)
        if min(self.both(pair, 40)[1] for pair in tried) + 3 * self.lam >= one:
            return tried
        for step in range(3):
            (r0, v0), (r1, v1) = min(tried, key=lambda pair: self.both(pair, 40)[1])  # the first one of them
            if step == 0:
                moved = [((r0, plus(v0, d)), (r1, v1)) for d in AROUND]
            elif step == 1:
                moved = [((r0, v0), (r1, plus(v1, d))) for d in AROUND]
            else:
                steps = [(dx, dy) for dx, dy in AROUND if dx == 0 or dy == 0]
                moved = [((r0, plus(v0, d, s)), (r1, plus(v1, d))) for d in steps for s in (1, -1)]
            tried += [pair for pair in moved if self.legal(pair[0][1]) and self.legal(pair[1][1])]
        return tried

    def choices(self, partition_mask):
        """(cost, refs, vectors) of the eleven choices."""
        sizes = {k: 4 if k < 36 else 2 if k < 40 else 0 for k in range(32, 41)}
        wanted = [k for k in sizes if sizes[k] == 0 or partition_mask & sizes[k]]
        entries = {k: (self.best_entry(0, k), self.best_entry(1, k)) for k in wanted}
        tried = self.pairs(entries)
        best_choices = []
        for k, kinds in [(k, (0, 1, 2)) for k in range(32, 40)] + [(40, (0,)), (40, (1,)), (40, (2,))]:
            options = []
            one0, one1 = entries.get(k, (None, None))
            if 0 in kinds and one0:
                cost, (ref, v) = one0
                options.append((cost + 1 * self.lam, cost - self.lam * self.bits(0, ref, v), (ref, -1), (v, (0, 0))))
            if 1 in kinds and one1:
                cost, (ref, v) = one1
                options.append((cost + 2 * self.lam, cost - self.lam * self.bits(1, ref, v), (-1, ref), ((0, 0), v)))
            if 2 in kinds and tried and (one0 or one1):
                pair = min(tried, key=lambda pair: self.both(pair, k)[1])
                value, cost = self.both(pair, k)
                options.append((cost + 3 * self.lam, value, (pair[0][0], pair[1][0]), (pair[0][1], pair[1][1])))
            best_choices.append(min(options, key=lambda option: option[0])[1:] if options else NO_CHOICE)
        return best_choices
