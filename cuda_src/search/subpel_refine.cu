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

constexpr int FIRST_LARGE_LAYER = 4, UNITS = 4 * LAYERS, UNIT_NUMBERS = 32;  // unit 4 * layer + quadrant; numbers of a macroblock
constexpr int BLOCKS = 4;  // of a multiprocessor at once, whose registers limit them

// The four samples of row i from the first one on, and those from `bits` later on, 0 or 8; the word after the first is there
DEVICE void load_pair(const Rows &rows, int i, unsigned bits, unsigned *left, unsigned *right) {
  const unsigned a = __ldg(rows.first + i * rows.words), b = __ldg(rows.first + i * rows.words + 1);
  *left = __funnelshift_r(a, b, rows.bits);
  *right = __funnelshift_rc(a, b, rows.bits + bits);
}
DEVICE unsigned load_left(const Rows &rows, int i) {
  unsigned left, right;
  load_pair(rows, i, 0, &left, &right);
  return left;
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
// Those of two predictions, the first in the lower half
template <int METRIC>
DEVICE unsigned distortions(const Current &current, const unsigned *low, const unsigned *high) {
  return METRIC == SATD ? satd_4x4_pair(current.coefficients, low, high)
                        : mad(sad_4x4(current.rows, high), HIGH_HALF, sad_4x4(current.rows, low));
}
// Those of the averages of a and b, and of c and d
template <int METRIC>
DEVICE unsigned distortions(const Current &current, const unsigned *a, const unsigned *b, const unsigned *c, const unsigned *d) {
  unsigned low[4], high[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    low[i] = average4(a[i], b[i]);
    high[i] = average4(c[i], d[i]);
  }
  return distortions<METRIC>(current, low, high);
}

// The 4x4 block of lane `lane & 3` of a unit
DEVICE int block_of(int unit, int lane) { return 8 * (unit >> 1 & 1) + 2 * (unit & 1) + 4 * (lane >> 1 & 1) + (lane & 1); }
// What a lane of a unit has: in x its partition, its block and whether that is the partition's first, a byte each; y: Layer::shared.
// Read from memory, so that the compiler cannot know that a byte of y is 0 or 1, and multiplies
DEVICE uint2 describe_lane(int unit, int lane) {
  const int block = block_of(unit, lane);
  const Layer layer = layer_of(unit >> 2, block);
  const bool first = !(block & 3 & (layer.width - 1)) && !(block >> 2 & (layer.height - 1));
  return make_uint2(pack4(layer.partition, block, first, 0), pack4(layer.width > 1, layer.height > 1, layer.width > 2, layer.height > 2));
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

// The neighbours, by their order: from 1 on, raster without the centre; x and y of each: 0, 1, 2 for a step of -1, 0, 1
constexpr unsigned NEIGHBOURS_X = 0x24891u, NEIGHBOURS_Y = 0x2a501u;  // two bits each; 0 is the centre
constexpr int PAIRS = 4;  // of neighbours whose distortions share a word: above and below, left and right, two of a row twice
constexpr unsigned ORDER = 0x86315472u;  // of both neighbours of each pair, a digit each
DEVICE constexpr int coordinate(unsigned neighbours, int order) { return int(neighbours >> (2 * order) & 3); }

// One step: distortions of this thread's block at the neighbours, in the order of ORDER, and at the vector
template <bool HALF, int METRIC, bool CENTRE>
DEVICE void block_costs(const Current &current, const Sample *luma, unsigned plane_size, int stride, int x, int y, unsigned *pairs,
                        unsigned *centre) {
  const int fx = x >> 1 & 1, fy = y >> 1 & 1, c = fx + 2 * fy;  // the vector is at a multiple of half a sample
  const int at = (y >> 2) * stride + (x >> 2);  // four planes stay below 2^32 bytes
  const int left = fx ? 0 : -1, up = fy ? 0 : -stride;
  unsigned C[4], L[4], R[4], V[5], D[5], E[5];
  Rows rows = rows_from(luma + (c * plane_size + at), stride);
  if (CENTRE || !HALF)
#pragma unroll
    for (int i = 0; i < 4; i++) C[i] = load_left(rows, i);
  if (CENTRE) *centre = distortion<METRIC>(current, C);
  rows = rows_from(luma + ((c ^ 2) * plane_size + at + up), stride);
#pragma unroll
  for (int i = 0; i < 5; i++) V[i] = load_left(rows, i);
  pairs[0] = HALF ? distortions<METRIC>(current, V, V + 1) : distortions<METRIC>(current, C, V, C, V + 1);
  rows = rows_from(luma + ((c ^ 1) * plane_size + at + left), stride);
#pragma unroll
  for (int i = 0; i < 4; i++) load_pair(rows, i, 8, &L[i], &R[i]);
  pairs[1] = HALF ? distortions<METRIC>(current, L, R) : distortions<METRIC>(current, C, L, C, R);
  // a diagonal quarter sample: of C and D where one of both is between two samples, else of H and V
  const bool diagonal = HALF || c == 1 || c == 2;
  rows = rows_from(luma + ((diagonal ? c ^ 3 : c ^ 2) * plane_size + at + up + (diagonal ? left : 0)), stride);
#pragma unroll
  for (int i = 0; i < 5; i++) load_pair(rows, i, diagonal ? 8 : 0, &D[i], &E[i]);
  if (!HALF)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      L[i] = diagonal ? C[i] : L[i];
      R[i] = diagonal ? C[i] : R[i];
    }
  pairs[2] = HALF ? distortions<METRIC>(current, D, E) : distortions<METRIC>(current, L, D, R, E);
  pairs[3] = HALF ? distortions<METRIC>(current, D + 1, E + 1) : distortions<METRIC>(current, L, D + 1, R, E + 1);
}

// v and that of the lane 1 << i lanes away, if it belongs to the same partition
DEVICE unsigned with_other(unsigned v, unsigned shared, int i) {
  return mad(__shfl_xor_sync(FULL_WARP, v, 1 << i), unsigned(byte_of(shared, i)), v);
}

template <bool HALF, int METRIC, bool CENTRE>
DEVICE void step(const Current &current, const Sample *luma, unsigned plane_size, int stride, int x0, int y0, unsigned shared, int px,
                 int py, int lam, int &x, int &y, int &cost) {
  constexpr int STEP = HALF ? 2 : 1;
  unsigned pairs[PAIRS], centre = 0;
  block_costs<HALF, METRIC, CENTRE>(current, luma, plane_size, stride, 4 * x0 + x, 4 * y0 + y, pairs, &centre);
  int bx[3], by[3];  // costs, and the order of a neighbour below, so that the least of equal costs is the first one's
#pragma unroll
  for (int i = 0; i < 3; i++) {
    bx[i] = 16 * lam * se_bits(x + (i - 1) * STEP - px);
    by[i] = 16 * lam * se_bits(y + (i - 1) * STEP - py);
  }
  int best = 16 * cost;
  if (CENTRE) {
#pragma unroll
    for (int i = 0; i < 4; i++) centre = with_other(centre, shared, i);
    best = int(16 * centre) + bx[1] + by[1];
  }
#pragma unroll
  for (int k = 0; k < PAIRS; k++) {
    unsigned pair = pairs[k];
#pragma unroll
    for (int i = 0; i < 3; i++) pair = with_other(pair, shared, i);  // eight blocks stay below 2^16
    const unsigned sums[2] = {with_other(pair & 0xffff, shared, 3), with_other(pair >> 16, shared, 3)};
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int order = int(ORDER >> (8 * k + 4 * h) & 15);
      best = min(best, int(16 * sums[h]) + (bx[coordinate(NEIGHBOURS_X, order)] + by[coordinate(NEIGHBOURS_Y, order)] + order));
    }
  }
  cost = best >> 4;
  x += (coordinate(NEIGHBOURS_X, best & 15) - 1) * STEP;
  y += (coordinate(NEIGHBOURS_Y, best & 15) - 1) * STEP;
}

