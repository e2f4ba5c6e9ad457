"""The macroblock tree: how much of later frames depends on each macroblock, and the QP offsets that follow from it.

Not part of the standard. The way through the frames is that of Garrett-Glaser, "A novel macroblock-tree algorithm for
high-performance optimization of dependent video coding in H.264/AVC"; amounts are of distortion: a macroblock is worth 1, and
owes its reference the share of the reference's error that quantisation of the residual leaves in it. Costs are those of
lookahead.py. Sums are exact, so that no order of macroblocks counts.
"""

from math import log2

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ..decisions.lookahead import (
    COST_SHIFT,
    SAVED_SHIFT,
    SHARE_SHIFT,
    TREE_LOG2_SHIFT,
    TREE_TABLE_BITS,
    WEIGHT_SHIFT,
)

_MB_SHIFT = 4  # of source samples in macroblocks
# log2(1 + i / 1024) in 1 / 65536; none is so near the middle between two integers that machines could differ
TREE_LOG2 = np.array([round(log2(1 + i / 1024) * (1 << TREE_LOG2_SHIFT)) for i in range(1 << TREE_TABLE_BITS)], np.int32)


@helper
def _give(amount, mb, x, y, mb_width, mb_height, gifts):
    """Distributes an amount to the up to four macroblocks that macroblock mb covers, moved by (x, y) source samples, by area.
    What lies outside of the frame is lost.
    """
    size = 1 << _MB_SHIFT
    left, top = (mb % mb_width) * size + x, (mb // mb_width) * size + y
    column, row = left >> _MB_SHIFT, top >> _MB_SHIFT
    right, below = left & (size - 1), top & (size - 1)
    for v in range(2):
        height = below if v else size - below
        for u in range(2):
            area = height * (right if u else size - right)
            if area and 0 <= column + u < mb_width and 0 <= row + v < mb_height:
                to = (row + v) * mb_width + column + u
                gifts[to] += (amount * area + (1 << (2 * _MB_SHIFT - 1))) >> (2 * _MB_SHIFT)


@closed_kernel
def tree_propagate(intra, mb_error, hidden, used, weight1, mb_width, amount, gifts0, gifts1):
    """What the macroblocks of a frame owe to its references is added to theirs.

    intra: uint16[n_mb], costs; mb_error: int64[n_mb], what each macroblock is worth by itself, in 1 / 2^AMOUNT_SHIFT; hidden:
    int64[n_mb], cost of a residual half of which quantisation leaves out, in 1 / 2^COST_SHIFT, below 2^28; used: cost,
    vectors and lists as in UsedMotion (scheduler/lookahead/costs.py); weight1: int, of the later reference in a
    prediction from both, of 64; amount: int64[n_mb], what later frames owe to this one; gifts0, gifts1 (in and out):
    int64[n_mb], the same of the earlier and of the later reference.
    """
    cost, vectors, lists = used
    n_mb = intra.size
    mb_height = n_mb // mb_width
    for mb in range(n_mb):
        saved = np.int64(intra[mb]) - np.int64(cost[mb])
        if saved <= 0:
            continue
        left_out = hidden[mb] + (saved << (COST_SHIFT - SAVED_SHIFT))
        share = (left_out << SHARE_SHIFT) // (left_out + (np.int64(cost[mb]) << COST_SHIFT))
        owed = ((mb_error[mb] + amount[mb]) * share) >> SHARE_SHIFT
        second = owed if lists[mb] == 2 else (owed * weight1) >> WEIGHT_SHIFT if lists[mb] == 3 else 0
        if lists[mb] != 2:
            _give(owed - second, mb, np.int64(vectors[mb, 0]), np.int64(vectors[mb, 1]), mb_width, mb_height, gifts0)
        if lists[mb] != 1:
            _give(second, mb, np.int64(vectors[mb, 2]), np.int64(vectors[mb, 3]), mb_width, mb_height, gifts1)


@helper
def _log2(value):
    """log2 of a positive integer, in 1 / 65536."""
    exponent = np.int64(0)
    step = np.int64(32)
    while step:
        if value >> (exponent + step):
            exponent += step
        step >>= 1
    mantissa = value >> (exponent - TREE_TABLE_BITS) if exponent >= TREE_TABLE_BITS else value << (TREE_TABLE_BITS - exponent)
    return (exponent << TREE_LOG2_SHIFT) + np.int64(TREE_LOG2[mantissa - (1 << TREE_TABLE_BITS)])


@closed_kernel
def tree_offsets(mb_error, amount, strength, offsets):
    """QP offsets of the macroblocks of a reference -> offsets: int32[n_mb], in 1 / 256, at most 0.

    mb_error, amount: as of tree_propagate; strength: int, QPs in 1 / 256 for an amount as large as the macroblock's error.
    """
    for mb in range(mb_error.size):
        gain = _log2(mb_error[mb] + amount[mb]) - _log2(mb_error[mb])
        offsets[mb] = -((gain * strength + (1 << (TREE_LOG2_SHIFT - 1))) >> TREE_LOG2_SHIFT)
