"""Kept motion is that of the frame, colZeroFlag what 8.4.1.2.2 says of the corner blocks."""

import numpy as np
from h264lite.cpu_simd.bundles import KeptMotion, Motion
from h264lite.cpu_simd.inter.colocated import keep_motion
from h264lite.standard.macroblock import I_PCM

from ..support.b_macroblocks import make_intra, random_motion
from ..support.bundles import named
from .test_intra import empty_state


def col_zero_flags(state, mb):
    """8.4.1.2.1, 8.4.1.2.2 with direct_8x8_inference_flag 1, a bit a quadrant."""
    flags = 0
    for q in range(4):
        corner = {0: 0, 1: 3, 2: 12, 3: 15}[q]
        suffix = "" if state["ref_idx"][mb, q] >= 0 else "1"
        ref, (x, y) = state["ref_idx" + suffix][mb, q], state["mv" + suffix][mb, corner]
        flags |= (ref == 0 and -1 <= x <= 1 and -1 <= y <= 1) << q
    return flags


def random_frame(rng, n_mb, largest, both=True):
    """Motion of a frame with intra macroblocks; vectors of P macroblocks differ within quadrants."""
    state = empty_state(n_mb)
    random_motion(rng, state, (2, 2), largest)
    if not both:
        state["ref_idx"][:], state["ref_idx1"][:], state["mv1"][:] = rng.integers(0, 2, (n_mb, 4)), -1, 0
        state["mv"][:] = rng.integers(-largest, largest + 1, (n_mb, 16, 2))
    make_intra(state, np.flatnonzero(rng.random(n_mb) < 0.2), I_PCM)
    return state


def blank_kept(n_mb):
    return KeptMotion(np.full((n_mb, 4), 55, np.int8), np.full((n_mb, 16, 2), 55, np.int16), np.full(n_mb, 0x55, np.uint8))


def test_kept_motion():
    rng = np.random.default_rng(seed := 38)
    print("seed", seed)
    still_masks = set()
    for largest in (1, 2, 300):
        for both in (False, True):
            state, kept = random_frame(rng, 30, largest, both), blank_kept(30)
            for row0, row1 in ((3, 5), (0, 3)):
                keep_motion(named(Motion, state), 6, row0, row1, kept)
            np.testing.assert_array_equal(kept.ref_idx, state["ref_idx"])
            np.testing.assert_array_equal(kept.mv, state["mv"])
            assert kept.still.tolist() == [col_zero_flags(state, mb) for mb in range(30)]
            still_masks |= set(kept.still.tolist())
    assert len(still_masks) > 9


def test_other_rows_stay():
    state, kept = random_frame(np.random.default_rng(39), 12, 2), blank_kept(12)
    keep_motion(named(Motion, state), 4, 1, 2, kept)
    assert (kept.still[[0, 3, 8, 11]] == 0x55).all() and (kept.mv[8:] == 55).all() and (kept.ref_idx[:4] == 55).all()
