// Two warps decide one macroblock of a P picture from its neighbours: type, partitions, references and vectors.
//
// One tries vectors of the whole macroblock on samples, a lane a 4x4 block (the P_Skip vector in one half of the lanes, the
// predictor in the other; two neighbours of the best vector at a time); the other weighs partitions meanwhile, a lane each.
#pragma once
#include "mv_prediction.cuh"
#include "probe.cuh"

constexpr int BITS_SKIP = 1, BITS_INTRA = 28;  // as cpu_simd/mode_decision.py
constexpr int BITS_16x16 = 2, BITS_16x8 = 4, BITS_8x16 = 4, BITS_8x8 = 6, BITS_LEAST = 2;  // the last: of a vector
constexpr int FAR = 0x3fffffff, ILLEGAL = 1 << 26;
constexpr int NEARBY_AT_ONCE = 2;  // rounds of refinement whose loads do not wait for each other
constexpr int WINDOW = 30;  // 5 rows of 6: what predicts, at (by + 1, bx + 1): the row above, the column left, own blocks

DEVICE int ue_bits(int code_num) { return 2 * (32 - __clz(code_num + 1)) - 1; }
DEVICE int te_bits(int value, int n_ref) { return n_ref <= 1 ? 0 : n_ref == 2 ? 1 : ue_bits(value); }

struct Picture {  // the kernel's arguments, as the launcher says
  const uint8_t *source, *reference;
  int pad;
  const int *search_cost;
  const unsigned *search_mv, *predictor;
  const int *intra_cost, *slice_first_mb;
  int lam, qp, satd, max_mv_y, n_ref, kinds, mb_width, mb_height;
};

struct Macroblock {
  unsigned current[4];  // samples of the 4x4 block lane & 15
  int x0, y0, intra_cost;
};
enum { HALVES_16x8, HALVES_8x16, QUARTERS };
struct Weighed {  // the partitions of a macroblock
  int cost[3], most[3];  // most: of what the cost is when one partition after the other is added
  int sub_types;
  Motion halves[4], quarters[16];  // two of 16x8, two of 8x16; by block
};
struct Search {  // what the search found for the macroblock; [n_ref][41]
  int *distortion;
  unsigned *mv, *predictor;  // that of the search; [n_ref]
};

DEVICE Motion from_lane(const Motion &m, int lane) { return {__shfl_sync(FULL_WARP, m.ref, lane), __shfl_sync(FULL_WARP, m.v, lane)}; }

DEVICE unsigned predict(const Motion *window, int bx, int by, int bw, int bh, int ref) {
  const Motion *own = window + 6 * (by + 1) + bx + 1;
  Motion c = own[bw - 6];
  const Motion d = own[-7];
  const bool corner = corner_available(bx, by, bw) & (c.ref != -2);
  c.ref = corner ? c.ref : d.ref;
  c.v = corner ? c.v : d.v;
  return choose_predictor(bx, by, bw, bh, ref, own[-1], own[-6], c);
}

// Best reference of partition k with its vector, in `chosen`; its cost with the bits of ref_idx
DEVICE int choose_reference(const Picture &p, const Motion *window, const Search &s, int k, int bx, int by, int bw, int bh,
                            Motion &chosen) {
  int best = FAR;
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const unsigned v = s.mv[41 * r + k];
    const int bits = te_bits(r, p.n_ref) + difference_bits(v, predict(window, bx, by, bw, bh, r));
    const int cost = s.distortion[41 * r + k] + p.lam * bits;
    if (cost < best) {
      best = cost;
      chosen = {r, v};
    }
  }
  return best;
}

DEVICE bool inside(int x, int y, int x0, int y0, int width, int height, int pad, int max_mv_y) {
  const int left = x0 + (x >> 2), top = y0 + (y >> 2);
  return (left >= -pad) & (left + 17 <= width + pad) & (top >= -pad) & (top + 17 <= height + pad) & (abs(x) < 4 * 2047) &
         (y >= -4 * max_mv_y) & (y < 4 * max_mv_y);
}

