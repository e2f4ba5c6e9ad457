"""Bits of syntax elements in decisions, by CAVLC: codes are counted or estimated here, and nowhere else in decisions.

Constant estimates (BITS_*) are in decisions/. The twin for GPUs is cuda_src/costs/bit_costs.cuh.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.tables import CBP_INTER_CODE, UE_BITS
from ..entropy.cavlc import bit_position, put, put_ue
from ..entropy.cavlc_macroblock import put_inter, put_residual
from ..simd.lanes import bit_length

# Upper bound of a macroblock: 384 levels of 28 bits, tokens, zeros and runs of 27 blocks, 32 vector differences.
MACROBLOCK_BYTES = 2048
_MODE_BITS = UE_BITS[:5].copy()  # of ue(0..4)


@helper
def ue_bits(code_num):
    """9.1: length in bits of ue(v)."""
    return 2 * bit_length(code_num + 1) - 1


@helper
def se_bits(value):
    """9.1.1: length in bits of se(v)."""
    return 2 * bit_length(abs(value)) + 1


@helper
def mvd_bits(x, y, px, py):
    """Bits of both motion vector difference components of (x, y) against the predictor (px, py), quarter samples."""
    return se_bits(x - px) + se_bits(y - py)


@helper
def ref_idx_bits(ref, n_ref):
    """9.1: bits of ref_idx_l0, te(v): 0 with one reference, 1 with two."""
    if n_ref <= 1:
        return 0
    if n_ref == 2:
        return 1
    return ue_bits(ref)


@helper
def sub_type_bits(sub_mb_type):
    """Table 7-17: bits of sub_mb_type of a P macroblock."""
    return ue_bits(sub_mb_type)


@helper
def intra_4x4_type_bits():
    """Table 7-13: bits of mb_type I_NxN in a P frame."""
    return ue_bits(5)


@helper
def intra_16x16_type_bits(mode):
    """Table 7-13: bits of mb_type I_16x16 without residual, with Intra16x16PredMode `mode`, in a P frame."""
    return ue_bits(6 + mode)


@helper
def mode_4x4_bits(mode, predicted):
    """7.3.5.1: bits of prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode."""
    return 1 if mode == predicted else 4


@helper
def i_frame_mode_bits(luma, mode):
    """Bits of the mode of I_16x16 (luma; mb_type without residual, Table 7-11) or of intra_chroma_pred_mode, modes 0..3."""
    return np.int64(_MODE_BITS[luma + mode])


@helper
def macroblock_bits(mb, pattern, n_ref, motion, residual, mb_width, first_mb, bytes_out, sink):
    """7.3.5: bits of macroblock_layer() of an inter macroblock and of mb_skip_run 0 before it, counted by writing them.

    Bundles: Motion, Residual. pattern: its coded_block_pattern; bytes_out: uint8[MACROBLOCK_BYTES], sink: int64[3], scratch.
    """
    sub_mb_type, ref_idx, mv = motion.sub_mb_type, motion.ref_idx, motion.mv
    levels, total_coeff = residual.levels, residual.total_coeff
    sink[0] = sink[1] = sink[2] = 0
    mb_type = np.int64(motion.mb_type[mb])
    put(bytes_out, sink, 1, 1)
    put_inter(bytes_out, sink, mb, mb_type, n_ref, sub_mb_type, ref_idx, mv, mb_width, first_mb)
    put_ue(bytes_out, sink, np.int64(CBP_INTER_CODE[pattern]))
    if pattern > 0:
        put(bytes_out, sink, 1, 1)  # mb_qp_delta
        put_residual(
            bytes_out,
            sink,
            8 * MACROBLOCK_BYTES,
            mb,
            mb_type,
            pattern,
            levels,
            total_coeff,
            mb % mb_width > 0 and mb > first_mb,
            mb - mb_width >= first_mb,
            mb_width,
        )
    return bit_position(sink)
