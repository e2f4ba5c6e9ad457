// Inter macroblocks of P frames, each with a QP near its own that costs least.
#include "residual/inter_residual.cuh"

#define QPS , uint8_t *chosen_qp, int least_qp, int most_qp
#define OF_QPS (NearQps{chosen_qp, least_qp, most_qp})
INTER_RESIDUAL(inter_residual_qp, false, true, FlatScaling{}, NoList1{}, OF_QPS, QPS, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_qp_8x8, true, true, FlatScaling{}, NoList1{}, OF_QPS, QPS, 32 * WARPS<true>, RESIDENT_OF_QPS)
INTER_RESIDUAL(inter_residual_qp_lists, false, true, (ListScaling{scaling, 0}), NoList1{}, OF_QPS, QPS SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_qp_8x8_lists, true, true, (ListScaling{scaling, 0}), NoList1{}, OF_QPS, QPS SCALING, 32 * WARPS<true>, RESIDENT_OF_QPS)
