// Type, direct prediction, partitions, lists and vectors of each macroblock of a B frame: twin of cpu_simd/decide/mode_decision_b.py,
// which explains it.
//
// A block decides a row of macroblocks, taken by ticket in the order of dependencies, and stays two macroblocks behind the row
// above. Two warps predict the macroblock directly, one for distortions, one for its squared error or levels; one counts the
// bits of vectors; one loads the macroblock after it. The first three then choose, each for itself. Samples of direct prediction
// take a lane a 4x4 block, list 0 in the lower lanes, list 1 in the upper ones; the bits of vectors take a lane a list of each
// part, those of a quadrant for all that the quadrants before it may be predicted from. The row below gets motion as words that
// are there or not, so that no fence delays the row.
// Samples of 8 bits only: words of four samples.
#include "decide/mode_decision_b_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "decisions/quantise.cuh"
#include "decide/mode_choice.cuh"

constexpr int TICKETS = 0, ENDED = 1;  // words of `progress`: rows taken, rows ended
constexpr int DIRECT_WARP = 0, BITS_WARP = 1, ERROR_WARP = 2, INPUTS_WARP = 3;
constexpr int HISTORIES = 15;       // of the quadrants: 1, 2, 4 and 8
constexpr int LARGE_CHOICES = N_B_CHOICES - B_16x8_PARTITION;  // of 16x8, of 8x16, the whole macroblock from list 0, list 1, both

struct FrameB {  // the kernel's arguments, as the launcher says
  const Sample *source, *luma;
  const int *slots, *bi_weights;
  int pad, n_ref, n_ref1, satd, by_cost, psy_rd, partition_mask, mb_width, mb_height;
};

// Of a macroblock, in shared memory
struct alignas(16) Inputs {
  Source source;
  uint4 samples[16];               // of the source, a block each
  Motion choices[N_B_CHOICES][2];  // as bipredict made them, both lists
  int cost[N_B_CHOICES], extra[N_B_EXTRAS];
  int qp, still, intra_cost, skip_limit;
};
// What the warps find out about it
struct CostsOfMb {
  int quarters[HISTORIES + 1];  // cost of a quadrant that is not direct, at 2^q - 1 + the quadrants before q that are, a bit each
  int best, whole, upper, left;  // costs: of 16x16, with its choice; of 16x8 and 8x16
  int quadrants[4];             // distortions of the direct ones
  unsigned error;
  bool empty;  // direct prediction leaves nothing worth coding
};
struct Work {
  Inputs inputs[3];  // one is read, one chosen from, one loaded
  CostsOfMb costs[2];
  Limits limits[N_QP];
  int row;
};

// Direct motion of one list, 8.4.1.2.2; zero: the quadrants with a vector of zero instead, a bit each
struct Direct {
  Motion motion;
  int zero;
};
DEVICE Motion of_quadrant(const Direct &d, int q) { return {d.motion.ref, d.zero >> q & 1 ? 0 : d.motion.v}; }
DEVICE Direct from_lane(const Direct &d, int lane) { return {from_lane(d.motion, lane), __shfl_sync(FULL_WARP, d.zero, lane)}; }

// 8.4.1.2.2: MinPositive
DEVICE int min_positive(int a, int b) { return a >= 0 && b >= 0 ? min(a, b) : max(a, b); }

// 8.4.1.2.2 for the list of this half of the lanes. around: lanes 0..9 of the half have the neighbour blocks
DEVICE Direct direct_motion(const Motion &around, int still) {
  const int half = threadIdx.x & 16;
  const Motion a = from_lane(around, half + 6), b = from_lane(around, half + 1), d = from_lane(around, half);
  Motion c = from_lane(around, half + 5);
  if (c.ref == -2) c = d;
  const int ref_idx = min_positive(a.ref, min_positive(b.ref, c.ref));
  const int other = __shfl_xor_sync(FULL_WARP, ref_idx, 16);
  const unsigned v = ref_idx >= 0 ? choose_predictor(0, 0, 4, 4, ref_idx, a, b, c) : 0;
  const int ref = ref_idx >= 0 ? ref_idx : other >= 0 ? -1 : 0;
  return {{ref, v}, ref == 0 ? still : 0};
}

