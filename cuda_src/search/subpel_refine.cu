// Half- and quarter-sample refinement of all 41 vectors of a macroblock (not part of the standard).
//
// Seven layers of partitions cover a macroblock (4x4, 8x4, 4x8, 8x8, 16x8, 8x16, 16x16). A thread has one 4x4 block of one
// layer and tries the vector and its eight neighbours; the lanes of a partition add up its blocks by exchange. A unit is four
// lanes, a quadrant of a layer; layers of larger partitions are four units side by side. A block lists the units of its
// macroblocks that may still win, and its warps take eight of them at a time. Around any position the samples wanted lie in
// four patches: C at the vector, H half a sample left and right, V above and below, D diagonal; the plane of each is that of C
// with the bits of the half-sample directions turned over.
// Samples of 8 bits only: words of four samples.
#include "search/subpel_refine_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/search.cuh"
#include "costs/bit_costs.cuh"
#include "search/partition_layers.cuh"

constexpr int FIRST_LARGE_LAYER = 4, UNITS = 4 * LAYERS;  // unit 4 * layer + quadrant

// Rows of samples from any address on; the stride is whole words, so that all rows begin at the same place of a word
struct Rows {
  const unsigned *first;
  unsigned shift;
  int words;
};
DEVICE Rows rows_from(const Sample *p, int stride) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  return {reinterpret_cast<const unsigned *>(at & ~uintptr_t(3)), unsigned(at & 3) * 8, stride >> 2};
}
// The four samples from the first one on, and those from the second one on
DEVICE void load_pair(const Rows &rows, int i, unsigned *left, unsigned *right) {
  const unsigned a = __ldg(rows.first + i * rows.words), b = __ldg(rows.first + i * rows.words + 1);
  *left = __funnelshift_r(a, b, rows.shift);
  *right = __funnelshift_rc(a, b, rows.shift + 8);
}
DEVICE unsigned load_word(const Rows &rows, int i) {
  return __funnelshift_r(__ldg(rows.first + i * rows.words), __ldg(rows.first + i * rows.words + 1), rows.shift);
}

// This thread's block of the source
struct Current {
  unsigned rows[4];
  Transformed coefficients;
};
template <int METRIC>
DEVICE unsigned distortion(const Current &current, const unsigned *prediction) {
  return METRIC == SATD ? satd_4x4(current.coefficients, prediction) : sad_4x4(current.rows, prediction);
}
template <int METRIC>
DEVICE unsigned distortion(const Current &current, const unsigned *a, const unsigned *b) {
  unsigned p[4];
#pragma unroll
  for (int i = 0; i < 4; i++) p[i] = average4(a[i], b[i]);
  return distortion<METRIC>(current, p);
}

// Read from another lane, so that the compiler cannot know that a byte is 0 or 1, and multiplies
DEVICE void find_neighbours(Layer &layer) {
  const unsigned bytes = pack4(layer.width > 1, layer.height > 1, layer.width > 2, layer.height > 2);
  layer.shared = __shfl_sync(FULL_WARP, bytes, int(threadIdx.x) & 31);
}
// Whether the partitions of this layer may still win by their integer costs; of the layers below 8x8, in this block's quadrant
DEVICE bool worth_refining(const int *cost, int lam, int partition_mask, int every, int quiet, int layer, int block) {
  if (layer == 6) return true;
  const int needed = layer == 0 ? 16 | 8 | 4 : layer < 3 ? 8 | 4 : layer == 3 ? 4 : 2;
  if ((partition_mask & needed) != needed) return false;
  if (every) return true;
  const int whole = cost[40];
  if (whole < quiet * lam) return false;
  if (layer == 4) return cost[36] + cost[37] < whole + REFINE_MARGIN_HALVES * lam;
  if (layer == 5) return cost[38] + cost[39] < whole + REFINE_MARGIN_HALVES * lam;
  if (cost[32] + cost[33] + cost[34] + cost[35] >= whole + REFINE_MARGIN_8x8 * lam) return false;
  if (layer == 3) return true;
  const int q = (block >> 3) * 2 + (block >> 1 & 1), b = block & 10, quarter = cost[32 + q];
  if (layer == 0) return cost[b] + cost[b + 1] + cost[b + 4] + cost[b + 5] < quarter + REFINE_MARGIN_4x4 * lam;
  const int first = (layer == 1 ? 16 : 24) + 2 * q;
  return cost[first] + cost[first + 1] < quarter + REFINE_MARGIN_8x4 * lam;
}

