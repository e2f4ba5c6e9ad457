// Choices of B macroblocks: entries, vectors and distortion of one or both lists: twin of cpu_simd/decide/bipredict.py, which explains it.
//
// One warp a macroblock. A lane each finds the best entry of a partition in one list; then the lower and the upper lanes measure a
// pair of vectors each, a lane a 4x4 block, and keep the best for the four partitions from 8x8 on that hold the block.
// Samples of 8 bits only: words of four samples.
#include "decide/bipredict_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "inter/motion_compensation.cuh"
#include "inter/mv_prediction.cuh"
#include "costs/block_probe.cuh"

constexpr int N_PARTITIONS = B_WHOLE + 1;             // partitions 32 to 40; in this file they count from 0
constexpr int ORDER = 6;                       // bits of a key below the cost: number of the pair
constexpr int NO_PAIR = 0x7fffffff;            // key of a partition without a pair
static_assert(MOST_PAIRS < 1 << ORDER, "a pair's number fits into a key");

// Tried in both lists, their entries (list 1 counted from 0), and lam * bits of both
struct alignas(16) Tried {
  unsigned v0, v1;
  int entries, rate;
};
DEVICE int entries_of(int e0, int e1) { return e0 | e1 << 8; }

// The best entry of a partition in one list: -1 if there is none; cost with all bits, and lam * bits
struct Entry {
  int entry, cost, rate;
  unsigned v;
};

// Where the block of this lane is predicted, and what the kernel gets
struct BlockReferences {
  const Sample *luma;
  const int *slots, *bi_weights;
  unsigned plane_size;
  int stride, at, n_ref, n_ref1;
};
// The results of the searches that belong to one macroblock: elements of entry 0, and from entry to entry
struct SearchesOfMb {
  const int *cost;
  const unsigned *mv, *predictor;
  size_t n_mb;
};

DEVICE Entry best_entry(const SearchesOfMb &searches, int partition, int first, int count, int lam) {
  const int most = most_ref_idx_bits(count);
  Entry best = {NONE, COST_NOT_REFINED >> 1, 0, 0};
  for (int r = 0; r < count; r++) {
    const int cost = searches.cost[(first + r) * searches.n_mb * 41 + 32 + partition] + lam * ref_idx_bits(r, most);
    if (cost < best.cost) best.cost = cost, best.entry = r;
  }
  if (best.entry < 0) return best;
  const size_t at = (first + best.entry) * searches.n_mb;
  best.v = searches.mv[at * 41 + 32 + partition];
  best.rate = lam * (ref_idx_bits(best.entry, most) + difference_bits(best.v, searches.predictor[at]));
  return best;
}

// The prediction of this lane's block from an entry of both lists
DEVICE void predict(const Source &source, const BlockReferences &references, int entry, unsigned v, unsigned *p) {
  const Sample *luma = references.luma + size_t(__ldg(references.slots + entry)) * 4 * references.plane_size;
  predicted(source, threadIdx.x & 15, luma, references.plane_size, references.stride, references.at, x_of(v), y_of(v), false, p);
}

// Distortion of this lane's block: 8.4.2.3.2 with logWD 5 and no offset, for equal weights the rounded average
DEVICE int distortion(const Source &source, const unsigned *p0, const unsigned *p1, int weight, bool satd) {
  unsigned p[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (weight == AVERAGE) {
      p[i] = average4(p0[i], p1[i]);
      continue;
    }
    int s[4];
#pragma unroll
    for (int k = 0; k < 4; k++) s[k] = clip1((byte_of(p0[i], k) * (64 - weight) + byte_of(p1[i], k) * weight + 32) >> 6);
    p[i] = pack4(s[0], s[1], s[2], s[3]);
  }
  const int k = threadIdx.x & 15;
  const uint4 words = source.rows[0][k], more = source.rows[1][k];
  const Transformed t = {{words.x, words.y, words.z, words.w}, {more.x, more.y, more.z, more.w}};
  return int(satd ? satd_4x4(t, p) : sad_4x4(t.first, p));
}

