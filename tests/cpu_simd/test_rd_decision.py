"""rd_decision: its bits are those that are written, its choices cost less, and threads and slices change nothing."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Motion, Residual
from h264lite.cpu_simd.costs import bit_costs
from h264lite.cpu_simd.decide import rd_decision
from h264lite.standard.macroblock import LAST_INTRA, P_SKIP

from ..support import naive_entropy, round_trip, sequences

SEED = 77


@pytest.mark.parametrize("n_ref", (1, 2, 5))
def test_bits_are_those_written(n_ref: int) -> None:
    rng = np.random.default_rng(SEED + n_ref)
    state = naive_entropy.random_state(rng, 5, 4, n_ref, 30, 0.4, 20)
    state.qp[:] = 30
    mb_type, sub_mb_type, ref_idx, mv, _, _, _, cbp, _, levels, total_coeff, flags, *_ = state.arrays()
    motion, residual = Motion(mb_type, sub_mb_type, ref_idx, mv), Residual(levels, total_coeff, flags, cbp)
    sink, written = np.zeros(3, np.int64), np.zeros(bit_costs.MACROBLOCK_BYTES, np.uint8)
    _, mb_bits = naive_entropy.slice_data(state, 0, 20, 30, 0)
    inter = np.flatnonzero((mb_type > LAST_INTRA) & (mb_type != P_SKIP))
    assert len(inter) > 3
    for mb in inter:
        bits = bit_costs.macroblock_bits(int(mb), int(cbp[mb]), n_ref, motion, residual, 5, 0, written, sink)
        assert bits == mb_bits[mb] + 1, mb  # mb_skip_run


def test_squared_error() -> None:
    rng = np.random.default_rng(SEED)
    for a, b in ((rng.integers(0, 256, 384), rng.integers(0, 256, 384)), (np.zeros(384), np.full(384, 255))):
        a, b = a.astype(np.uint8), b.astype(np.uint8)
        expected = int(((a.astype(int) - b) ** 2).sum())
        assert rd_decision.squared_error(a, b, np.zeros(8, np.int32)) == expected


def foreman(count: int) -> list:
    """The first pictures as (y, u, v)."""
    pictures = sequences.clip("foreman_176x144_30").pictures(count, 0)
    return [(p[:144], p.ravel()[25344:31680].reshape(72, 88), p.ravel()[31680:].reshape(72, 88)) for p in pictures]


@pytest.mark.parametrize("qp", (22, 34))
def test_it_costs_less(qp: int) -> None:
    """Squared error + weight of bits over a real clip, against the same options without it."""
    clip, costs = foreman(8), []
    for subme in (5, 6):
        stream, decoded = round_trip.encode(
            clip, 176, 144, device="cpu", qp=qp, subme=subme, no_deblock=True, profile="baseline"
        )
        error = sum(int(((a.astype(int) - b) ** 2).sum()) for x, y in zip(clip, decoded) for a, b in zip(x, y))
        costs.append(rd_decision.SCALE * error + int(rd_decision.WEIGHT[qp]) * 8 * len(stream))
    assert costs[1] < 0.995 * costs[0], costs


def test_threads_change_nothing() -> None:
    options = {"qp": 26, "subme": 6, "ref": 2, "slices": 2, "device": "cpu", "profile": "baseline"}
    one = round_trip.encode(foreman(5), 176, 144, threads=1, **options)[0]
    for threads in (2, 5):
        assert round_trip.encode(foreman(5), 176, 144, threads=threads, **options)[0] == one
