"""mode_decision_b against its definition: lists, slices, both metrics, skipping, any number of threads."""

import threading

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import DecisionSettingsB, Planes
from h264lite.cpu_simd.costs.cost import QUARTER_SAMPLES, quarter_offsets
from h264lite.cpu_simd.decide.mode_decision_b import mode_decision_b
from h264lite.cpu_simd.decisions.common import LAMBDA, SAD, SATD
from h264lite.cpu_simd.inter.direct import predict_direct, quadrant_distortions
from h264lite.decoder import layout as decoder_layout
from h264lite.decoder.direct import spatial_direct
from h264lite.decoder.layout import (
    N_PARAMETERS,
    P_COL_SHORT,
    P_COL_SLOT,
    P_MB_WIDTH,
    P_ROWS_PER_MB,
    P_SLICE_ID,
    SUB_DIRECT,
    P_DIRECT_8x8,
    rows_per_mb,
)
from h264lite.decoder.neighbours import neighbours
from h264lite.standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    B_SUB_BI,
    B_SUB_DIRECT,
    B_SUB_L0,
    B_SUB_L1,
    B_8x8,
    B_8x16,
    B_16x8,
    B_16x16,
    I_16x16,
)

from ..support import naive
from ..support.b_scenes import PAD, results, scene
from ..support.naive_mode_decision_b import DecisionB, direct_luma
from ..support.quantiser import constant, varying

SEED = 43
WIDTH, HEIGHT = 80, 64
N_MB, ROWS = WIDTH * HEIGHT // 256, HEIGHT // 16


def decide(s, settings, threads=1, rows=(0, ROWS), out=None):
    out = out or results(N_MB, 99)
    progress = np.zeros(1 + ROWS, np.int64)
    source = Planes(s["source"], s["source"][:1], s["source"][:1])
    where = s["candidates"], s["still"], s["other_costs"], s["first"]

    def run():
        mode_decision_b(source, s["references"], *where, settings, progress, *rows, out)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return out


def assert_defined(s, settings, out):
    state = results(N_MB)
    for mb in range(N_MB):
        prior = [(state.ref_idx, state.mv), (state.ref_idx1, state.mv1)]
        kind, subs, motion = DecisionB(s, mb, prior, settings).choose()
        assert (out.mb_type[mb], out.sub_mb_type[mb].tolist()) == (kind, list(subs)), mb
        for k, (ref_idx, mv) in enumerate(motion):
            prior[k][0][mb], prior[k][1][mb] = ref_idx, mv
            np.testing.assert_array_equal(out[2 + 2 * k][mb], ref_idx, err_msg=f"{mb}")
            np.testing.assert_array_equal(out[3 + 2 * k][mb], mv, err_msg=f"{mb}")


@pytest.mark.parametrize("cabac", [0, 1])
def test_against_the_definition(cabac):
    print("seed", SEED)
    seen: set[int] = set()
    subs: set[int] = set()
    for n, (n_ref, n_ref1, subme, mask, qp, psy) in enumerate((
        (1, 1, 5, 31, 27, 0), (2, 1, 7, 31, 24, 0), (3, 2, 6, 7, 30, 0), (1, 1, 2, 31, 27, 0), (2, 2, 6, 15, None, 300),
        (1, 1, 6, 3, 34, 256), (4, 1, 5, 1, 20, 0), (2, 1, 7, 31, None, 0), (2, 1, 9, 31, 28, 0),
    )):  # fmt: skip
        rng = np.random.default_rng(SEED + n)
        qps = varying(rng, N_MB) if qp is None else constant(N_MB, qp)
        s = scene(rng, WIDTH, HEIGHT, n_ref, n_ref1, qps, weighted=n % 2 == 1, reach=(6, 3, 900)[n % 3])
        settings = DecisionSettingsB(s["qp"], subme, cabac, mask, psy)
        out = decide(s, settings)
        assert_defined(s, settings, out)
        seen |= set(out.mb_type.tolist())
        subs |= set(out.sub_mb_type[out.mb_type == B_8x8].ravel().tolist())
        for threads in (2, 5):
            for a, b in zip(decide(s, settings, threads), out):
                np.testing.assert_array_equal(a, b)
        halves = decide(s, settings, rows=(0, 1))
        for a, b in zip(decide(s, settings, 2, (1, ROWS), halves), out):
            np.testing.assert_array_equal(a, b)
    expected = {B_16x16, B_16x8, B_8x16, B_8x8, B_DIRECT, I_16x16}
    assert seen == (expected | {B_SKIP} if cabac else expected)
    assert subs == {B_SUB_DIRECT, B_SUB_L0, B_SUB_L1, B_SUB_BI}


