"""Numbers of the decision about inter macroblocks: estimates of bits, bipredict, rd_candidates, mode_decision."""

import numpy as np

from ..layout import B_WHOLE
from .common import CHOICE_LAMBDA, LAMBDA, N_QP

# ---- estimates of bits (bit_costs.py, bit_costs.cuh)
# Table 7-13, 7-17: bits of mb_type and sub_mb_type (ue(v)), plus one for mb_skip_run
BITS_SKIP = 1
BITS_16x16, BITS_16x8, BITS_8x16, BITS_8x8 = 2, 4, 4, 6
BITS_LEAST = 2  # of a vector
# The same of B macroblocks (Tables 7-14, 7-18), by the lists of the parts: list 0, list 1, both
BITS_B_DIRECT, BITS_B_8x8, BITS_B_INTRA = 2, 10, 32
BITS_B_16x16 = np.array([4, 4, 6], np.int64)
BITS_B_16x8 = np.array([[6, 8, 8], [8, 6, 8], [10, 10, 10]], np.int64)
BITS_B_8x16 = np.array([[6, 8, 8], [8, 8, 10], [10, 10, 10]], np.int64)
BITS_B_SUB = np.array([1, 3, 3, 5], np.int64)  # by sub_mb_type

# ---- bipredict
B_BITS_L0, B_BITS_L1, B_BITS_BI = 1, 2, 3  # of the prediction mode of a partition: list 0, list 1, both
B_REFINED = 4  # lowest subme at which vectors of both lists are refined together, where that is cheaper than one list
B_NOT_ALLOWED = 1 << 28  # cost of a choice that must not be taken
NONE = -1  # no vector
MOST_PAIRS = B_WHOLE + 1 + 3 * 8  # of vectors: those of the partitions, and three times those about a pair

# ---- rd_candidates, and mode_decision by its costs
WHOLE, UPPER, LEFT, QUARTERS = range(4)  # divisions: 16x16, 16x8, 8x16, 8x8
RD_COST_MAX = 1 << 30  # more than any cost
RD_GATE = 3  # a division is coded if its estimated cost is less than the best one's plus one part in 2^RD_GATE
RD_VECTORS = 7  # lowest subme with true costs of the vectors a quarter sample from that of an undivided P macroblock
RD_DIVISIONS, RD_B_DIVISIONS = 8, 9  # the same of the vectors of all divisions near the best: of P frames, of B frames
RD_NEAR = 4  # those whose true cost is at most the least one plus one part in 2^RD_NEAR
RD_ROUNDS = 2  # how often each vector may move by a quarter sample
RD_BITS_INTRA = 8  # of an intra macroblock, besides BITS_INTRA
# Of B macroblocks, to find the divisions that are near the best: by columns of `b_extra`, mb_type with sub_mb_type, the
# vectors apart; and what a part takes more that both lists predict
RD_B_BITS = np.array([3, 3, 6, 6, 6, 18, 1], np.int64)
RD_B_BOTH = 2
RD_B_SKIP = 8  # bits by which skipping is preferred in B frames, from which little or nothing is predicted; by experiment
# Psy-RD of strength one: lambda times the difference of energies by orthonormal coefficients as squared error, as in x264.
# By QP_Y: 1 / step, what a difference of psy.py's energies takes in bits, units of 1 / 2^16; as squared error, the same.
_STEP = [0.625 * 2 ** (qp / 6) for qp in range(N_QP)]
PSY_BITS = np.array([round(65536 / step) for step in _STEP], np.int64)
PSY_ERROR = np.array([round(65536 * CHOICE_LAMBDA * step) for step in _STEP], np.int64)
# LAMBDA / lambda of squared errors by QP_Y, in units of 1 / 2^16
RD_SKIP_WEIGHT = np.array(
    [round(65536 * int(LAMBDA[qp]) / (CHOICE_LAMBDA * 2 ** ((qp - 4) / 3))) for qp in range(N_QP)], np.int64
)
