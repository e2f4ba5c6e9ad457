"""The 8x8 transform: levels by the forward definition, samples by 8.5.13, at every QP; and the size of what they change."""

import numpy as np
import pytest
from h264lite.cpu_simd.decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, DEAD_ZONE_NEAREST
from h264lite.cpu_simd.residual import transform_8x8
from h264lite.cpu_simd.residual.transform import BUFFER, RATIOS
from h264lite.standard import tables
from h264lite.standard.cavlc import MAX_LEVEL
from h264lite.standard.macroblock import BLOCK_TO_RASTER

from ..support.naive_8x8 import inverse_scan_8x8, level_scale_8x8, residual_8x8
from ..support.scaling_lists import DEFAULT, FLAT, FLAT_LISTS, kernel_lists, multipliers, random_lists


def one_dimension(x):
    """The forward transform of eight values with the shifts of the integer one: rows of C are the inverse's columns."""
    s, d = [x[k] + x[7 - k] for k in range(4)], [x[k] - x[7 - k] for k in range(4)]
    even = s[0] + s[3], s[1] + s[2], s[0] - s[3], s[1] - s[2]
    odd = (
        d[1] + d[2] + d[0] + (d[0] >> 1),
        d[0] - d[3] - d[2] - (d[2] >> 1),
        d[0] + d[3] - d[1] - (d[1] >> 1),
        d[1] - d[2] + d[3] + (d[3] >> 1),
    )
    return [
        even[0] + even[1], odd[0] + (odd[3] >> 2), even[2] + (even[3] >> 1), odd[1] + (odd[2] >> 2),
        even[0] - even[1], odd[2] - (odd[1] >> 2), (even[2] >> 1) - even[3], (odd[0] >> 2) - odd[3],
    ]  # fmt: skip


def forward(residual):
    """Vertical direction first, as the kernel."""
    columns = [one_dimension([int(residual[i, j]) for i in range(8)]) for j in range(8)]
    rows = [one_dimension([columns[j][i] for j in range(8)]) for i in range(8)]
    return np.array(rows)


