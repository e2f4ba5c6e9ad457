"""Random macroblocks of B frames for tests: motion of all types, reference pools with both lists."""

import numpy as np
from h264lite.standard.macroblock import B_DIRECT, B_SKIP, LAST_INTRA, B_8x8, B_8x16, B_16x8, B_16x16

B_TYPES = (B_SKIP, B_DIRECT, B_16x16, B_16x8, B_8x16, B_8x8)
FIRST_QUADRANTS = {B_16x16: (0, 0, 0, 0), B_16x8: (0, 0, 2, 2), B_8x16: (0, 1, 0, 1)}  # of the partition of each quadrant
OF_BLOCK = [2 * (k // 8) + k % 4 // 2 for k in range(16)]  # quadrant of a 4x4 block


def random_motion(rng, state, entries, largest):
    """Adds B types and motion to `state` (empty_state of test_intra.py); entries: of both lists; largest: vectors.

    Direct macroblocks have one pair of references and in each quadrant the macroblock's vectors or zero (8.4.1.2.2).
    """
    n_mb = len(state["mb_type"])
    state["mb_type"][:] = rng.choice(B_TYPES, n_mb)
    state["sub_mb_type"] = rng.integers(0, 4, (n_mb, 4)).astype(np.uint8)
    state["ref_idx1"], state["mv1"] = np.zeros((n_mb, 4), np.int8), np.zeros((n_mb, 16, 2), np.int16)
    for mb, kind in enumerate(state["mb_type"]):
        used = rng.integers(1, 4, 4)  # bits: list 0, list 1
        same = rng.random() < 0.2  # equal neighbours in different partitions
        direct = kind in (B_SKIP, B_DIRECT)
        for bit, suffix in enumerate(("", "1")):
            refs = rng.integers(0, entries[bit], 4)
            vectors = rng.integers(-largest, largest + 1, (4, 2))
            first = (0, 0, 0, 0) if direct or same else FIRST_QUADRANTS.get(int(kind), (0, 1, 2, 3))
            for q in range(4):
                ref = refs[first[q]] if used[first[q]] >> bit & 1 else -1
                vector = vectors[first[q]] * (not direct or rng.random() < 0.7)
                state["ref_idx" + suffix][mb, q] = ref
                state["mv" + suffix][mb, [k for k in range(16) if OF_BLOCK[k] == q]] = vector if ref >= 0 else 0


def make_intra(state, mbs, kind):
    """Turns macroblocks into intra ones, without motion."""
    assert kind <= LAST_INTRA
    state["mb_type"][mbs] = kind
    for suffix in ("", "1"):
        state["ref_idx" + suffix][mbs] = -1
        state["mv" + suffix][mbs] = 0


def with_lists(pool, n_ref, slots, bi_weights):
    """The References `pool` of a B frame with n_ref entries in list 0; slots: of both; bi_weights: int[n_ref][n_ref1]."""
    slots, weights = np.array(slots, np.int32), np.array(bi_weights, np.int32).reshape(-1)
    return pool._replace(slots=slots, searched=slots, n_ref=n_ref, n_ref1=len(slots) - n_ref, bi_weights=weights)
