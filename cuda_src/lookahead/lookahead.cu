// Costs of the macroblocks of half-size frames, from earlier frames, later ones and both: twin of cpu_simd/lookahead/lookahead.py, which
// explains it. A macroblock is a block of 8x8 samples; four lanes have a 4x4 block each, so that a warp tries eight vectors at once.
// Samples of 8 bits only: words of four samples.
#include "lookahead/lookahead_launch.cuh"
#include "decisions/lookahead.cuh"
#include "decisions/search.cuh"
#include "costs/bit_costs.cuh"
#include "lookahead/lookahead_sums.cuh"
#include "inter/mv_prediction.cuh"
#include "tables.cuh"

constexpr int ORDER = 4;    // bits of a key below the cost: order of the trials
constexpr int COST_MAX = 1 << 20;  // cost of a vector that may not be tried
constexpr int CAMERA_WARPS = CAMERA_THREADS / 32;
constexpr int ENDED = CAMERA_WORDS - 1;  // place in `totals`

// One frame from another: a row of the table of the launcher, 8 bytes each. blockIdx.y is its number.
struct MotionJob {
  const Sample *planes, *coarse, *tiny, *others, *other_coarse, *other_tiny;
  const uint16_t *intra;  // costs of the frame; null: sum of the costs alone
  int *totals;  // sums of candidates, and ENDED
  short2 *camera;
  unsigned *vector, *mv;
  uint16_t *cost;
  int64_t unused[3];
  unsigned long long sum;
};
// One frame between two others, likewise
struct BetweenJob {
  const Sample *planes, *earlier, *later;
  int64_t position;
  const unsigned *mv0;
  const uint16_t *cost0;
  const unsigned *mv1;
  const uint16_t *cost1;
  const unsigned *direct;
  uint16_t *cost;     // null: the sum alone
  unsigned *vectors;  // of the macroblock, from the earlier and from the later frame; null: not asked for
  uint8_t *lists;     // with vectors
  int64_t unused[3];
  unsigned long long sum;
};

// Sizes of the planes
struct Frame {
  int mb_width, mb_height, stride, plane_size;
  DEVICE Frame(int mb_width, int mb_height)
      : mb_width(mb_width), mb_height(mb_height), stride(8 * mb_width + 2 * LOOK_PAD),
        plane_size((8 * mb_height + 2 * LOOK_PAD) * stride) {}
  DEVICE int origin(int mx, int my) const { return (LOOK_PAD + 8 * my) * stride + LOOK_PAD + 8 * mx; }
  // of a block at `origin`, moved by (x, y) source samples
  DEVICE int moved(int origin, int x, int y) const {
    return origin + ((y & 1) * 2 + (x & 1)) * plane_size + (y >> 1) * stride + (x >> 1);
  }
  DEVICE bool inside(int x, int y, int mx, int my) const {
    const int left = 8 * mx + (x >> 1), top = 8 * my + (y >> 1);
    return left >= -LOOK_PAD && left + 8 <= 8 * mb_width + LOOK_PAD && top >= -LOOK_PAD && top + 8 <= 8 * mb_height + LOOK_PAD;
  }
  // to the lane's 4x4 block
  DEVICE int quarter(int lane) const { return 4 * (lane >> 1 & 1) * stride + 4 * (lane & 1); }
};
DEVICE void load_rows(const Sample *samples, int stride, unsigned *words) {
  const Rows rows = rows_from(samples, stride);
#pragma unroll
  for (int i = 0; i < 4; i++) words[i] = load_word(rows, i);
}
// Sum over the four lanes of a macroblock
DEVICE int of_four(int sum) {
  sum += __shfl_xor_sync(FULL_WARP, sum, 1);
  return sum + __shfl_xor_sync(FULL_WARP, sum, 2);
}
// SATD of the macroblock whose transform is `source_transform`, against the samples at `at` of four lanes
DEVICE int satd(const Transformed &source_transform, const Sample *at, int stride) {
  unsigned rows[4];
  load_rows(at, stride, rows);
  return of_four(int(satd_4x4(source_transform, rows)));
}

