"""Tables 7-x, 8-x and 9-4 of the standard as NumPy arrays, each under its number; lengths of Exp-Golomb codes."""

import numpy as np

# ---------------------------------------------------------------------------------------------------------------------
# Scans (8.5.6, 8.5.7)
# ---------------------------------------------------------------------------------------------------------------------

# Table 8-13, Figure 8-8 a): zig-zag scan of a 4x4 block (frame macroblocks): scan index -> raster position y * 4 + x.
ZIGZAG_4x4 = np.array([
    0, 1, 4, 8,
    5, 2, 3, 6,
    9, 12, 13, 10,
    7, 11, 14, 15,
], np.int32)  # fmt: skip

# Table 8-14: zig-zag scan of an 8x8 block (frame macroblocks): scan index -> raster position y * 8 + x.
ZIGZAG_8x8 = np.array([
     0,  1,  8, 16,  9,  2,  3, 10,
    17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46,
    53, 60, 61, 54, 47, 55, 62, 63,
], np.int32)  # fmt: skip

# The other way: raster position -> scan index.
ZIGZAG_4x4_INVERSE = np.argsort(ZIGZAG_4x4).astype(np.int32)
ZIGZAG_8x8_INVERSE = np.argsort(ZIGZAG_8x8).astype(np.int32)

# ---------------------------------------------------------------------------------------------------------------------
# Default scaling lists (7.4.2.1.1.1), in scan order
# ---------------------------------------------------------------------------------------------------------------------

FLAT_4x4_16 = np.full(16, 16, np.int32)
FLAT_8x8_16 = np.full(64, 16, np.int32)

# Table 7-3: Default_4x4_Intra, Default_4x4_Inter
DEFAULT_4x4_INTRA = np.array([6, 13, 13, 20, 20, 20, 28, 28, 28, 28, 32, 32, 32, 37, 37, 42], np.int32)
DEFAULT_4x4_INTER = np.array([10, 14, 14, 20, 20, 20, 24, 24, 24, 24, 27, 27, 27, 30, 30, 34], np.int32)

# Table 7-4: Default_8x8_Intra, Default_8x8_Inter
DEFAULT_8x8_INTRA = np.array([
     6, 10, 10, 13, 11, 13, 16, 16, 16, 16, 18, 18, 18, 18, 18, 23,
    23, 23, 23, 23, 23, 25, 25, 25, 25, 25, 25, 25, 27, 27, 27, 27,
    27, 27, 27, 27, 29, 29, 29, 29, 29, 29, 29, 31, 31, 31, 31, 31,
    31, 33, 33, 33, 33, 33, 36, 36, 36, 36, 38, 38, 38, 40, 40, 42,
], np.int32)  # fmt: skip
DEFAULT_8x8_INTER = np.array([
     9, 13, 13, 15, 13, 15, 17, 17, 17, 17, 19, 19, 19, 19, 19, 21,
    21, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 24, 24, 24, 24,
    24, 24, 24, 24, 25, 25, 25, 25, 25, 25, 25, 27, 27, 27, 27, 27,
    27, 28, 28, 28, 28, 28, 30, 30, 30, 30, 32, 32, 32, 33, 33, 35,
], np.int32)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# Quantisation (8.5.8, 8.5.9)
# ---------------------------------------------------------------------------------------------------------------------

# Table 8-15: QP_C as a function of qP_I (0..51)
QP_CHROMA = np.array([
     0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 29, 30,
    31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38,
    39, 39, 39, 39,
], np.int32)  # fmt: skip

# 8.5.9: v of normAdjust4x4(m, i, j), rows m = qP % 6.
#   column 0: i and j even    column 1: i and j odd    column 2: otherwise
_NORM_4x4 = np.array([
    [10, 16, 13],
    [11, 18, 14],
    [13, 20, 16],
    [14, 23, 18],
    [16, 25, 20],
    [18, 29, 23],
], np.int32)  # fmt: skip

