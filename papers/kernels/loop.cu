// Paper 004: Algorithm 1, full search of the 41 partitions with SAD reuse (and without, to compare), the window in shared memory
// whole or in tiles of 16x16 candidates; refinement of vectors over 25 candidates, a kernel a partition size, or all in one.
#include "simd.cuh"
#include "tables.cuh"

constexpr int SIDE = 32, TILE = 16, LINES = 7;  // a tile reads 31x31 samples, kept at coordinates modulo 32

// Where the sample at column x, row y of the window lies in shared memory
template <bool TILES>
DEVICE int place(int side, int x, int y) { return TILES ? (y & 31) * SIDE + (x & 31) : y * side + x; }

// Candidate c at (cx, cy) of the window: SADs of all partitions, with c in the low half of a word, into the minima m[41].
template <bool REUSE, bool TILES>
DEVICE void check(const uint8_t *mb, const uint8_t *window, int side, int cx, int cy, unsigned c, unsigned *m) {
  if (!REUSE) {
#pragma unroll
    for (int k = 0; k < 41; k++) {
      const int x = PARTITIONS[k][0], y = PARTITIONS[k][1], w = PARTITIONS[k][2], h = PARTITIONS[k][3];
      int sad = 0;
#pragma unroll 1
      for (int j = y; j < y + h; j++)
#pragma unroll 4
        for (int i = x; i < x + w; i++) sad += abs(int(mb[16 * j + i]) - int(window[place<TILES>(side, cx + i, cy + j)]));
      m[k] = min(m[k], unsigned(sad) << 16 | c);
    }
  } else {
    unsigned s[41];
#pragma unroll
    for (int k = 0; k < 16; k++) {
      int sad = 0;
#pragma unroll
      for (int j = k / 4 * 4; j < k / 4 * 4 + 4; j++)
#pragma unroll
        for (int i = k % 4 * 4; i < k % 4 * 4 + 4; i++)
          sad += abs(int(mb[16 * j + i]) - int(window[place<TILES>(side, cx + i, cy + j)]));
      s[k] = unsigned(sad);
    }
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const int i = (q >> 1) * 8 + (q & 1) * 2;
      s[16 + 2 * q] = s[i] + s[i + 1];
      s[17 + 2 * q] = s[i + 4] + s[i + 5];
      s[24 + 2 * q] = s[i] + s[i + 4];
      s[25 + 2 * q] = s[i + 1] + s[i + 5];
      s[32 + q] = s[16 + 2 * q] + s[17 + 2 * q];
    }
    s[36] = s[32] + s[33], s[37] = s[34] + s[35], s[38] = s[32] + s[34], s[39] = s[33] + s[35], s[40] = s[36] + s[37];
#pragma unroll
    for (int k = 0; k < 41; k++) m[k] = min(m[k], s[k] << 16 | c);
  }
}

template <bool REUSE, bool TILES>
DEVICE void search(const uint8_t *source, int source_width, const uint8_t *reference, int width, int pad, int reach, int *cost,
                   short2 *mv) {
  DYNAMIC_SHARED(uint8_t, window);
  SHARED(uint8_t, mb, 256);
  SHARED(unsigned, lines, LINES * 41);
  const int tx = threadIdx.x, ty = threadIdx.y, t = 16 * ty + tx, n = 2 * reach, side = n + 15;
  const uint8_t *corner = reference + size_t(16 * blockIdx.y + pad - reach) * width + 16 * blockIdx.x + pad - reach;
  mb[t] = source[size_t(16 * blockIdx.y + ty) * source_width + 16 * blockIdx.x + tx];
  unsigned m[41];
#pragma unroll
  for (int k = 0; k < 41; k++) m[k] = ~0u;
  if (!TILES) {
    for (int i = t; i < side * side; i += 256) window[i] = corner[size_t(i / side) * width + i % side];
    __syncthreads();
#pragma unroll 1
    for (int c = t; c < n * n; c += 256) check<REUSE, TILES>(mb, window, side, c % n, c / n, unsigned(c), m);
  } else {
    const int tiles = n / TILE;
#pragma unroll 1
    for (int k = 0; k < tiles * tiles; k++) {  // to the right, down, to the left, down: what the last tile read stays
      const int row = k / tiles, column = row & 1 ? tiles - 1 - k % tiles : k % tiles, x = column * TILE, y = row * TILE;
      const bool down = k % tiles == 0, fresh = k == 0, right = !(row & 1);
      const int x0 = !down && right ? x + TILE - 1 : x, w = fresh || down ? 31 : TILE;
      const int y0 = down && !fresh ? y + TILE - 1 : y, h = down && !fresh ? TILE : 31;
      __syncthreads();
      for (int i = t; i < w * h; i += 256) {
        const int wx = x0 + i % w, wy = y0 + i / w;
        window[place<true>(side, wx, wy)] = corner[size_t(wy) * width + wx];
      }
      __syncthreads();
      check<REUSE, TILES>(mb, window, side, x + tx, y + ty, unsigned((y + ty) * n + x + tx), m);
    }
  }
  for (int i = t; i < LINES * 41; i += 256) lines[i] = ~0u;
  unsigned mine[41];  // indexed by a variable, unlike m
#pragma unroll
  for (int k = 0; k < 41; k++) mine[k] = m[k];
  for (int step = 0; step < 41; step++) {  // every thread at another place
    const int k = (step + t) % 41;
    __syncthreads();
    lines[t / 41 * 41 + k] = min(lines[t / 41 * 41 + k], mine[k]);
  }
  __syncthreads();
  if (t >= 41) return;
  unsigned best = lines[t];
  for (int i = 1; i < LINES; i++) best = min(best, lines[41 * i + t]);
  const int c = int(best & 0xffff), at = (blockIdx.y * gridDim.x + blockIdx.x) * 41 + t;
  cost[at] = int(best >> 16);
  mv[at] = make_short2(short(4 * (c % n - reach)), short(4 * (c / n - reach)));
}

