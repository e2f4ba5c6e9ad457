// Full search with SAD reuse: the 16 4x4 SADs of a candidate once, the 41 partitions by addition (not part of the standard).
//
// A block of one warp (range 16) or two searches one macroblock. The window is walked in strips of 32 candidates across and all candidates
// down, left to right; a strip lies in shared memory four times, shifted by 0..3 bytes, so that every load is aligned and
// without bank conflicts. A lane has one dx; a warp takes half of the rows, NP candidates at a time, which share the window
// rows that they load. The minimum is kept as one key, (SAD + motion cost) << 14 | position, so that ties go to the lower
// position. Keys are built by multiply-add and folded two at a time: SAD and minimum fill one pipe, keys and sums the other.
// Kernels for partitions from 8x8 on add SADs up in quadrants, and have registers for twice as many candidates at once.
// Samples of 8 bits only: words of four samples.
#include "search/full_search_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/search.cuh"
#include "costs/bit_costs.cuh"

constexpr int STRIP = 32;           // candidates across
constexpr int MOST_CANDIDATES = 128;           // candidates down or across, at most
constexpr unsigned COST_OUTSIDE = 0x60000000;  // a candidate outside the range: two of them and a SAD stay below 2^32

// words between the copies: 8 mod 32 keeps the four copies on different banks
DEVICE int copy_stride(int rows) { return rows * ACROSS + (8 - rows * ACROSS % 32 + 32) % 32; }

// Four words of a window row from byte address p on, any alignment, and the word after them.
DEVICE void load_words(const Sample *p, unsigned *a) {
  const unsigned *w = reinterpret_cast<const unsigned *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(3));
  unsigned offset = unsigned(reinterpret_cast<uintptr_t>(p) & 3), last = __ldg(w);
#pragma unroll
  for (int k = 0; k < 5; k++) {
    unsigned next = __ldg(w + k + 1);
    a[k] = unaligned(last, next, offset);
    last = next;
  }
}

// The same where the window leaves the padded plane: coordinates clamp.
__device__ __noinline__ void load_words_clamped(const Sample *plane, int width, int height, int x, int y, unsigned *a) {
  const Sample *row = plane + size_t(clip3(0, height - 1, y)) * width;
  for (int k = 0; k < 5; k++) {
    unsigned v = 0;
    for (int i = 0; i < 4; i++) v |= unsigned(row[clip3(0, width - 1, x + 4 * k + i)]) << (8 * i);
    a[k] = v;
  }
}

// NP candidates of one partition: the least key.
template <int NP>
DEVICE void keep(unsigned &least, const unsigned (&v)[NP], const unsigned (&cc)[NP], unsigned mul) {
#pragma unroll
  for (int j = 0; j < NP; j += 2) least = min3(least, mad(v[j], mul, cc[j]), mad(v[j + 1], mul, cc[j + 1]));
}

// The sums of two partitions
template <int NP>
DEVICE void add(const unsigned (&a)[NP], const unsigned (&b)[NP], unsigned (&sum)[NP]) {
#pragma unroll
  for (int j = 0; j < NP; j++) sum[j] = a[j] + b[j];
}

// SADs of NP candidates one below the other, by 4x4 blocks or, if `large`, by quadrants.
template <int NP, bool large>
DEVICE void sads(const unsigned *col, const unsigned (*c)[4], unsigned (*b)[NP]) {
#pragma unroll
  for (int i = 0; i < (large ? 4 : 16); i++)
#pragma unroll
    for (int j = 0; j < NP; j++) b[i][j] = 0;
#pragma unroll
  for (int y = 0; y < 16 + NP - 1; y++) {
    unsigned w[4];
#pragma unroll
    for (int k = 0; k < 4; k++) w[k] = col[y * ACROSS + k];
#pragma unroll
    for (int j = 0; j < NP; j++) {
      int r = y - j;
      if (r < 0 || r >= 16) continue;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        unsigned &sum = b[large ? (r >> 3) * 2 + (k >> 1) : (r >> 2) * 4 + k][j];
        sum = sad4(w[k], c[r][k], sum);
      }
    }
  }
}

// Their SADs, sums and keys into the minima m: of partitions 32 to 40 if `large`, else of all 41.
template <int NP, bool large>
DEVICE void candidates(const unsigned *col, const unsigned (*c)[4], const unsigned (&cc)[NP], unsigned mul, unsigned *m) {
  unsigned b[large ? 4 : 16][NP], e[4][NP];
  sads<NP, large>(col, c, b);
  if constexpr (large) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
#pragma unroll
      for (int j = 0; j < NP; j++) e[q][j] = b[q][j];
      keep(m[q], e[q], cc, mul);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 16; i++) keep(m[i], b[i], cc, mul);
