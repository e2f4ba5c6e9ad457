// Inter macroblocks of B frames.
#include "residual/inter_residual.cuh"

#define LIST_1 , signed char *ref_idx1, short2 *mv1, const int *__restrict__ bi_weights, int n_ref, int n_ref1
#define OF_LIST_1 (List1{ref_idx1, mv1, bi_weights, n_ref, n_ref1})
INTER_RESIDUAL(inter_residual_b, false, false, FlatScaling{}, OF_LIST_1, OneQp{}, LIST_1, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_b_8x8, true, false, FlatScaling{}, OF_LIST_1, OneQp{}, LIST_1, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_b_trellis, false, true, FlatScaling{}, OF_LIST_1, OneQp{}, LIST_1, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_b_8x8_trellis, true, true, FlatScaling{}, OF_LIST_1, OneQp{}, LIST_1, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_b_lists, false, false, (ListScaling{scaling, 0}), OF_LIST_1, OneQp{}, LIST_1 SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_b_8x8_lists, true, false, (ListScaling{scaling, 0}), OF_LIST_1, OneQp{}, LIST_1 SCALING, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_b_trellis_lists, false, true, (ListScaling{scaling, 0}), OF_LIST_1, OneQp{}, LIST_1 SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_b_8x8_trellis_lists, true, true, (ListScaling{scaling, 0}), OF_LIST_1, OneQp{}, LIST_1 SCALING, 32 * WARPS<true>, RESIDENT)