// One step. v[9]: distortions of this thread's block, the centre first, then the neighbours in raster order.
template <bool HALF, int METRIC, bool CENTRE>
DEVICE void block_costs(const Current &current, const Sample *luma, unsigned plane_size, int stride, int x, int y, unsigned *v) {
  const int fx = x >> 1 & 1, fy = y >> 1 & 1, c = fx + 2 * fy;  // the vector is at a multiple of half a sample
  const int at = (y >> 2) * stride + (x >> 2);  // four planes stay below 2^32 bytes
  const int left = fx ? 0 : -1, up = fy ? 0 : -stride;
  unsigned C[4], L[4], R[4], V[5];
  Rows rows = rows_from(luma + (c * plane_size + at), stride);
  if (CENTRE || !HALF)
#pragma unroll
    for (int i = 0; i < 4; i++) C[i] = load_word(rows, i);
  rows = rows_from(luma + ((c ^ 1) * plane_size + at + left), stride);
#pragma unroll
  for (int i = 0; i < 4; i++) load_pair(rows, i, &L[i], &R[i]);
  rows = rows_from(luma + ((c ^ 2) * plane_size + at + up), stride);
#pragma unroll
  for (int i = 0; i < 5; i++) V[i] = load_word(rows, i);
  v[0] = CENTRE ? distortion<METRIC>(current, C) : 0;
  if (HALF) {  // as early as possible, to save registers
    v[4] = distortion<METRIC>(current, L);
    v[5] = distortion<METRIC>(current, R);
  }
  const bool diagonal = HALF || c == 1 || c == 2;
  rows = rows_from(luma + ((c ^ 3) * plane_size + at + left + up), stride);
  unsigned D[5], E[5];
  if (diagonal) {
#pragma unroll
    for (int i = 0; i < 5; i++) load_pair(rows, i, &D[i], &E[i]);
  }
  if (HALF) {
    v[2] = distortion<METRIC>(current, V);
    v[7] = distortion<METRIC>(current, V + 1);
    v[1] = distortion<METRIC>(current, D);
    v[3] = distortion<METRIC>(current, E);
    v[6] = distortion<METRIC>(current, D + 1);
    v[8] = distortion<METRIC>(current, E + 1);
  } else {
    v[2] = distortion<METRIC>(current, C, V);
    v[4] = distortion<METRIC>(current, C, L);
    v[5] = distortion<METRIC>(current, C, R);
    v[7] = distortion<METRIC>(current, C, V + 1);
    if (!diagonal) {
#pragma unroll
      for (int i = 0; i < 5; i++) D[i] = E[i] = V[i];
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) L[i] = R[i] = C[i];
    }
    v[1] = distortion<METRIC>(current, L, D);
    v[3] = distortion<METRIC>(current, R, E);
    v[6] = distortion<METRIC>(current, L, D + 1);
    v[8] = distortion<METRIC>(current, R, E + 1);
  }
}

template <bool HALF, int METRIC, bool CENTRE>
DEVICE void step(const Current &current, const Sample *luma, unsigned plane_size, int stride, int x0, int y0, const Layer &layer,
                 int px, int py, int lam, int &x, int &y, int &cost) {
  constexpr int STEP = HALF ? 2 : 1;
  unsigned v[9];
  block_costs<HALF, METRIC, CENTRE>(current, luma, plane_size, stride, 4 * x0 + x, 4 * y0 + y, v);
#pragma unroll
  for (int n = CENTRE ? 0 : 1; n < 9; n++) {
#pragma unroll
    for (int i = 0; i < 4; i++) v[n] = mad(__shfl_xor_sync(FULL_WARP, v[n], 1 << i), unsigned(byte_of(layer.shared, i)), v[n]);
  }
  int bx[3], by[3];
#pragma unroll
  for (int i = 0; i < 3; i++) {
    bx[i] = lam * se_bits(x + (i - 1) * STEP - px);
    by[i] = lam * se_bits(y + (i - 1) * STEP - py);
  }
  int best = CENTRE ? int(v[0]) + bx[1] + by[1] : cost, dx = 0, dy = 0;
#pragma unroll
  for (int n = 1; n < 9; n++) {
    const int i = n <= 4 ? (n - 1) % 3 : n % 3, j = n <= 4 ? (n - 1) / 3 : n / 3;  // n as in v: raster without the centre
    const int total = int(v[n]) + bx[i] + by[j];
    if (total < best) {
      best = total;
      dx = i - 1;
      dy = j - 1;
    }
  }
  cost = best;
  x += dx * STEP;
  y += dy * STEP;
}

// The 4x4 block of lane `lane & 3` of a unit
DEVICE int block_of(int unit, int lane) { return 8 * (unit >> 1 & 1) + 2 * (unit & 1) + 4 * (lane >> 1 & 1) + (lane & 1); }
// Whether a block is the first one of its partition
DEVICE bool is_first(const Layer &layer, int block) { return (block & 3) % layer.width == 0 && (block >> 2) % layer.height == 0; }

