// One warp decides one macroblock of a P picture from its neighbours: type, partitions, references and vectors.
//
// The distortions of tried vectors are kept for each macroblock, because most vectors are tried again.
// Samples (the P_Skip vector in one half of the lanes, the predictor in the other; two neighbours of the best vector at a
// time) take a lane a 4x4 block; partitions are weighed a lane each.
#pragma once
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "decisions/quantise.cuh"
#include "decide/mode_memory.cuh"
#include "inter/motion_compensation.cuh"

DEVICE Motion from_lane(const Motion &m, int lane) { return {__shfl_sync(FULL_WARP, m.ref, lane), __shfl_sync(FULL_WARP, m.v, lane)}; }

DEVICE unsigned predict(const Motion *mv_cache, int bx, int by, int bw, int bh, int ref) {
  const Motion *cell = mv_cache + 6 * (by + 1) + bx + 1;
  Motion c = cell[bw - 6];
  const Motion d = cell[-7];
  const bool corner = corner_available(bx, by, bw) & (c.ref != -2);
  c.ref = corner ? c.ref : d.ref;
  c.v = corner ? c.v : d.v;
  return choose_predictor(bx, by, bw, bh, ref, cell[-1], cell[-6], c);
}

// Best reference of partition k with its vector, in `chosen`; its cost with the bits of ref_idx
DEVICE int choose_reference(const Picture &p, const Motion *mv_cache, const Search &s, int k, int bx, int by, int bw, int bh,
                            Motion &chosen) {
  int best = COST_MAX;
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const unsigned v = s.mv[41 * r + k];
    const int bits = ref_idx_bits(r, p.most_ref_idx_bits) + difference_bits(v, predict(mv_cache, bx, by, bw, bh, r));
    const int cost = s.distortion[41 * r + k] + s.lam * bits;
    if (cost < best) {
      best = cost;
      chosen = {r, v};
    }
  }
  return best;
}

// Sums over the lower and the upper lanes, in all lanes
DEVICE uint2 half_sums(unsigned v) {
  const bool lower = !(threadIdx.x & 16);
  return make_uint2(__reduce_add_sync(FULL_WARP, lower ? v : 0), __reduce_add_sync(FULL_WARP, lower ? 0 : v));
}

