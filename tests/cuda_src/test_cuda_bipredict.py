"""CUDA bipredict gives the bits of its CPU twin: entries, implicit weights, partitions, subme, illegal vectors, rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import DecisionSettings
from h264lite.cpu_simd.decide import bipredict as cpu
from h264lite.cuda_src.decide import bipredict as cuda

from ..cpu_simd.test_bipredict import CASES, MAX_MV_Y, SEED, blank, case
from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import blank as blank_on
from ..support.bundles import uploaded
from ..support.quantiser import varying


@pytest.mark.parametrize(
    ("width", "height", "n_ref", "n_ref1", "spread", "weights", "subme", "mask"), [*CASES, (144, 16, 1, 2, 15, "plain", 4, 7)]
)
def test_twin(device, width, height, n_ref, n_ref1, spread, weights, subme, mask):  # noqa: F811
    rng = np.random.default_rng([SEED, width, height])
    source, references, searches = case(rng, width, height, n_ref, n_ref1, spread, weights)
    rows, n_mb = height // 16, width * height // 256
    qp, settings, expected = varying(rng, n_mb), DecisionSettings(subme, 0, MAX_MV_Y, mask), blank(n_mb)
    qp[: n_mb // 2] //= 2
    cpu.bipredict(source, references, searches, qp, settings, 0, rows, expected)
    read = device.upload(source), uploaded(device, references), uploaded(device, searches), device.upload(qp)
    on_gpu = blank_on(device, expected)
    for row in range(rows):
        cuda.bipredict(*read, settings, row, row + 1, on_gpu)
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(on_gpu, name).get(), getattr(expected, name), err_msg=name)
