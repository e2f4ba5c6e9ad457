// The QP that a decoder has for each macroblock, where QP varies within frames (7.4.5).
#include "quantiser/decoded_qp_launch.cuh"
#include "simd.cuh"
#include "tables.cuh"

DEVICE bool has_delta(const uint8_t *mb_type, const uint8_t *cbp, int mb) {
  return mb_type[mb] == I_16x16 || (mb_type[mb] != I_PCM && cbp[mb]);
}

DEVICE int greatest_so_far(int value) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(FULL_WARP, value, unsigned(step));
    if (lane >= step) value = max(value, other);
  }
  return value;
}

// Macroblocks [mb0, mb1), whole slices; one block. The QP of a macroblock is set by the last one, up to itself, that has
// mb_qp_delta or begins a slice: the greatest such address, found over the threads, each with consecutive macroblocks. Those that
// set a QP by mb_qp_delta are not written, so that all threads may read them.
extern "C" __global__ void __launch_bounds__(THREADS) decoded_qp(const uint8_t *mb_type, const uint8_t *cbp, const int *slice_first_mb,
    const int *frame_params, int mb_width, int mb0, int mb1, uint8_t *qp) {
  SHARED(int, warps, 32);
  wait_for_the_kernel_before();
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, each = (mb1 - mb0 + THREADS - 1) / THREADS;
  const int first = min(mb1, mb0 + int(threadIdx.x) * each), end = min(mb1, first + each);
  const auto sets = [&](int mb) { return has_delta(mb_type, cbp, mb) || mb == slice_first_mb[mb]; };
  int last = -1;
  for (int mb = first; mb < end; mb++)
    if (sets(mb)) last = mb;
  const int upto = greatest_so_far(last);
  if (lane == 31) warps[warp] = upto;
  __syncthreads();
  const int of_warps = greatest_so_far(lane < warp ? warps[lane] : -1);
  int at = __shfl_up_sync(FULL_WARP, upto, 1u);
  at = max(lane ? at : -1, __shfl_sync(FULL_WARP, of_warps, 31));
  for (int mb = first; mb < end; mb++) {
    if (sets(mb)) at = mb;
    if (!has_delta(mb_type, cbp, mb)) qp[mb] = has_delta(mb_type, cbp, at) ? qp[at] : uint8_t(frame_params[0]);
  }
}