// source uint8[H, W]; reference uint8[., width] with a border of pad >= reach; cost int32[n_mb, 41] (the SAD);
// mv int16[n_mb, 41, 2] quarter samples. Grid: macroblocks; 16x16 threads.
#define SEARCH(name, reuse, tiles)                                                                                \
  extern "C" __global__ void __launch_bounds__(256) name(const uint8_t *source, int source_width,                 \
      const uint8_t *reference, int width, int pad, int reach, int *cost, short2 *mv) {                           \
    search<reuse, tiles>(source, source_width, reference, width, pad, reach, cost, mv);                           \
  }
SEARCH(search_anew, false, false)
SEARCH(search_whole, true, false)
SEARCH(search_tiles, true, true)

// ---- refinement
struct Planes {  // luma uint8[4, ., stride]: G, b, h, j
  const uint8_t *samples;
  size_t plane;
  int stride;
  DEVICE int half(int x, int y) const {  // quarter samples, even
    return samples[((x >> 1 & 1) + (y & 2)) * plane + size_t(y >> 2) * stride + (x >> 2)];
  }
  // 8.4.2.2.1: the rounded-up mean of the two half-sample neighbours that Table 8-12 names
  DEVICE int at(int x, int y) const {
    if (!((x | y) & 1)) return half(x, y);
    int ax = x - (x & 1), ay = y - (y & 1), bx = x + (x & 1), by = y + (y & 1);
    if (x & y & 1) {  // diagonal: b or s, and h or m
      ax = (x & ~3) + 2, ay = (y & 3) == 1 ? y - 1 : y + 1;
      bx = (x & 3) == 1 ? x - 1 : x + 1, by = (y & ~3) + 2;
    }
    return (half(ax, ay) + half(bx, by) + 1) >> 1;
  }
};

// Partitions `first` to first + count - 1, 25 threads each: all vectors within two quarter samples, the lowest SAD, then the lowest
// number in raster order.
DEVICE void refine(const uint8_t *source, const Planes &luma, int pad, int first, int count, const short2 *mv, int *cost,
                   short2 *refined) {
  SHARED(uint8_t, mb, 256);
  SHARED(unsigned, keys, 25 * 16);
  const int c = threadIdx.x, part = threadIdx.y, t = part * 25 + c, mb_at = blockIdx.y * gridDim.x + blockIdx.x;
  const bool works = part < count;
  for (int i = t; i < 256; i += 25 * blockDim.y)
    mb[i] = source[size_t(16 * blockIdx.y + i / 16) * (16 * gridDim.x) + 16 * blockIdx.x + i % 16];
  const int k = first + (works ? part : 0), at = mb_at * 41 + k;
  const int x = PARTITIONS[k][0], y = PARTITIONS[k][1], w = PARTITIONS[k][2], h = PARTITIONS[k][3];
  const int left = 4 * (16 * int(blockIdx.x) + pad) + mv[at].x + c % 5 - 2, top = 4 * (16 * int(blockIdx.y) + pad) + mv[at].y + c / 5 - 2;
  __syncthreads();
  int sad = 0;
  if (works)
    for (int j = y; j < y + h; j++)
      for (int i = x; i < x + w; i++) sad += abs(int(mb[16 * j + i]) - luma.at(left + 4 * i, top + 4 * j));
  keys[t] = unsigned(sad) << 5 | unsigned(c);
  for (int half = 16; half; half >>= 1) {
    __syncthreads();
    if (c < half && c + half < 25) keys[t] = min(keys[t], keys[t + half]);
  }
  if (c || !works) return;
  const int best = int(keys[t] & 31);
  cost[at] = int(keys[t] >> 5);
  refined[at] = make_short2(short(mv[at].x + best % 5 - 2), short(mv[at].y + best / 5 - 2));
}

// One size of partitions: 25 x count threads a macroblock.
extern "C" __global__ void refine_mode(const uint8_t *source, const uint8_t *luma, int stride, int height, int pad, int first,
                                       const short2 *mv, int *cost, short2 *refined) {
  refine(source, Planes{luma, size_t(stride) * height, stride}, pad, first, blockDim.y, mv, cost, refined);
}
// All sizes in one launch: three layers of the grid, 25 x 16 threads, for 4x4; 8x4 and 4x8; 8x8 and larger.
extern "C" __global__ void refine_all(const uint8_t *source, const uint8_t *luma, int stride, int height, int pad, const short2 *mv,
                                      int *cost, short2 *refined) {
  refine(source, Planes{luma, size_t(stride) * height, stride}, pad, 16 * int(blockIdx.z), min(16, 41 - 16 * int(blockIdx.z)), mv, cost,
         refined);
}
