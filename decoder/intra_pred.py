"""8.3: intra prediction of luma and chroma blocks from the samples around them, written into the picture."""

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from ..standard.sample_format import SAMPLE_MAX, SAMPLE_MIDDLE
from .neighbours import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT

# Tables 8-2, 8-3: Intra4x4PredMode and Intra8x8PredMode
VERTICAL, HORIZONTAL, DC, DOWN_LEFT, DOWN_RIGHT = range(5)
VERTICAL_RIGHT, HORIZONTAL_DOWN, VERTICAL_LEFT, HORIZONTAL_UP = range(5, 9)

# What each of these modes needs.
MODE_NEEDS = np.array([
    ABOVE, LEFT, 0, ABOVE, LEFT | ABOVE | ABOVE_LEFT, LEFT | ABOVE | ABOVE_LEFT, LEFT | ABOVE | ABOVE_LEFT, ABOVE, LEFT,
], np.int64)  # fmt: skip
# The same for Intra16x16PredMode (Table 8-4: vertical, horizontal, DC, plane), and for intra_chroma_pred_mode
# (Table 8-5: DC, horizontal, vertical, plane).
MODE_NEEDS_16x16 = np.array([ABOVE, LEFT, 0, LEFT | ABOVE | ABOVE_LEFT], np.int64)
MODE_NEEDS_CHROMA = np.array([0, LEFT, ABOVE, LEFT | ABOVE | ABOVE_LEFT], np.int64)


@helper
def gather_edge(plane, y0, x0, n, available, edge):
    """8.3.1.2, 8.3.2.2: samples around an n x n block as one line of 3n + 1, from the lower left to the upper right.

    edge[n - 1 - y] = p[-1, y], edge[n] = p[-1, -1], edge[n + 1 + x] = p[x, -1]; what is not available stays 0.
    """
    outlined()
    for i in range(3 * n + 1):
        edge[i] = 0
    if available & LEFT:
        for y in range(n):
            edge[n - 1 - y] = plane[y0 + y, x0 - 1]
    if available & ABOVE_LEFT:
        edge[n] = plane[y0 - 1, x0 - 1]
    if available & ABOVE:
        for x in range(n):
            edge[n + 1 + x] = plane[y0 - 1, x0 + x]
        if available & ABOVE_RIGHT:
            for x in range(n, 2 * n):
                edge[n + 1 + x] = plane[y0 - 1, x0 + x]
        else:
            for x in range(n, 2 * n):
                edge[n + 1 + x] = edge[2 * n]


@helper
def filter_edge_8x8(edge, available, filtered):
    """8.3.2.2.1: reference sample filtering for Intra_8x8; edges as in gather_edge with n = 8."""
    outlined()
    for i in range(1, 24):
        filtered[i] = (edge[i - 1] + 2 * edge[i] + edge[i + 1] + 2) >> 2
    filtered[0] = (3 * edge[0] + edge[1] + 2) >> 2
    filtered[24] = (edge[23] + 3 * edge[24] + 2) >> 2
    if not available & ABOVE_LEFT:
        filtered[9] = (3 * edge[9] + edge[10] + 2) >> 2
        filtered[7] = (3 * edge[7] + edge[6] + 2) >> 2
    elif not available & LEFT:
        filtered[8] = (3 * edge[8] + edge[9] + 2) >> 2 if available & ABOVE else edge[8]
    elif not available & ABOVE:
        filtered[8] = (3 * edge[8] + edge[7] + 2) >> 2


@helper
def smooth(edge, i):
    """The (1, 2, 1) / 4 filter at position i of an edge."""
    return (edge[i - 1] + 2 * edge[i] + edge[i + 1] + 2) >> 2


@helper
def middle(edge, i):
    """The rounded mean of the samples at positions i and i + 1 of an edge."""
    return (edge[i] + edge[i + 1] + 1) >> 1


@helper
def directional_sample(edge, n, mode, x, y):
    """8.3.1.2.4 to 8.3.1.2.9, 8.3.2.2.5 to 8.3.2.2.10: one sample of the six diagonal modes."""
    if mode == DOWN_LEFT:
        if x == n - 1 and y == n - 1:
            return (edge[3 * n - 1] + 3 * edge[3 * n] + 2) >> 2
        return smooth(edge, n + 2 + x + y)
    if mode == DOWN_RIGHT:
        return smooth(edge, n + x - y)
    if mode == VERTICAL_RIGHT:
        z = 2 * x - y
        if z < -1:
            return smooth(edge, n + 1 + 2 * x - y)
        i = n + x - (y >> 1)
        return smooth(edge, i) if z & 1 else middle(edge, i)
    if mode == HORIZONTAL_DOWN:
        z = 2 * y - x
        if z < -1:
            return smooth(edge, n - 1 + x - 2 * y)
        i = n - y + (x >> 1)
        return smooth(edge, i) if z & 1 else middle(edge, i - 1)
    if mode == VERTICAL_LEFT:
        i = n + 1 + x + (y >> 1)
        return smooth(edge, i + 1) if y & 1 else middle(edge, i)
    z = x + 2 * y  # HORIZONTAL_UP
    i = n - 1 - y - (x >> 1)
    if z > 2 * n - 3:
        return edge[0]
    if z == 2 * n - 3:
        return (edge[1] + 3 * edge[0] + 2) >> 2
    return smooth(edge, i - 1) if z & 1 else middle(edge, i - 1)


