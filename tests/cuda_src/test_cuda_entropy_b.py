"""Stage write_slices on the GPU for B slices: what the CPU gives, by CAVLC and CABAC, for random states and slices."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy import entropy
from h264lite.cuda_src.entropy import cabac
from h264lite.cuda_src.entropy import entropy as cuda_entropy
from h264lite.standard.macroblock import B_DIRECT, B_SKIP

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_b, naive_cabac, naive_entropy

SEED = 8714
SEEDS = [[SEED, k] for k in range(2)]

@pytest.mark.parametrize("mode_8x8", (0, 1))
@pytest.mark.parametrize("case", naive_b.ENTROPY_CASES)
def test_cavlc(device, case, mode_8x8):  # noqa: F811
    for _, state, qp, rows, headers in naive_b.random_slices(case, mode_8x8, SEEDS):
        arguments = state, rows, headers, qp
        expected = naive_entropy.written(entropy.write_slices, *arguments)
        assert naive_entropy.written(cuda_entropy.write_slices, *arguments, device.upload) == expected


@pytest.mark.parametrize("mode_8x8", (0, 1))
@pytest.mark.parametrize("case", naive_b.ENTROPY_CASES)
def test_cabac(device, case, mode_8x8):  # noqa: F811
    for rng, state, qp, rows, headers in naive_b.random_slices(case, mode_8x8, SEEDS):
        arguments = state, rows, headers, qp, int(rng.integers(0, 3)), bool(mode_8x8)
        expected = naive_cabac.written(entropy.write_slices, *arguments)
        assert naive_cabac.written(cuda_entropy.write_slices, *arguments, device.upload) == expected


@pytest.mark.parametrize("small", (1, cabac.SMALL))
def test_more_bins_than_places(device, monkeypatch, small):  # noqa: F811
    """Levels of which each takes many bins but few bits are coded bin by bin; and entries that share chunks."""
    monkeypatch.setattr(cabac, "SMALL", small)
    state = naive_b.random_b_state(np.random.default_rng(SEED), 4, 3, 2, 2, 26, 0.05, 2)
    state.mb_type[:8], state.cbp[:8], state.levels[:8], state.total_coeff[:8] = B_DIRECT, 15, 0, 0
    state.levels[:8, :16], state.total_coeff[:8, :16] = 16, 16
    arguments = state, [0, 2, 3], [5, 6], 26, 0, False
    expected = naive_cabac.written(entropy.write_slices, *arguments)
    assert expected[0][1] > 10 * cabac.CHUNK > expected[1][1]
    assert naive_cabac.written(cuda_entropy.write_slices, *arguments, device.upload) == expected


@pytest.mark.parametrize("is_cabac", (False, True))
def test_p_slices_of_streams_with_b_frames(device, is_cabac):  # noqa: F811
    """n_ref1 0 in place of None."""
    rng = np.random.default_rng(SEED)
    state = naive_entropy.random_state(rng, 4, 3, 2, 26, 0.2, 20)
    naive, rest = (naive_cabac, (0, False)) if is_cabac else (naive_entropy, ())
    expected = naive.written(entropy.write_slices, state, [0, 3], [5], 26, *rest)
    state.n_ref1 = 0
    assert naive.written(cuda_entropy.write_slices, state, [0, 3], [5], 26, *rest, device.upload) == expected


@pytest.mark.parametrize("is_cabac", (False, True))
def test_long_runs(device, is_cabac):  # noqa: F811
    """More than a look at 32 macroblocks back."""
    state = naive_b.random_b_state(np.random.default_rng(SEED), 20, 4, 1, 1, 26, 0.05, 2)
    state.mb_type[1:] = B_SKIP
    state.cbp[1:] = 0
    state.mb_type[69] = state.mb_type[0]
    naive, rest = (naive_cabac, (0, False)) if is_cabac else (naive_entropy, ())
    arguments = state, [0, 4], [5], 26, *rest
    expected = naive.written(entropy.write_slices, *arguments)
    assert naive.written(cuda_entropy.write_slices, *arguments, device.upload) == expected