// Lowers the keys of this lane's quadrant, 16x8, 8x16 and 16x16 by a pair with this distortion of its block
DEVICE void weigh(int block_cost, int rate, int order, bool counts, int *keys) {
  const auto with = [](int sum, int lanes) { return sum + __shfl_xor_sync(FULL_WARP, sum, lanes); };
  const int quadrant = with(with(block_cost, 1), 4), half = with(quadrant, 2);
  const int sums[4] = {quadrant, half, with(quadrant, 8), with(half, 8)};
#pragma unroll
  for (int l = 0; l < 4; l++)
    if (counts) keys[l] = min(keys[l], (sums[l] + rate) << ORDER | order);
}
DEVICE void join_halves(int *keys) {
#pragma unroll
  for (int l = 0; l < 4; l++) keys[l] = min(keys[l], __shfl_xor_sync(FULL_WARP, keys[l], 16));
}

DEVICE unsigned moved_by(unsigned v, int dx, int dy) { return vector_of(x_of(v) + dx, y_of(v) + dy); }

// Vectors of the best pair move a quarter sample, of list 0, list 1 or both by `step`: eight pairs from number `first` on.
// legal: of a vector
template <class Legal>
DEVICE void move(const Source &source, const BlockReferences &references, const SearchesOfMb &searches, int step, int first, int lam, bool satd, Legal legal, Tried *pairs,
                 int *keys) {
  const int lane = threadIdx.x & 31;
  const Tried best = pairs[keys[3] & ((1 << ORDER) - 1)];
  const int e0 = best.entries & 255, e1 = best.entries >> 8, of_list1 = references.n_ref + e1;
  const int weight = __ldg(references.bi_weights + e0 * references.n_ref1 + e1);
  const unsigned predictor0 = searches.predictor[e0 * searches.n_mb], predictor1 = searches.predictor[of_list1 * searches.n_mb];
  const int before = difference_bits(best.v0, predictor0) + difference_bits(best.v1, predictor1);
  const auto nearby = [&](int i) {
    const int n = i + (i >= 4), k = i >> 1, sign = i & 1 ? -1 : 1;
    const int dx = step == 2 ? (k == 2) - (k == 1) : n % 3 - 1, dy = step == 2 ? (k == 3) - (k == 0) : n / 3 - 1;
    Tried pair = best;
    if (step != 1) pair.v0 = step == 2 ? moved_by(best.v0, sign * dx, sign * dy) : moved_by(best.v0, dx, dy);
    if (step != 0) pair.v1 = moved_by(best.v1, dx, dy);
    pair.rate += lam * (difference_bits(pair.v0, predictor0) + difference_bits(pair.v1, predictor1) - before);
    return pair;
  };
  if (lane < 8) pairs[first + lane] = nearby(lane);
  __syncwarp();
  unsigned p0[4], p1[4];
  if (step == 0) predict(source, references, of_list1, best.v1, p1);
  if (step == 1) predict(source, references, e0, best.v0, p0);
#pragma unroll 1
  for (int i = lane >> 4; i < 8; i += 2) {
    const Tried pair = pairs[first + i];
    const bool may = legal(pair.v0) && legal(pair.v1);
    if (step != 1) predict(source, references, e0, may ? pair.v0 : best.v0, p0);
    if (step != 0) predict(source, references, of_list1, may ? pair.v1 : best.v1, p1);
    weigh(distortion(source, p0, p1, weight, satd), pair.rate, first + i, may, keys);
  }
  join_halves(keys);
}

