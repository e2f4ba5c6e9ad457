// One warp decides one macroblock of a P picture from its neighbours: type, partitions, references and vectors.
//
// Of a macroblock that was decided before it remembers what the search found and what samples have cost at the vectors that
// were tried, since most of them come again. Samples (the P_Skip vector in one half of the lanes, the predictor in the other;
// two neighbours of the best vector at a time) take a lane a 4x4 block; partitions are weighed a lane each.
#pragma once
#include "mv_prediction.cuh"
#include "probe.cuh"

constexpr int BITS_SKIP = 1, BITS_INTRA = 28;  // as cpu_simd/mode_decision.py
constexpr int BITS_16x16 = 2, BITS_16x8 = 4, BITS_8x16 = 4, BITS_8x8 = 6, BITS_LEAST = 2;  // the last: of a vector
constexpr int FAR = 0x3fffffff, ILLEGAL = 1 << 26;
constexpr unsigned NOWHERE = 0x80008000u;
constexpr int WINDOW = 30;  // 5 rows of 6: what predicts, at (by + 1, bx + 1): the row above, the column left, own blocks

DEVICE int ue_bits(int code_num) { return 2 * (32 - __clz(code_num + 1)) - 1; }
DEVICE int te_bits(int value, int n_ref) { return n_ref <= 1 ? 0 : n_ref == 2 ? 1 : ue_bits(value); }

struct Picture {  // the kernel's arguments, as the launcher says
  const uint8_t *source, *reference;
  int pad;
  const int *search_cost;
  const unsigned *search_mv;
  const short2 *predictor;
  const int *intra_cost, *slice_first_mb;
  int lam, qp, satd, max_mv_y, n_ref, kinds, mb_width, mb_height;
};

// What is remembered of a macroblock
struct alignas(16) Memory {
  uint4 source[16];     // 4x4 blocks
  Motion outside[10];   // of the row above with both corners and the column to the left: what lies in other tiles, as last seen
  int x0, y0, intra_cost;
  int least_halves, least_quarters;  // what 16x8 and 8x16, and 8x8, cost at least
  int blocks[10];                    // where they lie: 16 * place in the tile + block; -1: nowhere; else -2 - global block
  int tried;                         // vectors so far
  unsigned vector[8];
  int value[8];  // their distortion << 2 | 1: nothing of the residual would be left, 2: something
  unsigned centre[2];
  int nearby[2][9];  // distortions about the centres, 3 * row + column
};
// TILE columns of macroblocks by some rows, each row one macroblock further to the left than the one above: what such tiles
// depend on lies in those to the left and above, never the other way
constexpr int TILE = 8;
struct Tile {
  int x, y;  // its first macroblock; place 8 r + k is that at (x + k - r, y + r)
};
struct Search {  // what the search found for the macroblock; [n_ref][41]
  int *distortion;
  unsigned *mv;
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

// What lane i < 6 knows of the least that quadrant i (i < 4), 16x8 or 8x16 may cost
DEVICE int least_cost(const Picture &p, const Search &s, int i) {
  int least = FAR, parts[2] = {FAR, FAR};
  const int b = (i >> 1) * 8 + (i & 1) * 2, k = 36 + 2 * (i & 1);
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const int *d = s.distortion + 41 * r, fixed = p.lam * te_bits(r, p.n_ref);
    if (i >= 4) {
      for (int n = 0; n < 2; n++) parts[n] = min(parts[n], d[k + n] + fixed + p.lam * BITS_LEAST);
      continue;
    }
    int cost = d[32 + i] + p.lam * (ue_bits(SUB_8x8) + BITS_LEAST);
    if (p.kinds & 8) {
      const int halves = min(d[16 + 2 * i] + d[17 + 2 * i], d[24 + 2 * i] + d[25 + 2 * i]);
      cost = min(cost, halves + p.lam * (ue_bits(SUB_8x4) + 2 * BITS_LEAST));
      if (p.kinds & 16) cost = min(cost, d[b] + d[b + 1] + d[b + 4] + d[b + 5] + p.lam * (ue_bits(SUB_4x4) + 4 * BITS_LEAST));
    }
    least = min(least, cost + fixed);
  }
  return i < 4 ? least : parts[0] + parts[1] + p.lam * BITS_16x8;
}

