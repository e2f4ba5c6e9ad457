"""CUDA neighbour_vectors gives the bits of its CPU twin in both rounds: sizes, QPs, content, illegal vectors."""

import numpy as np
import pytest
from h264lite.cpu_simd.decisions.search import ALL_PARTITIONS, SMALL_PARTITIONS
from h264lite.cpu_simd.search import neighbour_vectors as cpu
from h264lite.cuda_src.search import neighbour_vectors as cuda

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import uploaded
from ..support.cuda_cases import KINDS, SEED
from ..support.quantiser import constant, varying
from .test_cuda_subpel_refine import case


@pytest.mark.parametrize("kind", KINDS)
def test_twin(device, kind):  # noqa: F811
    rng = np.random.default_rng(SEED)
    pad, moved = 48, 0
    sizes = (80, 48, None, 18), (16, 48, 51, 12), (96, 16, 4, 30), (48, 32, 27, 40), (16, 16, 30, 5)
    for width, height, one_qp, spread in sizes:
        source, luma, predictor, search = case(rng, kind, width, height, pad, spread)
        rows, n_mb = height // 16, len(search.mv)
        search.mv[...] += rng.integers(-3, 4, search.mv.shape)
        search.mv[rng.random(n_mb) < 0.2] //= 16
        before, whole_mv = search.mv.copy(), np.full((n_mb, 2), 77, np.int16)
        qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
        read = [device.upload(a) for a in (source, luma, qp)]
        gpu_predictor, gpu_whole, gpu_search = device.upload(predictor), device.upload(whole_mv), uploaded(device, search)
        for name in ("neighbour_vectors", "neighbour_vectors_again"):
            getattr(cpu, name)(source, luma, pad, qp, 64, 0, rows, predictor, whole_mv, search)
            for row in range(rows):
                written = gpu_predictor, gpu_whole, gpu_search
                getattr(cuda, name)(read[0], read[1], pad, read[2], 64, row, row + 1, *written)
            np.testing.assert_array_equal(gpu_predictor.get(), predictor, err_msg="predictor")
            np.testing.assert_array_equal(gpu_whole.get(), whole_mv, err_msg="whole_mv")
            np.testing.assert_array_equal(gpu_search.cost.get(), search.cost, err_msg="cost")
            np.testing.assert_array_equal(gpu_search.mv.get(), search.mv, err_msg="mv")
        moved += (before != search.mv).sum()
    assert moved > 0


def test_large_partitions_alone(device):  # noqa: F811
    """Without sizes below 8x8, as in B frames; what the first round does with these is not looked at."""
    rng = np.random.default_rng(SEED)
    source, luma, predictor, search = case(rng, "random", 160, 48, 48, 9)
    qp, whole_mv, mask = varying(rng, 30), np.zeros((30, 2), np.int16), ALL_PARTITIONS & ~SMALL_PARTITIONS
    read = [device.upload(a) for a in (source, luma, qp)]
    gpu = device.upload(predictor), device.upload(whole_mv), uploaded(device, search)
    for name in ("neighbour_vectors", "neighbour_vectors_again"):
        getattr(cpu, name)(source, luma, 48, qp, 64, 0, 3, predictor, whole_mv, search, mask)
        for row in range(3):
            getattr(cuda, name)(read[0], read[1], 48, read[2], 64, row, row + 1, *gpu, mask)
        np.testing.assert_array_equal(gpu[0].get(), predictor)
        np.testing.assert_array_equal(gpu[1].get(), whole_mv)
        np.testing.assert_array_equal(gpu[2].cost.get()[:, 32:], search.cost[:, 32:])
        np.testing.assert_array_equal(gpu[2].mv.get()[:, 32:], search.mv[:, 32:])
