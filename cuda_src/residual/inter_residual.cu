// Inter macroblocks of P frames.
#include "residual/inter_residual.cuh"

INTER_RESIDUAL(inter_residual, false, false, FlatScaling{}, NoList1{}, OneQp{}, NO_MORE, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8, true, false, FlatScaling{}, NoList1{}, OneQp{}, NO_MORE, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_trellis, false, true, FlatScaling{}, NoList1{}, OneQp{}, NO_MORE, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_trellis, true, true, FlatScaling{}, NoList1{}, OneQp{}, NO_MORE, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_lists, false, false, (ListScaling{scaling, 0}), NoList1{}, OneQp{}, SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_lists, true, false, (ListScaling{scaling, 0}), NoList1{}, OneQp{}, SCALING, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_trellis_lists, false, true, (ListScaling{scaling, 0}), NoList1{}, OneQp{}, SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_trellis_lists, true, true, (ListScaling{scaling, 0}), NoList1{}, OneQp{}, SCALING, 32 * WARPS<true>, RESIDENT)
