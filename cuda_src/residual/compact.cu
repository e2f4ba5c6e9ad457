// Packs the levels of a frame for the download: only blocks that have any, in order (not part of the standard).
//
// index: uint32[mb_height + 1] blocks before each row and in total, then uint32[n_mb] mask of the 27 blocks of a macroblock.
#include "residual/compact_launch.cuh"
#include "simd.cuh"
#include "tables.cuh"

constexpr int WARPS = THREADS / 32;

DEVICE unsigned sum_of_block(unsigned v, unsigned *sums) {
  v = __reduce_add_sync(FULL_WARP, v);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = v;
  __syncthreads();
  unsigned total = 0;
  for (int i = 0; i < int(blockDim.x) / 32; i++) total += sums[i];
  return total;
}

// Masks of blocks with levels, and their number a row: a block of threads a row. counts: uint32[mb_height]
extern "C" __global__ void __launch_bounds__(THREADS) compact_masks(const uint8_t *__restrict__ mb_type, const uint8_t *__restrict__ cbp,
    const uint8_t *__restrict__ total_coeff, int mb_width, int mb_height, unsigned *counts, unsigned *index) {
  wait_for_the_kernel_before();
  SHARED(unsigned, sums, WARPS);
  const int row = int(blockIdx.x);
  unsigned count = 0;
  for (int mx = int(threadIdx.x); mx < mb_width; mx += THREADS) {
    const size_t mb = size_t(row) * mb_width + mx;
    const int type_of_mb = mb_type[mb];
    unsigned mask = 0;
    if (type_of_mb != I_PCM && type_of_mb != P_SKIP && type_of_mb != B_SKIP) {
      const uint2 *coded = reinterpret_cast<const uint2 *>(total_coeff + 24 * mb);
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const uint2 w = __ldg(coded + i);
#pragma unroll
        for (int k = 0; k < 8; k++) {
          const int block = i < 2 ? int(RASTER_TO_BLOCK_DIGITS >> (4 * (8 * i + k)) & 15) : 16 + k;
          if (byte_of(k < 4 ? w.x : w.y, k & 3)) mask |= 1u << block;
        }
      }
      if (type_of_mb == I_16x16) mask |= 1u << LUMA_DC;
      if (cbp[mb] >> 4) mask |= 1u << CB_DC | 1u << CR_DC;
    }
    index[mb_height + 1 + mb] = mask;
    count += unsigned(__popc(mask));
  }
  count = sum_of_block(count, sums);
  if (threadIdx.x == 0) counts[row] = count;
}

// Copies the blocks; grid: segments of a row, rows. levels int16[n_mb, 27, 16], blocks int16[.., 16]
extern "C" __global__ void __launch_bounds__(THREADS) compact_levels(const short *__restrict__ levels, int mb_width, int mb_height,
    const unsigned *__restrict__ counts, unsigned *index, short *blocks) {
  wait_for_the_kernel_before();
  SHARED(unsigned, sums, WARPS);
  SHARED(uint16_t, order, SEGMENT * N_LEVEL_BLOCKS);  // blocks with levels, in order
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = int(blockIdx.y), first = int(blockIdx.x) * SEGMENT;
  const unsigned *masks = index + mb_height + 1 + size_t(row) * mb_width;
  unsigned before = 0;
  for (int r = int(threadIdx.x); r < row; r += THREADS) before += counts[r];
  if (first == 0) {
    before = sum_of_block(before, sums);
    if (threadIdx.x == 0) index[row] = before;
    if (threadIdx.x == 0 && row == mb_height - 1) index[mb_height] = before + counts[row];
  } else {
    for (int mx = int(threadIdx.x); mx < first; mx += THREADS) before += unsigned(__popc(masks[mx]));
    before = sum_of_block(before, sums);
  }
  const unsigned lane_mask = first + lane < mb_width ? masks[first + lane] : 0;
  unsigned upto = unsigned(__popc(lane_mask));  // blocks of the segment's macroblocks 0..lane
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const unsigned v = __shfl_up_sync(FULL_WARP, upto, unsigned(step));
    if (lane >= step) upto += v;
  }
  // `blocks` may be host memory, which is written in whole lines: neighbouring threads write neighbouring words
  const unsigned all = __shfl_sync(FULL_WARP, upto, 31);
#pragma unroll
  for (int m = 0; m < SEGMENT / WARPS; m++) {
    const int k = warp + m * WARPS;
    const unsigned mask = __shfl_sync(FULL_WARP, lane_mask, k);
    const unsigned at = __shfl_sync(FULL_WARP, upto, k) - unsigned(__popc(mask));
    if (mask >> lane & 1) order[at + unsigned(__popc(mask & ((1u << lane) - 1)))] = uint16_t(k * N_LEVEL_BLOCKS + lane);
  }
  __syncthreads();
  const uint4 *from = reinterpret_cast<const uint4 *>(levels + (size_t(row) * mb_width + first) * N_LEVEL_BLOCKS * 16);
  uint4 *to = reinterpret_cast<uint4 *>(blocks) + 2 * size_t(before);
  for (unsigned i = threadIdx.x; i < 2 * all; i += THREADS) to[i] = __ldg(from + 2 * order[i >> 1] + (i & 1));
}
