"""Numbers of adaptive quantisation, and of the logarithms and powers of 2 that it is made of."""

import numpy as np

from .lookahead import MOST_WEIGHT_LOG2

# ---- logarithms
LOG2_SHIFT = 16  # of logarithms: they are in 1 / 65536
QP_SHIFT = 8  # of QPs with a fraction: they are in 1 / 256
# of a mantissa: those that choose a row of a table, and those that interpolate to the next one
ROW_BITS, FRACTION_BITS = 8, 15
# log2(1 + i / 256) and 2^(i / 256), in 1 / 65536: int32, so that loops become SIMD
LOG2_TABLE = np.array([round(np.log2(1 + i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int32)
EXP2_TABLE = np.array([round(2 ** (i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int32)

# ---- offsets
OFF, BY_VARIANCE, BY_FRAME, DARK_FINER = 0, 1, 2, 3  # --aq-mode
ONE = 1 << LOG2_SHIFT  # a QP, a bit of energy or an eighth root, in 1 / 65536
# of the formulas: QPs a bit of energy, and the log2 of the energy whose QP stays; mean squared eighth root that stays
SLOPE, NEUTRAL = round(1.0397 * ONE), round(14.427 * ONE)
NEUTRAL_SQUARE = 14

# ---- error weights
DOUBLING = 6  # QPs that double the quantiser step
MOST_CHANGE = MOST_WEIGHT_LOG2 << LOG2_SHIFT
ENOUGH = (DOUBLING * MOST_CHANGE >> (LOG2_SHIFT - QP_SHIFT)) + DOUBLING  # of an offset, for the least and the most weight