// Direct luma of block lane & 15 -> samples, in both halves of the lanes. direct: of this half's list
DEVICE void predict_direct(const FrameB &f, const Source &source, const Direct &direct, int x0, int y0, unsigned *samples) {
  const int lane = threadIdx.x & 31, k = lane & 15, list = lane >> 4, bx = k & 3, by = k >> 2;
  const int width = f.mb_width * 16 + 2 * f.pad, height = f.mb_height * 16 + 2 * f.pad;
  const Motion motion = of_quadrant(direct, (by & 2) + (bx >> 1));
  unsigned mine[4] = {0, 0, 0, 0};
  if (motion.ref >= 0) {
    const size_t slot = f.slots[list ? f.n_ref + motion.ref : motion.ref];
    const int x = clip3(0, width - 9, x0 + 4 * (bx & 2) + f.pad + (x_of(motion.v) >> 2)) + 4 * (bx & 1);
    const int y = clip3(0, height - 9, y0 + 4 * (by & 2) + f.pad + (y_of(motion.v) >> 2)) + 4 * (by & 1);
    const unsigned plane_size = unsigned(width) * height;
    predicted(source, k, f.luma + slot * 4 * plane_size, plane_size, width, y * width + x, x_of(motion.v) & 3, y_of(motion.v) & 3, false, mine);
  }
  const int other = __shfl_xor_sync(FULL_WARP, motion.ref, 16), ref0 = list ? other : motion.ref, ref1 = list ? motion.ref : other;
  const int w1 = min(ref0, ref1) >= 0 ? __ldg(f.bi_weights + ref0 * f.n_ref1 + ref1) : AVERAGE;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned others = __shfl_xor_sync(FULL_WARP, mine[i], 16), first = list ? others : mine[i], second = list ? mine[i] : others;
    samples[i] = ref0 < 0 ? second : ref1 < 0 ? first : weigh_both(first, second, w1);
  }
}

// The lists that choice c uses: 0, 1, or 2 for both
DEVICE int lists_of(const Inputs &in, int c) { return in.choices[c][0].ref < 0 ? 1 : in.choices[c][1].ref < 0 ? 0 : 2; }

// Where the neighbours A, B, C and D of the part of each choice come from: the lane that has the block, or CHOICE + the choice of
// an earlier partition. D stands for C where that follows in decoding order. Then the part, in units of two blocks
constexpr int CHOICE = 16;
DEVICE constexpr unsigned partition(int a, int b, int c, int d, int x, int y, int w, int h) {
  return unsigned(a | b << 5 | c << 10 | d << 15 | x << 20 | y << 21 | w << 22 | h << 24);
}
__constant__ unsigned PARTITION_OF[N_B_CHOICES] = {
    partition(6, 1, 3, 0, 0, 0, 1, 1), partition(CHOICE, 3, 5, 2, 1, 0, 1, 1), partition(8, CHOICE, CHOICE + 1, 7, 0, 1, 1, 1),
    partition(CHOICE + 2, CHOICE + 1, CHOICE, CHOICE, 1, 1, 1, 1),
    partition(6, 1, 5, 0, 0, 0, 2, 1), partition(8, CHOICE + B_16x8_PARTITION, 7, 7, 0, 1, 2, 1),
    partition(6, 1, 3, 0, 0, 0, 1, 2), partition(CHOICE + B_8x16_PARTITION, 3, 5, 2, 1, 0, 1, 2),
    partition(6, 1, 5, 0, 0, 0, 2, 2), partition(6, 1, 5, 0, 0, 0, 2, 2), partition(6, 1, 5, 0, 0, 0, 2, 2)};

