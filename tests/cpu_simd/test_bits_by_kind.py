"""Bits by kind against slow writers: code words of CAVLC, shares of codIRange of CABAC; their sum against the slice data."""

from math import log2

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Entries, Macroblocks
from h264lite.cpu_simd.entropy.bits_by_kind import CHROMA, LUMA, N_KINDS, OTHER, UNIT, VECTORS, bits_by_kind
from h264lite.cpu_simd.layout import CB_DC, HEADER_BITS
from h264lite.standard import macroblock as mbk

from ..support import naive_b, naive_cabac, naive_entropy

SEED = 4711
CASES = ((3, 4, 0, 0.3, 40), (4, 3, 1, 0.3, 40), (3, 4, 2, 0.1, 1000), (7, 1, 16, 0.05, 1))


def counted(state, rows, qp, init, cabac, mode_8x8):
    kinds = np.full(N_KINDS, 99, np.int64)
    params = np.array([qp, init] + [0] * HEADER_BITS, np.int32)
    tools = CodingTools(0, int(mode_8x8), int(cabac))
    arrays = Macroblocks(*state.arrays()[:-3])
    starts = state.mb_width * np.array(rows, np.int32)
    bits_by_kind(starts, params, Entries(state.n_ref, state.n_ref1), state.mb_width, arrays, tools, kinds)
    return kinds


class CountingEngine(naive_cabac.Engine):
    """Adds up log2 of the shares of codIRange under the name `kind`."""

    def __init__(self, *args):
        super().__init__(*args)
        self.kind, self.sums = OTHER, [0.0] * N_KINDS

    def renormalise(self):
        self.sums[self.kind] += log2(self.before / self.range)
        super().renormalise()

    def decision(self, context, value):
        self.before = self.range
        super().decision(context, value)

    def terminate(self, value):
        self.before = self.range
        super().terminate(value)

    def bypass(self, value):
        self.sums[self.kind] += 1
        super().bypass(value)


class Counting:
    """Says to the engine what a slice writes."""

    def _as(self, kind, write, *args):
        before, self.engine.kind = self.engine.kind, kind
        result = write(*args)
        self.engine.kind = before
        return result

    def motion(self):
        return self._as(VECTORS, super().motion)

    def coded_flag(self, category, *args):
        return self._as(CHROMA if category in (3, 4) else LUMA, super().coded_flag, category, *args)

    def block(self, category, levels):
        return self._as(CHROMA if category in (3, 4) else LUMA, super().block, category, levels)


class CountingSlice(Counting, naive_cabac.Slice):
    """Of a P or I frame."""


class CountingBSlice(Counting, naive_b.BSlice):
    """Of a B frame."""


def b_state(rng, width, height, n_ref, qp, density, largest, mode_8x8):
    """A random state with as many entries in list 1."""
    return naive_b.random_b_state(rng, width, height, n_ref, n_ref, qp, density, largest, mode_8x8=int(mode_8x8))


@pytest.mark.parametrize("mode_8x8", (False, True))
@pytest.mark.parametrize("is_b", (False, True))
@pytest.mark.parametrize("case", CASES)
def test_cabac(case, is_b, mode_8x8, monkeypatch):
    width, height, n_ref, density, largest = case
    if is_b and not n_ref:
        return
    monkeypatch.setattr(naive_cabac, "Engine", CountingEngine)
    for seed in range(2):
        rng = np.random.default_rng([SEED, seed])
        qp, init = int(rng.integers(0, 52)), int(rng.integers(0, 3))
        make = naive_cabac.random_state_8x8 if mode_8x8 else naive_cabac.random_state
        state = make(rng, width, height, n_ref, qp, density, largest)
        writer = CountingSlice
        if is_b:
            state, writer = b_state(rng, width, height, n_ref, qp, density, largest, mode_8x8), CountingBSlice
        rows = sorted({0, height // 2, height})
        written = [writer(state, width * a, width * b, qp, init, mode_8x8).engine for a, b in zip(rows, rows[1:])]
        pcm = int((state.mb_type == mbk.I_PCM).sum())
        expected = np.sum([engine.sums for engine in written], axis=0) * UNIT
        expected[[LUMA, CHROMA]] += UNIT * 8 * pcm * np.array((256, 128))
        counts = counted(state, rows, qp, init, True, mode_8x8)
        np.testing.assert_allclose(counts, expected, rtol=1e-3, atol=UNIT)
        bits = sum(len(engine.bits) for engine in written)
        assert 0 <= bits - counts.sum() / UNIT <= 12 * (len(written) + pcm)  # flush and alignment
        assert abs(counts.sum() - expected.sum()) < 2 * UNIT * (len(written) + pcm)


def naive_kinds(state, rows):
    """Code words of 9.1 and 9.2 by kind."""
    kinds = np.zeros(N_KINDS, np.int64)
    for row0, row1 in zip(rows, rows[1:]):
        first_mb = row0 * state.mb_width
        for mb in range(first_mb, row1 * state.mb_width):
            kind = int(state.mb_type[mb])
            if kind == mbk.I_PCM:
                kinds[[LUMA, CHROMA]] += 8 * 256, 8 * 128
            elif kind not in naive_entropy.SKIPPED:
                both = len(naive_entropy._residual(state, mb, first_mb))
                kept, state.cbp[mb] = int(state.cbp[mb]), state.cbp[mb] & 15
                luma = len(naive_entropy._residual(state, mb, first_mb))
                state.cbp[mb] = kept
                kinds[[LUMA, CHROMA]] += luma, both - luma
            if kind > mbk.LAST_INTRA and kind not in naive_entropy.SKIPPED:
                type_bits = 1 if kind == mbk.P_16x16 else 3 if kind in (mbk.P_16x8, mbk.P_8x16) else 5
                if kind > mbk.B_SKIP:
                    type_bits = len(naive_entropy.ue(state.number(mb)))
                kinds[VECTORS] += len(state.inter(mb, first_mb)) - type_bits
    return kinds * UNIT


@pytest.mark.parametrize("is_b", (False, True))
@pytest.mark.parametrize("case", CASES)
def test_cavlc(case, is_b):
    width, height, n_ref, density, largest = case
    if is_b and not n_ref:
        return
    for seed, mode_8x8 in ((0, 0), (1, 1)):
        rng = np.random.default_rng([SEED, seed])
        qp = int(rng.integers(0, 52))
        make = b_state if is_b else naive_entropy.random_state
        state = make(rng, width, height, n_ref, qp, density, largest, mode_8x8)
        rows = sorted({0, height // 2, height})
        assert counted(state, rows, qp, 0, False, mode_8x8).tolist() == naive_kinds(state, rows).tolist()
        assert not state.levels[:, CB_DC, 4:].any()
