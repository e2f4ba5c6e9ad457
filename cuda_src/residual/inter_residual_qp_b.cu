// Inter macroblocks of B frames, each with a QP near its own that costs least.
#include "residual/inter_residual.cuh"

#define MORE , signed char *ref_idx1, short2 *mv1, const int *__restrict__ bi_weights, int n_ref, int n_ref1, uint8_t *chosen_qp, int least_qp, int most_qp
#define OF_LIST_1 (List1{ref_idx1, mv1, bi_weights, n_ref, n_ref1})
#define OF_QPS (NearQps{chosen_qp, least_qp, most_qp})
INTER_RESIDUAL(inter_residual_qp_b, false, true, FlatScaling{}, OF_LIST_1, OF_QPS, MORE, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_qp_b_8x8, true, true, FlatScaling{}, OF_LIST_1, OF_QPS, MORE, 32 * WARPS<true>, RESIDENT_OF_QPS)
INTER_RESIDUAL(inter_residual_qp_b_lists, false, true, (ListScaling{scaling, 0}), OF_LIST_1, OF_QPS, MORE SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_qp_b_8x8_lists, true, true, (ListScaling{scaling, 0}), OF_LIST_1, OF_QPS, MORE SCALING, 32 * WARPS<true>, RESIDENT_OF_QPS)
