// The luma planes of a reference with weights, for the search, and sums of the source for the weights; not part of the standard.
// Samples of 8 bits only: words of four samples.
#include "inter/weighting.cuh"

constexpr int THREADS_OF_BLOCK = SUM_SAMPLES / 4;

// luma, weighted (out): Sample[4, height, width], sample rows [y0, y1). weights: int32[N_WEIGHTS], see layout.py. Grid: words of a
// row, rows, planes.
extern "C" __global__ void weight_reference(const Sample *luma, const int *weights, int width, int height, int y0, int y1,
    Sample *weighted) {
  wait_for_the_kernel_before();
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), y = y0 + int(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= y1) return;
  const size_t at = (size_t(blockIdx.z) * height + y) * width + x;
  const unsigned samples = *reinterpret_cast<const unsigned *>(luma + at);
  *reinterpret_cast<unsigned *>(weighted + at) = weigh4(samples, weights[1], weights[2], weights[3]);
}

// Sums of the samples of blocks of side x side, and of their squares, of every step-th line within the display area: SUM_SAMPLES a
// block. y, u, v: planes of coded size, luma `pitch` bytes from row to row; width, height: of the display area; sums int32[2, n],
// n the blocks of Y, Cb, Cr, each in raster order. A thread takes four samples. Grid: blocks of luma, planes.
extern "C" __global__ void source_sums(const Sample *y, const Sample *u, const Sample *v, int pitch, int width, int height, int side,
    int step, int *sums) {
  wait_for_the_kernel_before();
  const int plane = int(blockIdx.y), half = plane ? 1 : 0, wide = (width + half) >> half, high = (height + half) >> half;
  const int across = (wide + side - 1) / side, down = (high + side - 1) / side;
  const int thread = int(blockIdx.x * blockDim.x + threadIdx.x), block = thread / THREADS_OF_BLOCK, strip = thread % THREADS_OF_BLOCK;
  const int x = block % across * side + 4 * strip % side, line = block / across * side + step * (4 * strip / side);
  int sum = 0, squares = 0;
  if (block < across * down && x < wide && line < high) {
    const Sample *from = plane == 0 ? y : plane == 1 ? u : v;
    const unsigned samples = *reinterpret_cast<const unsigned *>(from + size_t(line) * (pitch >> half) + x);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int sample = x + i < wide ? byte_of(samples, i) : 0;
      sum += sample;
      squares += sample * sample;
    }
  }
#pragma unroll
  for (int distance = THREADS_OF_BLOCK / 2; distance; distance >>= 1) {
    sum += __shfl_xor_sync(FULL_WARP, sum, distance);
    squares += __shfl_xor_sync(FULL_WARP, squares, distance);
  }
  if (strip || block >= across * down) return;
  const int luma = ((width + side - 1) / side) * ((height + side - 1) / side);
  const int chroma = ((width + 1) / 2 + side - 1) / side * (((height + 1) / 2 + side - 1) / side);
  const int at = block + (plane ? luma + (plane - 1) * chroma : 0);
  sums[at] = sum;
  sums[luma + 2 * chroma + at] = squares;
}