// Begins to remember macroblock (mx, my)
DEVICE void get_to_know(const Picture &p, const Tile &tile, int mx, int my, Memory &m, const Search &s) {
  const int lane = threadIdx.x & 31, mb = my * p.mb_width + mx, n_mb = p.mb_width * p.mb_height;
  __syncwarp();
  if (lane < 16) {
    const uint8_t *from = p.source + size_t(16 * my + 4 * (lane >> 2)) * p.mb_width * 16 + 16 * mx + 4 * (lane & 3);
    unsigned rows[4];
#pragma unroll
    for (int i = 0; i < 4; i++) rows[i] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(i) * p.mb_width * 16));
    m.source[lane] = make_uint4(rows[0], rows[1], rows[2], rows[3]);
  }
#pragma unroll 1
  for (int i = lane; i < 41 * p.n_ref; i += 32) {
    const int r = i / 41, k = i - 41 * r;
    const unsigned v = __ldg(p.search_mv + (size_t(r) * n_mb + mb) * 41 + k);
    const short2 centre = p.predictor[size_t(r) * n_mb + mb];
    s.mv[i] = v;
    s.distortion[i] = p.search_cost[(size_t(r) * n_mb + mb) * 41 + k] - p.lam * difference_bits(v, vector_of(centre.x, centre.y));
  }
  if (lane < 10) {
    const int bx = lane < 6 ? lane - 1 : -1, by = lane < 6 ? -1 : lane - 6;
    const int block = neighbour_block(mb, bx, by, p.mb_width, p.slice_first_mb[my]);
    const int row = my - tile.y + (by < 0 ? -1 : 0), column = mx - tile.x + row + (bx < 0 ? -1 : bx > 3 ? 1 : 0);
    m.blocks[lane] = block < 0 ? -1 : row >= 0 && column >= 0 ? 16 * (TILE * row + column) + (block & 15) : -2 - block;
  }
  if (lane < 8) m.vector[lane] = NOWHERE;
  if (lane == 16) {
    m.x0 = 16 * mx;
    m.y0 = 16 * my;
    m.intra_cost = p.intra_cost[mb];
    m.tried = 0;
    m.centre[0] = m.centre[1] = NOWHERE;
  }
  __syncwarp();
  int least = lane < 6 ? least_cost(p, s, lane) : 0;
  const int other = __shfl_sync(FULL_WARP, least, 5);
  least += __shfl_xor_sync(FULL_WARP, lane < 4 ? least : 0, 1);
  least += __shfl_xor_sync(FULL_WARP, lane < 4 ? least : 0, 2);
  if (lane == 0) m.least_quarters = p.kinds & 4 ? least + p.lam * BITS_8x8 : FAR;
  if (lane == 4) m.least_halves = p.kinds & 2 ? min(least, other) : FAR;
  __syncwarp();
}

DEVICE Block block_of(const Picture &p, const Memory &m, int lane) {
  const int stride = p.mb_width * 16 + 2 * p.pad, k = lane & 15;
  const uint4 own = m.source[k];
  return {p.reference, size_t(stride) * (p.mb_height * 16 + 2 * p.pad), stride, m.x0 + 4 * (k & 3) + p.pad, m.y0 + 4 * (k >> 2) + p.pad,
          {own.x, own.y, own.z, own.w}};
}

struct Tried {
  int skip, middle;  // as Memory has values; 0: not known
};

