"""Numbers of the search for vectors: search_centre, full_search, pattern_search, subpel_refine, neighbour_vectors."""

import numpy as np

# ---- search_centre
COARSE_SCALE = 4  # the coarse frames have one sample for COARSE_SCALE x COARSE_SCALE samples
COARSE_X, COARSE_Y = 16, 10  # range of the coarse search: -COARSE_X .. COARSE_X - 1, -COARSE_Y .. COARSE_Y - 1
MOST_DISTANCE = 16  # frames over which vectors of the frame before are continued
SMALLEST_WINDOW = 12  # minimum range that full_search reads

# ---- full_search
FIRST_LARGE = 32  # the first partition of 8x8 and larger
ALL_PARTITIONS = 31  # bit 0 16x16, 1 16x8 and 8x16, 2 8x8, 3 8x4 and 4x8, 4 4x4 (not without 3)
SMALL_PARTITIONS = 24  # those below 8x8

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
EVERY = 5  # from this subme on all partitions are refined

# ---- neighbour_vectors
N_VECTORS = 18  # at most: the predictor, eight neighbours' vectors, those of the macroblock's partitions 32 to 40