// A neighbour in list lane & 1; direct: of that list, for the quadrants that `taken` has bits of
DEVICE Motion neighbour(const Inputs &in, const Motion &around, const Direct &direct, int from, int taken) {
  const int list = threadIdx.x & 1, c = from & 15;
  const Motion outer = from_lane(around, 16 * list + c);
  if (!(from & CHOICE)) return outer;
  return c < B_16x8_PARTITION && taken >> c & 1 ? of_quadrant(direct, c) : in.choices[c][list];
}

// Cost of choice c with the bits of both lists' vectors, in pairs of lanes; most: of ref_idx_bits in list lane & 1
DEVICE int cost_of_choice(const Inputs &in, const Motion &around, const Direct &direct, int c, int taken, int lam, int most) {
  const unsigned at = PARTITION_OF[c];
  const Motion a = neighbour(in, around, direct, at & 31, taken), b = neighbour(in, around, direct, at >> 5 & 31, taken);
  const Motion d = neighbour(in, around, direct, at >> 15 & 31, taken), motion = in.choices[c][threadIdx.x & 1];
  Motion above_right = neighbour(in, around, direct, at >> 10 & 31, taken);
  if (above_right.ref == -2) above_right = d;
  const int x = 2 * (at >> 20 & 1), y = 2 * (at >> 21 & 1), w = 2 * (at >> 22 & 3), h = 2 * (at >> 24 & 3);
  int bits = 0;
  if (motion.ref >= 0) bits = ref_idx_bits(motion.ref, most) + difference_bits(motion.v, choose_predictor(x, y, w, h, motion.ref, a, b, above_right));
  return in.cost[c] + lam * (bits + __shfl_xor_sync(FULL_WARP, bits, 1));
}

// Costs of all that is not direct
DEVICE void weigh_choices(const Inputs &in, const Motion &around, const Direct &direct, int lam, int most, CostsOfMb &costs) {
  const int lane = threadIdx.x & 31, n = min(lane >> 1, HISTORIES - 1), q = 31 - __clz(n + 1);
  const int quarter = cost_of_choice(in, around, direct, B_QUADRANT + q, n + 1 - (1 << q), lam, most);
  if (!(lane & 1)) costs.quarters[lane >> 1] = quarter + lam * BITS_B_SUB[B_SUB_L0 + lists_of(in, B_QUADRANT + q)];
  const int lane_cost = cost_of_choice(in, around, direct, B_16x8_PARTITION + min(lane >> 1, LARGE_CHOICES - 1), 0, lam, most);
  const auto of = [&](int c) { return __shfl_sync(FULL_WARP, lane_cost, 2 * (c - B_16x8_PARTITION)); };
  const int upper = of(B_16x8_PARTITION) + of(B_16x8_PARTITION + 1), left = of(B_8x16_PARTITION) + of(B_8x16_PARTITION + 1);
  int best = 0, whole = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const int value = of(B_WHOLE + i) + in.extra[i] + lam * BITS_B_16x16[lists_of(in, B_WHOLE + i)];
    if (i == 0 || value < best) best = value, whole = B_WHOLE + i;
  }
  if (lane == 0) {
    costs.best = best;
    costs.whole = whole;
    costs.upper = upper + in.extra[B_EXTRA_16x8] + lam * BITS_B_16x8[lists_of(in, B_16x8_PARTITION)][lists_of(in, B_16x8_PARTITION + 1)];
    costs.left = left + in.extra[B_EXTRA_8x16] + lam * BITS_B_8x16[lists_of(in, B_8x16_PARTITION)][lists_of(in, B_8x16_PARTITION + 1)];
  }
}

// Squared error of the macroblock at these samples, with psy_rd the difference in energy too; rows: the source
DEVICE unsigned whole_error(const FrameB &f, const unsigned *rows, const unsigned *samples, int q_y) {
  const int lane = threadIdx.x & 31;
  unsigned error = 0;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int d = byte_of(rows[i], k) - byte_of(samples[i], k);
      error += unsigned(d * d);
    }
  error = __reduce_add_sync(FULL_WARP, lane < 16 ? error : 0);
  if (f.psy_rd) {
    int energy = ac_energy(samples) - ac_energy(rows);
    energy += __shfl_xor_sync(FULL_WARP, energy, 1);
    energy += __shfl_xor_sync(FULL_WARP, energy, 4);
    const unsigned all = __reduce_add_sync(FULL_WARP, lane < 16 && !(lane & 5) ? unsigned(abs(energy)) : 0u);  // a lane a quadrant
    error += unsigned((unsigned long long)(all) * f.psy_rd * PSY_ERROR[q_y] >> 24);
  }
  return error;
}

