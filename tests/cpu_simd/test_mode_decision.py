"""mode_decision against its definition: references, slices, kinds, both metrics, any number of threads."""

import threading

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import (
    CodingTools,
    DecisionSettings,
    LumaReferences,
    Motion,
    OtherCosts,
    Searches,
    SearchResult,
    SearchStart,
)
from h264lite.cpu_simd.decide.mode_decision import mark_skipped, mode_decision
from h264lite.cpu_simd.decisions.common import BY_COST
from h264lite.cpu_simd.intra.intra_estimate import intra_estimate
from h264lite.cpu_simd.search.full_search import full_search
from h264lite.cpu_simd.search.subpel_refine import subpel_refine
from h264lite.standard.macroblock import B_DIRECT, B_SKIP, P_SKIP, B_8x8, B_16x16, I_16x16, P_16x8, P_16x16

from ..support import naive
from ..support import slices as slices_of
from ..support.bundles import named
from ..support.naive_modes import Decision
from ..support.quantiser import constant, varying

SEED = 41
WIDTH, HEIGHT, PAD, N_MB = 64, 64, 48, 16


def scene(rng, n_ref, subme, qp, noise):
    """Pictures with two motions and an uncovered corner, searched."""
    big = np.kron(rng.integers(0, 256, (30, 30)), np.ones((6, 6))) + rng.normal(0, 4, (180, 180))
    big = big.clip(0, 255)
    source = big[40 : 40 + HEIGHT, 40 : 40 + WIDTH].copy()
    source[20:50, 10:40] = big[60:90, 57:87]
    source[48:, 48:] = rng.integers(100, 104, (16, 16))
    source = (source + rng.normal(0, noise, source.shape)).clip(0, 255).astype(np.uint8)
    luma = np.zeros((n_ref + 1, 4, HEIGHT + 2 * PAD, WIDTH + 2 * PAD), np.uint8)
    slots = np.arange(n_ref, 0, -1).astype(np.int32)
    cost, mv = np.zeros((n_ref, N_MB, 41), np.int32), np.zeros((n_ref, N_MB, 41, 2), np.int16)
    predictor = rng.integers(-9, 10, (n_ref, N_MB, 2)).astype(np.int16)
    centre = np.zeros((N_MB, 2), np.int16)
    for ref, slot in enumerate(slots):
        inside = np.roll(big, (2 * ref, 1), (0, 1))[40 : 40 + HEIGHT, 40 : 40 + WIDTH].astype(np.uint8)
        luma[slot] = naive.half_samples(np.pad(inside, PAD, mode="edge"))
        start, search = SearchStart(centre, predictor[ref]), SearchResult(cost[ref], mv[ref])
        full_search(source, luma[slot, 0], PAD, start, constant(N_MB, qp), 8, 0, 4, search)
        subpel_refine(source, luma[slot], PAD, predictor[ref], constant(N_MB, qp), subme, 0, 4, search)
    intra_cost = np.zeros(N_MB, np.int32)
    slices = slices_of.anywhere(rng, N_MB, 0.1)
    modes, tools = np.zeros((N_MB, 16), np.uint8), CodingTools(0, 0, 0)
    intra_estimate(source, constant(N_MB, qp), cost, 0, slices, tools, 0, 4, intra_cost, modes)
    return {
        "source": source, "luma": luma, "slots": slots, "pad": PAD, "cost": cost, "mv": mv, "predictor": predictor,
        "intra_cost": intra_cost, "slice_first_mb": slices,
        "skip_limit": rng.integers(-500, 500, N_MB).astype(np.int32),
    }  # fmt: skip


def outputs():
    return (
        np.zeros(N_MB, np.uint8),
        np.zeros((N_MB, 4), np.uint8),
        np.zeros((N_MB, 4), np.int8),
        np.zeros((N_MB, 16, 2), np.int16),
    )


def decide(s, qp, subme, n_ref, kinds, threads=1, rows=(0, 4), out=None):
    out = out or outputs()
    progress = np.zeros(5, np.int64)

    def run():
        references = LumaReferences(s["luma"], s["slots"], PAD, n_ref)
        where = named(Searches, s), named(OtherCosts, s), s["slice_first_mb"], qp
        mode_decision(s["source"], references, *where, DecisionSettings(subme, 0, 128, kinds), progress, *rows, Motion(*out))

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return out


