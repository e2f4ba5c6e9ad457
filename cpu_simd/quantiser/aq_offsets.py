"""QP offsets of adaptive quantisation, and what costs are worth under them, by macroblock; not part of the standard.

The formulas are x264's, in fixed point: integers, the same on every machine.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ..decisions.adaptation import (
    BY_VARIANCE,
    DARK_FINER,
    DOUBLING,
    ENOUGH,
    LOG2_SHIFT,
    MOST_CHANGE,
    NEUTRAL,
    NEUTRAL_SQUARE,
    ONE,
    QP_SHIFT,
    SLOPE,
)
from ..decisions.lookahead import MOST_WEIGHT_LOG2
from .logarithms import exp2, log2


@helper
def _scaled(offset, strength):
    """An offset in 1 / ONE times the strength, in 1 / 256."""
    return (offset * strength + (ONE >> 1)) >> LOG2_SHIFT


@helper
def _root(energy):
    """int32: the eighth root of an energy, in 1 / ONE, below 2^3."""
    return exp2(log2(np.uint32(energy) + np.uint32(1)) >> np.int32(3), 0)


@helper
def _by_variance(energy, strength):
    """int32, as are all numbers here: the offset of a macroblock. A product that has more bits is taken in two parts."""
    above = np.int32(log2(max(energy, np.int32(1))) - np.int32(NEUTRAL))
    high, low = np.int32(above >> np.int32(8)), np.int32(above & np.int32(255))
    product = np.int32(np.int32(low * np.int32(SLOPE)) >> np.int32(8))
    offset = np.int32(np.int32(np.int32(high * np.int32(SLOPE)) + product) >> np.int32(8))
    return np.int32(np.int32(np.int32(offset * strength) + np.int32(ONE >> 1)) >> np.int32(LOG2_SHIFT))


@closed_kernel
def aq_offsets(energy, mode, strength, offsets):
    """Offsets of QP_Y -> offsets: int32[n_mb], in 1 / 256.

    energy: int32[n_mb], of all macroblocks of a frame (ac_energy.py); mode: int, not OFF; strength: int, in 1 / 256.
    """
    n_mb = energy.size
    if mode == BY_VARIANCE:
        for mb in range(n_mb):
            offsets[mb] = _by_variance(energy[mb], np.int32(strength))
        return
    total = squares = np.int64(0)
    for mb in range(n_mb):
        offsets[mb] = _root(energy[mb])
    for mb in range(n_mb):
        root = np.int64(offsets[mb])
        total += root
        squares += (root * root) >> LOG2_SHIFT
    mean = total // n_mb
    of_frame = (squares // n_mb - NEUTRAL_SQUARE * ONE) >> 1
    for mb in range(n_mb):
        root = np.int64(offsets[mb])
        offset = ((mean * (root - mean)) >> LOG2_SHIFT) + of_frame
        if mode == DARK_FINER:
            offset += ONE - ((NEUTRAL_SQUARE * ONE) << LOG2_SHIFT) // ((root * root) >> LOG2_SHIFT)
        offsets[mb] = _scaled(offset, strength)


@closed_kernel
def error_weights(offsets, weights):
    """What a cost is worth under QP offsets, at finer steps more -> weights: int32[n_mb], in 1 / 65536.

    offsets: int32[n_mb], in 1 / 256.
    """
    for mb in range(offsets.size):
        finer = np.int32(np.int32(ENOUGH) - min(max(offsets[mb], np.int32(-ENOUGH)), np.int32(ENOUGH)))  # from 0 on
        change = np.int32(np.uint32(np.uint32(finer) << np.uint32(LOG2_SHIFT - QP_SHIFT)) // np.uint32(DOUBLING))
        above = np.int32(change - np.int32(1 << (LOG2_SHIFT - QP_SHIFT)))
        weights[mb] = exp2(min(max(above, np.int32(0)), np.int32(2 * MOST_CHANGE)), MOST_WEIGHT_LOG2)
