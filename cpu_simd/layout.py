"""Sizes and orders inside the encoder's arrays, for all kernels and scheduler/arrays.py; not part of the standard."""

import numpy as np

# Blocks of `levels`: 0..15 luma in luma4x4BlkIdx order, then these. Level i of an 8x8 block, in scan order, is level i >> 2
# of block i & 3 of its quadrant, as CAVLC sends it (7.3.5.3.2).
CB_AC, CR_AC, LUMA_DC, CB_DC, CR_DC, N_LEVEL_BLOCKS = 16, 20, 24, 25, 26, 27

# The 41 partitions of a macroblock in search order: x, y, width, height in luma samples.
#   0..15 4x4 in raster order; 16.. 8x4, 24.. 4x8, 32.. 8x8 by quadrant; 36, 37 16x8; 38, 39 8x16; 40 16x16
_QUADRANTS = ((0, 0), (8, 0), (0, 8), (8, 8))
PARTITIONS = np.array(
    [(4 * (b % 4), 4 * (b // 4), 4, 4) for b in range(16)]
    + [(x, y + 4 * k, 8, 4) for x, y in _QUADRANTS for k in range(2)]
    + [(x + 4 * k, y, 4, 8) for x, y in _QUADRANTS for k in range(2)]
    + [(x, y, 8, 8) for x, y in _QUADRANTS]
    + [(0, 0, 16, 8), (0, 8, 16, 8), (0, 0, 8, 16), (8, 0, 8, 16), (0, 0, 16, 16)],
    np.int32,
)

# Choices of a B macroblock, each with the best entries and vectors of one or both lists: quadrants 0..3, both 16x8, both
# 8x16, and 16x16 from list 0, from list 1, from both.
B_QUADRANT, B_16x8_PARTITION, B_8x16_PARTITION, B_WHOLE, N_B_CHOICES = 0, 4, 6, 8, 11
# `b_extra`: true cost less SATD of 16x16 from list 0, list 1, both; of 16x8, 8x16, 8x8, each all its parts; of direct
# prediction.
B_EXTRA_16x8, B_EXTRA_8x16, B_EXTRA_8x8, B_EXTRA_DIRECT, N_B_EXTRAS = 3, 4, 5, 6, 7

COARSE_PAD = 80  # border of the coarse frames of search_centre, coarse samples: CAMERA_X macroblocks and its range
# Room for the bits of a macroblock on a GPU: at most 3200 of macroblock_layer() (A.3.1), mb_skip_run before them, alignment.
ENTRY_BYTES = 416
# frame_params: SliceQP_Y, cabac_init_idc; then N_WEIGHTS numbers for each of the first MOST_WEIGHTED entries of RefPicList0
# (8.4.2.3): LUMA_WEIGHTED + CHROMA_WEIGHTED, luma_log2_weight_denom, weight, offset; chroma_log2_weight_denom, weight and
# offset of Cb, of Cr; then numbers of both lists, each with places for MOST_LISTED entries: distances, distances of the frame
# before, slots, slots as the search sees them; implicit weights; then the bits of each slice header.
MOST_WEIGHTED, N_WEIGHTS = 2, 9
MOST_LISTED = 16  # entries of both lists together: those of a B frame have no frame in common
WEIGHTS, DISTANCES = 2, 2 + MOST_WEIGHTED * N_WEIGHTS
PREVIOUS_DISTANCES, SLOTS, SEARCHED_SLOTS, BI_WEIGHTS = (DISTANCES + k * MOST_LISTED for k in range(1, 5))
HEADER_BITS = BI_WEIGHTS + (MOST_LISTED // 2) ** 2
LUMA_WEIGHTED, CHROMA_WEIGHTED = 1, 2
AVERAGE = 32  # implicit weight of list 1, of 64, where both predictions count alike (8.4.2.3.1): the rounded average
# Sums of the source for the weights: side of a block, and one of how many lines counts. In large frames both are coarser,
# since it takes long to read their samples; small frames would have too few lines
SUM_BLOCK, SUM_LINES, SUM_BLOCK_OF_LARGE, SUM_LINES_OF_LARGE = 16, 4, 32, 16
SUM_SAMPLES = SUM_BLOCK * SUM_BLOCK // SUM_LINES  # of a block that count, in frames of any size
MOST_OF_SMALL = 2500  # macroblocks of a frame that is not large

# `scaling`, int16, what scaling.py makes of the scaling lists: SCALING_SET elements for intra, as many for inter
# macroblocks, SCALING_FINER. Of a set, by QP % 6: multipliers of the quantiser ([12, 64], the last six rows with 0 for the
# DC) and scaling factors ([6, 64]) of a strip of four blocks, in chroma Cb, Cb, Cr, Cr; both ([6, 16]) of one luma block;
# both ([6, 128]) of two 8x8 blocks by columns.
SCALING_MF, SCALING_FACTORS, SCALING_MF_CHROMA, SCALING_FACTORS_CHROMA = 0, 768, 1152, 1920
SCALING_MF_BLOCK, SCALING_FACTORS_BLOCK, SCALING_MF_8x8, SCALING_FACTORS_8x8, SCALING_SET = 2304, 2400, 2496, 3264, 4032
SCALING_FINER = 2 * SCALING_SET
# Then the lists themselves in scan order: of intra, of inter macroblocks Y, Cb, Cr (16 each), 8x8 (64)
SCALING_WEIGHTS, WEIGHTS_SET, WEIGHTS_8x8, SCALING_SIZE = SCALING_FINER + 16, 112, 48, SCALING_FINER + 16 + 2 * 112

# Bins of CABAC: uint16, ctxIdx << 1 | binVal; these stand for ctxIdx in bypass bins and before end_of_slice_flag and I_PCM.
BYPASS, TERMINATE = 1024, 1025
# Room for the bins of a macroblock: 408 levels of at most 48 bins, 32 components of vectors of at most 40, modes and flags.
MOST_BINS = 24576

# Types of the RGB samples that convert.py takes.
RGB_DTYPES = ("uint8", "float16", "bfloat16", "float32", "float64")


def sum_block(width: int, height: int) -> tuple[int, int]:
    """SUM_BLOCK and SUM_LINES of a frame with this width and height in samples."""
    is_large = -(-width // 16) * -(-height // 16) > MOST_OF_SMALL
    return (SUM_BLOCK_OF_LARGE, SUM_LINES_OF_LARGE) if is_large else (SUM_BLOCK, SUM_LINES)


def n_sum_blocks(width: int, height: int) -> int:
    """Blocks of Y, Cb and Cr."""
    block, _ = sum_block(width, height)
    return -(-width // block) * -(-height // block) + 2 * (-(-width // (2 * block)) * -(-height // (2 * block)))
