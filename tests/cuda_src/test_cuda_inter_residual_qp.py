"""CUDA inter macroblocks with QPs by rate and distortion give the bits of their CPU twin."""

import copy

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion, Planes, Residual
from h264lite.cpu_simd.residual import inter_residual_qp as cpu
from h264lite.cuda_src.residual.inter_residual_qp import inter_residual_qp
from h264lite.standard.macroblock import I_PCM, P_SKIP, I_4x4

from ..cpu_simd.test_inter_residual import WEIGHTS, b_references, random_state, reference_pool
from ..cpu_simd.test_intra import empty_state, picture
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.b_macroblocks import make_intra, random_motion
from ..support.bundles import named, uploaded
from ..support.scaling_lists import lists_named, quantiser_of

READ = ("sub_mb_type",)
WRITTEN = ("mb_type", "ref_idx", "mv", "levels", "total_coeff", "transform_8x8", "cbp", "qp")
WRITTEN_1 = ("ref_idx1", "mv1")  # in B frames
FRAMES = (48, 48, 0, (0, 51)), (80, 32, 27, (0, 51)), (48, 32, 35, (34, 36)), (32, 32, 51, (0, 51))  # size, QP, its limits


@pytest.mark.parametrize("content", ["noise", "extremes", "waves"])
@pytest.mark.parametrize("transform_8x8_mode", [0, 1])
@pytest.mark.parametrize("of", ["flat", "random"])
@pytest.mark.parametrize("has_b", [False, True])
def test_twin(device, content, transform_8x8_mode, of, has_b):  # noqa: F811
    """QPs at both ends of the range and of the limits, weights, skipped and intra macroblocks, I_PCM."""
    rng = np.random.default_rng(seed := 51 + has_b)
    print("seed", seed)
    changes, types = set(), set()
    for width, height, qp, limits in FRAMES:
        n_mb, rows = width * height // 256, height // 16
        pictures = [picture(rng, height, width, content) for _ in range(3)]
        state = empty_state(n_mb)
        if has_b:
            pool, _, _ = b_references(rng, pictures, 2, 2, average=qp == 27)
            random_motion(rng, state, (2, 2), 30)
            make_intra(state, np.flatnonzero(rng.random(n_mb) < 0.1), I_4x4)
        else:
            pool = reference_pool(pictures[:2], [WEIGHTS[0], WEIGHTS[2]] if qp == 35 else ())
            state = random_state(rng, n_mb, 2, 30)
            state["mb_type"][rng.random(n_mb) < 0.1] = I_4x4
            skipped = np.flatnonzero(state["mb_type"] == P_SKIP)
            state["mv"][skipped], state["ref_idx"][skipped] = state["mv"][skipped, :1], 0
        planes = picture(rng, height, width, content)
        if content == "waves":
            planes = [np.clip(p + rng.integers(-9, 10, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, n_mb), *limits)
        before = state["qp"].copy()
        lists, offset = lists_named(of, rng), int(rng.integers(-12, 13))
        tools = CodingTools(1, transform_8x8_mode, 1)
        written = WRITTEN + WRITTEN_1 if has_b else WRITTEN
        gpu = {name: device.upload(state[name]) for name in (*READ, *written)}
        source, rec = Planes(*planes), Planes(*(np.full_like(p, 55) for p in planes))
        gpu_source, references, out = (uploaded(device, bundle) for bundle in (source, pool, rec))
        want = copy.deepcopy(state)
        quantiser = quantiser_of(want["qp"], offset, lists)
        of_frame = rec, named(Residual, want)
        cpu.inter_residual_qp(source, pool, named(Motion, want), quantiser, tools, *limits, 0, rows, *of_frame)
        quantiser, of_frame = quantiser_of(gpu["qp"], offset, lists, device.upload), (out, named(Residual, gpu))
        for row in range(rows):
            span = *limits, row, row + 1
            inter_residual_qp(gpu_source, references, named(Motion, gpu), quantiser, tools, *span, *of_frame)
        for name in written:
            np.testing.assert_array_equal(gpu[name].get(), want[name], err_msg=name)
        for name, a, b in zip("yuv", out, rec):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)
        changes |= set((want["qp"].astype(int) - before).tolist())
        types |= set(want["mb_type"].tolist())
    assert len(changes) > (2 if content == "waves" else 1) and changes <= {-2, -1, 0, 1, 2}
    assert content == "waves" or I_PCM in types
