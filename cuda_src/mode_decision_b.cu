// Type, direct prediction, partitions, lists and vectors of each macroblock of a B frame: twin of cpu_simd/mode_decision_b.py,
// which explains it.
//
// One warp decides a row of macroblocks, taken by ticket in the order of dependencies, and stays two macroblocks behind the row
// above. Samples of direct prediction take a lane a 4x4 block, list 0 in the lower lanes, list 1 in the upper ones; the bits of
// vectors take a lane a list of each division.
#include "mode_choice.cuh"

constexpr int TICKETS = 0, ENDED = 1, DECIDED = 2;  // words of `progress`: rows taken, rows ended, macroblocks decided in each row
// Divisions by pairs of lanes: 8x8, 16x8, 8x16, then 16x16 from list 0, from list 1, from both
constexpr int QUARTERS = 0, UPPER = 1, LEFT = 2, WHOLE = 3, DIVISIONS = 6;

struct FrameB {  // the kernel's arguments, as the launcher says
  const uint8_t *source, *luma;
  const int *slots, *bi_weights;
  int pad, n_ref, n_ref1, satd, by_cost, psy_rd, partition_mask, mb_width, mb_height;
};

// Of the macroblock in work, in shared memory
struct alignas(16) Work {
  Source source;
  Motion mv_caches[3][2][MV_CACHE];  // of 8x8, 16x8, 8x16; of both lists
  Motion choices[N_B_CHOICES][2];    // as bipredict made them, both lists
  int cost[N_B_CHOICES], extra[N_B_EXTRAS];
  Limits limits[N_QP];
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

// 8.4.1.2.2 for the list of this half of the lanes
DEVICE Direct direct_motion(const Motion *mv_cache, int still) {
  const int c = mv_cache[5].ref == -2 ? mv_cache[0].ref : mv_cache[5].ref;
  const int found = min_positive(mv_cache[6].ref, min_positive(mv_cache[1].ref, c));
  const int other = __shfl_xor_sync(FULL_WARP, found, 16);
  const unsigned v = found >= 0 ? predict(mv_cache, 0, 0, 4, 4, found) : 0;
  const int ref = found >= 0 ? found : other >= 0 ? -1 : 0;
  return {{ref, v}, ref == 0 ? still : 0};
}

// Direct luma of block lane & 15 -> samples, in both halves of the lanes. direct: of this half's list
DEVICE void predict_direct(const FrameB &f, const Direct &direct, int x0, int y0, unsigned *samples) {
  const int lane = threadIdx.x & 31, k = lane & 15, list = lane >> 4, bx = k & 3, by = k >> 2;
  const int width = f.mb_width * 16 + 2 * f.pad, height = f.mb_height * 16 + 2 * f.pad;
  const Motion own = of_quadrant(direct, (by & 2) + (bx >> 1));
  unsigned mine[4] = {0, 0, 0, 0};
  if (own.ref >= 0) {
    const size_t slot = f.slots[list ? f.n_ref + own.ref : own.ref];
    const short2 v = make_short2(short(x_of(own.v)), short(y_of(own.v)));
    predict_luma(f.luma + slot * 4 * width * height, width, height, f.pad, x0, y0, bx, by, {bx & 2, by & 2, 2, 2}, v, mine);
  }
  const int other = __shfl_xor_sync(FULL_WARP, own.ref, 16), ref0 = list ? other : own.ref, ref1 = list ? own.ref : other;
  const int w1 = min(ref0, ref1) >= 0 ? __ldg(f.bi_weights + ref0 * f.n_ref1 + ref1) : HALF_WEIGHT;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned others = __shfl_xor_sync(FULL_WARP, mine[i], 16), first = list ? others : mine[i], second = list ? mine[i] : others;
    samples[i] = ref0 < 0 ? second : ref1 < 0 ? first : weigh_both(first, second, w1);
  }
}

