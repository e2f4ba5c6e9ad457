"""Bits of CABAC in decisions: sums over the bins of a plain binarisation, and what the states of the table are worth."""

import numpy as np
import pytest
from h264lite.cpu_simd.cabac_typical import TYPICAL_M_N
from h264lite.cpu_simd.costs import cabac_bits
from h264lite.cpu_simd.costs.cabac_bits import B_SLICE, EMPTY, I_SLICE, N_BITS, ONE_BIT, P_SLICE, STATE_BITS, fill_bits
from h264lite.standard import cabac_contexts as tables

from ..support.naive_cabac_bits import bits_of_bins, residual_bins, suffix_bins

SIZES = (16, 15, 16, 4, 15, 64)  # levels of a block by ctxBlockCat


@pytest.fixture(scope="module")
def bits() -> np.ndarray:
    table = np.zeros(N_BITS, np.int32)
    fill_bits(table, P_SLICE, 27)
    return table


def test_bits_of_states():
    assert STATE_BITS[63, 0] == STATE_BITS[63, 1] == STATE_BITS[64, 0] == ONE_BIT  # pStateIdx 0: both bins have 1 / 2
    assert (STATE_BITS[1:127, 0] == STATE_BITS[126:0:-1, 1]).all()  # 1 and 126 mirror each other
    assert (np.diff(STATE_BITS[1:127, 1].astype(int)) <= 0).all()
    assert abs(STATE_BITS[126, 0] / ONE_BIT - np.log2(1 / 0.01875)) < 0.1


@pytest.mark.parametrize("slice_type", [I_SLICE, P_SLICE, B_SLICE])
def test_fill_bits_is_a_line_by_qp(slice_type):
    table = np.zeros(N_BITS, np.int32)
    for qp in (0, 26, 51):
        fill_bits(table, slice_type, qp)
        m, n = TYPICAL_M_N[slice_type].astype(int).T
        expected = STATE_BITS[np.clip((m * qp >> 4) + n, 1, 126)]
        assert (table[:EMPTY].reshape(-1, 2) == expected).all()
        assert table[EMPTY + 3] == (expected[97:101, 0].astype(int) - expected[97:101, 1]).sum() >> 2
        assert table[EMPTY + 5] == (expected[73:77, 0].astype(int) - expected[73:77, 1]).sum() >> 2


@pytest.mark.parametrize("category", range(6))
def test_levels_bits(bits, category):
    rng = np.random.default_rng(category)
    size = SIZES[category]
    for spread in (0.3, 1, 5, 400):
        for _ in range(20):
            levels = np.zeros(size + 3, np.int16)
            levels[3:] = np.rint(rng.laplace(0, spread, size) * (rng.random(size) < 0.6))
            expected = bits_of_bins(residual_bins(category, levels[3:]), bits)
            mask = np.uint64(sum(1 << i for i in range(size) if levels[3 + i])).astype(np.int64)
            assert cabac_bits.levels_bits(bits, category, levels, 3, mask) == expected


def test_mvd_bits(bits):
    for value in (*range(-12, 13), 16, 17, 24, 25, 1000, -8000):
        for around, inc in ((0, 0), (2, 0), (3, 1), (32, 1), (33, 2)):
            size = abs(value)
            contexts = [tables.CTX_MVD_Y + k for k in (inc, 3, 4, 5, 6, 6, 6, 6, 6)]
            bins = [(contexts[i], 1) for i in range(min(size, 9))]
            bins += [(contexts[size], 0)] if size < 9 else suffix_bins(size - 9, 3)
            bins += [(None, 0)] if size else []
            assert cabac_bits.mvd_bits(bits, tables.CTX_MVD_Y, value, around) == bits_of_bins(bins, bits)


def test_bits_of_sub_types(bits):
    # Table 9-38: bins and their contexts
    for sub, bins in enumerate((((21, 1),), ((21, 0), (22, 0)), ((21, 0), (22, 1), (23, 1)), ((21, 0), (22, 1), (23, 0)))):
        assert cabac_bits.sub_type_bits(bits, sub) == bits_of_bins(bins, bits)


def test_bits_of_references(bits):
    assert cabac_bits.ref_idx_bits(bits, 3, 2) == bits_of_bins(((56, 1), (58, 1), (59, 1), (59, 0)), bits)
