"""Intra prediction (8.3): the samples of every mode, in the layout of transform.py (lanes of 4x4 blocks)."""

import numpy as np

from ..standard.jit import kernel
from .transform import LANES

# --- Intra_4x4 ---------------------------------------------------------------------------------------------------------
# Each sample of each of the nine modes is one of 49 values: a neighbouring sample, a rounded mean of two or a (1, 2, 1)
# filter of three consecutive ones along the edge, or the DC. Edge order: 0 = sample 1 again, 1..4 = left column from
# bottom to top, 5 = corner, 6..13 = the row above and above right, 14 = sample 13 again.
CORNER, TOP = 5, 6
MEAN, FILTERED, DC_VALUE = 16, 32, 48  # where means (of i, i + 1) and filtered values (around i) start
N_MODES_4x4 = 9


def _intra_4x4_value(mode: int, x: int, y: int) -> int:
    """8.3.1.2.1 - 8.3.1.2.9: the index of the value that Intra_4x4 mode predicts at (x, y)."""
    if mode == 0:  # vertical
        return TOP + x
    if mode == 1:  # horizontal
        return 4 - y
    if mode == 2:
        return DC_VALUE
    if mode == 3:  # diagonal down left
        return FILTERED + TOP + 1 + x + y
    if mode == 4:  # diagonal down right
        return FILTERED + CORNER + x - y
    if mode == 5:  # vertical right
        if 2 * x - y < -1:
            return FILTERED + TOP - y
        if 2 * x - y == -1:
            return FILTERED + CORNER
        return (FILTERED if y % 2 else MEAN) + CORNER + x - (y >> 1)
    if mode == 6:  # horizontal down
        if 2 * y - x < -1:
            return FILTERED + 4 + x
        if 2 * y - x == -1:
            return FILTERED + CORNER
        return FILTERED + 5 - (y - (x >> 1)) if x % 2 else MEAN + 4 - (y - (x >> 1))
    if mode == 7:  # vertical left
        return FILTERED + TOP + 1 + x + (y >> 1) if y % 2 else MEAN + TOP + x + (y >> 1)
    if x + 2 * y > 5:  # horizontal up
        return 1
    return (FILTERED if x % 2 else MEAN) + 3 - (y + (x >> 1))


