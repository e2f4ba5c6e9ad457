"""CUDA energies of source macroblocks, and QP offsets and error weights by them, are those of the CPU."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Planes
from h264lite.cpu_simd.decisions.adaptation import BY_FRAME, BY_VARIANCE, DARK_FINER
from h264lite.cuda_src.quantiser.aq_offsets import aq_offsets as aq_offsets_on_gpu
from h264lite.cuda_src.source.ac_energy import ac_energies
from h264lite.encoder.decisions.adaptive_quantisation import AqSettings, aq_offsets, energies, error_weights, in_coded_width

from ..cuda_emulator.fixtures import device  # noqa: F401

MOST_ENERGY = (1 << 23) - 1


@pytest.mark.parametrize("values", [(0, 256), (0, 1), (255, 256), (120, 136), (0, 2)])
@pytest.mark.parametrize("size", [(16, 16), (48, 80), (1, 1), (33, 51), (50, 68), (18, 36), (31, 2)])
def test_energies(device, size, values):  # noqa: F811
    """Of planes of display size, which go on to the coded size."""
    rng, (height, width) = np.random.default_rng(11), size
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    planes = [rng.integers(*values, shape).astype(np.uint8) * (255 if values == (0, 2) else 1) for shape in shapes]
    mb_width, mb_height = -(-width // 16), -(-height // 16)
    measured = device.zeros((mb_width * mb_height,), np.int32)
    ac_energies(Planes(*map(device.upload, planes)), measured)
    np.testing.assert_array_equal(measured.get(), energies(in_coded_width(planes, 16 * mb_width)))


@pytest.mark.parametrize("mode", [BY_VARIANCE, BY_FRAME, DARK_FINER])
@pytest.mark.parametrize("n_mb", [1, 31, 1023, 1024, 1025, 3600])
def test_offsets(device, mode, n_mb):  # noqa: F811
    """Energies of all orders of magnitude, with the least and the greatest; strengths up to the limit."""
    rng = np.random.default_rng([mode, n_mb])
    for strength in (0, 1, 256, 331, 768):
        energy = np.minimum(np.exp2(rng.uniform(0, 23, n_mb)).astype(np.int32) - 1, MOST_ENERGY)
        energy[rng.integers(n_mb)], energy[rng.integers(n_mb)] = 0, MOST_ENERGY
        offsets, weights = device.zeros((n_mb,), np.int32), device.zeros((n_mb,), np.int32)
        aq_offsets_on_gpu(device.upload(energy), mode, strength, offsets, weights)
        expected = aq_offsets(energy, AqSettings(mode, strength))
        np.testing.assert_array_equal(offsets.get(), expected)
        np.testing.assert_array_equal(weights.get(), error_weights(expected))
