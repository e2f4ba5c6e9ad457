// AC energy of the macroblocks of a source frame, for adaptive quantisation: twin of cpu_simd/source/ac_energy.py.
// Samples of 8 bits only: words of four samples.
#include "source/ac_energy_launch.cuh"
#include "simd.cuh"

DEVICE void add4(unsigned samples, unsigned *sum, unsigned *squares) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned sample = unsigned(byte_of(samples, i));
    *sum += sample;
    *squares += sample * sample;
  }
}

// Four samples of a plane from (x, y) on, x a multiple of 4; the last column and row go on
DEVICE unsigned samples_at(const Sample *__restrict__ plane, int width, int height, int x, int y) {
  const Sample *row = plane + size_t(min(y, height - 1)) * width;
  if (width % 4 == 0 && x < width) return *reinterpret_cast<const unsigned *>(row + x);
  const int last = width - 1;
  return pack4(row[min(x, last)], row[min(x + 1, last)], row[min(x + 2, last)], row[min(x + 3, last)]);
}

// A warp a macroblock: two words of luma and one of chroma a lane, Cb in the lower half. width, height: of luma. Grid: macroblocks.
extern "C" __global__ void __launch_bounds__(32 * WARPS) ac_energies(const Sample *__restrict__ y, const Sample *__restrict__ u,
    const Sample *__restrict__ v, int width, int height, int mb_width, int count, int *energy) {
  wait_for_the_kernel_before();
  const int mb = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), lane = int(threadIdx.x & 31);
  if (mb >= count) return;
  const int mx = mb % mb_width, my = mb / mb_width, wide = (width + SUB_WIDTH_C - 1) / SUB_WIDTH_C;
  const int high = (height + SUB_HEIGHT_C - 1) / SUB_HEIGHT_C;
  unsigned luma = 0, chroma = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < 2; k++)
    add4(samples_at(y, width, height, 16 * mx + 4 * (lane & 3), 16 * my + 8 * k + (lane >> 2)), &luma, &squares);
  const int x = MB_WIDTH_C * mx + 4 * (lane & 1), row = MB_HEIGHT_C * my + (lane >> 1 & 7);
  add4(samples_at(lane < 16 ? u : v, wide, high, x, row), &chroma, &squares);
#pragma unroll
  for (int step = 16; step; step >>= 1) {
    luma += __shfl_xor_sync(FULL_WARP, luma, step);
    squares += __shfl_xor_sync(FULL_WARP, squares, step);
    if (step < 16) chroma += __shfl_xor_sync(FULL_WARP, chroma, step);
  }
  const unsigned other = __shfl_xor_sync(FULL_WARP, chroma, 16);
  if (lane == 0) energy[mb] = int(squares - (luma * luma >> 8) - (chroma * chroma >> 6) - (other * other >> 6));
}
