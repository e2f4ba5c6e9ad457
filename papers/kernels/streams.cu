// Paper 001: a CUDA block of 32x32 threads for every 4x4 block of the picture, a thread a candidate. The 4x4 block and a window of
// 32x32 samples about it lie in shared memory; SADs of 8x4, 4x8 and 8x8 blocks come by addition, only in CUDA blocks of even
// column, even row, or both; the lowest by a reduction in two dimensions. Candidates whose block leaves the window are left out.
#include "papers/streams_launch.cuh"
#include "frames.cuh"

template <class Frames>
DEVICE void search(const Frames &current, const Frames &reference, int width, int height, unsigned *best) {
  SHARED(uint8_t, window, SIDE * SIDE);
  SHARED(uint8_t, block, 64);
  SHARED(unsigned, keys, SIDE * SIDE);
  const int x = threadIdx.x, y = threadIdx.y, t = y * SIDE + x, bx = blockIdx.x, by = blockIdx.y;
  window[t] = uint8_t(reference.at(4 * bx - BEFORE + x, 4 * by - BEFORE + y));
  if (t < 64) block[t] = uint8_t(current.at(4 * bx + t % 8, 4 * by + t / 8));
  __syncthreads();
  const bool wide = !(bx & 1) && bx + 1 < int(gridDim.x), high = !(by & 1) && by + 1 < int(gridDim.y);
  int sad[4];  // of the 4x4 blocks here, to the right, below, and diagonal
#pragma unroll
  for (int q = 0; q < 4; q++) {
    const int left = 4 * (q & 1), top = 4 * (q >> 1);
    sad[q] = 0;
    if ((left && !wide) || (top && !high) || x + left + 4 > SIDE || y + top + 4 > SIDE) continue;
    for (int j = top; j < top + 4; j++)
      for (int i = left; i < left + 4; i++) sad[q] += abs(int(block[j * 8 + i]) - int(window[(y + j) * SIDE + x + i]));
  }
  const int sums[4] = {sad[0], sad[0] + sad[1], sad[0] + sad[2], sad[0] + sad[1] + sad[2] + sad[3]};
#pragma unroll
  for (int mode = 0; mode < 4; mode++) {
    const int w = mode & 1 ? 8 : 4, h = mode & 2 ? 8 : 4;
    unsigned *result = best + (mode * gridDim.y + by) * gridDim.x + bx;
    if ((w == 8 && !wide) || (h == 8 && !high)) {
      if (t == 0) *result = ~0u;
      continue;
    }
    keys[t] = x + w <= SIDE && y + h <= SIDE ? unsigned(sums[mode]) << 10 | unsigned(t) : ~0u;
    for (int half = SIDE / 2; half; half >>= 1) {
      __syncthreads();
      if (x < half && y < half)
        keys[t] = min(min(keys[t], keys[t + half]), min(keys[t + half * SIDE], keys[t + half * SIDE + half]));
    }
    if (t == 0) *result = keys[0];
    __syncthreads();
  }
}

// current, reference: uint8[height, stride]; best uint32[4, blocks down, blocks across]: 4x4, 8x4, 4x8, 8x8; SAD << 10 | number
extern "C" __global__ void __launch_bounds__(1024) variable_sads(const uint8_t *current, const uint8_t *reference, int stride,
                                                                 int width, int height, unsigned *best) {
  search(Linear<true>{current, stride, width, height}, Linear<true>{reference, stride, width, height}, width, height, best);
}
// From textures; `done` counts CUDA blocks, and whoever holds the lock lets go when all are there.
extern "C" __global__ void __launch_bounds__(1024) variable_sads_texture(cudaTextureObject_t current, cudaTextureObject_t reference,
                                                                         int width, int height, unsigned *best, int *done) {
  search(Texture{current}, Texture{reference}, width, height, best);
  if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(done, 1);
}
