"""The papers' searches by their definitions, in NumPy: the reference of tests/papers."""

import numpy as np


def candidate(reference, x, y, w, h, dx, dy):
    """int[h, w]: the displaced block; samples outside the picture repeat its edge."""
    rows = np.clip(np.arange(y + dy, y + dy + h), 0, reference.shape[0] - 1)
    columns = np.clip(np.arange(x + dx, x + dx + w), 0, reference.shape[1] - 1)
    return reference[np.ix_(rows, columns)].astype(int)


def sad_at(current, reference, x, y, w, h, dx, dy, inside):
    """None where the candidate leaves the picture and such are left out."""
    height, width = current.shape
    if inside and not (0 <= x + dx <= width - w and 0 <= y + dy <= height - h):
        return None
    return int(np.abs(current[y : y + h, x : x + w].astype(int) - candidate(reference, x, y, w, h, dx, dy)).sum())


def blocks_of(shape, wide, high=0):
    """(x, y, w, h) of every block, in raster order, cut where the picture ends."""
    high = high or wide
    return [(x, y, min(wide, shape[1] - x), min(high, shape[0] - y))
            for y in range(0, shape[0], high) for x in range(0, shape[1], wide)]


def sads(current, reference, x, y, w, h, xs, ys):
    """int[len(ys), len(xs)]: SADs at all displacements of two ranges."""
    edge = 64
    padded = np.pad(reference.astype(int), edge, mode="edge")
    top, left = y + edge + ys[0], x + edge + xs[0]
    window = padded[top : top + len(ys) + h - 1, left : left + len(xs) + w - 1]
    return np.abs(np.lib.stride_tricks.sliding_window_view(window, (h, w)) - current[y : y + h, x : x + w]).sum((2, 3))


def full(current, reference, size, reach, inside):
    """(vectors [k, 2], SADs [k]): the first of the lowest in raster order."""
    height, width = current.shape
    places, vectors, lowest = np.arange(-reach, reach), [], []
    for x, y, w, h in blocks_of(current.shape, size):
        tried = sads(current, reference, x, y, w, h, places, places)
        if inside:
            across, down = ((0 <= at + places) & (at + places + n <= end) for at, n, end in ((x, w, width), (y, h, height)))
            tried[~np.outer(down, across)] = 1 << 30
        number = int(tried.argmin())
        vectors.append((places[number % len(places)], places[number // len(places)]))
        lowest.append(tried.flat[number])
    return np.array(vectors), np.array(lowest)


def step(current, reference, size, distances, grid, inside):
    """The centre, then a grid about the best so far for each distance; the earlier one of equals."""
    best_of_each = []
    for block in blocks_of(current.shape, size):
        best = sad_at(current, reference, *block, 0, 0, inside), 0, 0
        for apart in distances:
            _, cx, cy = best
            for k in range(grid * grid):
                dx, dy = cx + (k % grid - grid // 2) * apart, cy + (k // grid - grid // 2) * apart
                sad = sad_at(current, reference, *block, dx, dy, inside)
                if sad is not None and sad < best[0]:
                    best = sad, dx, dy
        best_of_each.append(best)
    return np.array([f[1:] for f in best_of_each]), np.array([f[0] for f in best_of_each])
