"""CUDA intra estimates give the bits of their CPU twin: kinds of pictures, QPs, slices, odd widths, split rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools
from h264lite.cpu_simd.decisions.intra import AS_8x8
from h264lite.cpu_simd.intra import intra_estimate as cpu
from h264lite.cuda_src.intra.intra_estimate import intra_estimate

from ..cpu_simd.test_intra import picture
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import slices as slices_of
from ..support.quantiser import constant, varying


@pytest.mark.parametrize("kind", ["noise", "extremes", "checkerboard", "blocks", "smooth", "waves"])
@pytest.mark.parametrize("transform_8x8_mode, subme", [(0, 4), (1, 3)])
def test_twin(device, kind, transform_8x8_mode, subme):  # noqa: F811
    tools = CodingTools(0, 1, 0, intra_8x8=transform_8x8_mode, subme=subme)
    rng = np.random.default_rng(seed := 51)
    print("seed", seed)
    seen = set()
    for width, height in ((16, 16), (48, 64), (144, 32), (16, 48), (80, 16), (128, 48)):
        source = picture(rng, height, width, kind)[0]
        rows = height // 16
        on_gpu = device.upload(source)
        for one_qp in (0, 12, 38, 51, None):
            want = np.zeros(width * rows // 16, np.int32)
            want_modes = np.full((want.size, 16), 99, np.uint8)
            slices = slices_of.anywhere(rng, want.size, rng.choice([0, 0.2, 0.5]))
            inter = rng.integers(0, 20000, (2, want.size, 41)).astype(np.int32)
            n_ref = int(rng.integers(0, 3))
            qp = varying(rng, want.size) if one_qp is None else constant(want.size, one_qp)
            gpu_qp = device.upload(qp)
            cpu.intra_estimate(source, qp, inter, n_ref, slices, tools, 0, rows, want, want_modes)
            inter_there, slices_there = device.upload(inter), device.upload(slices)
            for split in ([0, rows], list(range(rows + 1))):
                got = device.array(want.shape, np.int32).fill(0x55)
                modes = device.array(want_modes.shape, np.uint8).fill(0x55)
                for row0, row1 in zip(split, split[1:]):
                    intra_estimate(on_gpu, gpu_qp, inter_there, n_ref, slices_there, tools, row0, row1, got, modes)
                np.testing.assert_array_equal(got.get(), want)
                np.testing.assert_array_equal(modes.get(), want_modes)
            seen.update(want_modes.ravel().tolist())
    if kind == "waves":
        assert (max(seen) >= AS_8x8) == bool(transform_8x8_mode)