// Motion of the frame n, in macroblocks: none, then rows from above
DEVICE int2 candidate(int n, int width, int height) {
  const int range_x = min(CAMERA_X, width / 2), range_y = min(CAMERA_Y, height / 2), wide = 2 * range_x + 1;
  if (n == 0) return make_int2(0, 0);
  return make_int2((n - 1) % wide - range_x, (n - 1) / wide - range_y);
}

// Sum of differences of a candidate, by all threads of a block, a warp a row
DEVICE int sum_differences(const Sample *__restrict__ here, const Sample *__restrict__ there, int width, int height, int2 v) {
  SHARED(int, sums, CAMERA_WARPS);
  const int wide = width - abs(v.x), high = height - abs(v.y), words = wide >> 2, lane = int(threadIdx.x & 31);
  here += max(0, -v.y) * width + max(0, -v.x);
  there += max(0, v.y) * width + max(0, v.x);
  unsigned total = 0;
  for (int y = int(threadIdx.x >> 5); y < high; y += CAMERA_WARPS) {
    const Sample *a = here + y * width, *b = there + y * width;
    for (int i = lane; i < words; i += 32) total = sad4(load_word(a + 4 * i), load_word(b + 4 * i), total);
    const int x = 4 * words + lane;  // of the samples beside whole words
    if (x < wide) total += unsigned(abs(int(a[x]) - int(b[x])));
  }
  total = __reduce_add_sync(FULL_WARP, total);
  if (lane == 0) sums[threadIdx.x >> 5] = int(total);
  __syncthreads();
  int all = 0;
  for (int i = 0; i < CAMERA_WARPS; i++) all += sums[i];
  return all;
}

// The candidate with the least mean; the first on a tie. Totals of samples and areas stay below 2^31 and 2^23
struct Least {
  int n, total, area;
  DEVICE void take(Least other) {
    const long long left = (long long)other.total * area, right = (long long)total * other.area;
    if (left < right || (left == right && other.n < n)) *this = other;
  }
};

// The motion of the frame from the sums of differences of `count` candidates -> camera. One warp
DEVICE void choose_motion(const int *totals, int width, int height, int count, short2 *camera) {
  const auto scored = [&](int n) {
    const int2 v = candidate(n, width, height);
    return Least{n, __ldcg(totals + n), (width - abs(v.x)) * (height - abs(v.y))};
  };
  Least best = scored(min(int(threadIdx.x), count - 1));
#pragma unroll 4
  for (int n = int(threadIdx.x) + 32; n < count; n += 32) best.take(scored(n));
#pragma unroll
  for (int step = 16; step; step >>= 1)
    best.take({__shfl_xor_sync(FULL_WARP, best.n, step), __shfl_xor_sync(FULL_WARP, best.total, step),
               __shfl_xor_sync(FULL_WARP, best.area, step)});
  const int2 v = candidate(best.n, width, height);
  if (threadIdx.x == 0) camera[0] = make_short2(short(v.x * (CAMERA_SCALE / COARSE_SCALE)), short(v.y * (CAMERA_SCALE / COARSE_SCALE)));
}

// A block has a candidate; the one that ends last chooses. totals: sums, after them the number of blocks that have ended, 0 at
// the start and at the end
DEVICE void find_motion(const Sample *here, const Sample *there, int width, int height, int *totals, short2 *camera) {
  SHARED(int, is_last, 1);
  const int count = int(gridDim.x), n = int(blockIdx.x), sum = sum_differences(here, there, width, height, candidate(n, width, height));
  if (threadIdx.x == 0) {
    totals[n] = sum;
    fence();
    is_last[0] = atomicAdd(totals + ENDED, 1) == count - 1;
  }
  __syncthreads();
  if (!is_last[0] || threadIdx.x >= 32) return;
  fence();
  choose_motion(totals, width, height, count, camera);
  if (threadIdx.x == 0) totals[ENDED] = 0;
}

extern "C" __global__ void camera(const Sample *__restrict__ here, const Sample *__restrict__ there, int width, int height,
    int *totals, short2 *camera) {
  wait_for_the_kernel_before();
  find_motion(here, there, width, height, totals, camera);
}
// The same for frames in half size, of all jobs
extern "C" __global__ void lookahead_camera(const MotionJob *__restrict__ jobs, int mb_width, int mb_height) {
  wait_for_the_kernel_before();
  const MotionJob &job = jobs[blockIdx.y];
  find_motion(job.tiny, job.other_tiny, mb_width, mb_height, job.totals, job.camera);
}