template <bool QUARTER, int HALF_METRIC, int QUARTER_METRIC>
DEVICE void refine(const Sample *source, const Sample *luma, int width, int height, int pad, const short2 *predictor,
                   const uint8_t *__restrict__ qp, int partition_mask, int every, int quiet, int row0, int mb_width, int *cost,
                   short2 *mv) {
  SHARED(uint8_t, listed, 2 * MACROBLOCKS * UNITS);  // units of large partitions, the others; above them the macroblock
  SHARED(int, counts, 2);
  SHARED(uint2, lanes, 4 * UNITS);
  const int my = int(blockIdx.y) + row0, first_mb = my * mb_width + int(blockIdx.x) * MACROBLOCKS;
  const int macroblocks = min(MACROBLOCKS, mb_width - int(blockIdx.x) * MACROBLOCKS), thread = int(threadIdx.x);
  if (thread < 2) counts[thread] = 0;
  if (thread < 4 * UNITS) lanes[thread] = describe_lane(thread >> 2, thread);
  wait_for_the_kernel_before();
  __syncthreads();
  const int mb_of_thread = first_mb + thread / UNITS, unit_of_thread = thread % UNITS;
  bool dropped = false;
  if (thread < macroblocks * UNITS) {
    const int layer = unit_of_thread >> 2, large = layer >= FIRST_LARGE_LAYER;
    dropped = !worth_refining(cost + mb_of_thread * 41, LAMBDA[qp[mb_of_thread]], partition_mask, every, quiet, layer,
                              block_of(unit_of_thread, 0));
    if (!dropped && !(large && unit_of_thread & 3)) {
      uint8_t *to = listed + (large ? 0 : MACROBLOCKS * UNITS) + atomicAdd(counts + !large, large ? 4 : 1);
      for (int k = 0; k < (large ? 4 : 1); k++) to[k] = uint8_t(thread / UNITS * UNIT_NUMBERS + unit_of_thread + k);
    }
  }
  __syncthreads();
  if (dropped) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const unsigned lane = lanes[4 * unit_of_thread + k].x;
      if (byte_of(lane, 2)) cost[mb_of_thread * 41 + byte_of(lane, 0)] = COST_NOT_REFINED;
    }
  }
  const int large = counts[0], all = large + counts[1];
  const unsigned plane_size = unsigned(width) * unsigned(height);
