"""QP offsets of adaptive quantisation, and what costs are worth under them, by macroblock; not part of the standard.

The formulas are x264's, in fixed point: integers, the same on every machine.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ..decisions.lookahead import MOST_WEIGHT_LOG2
from .logarithms import LOG2_SHIFT, QP_SHIFT, exp2, log2

OFF, BY_VARIANCE, BY_FRAME, DARK_FINER = range(4)  # --aq-mode
_ONE = 1 << LOG2_SHIFT
# of the formulas: QPs a bit of energy, and the log2 of the energy whose QP stays; mean squared eighth root that stays
_SLOPE, _NEUTRAL = round(1.0397 * _ONE), round(14.427 * _ONE)
_NEUTRAL_SQUARE = 14
_STEP = 6  # QPs that double the quantiser step


@helper
def _scaled(offset, strength):
    """An offset in 1 / _ONE times the strength, in 1 / 256."""
    return (offset * strength + (_ONE >> 1)) >> LOG2_SHIFT


@helper
def _root(energy):
    """The eighth root of an energy, in 1 / _ONE, below 2^3."""
    return exp2(log2(np.int64(energy) + 1) >> 3)


@helper
def find_offsets(energy, mode, strength, offsets):
    """See aq_offsets."""
    n_mb = energy.size
    if mode == BY_VARIANCE:
        for mb in range(n_mb):
            offset = ((log2(max(np.int64(energy[mb]), 1)) - _NEUTRAL) * _SLOPE) >> LOG2_SHIFT
            offsets[mb] = _scaled(offset, strength)
        return
    total = squares = np.int64(0)
    for mb in range(n_mb):
        root = _root(energy[mb])
        total += root
        squares += (root * root) >> LOG2_SHIFT
    mean = total // n_mb
    of_frame = (squares // n_mb - _NEUTRAL_SQUARE * _ONE) >> 1
    for mb in range(n_mb):
        root = _root(energy[mb])
        offset = ((mean * (root - mean)) >> LOG2_SHIFT) + of_frame
        if mode == DARK_FINER:
            offset += _ONE - ((_NEUTRAL_SQUARE * _ONE) << LOG2_SHIFT) // ((root * root) >> LOG2_SHIFT)
        offsets[mb] = _scaled(offset, strength)


@helper
def find_error_weights(offsets, weights):
    """See error_weights."""
    most = MOST_WEIGHT_LOG2 << LOG2_SHIFT
    for mb in range(offsets.size):
        change = (-np.int64(offsets[mb]) * (1 << (LOG2_SHIFT - QP_SHIFT))) // _STEP
        weights[mb] = exp2(min(max(change, -most), most) + most) >> MOST_WEIGHT_LOG2


@closed_kernel
def aq_offsets(energy, mode, strength, offsets):
    """Offsets of QP_Y -> offsets: int32[n_mb], in 1 / 256.

    energy: int32[n_mb], of all macroblocks of a frame (ac_energy.py); mode: int, not OFF; strength: int, in 1 / 256.
    """
    find_offsets(energy, mode, strength, offsets)


@closed_kernel
def error_weights(offsets, weights):
    """What a cost is worth under QP offsets, at finer steps more -> weights: int32[n_mb], in 1 / 65536.

    offsets: int32[n_mb], in 1 / 256.
    """
    find_error_weights(offsets, weights)
