"""Numbers of the encoder's decisions that the kernels of the CPU and of the GPU share. Not part of the standard.

cuda_src/runtime/compiler.py writes them to decisions.cuh.
"""

import numpy as np

SAD, SATD = 0, 1  # metrics

N_QP = 52
# Lagrangian multiplier by QP: the cost of a bit in units of SAD or SATD
LAMBDA = np.array([max(1, round(2 ** (qp / 6 - 2))) for qp in range(N_QP)], np.int64)

# ---- search_centre
COARSE_SCALE = 4  # the coarse frames have one sample for COARSE_SCALE x COARSE_SCALE samples
COARSE_X, COARSE_Y = 16, 10  # range of the coarse search: -COARSE_X .. COARSE_X - 1, -COARSE_Y .. COARSE_Y - 1
MOST_DISTANCE = 16  # frames over which vectors of the frame before are continued
SMALLEST_WINDOW = 12  # minimum range that full_search reads

# ---- pattern_search
DIA, HEX, UMH = 0, 1, 2
UMH_ENOUGH = 160  # lambdas of a macroblock for which umh ends early
# Candidates round the best so far, (x, y) in samples, in the order in which they are compared: a diamond; a hexagon, whose
# points go round, with the last before the first and the first after the last; the eight neighbours and the others of 5x5;
# the cross of umh, across and down, and its 16 points, both for scales
SEARCH_POINTS = np.array([
    (0, -1), (-1, 0), (1, 0), (0, 1),
    (-1, -2), (-2, 0), (-1, 2), (1, 2), (2, 0), (1, -2), (-1, -2), (-2, 0),
    (-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1),
    (-2, -2), (-1, -2), (0, -2), (1, -2), (2, -2), (-2, -1), (2, -1), (-2, 0), (2, 0), (-2, 1), (2, 1), (-2, 2), (-1, 2),
    (0, 2), (1, 2), (2, 2),
    (-1, 0), (1, 0), (0, -1), (0, 1),
    (0, -4), (-2, -3), (2, -3), (-4, -2), (4, -2), (-4, -1), (4, -1), (-4, 0), (4, 0), (-4, 1), (4, 1), (-4, 2), (4, 2),
    (-2, 3), (2, 3), (0, 4),
], np.int64)  # fmt: skip
AT_DIAMOND, AT_HEXAGON, AT_SQUARE, AT_ACROSS, AT_DOWN, AT_MULTI_HEXAGON = 0, 4, 12, 36, 38, 40

# ---- subpel_refine
# Up to subme 4 a division of the macroblock (or quadrant) is refined if its integer vectors cost less than those of the
# undivided one plus so many lambdas: 16x8 and 8x16; 8x8; 8x4 and 4x8; 4x4. Refinement favours the larger partitions.
REFINE_MARGIN_HALVES, REFINE_MARGIN_8x8, REFINE_MARGIN_8x4, REFINE_MARGIN_4x4 = 12, 8, -4, -8
COST_NOT_REFINED = 1 << 20  # cost of a partition that was not refined
EVERY = 5  # from this subme on all partitions are refined
# Up to subme QUICK a macroblock is quiet if it costs less than QUIET lambdas undivided: it is neither searched beyond the
# centre of its window nor divided nor, by intra_estimate, intra
QUICK, QUIET = 3, 96  # the lookahead and bipredict have rules of their own up to QUICK
ALL_PARTITIONS = 31  # bit 0 16x16, 1 16x8 and 8x16, 2 8x8, 3 8x4 and 4x8, 4 4x4 (not without 3)
SMALL_PARTITIONS = 24  # those below 8x8

# ---- intra_estimate and intra
# intra_modes: the sixteen Intra4x4PredModes of I_4x4, or AS_16x16 + Intra16x16PredMode of I_16x16, or AS_8x8 +
# Intra8x8PredMode of I_8x8 in the four blocks of each quadrant
AS_16x16, AS_8x8 = 16, 32
INTER_IS_CHEAPER = 1 << 20  # intra_cost of a macroblock for which inter prediction is cheaper

