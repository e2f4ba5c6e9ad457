"""How the decoder lays out its state: names of slice parameters, macroblock types and arrays; shapes, dtypes, units.

A slice is decoded in three walks over its macroblocks, each a kernel: parsing (7.3.4), motion (8.4.1) and
reconstruction (8.3, 8.4.2, 8.5). What one walk leaves for the next lies in arrays over the picture: by macroblock
address, or as a grid of 4x4 blocks (`[y4, x4]`) or 8x8 blocks (`[y8, x8]`), so that a neighbour is one step away.
"""

from typing import NamedTuple

import numpy as np

from ..jit.kernel import helper
from ..standard.macroblock import LAST_INTRA, P_SKIP, B_8x16, B_16x8, B_16x16, P_8x16, P_16x8, P_16x16

SUB_DIRECT = 4  # beside SUB_8x8 .. SUB_4x4 of standard/macroblock.py


@helper
def is_intra(mb_type):
    """Whether a macroblock is predicted within the picture."""
    return mb_type <= LAST_INTRA


@helper
def partition_size(mb_type):
    """Rows and columns, in 4x4 blocks, of an inter macroblock's partitions; 2, 2 where each quadrant says its own."""
    if mb_type == P_SKIP or mb_type == P_16x16 or mb_type == B_16x16:
        return 4, 4
    if mb_type == P_16x8 or mb_type == B_16x8:
        return 2, 4
    if mb_type == P_8x16 or mb_type == B_8x16:
        return 4, 2
    return 2, 2


# Slice types as kernels know them (Table 7-6, modulo 5).
SLICE_P, SLICE_B, SLICE_I = range(3)

# Weighted prediction of a slice (8.4.2.3).
WEIGHT_DEFAULT, WEIGHT_EXPLICIT, WEIGHT_IMPLICIT = range(3)

# Indices into the slice parameters, int64[N_PARAMETERS].
(
    P_SLICE_TYPE,
    P_FIRST_MB,  # address of the first macroblock
    P_END_MB,  # one beyond the last, known after parsing
    P_SLICE_ID,  # number of the slice in the picture
    P_MB_WIDTH,
    P_ROWS_PER_MB,  # 1 / P_MB_WIDTH, rounded up, in 2 ** -40: place.py
    P_N_MB,  # macroblocks of the picture
    P_QP,  # SliceQP_Y
    P_REFS_0,  # num_ref_idx_l0_active, 0 in I slices
    P_REFS_1,
    P_TRANSFORM_8x8,  # transform_8x8_mode_flag
    P_CONSTRAINED_INTRA,  # constrained_intra_pred_flag
    P_SPATIAL_DIRECT,  # direct_spatial_mv_pred_flag
    P_DIRECT_8x8,  # direct_8x8_inference_flag
    P_CB_OFFSET,  # chroma_qp_index_offset
    P_CR_OFFSET,  # second_chroma_qp_index_offset
    P_WEIGHTING,
    P_LUMA_DENOM,  # luma_log2_weight_denom
    P_CHROMA_DENOM,
    P_CABAC,  # entropy_coding_mode_flag
    P_CABAC_INIT,  # cabac_init_idc; 3 in I slices
    P_SLOT,  # of the current picture in the pool
    P_COL_SLOT,  # of RefPicList1[0]; -1 where there is none
    P_COL_SHORT,  # RefPicList1[0] is a short-term reference
    N_PARAMETERS,
) = range(25)


def rows_per_mb(mb_width: int) -> int:
    """P_ROWS_PER_MB of a picture of `mb_width` macroblocks a row."""
    return (1 << 40) // mb_width + 1


# Indices into the reader's state, int64[N_STATE].
(
    S_POS,  # bits of the RBSP read so far
    S_END,  # position of rbsp_stop_one_bit
    S_ERROR,  # 0, or the first error
    S_MB,  # address of the macroblock at work
    S_QP,  # QP_Y of the macroblock before
    S_QP_DELTA,  # whether mb_qp_delta of the macroblock before was not 0 (9.3.3.1.1.5)
    S_RANGE,  # codIRange
    S_OFFSET,  # codIOffset, with S_BITS more bits below it
    S_BITS,
    S_VALUES,  # scratch: levels or positions of the block at work, up to 64
) = range(10)
N_STATE = S_VALUES + 64

# Columns of the slice table, int32[n_slices, N_SLICE_COLUMNS]: what deblocking needs of a macroblock's slice.
SLICE_DISABLE, SLICE_ALPHA, SLICE_BETA, SLICE_CB, SLICE_CR, N_SLICE_COLUMNS = range(6)

