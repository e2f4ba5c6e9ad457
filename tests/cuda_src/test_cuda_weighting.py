"""CUDA copies of weighted references give the bits of their CPU twin."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd import weighting as cpu
from h264lite.cuda_src.weighting import weight_reference

from ..cpu_simd.test_inter_residual import WEIGHTS
from ..cuda_emulator.fixtures import device  # noqa: F401


@pytest.mark.parametrize("weights", WEIGHTS[:4])
def test_copy(device, weights):  # noqa: F811
    rng = np.random.default_rng(9)
    for pad, rows, columns in ((16, 3, 5), (48, 1, 1)):
        luma = rng.integers(0, 256, (3, 4, 16 * rows + 2 * pad, 16 * columns + 2 * pad)).astype(np.uint8)
        slots, numbers = np.array([1, 0], np.int32), np.array(weights, np.int32)
        out, gpu_slots, gpu_numbers = device.upload(luma), device.upload(slots), device.upload(numbers)
        for row0, row1 in pairwise(sorted({0, 1, rows})):
            cpu.weight_reference(luma, slots, numbers, 2, pad, row0, row1)
            weight_reference(out, gpu_slots, gpu_numbers, 2, pad, row0, row1)
        np.testing.assert_array_equal(out.get(), luma)