// The lists that choice c uses: 0, 1, or 2 for both
DEVICE int lists_of(const Work &w, int c) { return w.choices[c][0].ref < 0 ? 1 : w.choices[c][1].ref < 0 ? 0 : 2; }

// Costs of the divisions in their pairs of lanes. direct: of list lane & 1; quadrants: distortions of the direct quadrants;
// most: of ref_idx_bits in that list. subs: sub_mb_type of 8x8, two bits a quadrant, in the first pair
DEVICE int weigh_divisions(Work &w, const Direct &direct, const int *quadrants, int lam, int most, int &subs) {
  const int lane = threadIdx.x & 31, division = lane >> 1, list = lane & 1;
  int cost = 0;
  if (division == QUARTERS) cost = w.extra[B_EXTRA_8x8] + lam * BITS_B_8x8;
  else if (division == UPPER) cost = w.extra[B_EXTRA_16x8] + lam * BITS_B_16x8[lists_of(w, B_16x8_PART)][lists_of(w, B_16x8_PART + 1)];
  else if (division == LEFT) cost = w.extra[B_EXTRA_8x16] + lam * BITS_B_8x16[lists_of(w, B_8x16_PART)][lists_of(w, B_8x16_PART + 1)];
  else if (division < DIVISIONS) cost = w.extra[division - WHOLE] + lam * BITS_B_16x16[lists_of(w, B_WHOLE + division - WHOLE)];
  subs = 0;
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    const bool has = division == QUARTERS || (division < WHOLE && i < 2) || (division < DIVISIONS && i == 0);
    int c = B_QUADRANT + i, bx = 2 * (i & 1), by = i & 2, bw = 2, bh = 2, bits = 0;
    if (division == UPPER) c = B_16x8_PART + i, bx = 0, by = 2 * i, bw = 4;
    if (division == LEFT) c = B_8x16_PART + i, bx = 2 * i, by = 0, bh = 4;
    if (division >= WHOLE) c = B_WHOLE + division - WHOLE, bx = by = 0, bw = bh = 4;
    Motion *mv_cache = w.mv_caches[division < WHOLE ? division : QUARTERS][list], own = {-1, 0};
    if (has) own = w.choices[c][list];
    if (own.ref >= 0) bits = ref_idx_bits(own.ref, most) + difference_bits(own.v, predict(mv_cache, bx, by, bw, bh, own.ref));
    bits += __shfl_xor_sync(FULL_WARP, bits, 1);
    int value = has ? w.cost[c] + lam * bits : 0;
    if (division == QUARTERS) {
      int sub = B_SUB_L0 + lists_of(w, c);
      value += lam * BITS_B_SUB[sub];
      const int by_direct = quadrants[i] + lam * BITS_B_SUB[B_SUB_DIRECT];
      if (by_direct <= value) {
        value = by_direct;
        sub = B_SUB_DIRECT;
        own = of_quadrant(direct, i);
      }
      subs |= sub << (2 * i);
    }
    cost += value;
    __syncwarp();
    // of 16x8 and 8x16 the block that predicts the other part
    if (division == UPPER && i == 0) mv_cache[13] = own;
    if (division == LEFT && i == 0) mv_cache[8] = own;
    if (division == QUARTERS) {
      Motion *to = mv_cache + 6 * (by + 1) + bx + 1;
      to[0] = to[1] = to[6] = to[7] = own;
    }
    __syncwarp();
  }
  return cost;
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

