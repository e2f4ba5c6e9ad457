// The luma planes of reference 0, weighted, for the search; not part of the standard.
#include "weighting.cuh"

// luma uint8[n_slots, 4, height, width]: the planes of slot slots[0] -> slot `to`, sample rows [y0, y1). weights: int32[9], see
// WEIGHTS in layout.py. Grid: words of a row, rows, planes.
extern "C" __global__ void weight_reference(uint8_t *luma, const int *slots, const int *weights, int to, int width, int height,
    int y0, int y1) {
  wait_for_the_kernel_before();
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), y = y0 + int(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= y1) return;
  const size_t at = (size_t(blockIdx.z) * height + y) * width + x, slot = size_t(4) * height * width;
  const unsigned samples = *reinterpret_cast<const unsigned *>(luma + slots[0] * slot + at);
  *reinterpret_cast<unsigned *>(luma + to * slot + at) = weigh4(samples, weights[1], weights[2], weights[3]);
}
