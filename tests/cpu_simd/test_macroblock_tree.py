"""The macroblock tree's kernels against plain Python: what macroblocks owe to others; offsets by a logarithm of floats."""

from math import log2

import numpy as np
import pytest
from h264lite.cpu_simd.lookahead.macroblock_tree import tree_offsets, tree_propagate

SEED = 19
SIZES = [(1, 1), (3, 2), (7, 5), (2, 9)]  # macroblocks


def naive_propagate(intra, own, hidden, used, weight1, mb_width, amount, gifts):
    cost, vectors, lists = used
    mb_height = len(intra) // mb_width
    for mb in range(len(intra)):
        saved = int(intra[mb]) - int(cost[mb])
        left_out = int(hidden[mb]) + 4 * saved
        share = left_out * 4096 // (left_out + 16 * int(cost[mb])) if saved > 0 else 0
        owed = (int(own[mb]) + int(amount[mb])) * share // 4096
        second = {1: 0, 2: owed, 3: owed * weight1 // 64}[int(lists[mb])]
        for given, (x, y), to in ((owed - second, vectors[mb, :2], gifts[0]), (second, vectors[mb, 2:], gifts[1])):
            left, top = 16 * (mb % mb_width) + int(x), 16 * (mb // mb_width) + int(y)
            for my in range(mb_height):
                for mx in range(mb_width):
                    width = max(0, min(left + 16, 16 * mx + 16) - max(left, 16 * mx))
                    height = max(0, min(top + 16, 16 * my + 16) - max(top, 16 * my))
                    to[my * mb_width + mx] += (given * width * height + 128) // 256


@pytest.mark.parametrize(("mb_width", "mb_height"), SIZES)
@pytest.mark.parametrize("reach", [0, 15, 40, 3000])
def test_what_is_owed_to_references(mb_width, mb_height, reach):
    rng, n_mb = np.random.default_rng([SEED, mb_width, reach]), mb_width * mb_height
    for weight1 in (0, 21, 32, 64):
        intra = rng.integers(9, 65536, n_mb).astype(np.uint16)
        used = (rng.integers(4, 65536, n_mb).astype(np.uint16), rng.integers(-reach, reach + 1, (n_mb, 4)).astype(np.int16),
                rng.integers(1, 4, n_mb).astype(np.uint8))  # fmt: skip
        own, amount = rng.integers(1, 1 << 28, n_mb), rng.integers(0, 1 << 38, n_mb)
        hidden = rng.choice([0, 1, 3000, (1 << 28) - 1], n_mb)
        gifts, expected = np.zeros((2, 2, n_mb), np.int64)
        tree_propagate(intra, own, hidden, used, weight1, mb_width, amount, gifts[0], gifts[1])
        naive_propagate(intra, own, hidden, used, weight1, mb_width, amount, expected)
        np.testing.assert_array_equal(gifts, expected)
    assert gifts.any() or n_mb == 1 or reach == 3000


def test_nothing_is_owed_that_intra_prediction_gives():
    intra, gifts = np.full(4, 50, np.uint16), np.zeros(4, np.int64)
    used = np.full(4, 50, np.uint16), np.zeros((4, 4), np.int16), np.ones(4, np.uint8)
    tree_propagate(intra, intra.astype(np.int64), np.full(4, 9000), used, 0, 2, np.full(4, 10**9), gifts, gifts)
    assert not gifts.any()


def test_shares_are_what_quantisation_leaves_out():
    """All of a residual that costs nothing; half of one that costs as much as is hidden, and a quarter of what is saved."""
    intra, amount = np.full(3, 160, np.uint16), np.arange(3) << 20
    own, still = np.full(3, 1 << 12), (np.zeros((3, 4), np.int16), np.ones(3, np.uint8))
    for cost, hidden, share in ((0, 0, 1), (0, 700, 1), (32, 0, 1 / 2), (40, 16 * 10, 1 / 2), (80, 16 * 220, 3 / 4)):
        gifts = np.zeros(3, np.int64)
        used = np.full(3, cost, np.uint16), *still
        tree_propagate(intra, own, np.full(3, hidden), used, 0, 3, amount, gifts, gifts)
        np.testing.assert_array_equal(gifts, (own + amount) * share)


def test_offsets_are_logarithms():
    rng = np.random.default_rng(SEED)
    own = np.concatenate(([1, 1, 16, 2**20], rng.integers(1, 2**20, 400)))
    amount = np.concatenate(([0, 2**46, 0, 2**40], (2 ** rng.uniform(0, 46, 400)).astype(np.int64)))
    for strength in (0, 128, 512, 1280):
        offsets = np.empty(own.size, np.int32)
        tree_offsets(own, amount, strength, offsets)
        exact = [-strength * log2((a + b) / a) for a, b in zip(own.tolist(), amount.tolist())]
        assert np.abs(offsets - exact).max() <= 0.5 + strength * 0.003 and offsets.max() <= 0 and offsets[0] == 0
