"""CUDA energies of source macroblocks are those of the CPU."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Planes
from h264lite.cuda_src.source.ac_energy import ac_energies
from h264lite.encoder.decisions.adaptive_quantisation import energies

from ..cuda_emulator.fixtures import device  # noqa: F401


@pytest.mark.parametrize("values", [(0, 256), (0, 1), (255, 256), (120, 136), (0, 2)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5), (2, 4)])
def test_energies(device, rows, columns, values):  # noqa: F811
    rng = np.random.default_rng(11)
    shapes = (16 * rows, 16 * columns), *2 * [(8 * rows, 8 * columns)]
    planes = [rng.integers(*values, shape).astype(np.uint8) * (255 if values == (0, 2) else 1) for shape in shapes]
    measured = device.zeros((rows * columns,), np.int32)
    ac_energies(Planes(*map(device.upload, planes)), measured)
    np.testing.assert_array_equal(measured.get(), energies(planes))
