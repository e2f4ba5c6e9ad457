"""Slice data of B slices by CAVLC and CABAC against slow writers in plain Python."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy.entropy import write_slices
from h264lite.standard.macroblock import B_DIRECT, B_SKIP, B_8x8, B_8x16, B_16x8, B_16x16
from h264lite.standard.tables import B_MB_TYPES

from ..support import naive_b, naive_cabac, naive_entropy

SEED = 7140
SEEDS = [[SEED, k] for k in range(4)]

@pytest.mark.parametrize("mode_8x8", (0, 1))
@pytest.mark.parametrize("case", naive_b.ENTROPY_CASES)
def test_cavlc(case, mode_8x8):
    for _, state, qp, rows, headers in naive_b.random_slices(case, mode_8x8, SEEDS):
        expected = naive_entropy.slices(state, rows, headers, qp)
        assert naive_entropy.written(write_slices, state, rows, headers, qp) == expected, rows


@pytest.mark.parametrize("mode_8x8", (0, 1))
@pytest.mark.parametrize("case", naive_b.ENTROPY_CASES)
def test_cabac(case, mode_8x8):
    for rng, state, qp, rows, headers in naive_b.random_slices(case, mode_8x8, SEEDS):
        init = int(rng.integers(0, 3))
        expected = naive_cabac.slices(state, rows, headers, qp, init, bool(mode_8x8), naive_b.BSlice)
        assert naive_cabac.written(write_slices, state, rows, headers, qp, init, bool(mode_8x8)) == expected, rows


def test_all_types_occur():
    """Of Tables 7-14 and 7-18, in the random states."""
    types, subs, kinds = set(), set(), set()
    for case in naive_b.ENTROPY_CASES:
        for _, state, *_ in naive_b.random_slices(case, 0, SEEDS):
            kinds |= set(state.mb_type.tolist())
            for mb, kind in enumerate(state.mb_type.tolist()):
                if kind > B_SKIP:
                    types.add(state.number(mb))
                if kind == B_8x8:
                    subs |= set(state.sub_mb_type[mb].tolist())
    assert types == set(range(len(B_MB_TYPES))) and subs == {0, 1, 2, 3}
    assert kinds >= {B_SKIP, B_DIRECT, B_16x16, B_16x8, B_8x16, B_8x8, 0, 2, 3}


@pytest.mark.parametrize("cabac", (False, True))
def test_p_and_i_slices_of_streams_with_b_frames(cabac):
    """n_ref1 0 in place of None: the same bits."""
    for n_ref in (0, 2):
        rng = np.random.default_rng([SEED, n_ref])
        state = naive_entropy.random_state(rng, 3, 4, n_ref, 30, 0.2, 20)
        naive, rest = (naive_cabac, (1, False)) if cabac else (naive_entropy, ())
        expected = naive.slices(state, [0, 2, 4], [3, 5], 30, *rest)
        state.n_ref1 = 0
        assert naive.written(write_slices, state, [0, 2, 4], [3, 5], 30, *rest) == expected
