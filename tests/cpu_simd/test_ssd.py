"""ssd against NumPy: sizes that are no multiple of a vector, extremes, split rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.source.ssd import ssd, totals
from h264lite.standard.macroblock import MB_TYPE_NAMES

SEED = 77


@pytest.mark.parametrize(("height", "width", "unit"), [(16, 16, 16), (33, 47, 16), (7, 3, 8), (40, 4096, 16), (64, 100, 8)])
@pytest.mark.parametrize("kind", ["random", "opposite"])
def test_against_numpy(height, width, unit, kind):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    rows, border = -(-height // unit), 16
    shape = (rows * unit, -(-width // 16) * 16)
    source, inside = (rng.integers(0, 256, shape).astype(np.uint8) for _ in range(2))
    if kind == "opposite":
        source[:], inside[:] = 255, 0
    decoded = np.pad(inside, border, constant_values=9)
    errors = np.full(rows, -1, np.int64)
    for row0, row1 in ((rows // 2, rows), (0, rows // 2)):
        ssd(source, decoded, border, height, width, unit, row0, row1, errors)
    for row in range(rows):
        area = slice(row * unit, min(height, row * unit + unit)), slice(0, width)
        assert errors[row] == ((source[area].astype(np.int64) - inside[area]) ** 2).sum()


def test_totals():
    rng, n_types = np.random.default_rng(5), len(MB_TYPE_NAMES)
    for n_mb, rows in ((1, 1), (99, 9), (8160, 68)):
        types = rng.integers(0, n_types, n_mb).astype(np.uint8)
        qp = rng.integers(0, 52, n_mb).astype(np.uint8)
        errors = [rng.integers(0, 1 << 40, rows) for _ in range(3)]
        wide = rng.integers(0, 2, n_mb).astype(np.uint8)
        sums = np.full(7 + n_types, -1, np.int64)
        totals(types, qp, wide, *errors, sums)
        assert sums[:6].tolist() == [*(int(plane.sum()) for plane in errors), int(qp.sum()), qp.min(), qp.max()]
        assert sums[6] == wide.sum() and sums[7:].tolist() == np.bincount(types, minlength=n_types).tolist()