# uint8[16 positions, 9 modes]
INTRA_4x4_VALUES = np.array(
    [[_intra_4x4_value(mode, p % 4, p // 4) for mode in range(N_MODES_4x4)] for p in range(16)], np.uint8
)

# Bits of the modes that need the left column, the row above, and both with the corner (Table 8-2; 8.3.1.2).
NEEDS_LEFT = 1 << 1 | 1 << 8
NEEDS_TOP = 1 << 0 | 1 << 3 | 1 << 7
NEEDS_ALL = 1 << 4 | 1 << 5 | 1 << 6
# 8.3.1.2: the 4x4 blocks (raster bits) whose block above right is decoded before them, given the macroblocks around.
ABOVE_RIGHT_INSIDE = sum(1 << (by * 4 + bx) for bx, by in ((0, 1), (2, 1), (0, 2), (1, 2), (2, 2), (0, 3), (2, 3)))


@kernel
def values_4x4(rec, x, y, left, top, corner, above_right, values):
    """8.3.1.2: the 49 values of the 4x4 block at (x, y) into values int16[64]; returns the bits of the usable modes."""
    if left:
        for i in range(4):
            values[4 - i] = rec[y + i, x - 1]
    if corner:
        values[CORNER] = rec[y - 1, x - 1]
    if top:
        for i in range(4):
            values[TOP + i] = rec[y - 1, x + i]
        for i in range(4, 8):
            values[TOP + i] = rec[y - 1, x + i] if above_right else rec[y - 1, x + 3]
    values[0] = values[1]
    values[14] = values[13]
    for i in range(14):
        values[MEAN + i] = (int(values[i]) + int(values[i + 1]) + 1) >> 1
    for i in range(1, 14):
        values[FILTERED + i] = (int(values[i - 1]) + 2 * int(values[i]) + int(values[i + 1]) + 2) >> 2
    total = 0
    usable = 1 << 2
    if left:
        usable |= NEEDS_LEFT
        total += int(values[1]) + int(values[2]) + int(values[3]) + int(values[4])
    if top:
        usable |= NEEDS_TOP
        total += int(values[6]) + int(values[7]) + int(values[8]) + int(values[9])
    if left and top:
        values[DC_VALUE] = (total + 4) >> 3
        if corner:
            usable |= NEEDS_ALL
    elif left or top:
        values[DC_VALUE] = (total + 2) >> 2
    else:
        values[DC_VALUE] = 128
    return usable


@kernel
def _spread_columns(prediction, n):
    """Repeats rows 0 of each block (positions 0..3) in its rows 1..3."""
    for p in range(4, 16):
        for k in range(n):
            prediction[p * LANES + k] = prediction[(p - 4) * LANES + k]


@kernel
def _spread_rows(prediction, n):
    """Repeats column 0 of each block (positions 0, 4, 8, 12) in its columns 1..3."""
    for p in range(16):
        for k in range(n):
            prediction[p * LANES + k] = prediction[(p & 12) * LANES + k]


# --- Intra_16x16 -------------------------------------------------------------------------------------------------------


@kernel
def predict_16x16(rec, x0, y0, mode, left, top, prediction):
    """8.3.3.1 - 8.3.3.4: Intra_16x16 mode (0 vertical, 1 horizontal, 2 DC, 3 plane) of the macroblock at (x0, y0).

    prediction int16 lanes, lane = block in raster order; `left`, `top` say which neighbours are available.
    """
    if mode == 0:
        for p in range(4):
            for k in range(16):
                prediction[p * LANES + k] = rec[y0 - 1, x0 + 4 * (k & 3) + p]
        _spread_columns(prediction, 16)
    elif mode == 1:
        for p in range(4):
            for k in range(16):
                prediction[4 * p * LANES + k] = rec[y0 + 4 * (k >> 2) + p, x0 - 1]
        _spread_rows(prediction, 16)
    elif mode == 2:
        total = 0
        if top:
            for i in range(16):
                total += int(rec[y0 - 1, x0 + i])
        if left:
            for i in range(16):
                total += int(rec[y0 + i, x0 - 1])
        if left and top:
            total = (total + 16) >> 5
        elif left or top:
            total = (total + 8) >> 4
        else:
            total = 128
        for p in range(16):
            for k in range(16):
                prediction[p * LANES + k] = total
    else:
        h, v = 0, 0
        for i in range(8):
            h += (i + 1) * (int(rec[y0 - 1, x0 + 8 + i]) - int(rec[y0 - 1, x0 + 6 - i]))
            v += (i + 1) * (int(rec[y0 + 8 + i, x0 - 1]) - int(rec[y0 + 6 - i, x0 - 1]))
        a = np.int32(16 * (int(rec[y0 + 15, x0 - 1]) + int(rec[y0 - 1, x0 + 15])) + 16)
        b = np.int32((5 * h + 32) >> 6)
        c = np.int32((5 * v + 32) >> 6)
        _plane(prediction, 16, 0, 2, a, b, c, np.int32(7))


@kernel
def _plane(prediction, n, at, log2_width, a, b, c, centre):
    """Clip1((a + b * (x - centre) + c * (y - centre)) >> 5) of n blocks from lane `at` on; `a` includes the rounding."""
    mask = (1 << log2_width) - 1
    for p in range(16):
        for k in range(n):
            x = np.int32(4 * (k & mask) + (p & 3)) - centre
            y = np.int32(4 * (k >> log2_width) + (p >> 2)) - centre
            value = np.int32(a + np.int32(b * x) + np.int32(c * y)) >> 5
            prediction[p * LANES + at + k] = min(np.int32(255), max(np.int32(0), value))


# --- chroma ------------------------------------------------------------------------------------------------------------


@kernel
def _chroma_dc(rec, x0, y0, left, top, prediction, at):
    """8.3.4.1 - 8.3.4.3: DC prediction of one chroma plane's four blocks, each from its own neighbours."""
    for k in range(4):
        bx, by = k & 1, k >> 1
        # Off the diagonal one side is preferred: the row above for block 1, the left column for block 2.
        use_top = top and not (k == 2 and left)
        use_left = left and not (k == 1 and top)
        total = 0
        if use_top:
            for i in range(4):
                total += int(rec[y0 - 1, x0 + 4 * bx + i])
        if use_left:
            for i in range(4):
                total += int(rec[y0 + 4 * by + i, x0 - 1])
        if use_left and use_top:
            total = (total + 4) >> 3
        elif use_left or use_top:
            total = (total + 2) >> 2
        else:
            total = 128
        for p in range(16):
            prediction[p * LANES + at + k] = total


@kernel
def predict_chroma(rec, x0, y0, mode, left, top, prediction, at):
    """8.3.4: chroma mode (0 DC, 1 horizontal, 2 vertical, 3 plane) of one plane of the macroblock at chroma (x0, y0).

    prediction int16 lanes, lane at + block in raster order (2x2).
    """
    if mode == 0:
        _chroma_dc(rec, x0, y0, left, top, prediction, at)
    elif mode == 1:
        for p in range(16):
            for k in range(4):
                prediction[p * LANES + at + k] = rec[y0 + 4 * (k >> 1) + (p >> 2), x0 - 1]
    elif mode == 2:
        for p in range(16):
            for k in range(4):
                prediction[p * LANES + at + k] = rec[y0 - 1, x0 + 4 * (k & 1) + (p & 3)]
    else:
        h, v = 0, 0
        for i in range(4):
            h += (i + 1) * (int(rec[y0 - 1, x0 + 4 + i]) - int(rec[y0 - 1, x0 + 2 - i]))
            v += (i + 1) * (int(rec[y0 + 4 + i, x0 - 1]) - int(rec[y0 + 2 - i, x0 - 1]))
        a = np.int32(16 * (int(rec[y0 + 7, x0 - 1]) + int(rec[y0 - 1, x0 + 7])) + 16)
        b = np.int32((34 * h + 32) >> 6)
        c = np.int32((34 * v + 32) >> 6)
        _plane(prediction, 4, at, 1, a, b, c, np.int32(3))
