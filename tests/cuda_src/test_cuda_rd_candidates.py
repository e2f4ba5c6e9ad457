"""CUDA rd_candidates gives the bits of its CPU twin: divisions, references, transforms, QPs, content."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, DecisionSettings, OtherCosts, Planes
from h264lite.cpu_simd.decide import rd_candidates as cpu
from h264lite.cuda_src.decide.rd_candidates import rd_candidates

from ..cpu_simd.test_inter_residual import reference_pool
from ..cpu_simd.test_intra import picture
from ..cpu_simd.test_rd_candidates import searched
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import uploaded
from ..support.scaling_lists import lists_named, quantiser_of


@pytest.mark.parametrize("kind", ["noise", "extremes", "waves"])
@pytest.mark.parametrize(
    ("transform_8x8_mode", "subme", "psy_rd"),
    [(0, 6, 0), (1, 6, 0), (1, 7, 0), (0, 6, 256), (1, 7, 2560), (0, 8, 0), (1, 8, 256)],
)
def test_twin(device, kind, transform_8x8_mode, subme, psy_rd):  # noqa: F811
    compare(device, kind, transform_8x8_mode, subme, "flat", psy_rd)


@pytest.mark.parametrize(
    ("kind", "lists", "psy_rd", "subme"),
    [("noise", "wild", 0, 7), ("waves", "default", 200, 7), ("waves", "random", 0, 7), ("waves", "default", 200, 8),
     ("waves", "random", 0, 8)],
)  # fmt: skip
def test_scaling_lists(device, kind, lists, psy_rd, subme):  # noqa: F811
    compare(device, kind, 1, subme, lists, psy_rd)


def compare(device, kind, transform_8x8_mode, subme, of, psy_rd):  # noqa: F811
    """Both twins on the same macroblocks; of: which scaling lists."""
    rng = np.random.default_rng(seed := 5 + transform_8x8_mode)
    print("seed", seed)
    n_moved = 0
    for width, height, qp, partition_mask in (
        (48, 48, 4, 31), (80, 32, 26, 15), (48, 32, 35, 31), (32, 32, 51, 3), (16, 32, 20, 1),
    ):  # fmt: skip
        n_mb, rows = width * height // 256, height // 16
        pictures = [picture(rng, height, width, kind) for _ in range(2)]
        pool, planes = reference_pool(pictures), picture(rng, height, width, kind)
        if kind == "waves":
            planes = [np.clip(p + rng.integers(-4, 5, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        qps = np.clip(qp + rng.integers(-2, 3, n_mb), 0, 51).astype(np.uint8)
        source, searches = Planes(*planes), searched(rng, n_mb, pool.n_ref, qps)
        intra = np.where(rng.random(n_mb) < 0.5, 1 << 20, rng.integers(100, 9000, n_mb)).astype(np.int32)
        limit, offset = np.full(n_mb, 77, np.int32), int(rng.integers(-12, 13))
        lists = lists_named(of, rng)
        settings, tools = DecisionSettings(subme, 1, 128, partition_mask, psy_rd), CodingTools(1, transform_8x8_mode, 1)
        on_gpu = [uploaded(device, bundle) for bundle in (source, pool)]
        gpu_searches, out = uploaded(device, searches), [device.upload(intra), device.upload(limit)]
        gpu_qp = device.upload(qps)
        before, vectors = searches.cost.copy(), searches.mv.copy()
        how = quantiser_of(qps, offset, lists)
        cpu.rd_candidates(source, pool, how, settings, tools, 0, rows, searches, OtherCosts(intra, limit))
        how = quantiser_of(gpu_qp, offset, lists, device.upload)
        for row in range(rows):
            rd_candidates(*on_gpu, how, settings, tools, row, row + 1, gpu_searches, OtherCosts(*out))
        np.testing.assert_array_equal(out[1].get(), limit, err_msg="skip_limit")
        np.testing.assert_array_equal(gpu_searches.cost.get(), searches.cost, err_msg="cost")
        np.testing.assert_array_equal(gpu_searches.mv.get(), searches.mv, err_msg="mv")
        np.testing.assert_array_equal(out[0].get(), intra, err_msg="intra_cost")
        assert (before != searches.cost).any() or partition_mask < 15
        n_moved += int((vectors != searches.mv).any(3).sum())
    assert n_moved or subme < 7 or kind != "waves"
