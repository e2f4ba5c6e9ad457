"""Trellis quantisation: the choice is the cheapest of all, blocks are changed as the choice says."""

import itertools

import numpy as np
import pytest
from h264lite.cpu_simd.costs.cabac_bits import EMPTY, I_SLICE, N_BITS, P_SLICE, fill_bits
from h264lite.cpu_simd.decisions.quantise import RDO_ONE, TRELLIS_INTER, TRELLIS_INTRA
from h264lite.cpu_simd.quantiser import trellis
from h264lite.cpu_simd.quantiser.trellis import LONGEST
from h264lite.cpu_simd.residual.macroblock_coding import BY_CABAC, Rounding
from h264lite.cpu_simd.residual.transform import RATIOS
from h264lite.standard.tables import QUANT_MF, ZIGZAG_4x4

from ..support.naive_cabac_bits import bits_of_bins, residual_bins
from ..support.scaling_lists import FLAT_LISTS

SIZES = (16, 15, 16, 4, 15, 64)  # levels of a block by ctxBlockCat


def table(slice_type: int, qp: int) -> np.ndarray:
    bits = np.zeros(N_BITS, np.int32)
    fill_bits(bits, slice_type, qp)
    return bits


def cost(levels: np.ndarray, ratios: np.ndarray, category: int, bits: np.ndarray, factor: int) -> int:
    """Bits and distortion, in 1 / 256 bit, as trellis.py defines them; distortion against the nearest levels."""
    nearest = ratios + RDO_ONE // 2 >> 6
    lowered = nearest != levels
    distortion = int((ratios - RDO_ONE * nearest + RDO_ONE // 2)[lowered].sum())
    coded = bits_of_bins(residual_bins(category, levels), bits) if levels.any() else int(bits[EMPTY + category])
    return factor * distortion + coded


def cheapest(ratios: np.ndarray, category: int, bits: np.ndarray, factor: int) -> int:
    """The least cost of all choices that are allowed, by trying each."""
    nearest = ratios + RDO_ONE // 2 >> 6
    choices = []
    for ratio, level in zip(ratios.tolist(), nearest.tolist()):
        may_lower = level in (1, 2) or (level > 2 and ratio < RDO_ONE * level)
        choices.append((level, level - 1) if may_lower else (level,))
    return min(cost(np.array(c), ratios, category, bits, factor) for c in itertools.product(*choices))


def random_ratios(rng: np.random.Generator, category: int) -> np.ndarray:
    """A few coefficients that round to levels, and noise below."""
    ratios = rng.integers(0, 32, SIZES[category])
    places = rng.choice(SIZES[category], min(SIZES[category], int(rng.integers(0, 9))), replace=False)
    ratios[places] = rng.choice((60, 90, 200, 1500), len(places)) * rng.random(len(places)) + 32
    return ratios


@pytest.mark.parametrize("category", range(6))
def test_the_choice_is_the_cheapest(category):
    rng = np.random.default_rng(seed := category)
    print("seed", seed)
    for trial in range(40):
        bits, factor = table(trial % 2, int(rng.integers(52))), (TRELLIS_INTER, TRELLIS_INTRA)[trial % 2]
        ratios = random_ratios(rng, category)
        block = np.zeros(2 * LONGEST, np.int16)
        first = 1 if category in (1, 4) else 0
        block[first : first + len(ratios)] = ratios + RDO_ONE // 2 >> 6
        block[LONGEST + first : LONGEST + first + len(ratios)] = ratios
        path = trellis.choose_levels(block, first, len(ratios), category, bits, factor, FLAT_LISTS, -1)
        levels = (ratios + RDO_ONE // 2 >> 6) - (path >> np.arange(len(ratios)) & 1)
        assert cost(levels, ratios, category, bits, factor) == cheapest(ratios, category, bits, factor)


def test_levels_beyond_the_ratios_stay():
    block = np.zeros(2 * LONGEST, np.int16)
    block[:3], block[LONGEST : LONGEST + 3] = (2063, 600, 511), (32767, 32767, 32704)
    assert trellis.choose_levels(block, 0, 16, 2, table(P_SLICE, 10), TRELLIS_INTER, FLAT_LISTS, -1) == 0


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_are_changed_as_chosen(first):
    rng = np.random.default_rng(seed := 3)
    print("seed", seed)
    rounding = Rounding(BY_CABAC, 0, 0, TRELLIS_INTRA, table(I_SLICE, 30), FLAT_LISTS, 1)
    category = 1 if first else 2
    for _ in range(30):
        ratios, signs = np.zeros((4, 16), np.int64), rng.choice((-1, 1), (4, 16))
        for k in range(4):
            ratios[k, ZIGZAG_4x4[first:]] = random_ratios(rng, category)
        quantised = np.zeros(768, np.int16)
        for k in range(4):
            at = (np.arange(4)[:, None] * 16 + np.arange(4) + 4 * k).ravel()
            quantised[at], quantised[RATIOS + at] = signs[k] * (ratios[k] + 32 >> 6), ratios[k]
        expected = []
        for k in range(4):
            block = np.zeros(2 * LONGEST, np.int16)
            block[:16], block[LONGEST : LONGEST + 16] = (ratios[k] + 32 >> 6)[ZIGZAG_4x4], ratios[k][ZIGZAG_4x4]
            path = trellis.choose_levels(
                block, first, 16 - first, category, rounding.bits, rounding.factor, FLAT_LISTS, -1
            ) << first
            level = np.zeros(16, np.int64)
            level[ZIGZAG_4x4] = block[:16] - (path >> np.arange(16) & 1)
            expected.append(signs[k] * level)
        coded = sum(int((ratios[k] >= 32).any()) << k for k in range(4))
        left = trellis.lower_blocks(
            quantised, coded, 0, 4, first, category, rounding.factor, rounding, np.zeros(2 * LONGEST, np.int16)
        )
        for k in range(4):
            at = (np.arange(4)[:, None] * 16 + np.arange(4) + 4 * k).ravel()
            assert np.array_equal(quantised[at], expected[k])
            assert left >> k & 1 == expected[k].any()


def test_dc_blocks():
    rng = np.random.default_rng(seed := 4)
    print("seed", seed)
    for qp in range(52):
        rounding = Rounding(BY_CABAC, 0, 0, TRELLIS_INTRA, table(I_SLICE, qp), FLAT_LISTS, 1)
        for category, count, scan in ((0, 16, ZIGZAG_4x4), (3, 4, trellis.AS_SENT)):
            spread = 2 ** (qp / 6) * rng.choice((1, 10))
            values = np.concatenate([[7], np.clip(rng.laplace(0, spread, count), -16320, 16320), [9]]).astype(np.int64)
            shift = 16 + qp // 6
            scaled = np.abs(values[1:-1]) * int(QUANT_MF[qp % 6, 0])
            nearest, ratios = np.minimum(scaled + (1 << shift - 1) >> shift, 2063), np.minimum(scaled >> shift - 6, 32767)
            block = np.zeros(2 * LONGEST, np.int16)
            block[:count], block[LONGEST : LONGEST + count] = nearest[scan[:count]], ratios[scan[:count]]
            path = trellis.choose_levels(block, 0, count, category, rounding.bits, rounding.factor, FLAT_LISTS, -1)
            expected = nearest.copy()
            expected[scan[:count]] -= path >> np.arange(count) & 1
            expected *= np.sign(values[1:-1])
            trellis.choose_dc(values, 1, scan, count, qp, category, int(QUANT_MF[qp % 6, 0]), rounding, block)
            assert np.array_equal(values[1:-1], expected)
            assert values[0] == 7 and values[-1] == 9
