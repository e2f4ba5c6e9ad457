"""CUDA copies of weighted references, and sums of source planes, give the numbers of the CPU."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Planes
from h264lite.cpu_simd.inter import weighting as cpu
from h264lite.cuda_src.inter.weighting import source_sums, weight_reference
from h264lite.encoder.decisions.weights import frame_sums

from ..cpu_simd.test_inter_residual import WEIGHTS
from ..cuda_emulator.fixtures import device  # noqa: F401


@pytest.mark.parametrize("weights", WEIGHTS[:4])
def test_copy(device, weights):  # noqa: F811
    rng = np.random.default_rng(9)
    for pad, rows, columns in ((16, 3, 5), (48, 1, 1)):
        luma = rng.integers(0, 256, (3, 4, 16 * rows + 2 * pad, 16 * columns + 2 * pad)).astype(np.uint8)
        numbers = np.array(weights, np.int32)
        out, gpu_numbers = device.upload(luma), device.upload(numbers)
        for row0, row1 in pairwise(sorted({0, 1, rows})):
            cpu.weight_reference(luma[1], numbers, pad, row0, row1, luma[2])
            weight_reference(out[1], gpu_numbers, pad, row0, row1, out[2])
        np.testing.assert_array_equal(out.get(), luma)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (16, 16), (33, 50), (90, 37), (130, 66), (802, 803), (1100, 590)])
def test_sums_of_a_source(device, width, height):  # noqa: F811
    rng = np.random.default_rng(10)
    coded = -(-height // 16) * 16, -(-width // 16) * 16
    shapes = coded, *2 * [(coded[0] // 2, coded[1] // 2)]
    planes = [rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    display = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    want = frame_sums([plane[:h, :w] for plane, (h, w) in zip(planes, display)])
    sums = device.zeros(want.shape, np.int32)
    source_sums(Planes(*map(device.upload, planes)), width, height, sums)
    np.testing.assert_array_equal(sums.get(), want)
