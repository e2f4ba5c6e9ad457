"""CUDA half-sample planes and borders give the bits of their CPU twin."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.inter import interpolate as cpu
from h264lite.cuda_src.inter.interpolate import extend_borders, interpolate

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.cuda_cases import KINDS, SEED, SIZES, padded, plane


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_interpolate(device, kind, size):  # noqa: F811
    rng = np.random.default_rng(SEED)
    width, height = size
    for pad, splits in ((32, 1), (48, 2)):
        luma = np.zeros((4, height + 2 * pad, width + 2 * pad), np.uint8)
        luma[0] = padded(plane(rng, kind, height, width), pad)
        out = device.upload(luma)
        rows = height // 16
        edges = sorted({rows * k // splits for k in range(splits + 1)})
        for row0, row1 in pairwise(edges):
            cpu.interpolate(luma, pad, row0, row1)
            interpolate(out, pad, row0, row1)
        np.testing.assert_array_equal(out.get(), luma)


@pytest.mark.parametrize("size", SIZES)
def test_extend_borders(device, size):  # noqa: F811
    rng = np.random.default_rng(SEED)
    width, height = size
    for pad in (16, 48):
        planes = rng.integers(0, 256, (2, height + 2 * pad, width + 2 * pad)).astype(np.uint8)
        both, one = device.upload(planes), device.upload(planes[0])
        extend_borders(both, pad)
        extend_borders(one, pad)
        for p in planes:
            cpu.extend_borders(p, pad)
        np.testing.assert_array_equal(both.get(), planes)
        np.testing.assert_array_equal(one.get(), planes[0])
