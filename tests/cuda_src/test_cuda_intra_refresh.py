"""CUDA twin of intra_refresh: the same types, motion and modes, for bars at any columns, with and without deblocking."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion
from h264lite.cpu_simd.intra import intra_refresh as cpu
from h264lite.cuda_src.intra.intra_refresh import intra_refresh

from ..cpu_simd.test_intra import picture
from ..cpu_simd.test_intra_refresh import random_motion
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import slices as slices_of
from ..support.quantiser import varying

BARS = ((0, 1), (0, 2), (1, 2), (2, 5), (4, 5), (5, 7), (6, 7), (0, 7))


@pytest.mark.parametrize("transform_8x8_mode", (0, 1))
@pytest.mark.parametrize("disable_idc", (0, 1, 2))
def test_twin(device, transform_8x8_mode, disable_idc):  # noqa: F811
    mb_width, rows = 7, 3
    rng = np.random.default_rng(50 + disable_idc)
    tools, seen = CodingTools(0, transform_8x8_mode, 0, intra_8x8=transform_8x8_mode, subme=4), set()
    for content, bar in zip(("noise", "blocks", "smooth", "waves") * 2, BARS):
        source = picture(rng, 16 * rows, 16 * mb_width, content)[0]
        qp, columns = varying(rng, rows * mb_width), np.array(bar, np.int32)
        slices = slices_of.anywhere(rng, rows * mb_width, 0.15)
        motion, modes = random_motion(rng, rows, mb_width), np.full((rows * mb_width, 16), 99, np.uint8)
        for split in ([0, rows], list(range(rows + 1))):
            there = Motion(*map(device.upload, motion[:4]), None, None)
            modes_there, inputs = device.upload(modes), [device.upload(one) for one in (source, qp, slices, columns)]
            for row0, row1 in zip(split, split[1:]):
                intra_refresh(*inputs[:3], tools, inputs[3], disable_idc, row0, row1, there, modes_there)
            wanted, wanted_modes = Motion(*(one.copy() for one in motion)), modes.copy()
            cpu.intra_refresh(source, qp, slices, tools, columns, disable_idc, 0, rows, wanted, wanted_modes)
            for name, got, want in zip(Motion._fields, there[:4], wanted):
                np.testing.assert_array_equal(got.get(), want, name)
            np.testing.assert_array_equal(modes_there.get(), wanted_modes)
        seen.update(wanted_modes.ravel().tolist())
    assert 99 in seen and len(seen) > 6
