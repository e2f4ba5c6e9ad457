"""The papers' searches as plain loops: their CPU programs, for comparison with the kernels."""

import numpy as np
from h264lite.jit.kernel import helper, kernel

COST_MAX = 1 << 30


@helper
def block_sad(current, reference, x, y, w, h, dx, dy):
    """SAD of the w x h block at (x, y) and the one displaced by (dx, dy); samples outside the reference repeat its edge."""
    height, width = reference.shape
    total = np.int64(0)
    if x + dx >= 0 and y + dy >= 0 and x + dx + w <= width and y + dy + h <= height:
        for j in range(h):
            for i in range(w):
                total += abs(np.int32(current[y + j, x + i]) - np.int32(reference[y + dy + j, x + dx + i]))
        return total
    for j in range(h):
        row = min(max(y + dy + j, 0), height - 1)
        for i in range(w):
            column = min(max(x + dx + i, 0), width - 1)
            total += abs(np.int32(current[y + j, x + i]) - np.int32(reference[row, column]))
    return total


@helper
def leaves(current, x, y, w, h, dx, dy):
    """Whether the displaced block leaves the frame."""
    return x + dx < 0 or y + dy < 0 or x + dx + w > current.shape[1] or y + dy + h > current.shape[0]


@kernel
def full(current, reference, wide, high, reach, inside, blocks, vectors, sads):
    """Full search: candidates -reach .. reach - 1 both ways in raster order, the first of the lowest SAD.

    current, reference: uint8[H, W]; blocks: int64[k], raster numbers of blocks of wide x high samples, cut where the
    picture ends; inside: leaves out candidates that leave the picture; vectors: int16[k, 2]; sads: int32[k].
    """
    height, width = current.shape
    across = (width + wide - 1) // wide
    for k in range(len(blocks)):
        x, y = blocks[k] % across * wide, blocks[k] // across * high
        w, h = min(wide, width - x), min(high, height - y)
        best, best_x, best_y = np.int64(COST_MAX), 0, 0
        for dy in range(-reach, reach):
            for dx in range(-reach, reach):
                if inside and leaves(current, x, y, w, h, dx, dy):
                    continue
                sad = block_sad(current, reference, x, y, w, h, dx, dy)
                if sad < best:
                    best, best_x, best_y = sad, dx, dy
        vectors[k, 0], vectors[k, 1], sads[k] = best_x, best_y, best


@kernel
def step(current, reference, size, distance, shift, grid, inside, blocks, vectors, sads):
    """Step search: grid x grid candidates about the best so far, `distance` apart; `distance` >>= `shift` down to 1.

    Arguments as in full, blocks of size x size samples. The first grid's centre is looked at first; a candidate must be
    better than all before it.
    """
    height, width = current.shape
    across = (width + size - 1) // size
    for k in range(len(blocks)):
        x, y = blocks[k] % across * size, blocks[k] // across * size
        w, h = min(size, width - x), min(size, height - y)
        best, best_x, best_y = block_sad(current, reference, x, y, w, h, 0, 0), 0, 0
        apart = distance
        while apart >= 1:
            centre_x, centre_y = best_x, best_y
            for j in range(-(grid // 2), grid // 2 + 1):
                for i in range(-(grid // 2), grid // 2 + 1):
                    dx, dy = centre_x + i * apart, centre_y + j * apart
                    if inside and leaves(current, x, y, w, h, dx, dy):
                        continue
                    sad = block_sad(current, reference, x, y, w, h, dx, dy)
                    if sad < best:
                        best, best_x, best_y = sad, dx, dy
            apart >>= shift
        vectors[k, 0], vectors[k, 1], sads[k] = best_x, best_y, best