// Eight samples of row i
struct Eight {
  unsigned words[2];
};
DEVICE Eight load_eight(const Rows &rows, int i) {
  const unsigned *first = rows.first + i * rows.words, a = __ldg(first), b = __ldg(first + 1), c = __ldg(rows.second + i * rows.words + 1);
  return {{__funnelshift_r(a, b, rows.bits), __funnelshift_r(b, c, rows.bits)}};
}

// The best candidate of the coarse frames: rank in raster order. source, window: the 8x8 coarse samples round the macroblock, and
// those at the same place plus the centre; a lane has a column of candidates
DEVICE int coarse_rank(const Sample *source, const Sample *window, int stride, int lane) {
  const Rows of_source = rows_from(source, stride);
  Rows of_window = rows_from(window + lane - COARSE_X - COARSE_Y * stride, stride);
  Eight block[8], samples[8];
  unsigned best = ~0u;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    block[i] = load_eight(of_source, i);
    if (i < 7) samples[i] = load_eight(of_window, i);
  }
#pragma unroll 5
  for (int dy = 0; dy < 2 * COARSE_Y; dy++) {
    samples[7] = load_eight(of_window, 7);
    of_window.first += of_window.words;
    of_window.second += of_window.words;
    unsigned total = unsigned(mvd_bits(lane - COARSE_X, dy - COARSE_Y));
#pragma unroll
    for (int i = 0; i < 8; i++) total = sad4(samples[i].words[0], block[i].words[0], sad4(samples[i].words[1], block[i].words[1], total));
    best = min(best, total << 10 | unsigned(dy * 2 * COARSE_X + lane));
#pragma unroll
    for (int i = 0; i < 7; i++) samples[i] = samples[i + 1];
  }
  return int(__reduce_min_sync(FULL_WARP, best) & 1023);
}

// Where group 0..7 of four lanes looks around the middle, place 4 of 3x3 in raster order; quick: beside it alone, groups alike in pairs
DEVICE int place_around(int group, int quick) { return quick ? 2 * (group >> 1) + 1 : group + (group >= 4); }

// Macroblock rows [row0, row1) of all jobs; quick: as in the twin
extern "C" __global__ void __launch_bounds__(32 * WARPS) lookahead_search(const MotionJob *__restrict__ jobs, int mb_width,
    int mb_height, int row0, int row1, int quick) {
  wait_for_the_kernel_before();
  const MotionJob &job = jobs[blockIdx.y];
  const Sample *__restrict__ planes = job.planes, *__restrict__ others = job.others;
  const int lane = int(threadIdx.x & 31), mb = row0 * mb_width + int(blockIdx.x) * WARPS + int(threadIdx.x >> 5);
  if (mb >= row1 * mb_width) return;
  const Frame frame(mb_width, mb_height);
  const int mx = mb % mb_width, my = mb / mb_width, origin = frame.origin(mx, my) + frame.quarter(lane);
  unsigned rows[4];
  load_rows(planes + origin, frame.stride, rows);
  const Transformed source_transform = transformed(rows);
  const auto cost_of = [&](int x, int y) {
    return satd(source_transform, others + frame.moved(origin, x, y), frame.stride) + mvd_bits(2 * x, 2 * y);
  };
  int best_x = 0, best_y = 0, least = cost_of(0, 0);
  if (least - NO_BITS >= LOOK_STILL) {
    const int cx = max(-4 * mx, min(4 * (mb_width - 1 - mx), job.camera->x));
    const int cy = max(-4 * my, min(4 * (mb_height - 1 - my), job.camera->y));
    const int stride = 4 * mb_width + 2 * COARSE_PAD, at = (COARSE_PAD + 4 * my - 2) * stride + COARSE_PAD + 4 * mx - 2;
    const int rank = coarse_rank(job.coarse + at, job.other_coarse + at + cy * stride + cx, stride, lane);
    const int x = COARSE_SCALE * (cx + rank % (2 * COARSE_X) - COARSE_X), y = COARSE_SCALE * (cy + rank / (2 * COARSE_X) - COARSE_Y);
    const int value = cost_of(x, y);
    if (value < least) {
      best_x = x;
      best_y = y;
      least = value;
    }
    const int n = place_around(lane >> 2, quick), near_x = best_x + 2 * (n % 3 - 1), near_y = best_y + 2 * (n / 3 - 1);
    const int key = cost_of(near_x, near_y) << ORDER | (lane >> 2);
    const int first = __reduce_min_sync(FULL_WARP, key);
    if (first >> ORDER < least) {
      const int from = 4 * (first & ((1 << ORDER) - 1));
      best_x = __shfl_sync(FULL_WARP, near_x, from);
      best_y = __shfl_sync(FULL_WARP, near_y, from);
    }
  }
  if (lane == 0) job.vector[mb] = vector_of(best_x, best_y);
}

