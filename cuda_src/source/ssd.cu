// Squared error of one plane of the deblocked frame over the display area, by macroblock row (not part of the standard).
// Samples of 8 bits only: words of four samples.
#include "source/ssd_launch.cuh"
#include "simd.cuh"

// Sum of the squared differences of four samples: a^2 + b^2 - 2 a b
DEVICE unsigned squares4(unsigned a, unsigned b) { return __dp4a(a, a, __dp4a(b, b, 0u)) - 2 * __dp4a(a, b, 0u); }

// source, decoded: at the first sample of the picture, strides in samples, multiples of four; width, height: of the display
// area; unit: samples a macroblock row. errors int64[mb_height]; a block a row, [row0, row0 + gridDim.x).
extern "C" __global__ void __launch_bounds__(THREADS) ssd(const Sample *__restrict__ source, int source_stride,
    const Sample *__restrict__ decoded, int decoded_stride, int height, int width, int unit, int row0, long long *errors) {
  wait_for_the_kernel_before();
  SHARED(unsigned, sums, THREADS / 32);
  const int row = row0 + int(blockIdx.x), lines = min(height - row * unit, unit), words = (width + 3) >> 2;
  const unsigned tail = width & 3 ? (1u << (8 * (width & 3))) - 1 : ~0u;  // samples of the last word
  unsigned sum = 0;
  for (int i = threadIdx.x; i < lines * words; i += THREADS) {
    const int y = i / words, x = i - y * words;
    const size_t line = size_t(row * unit + y);
    const unsigned a = __ldg(reinterpret_cast<const unsigned *>(source + line * source_stride) + x);
    const unsigned b = __ldg(reinterpret_cast<const unsigned *>(decoded + line * decoded_stride) + x);
    const unsigned mask = x == words - 1 ? tail : ~0u;
    sum += squares4(a & mask, b & mask);
  }
  sum = __reduce_add_sync(FULL_WARP, sum);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    long long total = 0;
    for (int i = 0; i < THREADS / 32; i++) total += sums[i];
    errors[row] = total;
  }
}
