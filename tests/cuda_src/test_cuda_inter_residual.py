"""CUDA inter macroblocks give the bits of their CPU twin: partitions, references, far vectors, QPs, I_PCM."""

import copy

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion, Planes, Residual
from h264lite.cpu_simd.residual import inter_residual as cpu
from h264lite.cuda_src.residual.inter_residual import inter_residual
from h264lite.standard.macroblock import I_PCM, LAST_INTRA, P_SKIP, I_4x4

from ..cpu_simd.test_inter_residual import WEIGHTS, b_references, random_state, reference_pool
from ..cpu_simd.test_intra import empty_state, picture
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.b_macroblocks import B_TYPES, make_intra, random_motion
from ..support.bundles import named, uploaded
from ..support.scaling_lists import lists_named, quantiser_of

READ = ("sub_mb_type", "qp")
WRITTEN = ("mb_type", "ref_idx", "mv", "levels", "total_coeff", "transform_8x8", "cbp")
WRITTEN_1 = ("ref_idx1", "mv1")  # in B frames


@pytest.mark.parametrize("kind", ["noise", "extremes", "waves"])
@pytest.mark.parametrize("largest", [9, 130, 700])
@pytest.mark.parametrize("transform_8x8_mode", [0, 1])
def test_twin(device, kind, largest, transform_8x8_mode):  # noqa: F811
    compare(device, kind, largest, transform_8x8_mode, "flat")


@pytest.mark.parametrize(("kind", "transform_8x8_mode", "lists"), [
    ("noise", 0, "wild"), ("noise", 1, "wild"), ("waves", 0, "random"), ("waves", 1, "default"), ("extremes", 1, "random"),
])  # fmt: skip
def test_scaling_lists(device, kind, transform_8x8_mode, lists):  # noqa: F811
    compare(device, kind, 9, transform_8x8_mode, lists)


def compare(device, kind, largest, transform_8x8_mode, of):  # noqa: F811
    """Both twins on the same macroblocks; of: which scaling lists."""
    rng = np.random.default_rng(seed := 41 + largest)
    print("seed", seed)
    used = 0
    for width, height, qp in ((48, 48, 0), (80, 32, 26), (48, 32, 35), (16, 48, 14), (32, 32, 51)):
        n_mb = width * height // 256
        pictures = [picture(rng, height, width, kind) for _ in range(2)]
        pool = reference_pool(pictures, [WEIGHTS[qp % len(WEIGHTS)], WEIGHTS[0]] if qp else ())
        planes = picture(rng, height, width, kind)
        if kind == "waves":
            planes = [np.clip(p + rng.integers(-4, 5, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        state = random_state(rng, n_mb, 2, largest)
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, n_mb), 0, 51)
        state["mb_type"][rng.random(n_mb) < 0.1] = I_4x4
        skipped = np.flatnonzero(state["mb_type"] == P_SKIP)  # by decisions by cost
        state["mv"][skipped], state["ref_idx"][skipped] = state["mv"][skipped, :1], 0
        lists = lists_named(of, rng)
        offset, cabac = int(rng.integers(-12, 13)), int(rng.integers(2))
        tools = CodingTools(int(qp != 35), transform_8x8_mode, cabac, qp + largest % 60)
        gpu = {name: device.upload(state[name]) for name in (*READ, *WRITTEN)}
        source, rec = Planes(*planes), Planes(*(np.full_like(p, 55) for p in planes))
        gpu_source, references, out = (uploaded(device, bundle) for bundle in (source, pool, rec))
        want = copy.deepcopy(state)
        rows = height // 16
        quantiser, motion, residual = quantiser_of(want["qp"], offset, lists), named(Motion, want), named(Residual, want)
        cpu.inter_residual(source, pool, motion, quantiser, tools, 0, rows, rec, residual)
        quantiser = quantiser_of(gpu["qp"], offset, lists, device.upload)
        motion, residual = named(Motion, gpu), named(Residual, gpu)
        for row in range(rows):
            where = tools, row, row + 1, out, residual
            inter_residual(gpu_source, references, motion, quantiser, *where)
        for name in WRITTEN:
            np.testing.assert_array_equal(gpu[name].get(), want[name], err_msg=name)
        for name, a, b in zip("yuv", out, rec):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)
        used += np.count_nonzero(want["transform_8x8"][want["mb_type"] > LAST_INTRA])
    if not transform_8x8_mode or (kind == "waves" and of == "flat"):
        assert (used > 0) == bool(transform_8x8_mode)


@pytest.mark.parametrize(("kind", "largest"), [("noise", 130), ("extremes", 9), ("waves", 30), ("waves", 3000)])
@pytest.mark.parametrize("tools", [CodingTools(1, 0, 0), CodingTools(1, 0, 1), CodingTools(0, 1, 1), CodingTools(1, 1, 1)])
@pytest.mark.parametrize("of", ["flat", "default"])
def test_b_frames(device, kind, largest, tools, of):  # noqa: F811
    """All types of B macroblocks, entries and implicit weights; all kernels."""
    rng = np.random.default_rng(seed := 44 + largest)
    print("seed", seed)
    types, turned, used = set(), 0, 0
    for width, height, qp in ((48, 32, 0), (80, 32, 26), (16, 48, 38)):
        n_mb = width * height // 256
        pictures = [picture(rng, height, width, kind) for _ in range(3)]
        pool, _, _ = b_references(rng, pictures, 2, 2, average=qp == 26)
        planes = [np.clip(p + rng.integers(-4, 5, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        state = empty_state(n_mb)
        random_motion(rng, state, (2, 2), largest)
        make_intra(state, np.flatnonzero(rng.random(n_mb) < 0.1), I_4x4)
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, n_mb), 0, 51)
        types |= set(state["mb_type"].tolist())
        lists = lists_named(of, rng)
        gpu = {name: device.upload(state[name]) for name in (*READ, *WRITTEN, *WRITTEN_1)}
        source, rec = Planes(*planes), Planes(*(np.full_like(p, 55) for p in planes))
        gpu_source, references, out = (uploaded(device, bundle) for bundle in (source, pool, rec))
        for run, arrays, upload, *frame in (
            (cpu.inter_residual, state, np.array, source, pool, rec),
            (inter_residual, gpu, device.upload, gpu_source, references, out),
        ):
            quantiser = quantiser_of(arrays["qp"], 3, lists, upload)
            for rows in ((0, 1), (1, height // 16)):
                of_frame = frame[2], named(Residual, arrays)
                run(frame[0], frame[1], named(Motion, arrays), quantiser, tools, *rows, *of_frame)
        for name in (*WRITTEN, *WRITTEN_1):
            np.testing.assert_array_equal(gpu[name].get(), state[name], err_msg=name)
        for name, a, b in zip("yuv", out, rec):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)
        turned += np.count_nonzero(state["mb_type"] == I_PCM)
        used += np.count_nonzero(state["transform_8x8"][state["mb_type"] > LAST_INTRA])
    assert types >= {*B_TYPES} and turned
    assert kind != "waves" or (used > 0) == bool(tools.transform_8x8_mode)