# 8.5.9: v of normAdjust8x8(m, i, j), rows m = qP % 6.
#   0: i % 4 = j % 4 = 0    1: i % 2 = j % 2 = 1    2: i % 4 = j % 4 = 2
#   3: one % 4 = 0, other odd    4: one % 4 = 0, other % 4 = 2    5: otherwise
_NORM_8x8 = np.array([
    [20, 18, 32, 19, 25, 24],
    [22, 19, 35, 21, 28, 26],
    [26, 23, 42, 24, 33, 31],
    [28, 25, 45, 26, 35, 33],
    [32, 28, 51, 30, 40, 38],
    [36, 32, 58, 34, 46, 43],
], np.int32)  # fmt: skip

# Forward multipliers of an encoder, 2^(15 + qP / 6) / (normAdjust4x4 * the forward transform's norm), columns as above.
_FORWARD_4x4 = np.array([
    [13107, 5243, 8066],
    [11916, 4660, 7490],
    [10082, 4194, 6554],
    [9362, 3647, 5825],
    [8192, 3355, 5243],
    [7282, 2893, 4559],
], np.int32)  # fmt: skip


def _position_class_4x4(i: int, j: int) -> int:
    """8.5.9: which column of normAdjust4x4 holds position (i, j)."""
    if i % 2 == 0 and j % 2 == 0:
        return 0
    return 1 if i % 2 == 1 and j % 2 == 1 else 2


def _position_class_8x8(i: int, j: int) -> int:
    """8.5.9: which column of normAdjust8x8 holds position (i, j)."""
    if i % 4 == 0 and j % 4 == 0:
        return 0
    if i % 2 == 1 and j % 2 == 1:
        return 1
    if i % 4 == 2 and j % 4 == 2:
        return 2
    if (i % 4 == 0 and j % 2 == 1) or (i % 2 == 1 and j % 4 == 0):
        return 3
    if (i % 4 == 0 and j % 4 == 2) or (i % 4 == 2 and j % 4 == 0):
        return 4
    return 5


_CLASSES_4x4 = np.array([_position_class_4x4(i, j) for i in range(4) for j in range(4)])
_CLASSES_8x8 = np.array([_position_class_8x8(i, j) for i in range(8) for j in range(8)])

NORM_ADJUST_4x4 = np.ascontiguousarray(_NORM_4x4[:, _CLASSES_4x4])  # int32[6, 16]: [qP % 6, raster y * 4 + x]
NORM_ADJUST_8x8 = np.ascontiguousarray(_NORM_8x8[:, _CLASSES_8x8])  # int32[6, 64]: [qP % 6, raster y * 8 + x]
QUANT_MF = np.ascontiguousarray(_FORWARD_4x4[:, _CLASSES_4x4])  # int32[6, 16]: [qP % 6, raster y * 4 + x]


