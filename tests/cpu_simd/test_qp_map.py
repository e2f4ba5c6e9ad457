"""A QP for each macroblock: each stage gives a macroblock the result that it has with its QP in the whole frame."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import (
    Coarse,
    CodingTools,
    DecisionSettings,
    Motion,
    Planes,
    PreviousMotion,
    Quantiser,
    References,
    Residual,
    Searches,
    SearchResult,
    SearchStart,
)
from h264lite.cpu_simd.decide.rd_decision import rd_decision
from h264lite.cpu_simd.inter.interpolate import interpolate
from h264lite.cpu_simd.intra.intra_estimate import intra_estimate
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.search.search_centre import search_centre, subsample
from h264lite.cpu_simd.search.step_search import step_search
from h264lite.cpu_simd.search.subpel_refine import subpel_refine

from ..support.bundles import coarse_shape
from ..support.cuda_cases import padded, plane, shifted
from ..support.quantiser import varying

SEED = 7
WIDTH, HEIGHT, PAD, RANGE = 64, 48, 64, 16
ROWS, N_MB = HEIGHT // 16, WIDTH * HEIGHT // 256


class Scene:
    """Pictures and searched vectors, the same for every test."""

    def __init__(self, width=WIDTH, height=HEIGHT):
        self.rng = np.random.default_rng(SEED)
        self.n_mb, self.rows = width * height // 256, height // 16
        self.luma = np.zeros((4, height + 2 * PAD, width + 2 * PAD), np.uint8)
        self.luma[0] = padded(plane(self.rng, "smooth", height, width), PAD)
        interpolate(self.luma, PAD, 0, self.rows)
        self.source = shifted(self.rng, self.luma[0], PAD)
        self.predictor = self.rng.integers(-40, 41, (self.n_mb, 2)).astype(np.int16)
        self.start = SearchStart(np.zeros((self.n_mb, 2), np.int16), self.predictor)
        self.qp = varying(self.rng, self.n_mb)

    def check(self, stage):
        """stage(qp): a tuple of arrays by macroblock."""
        qp = self.qp
        results = stage(qp)
        changed = 0
        for value in set(qp.tolist()):
            alone = stage(np.full(self.n_mb, value, np.uint8))
            for a, b in zip(results, alone):
                np.testing.assert_array_equal(a[qp == value], b[qp == value])
                changed += (a[qp != value] != b[qp != value]).sum()
        assert changed  # QP matters

    def search(self, function, qp, *more):
        result = SearchResult(np.zeros((self.n_mb, 41), np.int32), np.zeros((self.n_mb, 41, 2), np.int16))
        function(self.source, self.luma[0], PAD, self.start, qp, RANGE, *more, 0, self.rows, result)
        return result


def test_search_centre():
    s = Scene()
    coarse = Coarse(*(np.zeros(coarse_shape(HEIGHT, WIDTH), np.uint8) for _ in range(2)))
    subsample(s.source, s.luma[0], PAD, 0, ROWS, coarse)
    vectors = s.rng.integers(-30, 30, (N_MB, 16, 2)).astype(np.int16)
    one = np.ones(1, np.int32)
    previous = PreviousMotion(np.zeros((N_MB, 4), np.int8), vectors, one, one, np.zeros(2, np.int16))

    def stage(qp):
        start = SearchStart(*np.zeros((2, N_MB, 2), np.int16))
        search_centre(s.source, s.luma[0], PAD, coarse, previous, qp, RANGE, 128, 0, ROWS, start)
        return start

    s.check(stage)


def test_full_search():
    s = Scene()
    s.check(lambda qp: s.search(full_search, qp))


@pytest.mark.parametrize("grid", [3, 7, 13])
def test_step_search(grid):
    s = Scene()
    s.check(lambda qp: s.search(step_search, qp, grid))


@pytest.mark.parametrize("subme", [2, 4, 5])
def test_subpel_refine(subme):
    s = Scene()
    searched = s.search(full_search, s.qp)

    def stage(qp):
        result = SearchResult(*(a.copy() for a in searched))
        subpel_refine(s.source, s.luma, PAD, s.predictor, qp, subme, 0, ROWS, result)
        return result

    s.check(stage)


def test_intra_estimate():
    s = Scene()
    inter = np.full((1, N_MB, 41), 1 << 20, np.int32)

    def stage(qp):
        cost, modes = np.zeros(N_MB, np.int32), np.zeros((N_MB, 16), np.uint8)
        intra_estimate(s.source, qp, inter, 1, np.zeros(N_MB, np.int32), CodingTools(0, 0, 0), 0, ROWS, cost, modes)
        return cost, modes

    s.check(stage)


def test_rd_decision():
    """One macroblock a slice, so that macroblocks are independent."""
    s = Scene(16, 16 * 12)
    cost, mv = s.search(full_search, s.qp)
    chroma = np.full((1, 2, 8 * s.rows + PAD, 8 + PAD), 90, np.uint8)
    sources = Planes(s.source, *s.rng.integers(80, 100, (2, 8 * s.rows, 8)).astype(np.uint8))
    slices, slots = np.arange(s.rows, dtype=np.int32), np.zeros(1, np.int32)

    def stage(qp):
        shapes = ((), "u1"), ((4,), "u1"), ((4,), "i1"), ((16, 2), "i2"), ((27, 16), "i2"), ((24,), "u1"), *2 * [((), "u1")]
        out = [np.zeros((s.n_mb, *shape), kind) for shape, kind in shapes]
        references = References(s.luma[None], chroma, slots, slots, np.zeros(18, np.int32), PAD, 1)
        searches, intra_cost = Searches(cost[None], mv[None], s.predictor[None]), np.full(s.n_mb, 1 << 20, np.int32)
        how = Quantiser(qp, -2), DecisionSettings(5, 1, 128, 31), np.zeros(1 + s.rows, np.int64)
        results = Motion(*out[:4]), Residual(*out[4:])
        rd_decision(sources, references, searches, intra_cost, slices, *how, 0, s.rows, *results)
        return out[:4]

    s.check(stage)