#pragma unroll
    for (int q = 0; q < 4; q++) {
      int i = (q >> 1) * 8 + (q & 1) * 2;
      unsigned h0[NP], h1[NP], v0[NP], v1[NP];
      add(b[i], b[i + 1], h0);
      add(b[i + 4], b[i + 5], h1);
      add(b[i], b[i + 4], v0);
      add(b[i + 1], b[i + 5], v1);
      add(h0, h1, e[q]);
      keep(m[16 + 2 * q], h0, cc, mul);
      keep(m[17 + 2 * q], h1, cc, mul);
      keep(m[24 + 2 * q], v0, cc, mul);
      keep(m[25 + 2 * q], v1, cc, mul);
      keep(m[32 + q], e[q], cc, mul);
    }
  }
  unsigned *halves = m + (large ? 4 : 36);
  unsigned t0[NP], t1[NP], u0[NP], u1[NP], z[NP];
  add(e[0], e[1], t0);
  add(e[2], e[3], t1);
  add(e[0], e[2], u0);
  add(e[1], e[3], u1);
  add(t0, t1, z);
  keep(halves[0], t0, cc, mul);
  keep(halves[1], t1, cc, mul);
  keep(halves[2], u0, cc, mul);
  keep(halves[3], u1, cc, mul);
  keep(halves[4], z, cc, mul);
}

// Whether the macroblock costs less than `quiet` lambdas at the centre of its window, which then is its only result; each warp
// finds out for itself. source, there: its samples and those at that vector; cost, mv: of the macroblock
DEVICE bool is_quiet(const Sample *source, int source_width, const Sample *there, int width, short2 centre, short2 predictor, int lam,
                     int quiet, int *cost, short2 *mv) {
  const int t = threadIdx.x, lane = t & 31, x = 4 * centre.x, y = 4 * centre.y;
  unsigned a[5], sum = 0;
  if (lane < 16) {
    load_words(there + size_t(lane) * width, a);
    const uint4 source_row = *reinterpret_cast<const uint4 *>(source + size_t(lane) * source_width);
    sum = sad4(a[0], source_row.x, sad4(a[1], source_row.y, sad4(a[2], source_row.z, sad4(a[3], source_row.w, 0))));
  }
  const int value = int(__reduce_add_sync(FULL_WARP, sum)) + lam * mvd_bits(x - predictor.x, y - predictor.y);
  if (value >= quiet * lam) return false;
  for (int k = t; k < 41; k += int(blockDim.x)) cost[k] = k < 40 ? COST_NOT_REFINED : value;
  if (t == 0) mv[40] = make_short2(short(x), short(y));
  return true;
}

