"""Numbers of intra macroblocks: modes, intra_estimate, intra, intra by true cost."""

import numpy as np

from .common import N_QP

# ---- intra_prediction
MODE_DC = 2  # of Intra4x4PredMode, Intra8x8PredMode and Intra16x16PredMode
N_MODES_4x4 = 9
# Bits of the modes that need the left column, the row above, and both with the corner (Table 8-2; 8.3.1.2)
NEEDS_LEFT, NEEDS_TOP, NEEDS_ALL = 1 << 1 | 1 << 8, 1 << 0 | 1 << 3 | 1 << 7, 1 << 4 | 1 << 5 | 1 << 6
# 8.3.1.2: bit mask (raster order) of the 4x4 blocks whose neighbour above right is in this macroblock and decoded earlier
ABOVE_RIGHT_INSIDE = sum(1 << (by * 4 + bx) for bx, by in ((0, 1), (2, 1), (0, 2), (1, 2), (2, 2), (0, 3), (2, 3)))
MEAN = 16  # index MEAN + i: mean of samples i and i + 1 of the edge; index i: filtered sample i

# ---- intra_estimate and intra
# intra_modes: the sixteen Intra4x4PredModes of I_4x4, or AS_16x16 + Intra16x16PredMode of I_16x16, or AS_8x8 +
# Intra8x8PredMode of I_8x8 in the four blocks of each quadrant
AS_16x16, AS_8x8 = 16, 32
BITS_ESTIMATED_4x4 = 24  # of Intra_4x4 in intra_estimate, besides mb_type and modes: what the estimate misses
BITS_ESTIMATED_8x8 = 12  # the same of Intra_8x8
BITS_4x4 = 4  # extra cost of Intra_4x4 against Intra_16x16 in I frames, besides its modes and SATD; found by experiment
BITS_INTRA_8x8 = -12  # the same of Intra_8x8

# ---- intra_refresh
DEBLOCKED = 3  # luma samples on each side of an edge that the filter may change (8.7.2.3, 8.7.2.4); of chroma it is one
TAPS = 3  # luma samples right of a block that a vector between samples needs (8.4.2.2.1); chroma reaches less far
# Names of Intra4x4PredMode and Intra8x8PredMode (Tables 8-2, 8-3)
VERTICAL, HORIZONTAL, TO_DOWN_LEFT, TO_VERTICAL_LEFT, TO_HORIZONTAL_DOWN, TO_HORIZONTAL_UP = 0, 1, 3, 7, 6, 8
ABOVE_RIGHT = 3  # the 4x4 block, raster order, whose samples above right lie in the next column of macroblocks

# ---- intra by true cost
INTRA_TRIALS = 2  # modes of a block that are coded, those with the lowest SATD + lambda * bits
_INTRA_LAMBDA = 0.07  # cost of a bit in squared steps: less than elsewhere, since later frames are predicted from I frames
# Squared error of a sample in units of 1 / 256 bit, units of 1 / 2^16, by QP_Y
INTRA_ERROR = np.array([round(2**24 / (_INTRA_LAMBDA * 2 ** ((qp - 4) / 3))) for qp in range(N_QP)], np.int64)
# ctxIdx of bins of mb_type in I slices, with one neighbour that is no I_NxN, and in P slices: see intra_cost.type_bits
INTRA_TYPE_CONTEXTS = np.array([[4, 6, 9, 10], [17, 18, 20, 20]], np.int64)
