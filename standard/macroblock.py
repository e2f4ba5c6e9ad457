"""Names and index maps of macroblocks: types, sub-types, block orders, partitions."""

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

# 6.4.3: luma4x4BlkIdx <-> 4x4 block in raster order (by * 4 + bx).
#   0  1  4  5
#   2  3  6  7
#   8  9 12 13
#  10 11 14 15
BLOCK_TO_RASTER = np.array([0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15], np.int32)
RASTER_TO_BLOCK = np.argsort(BLOCK_TO_RASTER).astype(np.int32)

# The 41 partitions of a macroblock in search order: x, y, width, height in luma samples.
#   0..15 4x4 in raster order; 16.. 8x4, 24.. 4x8, 32.. 8x8 by quadrant; 36, 37 16x8; 38, 39 8x16; 40 16x16
N_PARTITIONS = 41
_QUADRANTS = ((0, 0), (8, 0), (0, 8), (8, 8))
PARTITIONS = np.array(
    [(4 * (b % 4), 4 * (b // 4), 4, 4) for b in range(16)]
    + [(x, y + 4 * k, 8, 4) for x, y in _QUADRANTS for k in range(2)]
    + [(x + 4 * k, y, 4, 8) for x, y in _QUADRANTS for k in range(2)]
    + [(x, y, 8, 8) for x, y in _QUADRANTS]
    + [(0, 0, 16, 8), (0, 8, 16, 8), (0, 0, 8, 16), (8, 0, 8, 16), (0, 0, 16, 16)],
    np.int32,
)

# Blocks of `levels`: 0..15 luma in luma4x4BlkIdx order, then these.
CB_AC, CR_AC, LUMA_DC, CB_DC, CR_DC, N_LEVEL_BLOCKS = 16, 20, 24, 25, 26, 27
# Room for the bits of one macroblock: at most 3200 of macroblock_layer() (A.3.1), mb_skip_run before them, alignment.
ENTRY_BYTES = 416
