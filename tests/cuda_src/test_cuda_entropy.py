"""Stage write_slices on the GPU: what the CPU gives, for random states, headers of any length, slices, PCM, long runs."""

import numpy as np
import pytest
from h264lite.cpu_simd.entropy import entropy
from h264lite.cuda_src.entropy import entropy as cuda_entropy
from h264lite.standard.cavlc import MAX_LEVEL
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_16x16

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_entropy

SEED = 8264


def both(gpu, state, rows, headers, qp):
    """The slices by the GPU and by the CPU."""
    on_gpu = naive_entropy.written(cuda_entropy.write_slices, state, rows, headers, qp, gpu.upload)
    return on_gpu, naive_entropy.written(entropy.write_slices, state, rows, headers, qp)


CASES = [  # mb_width, mb_height, n_ref, density, largest level
    (3, 4, 0, 0.3, 40),
    (4, 3, 1, 0.3, 40),
    (3, 4, 2, 0.2, MAX_LEVEL),
    (3, 4, 2, 0.9, MAX_LEVEL),
    (5, 3, 4, 0.1, 2),
    (1, 5, 1, 0.5, 5),
    (7, 1, 16, 0.05, 1),
    (45, 26, 1, 0.02, 1),
]
MANY = 1000  # macroblocks, of which one seed's states take the emulator long enough


@pytest.mark.parametrize("case", CASES)
def test_slices(device, case):  # noqa: F811
    mb_width, mb_height, n_ref, density, largest = case
    for seed in range(1, 2) if mb_width * mb_height > MANY else range(3):
        rng = np.random.default_rng(SEED + seed)
        qp = int(rng.integers(0, 52))
        state = naive_entropy.random_state(rng, mb_width, mb_height, n_ref, qp, density, largest, int(seed > 0))
        if seed == 1 and n_ref:
            state.mb_type[-3:] = P_SKIP  # the slice ends in a run
        for rows in ([0, mb_height], sorted({0, mb_height // 3, mb_height // 2, mb_height}), [*range(mb_height + 1)]):
            headers = [int(n) for n in rng.integers(0, 100, len(rows) - 1)]
            on_gpu, expected = both(device, state, rows, headers, qp)
            assert on_gpu == expected, (seed, rows)


@pytest.mark.parametrize("kind", [P_SKIP, I_PCM])
def test_all_alike(device, kind):  # noqa: F811
    """More than a look at 32 macroblocks back; and every position that bytes can begin at."""
    rng = np.random.default_rng(SEED)
    state = naive_entropy.random_state(rng, 40, 4, 1, 26, 0.05, 2)
    state.mb_type[1:] = kind
    state.mb_type[119] = state.mb_type[0]
    for header in range(9):
        on_gpu, expected = both(device, state, [0, 4], [header], 26)
        assert on_gpu == expected and None not in on_gpu


def test_too_long(device):  # noqa: F811
    """A macroblock of more bits than A.3.1 allows is told, not cut off."""
    state = naive_entropy.random_state(np.random.default_rng(SEED), 2, 2, 0, 26, 1.0, MAX_LEVEL)
    state.mb_type[:] = I_16x16
    state.cbp[:] = 47
    state.levels[:] = 0
    state.levels[0, :24, :16] = MAX_LEVEL
    state.total_coeff[0] = 15
    on_gpu, expected = both(device, state, [0, 1, 2], [5, 5], 26)
    assert on_gpu == expected and on_gpu[0] is None and on_gpu[1] is not None
