"""Transforms and quantisation: what comes back is near the residual at every QP, and scaling is the standard's."""

import numpy as np
import pytest
from h264lite.cpu_simd.decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, DEAD_ZONE_NEAREST
from h264lite.cpu_simd.residual import transform
from h264lite.standard import tables

from ..support.naive_reconstruction import chroma_dc, inverse_scan, luma_dc, residual_4x4
from ..support.scaling_lists import DEFAULT, FLAT, kernel_lists, multipliers, random_lists

CORE = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])


def forward_levels(residual, qp, dead_zone, weights, finer):
    """The encoder's side of one block, int[4, 4] -> levels [4, 4]; 64-bit integers throughout."""
    w = CORE @ residual @ CORE.T
    shift = 15 + qp // 6 - finer
    mf = multipliers(tables.QUANT_MF[qp % 6], weights.ravel(), finer).reshape(4, 4)
    levels = (np.abs(w) * mf + (dead_zone << shift) // 192) >> shift
    return np.sign(w) * np.minimum(levels, transform.MAX_LEVEL)


def weights_of(values):
    """8.5.6: weightScale4x4 of a list."""
    return np.array(inverse_scan(values))


@pytest.mark.parametrize("inter", [0, 1])
@pytest.mark.parametrize("of", ["flat", "default", "random"])
@pytest.mark.parametrize("dead_zone", [DEAD_ZONE_INTRA, DEAD_ZONE_INTER])
def test_strips_equal_the_definition(dead_zone, of, inter):
    rng = np.random.default_rng(seed := 41)
    print("seed", seed)
    scaling = {"flat": FLAT, "default": DEFAULT, "random": random_lists(rng)}[of]
    lists = kernel_lists(scaling, inter)
    assert lists.finer == {"flat": 0, "default": 1}.get(of, lists.finer)
    weights = [weights_of(values) for values in scaling[0][3 * inter :][:3]]
    for qp in range(52):
        source, predicted = rng.integers(0, 256, (2, 384)).astype(np.uint8)
        if qp % 3 == 1:
            source, predicted = 255 * (source & 1), 255 * (predicted & 1)
        if qp % 3 == 2:
            source[:], predicted[:] = 255, 0
        buffer, dc = np.zeros(768, np.int16), np.zeros(96, np.int32)
        levels, out = buffer[:384], np.zeros(384, np.uint8)
        coded = transform.quantise_strips(source, predicted, 0, 4, 0, qp, dead_zone, True, lists, buffer, dc)
        coded |= transform.quantise_strips(source, predicted, 4, 6, 0, qp, dead_zone, True, lists, buffer, dc)
        sums = dc.reshape(6, 4, 4)[:, :, 0].copy()
        dc[:] = 0
        transform.reconstruct_strips(levels, dc, predicted, 0, 4, qp, lists, out)
        transform.reconstruct_strips(levels, dc, predicted, 4, 6, qp, lists, out)
        blocks = [a.reshape(6, 4, 4, 4).transpose(0, 2, 1, 3).astype(int) for a in (source, predicted, levels, out)]
        for strip in range(6):
            for k in range(4):
                s, p, got, rec = (b[strip, k] for b in blocks)
                list_weights = weights[0 if strip < 4 else 1 + (k >> 1)]
                expected = forward_levels(s - p, qp, dead_zone, list_weights, lists.finer)
                assert np.array_equal(got, expected), qp
                assert sums[strip, k] == (s - p).sum()
                assert (coded >> (4 * strip + k)) & 1 == np.any(expected)
                scanned = got.ravel()[tables.ZIGZAG_4x4]
                residual = residual_4x4(inverse_scan(scanned), qp, None, list_weights)
                assert np.array_equal(rec, np.clip(p + residual, 0, 255)), qp


@pytest.mark.parametrize("of", ["flat", "default", "random"])
def test_levels_of_kept_coefficients(of):
    """forward_strips with quantise_kept is quantise_strips, and only strips without levels are said to have none."""
    rng = np.random.default_rng(seed := 45)
    print("seed", seed)
    lists, empty = kernel_lists({"flat": FLAT, "default": DEFAULT, "random": random_lists(rng)}[of], 1), 0
    for qp in range(52):
        for most in (0, 1 + qp // 4, 2 + qp // 2, 255):
            source = rng.integers(0, 256, 384).astype(np.uint8)
            predicted = np.clip(source + rng.integers(-most, most + 1, 384), 0, 255).astype(np.uint8)
            dead_zone = int(rng.choice([DEAD_ZONE_INTRA, DEAD_ZONE_INTER, DEAD_ZONE_NEAREST]))
            for strips in ((0, 4, 0), (4, 6, 0), (4, 6, 1)):
                expected, dc = np.zeros(768, np.int16), np.zeros(96, np.int32)
                coded = transform.quantise_strips(source, predicted, *strips, qp, dead_zone, True, lists, expected, dc)
                got = np.zeros(transform.BUFFER, np.int16)
                may = transform.forward_strips(source, predicted, *strips, qp, dead_zone, lists, got)
                assert may or coded == 0
                empty += not may
                assert transform.quantise_kept(*strips, qp, dead_zone, True, lists, got) == coded
                assert np.array_equal(got[:768], expected)
    assert empty > 52 * 3


@pytest.mark.parametrize("of", ["flat", "default", "random"])
def test_dc_transforms(of):
    rng = np.random.default_rng(seed := 42)
    print("seed", seed)
    scaling = {"flat": FLAT, "default": DEFAULT, "random": random_lists(rng)}[of]
    lists = kernel_lists(scaling)
    weights = [weights_of(values) for values in scaling[0][:3]]
    for qp in range(52):
        step = 2 ** ((qp - 4) / 6) * scaling[0][0, 0] / 16
        mf = [transform.dc_multiplier(lists, plane, qp) for plane in range(3)]
        for values in (rng.integers(-4080, 4081, 16), np.full(16, 4080), np.full(16, -4080)):
            c = values.astype(np.int64)
            transform.transform_luma_dc(c)
            for i in range(16):
                c[i] = transform.quantise_dc(c[i], qp, DEAD_ZONE_INTRA, mf[0], lists.finer)
            levels = c.copy()
            assert np.abs(levels).max() <= transform.MAX_LEVEL
            transform.scale_luma_dc(c, qp, lists)
            expected = luma_dc(levels[tables.ZIGZAG_4x4], qp, weights[0])
            assert np.array_equal(c.reshape(4, 4), expected)
            if np.abs(levels).max() < transform.MAX_LEVEL:  # 16 levels, each within 2/3 step; DC is scaled by 4
                assert np.abs(c / 4 - values).max() <= 16 * (step + 1)

            for at in (0, 4):
                c = values[:8].astype(np.int64)
                transform.hadamard_2x2(c, at)
                for i in range(at, at + 4):
                    c[i] = transform.quantise_dc(c[i], qp, 3, mf[1 + at // 4], lists.finer)
                assert np.array_equal(c[4 - at :][:4], values[4 - at :][:4])
                levels = c[at:][:4].copy()
                transform.scale_chroma_dc(c, at, qp, lists)
                assert np.array_equal(c[at:][:4].reshape(2, 2), chroma_dc(levels, qp, weights[1 + at // 4]))


def test_chroma_qp():
    for offset in range(-12, 13):
        for qp in range(52):
            assert transform.chroma_qp(qp, offset) == tables.QP_CHROMA[min(51, max(0, qp + offset))]
