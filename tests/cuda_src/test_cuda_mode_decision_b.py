"""CUDA mode decision of B frames gives the bits of its CPU twin: lists, divisions, slices, skipping, rows in two launches."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import DecisionSettingsB, Planes
from h264lite.cpu_simd.decide import mode_decision_b as cpu
from h264lite.cuda_src.decide import mode_decision_b as cuda

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.b_scenes import results, scene
from ..support.bundles import blank, uploaded
from ..support.cuda_cases import SEED
from ..support.quantiser import constant, varying


@pytest.mark.parametrize("cabac", [0, 1])
@pytest.mark.parametrize(("n_ref", "n_ref1"), [(1, 1), (2, 1), (3, 2)])
def test_twin(device, n_ref, n_ref1, cabac):  # noqa: F811
    seen: set[int] = set()
    for n, (width, height, subme, mask, one_qp, psy, reach) in enumerate((
        (80, 64, 5, 31, 27, 0, 6), (96, 80, 7, 31, None, 0, 3), (64, 48, 6, 7, 30, 300, 900), (48, 48, 2, 31, 24, 0, 6),
        (80, 64, 9, 3, 34, 256, 6), (16, 48, 7, 31, 27, 0, 40), (64, 16, 5, 1, None, 0, 6), (112, 64, 6, 31, 20, 0, 6),
    )):  # fmt: skip
        rng = np.random.default_rng(SEED + 10 * n + n_ref)
        rows, n_mb = height // 16, width * height // 256
        qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
        s = scene(rng, width, height, n_ref, n_ref1, qp, weighted=n % 2 == 1, reach=reach)
        settings, out = DecisionSettingsB(qp, subme, cabac, mask, psy), results(n_mb)
        read = [Planes(s["source"], s["source"][:1], s["source"][:1]), s["references"], s["candidates"], s["still"]]
        read += [s["other_costs"], s["first"]]
        d_read = [uploaded(device, a) if isinstance(a, tuple) else device.upload(a) for a in read]
        d_qp = device.upload(qp)
        d_out, progress = blank(device, out), np.zeros(1 + rows, np.int64)
        for rows_at_once in ((0, rows), (0, rows)) if n % 3 or rows < 2 else ((0, 1), (1, rows)):
            progress[:] = 0
            cpu.mode_decision_b(*read, settings, progress, *rows_at_once, out)
            cuda.mode_decision_b(*d_read, settings._replace(qp=d_qp), None, *rows_at_once, d_out)
        for name, a, b in zip(out._fields, d_out, out):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)
        seen |= set(out.mb_type.tolist())
    assert len(seen) >= 6 + cabac