// Tries the P_Skip vector and the predictor on the samples. best: what the vector found costs; skip_at, middle_at: where they
// are remembered, -1: nowhere
DEVICE Tried try_vectors(const Picture &p, Memory &m, unsigned skip, unsigned middle, int best, int skip_at, int middle_at) {
  const int lane = threadIdx.x & 31;
  const unsigned own = lane < 16 ? skip : middle;
  const bool legal = inside(x_of(own), y_of(own), m.x0, m.y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
  const Block block = block_of(p, m, lane);
  unsigned samples[4] = {0, 0, 0, 0};
  const unsigned sum = half_sum(legal ? predicted(block, transformed(block.current), x_of(own), y_of(own), p.satd, samples) : 0);
  int value = legal ? int(sum) << 2 : ILLEGAL << 2;
  const int skip_value = __shfl_sync(FULL_WARP, value, 0);
  if ((skip_value >> 2) + p.lam * BITS_SKIP <= best) {
    const unsigned worth = half_sum(levels_worth(block.current, samples, p.qp));
    if (lane == 0) value |= worth < unsigned(BUDGET) ? 1 : 2;
  }
  const int first = m.tried, at = skip_at < 0 ? first & 7 : skip_at;
  const bool second = skip != middle && middle_at < 0;
  int then = (first + (skip_at < 0)) & 7;
  if (then == at) then = (then + 1) & 7;  // what is forgotten must not be what was just learnt
  __syncwarp();
  if (lane == 0) {
    m.vector[at] = skip;
    m.value[at] = value;
    m.tried = first + (skip_at < 0) + second;
  }
  if (lane == 16 && second) {
    m.vector[then] = middle;
    m.value[then] = value;
  }
  __syncwarp();
  return {__shfl_sync(FULL_WARP, value, 0), __shfl_sync(FULL_WARP, value, 16)};
}

// What is known of both vectors, and enough of it
DEVICE Tried tried(const Picture &p, Memory &m, unsigned skip, unsigned middle, int best) {
  const int lane = threadIdx.x & 31;
  const unsigned vector = m.vector[lane & 7];
  const int value = m.value[lane & 7];
  const int skip_at = __ffs(int(__ballot_sync(FULL_WARP, vector == skip))) - 1;
  const int middle_at = __ffs(int(__ballot_sync(FULL_WARP, vector == middle))) - 1;
  const Tried t = {__shfl_sync(FULL_WARP, value, max(skip_at, 0)), __shfl_sync(FULL_WARP, value, max(middle_at, 0))};
  const bool enough = (t.skip & 3) || (t.skip >> 2) + p.lam * BITS_SKIP > best;
  if (skip_at >= 0 && middle_at >= 0 && enough) return t;
  return try_vectors(p, m, skip, middle, best, skip_at, middle_at);
}

// The distortions about vector v
DEVICE void try_nearby(const Picture &p, Memory &m, unsigned v, int set) {
  const int lane = threadIdx.x & 31, half = lane >> 4;
  const Block block = block_of(p, m, lane);
  const Transformed source = transformed(block.current);
#pragma unroll 1
  for (int round = 0; round < 4; round++) {
    const int i = 2 * round + half, n = i + (i >= 4), x = x_of(v) + n % 3 - 1, y = y_of(v) + n / 3 - 1;
    const bool legal = inside(x, y, m.x0, m.y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
    unsigned samples[4];
    const unsigned value = half_sum(legal ? predicted(block, source, x, y, p.satd, samples) : 0);
    if ((lane & 15) == 0) m.nearby[set][n] = legal ? int(value) : ILLEGAL;
  }
  __syncwarp();
  if (lane == 0) m.centre[set] = v;
  __syncwarp();
}

// The cheapest of the eight quarter-sample neighbours of `choice`, the first on a tie, if it costs less than `best`
DEVICE void refine(const Picture &p, Memory &m, unsigned middle, int &best, Motion &choice) {
  const int lane = threadIdx.x & 31;
  int set = m.centre[0] == choice.v ? 0 : 1;
  if (m.centre[set] != choice.v) {
    set = m.centre[0] == NOWHERE ? 0 : 1;
    try_nearby(p, m, choice.v, set);
  }
  unsigned key = ~0u;
  const unsigned v = vector_of(x_of(choice.v) + lane % 3 - 1, y_of(choice.v) + lane / 3 - 1);
  if (lane < 9 && lane != 4) {
    const int value = m.nearby[set][lane];
    const int cost = value + p.lam * (BITS_16x16 + te_bits(0, p.n_ref) + difference_bits(v, middle));
    if (value < ILLEGAL) key = unsigned(cost) << 4 | unsigned(lane);
  }
  key = __reduce_min_sync(FULL_WARP, key);
  const unsigned moved = __shfl_sync(FULL_WARP, v, int(key & 15));
  if (int(key >> 4) < best) {
    best = int(key >> 4);
    choice.v = moved;
  }
}

// P_16x16 with the vector found, the P_Skip vector, the predictor or what lies about the best. a, b, c: neighbours. True: the
// P_Skip vector costs no more than the vector found, and nothing of the residual would be left.
DEVICE bool whole_macroblock(const Picture &p, Memory &m, const Search &s, const Motion &a, const Motion &b, const Motion &c,
                             int &best, Motion &choice) {
  const unsigned middle = choose_predictor(0, 0, 4, 4, 0, a, b, c), skip = skip_vector(a, b, middle);
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
  const Tried t = tried(p, m, skip, middle, best);
  const int fixed = BITS_16x16 + te_bits(0, p.n_ref), skip_value = t.skip >> 2, middle_value = t.middle >> 2;
  if (skip_value < ILLEGAL) {
    if (skip_value + p.lam * BITS_SKIP <= best && (t.skip & 1)) {
      choice = {0, skip};
      return true;
    }
    const int cost = skip_value + p.lam * (fixed + difference_bits(skip, middle));
    if (cost < best) {
      best = cost;
      choice = {0, skip};
    }
  }
  if (middle_value < ILLEGAL && middle_value + p.lam * (fixed + BITS_LEAST) < best) {
    best = middle_value + p.lam * (fixed + BITS_LEAST);
    choice = {0, middle};
  }
  if (choice.ref == 0) refine(p, m, middle, best, choice);
  return false;
}

// 16x8 and 8x16 against `best`, one in the even lanes, one in the odd ones. own: of this lane's block, raster
DEVICE int weigh_halves(const Picture &p, Motion *windows, const Search &s, int kind, int &best, Motion &own) {
  const int lane = threadIdx.x & 31, shape = lane & 1;
  Motion *window = windows + WINDOW * shape, first = {0, 0}, second = {0, 0};
  int cost = p.lam * BITS_16x8, half_cost = 0;
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    half_cost = cost;
    first = second;
    cost += choose_reference(p, window, s, 36 + 2 * shape + i, shape ? 2 * i : 0, shape ? 0 : 2 * i, shape ? 2 : 4, shape ? 4 : 2, second);
    __syncwarp();
    if (lane < 2) window[shape ? 8 : 13] = second;  // of the first half the block that predicts the other
    __syncwarp();
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int all = __shfl_sync(FULL_WARP, cost, i), half = __shfl_sync(FULL_WARP, half_cost, i);
    const Motion one = from_lane(first, i), other = from_lane(second, i);
    if (half < best && all < best) {
      best = all;
      kind = i ? P_8x16 : P_16x8;
      own = (i ? lane >> 1 : lane >> 3) & 1 ? other : one;
    }
  }
  return kind;
}

// 8x8 against `best`, quadrant by quadrant, sub_mb_type t in the lanes 4 t to 4 t + 3 and a window of its own
DEVICE int weigh_quarters(const Picture &p, Motion *windows, const Search &s, int kind, int &best, Motion &own, int &sub_types) {
  const int lane = threadIdx.x & 31, t = lane >> 2 & 3, j = lane & 3, dx = j & 1, dy = j >> 1;
  const bool counts = t == SUB_4x4 || (t == SUB_8x4 ? !dx : t == SUB_4x8 ? !dy : !j), allowed = t == SUB_8x8 || p.kinds & (t == SUB_4x4 ? 16 : 8);
  Motion *window = windows + WINDOW * t, mine = own;
  int cost = p.lam * BITS_8x8, chosen = 0;
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
    chosen |= sub << (2 * q);
    if (cost >= best) return kind;
    const unsigned predicts = __shfl_sync(FULL_WARP, v, 4 * sub + j);
    const unsigned stays = __shfl_sync(FULL_WARP, v, 4 * sub + (lane >> 1 & 2) + (lane & 1));
    if (lane < 16) window[place] = {whole.ref, predicts};
    __syncwarp();
    if ((lane >> 3 & 1) * 2 + (lane >> 1 & 1) == q) mine = {whole.ref, stays};
  }
  best = cost;
  own = mine;
  sub_types = chosen;
  return P_8x8;
}

