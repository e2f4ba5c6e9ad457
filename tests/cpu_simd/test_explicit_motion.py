"""Motion that a decoder derives otherwise is said explicitly; all else stays. The derivation: support/naive_*.py."""

import numpy as np
from h264lite.cpu_simd.bundles import Motion
from h264lite.cpu_simd.decide.mode_decision import mark_skipped
from h264lite.cpu_simd.inter.explicit_motion import explicit_motion
from h264lite.standard.macroblock import B_DIRECT, B_SKIP, B_SUB_DIRECT, I_PCM, P_SKIP, B_8x8, P_16x16

from ..support import naive
from ..support import slices as slices_of
from ..support.b_scenes import results
from ..support.naive_mode_decision_b import direct_motion

CORNERS = (0, 2, 8, 10)  # a block of each quadrant


def random_frame(rng, mb_width, rows, n_intra):
    """Motion as the decision leaves it, direct where its kind says so; then some macroblocks become I_PCM.

    Returns (Motion, colocated_still, slice_first_mb).
    """
    n_mb = mb_width * rows
    motion, still = results(n_mb), rng.integers(0, 16, n_mb).astype(np.uint8)
    first = slices_of.anywhere(rng, n_mb, 0.1)
    lists = (motion.ref_idx, motion.mv), (motion.ref_idx1, motion.mv1)
    for mb in range(n_mb):
        kind = motion.mb_type[mb] = rng.choice((B_SKIP, B_DIRECT, B_8x8, B_8x8))
        subs = motion.sub_mb_type[mb]
        subs[:] = rng.integers(0, 4, 4) if kind == B_8x8 else 0
        direct = direct_motion(mb, int(still[mb]), lists, mb_width, int(first[mb]))
        for q, k in np.ndindex(4, 2):
            ref, mv = lists[k]
            blocks = np.add.outer((0, 4), (0, 1)).ravel() + CORNERS[q]
            if subs[q] == B_SUB_DIRECT:
                ref[mb, q], mv[mb, blocks] = direct[k][0], direct[k][1][q]
            else:
                used = subs[q] & 1 << k
                ref[mb, q], mv[mb, blocks] = (rng.integers(0, 2), rng.integers(-3, 4, 2)) if used else (-1, 0)
    for mb in rng.choice(n_mb, n_intra, False):
        motion.mb_type[mb], motion.sub_mb_type[mb] = I_PCM, 0
        for ref, mv in lists:
            ref[mb], mv[mb] = -1, 0
    return motion, still, first


def expected(motion, still, first, mb_width, row0, row1):
    """mb_type, sub_mb_type."""
    kinds, subs = motion.mb_type.copy(), motion.sub_mb_type.copy()
    lists = (motion.ref_idx, motion.mv), (motion.ref_idx1, motion.mv1)
    for mb in range(row0 * mb_width, row1 * mb_width):
        if kinds[mb] not in (B_SKIP, B_DIRECT, B_8x8):
            continue
        direct = direct_motion(mb, int(still[mb]), lists, mb_width, int(first[mb]))
        direct_quadrants = [q for q in range(4) if subs[mb, q] == B_SUB_DIRECT]
        if any(ref[mb, q] != direct[k][0] or tuple(mv[mb, CORNERS[q]]) != direct[k][1][q]
               for q in direct_quadrants for k, (ref, mv) in enumerate(lists)):  # fmt: skip
            kinds[mb] = B_8x8
            for q in direct_quadrants:
                subs[mb, q] = sum((ref[mb, q] >= 0) << k for k, (ref, _) in enumerate(lists))
    return kinds, subs


def test_derived_motion_that_differs_is_said():
    rng = np.random.default_rng(seed := 45)
    print("seed", seed)
    changed = 0
    for mb_width, rows, row0, row1 in ((5, 4, 0, 4), (3, 5, 1, 4), (1, 6, 0, 6), (7, 1, 0, 1)) * 20:
        motion, still, first = random_frame(rng, mb_width, rows, max(1, mb_width * rows // 5))
        before = motion.mb_type.copy()
        wanted = expected(motion, still, first, mb_width, row0, row1)
        explicit_motion(motion, still, first, mb_width, row0, row1)
        np.testing.assert_array_equal(motion.mb_type, wanted[0])
        np.testing.assert_array_equal(motion.sub_mb_type, wanted[1])
        changed += np.count_nonzero(motion.mb_type != before)
    assert changed > 9


def test_without_intra_macroblocks_nothing_changes():
    rng = np.random.default_rng(46)
    motion, still, first = random_frame(rng, 6, 5, 0)
    before = Motion(*(values.copy() for values in motion))
    explicit_motion(motion, still, first, 6, 0, 5)
    for a, b in zip(motion, before):
        np.testing.assert_array_equal(a, b)


def p_frame(rng, mb_width, rows):
    """Arguments of mark_skipped: P_Skip and P_16x16, without residual, and I_PCM."""
    n_mb = mb_width * rows
    first = slices_of.anywhere(rng, n_mb, 0.1)
    ref_idx, mv = np.zeros((n_mb, 4), np.int8), np.zeros((n_mb, 16, 2), np.int16)
    kinds = rng.choice((P_SKIP, P_SKIP, P_16x16), n_mb).astype(np.uint8)
    for mb in range(n_mb):
        skip = naive.predict_skip_mv(mb, ref_idx, mv, mb_width, int(first[mb]))
        mv[mb] = skip if kinds[mb] == P_SKIP else rng.integers(-3, 4, 2)
    for mb in rng.choice(n_mb, n_mb // 5, False):
        kinds[mb], ref_idx[mb], mv[mb] = I_PCM, -1, 0
    return first, ref_idx, mv, np.zeros(n_mb, np.uint8), kinds


def test_p_skip_has_the_derived_vector():
    rng, changed = np.random.default_rng(47), 0
    for mb_width, rows in ((5, 4), (1, 6), (8, 3)) * 60:
        first, ref_idx, mv, cbp, kinds = p_frame(rng, mb_width, rows)
        marked = kinds.copy()
        mark_skipped(first, ref_idx, mv, cbp, mb_width, 0, rows, marked)
        for mb in range(mb_width * rows):
            if kinds[mb] != I_PCM:
                skip = naive.predict_skip_mv(mb, ref_idx, mv, mb_width, int(first[mb]))
                assert marked[mb] == (P_SKIP if tuple(mv[mb, 0]) == tuple(skip) else P_16x16)
        changed += np.count_nonzero((kinds == P_SKIP) & (marked == P_16x16))
    assert changed > 9