DEVICE unsigned half_sum(unsigned v) {
#pragma unroll
  for (int d = 1; d < 16; d *= 2) v += __shfl_xor_sync(FULL_WARP, v, d);
  return v;
}

// Loads the samples of macroblock (mx, my)
DEVICE void load(const Picture &p, int mx, int my, Macroblock &m) {
  const int k = threadIdx.x & 15;
  m.x0 = 16 * mx;
  m.y0 = 16 * my;
  const uint8_t *from = p.source + size_t(m.y0 + 4 * (k >> 2)) * p.mb_width * 16 + m.x0 + 4 * (k & 3);
#pragma unroll
  for (int i = 0; i < 4; i++) m.current[i] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(i) * p.mb_width * 16));
  m.intra_cost = __ldg(p.intra_cost + my * p.mb_width + mx);
}

// Begins to copy what the search found for macroblock mb
DEVICE void fetch(const Picture &p, int mb, const Search &s) {
  const int lane = threadIdx.x & 31, n_mb = p.mb_width * p.mb_height;
#pragma unroll 1
  for (int i = lane; i < 41 * p.n_ref; i += 32) {
    const size_t from = (size_t(i / 41) * n_mb + mb) * 41 + i % 41;
    copy_ahead(s.distortion + i, p.search_cost + from);
    copy_ahead(s.mv + i, p.search_mv + from);
  }
  if (lane < p.n_ref) copy_ahead(s.predictor + lane, p.predictor + size_t(lane) * n_mb + mb);
}

// Turns all that fetch has begun to copy, for the same warp, into distortions
DEVICE void prepare(const Picture &p, const Search &s) {
  const int lane = threadIdx.x & 31;
  copied();
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < 41 * p.n_ref; i += 32) s.distortion[i] -= p.lam * difference_bits(s.mv[i], s.predictor[i / 41]);
  __syncwarp();
}

// P_16x16 with the vector found, the P_Skip vector, the predictor or what lies about the best. a, b, c: neighbours. True: the
// P_Skip vector costs no more than the vector found, and nothing of the residual would be left.
DEVICE bool whole_macroblock(const Picture &p, const Macroblock &m, const Search &s, const Motion &a, const Motion &b, const Motion &c,
                             int &best, Motion &choice) {
  const int lane = threadIdx.x & 31, k = lane & 15, stride = p.mb_width * 16 + 2 * p.pad;
  const unsigned middle = choose_predictor(0, 0, 4, 4, 0, a, b, c), skip = skip_vector(a, b, middle);
  const Block block = {p.reference, size_t(stride) * (p.mb_height * 16 + 2 * p.pad), stride, m.x0 + 4 * (k & 3) + p.pad,
                       m.y0 + 4 * (k >> 2) + p.pad, {m.current[0], m.current[1], m.current[2], m.current[3]}};
  const Transformed source = transformed(block.current);
  unsigned samples[4] = {0, 0, 0, 0};
  const auto distortion_at = [&](int x, int y) {  // of the sixteen lanes' macroblock
    const bool legal = inside(x, y, m.x0, m.y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
    const unsigned sum = half_sum(legal ? predicted(block, source, x, y, p.satd, samples) : 0);
    return legal ? int(sum) : ILLEGAL;
  };
  const unsigned own = lane < 16 ? skip : middle;
  const int value = distortion_at(x_of(own), y_of(own));
  best = FAR;
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const unsigned v = s.mv[41 * r + 40];
    const int bits = te_bits(r, p.n_ref) + difference_bits(v, choose_predictor(0, 0, 4, 4, r, a, b, c));
    const int cost = s.distortion[41 * r + 40] + p.lam * (bits + BITS_16x16);
    if (cost < best) {
      best = cost;
      choice = {r, v};
    }
  }
  const int skip_value = __shfl_sync(FULL_WARP, value, 0), middle_value = __shfl_sync(FULL_WARP, value, 16);
  if (skip_value + p.lam * BITS_SKIP <= best) {
    const unsigned worth = half_sum(levels_worth(block.current, samples, p.qp));
    if (__shfl_sync(FULL_WARP, worth, 0) < unsigned(BUDGET)) {
      choice = {0, skip};
      return true;
    }
  }
  const int fixed = BITS_16x16 + te_bits(0, p.n_ref), skip_cost = skip_value + p.lam * (fixed + difference_bits(skip, middle));
  if (skip_cost < best) {
    best = skip_cost;
    choice = {0, skip};
  }
  if (middle_value + p.lam * (fixed + BITS_LEAST) < best) {
    best = middle_value + p.lam * (fixed + BITS_LEAST);
    choice = {0, middle};
  }
  if (choice.ref) return false;
  // the cheapest of the eight quarter-sample neighbours, the first on a tie
  unsigned key = ~0u;
#pragma unroll NEARBY_AT_ONCE
  for (int round = 0; round < 4; round++) {
    const int i = 2 * round + (lane >> 4), n = i + (i >= 4), x = x_of(choice.v) + n % 3 - 1, y = y_of(choice.v) + n / 3 - 1;
    const int cost = distortion_at(x, y) + p.lam * (fixed + difference_bits(vector_of(x, y), middle));
    key = min(key, unsigned(cost) << 4 | unsigned(n));
  }
  key = __reduce_min_sync(FULL_WARP, key);
  if (int(key >> 4) < best) {
    const int n = int(key & 15);
    best = int(key >> 4);
    choice.v = vector_of(x_of(choice.v) + n % 3 - 1, y_of(choice.v) + n / 3 - 1);
  }
  return false;
}