// Direct prediction: its distortions, or, errors, its squared error or levels. x0, y0: of the macroblock
DEVICE void weigh_direct(const FrameB &f, const Inputs &in, const Limits *limits, const Direct &direct, int x0, int y0, bool errors,
                         CostsOfMb &costs) {
  const int lane = threadIdx.x & 31, k = lane & 15;
  unsigned samples[4];
  predict_direct(f, in.source, direct, x0, y0, samples);
  if (!errors) {
    const uint4 words = in.source.rows[0][k], more = in.source.rows[1][k];
    const Transformed t = {{words.x, words.y, words.z, words.w}, {more.x, more.y, more.z, more.w}};
    int distortion = int(f.satd ? satd_4x4(t, samples) : sad_4x4(t.first, samples));
    distortion += __shfl_xor_sync(FULL_WARP, distortion, 1);
    distortion += __shfl_xor_sync(FULL_WARP, distortion, 4);
    if (lane < 16 && !(k & 5)) costs.quadrants[(k >> 3) * 2 + (k >> 1 & 1)] = distortion;
  } else if (f.by_cost) {
    const uint4 source = in.samples[k];
    const unsigned rows[4] = {source.x, source.y, source.z, source.w};
    const unsigned error = whole_error(f, rows, samples, in.qp);
    if (lane == 0) costs.error = error;
  } else {
    const unsigned score = levels_score(in.source, k, samples, limits[in.qp]);
    const bool empty = __reduce_add_sync(FULL_WARP, lane < 16 ? score : 0u) < BUDGET;
    if (lane == 0) costs.empty = empty;
  }
}

// What is chosen: mb_type, sub_mb_type of the quadrants, two bits each, and the choice of B_16x16
struct Decided {
  int mb_type, subs, whole;
};
DEVICE Decided decide(const FrameB &f, const Inputs &in, const CostsOfMb &costs, int lam) {
  const int lane = threadIdx.x & 31, n = min(lane, HISTORIES - 1), last = 31 - __clz(n + 1), direct_bits = lam * BITS_B_SUB[B_SUB_DIRECT];
  const unsigned cheaper = __ballot_sync(FULL_WARP, costs.quadrants[last] + direct_bits <= costs.quarters[n]);  // direct, a bit a history
  int all = 0, quarters = in.extra[B_EXTRA_8x8] + lam * BITS_B_8x8, subs = 0, taken = 0;
#pragma unroll
  for (int q = 0; q < 4; q++) {
    const int at = (1 << q) - 1 + taken, by_direct = costs.quadrants[q] + direct_bits, value = costs.quarters[at];
    const bool is_direct = cheaper >> at & 1;
    all += costs.quadrants[q];
    quarters += is_direct ? by_direct : value;
    subs |= (is_direct ? B_SUB_DIRECT : B_SUB_L0 + lists_of(in, B_QUADRANT + q)) << (2 * q);
    taken |= is_direct << q;
  }
  int mb_type = B_16x16, best = costs.best;
  const bool empty = !f.by_cost && all + lam * BITS_SKIP <= best && costs.empty;
  const int by_direct = all + in.extra[B_EXTRA_DIRECT] + lam * BITS_B_DIRECT, by_intra = in.intra_cost + lam * BITS_B_INTRA;
  if (empty || by_direct < best) best = by_direct, mb_type = B_DIRECT;
  if (!empty) {
    if (f.partition_mask & 2 && costs.upper < best) best = costs.upper, mb_type = B_16x8;
    if (f.partition_mask & 2 && costs.left < best) best = costs.left, mb_type = B_8x16;
    if (f.partition_mask & 4 && quarters < best) best = quarters, mb_type = B_8x8;
    if (by_intra < best) best = by_intra, mb_type = I_16x16;
  }
  if (f.by_cost) {
    const int by_skip = int((unsigned long long)(costs.error) * RD_SKIP_WEIGHT[in.qp] >> 16) + in.skip_limit + lam * BITS_SKIP;
    if (by_skip <= best) mb_type = B_SKIP;
  }
  return {mb_type, subs, costs.whole};
}

