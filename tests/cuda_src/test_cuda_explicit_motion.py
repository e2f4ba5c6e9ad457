"""CUDA twins of explicit_motion and, for what stands beside I_PCM, of mark_skipped: the same types."""

import numpy as np
from h264lite.cpu_simd.decide import mode_decision as cpu_decision
from h264lite.cpu_simd.inter import explicit_motion as cpu
from h264lite.cuda_src.decide.mode_decision import mark_skipped
from h264lite.cuda_src.inter.explicit_motion import explicit_motion

from ..cpu_simd.test_explicit_motion import p_frame, random_frame
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import uploaded


def test_twin(device):  # noqa: F811
    rng = np.random.default_rng(48)
    for mb_width, rows, row0, row1 in ((5, 4, 0, 4), (3, 5, 1, 4), (1, 6, 0, 6), (31, 5, 0, 5)) * 2:
        motion, still, first = random_frame(rng, mb_width, rows, max(1, mb_width * rows // 5))
        on_gpu = uploaded(device, motion)
        explicit_motion(on_gpu, device.upload(still), device.upload(first), mb_width, row0, row1)
        cpu.explicit_motion(motion, still, first, mb_width, row0, row1)
        for name, a, b in zip(motion._fields, on_gpu, motion):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)


def test_p_skip(device):  # noqa: F811
    rng = np.random.default_rng(49)
    for mb_width, rows in ((5, 4), (1, 6), (30, 5)):
        *arguments, kinds = p_frame(rng, mb_width, rows)
        on_gpu = device.upload(kinds)
        mark_skipped(*(device.upload(values) for values in arguments), mb_width, 0, rows, on_gpu)
        cpu_decision.mark_skipped(*arguments, mb_width, 0, rows, kinds)
        np.testing.assert_array_equal(on_gpu.get(), kinds)
