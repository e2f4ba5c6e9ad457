// Paper 003: full search of 16x16 blocks by one kernel. CUDA blocks of (16, 4) threads: a thread has a column of the block, the
// four rows of threads a candidate each; the grid is [W / 16, (H + 3) / 4], so that up to four CUDA blocks share a macroblock and
// its candidates. SADs of columns lie in local memory, or in shared memory; frames in global memory, or in textures.
#include "frames.cuh"

constexpr int MOST_CANDIDATES = 256;  // candidates of a thread: range 32, 4096 of them among 16 rows of threads

template <bool SHARED_SADS, bool INSIDE, class Frames>
DEVICE void search(const Frames &current, const Frames &reference, int width, int height, int reach, unsigned *best) {
  SHARED(int, sums, 64);
  const int x = threadIdx.x, y = threadIdx.y, mx = blockIdx.x, my = blockIdx.y >> 2;
  const int parts = min(4, int(gridDim.y) - 4 * my), mb = my * gridDim.x + mx;
  const int n = 2 * reach, columns = min(16, width - 16 * mx), rows = min(16, height - 16 * my);
  const int first = (blockIdx.y & 3) * 4 + y, steps = (n * n + 4 * parts - 1) / (4 * parts);
  int sads[SHARED_SADS ? 1 : MOST_CANDIDATES];  // indexed by a variable: local memory
  unsigned key = ~0u;
  for (int i = 0; i < steps; i++) {
    const int c = first + 4 * parts * i, dx = c % n - reach, dy = c / n - reach, left = 16 * mx + dx, top = 16 * my + dy;
    const bool out = c >= n * n || (INSIDE && (left < 0 || top < 0 || left + columns > width || top + rows > height));
    int sad = 0;
    if (!out && x < columns)
      for (int j = 0; j < rows; j++) sad += abs(current.at(16 * mx + x, 16 * my + j) - reference.at(left + x, top + j));
    if (!SHARED_SADS) {
      sads[i] = out ? -1 : sad;
      continue;
    }
    int *mine = sums + 16 * y;
    mine[x] = sad;
    for (int half = 8; half; half >>= 1) {
      __syncthreads();
      if (x < half) mine[x] += mine[x + half];
    }
    if (x == 0 && !out) key = min(key, unsigned(mine[0]) << 12 | unsigned(c));
    __syncthreads();
  }
  if (!SHARED_SADS)
    for (int i = 0; i < steps; i++) {
      int sad = sads[i];
      const bool out = sad < 0;
      for (int half = 8; half; half >>= 1) sad += __shfl_down_sync(FULL_WARP, sad, half, 16);
      if (x == 0 && !out) key = min(key, unsigned(sad) << 12 | unsigned(first + 4 * parts * i));
    }
  if (x == 0) atomicMin(best + mb, key);
}

// current, reference: uint8[height, stride]; best uint32[n_mb], ~0 at first: SAD << 12 | number of the candidate
#define GLOBAL(name, shared_sads, inside)                                                                          \
  extern "C" __global__ void name(const uint8_t *current, const uint8_t *reference, int stride, int width,         \
                                  int height, int reach, unsigned *best) {                                         \
    const Linear<!inside> a{current, stride, width, height}, b{reference, stride, width, height};                  \
    search<shared_sads, inside>(a, b, width, height, reach, best);                                                 \
  }
GLOBAL(local_inside, false, true)
GLOBAL(local_repeat, false, false)
GLOBAL(shared_inside, true, true)
GLOBAL(shared_repeat, true, false)

#define TEXTURE(name, inside)                                                                                      \
  extern "C" __global__ void name(cudaTextureObject_t current, cudaTextureObject_t reference, int width,           \
                                  int height, int reach, unsigned *best) {                                         \
    search<true, inside>(Texture{current}, Texture{reference}, width, height, reach, best);                        \
  }
TEXTURE(texture_inside, true)
TEXTURE(texture_repeat, false)