// Macroblock rows [row0, row0 + gridDim.x), a warp each. Choices: cost int[n_mb][N_B_CHOICES], reference [..][2], vectors [..][2],
// extra int[n_mb][N_B_EXTRAS]; colocated_still: uint8[n_mb]; progress: int[DECIDED + gridDim.x], 0 before the first launch.
extern "C" __global__ void __launch_bounds__(32) mode_decision_b(const uint8_t *__restrict__ source,
    const uint8_t *__restrict__ ref_luma, const int *__restrict__ ref_slots, const int *__restrict__ bi_weights, int pad, int n_ref,
    int n_ref1, const int *__restrict__ choice_cost, const signed char *__restrict__ choice_ref, const unsigned *__restrict__ choice_mv,
    const int *__restrict__ choice_extra, const uint8_t *__restrict__ colocated_still, const int *__restrict__ intra_cost,
    const int *__restrict__ skip_limit, const int *__restrict__ slice_first_mb, const uint8_t *__restrict__ qp, int satd, int by_cost,
    int psy_rd, int partition_mask, int mb_width, int mb_height, int row0, int *progress, uint8_t *mb_type, uint8_t *sub_mb_type,
    signed char *ref_idx, unsigned *mv, signed char *ref_idx1, unsigned *mv1) {
  SHARED(Work, shared, 1);
  Work &w = *in_register(shared);
  const int lane = threadIdx.x & 31, k = lane & 15, list = lane >> 4, q = (k >> 3) * 2 + (k >> 1 & 1);
  for (int i = lane; i < N_QP; i += 32) w.limits[i] = limits_of(i);
  wait_for_the_kernel_before();
  const FrameB f = {source, ref_luma, ref_slots, bi_weights, pad, n_ref, n_ref1, satd, by_cost, psy_rd, partition_mask, mb_width, mb_height};
  const int row = __shfl_sync(FULL_WARP, lane ? 0 : atomicAdd(progress + TICKETS, 1), 0), my = row0 + row;
  const int first_mb = slice_first_mb[my], stride = mb_width * 16;
  const bool waits = row > 0 && my * mb_width > first_mb;
  signed char *const list_ref = list ? ref_idx1 : ref_idx;
  unsigned *const list_mv = list ? mv1 : mv;
#pragma unroll 1
  for (int mx = 0; mx < mb_width; mx++) {
    const int mb = my * mb_width + mx, x0 = 16 * mx, y0 = 16 * my, q_y = __ldg(qp + mb), lam = LAMBDA[q_y];
    const uint8_t *from = source + size_t(y0 + 4 * (k >> 2)) * stride + x0 + 4 * (k & 3);
    unsigned rows[4], samples[4];
#pragma unroll
    for (int i = 0; i < 4; i++) rows[i] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(i) * stride));
    const int still = __ldg(colocated_still + mb);
    if (lane < 16) keep_source(w.source, k, rows, satd);
    if (lane < 2 * N_B_CHOICES) {
      const size_t at = size_t(mb) * 2 * N_B_CHOICES + lane;
      const int ref = __ldg(choice_ref + at);
      w.choices[lane >> 1][lane & 1] = {ref, ref < 0 ? 0 : __ldg(choice_mv + at)};
    }
    if (lane < N_B_CHOICES) w.cost[lane] = __ldg(choice_cost + size_t(mb) * N_B_CHOICES + lane);
    if (lane < N_B_EXTRAS) w.extra[lane] = __ldg(choice_extra + size_t(mb) * N_B_EXTRAS + lane);
    if (waits && lane == 0) wait_at_least(progress + DECIDED + row - 1, min(mx + 2, mb_width));
    __syncwarp();
    if (k < 10) {
      const int block = neighbour_block(mb, k < 6 ? k - 1 : -1, k < 6 ? -1 : k - 6, mb_width, first_mb);
      const Motion m = motion_of(block, list_ref, list_mv);
#pragma unroll
      for (int i = 0; i < 3; i++) w.mv_caches[i][list][k < 6 ? k : 6 * (k - 5)] = m;
    }
    __syncwarp();
    const Direct direct = direct_motion(w.mv_caches[0][list], still);
    predict_direct(f, direct, x0, y0, samples);
    const uint4 own = w.source.rows[0][k], more = w.source.rows[1][k];
    const Transformed t = {{own.x, own.y, own.z, own.w}, {more.x, more.y, more.z, more.w}};
    int distortion = int(satd ? satd_4x4(t, samples) : sad_4x4(t.first, samples));
    distortion += __shfl_xor_sync(FULL_WARP, distortion, 1);
    distortion += __shfl_xor_sync(FULL_WARP, distortion, 4);
    int quadrants[4], all = 0, subs;
