"""CUDA squared errors are their CPU twin's: odd display sizes, both units, borders, the largest error."""

import numpy as np
import pytest
from h264lite.cpu_simd.source import ssd as cpu
from h264lite.cuda_src.source.ssd import ssd

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.cuda_cases import KINDS, plane


@pytest.mark.parametrize("kind", [*KINDS, "largest"])
def test_twin(device, kind):  # noqa: F811
    rng = np.random.default_rng(seed := 71)
    print("seed", seed)
    for width, height, unit, border in ((48, 37, 16, 32), (45, 48, 16, 0), (23, 17, 8, 8), (9, 8, 8, 16), (270, 30, 16, 16)):
        rows = -(-height // unit)
        coded = (rows * unit, -(-width // unit) * unit)
        source = plane(rng, "random" if kind == "largest" else kind, *coded)
        decoded = rng.integers(0, 256, (coded[0] + 2 * border, coded[1] + 2 * border)).astype(np.uint8)
        if kind == "largest":
            source[:], decoded[:] = 255, 0
        want, got = np.zeros(rows, np.int64), device.array((rows,), np.int64).fill(0x55)
        cpu.ssd(source, decoded, border, height, width, unit, 0, rows, want)
        on_gpu = [device.upload(a) for a in (source, decoded)]
        for row in range(rows):
            ssd(*on_gpu, border, height, width, unit, row, row + 1, got)
        assert got.get().tolist() == want.tolist()