// 16x8 and 8x16, one in the even lanes, one in the odd ones
DEVICE void weigh_halves(const Picture &p, Motion *windows, const Search &s, Weighed &w) {
  const int lane = threadIdx.x & 31, shape = lane & 1;
  Motion *window = windows + WINDOW * shape, first = {0, 0}, second = {0, 0};
  int cost = p.lam * BITS_16x8, most = 0;
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    first = second;
    cost += choose_reference(p, window, s, 36 + 2 * shape + i, shape ? 2 * i : 0, shape ? 0 : 2 * i, shape ? 2 : 4, shape ? 4 : 2, second);
    most = max(most, cost);
    __syncwarp();
    if (lane < 2) window[shape ? 8 : 13] = second;  // of the first half the block that predicts the other
    __syncwarp();
  }
  if (lane < 2) {
    w.cost[lane] = cost;
    w.most[lane] = most;
    w.halves[2 * lane] = first;
    w.halves[2 * lane + 1] = second;
  }
}

// 8x8, quadrant by quadrant, sub_mb_type t in the lanes 4 t to 4 t + 3 and a window of its own
DEVICE void weigh_quarters(const Picture &p, Motion *windows, const Search &s, Weighed &w) {
  const int lane = threadIdx.x & 31, t = lane >> 2 & 3, j = lane & 3, dx = j & 1, dy = j >> 1;
  const bool counts = t == SUB_4x4 || (t == SUB_8x4 ? !dx : t == SUB_4x8 ? !dy : !j), allowed = t == SUB_8x8 || p.kinds & (t == SUB_4x4 ? 16 : 8);
  Motion *window = windows + WINDOW * t, mine = {0, 0};
  int cost = p.lam * BITS_8x8, most = 0, chosen = 0;
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int bx = (q & 1) * 2, by = (q >> 1) * 2, place = 6 * (by + dy + 1) + bx + dx + 1;
    Motion whole = {0, 0};
    if (p.n_ref > 1) choose_reference(p, windows, s, 32 + q, bx, by, 2, 2, whole);
    const int k = t == SUB_8x8 ? 32 + q : t == SUB_8x4 ? 16 + 2 * q + dy : t == SUB_4x8 ? 24 + 2 * q + dx : 4 * (by + dy) + bx + dx;
    const unsigned v = s.mv[41 * whole.ref + k];
    __syncwarp();
    if (lane < 16) window[place] = {whole.ref, v};
    __syncwarp();
    int part = 0;
    if (counts) {
      const unsigned predictor = predict(window, bx + dx, by + dy, t <= SUB_8x4 ? 2 : 1, t == SUB_8x8 || t == SUB_4x8 ? 2 : 1, whole.ref);
      part = s.distortion[41 * whole.ref + k] + p.lam * difference_bits(v, predictor);
    }
    part += __shfl_xor_sync(FULL_WARP, part, 1);
    part += __shfl_xor_sync(FULL_WARP, part, 2);
    part += p.lam * (te_bits(whole.ref, p.n_ref) + ue_bits(t));
    const int least = __reduce_min_sync(FULL_WARP, allowed ? part * 4 + t : 2 * FAR), sub = least & 3;
    cost += least >> 2;
    most = max(most, cost);
    chosen |= sub << (2 * q);
    const unsigned predicts = __shfl_sync(FULL_WARP, v, 4 * sub + j);
    const unsigned stays = __shfl_sync(FULL_WARP, v, 4 * sub + (lane >> 1 & 2) + (lane & 1));
    if (lane < 16) window[place] = {whole.ref, predicts};
    __syncwarp();
    if ((lane >> 3 & 1) * 2 + (lane >> 1 & 1) == q) mine = {whole.ref, stays};
  }
  if (lane < 16) w.quarters[lane] = mine;
  if (lane == 0) {
    w.cost[QUARTERS] = cost;
    w.most[QUARTERS] = most;
    w.sub_types = chosen;
  }
}

