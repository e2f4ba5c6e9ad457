"""Scores and bounds of levels against their plain definitions."""

import numpy as np
from h264lite.cpu_simd.layout import N_LEVEL_BLOCKS
from h264lite.cpu_simd.residual import macroblock_coding
from h264lite.standard.cavlc import MAX_LEVEL


def score(levels):
    """decimate_score, level by level."""
    if max(abs(int(level)) for level in levels) > 1:
        return macroblock_coding.DECIMATE_MOST
    total, run = 0, 0
    for level in levels:
        if level:
            total += [3, 2, 2, 1, 1, 1][run] if run < 6 else 0
        run = 0 if level else run + 1
    return total


def test_scores():
    rng = np.random.default_rng(seed := 47)
    print("seed", seed)
    levels = np.zeros((2, N_LEVEL_BLOCKS, 16), np.int16)
    for k in range(3000):
        few_levels = rng.choice([-1, 1], 16) * (rng.random(16) < rng.choice([0.05, 0.2, 0.6]))
        if k % 10 == 0:
            few_levels[rng.integers(0, 16)] = rng.choice([-2, 2, 300])
        levels[1, 5] = few_levels
        assert macroblock_coding.decimate_score(1, 5, levels) == score(few_levels)


def test_bound_of_bits():
    """No set of levels takes more bits than the bound."""
    rng = np.random.default_rng(seed := 48)
    print("seed", seed)
    for k in range(600):
        most = [1, 2, 3, 7, 16, 40, 200, MAX_LEVEL - 1][k % 8]
        there = rng.random((2, N_LEVEL_BLOCKS, 16)) < rng.choice([0.02, 0.3, 0.9, 1])
        sizes = rng.integers(max(1, most // 2), most + 1, there.shape)
        levels = (there * sizes * rng.choice([-1, 1], there.shape)).astype(np.int16)
        bits = macroblock_coding.bits_at_most(1, levels)
        assert macroblock_coding._bits_bound(1, np.count_nonzero(levels[1]), levels) >= bits > 0 or not levels[1].any()