template <bool QUARTER, int HALF_METRIC, int QUARTER_METRIC>
DEVICE void refine(const Sample *source, const Sample *luma, int width, int height, int pad, const short2 *predictor,
                   const uint8_t *__restrict__ qp, int partition_mask, int every, int quiet, int row0, int mb_width, int *cost,
                   short2 *mv) {
  SHARED(uint8_t, listed, 2 * MACROBLOCKS * UNITS);  // units of large partitions, the others
  SHARED(int, counts, 2);
  wait_for_the_kernel_before();
  const int my = int(blockIdx.y) + row0, first_mb = my * mb_width + int(blockIdx.x) * MACROBLOCKS;
  const int macroblocks = min(MACROBLOCKS, mb_width - int(blockIdx.x) * MACROBLOCKS), thread = int(threadIdx.x);
  if (thread < 2) counts[thread] = 0;
  __syncthreads();
  bool dropped = false;
  if (thread < macroblocks * UNITS) {
    const int mb = first_mb + thread / UNITS, unit = thread % UNITS, layer = unit >> 2, large = layer >= FIRST_LARGE_LAYER;
    dropped = !worth_refining(cost + mb * 41, LAMBDA[qp[mb]], partition_mask, every, quiet, layer, block_of(unit, 0));
    if (!dropped && !(large && unit & 3)) {
      uint8_t *to = listed + (large ? 0 : MACROBLOCKS * UNITS) + atomicAdd(counts + !large, large ? 4 : 1);
      for (int k = 0; k < (large ? 4 : 1); k++) to[k] = uint8_t(thread + k);
    }
  }
  __syncthreads();
  if (dropped) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int block = block_of(thread % UNITS, k);
      const Layer layer = layer_of(thread % UNITS >> 2, block);
      if (is_first(layer, block)) cost[(first_mb + thread / UNITS) * 41 + layer.partition] = COST_NOT_REFINED;
    }
  }
  const int large = counts[0], all = large + counts[1], lane = thread & 31;
#pragma unroll 1
  for (int next = thread >> 5 << 3; next < all; next += THREADS / 4) {
    const int at = next + (lane >> 2);
    const bool live = at < all;
    const int place_in_list = live ? at : next;
    const int listed_unit = listed[place_in_list < large ? place_in_list : MACROBLOCKS * UNITS + place_in_list - large];
    const int mb = first_mb + listed_unit / UNITS, unit = listed_unit % UNITS, block = block_of(unit, lane), lam = LAMBDA[qp[mb]];
    Layer layer = layer_of(unit >> 2, block);
    const int index = mb * 41 + layer.partition;
    const bool first = live && is_first(layer, block);
    const int xs = (mb - my * mb_width) * 16 + (block & 3) * 4, ys = my * 16 + (block >> 2) * 4;
    Current current;
#pragma unroll
    for (int i = 0; i < 4; i++) current.rows[i] = __ldg(reinterpret_cast<const unsigned *>(source + size_t(ys + i) * mb_width * 16 + xs));
    current.coefficients = transformed(current.rows);
    find_neighbours(layer);
    const short2 p = predictor[mb], start = mv[index];
    int x = start.x, y = start.y, value = cost[index];
    const unsigned plane_size = unsigned(width) * unsigned(height);
    step<true, HALF_METRIC, HALF_METRIC != SAD>(current, luma, plane_size, width, xs + pad, ys + pad, layer, p.x, p.y, lam, x, y, value);
    if (QUARTER)
      step<false, QUARTER_METRIC, QUARTER_METRIC != HALF_METRIC>(current, luma, plane_size, width, xs + pad, ys + pad, layer, p.x,
                                                                 p.y, lam, x, y, value);
    __syncwarp();
    if (first) {
      cost[index] = value;
      mv[index] = make_short2(short(x), short(y));
    }
  }
}

// source Sample[H, W]; luma Sample[4, height, width] with its border; predictor int16[n_mb, 2]; cost int32[n_mb, 41] and
// mv int16[n_mb, 41, 2] in place; quiet: see QUIET, 0 above subme QUICK. Grid: MACROBLOCKS across, rows.
// blocks: minimum blocks a multiprocessor; for three the last kernel lacks a few registers, from sm_100 on the one before too.
#define REFINE(name, blocks, ...)                                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const Sample *__restrict__ source,                      \
      const Sample *__restrict__ luma, int width, int height, int pad, const short2 *__restrict__ predictor,            \
      const uint8_t *__restrict__ qp, int partition_mask, int every, int quiet, int row0, int mb_width, int *cost,      \
      short2 *mv) {                                                                                                     \
    refine<__VA_ARGS__>(source, luma, width, height, pad, predictor, qp, partition_mask, every, quiet, row0, mb_width, cost,  \
                        mv);                                                                                            \
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define MIXED_BLOCKS 2
#else
#define MIXED_BLOCKS 3
#endif
REFINE(refine_half_sad, 3, false, SAD, SAD)
REFINE(refine_sad_sad, 3, true, SAD, SAD)
REFINE(refine_sad_satd, MIXED_BLOCKS, true, SAD, SATD)
REFINE(refine_satd_satd, 2, true, SATD, SATD)
