"""6.4.1, 6.4.9: where a macroblock lies in the picture, which macroblocks around it are available; areas of a grid."""

from ..jit.kernel import helper
from .layout import P_MB_WIDTH, P_ROWS_PER_MB, P_SLICE_ID

# What is available around a macroblock or a block, as bits: A, B, C, D of 6.4.
LEFT, ABOVE, ABOVE_RIGHT, ABOVE_LEFT = 1, 2, 4, 8


@helper
def mb_position(p, mb):
    """6.4.1: (row, column) of a macroblock, in macroblocks. A product, since divisions take ten times as long."""
    y = mb * p[P_ROWS_PER_MB] >> 40
    return y, mb - y * p[P_MB_WIDTH]


@helper
def is_left(p, slice_id, mb):
    """6.4.9: whether macroblock A is available: decoded, in the slice at work."""
    return mb_position(p, mb)[1] > 0 and slice_id[mb - 1] == p[P_SLICE_ID]


@helper
def is_above(p, slice_id, mb):
    """6.4.9: whether macroblock B is available."""
    return mb >= p[P_MB_WIDTH] and slice_id[mb - p[P_MB_WIDTH]] == p[P_SLICE_ID]


@helper
def neighbours(p, slice_id, mb):
    """6.4.9: which macroblocks around `mb` are available, as LEFT | ABOVE | ..."""
    mine, mb_width = p[P_SLICE_ID], p[P_MB_WIDTH]
    _, x = mb_position(p, mb)
    available = 0
    if x > 0 and slice_id[mb - 1] == mine:
        available |= LEFT
    above = mb - mb_width
    if above >= 0:
        if slice_id[above] == mine:
            available |= ABOVE
        if x + 1 < mb_width and slice_id[above + 1] == mine:
            available |= ABOVE_RIGHT
        if x > 0 and slice_id[above - 1] == mine:
            available |= ABOVE_LEFT
    return available


@helper
def set_vectors(grid, y4, x4, height, width, x, y):
    """The same vector throughout an area of a grid int16[H4, W4, 2], in units of 4x4 blocks."""
    for j in range(y4, y4 + height):
        for i in range(x4, x4 + width):
            grid[j, i, 0] = x
            grid[j, i, 1] = y