// Macroblock rows [row0, row1) of all jobs; quick: as in the twin
extern "C" __global__ void __launch_bounds__(32 * WARPS) lookahead_refine(MotionJob *jobs, int mb_width, int mb_height, int row0,
    int row1, int quick) {
  SHARED(int, costs, WARPS);
  wait_for_the_kernel_before();
  MotionJob &job = jobs[blockIdx.y];
  const Sample *__restrict__ planes = job.planes, *__restrict__ others = job.others;
  const unsigned *__restrict__ vector = job.vector;
  const int lane = int(threadIdx.x & 31), last = row1 * mb_width - 1;
  const int unclamped = row0 * mb_width + int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), mb = min(unclamped, last);
  const Frame frame(mb_width, mb_height);
  const int mx = mb % mb_width, my = mb / mb_width, origin = frame.origin(mx, my) + frame.quarter(lane);
  unsigned rows[4];
  load_rows(planes + origin, frame.stride, rows);
  const Transformed source_transform = transformed(rows);
  // lane 0: no motion; lane 1: the own vector; from lane 2 on those of the neighbours in raster order
  const int k = lane - 2 + (lane >= 6), dx = k % 3 - 1, dy = k / 3 - 1;
  const bool around = lane >= 2 && lane < 10 && mx + dx >= 0 && mx + dx < mb_width && my + dy >= 0 && my + dy < mb_height;
  const unsigned v = lane == 1 ? vector[mb] : around ? vector[mb + dy * mb_width + dx] : 0;
  const unsigned a = __shfl_sync(FULL_WARP, v, 5), b = __shfl_sync(FULL_WARP, v, 3), c = __shfl_sync(FULL_WARP, v, 4);
  const unsigned predictor = my > 0 ? median(a, b, c) : a;
  const int px = x_of(predictor), py = y_of(predictor);
  const bool tried = around && (!quick || lane == 3 || lane == 5);
  const unsigned legal = __ballot_sync(FULL_WARP, lane < 2 || (tried && frame.inside(x_of(v), y_of(v), mx, my)));
  const int still = satd(source_transform, others + origin, frame.stride);
  int best = 0, least = still;
  if (__shfl_sync(FULL_WARP, v, 1) || still >= LOOK_STILL) {
    const auto key_of = [&](unsigned tried, bool may, int order) {
      const int x = may ? x_of(tried) : 0, y = may ? y_of(tried) : 0;
      const int value = satd(source_transform, others + frame.moved(origin, x, y), frame.stride) + mvd_bits(2 * (x - px), 2 * (y - py));
      return (may ? value : COST_MAX) << ORDER | order;
    };
    const int group = lane >> 2;
    const unsigned early = __shfl_sync(FULL_WARP, v, group), late = __shfl_sync(FULL_WARP, v, 8 + (group & 1));
    int key = key_of(early, legal >> group & 1, group);
    key = min(key, key_of(late, legal >> (8 + (group & 1)) & 1, 8 + (group & 1)));
    key = __reduce_min_sync(FULL_WARP, key);
    best = int(__shfl_sync(FULL_WARP, v, key & ((1 << ORDER) - 1)));
    least = key >> ORDER;
    const int n = place_around(group, quick);
    const unsigned near = vector_of(x_of(unsigned(best)) + n % 3 - 1, y_of(unsigned(best)) + n / 3 - 1);
    key = __reduce_min_sync(FULL_WARP, key_of(near, frame.inside(x_of(near), y_of(near), mx, my), group));
    if (key >> ORDER < least) {
      best = int(__shfl_sync(FULL_WARP, near, 4 * (key & ((1 << ORDER) - 1))));
      least = key >> ORDER;
    }
    least += (best ? LOOK_VECTOR : 0) - NO_BITS;
  }
  least += LOOK_BLOCK;
  if (lane == 0) {
    job.mv[mb] = unsigned(best);
    job.cost[mb] = uint16_t(least);
    const int counted = job.intra ? min(least, int(job.intra[mb])) : least;
    costs[threadIdx.x >> 5] = unclamped <= last && counts(mx, my, mb_width, mb_height) ? counted : 0;
  }
  add_of_warps<WARPS>(costs, &job.sum);
}