#pragma unroll 1
  for (int next = thread >> 5 << 3; next < all; next += THREADS / 4) {
    const int at = next + (thread >> 2 & 7);
    const bool live = at < all;
    const int place_in_list = live ? at : next;
    const int unit = listed[place_in_list < large ? place_in_list : MACROBLOCKS * UNITS + place_in_list - large];
    const uint2 lane = lanes[unit % UNIT_NUMBERS * 4 + (thread & 3)];
    const int across = int(blockIdx.x) * MACROBLOCKS + unit / UNIT_NUMBERS, mb = my * mb_width + across, block = byte_of(lane.x, 1);
    const int index = mb * 41 + byte_of(lane.x, 0), xs = across * 16 + (block & 3) * 4, ys = my * 16 + (block & 12), lam = LAMBDA[qp[mb]];
    Current current;
    const unsigned *from = reinterpret_cast<const unsigned *>(source) + (unsigned(ys) * unsigned(mb_width) * 4u + unsigned(xs) / 4u);
#pragma unroll
    for (int i = 0; i < 4; i++) current.rows[i] = __ldg(from + i * mb_width * 4);
    current.coefficients = transformed(current.rows);
    const short2 p = predictor[mb], start = mv[index];
    int x = start.x, y = start.y, value = cost[index];
    step<true, HALF_METRIC, HALF_METRIC != SAD>(current, luma, plane_size, width, xs + pad, ys + pad, lane.y, p.x, p.y, lam, x, y, value);
    if (QUARTER)
      step<false, QUARTER_METRIC, QUARTER_METRIC != HALF_METRIC>(current, luma, plane_size, width, xs + pad, ys + pad, lane.y, p.x, p.y,
                                                                 lam, x, y, value);
    __syncwarp();
    if (live && byte_of(lane.x, 2)) {
      cost[index] = value;
      mv[index] = make_short2(short(x), short(y));
    }
  }
}

// source Sample[H, W]; luma Sample[4, height, width] with its border; predictor int16[n_mb, 2]; cost int32[n_mb, 41] and
// mv int16[n_mb, 41, 2] in place; quiet: see QUIET, 0 above subme QUICK. Grid: MACROBLOCKS across, rows.
#define REFINE(name, ...)                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) name(const Sample *__restrict__ source,                  \
      const Sample *__restrict__ luma, int width, int height, int pad, const short2 *__restrict__ predictor,            \
      const uint8_t *__restrict__ qp, int partition_mask, int every, int quiet, int row0, int mb_width, int *cost,      \
      short2 *mv) {                                                                                                     \
    refine<__VA_ARGS__>(source, luma, width, height, pad, predictor, qp, partition_mask, every, quiet, row0, mb_width, cost,  \
                        mv);                                                                                            \
  }
REFINE(refine_half_sad, false, SAD, SAD)
REFINE(refine_sad_sad, true, SAD, SAD)
REFINE(refine_sad_satd, true, SAD, SATD)
REFINE(refine_satd_satd, true, SATD, SATD)
