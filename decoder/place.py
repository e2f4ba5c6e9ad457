"""6.4.1, 6.4.9: where a macroblock lies in the picture, and which macroblocks around it are available."""

from ..standard.jit import helper
from .layout import P_MB_WIDTH, P_ROWS_PER_MB, P_SLICE_ID

A_LEFT, B_ABOVE, C_ABOVE_RIGHT, D_ABOVE_LEFT = 1, 2, 4, 8


@helper
def place(p, mb):
    """6.4.1: (row, column) of a macroblock, in macroblocks. A product, since divisions take ten times as long."""
    y = mb * p[P_ROWS_PER_MB] >> 40
    return y, mb - y * p[P_MB_WIDTH]


@helper
def is_left(p, slice_id, mb):
    """6.4.9: whether macroblock A is available: decoded, in the slice at work."""
    return place(p, mb)[1] > 0 and slice_id[mb - 1] == p[P_SLICE_ID]


@helper
def is_above(p, slice_id, mb):
    """6.4.9: whether macroblock B is available."""
    return mb >= p[P_MB_WIDTH] and slice_id[mb - p[P_MB_WIDTH]] == p[P_SLICE_ID]


@helper
def neighbours(p, slice_id, mb):
    """6.4.9: which macroblocks around `mb`, A (1), B (2), C (4), D (8), are available."""
    mine, mb_width = p[P_SLICE_ID], p[P_MB_WIDTH]
    _, x = place(p, mb)
    available = 0
    if x > 0 and slice_id[mb - 1] == mine:
        available |= A_LEFT
    above = mb - mb_width
    if above >= 0:
        if slice_id[above] == mine:
            available |= B_ABOVE
        if x + 1 < mb_width and slice_id[above + 1] == mine:
            available |= C_ABOVE_RIGHT
        if x > 0 and slice_id[above - 1] == mine:
            available |= D_ABOVE_LEFT
    return available