def forward_levels(residual, qp, dead_zone, weights, finer):
    w = forward(residual)
    shift = 16 + qp // 6 - finer
    mf = multipliers(tables.QUANT_MF_8x8[qp % 6], weights.ravel(), finer).reshape(8, 8)
    levels = (np.abs(w) * mf + (dead_zone << shift) // 192) >> shift
    return np.sign(w) * np.minimum(levels, MAX_LEVEL)


def quadrant(samples, q):
    return samples[:256].reshape(16, 16)[8 * (q >> 1) :, 8 * (q & 1) :][:8, :8].astype(int)


def levels_of(buffer, q):
    """[row, column]; the buffer has them transposed."""
    return buffer[:256].reshape(2, 8, 2, 8)[q >> 1, :, q & 1].T


@pytest.mark.parametrize("inter", [0, 1])
@pytest.mark.parametrize("of", ["flat", "default", "random"])
@pytest.mark.parametrize("dead_zone", [DEAD_ZONE_INTRA, DEAD_ZONE_INTER])
def test_quadrants_equal_the_definition(dead_zone, of, inter):
    rng = np.random.default_rng(seed := 43)
    print("seed", seed)
    scaling = {"flat": FLAT, "default": DEFAULT, "random": random_lists(rng)}[of]
    lists = kernel_lists(scaling, inter)
    weights = scaling[1][inter][tables.ZIGZAG_8x8_INVERSE].reshape(8, 8)
    for qp in range(52):
        source, predicted = rng.integers(0, 256, (2, 384)).astype(np.uint8)
        if qp % 4 == 1:
            source, predicted = 255 * (source & 1), 255 * (predicted & 1)
        if qp % 4 == 2:
            source[:], predicted[:] = 255, 0
        if qp % 4 == 3:
            source[:128] = predicted[:128]
        buffer, out = np.zeros(768, np.int16), np.zeros(384, np.uint8)
        coded = transform_8x8.quantise_8x8(source, predicted, qp, dead_zone, lists, buffer)
        transform_8x8.reconstruct_8x8(buffer, predicted, qp, lists, out)
        levels, counts = np.zeros((2, 27, 16), np.int16), np.zeros((2, 24), np.uint8)
        for q in range(4):
            s, p = quadrant(source, q), quadrant(predicted, q)
            expected = forward_levels(s - p, qp, dead_zone, weights, lists.finer)
            assert np.array_equal(levels_of(buffer, q), expected), qp
            assert coded >> q & 1 == np.any(expected)
            n = transform_8x8.scan_8x8(buffer, q, 1, levels, counts)
            assert n == np.count_nonzero(expected)
            interleaved = levels[1, 4 * q : 4 * q + 4]
            assert np.array_equal(inverse_scan_8x8(interleaved), expected)
            in_blocks = counts[1, BLOCK_TO_RASTER[4 * q : 4 * q + 4]]
            assert in_blocks.tolist() == np.count_nonzero(interleaved, axis=1).tolist()
            assert np.array_equal(quadrant(out, q), np.clip(p + residual_8x8(expected.tolist(), qp, weights), 0, 255)), qp
        assert not levels[0].any()


@pytest.mark.parametrize("of", ["flat", "random"])
def test_levels_of_kept_coefficients(of):
    """forward_quadrants with quantise_kept_8x8 is quantise_8x8, and only quadrants without levels are said to have none."""
    rng = np.random.default_rng(seed := 46)
    print("seed", seed)
    lists, empty = kernel_lists(FLAT if of == "flat" else random_lists(rng), 1), 0
    for qp in range(52):
        for most in (0, 1 + qp // 4, 2 + qp // 2, 255):
            source = rng.integers(0, 256, 384).astype(np.uint8)
            predicted = np.clip(source + rng.integers(-most, most + 1, 384), 0, 255).astype(np.uint8)
            dead_zone = int(rng.choice([DEAD_ZONE_INTER, DEAD_ZONE_NEAREST]))
            expected, got = np.zeros(768, np.int16), np.zeros(BUFFER, np.int16)
            coded = transform_8x8.quantise_8x8(source, predicted, qp, dead_zone, lists, expected)
            may = transform_8x8.forward_quadrants(source, predicted, qp, dead_zone, lists, got)
            assert may or coded == 0
            empty += not may
            assert transform_8x8.quantise_kept_8x8(qp, dead_zone, True, lists, got) == coded
            assert np.array_equal(got[:256], expected[:256]) and np.array_equal(got[384:640], expected[384:640])
    assert empty > 52


def test_ratios_are_coefficients_in_steps():
    rng = np.random.default_rng(seed := 44)
    print("seed", seed)
    norms = np.array([8, 289 / 32, 5, 289 / 32] * 2)
    for qp in range(0, 52, 3):
        source, predicted = rng.integers(0, 256, (2, 384)).astype(np.uint8)
        buffer = np.zeros(768, np.int16)
        transform_8x8.quantise_8x8(source, predicted, qp, DEAD_ZONE_NEAREST, FLAT_LISTS, buffer)
        w = np.abs(forward(quadrant(source, 3) - quadrant(predicted, 3)))
        scale = np.array([[level_scale_8x8(qp % 6, i, j) for j in range(8)] for i in range(8)])
        steps = scale * 2.0 ** (qp // 6 - 6) / 64 * np.outer(norms, norms)
        got = levels_of(buffer[RATIOS:], 3)
        assert np.abs(got - np.minimum(64 * w / steps, 32767)).max() < 1.01 + 64 * w.max() / steps.min() / 6000


def test_fine_quantiser_keeps_the_samples():
    rng = np.random.default_rng(seed := 45)
    print("seed", seed)
    source, predicted = rng.integers(60, 190, (2, 384)).astype(np.uint8)
    for qp, most in ((0, 1), (6, 2), (12, 4), (24, 14)):
        buffer, out = np.zeros(768, np.int16), np.zeros(384, np.uint8)
        transform_8x8.quantise_8x8(source, predicted, qp, DEAD_ZONE_NEAREST, FLAT_LISTS, buffer)
        transform_8x8.reconstruct_8x8(buffer, predicted, qp, FLAT_LISTS, out)
        assert np.abs(out[:256].astype(int) - source[:256]).max() <= most
