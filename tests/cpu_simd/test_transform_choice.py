"""Choice of the transform: the cost is that of its definition, with the bits of cabac_bits."""

import numpy as np
import pytest
from h264lite.cpu_simd.costs import cabac_bits
from h264lite.cpu_simd.decisions.quantise import CHOICE_DISTORTION, CHOICE_MOST_RATIO
from h264lite.cpu_simd.residual import transform_choice
from h264lite.cpu_simd.residual.transform import RATIOS, quantise_strips
from h264lite.cpu_simd.residual.transform_8x8 import quantise_8x8
from h264lite.jit.kernel import closed_kernel
from h264lite.standard import tables
from h264lite.standard.cabac_contexts import CODED_BLOCK_BASE, CTX_CBP_LUMA

from ..support.scaling_lists import FLAT_LISTS


def mean_bits(bits, context, value):
    return int(sum(int(bits[2 * k + value]) for k in range(context, context + 4))) >> 2


def bits_of_levels(bits, category, block):
    mask = np.bitwise_or.reduce(np.int64(1) << np.flatnonzero(block), initial=np.int64(0))
    return cabac_bits.levels_bits(bits, category, block, 0, mask)


def definition(levels, ratios, is_8x8, bits):
    """levels, ratios: int[16, 16] as blocks of the macroblock; the cost and the coded_block_pattern."""
    total, pattern = 0, 0
    for q in range(4):
        quadrant, ratio = (a[8 * (q >> 1) :, 8 * (q & 1) :][:8, :8].astype(int) for a in (levels, ratios))
        dropped = (np.minimum(ratio, CHOICE_MOST_RATIO) ** 2).sum()
        kept = (np.minimum(abs(ratio - 64 * abs(quadrant)), CHOICE_MOST_RATIO) ** 2).sum()
        cost = (int(dropped) * CHOICE_DISTORTION >> 8) + mean_bits(bits, CTX_CBP_LUMA, 0)
        if quadrant.any():
            value = (int(kept) * CHOICE_DISTORTION >> 8) + mean_bits(bits, CTX_CBP_LUMA, 1)
            if is_8x8:
                block = quadrant.ravel()[tables.ZIGZAG_8x8].astype(np.int16)
                value += bits_of_levels(bits, cabac_bits.LUMA_8x8, block)
            for y in range(0, 0 if is_8x8 else 8, 4):
                for x in (0, 4):
                    block = quadrant[y : y + 4, x : x + 4].ravel()[tables.ZIGZAG_4x4].astype(np.int16)
                    value += bits_of_levels(bits, cabac_bits.LUMA_4x4, block)
                    value += mean_bits(bits, CODED_BLOCK_BASE[cabac_bits.LUMA_4x4], int(block.any()))
            if value < cost:
                cost, pattern = value, pattern | 1 << q
        total += cost
    return total, pattern


@pytest.mark.parametrize("qp", [0, 9, 18, 27, 36, 51])
def test_cost(qp):
    rng = np.random.default_rng(seed := 70 + qp)
    print("seed", seed)
    bits = np.zeros(transform_choice.N_CHOICE_BITS, np.int32)
    cabac_bits.fill_bits(bits, cabac_bits.P_SLICE, qp)
    transform_choice.fill_choice_bits(bits)
    block, lanes = np.zeros(64, np.int16), np.zeros(16, np.int32)
    patterns = set()
    for spread in 2 ** ((qp - 4) / 6) * np.array([0.5, 1, 2, 4, 8]):
        for dead_zone in (2, 6):
            predicted = rng.integers(0, 256, 384).astype(np.uint8)
            change = rng.normal(0, spread, 384) * (rng.random(384) < 0.3)
            source = np.clip(predicted + change, 0, 255).astype(np.uint8)
            buffer, other, dc = np.zeros(768, np.int16), np.zeros(768, np.int16), np.zeros(96, np.int32)
            coded = quantise_strips(source, predicted, 0, 4, 0, qp, dead_zone, True, FLAT_LISTS, buffer, dc)
            coded = sum(1 << q for q, blocks in enumerate((0x33, 0xCC, 0x3300, 0xCC00)) if coded & blocks)
            coded_8x8 = quantise_8x8(source, predicted, qp, dead_zone, FLAT_LISTS, other)
            for is_8x8, mask, values in ((False, coded, buffer), (True, coded_8x8, other)):
                levels, ratios = (values[at : at + 256].reshape(16, 16) for at in (0, RATIOS))
                if is_8x8:  # transposed within each quadrant
                    levels, ratios = (a.reshape(2, 8, 2, 8).transpose(0, 3, 2, 1).reshape(16, 16) for a in (levels, ratios))
                got = transform_choice.luma_cost(values, mask, is_8x8, bits, block, lanes)
                assert got == definition(levels, ratios, is_8x8, bits)
                patterns.add(got[1])
    assert len(patterns) >= 2


@closed_kernel
def call_tables(qps, tables):
    kept, known = np.full((transform_choice.N_QPS, transform_choice.N_CHOICE_BITS), -7, np.int32), np.int64(0)
    for k in range(qps.size):
        known = transform_choice.table_of_qp(tables[k], cabac_bits.P_SLICE, np.int64(qps[k]), kept, known)


@closed_kernel
def call_fills(qps, tables):
    for k in range(qps.size):
        cabac_bits.fill_bits(tables[k], cabac_bits.P_SLICE, np.int64(qps[k]))
        transform_choice.fill_choice_bits(tables[k])


def test_kept_tables_are_those_that_are_made():
    qps = np.array([30, 31, 30, 0, 51, 31, 0, 51, 30], np.uint8)
    kept, filled = (np.zeros((qps.size, transform_choice.N_CHOICE_BITS), np.int32) for _ in range(2))
    call_tables(qps, kept)
    call_fills(qps, filled)
    assert np.array_equal(kept, filled)
