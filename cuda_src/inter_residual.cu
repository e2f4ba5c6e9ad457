// Inter macroblocks of P frames.
#include "inter_residual.cuh"

INTER_RESIDUAL(inter_residual, false, false, FlatLists{}, NoList1{}, NO_MORE, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8, true, false, FlatLists{}, NoList1{}, NO_MORE, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_trellis, false, true, FlatLists{}, NoList1{}, NO_MORE, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_trellis, true, true, FlatLists{}, NoList1{}, NO_MORE, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_lists, false, false, (GivenLists{scaling, 0}), NoList1{}, SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_lists, true, false, (GivenLists{scaling, 0}), NoList1{}, SCALING, 32 * WARPS<true>, RESIDENT)
INTER_RESIDUAL(inter_residual_trellis_lists, false, true, (GivenLists{scaling, 0}), NoList1{}, SCALING, 32 * WARPS<false>)
INTER_RESIDUAL(inter_residual_8x8_trellis_lists, true, true, (GivenLists{scaling, 0}), NoList1{}, SCALING, 32 * WARPS<true>, RESIDENT)
