"""Intra 8x8 prediction (8.3.2): reference sample filtering, predicted samples of every mode, SATD of an 8x8 block.

The samples round a block form one line, the "edge": 1..8 the left column from bottom to top, 9 the corner, 10..25 the row
above and above right; 0 and 26 are copies of their neighbours. Every row of a directional mode is eight consecutive elements
of a line made of the (1, 2, 1) filter at edge samples and of the means of two.
"""
# Samples of 8 bits only: edges as bytes of a vector.

import numpy as np

from ...jit.kernel import helper
from ...standard.sample_format import SAMPLE_MIDDLE
from ..decisions.intra import NEEDS_ALL, NEEDS_LEFT, NEEDS_TOP
from ..simd.block_modes import join_edge, load_4_u8x8, sums_of_fours
from ..simd.block_rows import sums_of_pairs
from ..simd.blocks import splat_u8x8, transpose_8x8
from ..simd.lanes import make_shuffle, sum_of_lanes
from ..simd.vector import (
    absolute,
    add,
    average,
    clip_to_u8,
    load_u8x8,
    load_u8x16,
    load_u8x32,
    max_s,
    plus,
    shift_right_s,
    splat_u8x16,
    store,
    sub,
    widen,
)

CORNER, TOP = 9, 10
EDGE_8x8 = 160  # bytes of scratch: the edge at 0, lines from 32, 64, 96, 128 on
_MEAN = 32  # in the shuffles: the mean of edge samples i and i + 1 is _MEAN + i, the filtered sample i is i


def _line(indices: list[int]):  # type: ignore[no-untyped-def]
    return make_shuffle(indices + [0] * (32 - len(indices)))


# 8.3.2.2.7: rows 6, 4, 2, 0 begin at 0, 1, 2, 3 of the one line, rows 7, 5, 3, 1 of the other
_right_even = _line([4, 6, 8, *[_MEAN + 9 + i for i in range(8)]])
_right_odd = _line([3, 5, 7, *[9 + i for i in range(8)]])
# 8.3.2.2.8: row y begins at 14 - 2 y
_down = _line([k for i in range(8) for k in (_MEAN + 1 + i, 2 + i)] + [10 + i for i in range(6)])
# 8.3.2.2.10: row y begins at 2 y; the last samples are the lowest one of the left column
_up = _line([k for i in range(6, -1, -1) for k in (_MEAN + 1 + i, 1 + i)])
# 8.3.2.2.1: eight samples without those above right; the edge a sample earlier and later, with its ends, parts of it
_without_right = make_shuffle([*range(8), *[7] * 8])
_before, _after = make_shuffle([0, *range(31)]), make_shuffle([*range(1, 32), 31])
_with_ends = make_shuffle([1, *range(1, 26), *[25] * 6])
_left_of, _top_of = make_shuffle([*range(1, 9)]), make_shuffle([*range(TOP, TOP + 8)])
_from_14 = make_shuffle([*range(14), *[32] * 18])  # the line above, then the first lane of another vector


@helper
def _filtered(x, before, after):
    """The (1, 2, 1) / 4 filter of three vectors of samples."""
    wide = widen(x)
    return clip_to_u8(shift_right_s(plus(add(add(wide, wide), add(widen(before), widen(after))), 2), 2))


@helper
def _rows(line, at, step, out, to):
    """Eight rows of eight samples: row y begins at line[at + step * y]."""
    for y in range(8):
        store(out, to + 8 * y, load_u8x8(line, at + step * y))


@helper
def load_edge_8x8(samples, x, y, left, top, above_right):
    """8.3.2.2.1: the filtered edge of the 8x8 block at (x, y) of Sample[H, W], and predicted DC (8.3.2.2.4).

    left, top, above_right: which samples are available; of others the edge has any value. The corner is if both left and top
    are.
    """
    column, corner, above = np.int64(0), np.int64(0), splat_u8x16(0)
    if left:
        for i in range(8):
            column |= np.int64(samples[y + i, x - 1]) << 8 * (7 - i)
        corner = np.int64(samples[y, x - 1])
    if top:
        above = load_u8x16(samples, (y - 1) * samples.shape[1] + x)
        if not above_right:
            above = _without_right(above, above)
        corner = np.int64(samples[y - 1, x - 1 if left else x])
    edge = join_edge(column, corner, above)
    edge = _filtered(edge, _before(edge, edge), _after(edge, edge))
    edge = _with_ends(edge, edge)
    total_left = sum_of_lanes(widen(_left_of(edge, edge))) if left else 0
    total_top = sum_of_lanes(widen(_top_of(edge, edge))) if top else 0
    if left and top:
        return edge, np.int64(total_left + total_top + 8 >> 4)
    return edge, np.int64(total_left + total_top + 4 >> 3 if left or top else SAMPLE_MIDDLE)


