"""CUDA refinement gives the bits of its CPU twin for every subme, kinds of partitions, pictures and sizes."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import SearchResult
from h264lite.cpu_simd.inter import interpolate as cpu_interpolate
from h264lite.cpu_simd.search import subpel_refine as cpu
from h264lite.cuda_src.search.subpel_refine import subpel_refine

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import uploaded
from ..support.cuda_cases import KINDS, SEED, padded, plane, shifted
from ..support.quantiser import constant, varying

AREA = np.array([1] * 16 + [2] * 16 + [4] * 4 + [8] * 4 + [16])  # in 4x4 blocks


def case(rng, kind, width, height, pad, spread):
    luma = np.zeros((4, height + 2 * pad, width + 2 * pad), np.uint8)
    luma[0] = padded(plane(rng, kind, height, width), pad)
    cpu_interpolate.interpolate(luma, pad, 0, height // 16)
    source = shifted(rng, luma[0], pad)
    n_mb = width * height // 256
    mv = (4 * rng.integers(-spread, spread + 1, (n_mb, 41, 2))).astype(np.int16)
    cost = (AREA * rng.integers(100, 140, (n_mb, 41)) + rng.integers(0, 40, (n_mb, 41))).astype(np.int32)
    predictor = rng.integers(-70, 71, (n_mb, 2)).astype(np.int16)
    return source, luma, predictor, SearchResult(cost, mv)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subme", [0, 1, 2, 3, 4, 5, 7])
def test_twin(device, kind, subme):  # noqa: F811
    rng = np.random.default_rng(SEED + subme)
    pad = 48
    sizes = (48, 32, 24, 31), (16, 16, 51, 31), (32, 48, 31, 15), (32, 48, 12, 1), (32, 16, 31, 7), (48, 48, None, 31)
    for width, height, one_qp, kinds in sizes:
        source, luma, predictor, search = case(rng, kind, width, height, pad, 18)
        gpu_source, gpu_luma, gpu_predictor = (device.upload(a) for a in (source, luma, predictor))
        rows, n_mb, gpu_search = height // 16, len(search.mv), uploaded(device, search)
        qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
        gpu_qp = device.upload(qp)
        cpu.subpel_refine(source, luma, pad, predictor, qp, subme, 0, rows, search, kinds)
        for row in range(rows):
            subpel_refine(gpu_source, gpu_luma, pad, gpu_predictor, gpu_qp, subme, row, row + 1, gpu_search, kinds)
        np.testing.assert_array_equal(gpu_search.mv.get(), search.mv)
        np.testing.assert_array_equal(gpu_search.cost.get(), search.cost)
