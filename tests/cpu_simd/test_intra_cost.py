"""True costs of intra macroblocks: errors, bits of modes and types, and the order in which modes are tried."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools
from h264lite.cpu_simd.costs.cabac_bits import I_SLICE, N_BITS, ONE_BIT, P_SLICE, fill_bits
from h264lite.cpu_simd.decisions.common import RD_MOST
from h264lite.cpu_simd.decisions.intra import INTRA_ERROR
from h264lite.cpu_simd.intra import intra_cost as cost
from h264lite.standard.cabac_contexts import CTX_PREV_INTRA_MODE, CTX_REM_INTRA_MODE

from .test_intra import empty_state, picture, run


def bits_of(slice_type, qp):
    bits = np.zeros(N_BITS, np.int32)
    fill_bits(bits, slice_type, qp)
    return bits


def test_errors_are_sums_of_squares():
    rng = np.random.default_rng(seed := 31)
    print("seed", seed)
    source, rec = rng.integers(0, 256, 384, np.uint8), rng.integers(0, 256, (40, 48), np.uint8)
    source[:4], rec[5, 7:11] = 0, 255  # the largest difference
    luma, other = source[:256].reshape(16, 16).astype(int), rec[5:21, 7:23].astype(int)
    at = 5 * 48 + 7
    assert cost.error_16x16(source, rec, at, 48) == ((luma - other) ** 2).sum()
    assert cost.error_8x8(source, 8 * 16 + 8, rec, at + 8 * 48 + 8, 48) == ((luma - other)[8:, 8:] ** 2).sum()
    out = rng.integers(0, 256, 384, np.uint8)
    assert cost.error_chroma(source, out) == ((source[256:].astype(int) - out[256:]) ** 2).sum()


@pytest.mark.parametrize("slice_type", [I_SLICE, P_SLICE])
def test_bits_of_modes_are_those_of_their_bins(slice_type):
    """7.3.5.1: a flag, then three bins of the rest, the lowest first."""
    bits = bits_of(slice_type, 27)
    for predicted in range(9):
        for mode in range(9):
            expected = bits[2 * CTX_PREV_INTRA_MODE + (mode == predicted)]
            rest = [k for k in range(9) if k != predicted]
            if mode != predicted:
                bins = [int(b) for b in f"{rest.index(mode):03b}"[::-1]]
                expected += sum(bits[2 * CTX_REM_INTRA_MODE + b] for b in bins)
            assert cost.mode_bits(bits, mode, predicted) == expected


def test_a_cost_is_an_error_in_bits():
    """A bit is worth 0.07 squared steps; large errors count as one."""
    for qp in (4, 22, 28, 40, 51):
        step = 2 ** ((qp - 4) / 6)
        assert cost.cost_of(1000, 17, qp) == pytest.approx(1000 * ONE_BIT / (0.07 * step**2) + 17, abs=1 + 1000 * 2**-16)
    assert cost.cost_of(255 * 255 * 256, 5, 0) == RD_MOST + 5 < 255 * 255 * 256 * INTRA_ERROR[0] >> 16


def test_modes_are_tried_in_the_order_of_their_costs():
    costs = np.array([9, cost.COST_MAX, 4, 7, 4, cost.COST_MAX, 30, cost.COST_MAX, 1], np.int64)
    assert [cost.next_mode(costs) for _ in range(7)] == [8, 2, 4, 3, 0, 6, -1]


@pytest.mark.parametrize("qp", [22, 32])
def test_error_and_levels_fall_where_costs_decide(qp):
    """On a textured picture, by a count of levels in place of bits."""
    rng = np.random.default_rng(seed := 33)
    print("seed", seed)
    planes, costs = picture(rng, 96, 96, "waves"), []
    for subme in (5, 6):
        state = empty_state(36)
        state["qp"][:] = qp
        rec = run(planes, state, 0, np.zeros(6, np.int32), tools=CodingTools(1, 1, 1, subme=subme))
        error = sum(((a.astype(int) - b) ** 2).sum() for a, b in zip(planes, rec))
        bits = 2 * np.abs(state["levels"]).clip(0, 3).sum(dtype=int) + state["total_coeff"].sum(dtype=int)
        costs.append(error * 10 / 2 ** ((qp - 4) / 3) + bits)
    print(costs)
    assert costs[1] < costs[0]