// Motion of block lane & 15 in the list of this half of the lanes; direct: of that list
DEVICE Motion motion_chosen(const Inputs &in, const Decided &d, const Direct &direct, int sub) {
  const int lane = threadIdx.x & 31, k = lane & 15, q = (k >> 3) * 2 + (k >> 1 & 1);
  if (d.mb_type == B_DIRECT || d.mb_type == B_SKIP || (d.mb_type == B_8x8 && sub == B_SUB_DIRECT)) return of_quadrant(direct, q);
  if (d.mb_type == I_16x16) return {-1, 0};
  const int choice = d.mb_type == B_16x8 ? B_16x8_PARTITION + (k >> 3) : d.mb_type == B_8x16 ? B_8x16_PARTITION + (k >> 1 & 1) : B_QUADRANT + q;
  return in.choices[d.mb_type == B_16x16 ? d.whole : choice][lane >> 4];
}

// The arrays that Inputs come from, as the kernel's launcher says
struct Given {
  const Sample *source;
  const int *cost;
  const signed char *ref;
  const unsigned *mv;
  const int *extra;
  const unsigned *moved;  // vectors of the undivided choices in place of mv; null: none
  const uint8_t *still, *qp;
  const int *intra_cost, *skip_limit;
};
// A lane's part of a macroblock on its way to Inputs
struct Loaded {
  unsigned rows[4], v;
  int ref, cost, extra, number;
};
DEVICE Loaded load(const Given &g, const FrameB &f, int mx, int my) {
  const int lane = threadIdx.x & 31, k = lane & 15, mb = my * f.mb_width + mx;
  Loaded l = {};
  const Sample *from = g.source + size_t(16 * my + 4 * (k >> 2)) * f.mb_width * 16 + 16 * mx + 4 * (k & 3);
#pragma unroll
  for (int i = 0; i < 4; i++) l.rows[i] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(i) * f.mb_width * 16));
  if (lane < 2 * N_B_CHOICES) {
    const size_t at = size_t(mb) * 2 * N_B_CHOICES + lane;
    l.ref = __ldg(g.ref + at);
    l.v = __ldg(g.moved && lane >= 2 * B_WHOLE ? g.moved + size_t(mb) * 6 + lane - 2 * B_WHOLE : g.mv + at);
  }
  if (lane < N_B_CHOICES) l.cost = __ldg(g.cost + size_t(mb) * N_B_CHOICES + lane);
  if (lane < N_B_EXTRAS) l.extra = __ldg(g.extra + size_t(mb) * N_B_EXTRAS + lane);
  if (lane == 0) l.number = __ldg(g.qp + mb);
  if (lane == 1) l.number = __ldg(g.still + mb);
  if (lane == 2) l.number = __ldg(g.intra_cost + mb);
  if (lane == 3 && f.by_cost) l.number = __ldg(g.skip_limit + mb);
  return l;
}
DEVICE void keep(const Loaded &l, bool satd, Inputs &in) {
  const int lane = threadIdx.x & 31;
  if (lane < 16) {
    keep_source(in.source, lane, l.rows, satd);
    in.samples[lane] = four(l.rows);
  }
  if (lane < 2 * N_B_CHOICES) in.choices[lane >> 1][lane & 1] = {l.ref, l.ref < 0 ? 0 : l.v};
  if (lane < N_B_CHOICES) in.cost[lane] = l.cost;
  if (lane < N_B_EXTRAS) in.extra[lane] = l.extra;
  if (lane < 4) (lane == 0 ? in.qp : lane == 1 ? in.still : lane == 2 ? in.intra_cost : in.skip_limit) = l.number;
}