@helper
def predict_square(plane, y0, x0, n, mode, available, edge):
    """8.3.1.2, 8.3.2.2: Intra_4x4 and Intra_8x8 prediction of an n x n block from its edge (filtered for 8x8)."""
    outlined()
    if mode == VERTICAL:
        for y in range(n):
            for x in range(n):
                plane[y0 + y, x0 + x] = edge[n + 1 + x]
    elif mode == HORIZONTAL:
        for y in range(n):
            for x in range(n):
                plane[y0 + y, x0 + x] = edge[n - 1 - y]
    elif mode == DC:
        total = n
        value = SAMPLE_MIDDLE
        for i in range(n):
            if available & LEFT:
                total += edge[i]
            if available & ABOVE:
                total += edge[n + 1 + i]
        if available & LEFT and available & ABOVE:
            value = total // (2 * n)
        elif available & (LEFT | ABOVE):
            value = (total - n + n // 2) // n
        for y in range(n):
            for x in range(n):
                plane[y0 + y, x0 + x] = value
    else:
        for y in range(n):
            for x in range(n):
                plane[y0 + y, x0 + x] = directional_sample(edge, n, mode, x, y)


@helper
def predict_plane(plane, y0, x0, n):
    """8.3.3.4, 8.3.4.4: plane prediction of a 16x16 luma or 8x8 chroma block."""
    outlined()
    half = n // 2
    h = 0
    v = 0
    for i in range(half):
        h += (i + 1) * (np.int64(plane[y0 - 1, x0 + half + i]) - np.int64(plane[y0 - 1, x0 + half - 2 - i]))
        v += (i + 1) * (np.int64(plane[y0 + half + i, x0 - 1]) - np.int64(plane[y0 + half - 2 - i, x0 - 1]))
    a = 16 * (np.int64(plane[y0 + n - 1, x0 - 1]) + np.int64(plane[y0 - 1, x0 + n - 1]))
    if n == 16:
        b = (5 * h + 32) >> 6
        c = (5 * v + 32) >> 6
    else:
        b = (34 * h + 32) >> 6
        c = (34 * v + 32) >> 6
    for y in range(n):
        for x in range(n):
            value = (a + b * (x - half + 1) + c * (y - half + 1) + 16) >> 5
            plane[y0 + y, x0 + x] = min(SAMPLE_MAX, max(0, value))


@helper
def predict_line(plane, y0, x0, n, vertical):
    """8.3.3.1, 8.3.3.2, 8.3.4.2, 8.3.4.3: vertical or horizontal prediction of an n x n block."""
    outlined()
    for y in range(n):
        for x in range(n):
            plane[y0 + y, x0 + x] = plane[y0 - 1, x0 + x] if vertical else plane[y0 + y, x0 - 1]


@helper
def predict_dc_block(plane, y0, x0, n, size, left, above, left_x, above_y):
    """Mean of n samples left of and above a size x size block, as far as available; SAMPLE_MIDDLE without any.

    The samples are p[left_x, y0 + i] and p[x0 + i, above_y].
    """
    outlined()
    total = 0
    for i in range(n):
        if left:
            total += np.int64(plane[y0 + i, left_x])
        if above:
            total += np.int64(plane[above_y, x0 + i])
    value = SAMPLE_MIDDLE
    if left and above:
        value = (total + n) // (2 * n)
    elif left or above:
        value = (total + n // 2) // n
    for y in range(size):
        for x in range(size):
            plane[y0 + y, x0 + x] = value


@helper
def predict_16x16(plane, y0, x0, mode, available):
    """8.3.3: Intra_16x16 prediction."""
    if mode == 0:
        predict_line(plane, y0, x0, 16, True)
    elif mode == 1:
        predict_line(plane, y0, x0, 16, False)
    elif mode == 2:
        left, above = available & LEFT != 0, available & ABOVE != 0
        predict_dc_block(plane, y0, x0, 16, 16, left, above, x0 - 1, y0 - 1)
    else:
        predict_plane(plane, y0, x0, 16)


@helper
def predict_chroma(plane, y0, x0, mode, available):
    """8.3.4: intra prediction of an 8x8 chroma block."""
    if mode == 1:
        predict_line(plane, y0, x0, 8, False)
    elif mode == 2:
        predict_line(plane, y0, x0, 8, True)
    elif mode == 3:
        predict_plane(plane, y0, x0, 8)
    else:  # 8.3.4.1 to 8.3.4.3: DC by 4x4 block; off the diagonal one side goes first
        for y in range(0, 8, 4):
            for x in range(0, 8, 4):
                left, above = available & LEFT != 0, available & ABOVE != 0
                if x > y and above:
                    left = False
                elif y > x and left:
                    above = False
                predict_dc_block(plane, y0 + y, x0 + x, 4, 4, left, above, x0 - 1, y0 - 1)
