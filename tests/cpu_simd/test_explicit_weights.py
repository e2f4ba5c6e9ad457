"""The choice of explicit weights, against plain NumPy."""

from collections import Counter

import numpy as np
import pytest
from h264lite.encoder.decisions.weights import entries, frame_sums

from . import plain_weights


def smooth(rng, height, width):
    coarse = np.kron(rng.integers(0, 256, (height // 8 + 3, width // 8 + 3)), np.ones((8, 8)))
    blurred = coarse.cumsum(0)[9:] - coarse.cumsum(0)[:-9]
    return (blurred.cumsum(1)[:, 9:] - blurred.cumsum(1)[:, :-9])[:height, :width] / 81


def changed(rng, plane):
    """By light, in all or in a part of the plane, or by motion."""
    lit = rng.choice([0, 0.2, 0.5, 0.8, 0.9, 1, 1.1, 1.5, 2, 8]) * plane + rng.integers(-60, 60)
    how, y, x = rng.integers(0, 5), rng.integers(0, plane.shape[0] + 1), rng.integers(0, plane.shape[1] + 1)
    other = rng.choice([0.5, 1, 1.5]) * plane + rng.integers(-30, 30)
    rows, columns = np.ogrid[: plane.shape[0], : plane.shape[1]]
    return (plane, lit, np.where(columns < x, lit, plane), np.where(rows < y, lit, other), np.roll(plane, x, 1))[how]


def drawn(rng, width, height):
    """Two frames."""
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    flat = rng.random() < 0.15
    planes = [np.full(shape, rng.integers(0, 256), float) if flat else smooth(rng, *shape) for shape in shapes]
    frames = planes, [changed(rng, plane) for plane in planes]
    return [[np.clip(plane, 0, 255).astype(np.uint8) for plane in frame] for frame in frames]


def padded(plane):
    """The same samples, in wider rows."""
    return np.pad(plane, ((0, 0), (0, 3)))[:, : plane.shape[1]]


def test_drawn_frames():
    rng, seen = np.random.default_rng(3), Counter()
    for k in range(600):
        width, height = (int(n) for n in (rng.integers(1, 200, 2) if k % 30 else rng.integers(801, 900, 2)))
        before, now = drawn(rng, width, height)
        sums = [frame_sums(before), frame_sums([padded(plane) for plane in now] if rng.random() < 0.5 else now)]
        np.testing.assert_array_equal(sums[1], plain_weights.frame_sums(now))
        for repeats in (False, True):
            want = plain_weights.entries(now, before, repeats)
            assert entries(sums[1], sums[0], (width, height), repeats) == want, (width, height, repeats)
            seen[tuple(entry.flags for entry in want)] += 1
    assert min(seen[flags] for flags in [(), (1,), (2,), (3,), (0, 1), (1, 0), (3, 0), (3, 1), (2, 1)]) > 3, seen


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (7680, 4320)])
def test_extremes(size):
    """The largest sums: black and white by halves, beside flat frames and their opposite."""
    width, height = size
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    halves = [np.where(np.arange(w) < w / 2, 0, 255).astype(np.uint8) * np.ones((h, 1), np.uint8) for h, w in shapes]
    flat, dark = [np.full_like(plane, 255) for plane in halves], [plane // 2 for plane in halves]
    frames = halves, [255 - plane for plane in halves], flat, dark
    sums = [frame_sums(frame) for frame in frames]
    for now in range(4):
        for before in range(4):
            want = plain_weights.entries(frames[now], frames[before], True)
            assert entries(sums[now], sums[before], size, True) == want


def test_read_only_planes():
    _, now = drawn(np.random.default_rng(4), 48, 32)
    want = frame_sums(now)
    for plane in now:
        plane.flags.writeable = False
    np.testing.assert_array_equal(frame_sums(now), want)