// All partitions, whatever the whole macroblock may cost. around: in lanes 0..9 what predicts; windows: [4][WINDOW]
DEVICE void weigh(const Picture &p, Motion *windows, const Search &s, const Motion &around, Weighed &w) {
  const int lane = threadIdx.x & 31;
  if (lane < 3) w.most[lane] = FAR;
  if (lane < 10) {
#pragma unroll
    for (int t = 0; t < 4; t++) windows[WINDOW * t + (lane < 6 ? lane : 6 * (lane - 5))] = around;
  }
  __syncwarp();
  if (p.kinds & 2) weigh_halves(p, windows, s, w);
  if (p.kinds & 4) weigh_quarters(p, windows, s, w);
}

struct Whole {
  int best;
  bool skipped;
  Motion choice;
};
DEVICE Whole weigh_whole(const Picture &p, const Macroblock &m, const Search &s, const Motion &around) {
  Motion c = from_lane(around, 5);
  const Motion a = from_lane(around, 6), b = from_lane(around, 1), d = from_lane(around, 0);
  if (c.ref == -2) c = d;
  Whole whole = {FAR, false, {0, 0}};
  whole.skipped = whole_macroblock(p, m, s, a, b, c, whole.best, whole.choice);
  return whole;
}

// What is chosen, in the order in which it is tried; own: of block lane & 15. Returns mb_type | sub_mb_type << 8
DEVICE int settle(const Picture &p, const Macroblock &m, const Whole &whole, const Weighed &w, Motion &own) {
  const int lane = threadIdx.x & 31;
  own = whole.choice;
  if (whole.skipped) return P_16x16;
  int best = whole.best, kind = P_16x16;
  if (w.most[HALVES_16x8] < best) {
    best = w.cost[HALVES_16x8];
    kind = P_16x8;
    own = w.halves[lane >> 3 & 1];
  }
  if (w.most[HALVES_8x16] < best) {
    best = w.cost[HALVES_8x16];
    kind = P_8x16;
    own = w.halves[2 + (lane >> 1 & 1)];
  }
  if (w.most[QUARTERS] < best) {
    best = w.cost[QUARTERS];
    kind = P_8x8 | w.sub_types << 8;
    own = w.quarters[lane & 15];
  }
  if (m.intra_cost + p.lam * BITS_INTRA < best) {
    kind = I_16x16;
    own = {-1, 0};
  }
  return kind;
}
