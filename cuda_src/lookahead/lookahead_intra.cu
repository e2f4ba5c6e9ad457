// Cost of the macroblocks of half-size frames by intra prediction: twin of lookahead_intra in cpu_simd/lookahead/lookahead.py. One warp a
// macroblock; a lane predicts a 4x4 block in one mode and another block in a second one.
// Samples of 8 bits only: words of four samples.
#include "lookahead/lookahead_launch.cuh"
#include "decisions/lookahead.cuh"
#include "intra/intra_8x8_modes.cuh"
#include "lookahead/lookahead_sums.cuh"
#include "tables.cuh"

constexpr int MODES = N_MODES_8x8 + 1;  // the last one is plane prediction, of 8.3.4.4

// Macroblock rows [row0, row1); sum: of the costs, added to
extern "C" __global__ void __launch_bounds__(32 * WARPS) lookahead_intra(const Sample *__restrict__ plane, int mb_width,
    int mb_height, int row0, int row1, uint16_t *cost, unsigned long long *sum) {
  SHARED(Sample, all_values, WARPS * VALUES);
  SHARED(int, costs, WARPS);
  wait_for_the_kernel_before();
  const int lane = int(threadIdx.x & 31), warp = int(threadIdx.x >> 5), last = row1 * mb_width - 1;
  const int unclamped = row0 * mb_width + int(blockIdx.x) * WARPS + warp, mb = min(unclamped, last);
  Sample *values = all_values + warp * VALUES;
  const int stride = 8 * mb_width + 2 * LOOK_PAD;
  plane += size_t(LOOK_PAD + 8 * (mb / mb_width)) * stride + LOOK_PAD + 8 * (mb % mb_width);
  const Neighbours all = {true, true, true};
  const int reference = plane[place_of_reference(all, stride, lane)];
  // 8.3.4.4: sums of the row above and the left column, the corner in both; samples 16 on belong to no plane
  const int across = __reduce_add_sync(FULL_WARP, lane >= 8 && lane < 17 ? (lane - 12) * reference : 0);
  const int down = __reduce_add_sync(FULL_WARP, lane <= 8 ? (4 - lane) * reference : 0);
  const int level = 16 * (__shfl_sync(FULL_WARP, reference, 0) + __shfl_sync(FULL_WARP, reference, 16));
  const int b = (34 * across + 32) >> 6, c = (34 * down + 32) >> 6;
  make_values(values, reference, all, lane);
  const int left = 4 * (lane & 1), top = 4 * (lane >> 1 & 1);
  unsigned rows[4];
  const Rows from = rows_from(plane + top * stride + left, stride);
#pragma unroll
  for (int i = 0; i < 4; i++) rows[i] = load_word(from, i);
  const Transformed source_transform = transformed(rows);
  int least = 1 << 20;
#pragma unroll 1
  for (int mode = lane >> 2; mode < 16; mode += 8) {  // all lanes go round twice, which add up together
    const int m = min(mode, MODES - 1);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      rows[i] = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const int x = left + k, y = top + i;
        const int sample = m < N_MODES_8x8 ? values[VALUES_8x8.of[m][x][y >> 2] >> (8 * (y & 3)) & 255]
                                           : clip1((level + b * (x - 3) + c * (y - 3) + 16) >> 5);
        rows[i] |= unsigned(sample) << (8 * k);
      }
    }
    int total = int(satd_4x4(source_transform, rows));
    total += __shfl_xor_sync(FULL_WARP, total, 1);
    total += __shfl_xor_sync(FULL_WARP, total, 2);
    least = min(least, total);
  }
  least = __reduce_min_sync(FULL_WARP, least);
  least += LOOK_INTRA + LOOK_BLOCK;
  if (lane == 0) {
    cost[mb] = uint16_t(least);
    costs[warp] = unclamped <= last && counts(mb % mb_width, mb / mb_width, mb_width, mb_height) ? least : 0;
  }
  add_of_warps<WARPS>(costs, sum);
}