// Motion above macroblocks of a row, for lane k of each half: block k - 1 of the row above the macroblock
struct Above {
  const Published *handed;  // by the row above, from its first macroblock on; null: there is none, or it is in memory
  Published word;           // of the next macroblock, perhaps not there yet
};
DEVICE bool is_handed(const Above &above, int mx, int mb_width) {
  const int k = threadIdx.x & 15;
  return above.handed && k >= 1 && k <= 5 && mx + (k == 5) < mb_width;
}
DEVICE const Published *place_of(const Above &above, int mx) {
  const int lane = threadIdx.x & 31, k = lane & 15;
  return above.handed + HANDED * (mx + (k == 5)) + 2 * (lane >> 4) + (k == 3 || k == 4);
}
// Asks for the words of a macroblock as late as their way allows: asked for before the row above has them, they would be asked
// for again, and this row would fall behind until they are there in time
DEVICE void ask_for_motion(Above &above, int mx, int mb_width) {
  above.word = is_handed(above, mx, mb_width) ? published(place_of(above, mx)) : 0;
}
DEVICE Motion motion_above(Above &above, int mx, int mb_width) {
  Motion m = {-2, 0};
  if (is_handed(above, mx, mb_width)) {
    Published word = above.word;
    while (!(word >> 32)) {
      __nanosleep(20);
      word = published(place_of(above, mx));
    }
    m = {int(word >> 32) - 2, unsigned(word)};
  }
  __syncwarp();
  return m;
}