def _forward_8x8() -> np.ndarray:
    """Forward multipliers of an encoder, 2^(16 + qP / 6) / (step * the forward transform's norm), rounded; int32[6, 64].

    8.5.13 with flat lists scales a level by normAdjust8x8 * 2^(qP / 6) / 4 and divides by 64 after the inverse transform, and
    forward and inverse transform together multiply position (i, j) by n_i n_j, the squared norms of the basis 8, 289 / 32, 5,
    289 / 32 ...: 2^16 * 4 * 64 / (normAdjust8x8 n_i n_j), between 6428 and 20972.
    """
    norms = np.array([256, 289, 160, 289, 256, 289, 160, 289], np.int64)  # in units of 1 / 32
    divisors = NORM_ADJUST_8x8 * np.outer(norms, norms).reshape(64)
    return ((2 * (1 << 34) + divisors) // (2 * divisors)).astype(np.int32)


QUANT_MF_8x8 = _forward_8x8()  # int32[6, 64]: [qP % 6, raster y * 8 + x]


def level_scale_4x4(scaling_list: np.ndarray = FLAT_4x4_16) -> np.ndarray:
    """8.5.9: LevelScale4x4, int32[6, 16] ([qP % 6, raster]), from a list in scan order (flat: 16 * normAdjust4x4)."""
    return (NORM_ADJUST_4x4 * np.asarray(scaling_list, np.int32)[ZIGZAG_4x4_INVERSE]).astype(np.int32)


def level_scale_8x8(scaling_list: np.ndarray = FLAT_8x8_16) -> np.ndarray:
    """8.5.9: LevelScale8x8, int32[6, 64] ([qP % 6, raster]), from a list in scan order (flat: 16 * normAdjust8x8)."""
    return (NORM_ADJUST_8x8 * np.asarray(scaling_list, np.int32)[ZIGZAG_8x8_INVERSE]).astype(np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# Fractional samples (8.4.2.2.1)
# ---------------------------------------------------------------------------------------------------------------------

# Table 8-12 with the formulas of 8.4.2.2.1: a quarter sample is the rounded-up average of two samples of the planes
# 0 = G (integer), 1 = b (half horizontal), 2 = h (half vertical), 3 = j (centre); a half or integer sample is the
# average of a sample with itself. Row yFrac * 4 + xFrac: plane, dx, dy of the one; plane, dx, dy of the other.
#   G a b c
#   d e f g
#   h i j k
#   n p q r
QUARTER_SAMPLE_PAIRS = np.array([
    (0, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0), (1, 0, 0, 1, 0, 0), (0, 1, 0, 1, 0, 0),
    (0, 0, 0, 2, 0, 0), (1, 0, 0, 2, 0, 0), (1, 0, 0, 3, 0, 0), (1, 0, 0, 2, 1, 0),
    (2, 0, 0, 2, 0, 0), (2, 0, 0, 3, 0, 0), (3, 0, 0, 3, 0, 0), (3, 0, 0, 2, 1, 0),
    (0, 0, 1, 2, 0, 0), (2, 0, 0, 1, 0, 1), (3, 0, 0, 1, 0, 1), (2, 1, 0, 1, 0, 1),
], np.int32)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# Deblocking (8.7.2.2, 8.7.2.3)
# ---------------------------------------------------------------------------------------------------------------------

# Table 8-16: alpha'(indexA), beta'(indexB), indices 0..51
ALPHA = np.array([
      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
      4,   4,   5,   6,   7,   8,   9,  10,  12,  13,  15,  17,  20,  22,  25,  28,
     32,  36,  40,  45,  50,  56,  63,  71,  80,  90, 101, 113, 127, 144, 162, 182,
    203, 226, 255, 255,
], np.int32)  # fmt: skip
BETA = np.array([
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     2,  2,  2,  3,  3,  3,  3,  4,  4,  4,  6,  6,  7,  7,  8,  8,
     9,  9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16,
    17, 17, 18, 18,
], np.int32)  # fmt: skip

# Table 8-17: t'C0 as a function of indexA and bS; int32[4, 52], row bS (row 0 is not used)
TC0 = np.array([
    [0] * 52,
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
     1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 13],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1,
     1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 8, 10, 11, 12, 13, 15, 17],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1,
     1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 13, 14, 16, 18, 20, 23, 25],
], np.int32)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# Macroblock types (7.4.5, 7.4.5.2)
# ---------------------------------------------------------------------------------------------------------------------

# Prediction modes: bit 0 = list 0, bit 1 = list 1.
PRED_NONE, PRED_L0, PRED_L1, PRED_BI = range(4)

# Table 7-11: mb_type of I slices. 0 I_NxN; 1..24 I_16x16; 25 I_PCM.
I_NxN_TYPE, I_PCM_TYPE = 0, 25
# Rows mb_type 1..24 at index mb_type: Intra16x16PredMode, CodedBlockPatternChroma, CodedBlockPatternLuma
I_16x16_TYPES = np.array(
    [(-1, -1, -1)] + [(mode, chroma, luma) for luma in (0, 15) for chroma in range(3) for mode in range(4)], np.int32
)

# Table 7-13: mb_type of P slices; intra types follow from P_INTRA_OFFSET on.
#   P_L0_16x16, P_L0_L0_16x8, P_L0_L0_8x16, P_8x8, P_8x8ref0
P_16x16_TYPE, P_16x8_TYPE, P_8x16_TYPE, P_8x8_TYPE, P_8x8REF0_TYPE = range(5)
P_INTRA_OFFSET = 5