// The partitions from FIRST on
template <int WARPS, int RANGE, int FIRST>
DEVICE void search(const Sample *__restrict__ source, int source_width, const Sample *__restrict__ reference, int width, int height,
                   int pad, const short2 *__restrict__ centre, const short2 *__restrict__ predictor, const uint8_t *__restrict__ qp,
                   int any_range, int row0, unsigned mul, int quiet, int *__restrict__ cost, short2 *__restrict__ mv) {
  constexpr bool large = FIRST == FIRST_LARGE;
  constexpr int NT = 32 * WARPS, N = 41 - FIRST, NP = large ? DOWN_LARGE : DOWN;  // candidates of a thread at once
  const int range = RANGE ? RANGE : any_range;  // a compile-time constant if RANGE > 0
  DYNAMIC_SHARED(unsigned, window);
  SHARED(unsigned, across, MOST_CANDIDATES);
  SHARED(unsigned, down, MOST_CANDIDATES + NP * WARPS);
  SHARED(unsigned, best, WARPS * N);
  const int t = threadIdx.x, mx = blockIdx.x, my = blockIdx.y + row0, mb = my * gridDim.x + mx;
  const int n = 2 * range, half = (n + NP * WARPS - 1) / (NP * WARPS) * NP, rows = half * WARPS + 15;
  const int stride = copy_stride(rows);
  const int weight = LAMBDA[load_before_the_wait(qp + mb)] >> 1;  // while searching: the predictor is a guess
  wait_for_the_kernel_before();
  const short2 c0 = centre[mb];
  const short2 p0 = predictor[mb];
  if (quiet && is_quiet(source + size_t(my * 16) * source_width + mx * 16, source_width,
                        reference + size_t(my * 16 + c0.y + pad) * width + mx * 16 + c0.x + pad, width, c0, p0,
                        LAMBDA[qp[mb]], quiet, cost + mb * 41, mv + mb * 41)) return;
  for (int i = t; i < MOST_CANDIDATES; i += NT)
    across[i] = i < n ? unsigned(weight * se_bits(4 * (c0.x + i - range) - p0.x)) << 14 | unsigned(i) : COST_OUTSIDE;
  for (int i = t; i < half * WARPS; i += NT)
    down[i] = i < n ? (unsigned(weight * se_bits(4 * (c0.y + i - range) - p0.y)) << 14) + unsigned(i * n) : COST_OUTSIDE;
  unsigned c[16][4];
#pragma unroll
  for (int y = 0; y < 16; y++) {
    uint4 v = *reinterpret_cast<const uint4 *>(source + size_t(my * 16 + y) * source_width + mx * 16);
    c[y][0] = v.x; c[y][1] = v.y; c[y][2] = v.z; c[y][3] = v.w;
  }
  unsigned m[N];
#pragma unroll
  for (int k = 0; k < N; k++) m[k] = ~0u;
  const int x0 = mx * 16 + c0.x - range + pad, y0 = my * 16 + c0.y - range + pad;
  const int lane = t & 31, top = (t >> 5) * half;
#pragma unroll 1
  for (int strip = 0; strip < (RANGE ? 2 * RANGE : n); strip += STRIP) {
    const int x = x0 + strip;
    // a row reads 52 bytes and the words around them
    const bool inside = x >= 4 && x + 56 <= width && y0 >= 0 && y0 + rows <= height;
    if (strip) __syncthreads();
    for (int i = t; i < rows * 3; i += NT) {
      int y = i / 3, q = i - 3 * y;
      unsigned a[5];
      if (inside) load_words(reference + size_t(y0 + y) * width + x + 16 * q, a);
      else load_words_clamped(reference, width, height, x + 16 * q, y0 + y, a);
      uint4 *to = reinterpret_cast<uint4 *>(window + y * ACROSS + 4 * q);
      *to = make_uint4(a[0], a[1], a[2], a[3]);
#pragma unroll
      for (int k = 1; k < 4; k++)
        to[k * (stride / 4)] = make_uint4(unaligned(a[0], a[1], k), unaligned(a[1], a[2], k), unaligned(a[2], a[3], k),
                                          unaligned(a[3], a[4], k));
    }
    __syncthreads();
    const unsigned *col = window + (lane & 3) * stride + (lane >> 2) + top * ACROSS;
    const unsigned here = across[strip + lane];
#pragma unroll 1
    for (int dy = 0; dy < half; dy += NP, col += NP * ACROSS) {
      unsigned cc[NP];
#pragma unroll
      for (int j = 0; j < NP; j++) cc[j] = here + down[top + dy + j];
      candidates<NP, large>(col, c, cc, mul, m);
    }
  }
#pragma unroll
  for (int k = 0; k < N; k++) {
    unsigned v = __reduce_min_sync(FULL_WARP, m[k]);
    if (lane == 0) best[(t >> 5) * N + k] = v;
  }
  __syncthreads();
  // read again, to save registers during the search
  const volatile short *again = reinterpret_cast<const volatile short *>(predictor + mb);
  const volatile uint8_t *qp_again = qp + mb;
  const int px = again[0], py = again[1], lam = LAMBDA[*qp_again];
  for (int k = t; k < N; k += NT) {
    unsigned v = best[k];
    for (int i = 1; i < WARPS; i++) v = min(v, best[N * i + k]);
    if (v >> 14 >= 65535) v = 65535u << 14;  // all candidates cost as much: the first
    int position = int(v & 0x3fff), dy = position / n, dx = position - dy * n;
    const int x = 4 * (c0.x + dx - range), y = 4 * (c0.y + dy - range);
    cost[mb * 41 + FIRST + k] = int(v >> 14) + (lam - (lam >> 1)) * mvd_bits(x - px, y - py);
    mv[mb * 41 + FIRST + k] = make_short2(short(x), short(y));
  }
}

// source Sample[H, W]; reference Sample[height, width] with its border of `pad`; centre int16[n_mb, 2] integer samples;
// predictor int16[n_mb, 2], cost int32[n_mb, 41], mv int16[n_mb, 41, 2] quarter samples. Grid: macroblocks across, rows.
#define SEARCH(name, warps, range_known, first, blocks)                                                                          \
  extern "C" __global__ void __launch_bounds__(32 * warps, blocks) name(const Sample *source, int source_width,                  \
      const Sample *reference, int width, int height, int pad, const short2 *centre, const short2 *predictor,                     \
      const uint8_t *qp, int range, int row0, unsigned mul, int quiet, int *cost, short2 *mv) {                                  \
    search<warps, range_known, first>(source, source_width, reference, width, height, pad, centre, predictor, qp, range, row0,   \
                                      mul, quiet, cost, mv);                                                                     \
  }
SEARCH(full_search, 2, 0, 0, 5)
SEARCH(full_search_16, 1, 16, 0, 10)
SEARCH(full_search_large, 2, 0, FIRST_LARGE, 6)
SEARCH(full_search_large_16, 1, 16, FIRST_LARGE, 14)
