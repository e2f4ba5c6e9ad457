"""Adaptive quantisation: energies and offsets against the formulas in floating point."""

import numpy as np
import pytest
from h264lite.cpu_simd.quantiser.logarithms import log2_values
from h264lite.encoder.decisions.adaptive_quantisation import AqSettings, aq_offsets, energies, mb_qps
from h264lite.encoder.decisions.fixed_point import exp2_array

SAME = [
    [-3840, -3840, -2172, -1187, 0, 419, 1546, 2264], [-1789, -1712, -1170, -615, 342, 778, 2296, 3596],
    [-5117, -4469, -2120, -997, 303, 810, 2444, 3784],
]  # fmt: skip


def expected_offsets(energy, mode):
    """x264's formulas, in QPs."""
    energy = energy.astype(float)
    if mode == 1:
        return 1.0397 * (np.log2(np.maximum(energy, 1)) - 14.427)
    a = (energy + 1) ** 0.125
    m1, m2 = a.mean(), (a * a).mean()
    offsets = m1 * (a - (m1 - 0.5 * (m2 - 14) / m1))
    return offsets + 1 - 14 / a**2 if mode == 3 else offsets


def test_energies():
    rng = np.random.default_rng(1)
    planes = [rng.integers(low, high, shape).astype(np.uint8)
              for low, high, shape in ((0, 256, (48, 80)), (100, 104, (24, 40)), (0, 256, (24, 40)))]  # fmt: skip
    planes[0][:16, :16] = 255 * (np.indices((16, 16)).sum(0) % 2)  # the most
    planes[0][16:32, :16] = 0
    measured = energies(planes)
    for mb, value in enumerate(measured):
        y, x = divmod(mb, 5)
        total = 0
        for plane, side in zip(planes, (16, 8, 8)):
            block = plane[side * y : side * y + side, side * x : side * x + side].astype(np.int64)
            total += (block**2).sum() - block.sum() ** 2 // block.size
        assert value == total
    assert measured.dtype == np.int32 and measured.max() < 1 << 23
    short = [plane[: 35 * plane.shape[0] // 48 + 1].copy() for plane in planes]  # 36 and 18 rows: the last one goes on
    padded = [np.pad(plane, ((0, side * 3 - len(plane)), (0, 0)), "edge") for plane, side in zip(short, (16, 8, 8))]
    np.testing.assert_array_equal(energies(short), energies(padded))


def test_fixed_point():
    random = np.random.default_rng(2).integers(1, 2**31 - 1, 20000)
    values = np.concatenate([np.arange(1, 3000), random, [2**31 - 1]])
    logs = np.empty(values.size, np.int64)
    log2_values(values, logs)
    assert abs(logs - 65536 * np.log2(values)).max() < 2
    exponents = np.arange(0, 3 << 16, 5)
    assert abs(exp2_array(exponents) - 65536 * 2.0 ** (exponents / 65536)).max() < 5


@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize("strength", [0.5, 1, 3])
def test_offsets(mode, strength):
    rng = np.random.default_rng(3)
    energy = (2 ** (22 * rng.random(500))).astype(np.int32)
    energy[:9] = 0
    offsets = aq_offsets(energy, AqSettings(mode, round(256 * strength)))
    assert offsets.dtype == np.int32
    assert abs(offsets / 256 - strength * expected_offsets(energy, mode)).max() < 0.01 * max(1, strength)
    assert not aq_offsets(energy, AqSettings(0, 256)).any()


def test_offsets_are_the_same_everywhere():
    """Values of another machine."""
    energy = np.array([0, 1, 77, 1000, 21999, 65536, 1234567, 8000000], np.int32)
    assert [aq_offsets(energy, AqSettings(mode, 256)).tolist() for mode in (1, 2, 3)] == SAME


def test_qps():
    """The nearest, or that of the macroblock before where it is at most 3/4 off."""
    offsets = np.array([192, 193, 383, 384, 448, 449, -99999, 99999, 0], np.int32)
    assert mb_qps(256 * 26, offsets)[0].tolist() == [26, 27, 27, 27, 27, 28, 0, 51, 26]
    assert mb_qps(256 * 26 + 100, offsets, 10, 40)[0].tolist() == [27, 27, 28, 28, 28, 28, 10, 40, 26]
    assert mb_qps(256 * 51 + 200, np.zeros(3, np.int32))[0].tolist() == [51, 51, 51]


def test_qps_are_near():
    rng = np.random.default_rng(4)
    offsets = rng.integers(-3000, 3000, 2000).astype(np.int32)
    offsets[500:] = np.cumsum(rng.integers(-90, 91, 1500))
    qps, total = mb_qps(256 * 26, offsets)
    with_offsets = qps.astype(int)
    assert total == with_offsets.sum()
    wanted = np.clip(256 * 26 + offsets, 0, 256 * 51)
    assert abs(256 * with_offsets - wanted).max() <= 192
    kept = with_offsets[1:] == with_offsets[:-1]
    assert (abs(256 * with_offsets - wanted)[1:][~kept] <= 128).all() and kept[500:].mean() > 0.5
