"""Intra 8x8 prediction: all modes with all neighbours that may be available, by the clauses; SATD by its definition."""

import numpy as np
import pytest
from h264lite.cpu_simd.intra import intra_prediction_8x8 as kernels

from ..support import naive_8x8

HADAMARD = np.array([[1]])
for _ in range(3):
    HADAMARD = np.kron(HADAMARD, [[1, 1], [1, -1]])


@pytest.mark.parametrize("kind", ["noise", "extremes", "slope"])
def test_modes_equal_the_clauses(kind):
    rng = np.random.default_rng(seed := 61)
    print("seed", seed)
    edge, out = np.full(kernels.EDGE_8x8, 99, np.uint8), np.zeros(576, np.uint8)
    for _ in range(8):
        rec = rng.integers(0, 256, (24, 32))
        if kind == "extremes":
            rec = 255 * (rec & 1)
        if kind == "slope":
            y, x = np.mgrid[:24, :32]
            rec = np.clip(128 + rng.integers(-9, 10) * (x - 12) + rng.integers(-9, 10) * (y - 8), 0, 255)
        rec = rec.astype(np.uint8)
        for left in (False, True):
            for top in (False, True):
                for above_right in (False, True)[: 1 + top]:
                    usable = kernels.predict_8x8(rec, 8, 8, left, top, above_right, 511, edge, out)
                    allowed = {2, *(0, 3, 7) * top, *(1, 8) * left, *(4, 5, 6) * (left and top)}
                    assert usable == sum(1 << mode for mode in allowed)
                    for mode in allowed:
                        expected = naive_8x8.predict_8x8(rec, 8, 8, mode, left, top, above_right)
                        assert np.array_equal(out[64 * mode : 64 * mode + 64].reshape(8, 8), expected), (mode, left, top)


def test_satd():
    rng = np.random.default_rng(seed := 62)
    print("seed", seed)
    for k in range(50):
        source, predictions = rng.integers(0, 256, 384).astype(np.uint8), rng.integers(0, 256, 576).astype(np.uint8)
        if k % 5 == 0:
            source[:], predictions[:] = 255, 0
        elif k % 5 == 1:
            source, predictions = 255 * (source & 1), 255 * (predictions & 1)
        elif k % 5 == 2:
            source = np.where(np.kron(HADAMARD, np.ones((1, 2))).ravel()[rng.permutation(128)[0] :][:384] > 0, 255, 0)
            source, predictions = np.resize(source, 384).astype(np.uint8), np.zeros(576, np.uint8)
        q, mode = int(rng.integers(0, 4)), int(rng.integers(0, 9))
        block = source[:256].reshape(16, 16)[8 * (q >> 1) :, 8 * (q & 1) :][:8, :8].astype(int)
        difference = block - predictions[64 * mode : 64 * mode + 64].reshape(8, 8)
        total = int(np.abs(HADAMARD @ difference @ HADAMARD.T).sum())
        got = kernels.mode_satd_8x8(source, 128 * (q >> 1) + 8 * (q & 1), predictions, mode)
        assert got == (total + 2) // 4
        assert kernels.mode_satds_8x8(source, 128 * (q >> 1) + 8 * (q & 1), predictions)[mode] == got
