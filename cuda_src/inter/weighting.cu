// The luma planes of a reference with weights, for the search, and sums of the source for the weights; not part of the standard.
// Samples of 8 bits only: words of four samples.
#include "inter/weighting.cuh"

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

// Sums of the samples of blocks of SUM_BLOCK x SUM_BLOCK, and of their squares, of every SUM_LINES-th line within the display area.
// y, u, v: planes of coded size, luma `pitch` bytes from row to row; width, height: of the display area; sums int32[2, n], n the
// blocks of Y, Cb, Cr, each in raster order. Sixteen threads a block, four samples each. Grid: blocks of luma, planes.
extern "C" __global__ void source_sums(const Sample *y, const Sample *u, const Sample *v, int pitch, int width, int height, int *sums) {
  wait_for_the_kernel_before();
  const int plane = int(blockIdx.y), half = plane ? 1 : 0, wide = (width + half) >> half, high = (height + half) >> half;
  const int across = (wide + SUM_BLOCK - 1) / SUM_BLOCK, down = (high + SUM_BLOCK - 1) / SUM_BLOCK;
  const int thread = int(blockIdx.x * blockDim.x + threadIdx.x), block = thread >> 4, strip = thread & 15;
  const int x = block % across * SUM_BLOCK + 4 * (strip & 3), line = block / across * SUM_BLOCK + SUM_LINES * (strip >> 2);
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
  for (int step = 8; step; step >>= 1) {
    sum += __shfl_xor_sync(FULL_WARP, sum, step);
    squares += __shfl_xor_sync(FULL_WARP, squares, step);
  }
  if (strip || block >= across * down) return;
  const int luma = ((width + SUM_BLOCK - 1) / SUM_BLOCK) * ((height + SUM_BLOCK - 1) / SUM_BLOCK);
  const int chroma = ((width + 1) / 2 + SUM_BLOCK - 1) / SUM_BLOCK * (((height + 1) / 2 + SUM_BLOCK - 1) / SUM_BLOCK);
  const int at = block + (plane ? luma + (plane - 1) * chroma : 0);
  sums[at] = sum;
  sums[luma + 2 * chroma + at] = squares;
}