#pragma unroll
    for (int i = 0; i < 4; i++) all += quadrants[i] = __shfl_sync(FULL_WARP, distortion, 8 * (i >> 1) + 2 * (i & 1));
    const int most = most_ref_idx_bits(lane & 1 ? n_ref1 : n_ref);
    const int cost = weigh_divisions(w, from_lane(direct, 16 * (lane & 1)), quadrants, lam, most, subs);
    subs = __shfl_sync(FULL_WARP, subs, 0);
    int kind = B_16x16, whole = B_WHOLE, best = __shfl_sync(FULL_WARP, cost, 2 * WHOLE);
#pragma unroll
    for (int i = 1; i < 3; i++) {
      const int value = __shfl_sync(FULL_WARP, cost, 2 * (WHOLE + i));
      if (value < best) best = value, whole = B_WHOLE + i;
    }
    bool empty = false;
    if (!by_cost && all + lam * BITS_SKIP <= best) {
      const unsigned worth = levels_worth(w.source, k, samples, w.limits[q_y]);
      empty = __reduce_add_sync(FULL_WARP, lane < 16 ? worth : 0u) < BUDGET;
    }
    const int by_direct = all + w.extra[B_EXTRA_DIRECT] + lam * BITS_B_DIRECT;
    if (empty || by_direct < best) best = by_direct, kind = B_DIRECT;
    const int upper = __shfl_sync(FULL_WARP, cost, 2 * UPPER), left = __shfl_sync(FULL_WARP, cost, 2 * LEFT);
    const int quarters = __shfl_sync(FULL_WARP, cost, 2 * QUARTERS), by_intra = intra_cost[mb] + lam * BITS_B_INTRA;
    if (!empty) {
      if (partition_mask & 2 && upper < best) best = upper, kind = B_16x8;
      if (partition_mask & 2 && left < best) best = left, kind = B_8x16;
      if (partition_mask & 4 && quarters < best) best = quarters, kind = B_8x8;
      if (by_intra < best) best = by_intra, kind = I_16x16;
    }
    if (by_cost) {
      const unsigned error = whole_error(f, rows, samples, q_y);
      const int by_skip = int((unsigned long long)(error) * RD_SKIP_WEIGHT[q_y] >> 16) + skip_limit[mb] + lam * BITS_SKIP;
      if (by_skip <= best) kind = B_SKIP;
    }
    const int sub = kind == B_8x8 ? subs >> (2 * q) & 3 : 0;
    Motion chosen = {-1, 0};
    if (kind == B_DIRECT || kind == B_SKIP || (kind == B_8x8 && sub == B_SUB_DIRECT)) chosen = of_quadrant(direct, q);
    else if (kind != I_16x16) {
      const int part = kind == B_16x8 ? B_16x8_PART + (k >> 3) : kind == B_8x16 ? B_8x16_PART + (k >> 1 & 1) : B_QUADRANT + q;
      chosen = w.choices[kind == B_16x16 ? whole : part][list];
    }
    list_mv[16 * size_t(mb) + k] = chosen.v;
    if (!(k & 5)) {
      list_ref[4 * size_t(mb) + q] = (signed char)(chosen.ref);
      if (list == 0) sub_mb_type[4 * size_t(mb) + q] = uint8_t(sub);
    }
    if (lane == 0) mb_type[mb] = uint8_t(kind);
    __syncwarp();
    if (lane == 0) store_release(progress + DECIDED + row, mx + 1);
  }
  if (lane == 0) {
    fence();
    if (atomicAdd(progress + ENDED, 1) == int(gridDim.x) - 1) {  // no block waits for a row any more
      fence();
      for (int i = 0; i < DECIDED + int(gridDim.x); i++) progress[i] = 0;
    }
  }
}
