"""CUDA twin of keep_motion: the same kept motion and flags, other rows untouched."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Motion
from h264lite.cpu_simd.inter import colocated as cpu
from h264lite.cuda_src.inter.colocated import keep_motion

from ..cpu_simd.test_colocated import blank_kept, random_frame
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import named, uploaded


@pytest.mark.parametrize(("mb_width", "rows", "row0", "row1"), [(5, 4, 0, 4), (3, 5, 1, 3), (1, 3, 2, 3), (11, 2, 0, 1)])
def test_twin(device, mb_width, rows, row0, row1):  # noqa: F811
    rng = np.random.default_rng(seed := 43 + mb_width)
    print("seed", seed)
    for largest in (1, 2, 300):
        for both in (False, True):
            state, want = random_frame(rng, mb_width * rows, largest, both), blank_kept(mb_width * rows)
            kept = uploaded(device, want)
            keep_motion(uploaded(device, named(Motion, state)), mb_width, row0, row1, kept)
            cpu.keep_motion(named(Motion, state), mb_width, row0, row1, want)
            for name, a, b in zip(want._fields, kept, want):
                np.testing.assert_array_equal(a.get(), b, err_msg=name)
