"""Levels compacted on the GPU and expanded on the host are the levels: empty, sparse, dense frames, all I_PCM, any order."""

import numpy as np
import pytest
from h264lite.cpu_simd.layout import LUMA_DC
from h264lite.cpu_simd.residual.expand import expand
from h264lite.cuda_src.residual.compact import compact, index_length
from h264lite.standard.macroblock import I_PCM, P_SKIP, RASTER_TO_BLOCK, I_4x4, I_16x16, P_8x8, P_8x16, P_16x8, P_16x16

from ..cuda_emulator.fixtures import device  # noqa: F401


def random_frame(rng, n_mb, density, pcm):
    """mb_type, cbp, total_coeff and levels that agree with each other; about `density` of the blocks have levels."""
    mb_type = rng.choice([I_4x4, I_16x16, P_16x16, P_16x8, P_8x16, P_8x8], n_mb).astype(np.uint8)
    levels = np.zeros((n_mb, 27, 16), np.int16)
    filled = rng.random((n_mb, 27)) < density
    levels[filled] = rng.integers(-2063, 2064, (int(filled.sum()), 16)) * (rng.random((int(filled.sum()), 16)) < 0.4)
    levels[mb_type != I_16x16, LUMA_DC] = 0
    levels[:, 25:, 4:] = 0
    special = rng.random(n_mb) < pcm
    mb_type[special] = I_PCM
    skipped = ~special & (rng.random(n_mb) < (1 - density) / 2)
    mb_type[skipped] = P_SKIP
    levels[special | skipped] = 0
    counts = (levels != 0).sum(2)
    total_coeff = np.concatenate([counts[:, RASTER_TO_BLOCK], counts[:, 16:24]], 1).astype(np.uint8)
    total_coeff[special] = 16
    cbp = np.where(counts[:, 16:24].any(1), 32, np.where(counts[:, 25:].any(1), 16, 0)) + rng.integers(0, 16, n_mb)
    cbp[special] = 47
    return mb_type, cbp.astype(np.uint8), total_coeff, levels


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
def test_round_trip(device, density):  # noqa: F811
    """The host's array holds the levels of another frame before."""
    rng = np.random.default_rng(seed := 81)
    print("seed", seed)
    for mb_width, mb_height in ((5, 3), (1, 1), (33, 2), (70, 1), (1, 9)):
        n_mb = mb_width * mb_height
        levels, held = np.zeros((n_mb, 27, 16), np.int16), np.zeros(n_mb, np.uint32)
        on_gpu = device.array((index_length(mb_width, mb_height),), np.uint32), device.array((27 * n_mb, 16), np.int16)
        for pcm in (0.0, 0.2, 1.0):
            *state, want = random_frame(rng, n_mb, density, pcm)
            compact(*(device.upload(a) for a in (*state, want)), mb_width, *on_gpu)
            index = on_gpu[0].get()
            count = int(index[mb_height])
            blocks = on_gpu[1][:count].get()
            assert (np.diff(index[: mb_height + 1].astype(int)) >= 0).all() and index[0] == 0
            for row in rng.permutation(mb_height):
                expand(index, blocks, mb_width, row, row + 1, held, levels)
            np.testing.assert_array_equal(levels, want)
            if pcm == 1.0:
                assert count == 0
            used = (want != 0).any(2).sum()
            assert used <= count <= used + 3 * n_mb, "only blocks with levels, but for DC blocks"
