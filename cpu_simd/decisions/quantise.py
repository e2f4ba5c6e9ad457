"""Numbers of residuals: dead zones, rdo_quant, trellis, transform_choice, what is dropped."""

import numpy as np

from ...standard.sample_format import BIT_DEPTH, MB_SAMPLES
from .common import CHOICE_LAMBDA, N_QP

# ---- residuals
# Dead zones as what is added before levels are rounded down, in 1 / ROUNDING of a step: levels are rounded up from
# 1 - DEAD_ZONE / ROUNDING on.
ROUNDING = 192
DEAD_ZONE_INTRA, DEAD_ZONE_INTER, DEAD_ZONE_NEAREST = 64, 32, 96
# Residuals with a decimate_score below these are dropped: luma of a quadrant, of the macroblock, chroma AC of a plane.
THRESHOLD_8x8, THRESHOLD_16x16, THRESHOLD_CHROMA = 4, 6, 7
PCM_BITS = MB_SAMPLES * BIT_DEPTH + 8  # samples and mb_type of I_PCM
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
LARGEST_RATIO = 32767  # this and all larger ones
UNREACHABLE = 1 << 29  # cost of a node that no choice reaches

# ---- transform_choice
CHOICE_MOST_RATIO = 2047  # ratios of a coefficient to the step, in 1 / 64, are not squared above this
CHOICE_NEAR = 5  # costs of both transforms are near if they differ by one part in 2^CHOICE_NEAR
CHOICE_DISTORTION = round(16 / CHOICE_LAMBDA)  # a squared error of (step / 64)^2 in units of 1 / 256^2 bit

# ---- inter_residual_qp
QP_REACH = 2  # QPs are tried that are at most so far from that of the macroblock
# By the change of the macroblock's QP, from -QP_REACH on: the squared step in 1 / 256 of that before; bits of the change
QP_FACTOR = np.array([round(256 * 2 ** (change / 3)) for change in range(-QP_REACH, QP_REACH + 1)], np.int64)
QP_CHANGE_BITS = np.array([3, 2, 0, 2, 3], np.int64)
# By QP: a squared error of 1 in units of 1 / 256^2 bit, where a bit costs 0.13 squared steps. Found by experiment
QP_DISTORTION = np.array([round(65536 / (0.13 * 2 ** ((qp - 4) / 3))) for qp in range(N_QP)], np.int64)
