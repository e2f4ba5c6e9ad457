"""bipredict against its definition: entries, implicit weights, partitions, subme, borders, any split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Candidates, DecisionSettings, LumaReferences, Searches
from h264lite.cpu_simd.decide.bipredict import bipredict
from h264lite.cpu_simd.decisions.common import COST_NOT_REFINED, LAMBDA
from h264lite.cpu_simd.layout import N_B_CHOICES, N_B_EXTRAS, PARTITIONS
from h264lite.standard.tables import UE_BITS

from ..support import naive
from ..support.naive_bipredict import Macroblock
from ..support.quantiser import varying

SEED, PAD, MAX_MV_Y = 37, 48, 64
AREAS = PARTITIONS[:, 2] * PARTITIONS[:, 3]


def case(rng, width, height, n_ref, n_ref1, spread, weights):
    """source, LumaReferences, Searches: a frame between those of the lists, with costs of vectors as a search might give."""
    n_mb, entries = width * height // 256, n_ref + n_ref1
    slope = np.add.outer(np.arange(height) ** 2 / 9, np.arange(width) * 3)
    base = (slope + rng.normal(0, 12, (height, width))) % 256
    luma = np.empty((entries + 1, 4, height + 2 * PAD, width + 2 * PAD), np.uint8)
    for planes in luma:
        shifted = np.roll(base, rng.integers(-2, 3, 2), (0, 1)) + rng.integers(-40, 41, base.shape)
        planes[...] = naive.half_samples(np.pad(shifted.clip(0, 255).astype(np.uint8), PAD, mode="edge"))
    source = (base + rng.integers(-9, 10, base.shape)).clip(0, 255).astype(np.uint8)
    slots = rng.permutation(entries + 1)[:entries].astype(np.int32)
    if weights == "plain":
        bi_weights = np.full(n_ref * n_ref1, 32, np.int32)
    else:
        bi_weights = rng.choice(np.array([-64, -20, 0, 21, 32, 43, 64, 128], np.int32), n_ref * n_ref1)
    mv = rng.integers(-spread, spread + 1, (entries, n_mb, 1, 2)) + rng.integers(-2, 3, (entries, n_mb, 41, 2))
    mv[..., 1] = mv[..., 1].clip(-4 * MAX_MV_Y, 4 * MAX_MV_Y - 1)
    mv[:, rng.random(n_mb) < 0.3] = mv[:, :1, 40:, :]  # the same in all partitions and macroblocks
    predictor = rng.integers(-40, 41, (entries, n_mb, 2)).astype(np.int16)
    cost = AREAS * rng.integers(20, 120, (entries, n_mb, 41)) + rng.integers(0, 40, (entries, n_mb, 41))
    cost[:, rng.random((n_mb, 41)) < 0.1] = COST_NOT_REFINED
    cost[rng.random(cost.shape) < 0.1] = COST_NOT_REFINED
    cost[..., 40] = cost[..., 40] % COST_NOT_REFINED + 9  # the undivided macroblock always is
    references = LumaReferences(luma, slots, PAD, n_ref, n_ref1, bi_weights)
    return source, references, Searches(cost.astype(np.int32), mv.astype(np.int16), predictor)


def blank(n_mb):
    """Candidates with values that every stage must overwrite."""
    shapes = (N_B_CHOICES,), (N_B_CHOICES, 2), (N_B_CHOICES, 2, 2), (N_B_EXTRAS,)
    kinds = np.int32, np.int8, np.int16, np.int32
    return Candidates(*(np.full((n_mb, *shape), 77, kind) for shape, kind in zip(shapes, kinds)))


CASES = [
    # width, height, n_ref, n_ref1, spread, weights, subme, partition_mask
    (48, 32, 1, 1, 9, "plain", 6, 7),
    (32, 48, 3, 2, 20, "any", 6, 31),
    (32, 32, 2, 1, 250, "any", 3, 7),  # many vectors are not legal for the macroblock
    (48, 16, 16, 2, 6, "plain", 2, 3),
    (16, 32, 2, 2, 12, "any", 1, 1),
    (32, 16, 4, 1, 12, "plain", 5, 5),
]


@pytest.mark.parametrize(("width", "height", "n_ref", "n_ref1", "spread", "weights", "subme", "mask"), CASES)
def test_against_the_definition(width, height, n_ref, n_ref1, spread, weights, subme, mask):
    print("seed", SEED)
    rng = np.random.default_rng([SEED, width, height])
    source, references, searches = case(rng, width, height, n_ref, n_ref1, spread, weights)
    n_mb, qp = width * height // 256, varying(rng, width * height // 256)
    qp[: n_mb // 2] //= 2
    candidates = blank(n_mb)
    before = [array.copy() for array in searches]
    for row in reversed(range(height // 16)):
        settings = DecisionSettings(subme, 0, MAX_MV_Y, mask)
        bipredict(source, references, searches, qp, settings, row, row + 1, candidates)
    for array, old in zip(searches, before):
        np.testing.assert_array_equal(array, old)
    fractions = [{(x, y): naive.quarter_plane(p, x, y) for x in range(4) for y in range(4)} for p in references.luma]
    for mb in range(n_mb):
        lam = int(LAMBDA[qp[mb]])
        expected = Macroblock(mb, source, fractions, references, searches, lam, subme, MAX_MV_Y).choices(mask)
        for c, (cost, refs, vectors) in enumerate(expected):
            candidate = int(candidates.cost[mb, c]), candidates.ref[mb, c].tolist(), candidates.mv[mb, c].tolist()
            assert candidate == (cost, list(refs), [list(v) for v in vectors]), (mb, c)
    assert not candidates.extra.any()


def test_the_cases_hold_every_kind_of_choice():
    """Else the comparison above would say little."""
    kinds = np.zeros((N_B_CHOICES, 4), int)
    for width, height, n_ref, n_ref1, spread, weights, subme, mask in CASES:
        rng = np.random.default_rng([SEED, width, height])
        source, references, searches = case(rng, width, height, n_ref, n_ref1, spread, weights)
        qp, candidates = np.full(width * height // 256, 20, np.uint8), blank(width * height // 256)
        settings = DecisionSettings(subme, 0, MAX_MV_Y, mask)
        bipredict(source, references, searches, qp, settings, 0, height // 16, candidates)
        used = candidates.ref >= 0
        for c in range(N_B_CHOICES):
            kinds[c] += np.bincount(used[:, c, 0] + 2 * used[:, c, 1], minlength=4)
    assert (kinds[:8] > 0).all(), kinds  # none, list 0, list 1, both
    assert kinds[8, 1] and kinds[9, 2] and kinds[10, 3] and kinds[10, 0]
    assert not kinds[8:10, [0, 3]].any() and not kinds[10, 1:3].any()


def test_a_frame_between_two_others_takes_both():
    """A source that is the average of two references: both lists cost nothing, and the vectors stay."""
    rng = np.random.default_rng(SEED)
    width, height = 48, 48
    a, b = (rng.integers(0, 256, (height, width)).astype(np.uint8) for _ in range(2))
    luma = np.stack([naive.half_samples(np.pad(plane, PAD, mode="edge")) for plane in (a, b)])
    source = ((a.astype(int) + b + 1) >> 1).astype(np.uint8)
    n_mb = width * height // 256
    mv, predictor = np.zeros((2, n_mb, 41, 2), np.int16), np.zeros((2, n_mb, 2), np.int16)
    lam = int(LAMBDA[26])
    no_bits = int(UE_BITS[0])
    cost = np.empty((2, n_mb, 41), np.int32)
    for r, plane in enumerate((a, b)):
        difference = plane.astype(int) - source
        for mb in range(n_mb):
            block = difference[mb // 3 * 16 :, mb % 3 * 16 :]
            values = [naive.satd(block[y : y + h, x : x + w]) for x, y, w, h in PARTITIONS.tolist()]
            cost[r, mb] = np.array(values) + 2 * no_bits * lam
    references = LumaReferences(luma, np.array([0, 1], np.int32), PAD, 1, 1, np.full(1, 32, np.int32))
    candidates = blank(n_mb)
    settings = DecisionSettings(6, 0, MAX_MV_Y, 7)
    bipredict(source, references, Searches(cost, mv, predictor), np.full(n_mb, 26, np.uint8), settings, 0, 3, candidates)
    both = [c for c in range(N_B_CHOICES) if c not in (8, 9)]
    assert not candidates.cost[:, both].any() and not candidates.ref[:, both].any() and not candidates.mv.any()
    np.testing.assert_array_equal(candidates.ref[:, 8:10], np.broadcast_to([[0, -1], [-1, 0]], (n_mb, 2, 2)))
    np.testing.assert_array_equal(candidates.cost[:, 8:10], (cost[:, :, 40] - 2 * lam * no_bits).T)