# Table 7-14: mb_type of B slices 0..22: NumMbPart, MbPartWidth, MbPartHeight, mode of partition 0, mode of partition 1.
# 0 B_Direct_16x16; 22 B_8x8; intra types follow from B_INTRA_OFFSET on.
B_MB_TYPES = np.array([
    (0,  8,  8, PRED_NONE, PRED_NONE),  # B_Direct_16x16
    (1, 16, 16, PRED_L0, PRED_NONE),
    (1, 16, 16, PRED_L1, PRED_NONE),
    (1, 16, 16, PRED_BI, PRED_NONE),
    (2, 16,  8, PRED_L0, PRED_L0),  # 4
    (2,  8, 16, PRED_L0, PRED_L0),
    (2, 16,  8, PRED_L1, PRED_L1),
    (2,  8, 16, PRED_L1, PRED_L1),
    (2, 16,  8, PRED_L0, PRED_L1),  # 8
    (2,  8, 16, PRED_L0, PRED_L1),
    (2, 16,  8, PRED_L1, PRED_L0),
    (2,  8, 16, PRED_L1, PRED_L0),
    (2, 16,  8, PRED_L0, PRED_BI),  # 12
    (2,  8, 16, PRED_L0, PRED_BI),
    (2, 16,  8, PRED_L1, PRED_BI),
    (2,  8, 16, PRED_L1, PRED_BI),
    (2, 16,  8, PRED_BI, PRED_L0),  # 16
    (2,  8, 16, PRED_BI, PRED_L0),
    (2, 16,  8, PRED_BI, PRED_L1),
    (2,  8, 16, PRED_BI, PRED_L1),
    (2, 16,  8, PRED_BI, PRED_BI),  # 20
    (2,  8, 16, PRED_BI, PRED_BI),
    (4,  8,  8, PRED_NONE, PRED_NONE),  # B_8x8
], np.int32)  # fmt: skip
B_DIRECT_TYPE, B_8x8_TYPE, B_INTRA_OFFSET = 0, 22, 23

# Table 7-18: sub_mb_type of B macroblocks: NumSubMbPart, SubMbPartWidth, SubMbPartHeight, prediction mode
B_SUB_MB_TYPES = np.array([
    (4, 4, 4, PRED_NONE),  # B_Direct_8x8
    (1, 8, 8, PRED_L0),
    (1, 8, 8, PRED_L1),
    (1, 8, 8, PRED_BI),
    (2, 8, 4, PRED_L0),  # 4
    (2, 4, 8, PRED_L0),
    (2, 8, 4, PRED_L1),
    (2, 4, 8, PRED_L1),
    (2, 8, 4, PRED_BI),  # 8
    (2, 4, 8, PRED_BI),
    (4, 4, 4, PRED_L0),
    (4, 4, 4, PRED_L1),
    (4, 4, 4, PRED_BI),  # 12
], np.int32)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# Exp-Golomb codes (9.1)
# ---------------------------------------------------------------------------------------------------------------------

# Table 9-4 a): codeNum -> coded_block_pattern for ChromaArrayType 1 or 2
CBP_INTRA = np.array([  # Intra_4x4, Intra_8x8
    47, 31, 15,  0, 23, 27, 29, 30,  7, 11, 13, 14, 39, 43, 45, 46,
    16,  3,  5, 10, 12, 19, 21, 26, 28, 35, 37, 42, 44,  1,  2,  4,
     8, 17, 18, 20, 24,  6,  9, 22, 25, 32, 33, 34, 36, 40, 38, 41,
], np.int32)  # fmt: skip
CBP_INTER = np.array([
     0, 16,  1,  2,  4,  8, 32,  3,  5, 10, 12, 15, 47,  7, 11, 13,
    14,  6,  9, 31, 35, 37, 42, 44, 33, 34, 36, 40, 39, 43, 45, 46,
    17, 18, 20, 24, 19, 21, 26, 28, 23, 27, 29, 30, 22, 25, 38, 41,
], np.int32)  # fmt: skip
# The other way: coded_block_pattern -> codeNum
CBP_INTRA_CODE = np.argsort(CBP_INTRA).astype(np.int32)
CBP_INTER_CODE = np.argsort(CBP_INTER).astype(np.int32)

# 9.1: length in bits of ue(v) by codeNum
UE_BITS = (2 * np.floor(np.log2(np.arange(1, 65538))).astype(np.int32) + 1).astype(np.uint8)  # codeNum 0..65536