@helper
def predict_8x8(samples, x, y, left, top, above_right, wanted, edge, out):
    """8.3.2.2: mode m of the 8x8 block at (x, y) -> out[64 * m...] (Sample[576]), rows of eight; returns the usable modes.

    samples: Sample[H, W]; left, top, above_right: see load_edge_8x8; wanted: bit mask of the modes to predict, the output of
    others is undefined; edge: Sample[EDGE_8x8], scratch.
    """
    usable = 1 << 2 | (NEEDS_LEFT if left else 0) | (NEEDS_TOP if top else 0) | (NEEDS_ALL if left and top else 0)
    line, dc = load_edge_8x8(samples, x, y, left, top, above_right)
    after = _after(line, line)
    filtered, mean = _filtered(line, _before(line, line), after), average(line, after)
    store(edge, 0, line)
    store(edge, 32, filtered)
    store(edge, 64, mean)
    wanted &= usable
    if wanted & 1 << 0:
        _rows(edge, TOP, 0, out, 0)
    if wanted & 1 << 1:
        for i in range(8):
            store(out, 64 + 8 * i, splat_u8x8(np.int64(edge[8 - i])))
    if wanted & 1 << 2:
        for i in range(8):
            store(out, 128 + 8 * i, splat_u8x8(dc))
    if wanted & 1 << 3:
        _rows(edge, 32 + TOP + 1, 1, out, 192)
    if wanted & 1 << 4:
        _rows(edge, 32 + CORNER, -1, out, 256)
    if wanted & 1 << 7:
        for i in range(4):
            store(out, 448 + 16 * i, load_u8x8(edge, 64 + TOP + i))
            store(out, 456 + 16 * i, load_u8x8(edge, 32 + TOP + 1 + i))
    if wanted & 1 << 5:
        store(edge, 96, _right_even(filtered, mean))
        store(edge, 128, _right_odd(filtered, mean))
        for i in range(4):
            store(out, 320 + 16 * i, load_u8x8(edge, 96 + 3 - i))
            store(out, 328 + 16 * i, load_u8x8(edge, 128 + 3 - i))
    if wanted & 1 << 6:
        store(edge, 96, _down(filtered, mean))
        _rows(edge, 96 + 14, -2, out, 384)
    if wanted & 1 << 8:
        store(edge, 96, _from_14(_up(filtered, mean), load_u8x32(edge, 1)))
        _rows(edge, 96, 2, out, 512)
    return usable


@helper
def _butterflies(x):
    """Two of the three stages of the Hadamard transform of eight vectors: pairs of the result remain to be added."""
    a0, a1, a2, a3 = add(x[0], x[4]), add(x[1], x[5]), add(x[2], x[6]), add(x[3], x[7])
    a4, a5, a6, a7 = sub(x[0], x[4]), sub(x[1], x[5]), sub(x[2], x[6]), sub(x[3], x[7])
    return (add(a0, a2), add(a1, a3), sub(a0, a2), sub(a1, a3), add(a4, a6), add(a5, a7), sub(a4, a6), sub(a5, a7))


@helper
def _larger(a, b):
    return max_s(absolute(a), absolute(b))


@helper
def _half_sums(rows):
    """Half the sums of the absolute coefficients of the 8x8 Hadamard transform, to be added in every eight lanes.

    rows: eight of 16 bits. The squares of a lane's eight coefficients are at most 64 * 64 * 255^2 together, so that a lane is
    at most 8^0.5 * 64 * 255 / 2: 15 bits.
    """
    x = _butterflies(rows)
    x = (
        add(x[0], x[1]), sub(x[0], x[1]), add(x[2], x[3]), sub(x[2], x[3]),
        add(x[4], x[5]), sub(x[4], x[5]), add(x[6], x[7]), sub(x[6], x[7]),
    )  # fmt: skip
    x = _butterflies(transpose_8x8(x))
    return add(add(_larger(x[0], x[1]), _larger(x[2], x[3])), add(_larger(x[4], x[5]), _larger(x[6], x[7])))


@helper
def satd_8x8(rows):
    """A quarter of the sum of the absolute coefficients of the 8x8 Hadamard transform, rounded; rows: eight of 16 bits.

    On the scale of the SATD of 4x4 blocks (cost.py). The sum of the larger of two is at most 8 * 64 * 255 / 2: 16 bits.
    """
    return (sum_of_lanes(_half_sums(rows)) + 1) >> 1


@helper
def _difference(source, at, predicted, to):
    return sub(widen(load_u8x8(source, at)), widen(load_u8x8(predicted, to)))


@helper
def mode_satd_8x8(source, at, predictions, mode):
    """SATD of the quadrant at source[at], rows of sixteen, against a mode of predict_8x8."""
    to = 64 * mode
    return satd_8x8((
        _difference(source, at, predictions, to), _difference(source, at + 16, predictions, to + 8),
        _difference(source, at + 32, predictions, to + 16), _difference(source, at + 48, predictions, to + 24),
        _difference(source, at + 64, predictions, to + 32), _difference(source, at + 80, predictions, to + 40),
        _difference(source, at + 96, predictions, to + 48), _difference(source, at + 112, predictions, to + 56),
    ))  # fmt: skip


@helper
def _differences_of_four(source, at, predictions, to):
    """A row of the quadrant less that of four modes, whose first is at predictions[to]."""
    return sub(widen(load_4_u8x8(source, at, 0)), widen(load_4_u8x8(predictions, to, 64)))


@helper
def _satds_of_four(source, at, predictions, to):
    """mode_satd_8x8 of four modes, whose first is at predictions[to]."""
    half = _half_sums(
        (
            _differences_of_four(source, at, predictions, to),
            _differences_of_four(source, at + 16, predictions, to + 8),
            _differences_of_four(source, at + 32, predictions, to + 16),
            _differences_of_four(source, at + 48, predictions, to + 24),
            _differences_of_four(source, at + 64, predictions, to + 32),
            _differences_of_four(source, at + 80, predictions, to + 40),
            _differences_of_four(source, at + 96, predictions, to + 48),
            _differences_of_four(source, at + 112, predictions, to + 56),
        )
    )
    a, b, c, d = sums_of_fours(sums_of_pairs(half))
    return (a + 1) >> 1, (b + 1) >> 1, (c + 1) >> 1, (d + 1) >> 1


@helper
def mode_satds_8x8(source, at, predictions):
    """mode_satd_8x8 of all nine modes; of those that are not usable any number."""
    first, second = _satds_of_four(source, at, predictions, 0), _satds_of_four(source, at, predictions, 256)
    return first + second + (mode_satd_8x8(source, at, predictions, 8),)
