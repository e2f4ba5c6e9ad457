"""intra_refresh against its definition: which macroblocks become intra, by the samples that prediction reads; their modes."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion
from h264lite.cpu_simd.decisions.intra import AS_8x8, AS_16x16
from h264lite.cpu_simd.intra.intra_estimate import intra_estimate
from h264lite.cpu_simd.intra.intra_prediction import predict_4x4
from h264lite.cpu_simd.intra.intra_prediction_8x8 import EDGE_8x8, predict_8x8
from h264lite.cpu_simd.intra.intra_refresh import intra_refresh
from h264lite.standard.macroblock import LAST_INTRA, P_SKIP, I_16x16, P_8x8, P_16x16
from h264lite.standard.sample_format import Sample

from ..support import slices as slices_of
from ..support.quantiser import constant
from .test_intra import picture

WIDTH, ROWS = 6, 3  # macroblocks
N_MB = WIDTH * ROWS
ALL_MODES = (1 << 9) - 1
NEEDS_ABOVE_RIGHT = {3, 7}  # Intra4x4PredMode (8.3.1.2)
WITHOUT = {1, 6, 8}  # Intra8x8PredMode that do not need p'[7, -1], which is filtered by the sample to its right (8.3.2.2)


def test_modes_that_need_samples_above_right():
    """Of the block of the macroblock that has them: those modes of which predictions differ where these samples do."""
    rng, edge, seen = np.random.default_rng(6), np.zeros(EDGE_8x8, Sample), [set(), set()]
    for _ in range(50):
        pictures = [rng.integers(0, 256, (32, 48)).astype(Sample)]
        pictures.append(pictures[0].copy())
        pictures[1][:, 32:] = rng.integers(0, 256, (32, 16))
        by_picture = []
        for one in pictures:
            small, large = np.zeros(1024, Sample), np.zeros(1024, Sample)
            predict_4x4(one, 28, 16, True, True, True, True, ALL_MODES, edge, small)
            predict_8x8(one, 24, 16, True, True, True, ALL_MODES, edge, large)
            by_picture.append((small, large))
        for n, size in enumerate((16, 64)):
            a, b = (some[n][: 9 * size].reshape(9, size) for some in by_picture)
            seen[n].update(np.flatnonzero((a != b).any(1)).tolist())
    assert seen == [NEEDS_ABOVE_RIGHT, set(range(9)) - WITHOUT]


def random_motion(rng, rows, mb_width):
    """Motion of any macroblocks, with vectors of whole and of parts of samples, most of them short."""
    n = rows * mb_width
    mb_type = rng.choice([P_16x16, P_8x8, P_SKIP, I_16x16], n, p=(0.4, 0.3, 0.2, 0.1)).astype(np.uint8)
    mv = rng.integers(-60, 61, (n, 16, 2)).astype(np.int16)
    mv[rng.integers(0, 3, n) == 0] = 0
    mv[:, :, 0] &= np.where(rng.integers(0, 2, (n, 1)), -1, -4).astype(np.int16)  # whole samples
    alike = mb_type != P_8x8
    mv[alike] = mv[alike, :1]
    ref_idx = np.zeros((n, 4), np.int8)
    ref_idx[mb_type <= LAST_INTRA], mv[mb_type <= LAST_INTRA] = -1, 0
    sub_mb_type = rng.integers(0, 4, (n, 4)).astype(np.uint8)
    return Motion(mb_type, sub_mb_type, ref_idx, mv, np.zeros((0, 4), np.int8), np.zeros((0, 16, 2), np.int16))


def last_samples(x0, vectors):
    """The last luma and chroma columns of the reference that a macroblock at luma column x0 needs (8.4.2.2.1, 8.4.2.2.2)."""
    luma, chroma = [], []
    for k in range(16):
        for x in range(x0 + 4 * (k % 4), x0 + 4 * (k % 4) + 4):
            luma.append(x + int(vectors[k, 0]) // 4 + (3 if vectors[k, 0] % 4 else 0))
            if x % 2 == 0:
                chroma.append(x // 2 + int(vectors[k, 0]) // 8 + (1 if vectors[k, 0] % 8 else 0))
    return max(luma), max(chroma)


@pytest.mark.parametrize("bar", ((0, 1), (1, 2), (2, 4), (4, 5), (5, 6), (0, 6)))
@pytest.mark.parametrize("disable_idc", (0, 1, 2))
def test_which_become_intra(bar, disable_idc):
    rng, became = np.random.default_rng(7), 0
    for _ in range(20):
        source, motion = picture(rng, 16 * ROWS, 16 * WIDTH, "noise")[0], random_motion(rng, ROWS, WIDTH)
        modes, before = np.full((N_MB, 16), 99, np.uint8), [one.copy() for one in motion]
        columns, slices = np.array(bar, np.int32), np.zeros(N_MB, np.int32)
        for row in rng.permutation(ROWS):
            intra_refresh(
                source, constant(N_MB, 30), slices, CodingTools(0, 0, 0), columns, disable_idc, row, row + 1, motion, modes
            )
        for mb in range(N_MB):
            column, vectors = mb % WIDTH, before[3][mb]
            is_intra = bar[0] <= column < bar[1]
            if column < bar[0] and before[0][mb] > LAST_INTRA:
                luma, chroma = last_samples(16 * column, vectors)
                dirty = (0, 0) if disable_idc == 1 else (3, 1)
                is_intra = luma >= 16 * bar[0] - dirty[0]
                assert chroma < 8 * bar[0] - dirty[1] or is_intra  # luma's reach is enough
            if is_intra:
                became += column < bar[0]
                assert motion.mb_type[mb] == I_16x16
                assert set(motion.ref_idx[mb]) == {-1} and not motion.mv[mb].any() and not motion.sub_mb_type[mb].any()
                assert modes[mb].max() < AS_16x16 + 4
            else:
                for now, then in zip(motion[:4], before):
                    np.testing.assert_array_equal(now[mb], then[mb])
                assert set(modes[mb]) == {99}
    assert became > 0 or bar[0] == 0


@pytest.mark.parametrize("large", (0, 1))
def test_modes(large):
    """Those of intra_estimate without a limit; in the last column of the bar none that reads above right."""
    rng, replaced, turned = np.random.default_rng(8), 0, 0
    tools = CodingTools(0, large, 0, intra_8x8=large, subme=4)
    for content in ("noise", "waves", "smooth", "blocks") * 8:
        source, qp = picture(rng, 16 * ROWS, 16 * WIDTH, content)[0], constant(N_MB, int(rng.integers(0, 52)))
        slices = slices_of.of_rows([0, 0, 2 * WIDTH], WIDTH)
        wanted, modes = np.zeros((2, N_MB, 16), np.uint8)
        cost = np.zeros(N_MB, np.int32)
        intra_estimate(source, qp, np.zeros((1, N_MB, 41), np.int32), 0, slices, tools, 0, ROWS, cost, wanted)
        motion = random_motion(rng, ROWS, WIDTH)
        intra_refresh(source, qp, slices, tools, np.array((0, 4), np.int32), 0, 0, ROWS, motion, modes)
        for mb in range(N_MB):
            if mb % WIDTH > 3:
                continue
            if mb % WIDTH < 3 or mb // WIDTH in (0, 2):  # samples above right are clean, or of another slice
                np.testing.assert_array_equal(modes[mb], wanted[mb])
            elif wanted[mb, 3] >= AS_8x8:
                if wanted[mb, 3] - AS_8x8 in WITHOUT:
                    np.testing.assert_array_equal(modes[mb], wanted[mb])
                else:
                    turned += 1
                    others = np.arange(16) != 3
                    np.testing.assert_array_equal(modes[mb, others], wanted[mb, others] - AS_8x8)
                    assert modes[mb, 3] == (0 if wanted[mb, 3] - AS_8x8 in NEEDS_ABOVE_RIGHT else wanted[mb, 3] - AS_8x8)
            elif wanted[mb, 3] in NEEDS_ABOVE_RIGHT:
                replaced += 1
                assert modes[mb, 3] == 0 and (np.delete(modes[mb], 3) == np.delete(wanted[mb], 3)).all()
            else:
                np.testing.assert_array_equal(modes[mb], wanted[mb])
    assert turned if large else replaced