@pytest.mark.parametrize(
    ("n_ref", "subme", "kinds", "qp", "noise"),
    [
        (1, 5, 31, 27, 3),
        (2, 5, 31, 22, 3),
        (2, 5, 15, 22, 3),
        (3, 5, 31, 37, 1),
        (1, 2, 31, 27, 6),
        (2, 5, 7, 30, 3),
        (1, 5, 3, 27, 3),
        (1, 5, 1, 40, 0),
        (1, 6, 31, 27, 3),
        (2, 6, 15, 34, 6),
    ],
)
def test_against_the_definition(n_ref, subme, kinds, qp, noise):
    print("seed", SEED)
    s = scene(np.random.default_rng(SEED), n_ref, subme, qp, noise)
    metric = naive.satd if subme >= 3 else naive.sad
    qps = constant(N_MB, qp)
    out = decide(s, qps, subme, n_ref, kinds)
    seen = set(out[0].tolist())
    state = outputs()[2:]
    for mb in range(N_MB):
        kind, subs, ref_idx, mv = Decision(s, mb, state, qp, metric, 128, n_ref, kinds, subme >= BY_COST).choose()
        assert out[0][mb] == kind, mb
        assert out[1][mb].tolist() == list(subs), mb
        np.testing.assert_array_equal(out[2][mb], ref_idx)
        np.testing.assert_array_equal(out[3][mb], mv)
        state[0][mb], state[1][mb] = ref_idx, mv
    for threads in (2, 5):
        for a, b in zip(decide(s, qps, subme, n_ref, kinds, threads), out):
            np.testing.assert_array_equal(a, b)
    halves = decide(s, qps, subme, n_ref, kinds, rows=(0, 1))
    for a, b in zip(decide(s, qps, subme, n_ref, kinds, 2, (1, 4), halves), out):
        np.testing.assert_array_equal(a, b)
    assert P_SKIP in seen or subme < BY_COST
    assert len(seen) >= (4 if kinds & 15 == 15 and qp < 37 and noise == 3 else 1), seen


def test_a_qp_for_each_macroblock():
    rng = np.random.default_rng(SEED)
    s, qps = scene(rng, 2, 5, 28, 3), varying(rng, N_MB)
    out, state = decide(s, qps, 5, 2, 31), outputs()[2:]
    for mb, qp in enumerate(qps.tolist()):
        kind, subs, ref_idx, mv = Decision(s, mb, state, qp, naive.satd, 128, 2, 31).choose()
        assert (out[0][mb], out[1][mb].tolist()) == (kind, list(subs)), mb
        np.testing.assert_array_equal(out[2][mb], ref_idx)
        np.testing.assert_array_equal(out[3][mb], mv)
        state[0][mb], state[1][mb] = ref_idx, mv


def test_mark_skipped():
    rng = np.random.default_rng(SEED)
    marked = 0
    for _ in range(40):
        ref_idx = rng.integers(0, 2, (N_MB, 1)).astype(np.int8).repeat(4, 1)
        mv = rng.integers(0, 2, (N_MB, 1, 2)).astype(np.int16).repeat(16, 1)
        mb_type = rng.choice([I_16x16, P_16x16, P_16x16, P_16x16, P_16x8], N_MB).astype(np.uint8)
        cbp = rng.choice([0, 0, 0, 1, 16], N_MB).astype(np.uint8)
        first = slices_of.anywhere(rng, N_MB, 0.2)
        expected = mb_type.copy()
        for mb in range(N_MB):
            skip = naive.predict_skip_mv(mb, ref_idx, mv, 4, int(first[mb]))
            if mb_type[mb] == P_16x16 and cbp[mb] == 0 and ref_idx[mb, 0] == 0 and tuple(mv[mb, 0].tolist()) == tuple(skip):
                expected[mb] = P_SKIP
        for row0, row1 in ((2, 4), (0, 2)):
            mark_skipped(first, ref_idx, mv, cbp, 4, row0, row1, mb_type)
        np.testing.assert_array_equal(mb_type, expected)
        marked += (expected == P_SKIP).sum()
    assert marked > 10


def test_direct_macroblocks_without_residual_are_skipped():
    """Table 7-14: in B frames only B_Direct_16x16 becomes B_Skip."""
    mb_type = np.array([B_DIRECT, B_DIRECT, B_16x16, B_8x8, B_SKIP, I_16x16], np.uint8)
    cbp = np.array([0, 16, 0, 0, 0, 0], np.uint8)
    ref_idx, mv = np.zeros((6, 4), np.int8), np.zeros((6, 16, 2), np.int16)
    mark_skipped(np.zeros(6, np.int32), ref_idx, mv, cbp, 3, 0, 2, mb_type)
    assert mb_type.tolist() == [B_SKIP, B_DIRECT, B_16x16, B_8x8, B_SKIP, I_16x16]
