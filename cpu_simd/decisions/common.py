"""Numbers of several stages: metrics and their multipliers, from which subme on what is done, limits of costs."""

import numpy as np

SAD, SATD = 0, 1  # metrics

N_QP = 52
# Lagrangian multiplier by QP: the cost of a bit in units of SAD or SATD
LAMBDA = np.array([max(1, round(2 ** (qp / 6 - 2))) for qp in range(N_QP)], np.int64)
CHOICE_LAMBDA = 0.1  # cost of a bit in squared steps
RD_CHROMA_LEAST = 12  # least QP_Y - QP_C, negative
# Squared step of chroma in that of luma, units of 1 / 256, by QP_Y - QP_C + RD_CHROMA_LEAST
RD_CHROMA_WEIGHT = np.array([round(256 * 2 ** (-(n - RD_CHROMA_LEAST) / 3)) for n in range(64)], np.int64)

# Up to subme QUICK a macroblock is quiet if it costs less than QUIET lambdas undivided: it is neither searched beyond the
# centre of its window nor divided nor, by intra_estimate, intra
QUICK, QUIET = 3, 96  # the lookahead and bipredict have rules of their own up to QUICK
BY_COST = 6  # lowest subme with decisions by squared error and bits
BY_COST_INTRA = 7  # lowest subme with true costs of intra macroblocks in P and B frames too

COST_NOT_REFINED = 1 << 20  # cost of a partition that was not refined
INTER_IS_CHEAPER = 1 << 20  # intra_cost of a macroblock for which inter prediction is cheaper
RD_MOST = 1 << 26  # larger costs count as this
# Of an intra macroblock in a P frame: costs come from source samples, and prediction from decoded samples is worse the
# coarser the quantiser.
BITS_INTRA = 28