# ---- estimates of bits (bit_costs.py, bit_costs.cuh)
# Of an intra macroblock in a P frame: costs come from source samples, and prediction from decoded samples is worse the
# coarser the quantiser.
BITS_INTRA = 28
BITS_ESTIMATED_4x4 = 24  # of Intra_4x4 in intra_estimate, besides mb_type and modes: what the estimate misses
BITS_ESTIMATED_8x8 = 12  # the same of Intra_8x8
BITS_4x4 = 4  # extra cost of Intra_4x4 against Intra_16x16 in I frames, besides its modes and SATD; found by experiment
BITS_INTRA_8x8 = -12  # the same of Intra_8x8
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

# ---- residuals
# Dead zones as what is added before levels are rounded down, in 1 / ROUNDING of a step: levels are rounded up from
# 1 - DEAD_ZONE / ROUNDING on.
ROUNDING = 192
DEAD_ZONE_INTRA, DEAD_ZONE_INTER, DEAD_ZONE_NEAREST = 64, 32, 96
# Residuals with a decimate_score below these are dropped: luma of a quadrant, of the macroblock, chroma AC of a plane.
THRESHOLD_8x8, THRESHOLD_16x16, THRESHOLD_CHROMA = 4, 6, 7
PCM_BITS = 384 * 8 + 8  # samples and mb_type of I_PCM
# residual_range.py: macroblocks with a residual sample of a larger magnitude become I_PCM: 2^15 / 64 / 1.44, with room for
# the rounding; the QP from which it is looked for
MOST_RESIDUAL, RANGE_QP = 350, 30
FEW_LEVELS = 60  # a macroblock with at most this number of levels stays below PCM_BITS
BUDGET = 6  # skip_probe: score from which a residual is worth coding

# ---- rdo_quant
RDO_ONE = 64  # a level of one in the unit of the ratios
RDO_SURE_RATIO = 77  # |coefficient| / step from which a level of one is always kept
# RDO_SURE_RATIO of a block with more than RDO_MANY_LEVELS levels, where each costs few bits
RDO_MANY_LEVELS, RDO_SURE_RATIO_OF_MANY = 8, 43
RDO_UP = 42  # levels above one are rounded up from a fraction of RDO_UP / RDO_ONE on
RDO_BIT = 9  # cost of a bit in units of 1 / RDO_ONE: lambda / step^2 = 0.136

# ---- trellis
# Distortion in 1 / 256 bit for 1 / 32 squared step: 8 / c for a cost of a bit of c squared steps. Found by experiment; in I
# slices alone 110 is best, but what they lose is lost in the P frames after them too.
TRELLIS_INTER, TRELLIS_INTRA = 54, 200
TRELLIS_MOST = 1 << 16  # the same with scaling lists: costs of a block stay below 2^29
TRELLIS_8x8 = 5  # the same in 8x8 blocks, in quarters of that in 4x4 blocks
TRELLIS_THRESHOLD_8x8, TRELLIS_THRESHOLD_16x16 = 3, 4  # THRESHOLD_8x8, THRESHOLD_16x16 after the trellis

# ---- transform_choice
CHOICE_MOST_RATIO = 2047  # ratios of a coefficient to the step, in 1 / 64, are not squared above this
_CHOICE_LAMBDA = 0.1  # cost of a bit in squared steps
CHOICE_NEAR = 5  # costs of both transforms are near if they differ by one part in 2^CHOICE_NEAR
CHOICE_DISTORTION = round(16 / _CHOICE_LAMBDA)  # a squared error of (step / 64)^2 in units of 1 / 256^2 bit

