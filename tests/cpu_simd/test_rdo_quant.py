"""rdo_quant: its bits are those of CAVLC, and what it leaves is what the definition leaves."""

import numpy as np
import pytest
from h264lite.cpu_simd.quantiser.rdo_quant import bits_of, weigh_blocks
from h264lite.jit.kernel import kernel
from h264lite.standard.cavlc import COEFF_TOKEN, NC_CLASS, RUN_BEFORE, TOTAL_ZEROS

from ..support import naive_entropy

SEED = 91
SCAN = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15]


@kernel
def call_bits_of(mask, ones, nc_class):
    return bits_of(mask, ones, nc_class)


@kernel
def call_weigh_blocks(quantised, coded, first_block, end_block, first, scratch):
    return weigh_blocks(quantised, coded, first_block, end_block, first, scratch)


def naive_bits(levels, nc_class):
    """Of levels in scan order: exact but for levels of one before the last three, which count two, and larger ones: 0."""
    at = [i for i in range(len(levels)) if levels[i]]
    if not at:
        return int(COEFF_TOKEN[nc_class, 0, 0, 0])
    trailing = 0
    while trailing < min(3, len(at)) and abs(levels[at[-1 - trailing]]) == 1:
        trailing += 1
    bits = int(COEFF_TOKEN[nc_class, len(at), trailing, 0]) + trailing
    bits += 2 * sum(abs(levels[i]) == 1 for i in at[: len(at) - trailing])
    zeros = at[-1] + 1 - len(at)
    bits += int(TOTAL_ZEROS[len(at), zeros, 0]) if len(at) < 16 else 0
    for before, i in zip(at[-2::-1], at[:0:-1]):
        if zeros:
            bits += int(RUN_BEFORE[min(zeros, 7), i - before - 1, 0])
            zeros -= i - before - 1
    return bits


def naive_weigh(levels, ratios, first):
    """The levels of one block in scan order that are worth their bits."""
    levels = [int(v) for v in levels]
    count = sum(v != 0 for v in levels)
    nc_class = int(NC_CLASS[min(16, count + 2)])
    sure = 77 if count <= 8 else 43
    for i, (level, ratio) in enumerate(zip(levels, ratios)):
        if abs(level) > 1 and ratio < 64 * (abs(level) - 1) + 42:
            levels[i] -= 1 if level > 0 else -1
    open_ = [i for i in range(15, -1, -1) if abs(levels[i]) == 1 and ratios[i] < sure]
    for i in open_:
        without = [*levels[:i], 0, *levels[i + 1 :]]
        if 9 * (naive_bits(levels[first:], nc_class) - naive_bits(without[first:], nc_class)) > 2 * ratios[i] - 64:
            levels = without
    if open_ and all(abs(v) <= 1 for v in levels):
        saved = sum(2 * r - 64 for v, r in zip(levels, ratios) if v)
        if 9 * (naive_bits(levels[first:], nc_class) - int(COEFF_TOKEN[nc_class, 0, 0, 0])) > saved:
            levels = [0] * 16
    return levels


def test_bits_are_those_of_cavlc():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    levels = np.zeros((1, 27, 16), np.int16)
    for n in range(400):
        levels[0, 0] = 0
        at = rng.choice(16, n % 4, replace=False)
        levels[0, 0, at] = rng.choice([-1, 1], n % 4)
        mask = sum(1 << int(i) for i in at)
        for nc in (0, 2, 4, 8):  # one of each class
            expected = naive_entropy.residual_block(levels[0, 0].tolist(), nc)
            assert call_bits_of(mask, mask, int(NC_CLASS[nc])) == len(expected)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 4.0])
def test_what_is_left(first, scale):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    changed = 0
    for _ in range(60):
        buffer = np.zeros(768, np.int16)
        size = np.minimum(32767, abs(rng.laplace(0, 64 * scale, (24, 16)))).astype(int)  # [block, scan position]
        size[:, :first] = 0
        level = (size + 32 >> 6) * rng.choice([-1, 1], size.shape)
        raster = np.argsort(SCAN)
        for part, values in ((buffer[:384], level), (buffer[384:], size)):
            blocks = values[:, raster].reshape(6, 4, 4, 4)  # strip, block, row, column
            part[:] = blocks.transpose(0, 2, 1, 3).reshape(-1)
        coded = sum(1 << k for k in range(24) if level[k].any())
        left = call_weigh_blocks(buffer, coded, 0, 24, first, np.zeros(32, np.int16))
        result = buffer[:384].reshape(6, 4, 4, 4).transpose(0, 2, 1, 3).reshape(24, 16)[:, SCAN]
        for k in range(24):
            expected = naive_weigh(level[k], size[k], first)
            assert result[k].tolist() == expected, k
            assert bool(left >> k & 1) == any(expected)
            changed += expected != level[k].tolist()
    assert changed > 50
