"""How full_search lays the candidates of a window into vectors: their samples, their motion costs, and which is which."""
# Samples of 8 bits only: samples as bytes of a vector.

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ..simd.search import WINDOW, arrange_row, arrange_row_portable, arrange_two_rows
from ..simd.vector import add_sat_u, lanes_of, load_u16x16, splat_u16x16, store

COST_OUTSIDE = 65535  # of candidates outside the window; larger costs count as this

# How the candidates of a window lie in vectors.
Shape = namedtuple("Shape", (
    "size",  # candidates a side
    "quarter",  # rows of candidates in a quarter of the window
    "across",  # candidates side by side in a vector: all its lanes, or sixteen, those of two rows
    "shift",  # its logarithm
    "rows",  # steps down a quarter; how far these two rows are apart
    "groups",  # vectors side by side
    "height",  # rows of the window
))  # fmt: skip


@helper
def first_column(g, across, size):
    """The first column of group g of `across` candidates; the last group overlaps the one before."""
    return max(0, min(g * across, size - across))


@helper
def arrange_windows(reference, at, shape, windows, native, like):
    """Arranges the rows of the window at reference[at] for each group of columns: Sample[groups * height * WINDOW].

    Each row is part of sixteen rows of candidates. shape: Shape.
    """
    stride, last = reference.shape[1], shape.height - 1
    for g in range(shape.groups):
        for y in range(shape.height):
            row, to = at + y * stride + first_column(g, shape.across, shape.size), (g * shape.height + y) * WINDOW
            if shape.across < lanes_of(like):
                arrange_two_rows(reference, row, (min(y + shape.rows, last) - y) * stride, windows, to, like)
            elif native:
                arrange_row(reference, row, windows, to, like)
            else:
                arrange_row_portable(reference, row, windows, to, like)


@helper
def column_keys(shape, x_cost, x_keys):
    """The part of keys that is the motion costs of columns -> x_keys: uint16[256], by groups."""
    for g in range(shape.groups):
        for x in range(shape.across):
            x_keys[g * shape.across + x] = min(COST_OUTSIDE, 4 * x_cost[first_column(g, shape.across, shape.size) + x])


@helper
def motion_keys(j, g, shape, x_keys, y_cost, lanes, motion):
    """The motion costs of step (j, g) as parts of keys -> motion, see keep_partitions."""
    for i in range(4):
        for lane in range(0, lanes, 16):
            down = shape.rows if lane >= shape.across else 0  # at most to the first row of the next quarter
            y_key = min(COST_OUTSIDE, 4 * y_cost[i * shape.quarter + j + down] + i)
            x_key = load_u16x16(x_keys, g * shape.across + (lane & (shape.across - 1)))
            store(motion, i * lanes + lane, add_sat_u(x_key, splat_u16x16(y_key)))


@helper
def candidate(key, rank, shape):
    """(x, y) of a candidate by its key and rank."""
    step, lane = rank >> shape.shift, rank & (shape.across - 1)
    g = np.int64(0)
    if shape.groups > 1:
        g, step = step % shape.groups, step // shape.groups
    return first_column(g, shape.across, shape.size) + lane, (key & 3) * shape.quarter + step