# ---- bipredict
B_BITS_L0, B_BITS_L1, B_BITS_BI = 1, 2, 3  # of the kind of a part: list 0, list 1, both
B_REFINED = 4  # lowest subme at which vectors of both lists are refined together, where that is cheaper than one list
B_NOT_ALLOWED = 1 << 28  # cost of a choice that must not be taken

# ---- rd_candidates, and mode_decision by its costs
BY_COST = 6  # lowest subme with decisions by squared error and bits
RD_GATE = 3  # a division is coded if its estimated cost is less than the best one's plus one part in 2^RD_GATE
BY_COST_INTRA = 7  # lowest subme with true costs of intra macroblocks in P and B frames too
RD_VECTORS = 7  # lowest subme with true costs of the vectors a quarter sample from the best one
RD_MOST = 1 << 26  # larger costs count as this
RD_BITS_INTRA = 8  # of an intra macroblock, besides BITS_INTRA
RD_CHROMA_LEAST = 12  # least QP_Y - QP_C, negative
# Of B macroblocks, to find the divisions that are near the best: by kinds of `b_extra`, mb_type with sub_mb_type, the vectors
# apart; and what a part takes more that both lists predict
RD_B_BITS = np.array([3, 3, 6, 6, 6, 18, 1], np.int64)
RD_B_BOTH = 2
RD_B_SKIP = 8  # bits by which skipping is preferred in B frames, from which little or nothing is predicted; by experiment
# Squared step of chroma in that of luma, units of 1 / 256, by QP_Y - QP_C + RD_CHROMA_LEAST
RD_CHROMA_WEIGHT = np.array([round(256 * 2 ** (-(n - RD_CHROMA_LEAST) / 3)) for n in range(64)], np.int64)
# Psy-RD of strength one: lambda times the difference of energies by orthonormal coefficients as squared error, as in x264.
# By QP_Y: 1 / step, what a difference of psy.py's energies takes in bits, units of 1 / 2^16; as squared error, the same.
_STEP = [0.625 * 2 ** (qp / 6) for qp in range(N_QP)]
PSY_BITS = np.array([round(65536 / step) for step in _STEP], np.int64)
PSY_ERROR = np.array([round(65536 * _CHOICE_LAMBDA * step) for step in _STEP], np.int64)
# LAMBDA / lambda of squared errors by QP_Y, in units of 1 / 2^16
RD_SKIP_WEIGHT = np.array(
    [round(65536 * int(LAMBDA[qp]) / (_CHOICE_LAMBDA * 2 ** ((qp - 4) / 3))) for qp in range(N_QP)], np.int64
)

# ---- intra by true cost
INTRA_TRIALS = 2  # modes of a block that are coded, those with the lowest SATD + lambda * bits
_INTRA_LAMBDA = 0.07  # cost of a bit in squared steps: less than elsewhere, since later frames are predicted from I frames
# Squared error of a sample in units of 1 / 256 bit, units of 1 / 2^16, by QP_Y
INTRA_ERROR = np.array([round(2**24 / (_INTRA_LAMBDA * 2 ** ((qp - 4) / 3))) for qp in range(N_QP)], np.int64)
# ctxIdx of bins of mb_type in I slices, with one neighbour that is no I_NxN, and in P slices: see intra_cost.type_bits
INTRA_TYPE_CONTEXTS = np.array([[4, 6, 9, 10], [17, 18, 20, 20]], np.int64)

# ---- lookahead
CAMERA_SCALE = 16  # lookahead_camera has one sample a macroblock
CAMERA_X, CAMERA_Y = 12, 6  # range of lookahead_camera in both directions, macroblocks; at most half the frame
LOOK_PAD = 40  # border of half-size planes, samples of these
LOOK_STILL = 64  # a block whose SATD without motion is less has vector 0
LOOK_VECTOR, LOOK_INTRA = 5, 5  # cost of a vector other than 0 and of two vectors; of intra prediction; in bits
LOOK_BLOCK = 4  # cost of any block
