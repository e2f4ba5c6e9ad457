"""The vectors of a macroblock while it is decided, with the neighbours that predict them; where its predictions may lie."""

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ..simd.blocks import splat_i32x16
from ..simd.vector import store
from .mv_prediction import choose_predictor, corner_available, neighbour

# Where predictions of a macroblock may lie, in luma samples.
Area = namedtuple("Area", (
    "width",  # of the frame
    "height",
    "pad",  # border of references
    "max_mv_y",  # limit of vertical vectors
))  # fmt: skip


@helper
def load_mv_cache(mb, ref_idx, mv, mb_width, first_mb, mv_cache):
    """Loads the neighbours that predict vectors of macroblock mb. mv_cache: int64[5, 6, 3], (ref, x, y) at [by + 1, bx + 1].

    Row 0 is the row above with both corners, column 0 the column to the left; the macroblock's own 16 blocks are unchanged.
    """
    for bx in range(-1, 5):
        ref, x, y = neighbour(mb, bx, -1, ref_idx, mv, mb_width, first_mb)
        mv_cache[0, bx + 1, 0], mv_cache[0, bx + 1, 1], mv_cache[0, bx + 1, 2] = ref, x, y
    for by in range(4):
        ref, x, y = neighbour(mb, -1, by, ref_idx, mv, mb_width, first_mb)
        mv_cache[by + 1, 0, 0], mv_cache[by + 1, 0, 1], mv_cache[by + 1, 0, 2] = ref, x, y


@helper
def predict(mv_cache, bx, by, bw, bh, ref):
    """8.4.1.3 on `mv_cache`: predictor of the partition at block (bx, by), bw x bh blocks."""
    c = -2, np.int64(0), np.int64(0)
    if corner_available(bx, by, bw):
        c = mv_cache[by, bx + bw + 1, 0], mv_cache[by, bx + bw + 1, 1], mv_cache[by, bx + bw + 1, 2]
    if c[0] == -2:
        c = mv_cache[by, bx, 0], mv_cache[by, bx, 1], mv_cache[by, bx, 2]
    a = mv_cache[by + 1, bx, 0], mv_cache[by + 1, bx, 1], mv_cache[by + 1, bx, 2]
    b = mv_cache[by, bx + 1, 0], mv_cache[by, bx + 1, 1], mv_cache[by, bx + 1, 2]
    return choose_predictor(bx, by, bw, bh, ref, a, b, c)


@helper
def fill_mv_cache(mv_cache, bx, by, bw, bh, ref, x, y):
    """Stores the choice of a partition in `mv_cache`, for the prediction of later partitions."""
    for r in range(by + 1, by + bh + 1):
        for c in range(bx + 1, bx + bw + 1):
            mv_cache[r, c, 0], mv_cache[r, c, 1], mv_cache[r, c, 2] = ref, x, y


@helper
def commit_motion(mv_cache, mb, ref_idx, mv):
    """Copies the macroblock's 16 blocks of `mv_cache` to the state of macroblock mb."""
    for k in range(16):
        by, bx = k >> 2, k & 3
        mv[mb, k, 0] = mv_cache[by + 1, bx + 1, 1]
        mv[mb, k, 1] = mv_cache[by + 1, bx + 1, 2]
    for q in range(4):
        ref_idx[mb, q] = mv_cache[(q >> 1) * 2 + 1, (q & 1) * 2 + 1, 0]


@helper
def commit_whole(ref, x, y, mb, ref_idx, mv):
    """The same of a macroblock without partitions, whose motion need not be in a mv_cache."""
    for q in range(4):
        ref_idx[mb, q] = ref
    store(mv, 32 * mb, splat_i32x16(y << 16 | x & 0xFFFF))


@helper
def inside(x, y, x0, y0, area):
    """Whether the prediction of the macroblock at (x0, y0) with vector (x, y) lies in the padded frame and is legal."""
    width, height, pad, max_mv_y = area
    left, top = x0 + (x >> 2), y0 + (y >> 2)
    if left < -pad or left + 17 > width + pad or top < -pad or top + 17 > height + pad:
        return False
    return abs(x) < 4 * 2047 and -4 * max_mv_y <= y < 4 * max_mv_y