# Kinds of bits of a macroblock: mb_skip, mb_type, intra modes, end_of_slice_flag; sub_mb_type, ref_idx, mvd;
# coded_block_pattern, transform_size_8x8_flag, mb_qp_delta; luma levels with coded_block_flag or coeff_token; chroma levels.
# Of I_PCM the samples.
KIND_TYPE, KIND_MOTION, KIND_CODED, KIND_LUMA, KIND_CHROMA, N_KINDS = range(6)

NO_SLICE = -1  # slice_id of a macroblock that is not decoded
LEVELS_PER_MB = 512  # 256 luma, 256 chroma; how they lie: transform.py


class Macroblocks(NamedTuple):
    """State of the picture at work only; H4, W4: its size in 4x4 blocks, H8, W8: in 8x8 blocks."""

    slice_id: np.ndarray  # int32[n_mb], NO_SLICE before it is decoded
    mb_type: np.ndarray  # uint8[n_mb]
    sub_type: np.ndarray  # uint8[n_mb, 4], per 8x8 quadrant; SUB_DIRECT also throughout B_Skip and B_Direct_16x16
    transform_8x8: np.ndarray  # uint8[n_mb], transform_size_8x8_flag
    cbp: np.ndarray  # uint8[n_mb], bits 0-3 luma quadrants, bits 4-5 chroma
    qp: np.ndarray  # uint8[n_mb], QP_Y; 0 for I_PCM, as deblocking takes it (8.7.2.2)
    intra16x16_mode: np.ndarray  # uint8[n_mb]
    chroma_mode: np.ndarray  # uint8[n_mb], intra_chroma_pred_mode
    intra_mode: np.ndarray  # int8[H4, W4]; parsed: -1 = predicted, else rem_intra_pred_mode; then the mode itself
    nonzero: np.ndarray  # uint8[H4, W4], total_coeff of luma blocks; 16 in I_PCM
    nonzero_chroma: np.ndarray  # uint8[2, H8, W8], total_coeff of the 4x4 chroma blocks
    dc_coded: np.ndarray  # uint8[n_mb], coded_block_flag of the DC blocks: bit 0 luma, 1 Cb, 2 Cr (CABAC)
    mvd: np.ndarray  # int16[2, H4, W4, 2], quarter samples (x, y)
    levels: np.ndarray  # int16[n_mb, LEVELS_PER_MB], zero again after use
    bits: np.ndarray  # int32[n_mb], of the slice data, whose size their sum is (slice_data.py)
    bits_by_kind: np.ndarray  # int32[n_mb, N_KINDS] in 1 / UNIT bits
    contexts: np.ndarray  # uint8[N_CONTEXTS], of CABAC: pStateIdx << 1 | valMPS


class Motion(NamedTuple):
    """Motion of all pictures of the pool, for co-located blocks too (8.4.1.2.1)."""

    mv: np.ndarray  # int16[slots, 2, H4, W4, 2], quarter samples (x, y); undefined where the list is not used
    ref_idx: np.ndarray  # int8[slots, 2, H8, W8]; -1 = list not used
    ref_id: np.ndarray  # int32[slots, 2, H8, W8], number of the reference picture; -1 = list not used


class References(NamedTuple):
    """The reference lists of a slice, as kernels need them."""

    slots: np.ndarray  # int32[2, 32], slot in the pool; -1 = no such picture
    ids: np.ndarray  # int32[2, 32], number of the picture (Picture.id)
    weights: np.ndarray  # int32[2, 32, 3, 2]: list, ref_idx, (Y, Cb, Cr), (weight, offset) (8.4.2.3)
    implicit: np.ndarray  # int32[32, 32]: w1 of implicit weighting by refIdxL0, refIdxL1; w0 = 64 - w1
    scale: np.ndarray  # int32[32]: DistScaleFactor of temporal direct by refIdxL0; 9999 = long-term (8.4.1.2.3)


class Planes(NamedTuple):
    """Samples of all pictures of the pool."""

    y: np.ndarray  # Sample[slots, H, W]
    u: np.ndarray  # Sample[slots, H / 2, W / 2]
    v: np.ndarray  # Sample[slots, H / 2, W / 2]


class Traces(NamedTuple):
    """What else is kept of the picture at work where its decoder's observer asks for it; else all arrays are empty."""

    y: np.ndarray  # Sample[H, W], prediction before the residual is added; of I_PCM its samples
    u: np.ndarray  # Sample[H / 2, W / 2]
    v: np.ndarray  # Sample[H / 2, W / 2]
    energy: np.ndarray  # int32[n_mb], sum of squares of luma samples before deblocking minus prediction
    strengths: np.ndarray  # uint8[2, H4, W4], bS of the left (0) and upper (1) edge of each 4x4 block, 0 where not filtered
