"""Bundles of arrays for calls of stages: by name, and on a GPU; the shape of coarse frames."""

import numpy as np
from h264lite.cpu_simd.decisions.search import COARSE_SCALE
from h264lite.cpu_simd.layout import COARSE_PAD


def named(kind, state):
    """A bundle of this class from arrays by the names of its fields; fields that are not there keep their defaults."""
    return kind(**{name: state[name] for name in kind._fields if name in state})


def uploaded(device, bundle):
    """A bundle with its arrays on the device."""
    return bundle._make(device.upload(value) if isinstance(value, np.ndarray) else value for value in bundle)


def blank(device, bundle):
    """A bundle of arrays like these on the device, filled with bytes 0xEE."""
    return bundle._make(device.array(value.shape, value.dtype).fill(0xEE) for value in bundle)


def coarse_shape(height, width):
    """Shape of the coarse frame of a plane of height x width samples, borders included."""
    return height // COARSE_SCALE + 2 * COARSE_PAD, width // COARSE_SCALE + 2 * COARSE_PAD