// Macroblock rows [row0, row1) of all jobs, four lanes a macroblock
extern "C" __global__ void __launch_bounds__(32 * WARPS) lookahead_both(BetweenJob *jobs, int mb_width, int mb_height, int row0,
    int row1) {
  wait_for_the_kernel_before();
  BetweenJob &job = jobs[blockIdx.y];
  const Sample *__restrict__ planes = job.planes, *__restrict__ earlier = job.earlier, *__restrict__ later = job.later;
  const int lane = int(threadIdx.x & 31), last = row1 * mb_width - 1;
  const int unclamped = row0 * mb_width + int(blockIdx.x * blockDim.x + threadIdx.x) / 4, mb = min(unclamped, last);
  const Frame frame(mb_width, mb_height);
  const int mx = mb % mb_width, my = mb / mb_width, origin = frame.origin(mx, my) + frame.quarter(lane);
  unsigned rows[4];
  load_rows(planes + origin, frame.stride, rows);
  const Transformed source_transform = transformed(rows);
  const auto cost_of = [&](int x0, int y0, int x1, int y1) {
    unsigned a[4], b[4];
    load_rows(earlier + frame.moved(origin, x0, y0), frame.stride, a);
    load_rows(later + frame.moved(origin, x1, y1), frame.stride, b);
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = average4(a[i], b[i]);
    return of_four(int(satd_4x4(source_transform, a)));
  };
  const int position = int(job.position), dx = x_of(job.direct[mb]), dy = y_of(job.direct[mb]);
  const int x = (dx * position + 128) >> 8, y = (dy * position + 128) >> 8;
  const bool may = frame.inside(x - dx, y - dy, mx, my);
  const unsigned v0 = job.mv0[mb], v1 = job.mv1[mb];
  unsigned used0 = 0, used1 = 0;
  int least = cost_of(0, 0, 0, 0), lists = 3;
  const int by_direct = cost_of(may ? x : 0, may ? y : 0, may ? x - dx : 0, may ? y - dy : 0);
  const int by_both = cost_of(x_of(v0), y_of(v0), x_of(v1), y_of(v1)) + (v0 || v1 ? LOOK_VECTOR : 0);
  if (by_direct < least) least = by_direct, used0 = vector_of(x, y), used1 = vector_of(x - dx, y - dy);
  if (by_both < least) least = by_both, used0 = v0, used1 = v1;
  least += LOOK_BLOCK;
  if (job.cost0[mb] < least) least = job.cost0[mb], used0 = v0, used1 = v1, lists = 1;
  if (job.cost1[mb] < least) least = job.cost1[mb], used0 = v0, used1 = v1, lists = 2;
  const bool is_first = (lane & 3) == 0 && unclamped <= last;
  if (is_first && job.cost) job.cost[mb] = uint16_t(least);
  if (is_first && job.vectors) {
    job.vectors[2 * mb] = used0;
    job.vectors[2 * mb + 1] = used1;
    job.lists[mb] = uint8_t(lists);
  }
  const int total = __reduce_add_sync(FULL_WARP, is_first && counts(mx, my, mb_width, mb_height) ? least : 0);
  if (lane == 0 && total) atomicAdd(&job.sum, (unsigned long long)total);
}