// The samples of a macroblock: position of the block of this lane
struct BlockPosition {
  int x0, y0, at, stride;
  unsigned plane_size;
};
DEVICE BlockPosition position_of(const Picture &p, int x0, int y0) {
  const int k = threadIdx.x & 15, stride = p.mb_width * 16 + 2 * p.pad;
  return {x0, y0, (y0 + 4 * (k >> 2) + p.pad) * stride + x0 + 4 * (k & 3) + p.pad, stride, unsigned(stride) * (p.mb_height * 16 + 2 * p.pad)};
}
// The distortions at a vector for the lower lanes and another for the upper lanes, ILLEGAL for an illegal vector
DEVICE uint2 try_two(const Picture &p, const MacroblockCache &m, const BlockPosition &position, unsigned v, unsigned *samples) {
  const bool legal = inside(x_of(v), y_of(v), position.x0, position.y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
  const unsigned all = __ballot_sync(FULL_WARP, legal);
  const unsigned vector = legal ? v : 0;
  uint2 sums = half_sums(
      predicted(m.source, threadIdx.x & 15, p.reference, position.plane_size, position.stride, position.at, x_of(vector), y_of(vector), p.satd, samples));
  if (!(all & 1)) sums.x = ILLEGAL;
  if (!(all >> 31)) sums.y = ILLEGAL;
  return sums;
}

struct Tried {
  int skip, middle;  // in the format of MacroblockCache.value
  int error;         // by cost: squared error of the P_Skip vector
};

// Distortions of the P_Skip vector and the predictor
DEVICE Tried tried(const Picture &p, MacroblockCache &m, const Limits &limits, const BlockPosition &position, unsigned skip, unsigned middle) {
  const int lane = threadIdx.x & 31;
  const unsigned vector = lane <= TRIED ? atomic_load(m.tried + lane) : NOWHERE;
  const int known = lane < TRIED ? atomic_load(m.value + lane) : 0, error = lane < TRIED && p.by_cost ? atomic_load(m.error + lane) : 0;
  const int skip_at = __ffs(int(__ballot_sync(FULL_WARP, lane < TRIED && vector == skip))) - 1;
  const int middle_at = __ffs(int(__ballot_sync(FULL_WARP, lane < TRIED && vector == middle))) - 1;
  if (min(skip_at, middle_at) >= 0)
    return {__shfl_sync(FULL_WARP, known, skip_at), __shfl_sync(FULL_WARP, known, middle_at), __shfl_sync(FULL_WARP, error, skip_at)};
  unsigned samples[4];
  const unsigned lane_vector = lane < 16 ? skip : middle;
  const uint2 sums = try_two(p, m, position, lane_vector, samples);
  uint2 score, errors = make_uint2(0, 0);
  if (p.by_cost) {
    errors = half_sums(squared_error(m.source, lane & 15, samples));
    if (p.psy_rd) {
      int energy = energy_difference(m.source, lane & 15, samples);
      energy += __shfl_xor_sync(FULL_WARP, energy, 1);
      energy += __shfl_xor_sync(FULL_WARP, energy, 4);
      const uint2 energies = half_sums(lane & 5 ? 0 : abs(energy));  // quadrants, one lane each
      errors.x += unsigned((unsigned long long)(energies.x) * p.psy_rd * PSY_ERROR[m.qp] >> 24);
      errors.y += unsigned((unsigned long long)(energies.y) * p.psy_rd * PSY_ERROR[m.qp] >> 24);
    }
    score = make_uint2(BUDGET, BUDGET);
  } else {
    score = half_sums(levels_score(m.source, lane & 15, samples, limits));
  }
  const Tried t = {int(sums.x << 2 | (score.x < BUDGET ? 1 : 2)), int(sums.y << 2 | (score.y < BUDGET ? 1 : 2)), int(errors.x)};
  const int first = int(__shfl_sync(FULL_WARP, vector, TRIED));
  const bool one = skip_at < 0, second = skip != middle && middle_at < 0;
  if ((lane == 0 && one) || (lane == 16 && second)) {
    const int at = (first + (lane && one)) % TRIED;
    atomicExch(m.tried + at, lane_vector);
    atomicExch(m.value + at, lane ? t.middle : t.skip);
    if (p.by_cost) atomicExch(m.error + at, int(lane ? errors.y : errors.x));
  }
  if (lane == 0) atomicExch(m.tried + TRIED, unsigned(first + one + second));
  __syncwarp();
  return t;
}

// The cheapest of the eight quarter-sample neighbours of `choice`, the first on a tie, if it costs less than `best`
DEVICE void refine(const Picture &p, MacroblockCache &m, const BlockPosition &position, unsigned middle, int &best, Motion &choice) {
  const int lane = threadIdx.x & 31;
  const unsigned centre = lane < 2 ? atomic_load(m.centre + lane) : NOWHERE;
  const unsigned known = __ballot_sync(FULL_WARP, lane < 2 && centre == choice.v);
  const int set = known ? __ffs(int(known)) - 1 : __any_sync(FULL_WARP, lane == 0 && centre == NOWHERE) ? 0 : 1;
  int value = 0;
  if (known) {
    if (lane < 9) value = atomic_load(m.nearby[set] + lane);
  } else {
#pragma unroll 1
    for (int round = 0; round < 4; round++) {
      const int i = 2 * round + (lane >> 4), n = i + (i >= 4);
      unsigned samples[4];
      const uint2 two = try_two(p, m, position, vector_of(x_of(choice.v) + n % 3 - 1, y_of(choice.v) + n / 3 - 1), samples);
      if (lane == 2 * round + (round >= 2)) value = int(two.x);
      if (lane == 2 * round + 1 + (round >= 2)) value = int(two.y);
    }
    if (lane < 9) atomicExch(m.nearby[set] + lane, value);
    if (lane == 0) atomicExch(m.centre + set, choice.v);
    __syncwarp();
  }
  unsigned key = ~0u;
  const unsigned v = vector_of(x_of(choice.v) + lane % 3 - 1, y_of(choice.v) + lane / 3 - 1);
  if (lane < 9 && lane != 4) {
    const int cost = value + m.lam * (BITS_16x16 + ref_idx_bits(0, p.most_ref_idx_bits) + difference_bits(v, middle));
    if (value < ILLEGAL) key = unsigned(cost) << 4 | unsigned(lane);
  }
  key = __reduce_min_sync(FULL_WARP, key);
  if (int(key >> 4) < best) {
    best = int(key >> 4);
    choice.v = __shfl_sync(FULL_WARP, v, int(key & 15));
  }
}

// P_16x16 with the vector found, the P_Skip vector, the predictor or what lies about the best. a, b, c: neighbours. True: the
// P_Skip vector costs no more than the vector found, and nothing of the residual would be left. By cost never; skip and skip_cost
// are then for the comparison at the end.
DEVICE bool whole_macroblock(const Picture &p, MacroblockCache &m, const Limits &limits, const BlockPosition &position, const Search &s, const Motion &a,
                             const Motion &b, const Motion &c, int &best, Motion &choice, unsigned &skip, int &skip_cost) {
  const unsigned middle = choose_predictor(0, 0, 4, 4, 0, a, b, c);
  skip = skip_vector(a, b, middle);
  choice = {0, s.mv[40]};
  best = s.distortion[40] + s.lam * (ref_idx_bits(0, p.most_ref_idx_bits) + difference_bits(choice.v, middle) + BITS_16x16);
#pragma unroll 1
  for (int r = 1; r < p.n_ref; r++) {
    const unsigned v = s.mv[41 * r + 40];
    const int bits = ref_idx_bits(r, p.most_ref_idx_bits) + difference_bits(v, choose_predictor(0, 0, 4, 4, r, a, b, c));
    const int cost = s.distortion[41 * r + 40] + s.lam * (bits + BITS_16x16);
    if (cost < best) {
      best = cost;
      choice = {r, v};
    }
  }
  const Tried t = tried(p, m, limits, position, skip, middle);
  const int fixed = BITS_16x16 + ref_idx_bits(0, p.most_ref_idx_bits), skip_value = t.skip >> 2, middle_value = t.middle >> 2;
  skip_cost = p.by_cost && skip_value < ILLEGAL ? int((unsigned long long)(t.error) * RD_SKIP_WEIGHT[m.qp] >> 16) : COST_MAX;
  if (skip_value < ILLEGAL) {
    if (skip_value + s.lam * BITS_SKIP <= best && (t.skip & 1)) {
      choice = {0, skip};
      return true;
    }
    const int cost = skip_value + s.lam * (fixed + difference_bits(skip, middle));
    if (cost < best) {
      best = cost;
      choice = {0, skip};
    }
  }
  if (middle_value < ILLEGAL && middle_value + s.lam * (fixed + BITS_LEAST) < best) {
    best = middle_value + s.lam * (fixed + BITS_LEAST);
    choice = {0, middle};
  }
  if (choice.ref == 0) refine(p, m, position, middle, best, choice);
  return false;
}

// 16x8 and 8x16 against `best`, one in the even lanes, one in the odd ones. motion: of this lane's block, raster
DEVICE int weigh_halves(const Picture &p, Motion *mv_caches, const Search &s, int mb_type, int &best, Motion &motion) {
  const int lane = threadIdx.x & 31, shape = lane & 1;
  Motion *mv_cache = mv_caches + MV_CACHE * shape, first = {0, 0}, second = {0, 0};
  int cost = s.lam * BITS_16x8, half_cost = 0;
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    half_cost = cost;
    first = second;
    cost += choose_reference(p, mv_cache, s, 36 + 2 * shape + i, shape ? 2 * i : 0, shape ? 0 : 2 * i, shape ? 2 : 4, shape ? 4 : 2, second);
    __syncwarp();
    if (lane < 2) mv_cache[shape ? 8 : 13] = second;  // of the first half the block that predicts the other
    __syncwarp();
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int all = __shfl_sync(FULL_WARP, cost, i), half = __shfl_sync(FULL_WARP, half_cost, i);
    const Motion one = from_lane(first, i), other = from_lane(second, i);
    if (half < best && all < best) {
      best = all;
      mb_type = i ? P_8x16 : P_16x8;
      motion = (i ? lane >> 1 : lane >> 3) & 1 ? other : one;
    }
  }
  return mb_type;
}