def test_equal_costs():
    """The earlier type wins, and direct before the choice of a quadrant."""
    rng, qps = np.random.default_rng(SEED), constant(N_MB, 26)
    s = scene(rng, WIDTH, HEIGHT, 1, 1, qps, reach=0, noise=12)
    candidates, lam = s["candidates"], int(LAMBDA[26])
    s["references"].luma[:] = s["references"].luma[0]
    candidates.mv[:], candidates.ref[:], candidates.extra[:] = 0, 0, 0
    candidates.ref[:, :4, 1] = candidates.ref[:, 9, 0] = candidates.ref[:, 8, 1] = -1
    candidates.cost[:] = 4000
    error = s["source"].astype(int) - s["references"].luma[0, 0, PAD:-PAD, PAD:-PAD]
    for mb in range(N_MB):
        for q in range(4):
            y, x = mb // (WIDTH // 16) * 16 + 4 * (q & 2), mb % (WIDTH // 16) * 16 + 8 * (q & 1)
            candidates.cost[mb, q] = naive.satd(error[y : y + 8, x : x + 8]) - 4 * lam  # as much as direct with its bits
    candidates.extra[:, 5] = -12 * lam * rng.integers(0, 2, N_MB)  # 8x8 costs as much as direct, or more
    candidates.cost[N_MB // 2 :, 8:10] = 300  # list 0 and list 1 cost the same
    candidates.ref[N_MB // 2 :, 10, 1] = -1
    settings = DecisionSettingsB(s["qp"], 5, 0, 31)
    out = decide(s, settings)
    assert_defined(s, settings, out)
    assert {B_16x16, B_DIRECT} <= set(out.mb_type.tolist())
    candidates.extra[:, 5] = -4000
    out = decide(s, settings)
    assert_defined(s, settings, out)
    divided = out.mb_type == B_8x8
    assert divided.any() and not out.sub_mb_type[divided].any()


def test_direct_luma():
    """Weights, quadrants with zero vectors, one list and both, vectors far outside of the frame; SATD, SAD of quadrants."""
    rng = np.random.default_rng(SEED)
    offsets, out, costs = np.zeros((2, 16), np.int64), np.zeros((1, 1, 16, 16), np.uint8), np.zeros(4, np.int64)
    for turn in range(60):
        if turn % 20 == 0:
            r = scene(rng, WIDTH, HEIGHT, 2, 2, constant(N_MB, 30), weighted=True)["references"]
            r.luma[:, 0] = rng.integers(0, 256, r.luma[:, 0].shape)
            r.luma[:, 1:] = rng.integers(0, 256, r.luma[:, 1:].shape)
            for planes in r.luma:  # borders repeat the edge
                planes[:] = naive.half_samples(np.pad(planes[0, PAD:-PAD, PAD:-PAD], PAD, mode="edge"))
            r.bi_weights[:2] = 32, (128, -64, 21)[turn // 20]
            quarter_offsets(r.luma.shape[2] * r.luma.shape[3], r.luma.shape[3], QUARTER_SAMPLES, offsets)
        refs = ((0, 0), (0, 1), (1, 0), (1, 1), (-1, 1), (0, -1))[turn % 6]
        reach = (8, 150, 1000)[turn % 3]
        direct = np.zeros((2, 4), np.int64)
        for k in range(2):
            if refs[k] >= 0:
                direct[k] = refs[k], *rng.integers(-reach, reach, 2), rng.integers(0, 16) * (refs[k] == 0)
            else:
                direct[k, 0] = -1
        x0, y0 = 16 * int(rng.integers(WIDTH // 16)), 16 * int(rng.integers(ROWS))
        predict_direct(r, direct, x0, y0, offsets, out)
        meant = [(int(d[0]), [(0, 0) if d[3] >> q & 1 else (int(d[1]), int(d[2])) for q in range(4)]) for d in direct]
        expected = direct_luma(r, x0, y0, meant)
        np.testing.assert_array_equal(out[0, 0], expected)
        current = rng.integers(0, 256, (16, 16)).astype(np.int16)
        for metric, function in ((SAD, naive.sad), (SATD, naive.satd)):
            quadrant_distortions(current.reshape(256), out, metric, costs)
            error = expected - current
            assert costs.tolist() == [function(error[y : y + 8, x : x + 8]) for y in (0, 8) for x in (0, 8)]


def grids(ref_idx, mv):
    """int8[H8, W8], int16[H4, W4, 2]: motion of a list as the decoder has it."""
    mb_width = WIDTH // 16
    by_block = mv.reshape(ROWS, mb_width, 4, 4, 2).swapaxes(1, 2).reshape(4 * ROWS, 4 * mb_width, 2)
    return ref_idx.reshape(ROWS, mb_width, 2, 2).swapaxes(1, 2).reshape(2 * ROWS, 2 * mb_width), by_block


def test_direct_motion_is_the_decoders():
    """8.4.1.2.2 as decoder/direct.py has it, of macroblocks of type B_Skip, B_Direct_16x16 and direct sub-macroblocks."""
    checked = zero = 0
    for n, (n_ref, n_ref1) in enumerate(((1, 1), (2, 2), (3, 1), (2, 1), (1, 1), (1, 2))):
        rng = np.random.default_rng(SEED + n)
        s = scene(rng, WIDTH, HEIGHT, n_ref, n_ref1, constant(N_MB, 30))
        out = decide(s, DecisionSettingsB(s["qp"], 7, 1, 31))
        lists = [grids(out.ref_idx, out.mv), grids(out.ref_idx1, out.mv1)]
        refs, vectors = (np.stack(arrays) for arrays in zip(*lists))
        # the co-located picture, of which one corner block of each quadrant has a small vector or a larger one
        still = (s["still"][:, None] >> np.arange(4) & 1).astype(np.int16)
        of_col = grids(np.zeros_like(out.ref_idx), np.repeat(2 - 2 * still, 4, 1).reshape(N_MB, 2, 2, 2, 2)
                       .swapaxes(2, 3).reshape(N_MB, 16, 1).repeat(2, 2))  # fmt: skip
        p = np.zeros(N_PARAMETERS, np.int64)
        p[[P_COL_SLOT, P_COL_SHORT, P_DIRECT_8x8, P_MB_WIDTH]] = 1, 1, 1, WIDTH // 16
        p[P_ROWS_PER_MB] = rows_per_mb(WIDTH // 16)
        slices, sub_type = s["first"], np.full((N_MB, 4), SUB_DIRECT, np.uint8)
        for mb in range(N_MB):
            direct = out.mb_type[mb] in (B_SKIP, B_DIRECT)
            quadrants = range(4) if direct else np.flatnonzero(out.sub_mb_type[mb] == 0) if out.mb_type[mb] == B_8x8 else ()
            p[P_SLICE_ID] = slices[mb]
            mv = np.stack([vectors, np.stack([of_col[1]] * 2)]).copy()
            ref_idx = np.stack([refs, np.stack([of_col[0]] * 2)]).copy()
            y0, x0 = mb // (WIDTH // 16) * 4, mb % (WIDTH // 16) * 4
            motion = decoder_layout.Motion(mv, ref_idx, np.zeros(ref_idx.shape, np.int32))
            spatial_direct(p, sub_type, motion, mb, neighbours(p, slices, mb), y0, x0)
            for q in quadrants:
                y, x = y0 + (q & 2), x0 + 2 * (q & 1)
                assert (ref_idx[0, :, y >> 1, x >> 1] == refs[:, y >> 1, x >> 1]).all(), (mb, q)
                assert (mv[0, :, y : y + 2, x : x + 2] == vectors[:, y : y + 2, x : x + 2]).all(), (mb, q)
                checked += 1
                zero += int(still[mb, q])
    assert checked > 100 and zero > 30
