// Motion search along patterns with SADs of all partitions (not part of the standard): twin of cpu_simd/search/pattern_search.py.
//
// A warp searches one macroblock, four candidates at a time: eight lanes each, a lane half a column of 4x4 blocks. Sums of blocks
// pass between these lanes, so that a lane has one partition of each shape. A group of lanes keeps the best of its candidates as
// cost << 16 | number of the candidate, so that of equal costs the earlier one counts; the groups meet at the end, and for 16x16
// after each round, since the next one begins where that is best.
// Samples of 8 bits only: words of four samples.
#include "search/pattern_search_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/search.cuh"
#include "costs/bit_costs.cuh"

constexpr int N_SHAPES = 8;  // 4x4, its lower neighbour, 8x4, 4x8, 8x8, 16x8, 8x16, 16x16

struct Search {
  const Sample *corner;  // sample (0, 0) of the macroblock's candidate (0, 0), at the lane's column and rows
  int width;              // of the reference
  int size, left, top, predictor_x, predictor_y, weight;
  bool large;
  int number;             // of the group's next candidate
  unsigned source_rows[8], key[N_SHAPES];
  int at[N_SHAPES];        // the candidate of key, y << 7 | x

  DEVICE int bits(int x, int y) const { return mvd_bits(4 * (left + x) - predictor_x, 4 * (top + y) - predictor_y); }

  DEVICE void keep(int shape, unsigned sad, unsigned motion, int here) {
    const unsigned k = min(65535u, sad + motion) << 16 | unsigned(number);
    if (k < key[shape]) {
      key[shape] = k;
      at[shape] = here;
    }
  }

  // One candidate a group, if it is inside the window; all lanes of the warp come here.
  DEVICE void look(int x, int y, bool wanted) {
    const bool inside = wanted && x >= 0 && x < size && y >= 0 && y < size;
    const Sample *p = corner + (inside ? size_t(y) * width + x : 0);
    unsigned upper = 0, lower = 0;
#pragma unroll
    for (int r = 0; r < 4; r++) {
      upper = sad4(load_word(p + size_t(r) * width), source_rows[r], upper);
      lower = sad4(load_word(p + size_t(r + 4) * width), source_rows[r + 4], lower);
    }
    const unsigned motion = inside ? unsigned(weight * bits(x, y)) : 65535u, tall = upper + lower;
    const int here = y << 7 | x, lane = threadIdx.x & 31;
    if (!large) {
      const unsigned wide = __shfl_xor_sync(FULL_WARP, lane & 1 ? upper : lower, 1);  // what the other lane sums up is its own
      keep(0, upper, motion, here);
      keep(1, lower, motion, here);
      keep(2, (lane & 1 ? lower : upper) + wide, motion, here);
      keep(3, tall, motion, here);
    }
    const unsigned quadrant = tall + __shfl_xor_sync(FULL_WARP, tall, 1);
    const unsigned row = quadrant + __shfl_xor_sync(FULL_WARP, quadrant, 2);
    keep(4, quadrant, motion, here);
    keep(5, row, motion, here);
    keep(6, quadrant + __shfl_xor_sync(FULL_WARP, quadrant, 4), motion, here);
    keep(7, row + __shfl_xor_sync(FULL_WARP, row, 4), motion, here);
    number += 4;
  }

  // The candidates SEARCH_POINTS[first ..], `count` of them, round `middle`; those of `across` and so on for the scales from
  // `scale` on, `step` apart, `scales` of them.
  DEVICE void look_round(int middle, int first, int count, int scale = 1, int step = 1, int scales = 1) {
    const int group = (threadIdx.x & 31) >> 3;
    for (int n = 0; n < count * scales; n += 4) {
      const int k = n + group, point = first + k % count, by = scale + step * (k / count);
      look((middle & 127) + by * SEARCH_POINTS[point][0], (middle >> 7) + by * SEARCH_POINTS[point][1], k < count * scales);
    }
  }

  // The best candidate so far of a shape; its key to `least`
  DEVICE int best(int shape, unsigned &least) const {
    least = key[shape];
    int where = at[shape];
#pragma unroll
    for (int distance = 8; distance < 32; distance *= 2) {
      const unsigned other = __shfl_xor_sync(FULL_WARP, least, distance);
      const int there = __shfl_xor_sync(FULL_WARP, where, distance);
      if (other < least) {
        least = other;
        where = there;
      }
    }
    return where;
  }
  DEVICE int best() const {
    unsigned least;
    return best(7, least);
  }

  DEVICE void follow_diamonds() {
    for (int before = -1, after = best(); after != before;) {
      look_round(after, AT_DIAMOND, 4);
      before = after;
      after = best();
    }
  }

  DEVICE void follow_hexagons() {
    int before = best();
    look_round(before, AT_HEXAGON + 1, 6);
    int after = best();
    while (after != before) {
      int n = AT_HEXAGON + 1;
      while (n < AT_HEXAGON + 6 && after - before != 128 * SEARCH_POINTS[n][1] + SEARCH_POINTS[n][0]) n++;
      look_round(after, n - 1, 3);
      before = after;
      after = best();
    }
    look_round(after, AT_SQUARE, 8);
  }

