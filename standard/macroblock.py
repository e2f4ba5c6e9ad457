"""Names and index maps of macroblocks: types, sub-types, block orders."""

import numpy as np

# Tables 7-11, 7-13 and 7-14, flattened: the prediction and its partitioning. All intra types come first, I_8x8 is I_NxN with
# transform_size_8x8_flag.
I_4x4, I_8x8, I_16x16, I_PCM = range(4)
LAST_INTRA = I_PCM
P_16x16, P_16x8, P_8x16, P_8x8, P_SKIP = range(4, 9)
B_SKIP, B_DIRECT, B_16x16, B_16x8, B_8x16, B_8x8 = range(9, 15)
MB_TYPE_NAMES = (
    "I_4x4", "I_8x8", "I_16x16", "I_PCM", "P_16x16", "P_16x8", "P_8x16", "P_8x8", "P_Skip",
    "B_Skip", "B_Direct_16x16", "B_16x16", "B_16x8", "B_8x16", "B_8x8",
)  # fmt: skip

# Table 7-17: sub_mb_type of P macroblocks.
SUB_8x8, SUB_8x4, SUB_4x8, SUB_4x4 = range(4)
# Table 7-18: sub_mb_type of B macroblocks; the others divide 8x8 blocks.
B_SUB_DIRECT, B_SUB_L0, B_SUB_L1, B_SUB_BI = range(4)

# 6.4.3: luma4x4BlkIdx <-> 4x4 block in raster order (by * 4 + bx).
#   0  1  4  5
#   2  3  6  7
#   8  9 12 13
#  10 11 14 15
BLOCK_TO_RASTER = np.array([0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15], np.int32)
RASTER_TO_BLOCK = np.argsort(BLOCK_TO_RASTER).astype(np.int32)
