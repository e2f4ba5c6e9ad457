"""AC energies against their definition."""

import numpy as np
import pytest
from h264lite.cpu_simd.costs.cost import QUARTER_SAMPLES, Target, quarter_offsets
from h264lite.cpu_simd.costs.psy import energy_difference, luma_energy, predicted_difference
from h264lite.jit.kernel import closed_kernel

from .test_inter_residual import reference_pool
from .test_intra import picture

HADAMARD = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
QUADRANTS = ((0, 0), (0, 8), (8, 0), (8, 8))


def ac_energy(samples):
    """Of whole 4x4 blocks: magnitudes of the Hadamard coefficients without the DC."""
    total = 0
    for y in range(0, samples.shape[0], 4):
        for x in range(0, samples.shape[1], 4):
            coefficients = HADAMARD @ samples[y : y + 4, x : x + 4].astype(int) @ HADAMARD.T
            total += abs(coefficients).sum() - abs(coefficients[0, 0])
    return total


def differences(first, second):
    return sum(abs(ac_energy(first[y : y + 8, x : x + 8]) - ac_energy(second[y : y + 8, x : x + 8])) for y, x in QUADRANTS)


@closed_kernel
def measured(source, other, energy):
    luma_energy(source, energy)
    return energy_difference(other, energy)


@closed_kernel
def of_vector(current, luma, at, x, y):
    offsets = np.empty((2, 16), np.int64)
    quarter_offsets(luma.shape[2] * luma.shape[3], luma.shape[3], QUARTER_SAMPLES, offsets)
    return predicted_difference(Target(current, luma, offsets), at, x, y)


@pytest.mark.parametrize("kind", ["noise", "extremes", "checkerboard", "waves"])
def test_quadrants(kind):
    rng = np.random.default_rng(8)
    first, second = (picture(rng, 16, 16, kind)[0] for _ in range(2))
    buffers = [np.concatenate([plane.ravel(), rng.integers(0, 256, 128)]).astype(np.uint8) for plane in (first, second)]
    energy = np.full(4, 99, np.int64)
    assert measured(*buffers, energy) == differences(first, second)
    assert energy.tolist() == [ac_energy(first[y : y + 8, x : x + 8]) for y, x in QUADRANTS]


def test_prediction():
    rng = np.random.default_rng(9)
    reference, source = picture(rng, 32, 48, "waves"), picture(rng, 16, 16, "noise")[0]
    pool = reference_pool([reference])
    stride = pool.luma.shape[3]
    at = (pool.pad + 8) * stride + pool.pad + 16
    for vector, plane, dx, dy in (
        ((0, 0), 0, 0, 0), ((-8, 20), 0, -2, 5), ((2, 4), 1, 0, 1), ((0, -2), 2, 0, -1), ((6, 2), 3, 1, 0),
    ):  # fmt: skip
        y, x = pool.pad + 8 + dy, pool.pad + 16 + dx
        predicted = pool.luma[pool.slots[0], plane, y : y + 16, x : x + 16]
        start = at + int(pool.slots[0]) * 4 * pool.luma.shape[2] * stride
        assert of_vector(source.astype(np.int16).ravel(), pool.luma, start, *vector) == differences(predicted, source)