  DEVICE void look_wide(int range, unsigned enough) {
    look_round(best(), AT_DIAMOND, 4);
    unsigned least;
    const int middle = best(7, least);
    if (least >> 16 < enough) return;
    look_round(middle, AT_ACROSS, 2, 3, 2, max(0, (range - 2) / 2));
    look_round(middle, AT_DOWN, 2, 3, 2, max(0, (range / 2 - 2) / 2));
    look_round(best(), AT_SQUARE, 24);
    look_round(best(), AT_MULTI_HEXAGON, 16, 1, 1, range / 4);
  }

  DEVICE void look_round_quadrants() {
    const int whole = best();
    for (int q = 0; q < 4; q++) {
      unsigned least;
      const int middle = __shfl_sync(FULL_WARP, best(4, least), 4 * (q >> 1) + 2 * (q & 1));
      if (middle != whole) look_round(middle, AT_SQUARE, 8);
    }
  }
};

// Partition of a lane of a group, by shape; -1: another lane has it
DEVICE int partition_of(int shape, int lane) {
  const int column = lane & 3, half = lane >> 2 & 1, quadrant = 2 * half + (column >> 1), second = column & 1;
  switch (shape) {
    case 0: return 8 * half + column;
    case 1: return 8 * half + 4 + column;
    case 2: return 16 + 2 * quadrant + second;
    case 3: return 24 + 2 * quadrant + second;
    case 4: return second ? -1 : 32 + quadrant;
    case 5: return column ? -1 : 36 + half;
    case 6: return second || half ? -1 : 38 + (column >> 1);
    default: return lane & 7 ? -1 : 40;
  }
}

// source Sample[H, W]; reference Sample[H + 2 pad, width] with its border of `pad`; centre int16[n_mb, 2] integer samples; predictor
// int16[n_mb, 2], cost int32[n_mb, 41], mv int16[n_mb, 41, 2] quarter samples; n_mb macroblocks from `first` on, WARPS a block.
extern "C" __global__ void __launch_bounds__(32 * WARPS) pattern_search(const Sample *__restrict__ source, int source_width,
    const Sample *__restrict__ reference, int width, int pad, const short2 *__restrict__ centre, const short2 *__restrict__ predictor,
    const uint8_t *__restrict__ qp, int range, int pattern, int large, int quiet, int first, int n_mb, int *__restrict__ cost,
    short2 *__restrict__ mv) {
  wait_for_the_kernel_before();
  const int index = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), lane = threadIdx.x & 31, mb = first + index;
  if (index >= n_mb) return;
  const int mb_width = source_width / 16, mx = mb % mb_width, my = mb / mb_width, lam = LAMBDA[qp[mb]];
  const short2 c = centre[mb], p = predictor[mb];
  Search s;
  s.width = width;
  s.size = 2 * range;
  s.left = c.x - range;
  s.top = c.y - range;
  s.predictor_x = p.x;
  s.predictor_y = p.y;
  s.weight = lam >> 1;
  s.large = large;
  s.number = 1 + (lane >> 3);
  const int x = 16 * mx + 4 * (lane & 3), y = 16 * my + 8 * (lane >> 2 & 1), middle = range << 7 | range;
  s.corner = reference + size_t(y + s.top + pad) * width + x + s.left + pad;
#pragma unroll
  for (int r = 0; r < 8; r++) s.source_rows[r] = *reinterpret_cast<const unsigned *>(source + size_t(y + r) * source_width + x);
#pragma unroll
  for (int k = 0; k < N_SHAPES; k++) {
    s.key[k] = 65535u << 16;
    s.at[k] = middle;
  }
  const bool is_zero = (lane >> 3) == 1;  // the first group has the centre, the second one the vector 0
  s.look(is_zero ? -s.left : range, is_zero ? -s.top : range, lane < 16);
  const int bits = s.bits(range, range);
  // the centre's SAD, by full lambda; 65535 is more than any quiet macroblock costs
  const int value = int(__shfl_sync(FULL_WARP, s.key[7], 0) >> 16) + (lam - s.weight) * bits;
  if (quiet && value < quiet * lam) {
    for (int k = lane; k < 41; k += 32) cost[mb * 41 + k] = k < 40 ? COST_NOT_REFINED : value;
    if (lane == 0) mv[mb * 41 + 40] = make_short2(short(4 * c.x), short(4 * c.y));
    return;
  }
  if (pattern == DIA) {
    s.follow_diamonds();
  } else {
    if (pattern == UMH) s.look_wide(range, unsigned(UMH_ENOUGH * lam));
    s.follow_hexagons();
  }
  s.look_round_quadrants();
  for (int shape = large ? 4 : 0; shape < N_SHAPES; shape++) {
    unsigned least;
    const int where = s.best(shape, least), k = partition_of(shape, lane), dx = where & 127, dy = where >> 7;
    if (lane >= 8 || k < 0) continue;
    cost[mb * 41 + k] = int(least >> 16) + (lam - s.weight) * s.bits(dx, dy);
    mv[mb * 41 + k] = make_short2(short(4 * (s.left + dx)), short(4 * (s.top + dy)));
  }
}