// Macroblock rows [row0, row0 + gridDim.y); other arguments as the launcher says
extern "C" __global__ void __launch_bounds__(32 * WARPS, 8) bipredict(const Sample *__restrict__ src, const Sample *__restrict__ luma,
    const int *__restrict__ slots, const int *__restrict__ bi_weights, int pad, int n_ref, int n_ref1, const int *__restrict__ all_cost,
    const unsigned *__restrict__ all_mv, const unsigned *__restrict__ all_predictor, const uint8_t *__restrict__ qp, int satd, int refined,
    int partition_mask, int max_mv_y, int mb_width, int mb_height, int row0, int *cost, uchar2 *ref, uint2 *mv, int *extra) {
  SHARED(Source, sources, WARPS);
  SHARED(Tried, all_pairs, WARPS * MOST_PAIRS);
  const int lane = threadIdx.x & 31, block = lane & 15, mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0;
  if (mx >= mb_width) return;
  const int mb = my * mb_width + mx, lam = LAMBDA[load_before_the_wait(qp + mb)], x0 = 16 * mx, y0 = 16 * my;
  const int stride = mb_width * 16 + 2 * pad, height = mb_height * 16 + 2 * pad;
  Source &source = sources[threadIdx.x >> 5];
  Tried *pairs = all_pairs + (threadIdx.x >> 5) * MOST_PAIRS;
  wait_for_the_kernel_before();
  const int at = (y0 + 4 * (block >> 2) + pad) * stride + x0 + 4 * (block & 3) + pad;
  const BlockReferences references = {luma, slots, bi_weights, unsigned(stride) * height, stride, at, n_ref, n_ref1};
  const SearchesOfMb searches = {all_cost + size_t(mb) * 41, all_mv + size_t(mb) * 41, all_predictor + mb, size_t(mb_width) * mb_height};
  const auto legal = [&](unsigned v) { return inside(x_of(v), y_of(v), x0, y0, mb_width * 16, mb_height * 16, pad, max_mv_y); };
  if (lane < 16) {
    unsigned rows[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      rows[i] = __ldg(reinterpret_cast<const unsigned *>(src + size_t(y0 + 4 * (block >> 2) + i) * mb_width * 16 + x0 + 4 * (block & 3)));
    keep_source(source, lane, rows, satd);
  }
  // the best entries: of list 0 in lane `part`, of list 1 in lane 16 + `part`
  const bool wanted = block < N_PARTITIONS && (block == B_WHOLE || partition_mask & (block < B_16x8_PARTITION ? 4 : 2));
  const bool second = lane >= 16;
  Entry lane_entry = {NONE, 0, 0, 0};
  if (wanted) lane_entry = best_entry(searches, block, second ? n_ref : 0, second ? n_ref1 : n_ref, lam);
  // pairs of them, the undivided macroblock's first: a lane each
  const int partition = lane == 0 ? B_WHOLE : (lane - 1) & 15;
  const int e0 = __shfl_sync(FULL_WARP, lane_entry.entry, partition), e1 = __shfl_sync(FULL_WARP, lane_entry.entry, 16 + partition);
  const unsigned v0 = __shfl_sync(FULL_WARP, lane_entry.v, partition), v1 = __shfl_sync(FULL_WARP, lane_entry.v, 16 + partition);
  const int rate = __shfl_sync(FULL_WARP, lane_entry.rate, partition) + __shfl_sync(FULL_WARP, lane_entry.rate, 16 + partition);
  bool tried = lane < N_PARTITIONS && e0 >= 0 && e1 >= 0 && legal(v0) && legal(v1);
  const unsigned all = __ballot_sync(FULL_WARP, tried);
#pragma unroll
  for (int i = 0; i < N_PARTITIONS - 1; i++) {
    const bool same = (__shfl_sync(FULL_WARP, v0, i) == v0) & (__shfl_sync(FULL_WARP, v1, i) == v1) & (__shfl_sync(FULL_WARP, e0, i) == e0) &
                      (__shfl_sync(FULL_WARP, e1, i) == e1);
    if (i < lane && all >> i & 1 && same) tried = false;
  }
  if (tried) pairs[lane] = {v0, v1, entries_of(e0, e1), rate};
  __syncwarp();
  int keys[4] = {NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR};
  unsigned rest = __ballot_sync(FULL_WARP, tried);
  while (rest) {
    const int one = __ffs(int(rest)) - 1;
    rest &= rest - 1;
    const int two = rest ? __ffs(int(rest)) - 1 : one, from = lane < 16 ? one : two;
    rest &= rest - 1;
    const Tried pair = pairs[from];
    const int a = pair.entries & 255, b = pair.entries >> 8;
    unsigned p0[4], p1[4];
    predict(source, references, a, pair.v0, p0);
    predict(source, references, n_ref + b, pair.v1, p1);
    weigh(distortion(source, p0, p1, __ldg(bi_weights + a * n_ref1 + b), satd), pair.rate, from, true, keys);
  }
  join_halves(keys);
  // both lists of the undivided macroblock are worth refining where they cost less than one
  const int in_list0 = __shfl_sync(FULL_WARP, lane_entry.cost, B_WHOLE) + lam * B_BITS_L0;
  const int in_list1 = __shfl_sync(FULL_WARP, lane_entry.cost, 16 + B_WHOLE) + lam * B_BITS_L1;
  if (refined && all && (keys[3] >> ORDER) + lam * B_BITS_BI < min(in_list0, in_list1)) {
#pragma unroll 1
    for (int step = 0; step < 3; step++) move(source, references, searches, step, N_PARTITIONS + 8 * step, lam, satd, legal, pairs, keys);
  }
  // the choices, a lane each
  const int c = lane < N_B_CHOICES ? lane : 0, k = min(c, B_WHOLE);
  const int pred_modes = c < B_WHOLE ? 7 : 1 << (c - B_WHOLE);
  const int of_quadrant = __shfl_sync(FULL_WARP, keys[0], (k & 2) * 4 + (k & 1) * 2);
  const int of_16x8 = __shfl_sync(FULL_WARP, keys[1], (k & 1) * 8), of_8x16 = __shfl_sync(FULL_WARP, keys[2], (k & 1) * 2);
  const int key = k < B_16x8_PARTITION ? of_quadrant : k < B_8x16_PARTITION ? of_16x8 : k < B_WHOLE ? of_8x16 : keys[3];
  const int r0 = __shfl_sync(FULL_WARP, lane_entry.entry, k), r1 = __shfl_sync(FULL_WARP, lane_entry.entry, 16 + k);
  const int c0 = __shfl_sync(FULL_WARP, lane_entry.cost, k), c1 = __shfl_sync(FULL_WARP, lane_entry.cost, 16 + k);
  const int b0 = __shfl_sync(FULL_WARP, lane_entry.rate, k), b1 = __shfl_sync(FULL_WARP, lane_entry.rate, 16 + k);
  const unsigned w0 = __shfl_sync(FULL_WARP, lane_entry.v, k), w1 = __shfl_sync(FULL_WARP, lane_entry.v, 16 + k);
  int best = B_NOT_ALLOWED, chosen = B_NOT_ALLOWED;
  Tried vectors = {0, 0, entries_of(NONE & 255, NONE), 0};
  if (pred_modes & 1 && r0 >= 0 && c0 + lam * B_BITS_L0 < best) {
    best = c0 + lam * B_BITS_L0, chosen = c0 - b0;
    vectors = {w0, 0, entries_of(r0, NONE), 0};
  }
  if (pred_modes & 2 && r1 >= 0 && c1 + lam * B_BITS_L1 < best) {
    best = c1 + lam * B_BITS_L1, chosen = c1 - b1;
    vectors = {0, w1, entries_of(NONE & 255, r1), 0};
  }
  if (pred_modes & 4 && (r0 >= 0 || r1 >= 0) && key != NO_PAIR && (key >> ORDER) + lam * B_BITS_BI < best) {
    vectors = pairs[key & ((1 << ORDER) - 1)];
    chosen = (key >> ORDER) - vectors.rate;
  }
  if (lane < N_B_CHOICES) {
    const size_t to = size_t(mb) * N_B_CHOICES + lane;
    cost[to] = chosen;
    ref[to] = uchar2{static_cast<uint8_t>(vectors.entries), static_cast<uint8_t>(vectors.entries >> 8)};
    mv[to] = make_uint2(vectors.v0, vectors.v1);
  }
  if (lane < N_B_EXTRAS) extra[size_t(mb) * N_B_EXTRAS + lane] = 0;
}