// Decides a macroblock from its neighbours: `around` has in lanes 0..9 what predicts, in lanes 16..31 the macroblock's blocks
// before. own: of lane & 15, now. Returns mb_type | sub_mb_type << 8. windows: [4][WINDOW]
DEVICE int decide(const Picture &p, Motion *windows, Memory &m, const Search &s, const Motion &around, Motion &own) {
  const int lane = threadIdx.x & 31;
  Motion c = from_lane(around, 5), choice = {0, 0};
  const Motion a = from_lane(around, 6), b = from_lane(around, 1), d = from_lane(around, 0);
  if (c.ref == -2) c = d;
  int best, kind = P_16x16, sub_types = 0;
  const bool skipped = whole_macroblock(p, m, s, a, b, c, best, choice);
  own = choice;
  if (!skipped) {
    if (min(m.least_halves, m.least_quarters) < best) {
      if (lane < 10) {
#pragma unroll
        for (int t = 0; t < 4; t++) windows[WINDOW * t + (lane < 6 ? lane : 6 * (lane - 5))] = around;
      }
      __syncwarp();
      if (m.least_halves < best) kind = weigh_halves(p, windows, s, kind, best, own);
      if (m.least_quarters < best) kind = weigh_quarters(p, windows, s, kind, best, own, sub_types);
    }
    if (m.intra_cost + p.lam * BITS_INTRA < best) {
      kind = I_16x16;
      sub_types = 0;
      own = {-1, 0};
    }
  }
  return kind | sub_types << 8;
}
