"""decoded_qp against the rule of 7.4.5, macroblock by macroblock."""

import numpy as np
import pytest
from h264lite.cpu_simd.quantiser.decoded_qp import decoded_qp
from h264lite.standard.macroblock import B_SKIP, I_PCM, P_SKIP, I_4x4, I_16x16, P_8x8, P_16x16

from ..support import slices as slices_of

KINDS = np.array([I_4x4, I_16x16, I_PCM, P_SKIP, P_16x16, P_8x8, B_SKIP], np.uint8)


def random_frame(rng, mb_width, rows, coded):
    """mb_type, cbp, slice_first_mb, frame_params, qp. coded: share of macroblocks with a cbp that is not 0."""
    n_mb = mb_width * rows
    mb_type = rng.choice(KINDS, n_mb)
    cbp = np.where(rng.random(n_mb) < coded, rng.integers(1, 48, n_mb), 0).astype(np.uint8)
    cbp[np.isin(mb_type, (P_SKIP, B_SKIP))] = 0
    if not coded:
        mb_type[mb_type == I_16x16] = P_16x16
    params = np.array([rng.integers(0, 52), 0], np.int32)
    return mb_type, cbp, slices_of.anywhere(rng, n_mb, 0.1), params, rng.integers(0, 52, n_mb).astype(np.uint8)


def expected(mb_type, cbp, slice_first_mb, params, mb_width, qp):
    """QP_Y by 7.4.5: mb_qp_delta of 0 is inferred where it is absent."""
    qps, before = [], None
    for mb, (kind, pattern) in enumerate(zip(mb_type, cbp)):
        if mb in slice_first_mb:
            before = params[0]
        has_delta = kind == I_16x16 or (kind not in (I_PCM, P_SKIP, B_SKIP) and pattern > 0)
        before = qp[mb] if has_delta else before
        qps.append(before)
    return np.array(qps, np.uint8)


@pytest.mark.parametrize("coded", [0, 0.02, 0.5, 1])
def test_rule(coded):
    rng = np.random.default_rng(5)
    for mb_width, rows in ((1, 1), (7, 5), (3, 20)):
        *given, params, qp = random_frame(rng, mb_width, rows, coded)
        wanted = expected(*given, params, mb_width, qp)
        for _ in range(2):  # settled QPs stay
            decoded_qp(*given, params, mb_width, 0, mb_width * rows, qp)
            np.testing.assert_array_equal(qp, wanted)


def test_slice_by_slice():
    """Each slice alone: the same."""
    rng = np.random.default_rng(6)
    mb_type, cbp, first, params, qp = random_frame(rng, 5, 12, 0.3)
    wanted = expected(mb_type, cbp, first, params, 5, qp)
    cuts = [*np.unique(first).tolist(), 60]
    for begin, end in zip(cuts, cuts[1:]):
        decoded_qp(mb_type, cbp, first, params, 5, begin, end, qp)
    np.testing.assert_array_equal(qp, wanted)
