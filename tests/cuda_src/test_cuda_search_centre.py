"""CUDA search centres give the bits of their CPU twin: kinds of pictures, co-located vectors, limits, split rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Coarse, PreviousMotion, SearchStart
from h264lite.cpu_simd.search import search_centre as cpu
from h264lite.cuda_src.search.search_centre import search_centre, subsample

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import blank, coarse_shape, uploaded
from ..support.cuda_cases import KINDS, SEED, padded, plane, shifted
from ..support.quantiser import constant, varying


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("merange", [8, 16, 32])
def test_twin(device, kind, merange):  # noqa: F811
    rng = np.random.default_rng(SEED + merange)
    pad = 64
    sizes = (96, 64, 24, 128, 1), (16, 16, 51, 64, 1), (48, 80, 12, 24, 3), (176, 144, 31, 64, 9), (96, 96, None, 64, 2)
    for width, height, one_qp, max_mv_y, step in sizes:
        n_mb, rows = width * height // 256, height // 16
        reference = padded(plane(rng, kind, height, width), pad)
        source = shifted(rng, reference, pad)
        previous_ref = rng.integers(-1, 3, (n_mb, 4)).astype(np.int8)
        previous_mv = rng.integers(-150, 151, (n_mb, 16, 2)).astype(np.int16)
        distances = np.array([1, 1 + width // 16 % 3, (17, -1)[width // 16 % 2]], np.int32)
        moved = 4 * rng.integers((-12, -6), (13, 7)).astype(np.int16)
        previous = PreviousMotion(previous_ref, previous_mv, np.array([step - 3], np.int32), distances, moved)
        coarse = Coarse(*(np.zeros(coarse_shape(height, width), np.uint8) for _ in range(2)))
        start = SearchStart(*(np.zeros((n_mb, 2), np.int16) for _ in range(2)))
        gpu_in = [device.upload(a) for a in (source, reference)]
        gpu_previous, gpu_coarse, gpu_start = uploaded(device, previous), blank(device, coarse), blank(device, start)
        cpu.subsample(source, reference, pad, 0, rows, coarse)
        qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
        gpu_qp = device.upload(qp)
        limits = merange, max_mv_y
        cpu.search_centre(source, reference, pad, coarse, previous, qp, *limits, 0, rows, start)
        for row in range(0, rows, step):
            subsample(*gpu_in, pad, row, min(row + step, rows), gpu_coarse)
        for row in range(0, rows, step):
            span = row, min(row + step, rows)
            search_centre(*gpu_in, pad, gpu_coarse, gpu_previous, gpu_qp, *limits, *span, gpu_start)
        for a, b in zip((*gpu_coarse, *gpu_start), (*coarse, *start)):
            np.testing.assert_array_equal(a.get(), b)