// 8x8 against `best`, quadrant by quadrant, sub_mb_type t in the lanes 4 t to 4 t + 3 and an mv_cache of their own. least: lower
// bound of the cost of all quadrants
DEVICE int weigh_quarters(const Picture &p, Motion *mv_caches, const MacroblockCache &m, const Search &s, int least, int mb_type,
                          int &best, Motion &motion, int &sub_types) {
  const int lane = threadIdx.x & 31, t = lane >> 2 & 3, j = lane & 3, dx = j & 1, dy = j >> 1;
  const bool counts = t == SUB_4x4 || (t == SUB_8x4 ? !dx : t == SUB_4x8 ? !dy : !j);
  const bool allowed = t == SUB_8x8 || p.partition_mask & (t == SUB_4x4 ? 16 : 8);
  Motion *mv_cache = mv_caches + MV_CACHE * t, mine = motion;
  int cost = s.lam * BITS_8x8, chosen = 0;
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int bx = (q & 1) * 2, by = (q >> 1) * 2, cell = 6 * (by + dy + 1) + bx + dx + 1;
    Motion whole = {0, 0};
    if (p.n_ref > 1) choose_reference(p, mv_caches, s, 32 + q, bx, by, 2, 2, whole);
    const int k = t == SUB_8x8 ? 32 + q : t == SUB_8x4 ? 16 + 2 * q + dy : t == SUB_4x8 ? 24 + 2 * q + dx : 4 * (by + dy) + bx + dx;
    const unsigned v = s.mv[41 * whole.ref + k];
    __syncwarp();
    if (lane < 16) mv_cache[cell] = {whole.ref, v};
    __syncwarp();
    int sub_cost = 0;
    if (counts) {
      const unsigned predictor = predict(mv_cache, bx + dx, by + dy, t <= SUB_8x4 ? 2 : 1, t == SUB_8x8 || t == SUB_4x8 ? 2 : 1, whole.ref);
      sub_cost = s.distortion[41 * whole.ref + k] + s.lam * difference_bits(v, predictor);
    }
    sub_cost += __shfl_xor_sync(FULL_WARP, sub_cost, 1);
    sub_cost += __shfl_xor_sync(FULL_WARP, sub_cost, 2);
    sub_cost += s.lam * (ref_idx_bits(whole.ref, p.most_ref_idx_bits) + sub_type_bits(t));
    const int cheapest = __reduce_min_sync(FULL_WARP, allowed ? sub_cost * 4 + t : 2 * COST_MAX), sub = cheapest & 3;
    cost += cheapest >> 2;
    least -= m.least[q];
    chosen |= sub << (2 * q);
    if (max(cost, cost + least) >= best) return mb_type;
    const unsigned predicts = __shfl_sync(FULL_WARP, v, 4 * sub + j);
    const unsigned stays = __shfl_sync(FULL_WARP, v, 4 * sub + (lane >> 1 & 2) + (lane & 1));
    if (lane < 16) mv_cache[cell] = {whole.ref, predicts};
    __syncwarp();
    if ((lane >> 3 & 1) * 2 + (lane >> 1 & 1) == q) mine = {whole.ref, stays};
  }
  best = cost;
  motion = mine;
  sub_types = chosen;
  return P_8x8;
}

