// Motion of a decoded frame, kept for later frames, and colZeroFlag of its quadrants (8.4.1.2.2).
#include "inter/colocated_launch.cuh"
#include "simd.cuh"
#include "tables.cuh"

DEVICE bool small(short2 v) { return abs(int(v.x)) <= 1 && abs(int(v.y)) <= 1; }

// Macroblocks [mb0, mb1), a thread a 4x4 block: two macroblocks a warp. Arguments: Motion without types, KeptMotion
extern "C" __global__ void __launch_bounds__(THREADS) keep_motion(const signed char *__restrict__ ref_idx, const short2 *__restrict__ mv,
    const signed char *__restrict__ ref_idx1, const short2 *__restrict__ mv1, int mb0, int mb1, signed char *kept_ref_idx,
    short2 *kept_mv, uint8_t *kept_still) {
  wait_for_the_kernel_before();
  const int lane = threadIdx.x & 31, k = lane & 15, mb = mb0 + int(blockIdx.x * THREADS + threadIdx.x) / 16;
  const bool corner = k == 0 || k == 3 || k == 12 || k == 15;
  bool still = false;
  if (mb < mb1) {
    const short2 v = mv[16 * mb + k];
    kept_mv[16 * mb + k] = v;
    if (k < 4) kept_ref_idx[4 * mb + k] = ref_idx[4 * mb + k];
    if (corner) {  // list 0, or list 1 where list 0 is not used
      const int q = 4 * mb + 2 * (k >> 3) + (k >> 1 & 1), ref = ref_idx[q];
      still = ref >= 0 ? ref == 0 && small(v) : ref_idx1[q] == 0 && small(mv1[16 * mb + k]);
    }
  }
  const unsigned votes = __ballot_sync(FULL_WARP, still) >> (lane & 16);
  if (mb < mb1 && k == 0) kept_still[mb] = uint8_t((votes & 1) | (votes >> 2 & 2) | (votes >> 10 & 4) | (votes >> 12 & 8));
}
