"""SAD and SATD of all blocks of a macroblock at once, against a plain definition."""

import numpy as np
import pytest
from h264lite.cpu_simd.costs.block_costs import Layers, fill_layers, half_satds, predict_layers, sads, sads_of_octets, satds
from h264lite.cpu_simd.simd.vector import store
from h264lite.jit.kernel import kernel

WIDTH, HEIGHT = 64, 40
HADAMARD = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])


@kernel
def costs(source, at, luma, a, b, out):
    """The costs of the macroblock at source[at] -> out: int32[4, 16]."""
    layers = Layers(np.empty(256, np.uint8), np.empty(256, np.int16))
    fill_layers(source, at, source.shape[1], layers)
    predicted = predict_layers(luma, a, b, luma.shape[1])
    store(out, 0, satds(layers, predicted))
    store(out, 16, sads(layers, predicted))
    store(out, 32, sads_of_octets(layers, predicted))
    store(out, 48, half_satds(layers, 0, luma, a, b, luma.shape[1]))
    store(out, 56, half_satds(layers, 1, luma, a, b, luma.shape[1]))


def expected(difference):
    """The costs of int[16, 16]."""
    blocks = difference.reshape(4, 4, 4, 4).transpose(0, 2, 1, 3)
    satd = np.abs(HADAMARD @ blocks @ HADAMARD.T).sum((2, 3)) // 2
    sad = np.abs(blocks).sum((2, 3))
    octets = np.zeros((4, 4), np.int64)
    octets[:, ::2] = sad.reshape(4, 2, 2).sum(2)
    return np.stack([satd.ravel(), sad.ravel(), octets.ravel(), satd.ravel()])


def planes(kind, rng):
    if kind == "random":
        return rng.integers(0, 256, (2, HEIGHT, WIDTH)).astype(np.uint8)
    if kind == "extreme":
        return rng.choice([0, 255], (2, HEIGHT, WIDTH)).astype(np.uint8)
    if kind == "opposite":
        return np.stack([np.full((HEIGHT, WIDTH), 255, np.uint8), np.zeros((HEIGHT, WIDTH), np.uint8)])
    stripes = np.indices((HEIGHT, WIDTH)).sum(0) % 2 * 255
    return np.stack([stripes, 255 - stripes]).astype(np.uint8)


@pytest.mark.parametrize("kind", ["random", "extreme", "opposite", "stripes"])
def test_costs_are_those_of_the_definition(kind):
    rng = np.random.default_rng(20261125)
    for _ in range(40):
        source, luma = planes(kind, rng)
        y, x = rng.integers(0, HEIGHT - 15), rng.integers(0, WIDTH - 15)
        (ya, xa), (yb, xb) = (rng.integers(0, (HEIGHT - 15, WIDTH - 15)) for _ in range(2))
        if rng.integers(3) == 0:
            ya, xa = yb, xb
        out = np.full((4, 16), -1, np.int32)
        costs(source, y * WIDTH + x, luma, ya * WIDTH + xa, yb * WIDTH + xb, out)
        a, b = (luma[i : i + 16, j : j + 16].astype(int) for i, j in ((ya, xa), (yb, xb)))
        np.testing.assert_array_equal(out, expected(source[y : y + 16, x : x + 16].astype(int) - ((a + b + 1) >> 1)))