// Decides the macroblock at (x0, y0) from its neighbours: `around`: lanes 0..9 have the neighbour blocks. motion: of block lane & 15.
// Returns mb_type | sub_mb_type << 8. mv_caches: [4][MV_CACHE]
DEVICE int decide(const Picture &p, Motion *mv_caches, MacroblockCache &m, const Limits &limits, int x0, int y0, const Motion &around,
                  Motion &motion) {
  const int lane = threadIdx.x & 31;
  const Search s = search_of(m, p.n_ref, m.lam);
  Motion c = from_lane(around, 5), choice = {0, 0};
  const Motion a = from_lane(around, 6), b = from_lane(around, 1), d = from_lane(around, 0);
  if (c.ref == -2) c = d;
  int best, skip_cost, mb_type = P_16x16, sub_types = 0;
  unsigned skip;
  const bool skipped = whole_macroblock(p, m, limits, position_of(p, x0, y0), s, a, b, c, best, choice, skip, skip_cost);
  motion = choice;
  if (skipped) return mb_type;
  const int quarters = m.least[0] + m.least[1] + m.least[2] + m.least[3];
  const int least_halves = p.partition_mask & 2 ? min(m.least[4], m.least[5]) : COST_MAX;
  const int least_quarters = p.partition_mask & 4 ? quarters + s.lam * BITS_8x8 : COST_MAX;
  if (min(least_halves, least_quarters) < best) {
    if (lane < 10) {
#pragma unroll
      for (int t = 0; t < 4; t++) mv_caches[MV_CACHE * t + (lane < 6 ? lane : 6 * (lane - 5))] = around;
    }
    __syncwarp();
    if (least_halves < best) mb_type = weigh_halves(p, mv_caches, s, mb_type, best, motion);
    if (least_quarters < best) mb_type = weigh_quarters(p, mv_caches, m, s, quarters, mb_type, best, motion, sub_types);
  }
  if (m.intra_cost + s.lam * BITS_INTRA < best) {
    best = m.intra_cost + s.lam * BITS_INTRA;
    mb_type = I_16x16;
    sub_types = 0;
    motion = {-1, 0};
  }
  if (p.by_cost && skip_cost <= best + m.skip_limit) {
    mb_type = P_SKIP;
    sub_types = 0;
    motion = {0, skip};
  }
  return mb_type | sub_types << 8;
}