// Macroblock rows [row0, row0 + gridDim.x), a block each. Choices: cost int[n_mb][N_B_CHOICES], reference [..][2], vectors [..][2],
// extra int[n_mb][N_B_EXTRAS]; moved: [n_mb][3][2], read if has_moved; colocated_still: uint8[n_mb]; progress: int[2], handed: u64[gridDim.x * mb_width][HANDED], both 0
// before the first launch and after each.
extern "C" __global__ void __launch_bounds__(THREADS) mode_decision_b(const Sample *__restrict__ source,
    const Sample *__restrict__ ref_luma, const int *__restrict__ ref_slots, const int *__restrict__ bi_weights, int pad, int n_ref,
    int n_ref1, const int *__restrict__ choice_cost, const signed char *__restrict__ choice_ref, const unsigned *__restrict__ choice_mv,
    const int *__restrict__ choice_extra, const unsigned *__restrict__ moved, int has_moved,
    const uint8_t *__restrict__ colocated_still, const int *__restrict__ intra_cost, const int *__restrict__ skip_limit, const int *__restrict__ slice_first_mb, const uint8_t *__restrict__ qp, int satd, int by_cost,
    int psy_rd, int partition_mask, int mb_width, int mb_height, int row0, int *progress, Published *handed, uint8_t *mb_type,
    uint8_t *sub_mb_type, signed char *ref_idx, unsigned *mv, signed char *ref_idx1, unsigned *mv1) {
  SHARED(Work, shared, 1);
  Work &w = *in_register(shared);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, k = lane & 15, list = lane >> 4, q = (k >> 3) * 2 + (k >> 1 & 1);
  if (!by_cost)
    for (int i = threadIdx.x; i < N_QP; i += THREADS) w.limits[i] = limits_of(i);
  wait_for_the_kernel_before();
  if (threadIdx.x == 0) w.row = atomicAdd(progress + TICKETS, 1);
  __syncthreads();
  const FrameB f = {source, ref_luma, ref_slots, bi_weights, pad, n_ref, n_ref1, satd, by_cost, psy_rd, partition_mask, mb_width, mb_height};
  const Given given = {source, choice_cost, choice_ref, choice_mv, choice_extra, has_moved ? moved : nullptr, colocated_still, qp,
                       intra_cost, skip_limit};
  const int row = w.row, my = row0 + row, first_mb = slice_first_mb[my * mb_width];
  const bool has_above = my * mb_width > first_mb;
  // whether the row is in one slice, with the row above or without: all macroblocks have the same neighbours
  const bool alike = first_mb == slice_first_mb[(my + 1) * mb_width - 1] && (first_mb <= (my - 1) * mb_width || !has_above);
  const bool hands = row + 1 < int(gridDim.x) && slice_first_mb[(my + 1) * mb_width] < (my + 1) * mb_width;
  Published *const below = handed + size_t(row) * HANDED * mb_width, *const from = below - size_t(HANDED) * mb_width;
  signed char *const list_ref = list ? ref_idx1 : ref_idx;
  unsigned *const list_mv = list ? mv1 : mv;
  Motion around = {-2, 0}, chosen = {-2, 0};  // of the macroblock before
  Above above = {has_above && row > 0 ? from : nullptr, 0};
  Loaded next = {};
  if (warp == INPUTS_WARP) {
    keep(load(given, f, 0, my), satd, w.inputs[0]);
    if (mb_width > 1) next = load(given, f, 1, my);
  }
  __syncthreads();
#pragma unroll 1
  for (int mx = 0; mx < mb_width; mx++) {
    const Inputs &in = w.inputs[mx % 3];
    CostsOfMb &costs = w.costs[mx & 1];
    Direct direct = {};
    if (warp == INPUTS_WARP) {
      if (mx + 1 < mb_width) keep(next, satd, w.inputs[(mx + 1) % 3]);
      if (mx + 2 < mb_width) next = load(given, f, mx + 2, my);
    } else {
      const Motion corner = from_lane(around, 16 * list + 4), left = from_lane(chosen, 16 * list + (4 * (k - 6) + 3 & 15));
      around = motion_above(above, mx, mb_width);
      const int mb = my * mb_width + mx, slice = alike ? first_mb : __ldg(slice_first_mb + mb);
      if (has_above && row == 0 && k < 6)  // by an earlier launch
        around = motion_of(neighbour_block(mb, k - 1, -1, mb_width, slice), list_ref, list_mv);
      else if (k == 0) around = corner;
      if (k >= 6) around = left;
      if (!alike && mb - (k >= 6 ? 1 : k == 0 ? mb_width + 1 : k == 5 ? mb_width - 1 : mb_width) < slice) around = {-2, 0};
      direct = direct_motion(around, in.still);
      if (warp != BITS_WARP) weigh_direct(f, in, w.limits, direct, 16 * mx, 16 * my, warp == ERROR_WARP, costs);
      else weigh_choices(in, around, from_lane(direct, 16 * (lane & 1)), LAMBDA[in.qp], most_ref_idx_bits(lane & 1 ? n_ref1 : n_ref), costs);
    }
    __syncthreads();
    if (warp == INPUTS_WARP) continue;
    ask_for_motion(above, mx + 1, mb_width);
    const Decided decided = decide(f, in, costs, LAMBDA[in.qp]);
    const int sub = decided.mb_type == B_8x8 ? decided.subs >> (2 * q) & 3 : 0;
    chosen = motion_chosen(in, decided, direct, sub);
    if (warp == BITS_WARP) {
      if (hands && (k == 8 || k == 10)) publish(below + HANDED * mx + 2 * list + (k == 10), chosen.v, unsigned(chosen.ref + 2));
      if (above.handed && lane < HANDED) publish(const_cast<Published *>(above.handed) + HANDED * mx + lane, 0, 0);  // read
    } else if (warp == DIRECT_WARP) {
      const size_t mb = size_t(my) * mb_width + mx;
      list_mv[16 * mb + k] = chosen.v;
      if (!(k & 5)) {
        list_ref[4 * mb + q] = (signed char)(chosen.ref);
        if (list == 0) sub_mb_type[4 * mb + q] = uint8_t(sub);
      }
      if (lane == 0) mb_type[mb] = uint8_t(decided.mb_type);
    }
  }
  if (threadIdx.x == 0 && atomicAdd(progress + ENDED, 1) == int(gridDim.x) - 1) progress[TICKETS] = progress[ENDED] = 0;
}
