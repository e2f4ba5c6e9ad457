// Bits of syntax elements in decisions, by CAVLC: twin of cpu_simd/costs/bit_costs.py. Constant estimates (BITS_*): decisions/.
#pragma once
#include "decisions/common.cuh"
#include "simd.cuh"

// Lambda of macroblock mb. qp: uint8[n_mb], QP_Y
DEVICE int lambda_of(const uint8_t *qp, int mb) { return LAMBDA[__ldg(qp + mb)]; }

// 9.1, 9.1.1: lengths of ue(v) and se(v)
DEVICE int ue_bits(int code_num) { return 2 * (32 - __clz(code_num + 1)) - 1; }
DEVICE int se_bits(int v) { return 65 - 2 * __clz(abs(v)); }

// Both components of a motion vector difference
DEVICE int mvd_bits(int x, int y) { return se_bits(x) + se_bits(y); }

// ref_idx_l0, te(v); `most`: by the number of references
DEVICE int most_ref_idx_bits(int n_ref) { return n_ref <= 1 ? 0 : n_ref == 2 ? 1 : 32; }
DEVICE int ref_idx_bits(int ref, int most) { return min(ue_bits(ref), most); }

// Table 7-17: sub_mb_type of a P macroblock
DEVICE int sub_type_bits(int sub_mb_type) { return ue_bits(sub_mb_type); }

// Table 7-13: mb_type I_NxN, and I_16x16 without residual in its mode, in a P frame
DEVICE int intra_4x4_type_bits() { return ue_bits(5); }
DEVICE int intra_16x16_type_bits(int mode) { return ue_bits(6 + mode); }

// prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode
DEVICE int mode_4x4_bits(bool predicted) { return predicted ? 1 : 4; }

// The mode of I_16x16 (luma: 1; mb_type without residual, Table 7-11) or of chroma (0) in 0..3
DEVICE int i_frame_mode_bits(int luma, int mode) { return ue_bits(luma + mode); }
