"""CUDA rd_candidates_b gives the bits of its CPU twin: divisions, lists, weights, transforms, QPs, content."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, DecisionSettings, OtherCosts, Planes
from h264lite.cpu_simd.decide import rd_candidates_b as cpu
from h264lite.cuda_src.decide.rd_candidates_b import rd_candidates_b

from ..cpu_simd.test_intra import picture
from ..cpu_simd.test_rd_candidates_b import b_pool, choices, noisy
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import blank, uploaded
from ..support.scaling_lists import lists_named, quantiser_of


@pytest.mark.parametrize(
    ("kind", "lists", "transform_8x8_mode", "psy_rd", "subme"),
    [("noise", "flat", 0, 0, 6), ("extremes", "flat", 1, 0, 6), ("waves", "flat", 1, 0, 6), ("waves", "flat", 0, 256, 6),
     ("waves", "flat", 1, 2560, 6), ("noise", "wild", 1, 0, 6), ("waves", "default", 1, 200, 6), ("waves", "flat", 1, 0, 9),
     ("extremes", "flat", 0, 256, 9), ("waves", "default", 0, 0, 9), ("noise", "wild", 1, 200, 9)],
)  # fmt: skip
def test_twin(device, kind, lists, transform_8x8_mode, psy_rd, subme):  # noqa: F811
    rng = np.random.default_rng(seed := 7 + transform_8x8_mode)
    print("seed", seed)
    with_extra, n_moved = 0, [0, 0]
    for width, height, qp, partition_mask, weights in (
        (48, 48, 4, 31, (32, 32)), (80, 32, 26, 15, (21, 128)), (48, 32, 35, 31, (-64, 43)), (32, 32, 51, 3, (32, 20)),
        (16, 32, 20, 1, (32, 32)),
    ):  # fmt: skip
        n_mb, rows = width * height // 256, height // 16
        pictures = [picture(rng, height, width, kind) for _ in range(3)]
        planes = picture(rng, height, width, kind)
        if kind == "waves":
            pictures = [noisy(rng, pictures[0], 5) for _ in range(3)]
            planes = noisy(rng, pictures[0], 4)
        pool, source = b_pool(pictures, weights), Planes(*planes)
        candidates = choices(rng, planes, pool)
        far = rng.random(candidates.cost.shape) < 0.1
        candidates.cost[far] = 1 << 28
        candidates.mv[:] += rng.integers(-200, 201, (n_mb, 1, 1, 2), np.int16) * (rng.random((n_mb, 1, 1, 1)) < 0.3)
        candidates.mv[candidates.ref < 0] = 0
        qps = np.clip(qp + rng.integers(-2, 3, n_mb), 0, 51).astype(np.uint8)
        intra = np.where(rng.random(n_mb) < 0.5, 1 << 20, rng.integers(100, 9000, n_mb)).astype(np.int32)
        limit, offset = np.full(n_mb, 77, np.int32), int(rng.integers(-12, 13))
        settings, tools = DecisionSettings(subme, 1, 128, partition_mask, psy_rd), CodingTools(1, transform_8x8_mode, 1)
        given, out = lists_named(lists, rng), [device.upload(intra), device.upload(limit)]
        fixed = [uploaded(device, bundle) for bundle in (source, pool)]
        on_gpu = uploaded(device, candidates)._replace(extra=blank(device, candidates).extra)
        how, moved, before = quantiser_of(qps, offset, given), candidates.moved, candidates.mv.copy()
        cpu.rd_candidates_b(source, pool, how, settings, tools, 0, rows, candidates, OtherCosts(intra, limit))
        how = quantiser_of(device.upload(qps), offset, given, device.upload)
        for row in range(rows):
            rd_candidates_b(*fixed, how, settings, tools, row, row + 1, on_gpu, OtherCosts(*out))
        np.testing.assert_array_equal(out[1].get(), limit, err_msg="skip_limit")
        np.testing.assert_array_equal(on_gpu.extra.get(), candidates.extra, err_msg="extra")
        np.testing.assert_array_equal(out[0].get(), intra, err_msg="intra_cost")
        np.testing.assert_array_equal(on_gpu.mv.get(), candidates.mv, err_msg="mv")
        np.testing.assert_array_equal(on_gpu.moved.get(), moved, err_msg="moved")
        with_extra += sum(len(set(row)) > 1 for row in candidates.extra.tolist())
        n_moved[0] += int((candidates.mv[:, :8] != before[:, :8]).any((2, 3)).sum())
        n_moved[1] += int((moved != before[:, 8:]).any((2, 3)).sum()) if subme > 6 else int(moved.any())
    assert with_extra and (min(n_moved) > 0) == (max(n_moved) > 0) == (subme > 6)
