"""CUDA twin of decoded_qp: the same QPs."""

import numpy as np
import pytest
from h264lite.cpu_simd.quantiser import decoded_qp as cpu
from h264lite.cuda_src.quantiser.decoded_qp import decoded_qp

from ..cpu_simd.test_decoded_qp import random_frame
from ..cuda_emulator.fixtures import device  # noqa: F401


@pytest.mark.parametrize("coded", [0, 0.01, 0.5])
def test_twin(device, coded):  # noqa: F811
    rng = np.random.default_rng(50)
    for mb_width, rows in ((1, 1), (5, 4), (40, 60)):
        *given, params, qp = random_frame(rng, mb_width, rows, coded)
        on_gpu = device.upload(qp)
        decoded_qp(*map(device.upload, (*given, params)), mb_width, 0, mb_width * rows, on_gpu)
        cpu.decoded_qp(*given, params, mb_width, 0, mb_width * rows, qp)
        np.testing.assert_array_equal(on_gpu.get(), qp)
