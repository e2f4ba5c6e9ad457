// Mean and contrast of half-size frames: counts of their samples, and frames with other samples in their place.
#include "lookahead/levels_launch.cuh"
#include "decisions/lookahead.cuh"
#include "simd.cuh"
#include "tables.cuh"

constexpr int VALUES = SAMPLE_MAX + 1;

// Samples of plane G without its border, by their value; added to counts. A block a row of macroblocks.
extern "C" __global__ void __launch_bounds__(THREADS) count_samples(const Sample *__restrict__ planes, int mb_width, int *counts) {
  SHARED(int, histogram, VALUES);
  wait_for_the_kernel_before();
  histogram[threadIdx.x] = 0;
  __syncthreads();
  const int width = 8 * mb_width, stride = width + 2 * LOOK_PAD;
  const Sample *first = planes + size_t(LOOK_PAD + 8 * int(blockIdx.x)) * stride + LOOK_PAD;
  for (int i = int(threadIdx.x); i < 8 * width; i += THREADS) atomicAdd(histogram + first[size_t(i / width) * stride + i % width], 1);
  __syncthreads();
  if (histogram[threadIdx.x]) atomicAdd(counts + threadIdx.x, histogram[threadIdx.x]);
}

// Each of `count` samples replaced by the one that levels has for it -> out. One a thread.
extern "C" __global__ void __launch_bounds__(THREADS) replace_samples(const Sample *__restrict__ samples,
    const Sample *__restrict__ levels, int count, Sample *out) {
  wait_for_the_kernel_before();
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = levels[samples[i]];
}
