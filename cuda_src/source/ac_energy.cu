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

// A warp a macroblock: two words of luma and one of chroma a lane, Cb in the lower half. Planes of coded size. Grid: macroblocks.
extern "C" __global__ void __launch_bounds__(32 * WARPS) ac_energies(const Sample *__restrict__ y, const Sample *__restrict__ u,
    const Sample *__restrict__ v, int mb_width, int count, int *energy) {
  wait_for_the_kernel_before();
  const int mb = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), lane = int(threadIdx.x & 31);
  if (mb >= count) return;
  const int mx = mb % mb_width, my = mb / mb_width, stride = 16 * mb_width;
  unsigned luma = 0, chroma = 0, squares = 0;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const Sample *row = y + size_t(16 * my + 8 * k + (lane >> 2)) * stride;
    add4(*reinterpret_cast<const unsigned *>(row + 16 * mx + 4 * (lane & 3)), &luma, &squares);
  }
  const Sample *row = (lane < 16 ? u : v) + size_t(MB_HEIGHT_C * my + (lane >> 1 & 7)) * (stride / SUB_WIDTH_C);
  add4(*reinterpret_cast<const unsigned *>(row + MB_WIDTH_C * mx + 4 * (lane & 1)), &chroma, &squares);
#pragma unroll
  for (int step = 16; step; step >>= 1) {
    luma += __shfl_xor_sync(FULL_WARP, luma, step);
    squares += __shfl_xor_sync(FULL_WARP, squares, step);
    if (step < 16) chroma += __shfl_xor_sync(FULL_WARP, chroma, step);
  }
  const unsigned other = __shfl_xor_sync(FULL_WARP, chroma, 16);
  if (lane == 0) energy[mb] = int(squares - (luma * luma >> 8) - (chroma * chroma >> 6) - (other * other >> 6));
}
