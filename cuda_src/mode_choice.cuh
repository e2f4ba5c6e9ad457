// One warp decides one macroblock of a P picture from its neighbours: type, partitions, references and vectors.
//
// Of each macroblock it is remembered what samples have cost at the vectors that were tried, since most of them come again.
// Samples (the P_Skip vector in one half of the lanes, the predictor in the other; two neighbours of the best vector at a
// time) take a lane a 4x4 block; partitions are weighed a lane each.
#pragma once
#include "mv_prediction.cuh"
#include "probe.cuh"

constexpr int BITS_SKIP = 1, BITS_INTRA = 28;  // as cpu_simd/mode_decision.py
constexpr int BITS_16x16 = 2, BITS_16x8 = 4, BITS_8x16 = 4, BITS_8x8 = 6, BITS_LEAST = 2;  // the last: of a vector
constexpr int FAR = 0x3fffffff, ILLEGAL = 1 << 26;
constexpr unsigned NOWHERE = 0x80008000u;
constexpr int WINDOW = 30;  // 5 rows of 6: what predicts, at (by + 1, bx + 1): the row above, the column left, own blocks

DEVICE int ue_bits(int code_num) { return 2 * (32 - __clz(code_num + 1)) - 1; }
DEVICE int most_te_bits(int n_ref) { return n_ref <= 1 ? 0 : n_ref == 2 ? 1 : 32; }
DEVICE int te_bits(int value, int most) { return min(ue_bits(value), most); }

struct Picture {  // the kernel's arguments, as the launcher says
  const uint8_t *source, *reference;
  int pad;
  const int *search_cost;
  const unsigned *search_mv;
  const short2 *predictor;
  const int *intra_cost, *slice_first_mb;
  int lam, satd, max_mv_y, n_ref, most_te_bits, kinds, mb_width, mb_height;
};

// TILE columns of macroblocks by some rows, each row one macroblock further to the left than the one above: what such tiles
// depend on lies in those to the left and above, never the other way
constexpr int TILE = 8, MOST = 32;  // macroblocks of a tile, a bit each
constexpr int TRIED = 8;            // vectors whose distortions are remembered
struct Tile {
  int x, y, rows;  // its first macroblock; place 8 r + k is that at (x + k - r, y + r)
};

// What blocks have, of a tile and around it: 16 of each macroblock, then of each what it sees of other tiles (Memory's order)
struct Blocks {
  unsigned vectors[(16 + 10) * MOST];
  int references[(16 + 10) * MOST];
};
DEVICE int outside_of(int place) { return 16 * MOST + 10 * place; }

// A macroblock. The first half is written before a block's threads begin to decide and then only read. The second belongs to
// the warp that decides the macroblock just then: all goes through atomic operations.
struct alignas(16) Memory {
  Source source;
  uint4 next;     // bits of those of the tile to the right, below to the left, below, below to the right
  int elsewhere;  // bit i: the i-th of these is in another tile
  int intra_cost;
  int least[6];    // what quadrants, and 16x8 and 8x16, cost at least; see least_cost
  int blocks[10];  // of the row above with both corners and the column to the left: where Blocks has them
  int outer[10];   // their global blocks, if they are in other tiles; else -1

  unsigned vectors[10];  // what those blocks had when the macroblock was decided last
  int references[10];
  unsigned tried[TRIED + 1];  // vectors; how many so far
  int value[TRIED];           // their distortion << 2 | 1: nothing of the residual would be left, 2: something
  unsigned centre[2];
  int nearby[2][9];  // distortions about the centres, 3 * row + column
};
struct Search {  // what the search found for the macroblock; [n_ref][41]
  int *distortion;
  unsigned *mv;
};
DEVICE Search search_of(Memory &m, int n_ref) {
  int *distortion = reinterpret_cast<int *>(&m + 1);
  return {distortion, reinterpret_cast<unsigned *>(distortion + 41 * n_ref)};
}
DEVICE unsigned now(unsigned *v) { return atomicOr(v, 0u); }
DEVICE int now(int *v) { return atomicOr(v, 0); }

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
    const int bits = te_bits(r, p.most_te_bits) + difference_bits(v, predict(window, bx, by, bw, bh, r));
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

// Sums over the lower and the upper lanes, in all lanes
DEVICE uint2 half_sums(unsigned v) {
  const bool lower = !(threadIdx.x & 16);
  return make_uint2(__reduce_add_sync(FULL_WARP, lower ? v : 0), __reduce_add_sync(FULL_WARP, lower ? 0 : v));
}

// What lane i < 6 knows of the least that quadrant i (i < 4), 16x8 or 8x16 may cost
DEVICE int least_cost(const Picture &p, const Search &s, int i) {
  int least = FAR, parts[2] = {FAR, FAR};
  const int b = (i >> 1) * 8 + (i & 1) * 2, k = 36 + 2 * (i & 1);
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const int *d = s.distortion + 41 * r, fixed = p.lam * te_bits(r, p.most_te_bits);
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

// Begins to remember the macroblocks of a tile; all threads of a block, of which there are `threads`
DEVICE void get_to_know(const Picture &p, const Tile &tile, unsigned char *memory, int slot_bytes, Blocks &seen,
                        const signed char *ref_idx, const unsigned *mv, int row1, int threads) {
  const int n_mb = p.mb_width * p.mb_height, each = 41 * p.n_ref;
  const auto memory_of = [&](int place) -> Memory & { return *reinterpret_cast<Memory *>(memory + place * slot_bytes); };
  const auto address_of = [&](int place) {
    const int r = place / TILE, x = tile.x + place % TILE - r;
    return r < tile.rows && x >= 0 && x < p.mb_width ? (tile.y + r) * p.mb_width + x : -1;
  };
#pragma unroll 4
  for (int i = int(threadIdx.x); i < MOST * each; i += threads) {
    const int place = i / each, j = i - each * place, r = j / 41, mb = address_of(place);
    if (mb < 0) continue;
    const size_t from = size_t(r) * n_mb + mb;
    const short2 centre = p.predictor[from];
    const unsigned v = __ldg(p.search_mv + from * 41 + (j - 41 * r));
    const Search s = search_of(memory_of(place), p.n_ref);
    s.distortion[j] = p.search_cost[from * 41 + (j - 41 * r)] - p.lam * difference_bits(v, vector_of(centre.x, centre.y));
    s.mv[j] = v;
  }
#pragma unroll 1
  for (int i = int(threadIdx.x); i < MOST * 16; i += threads) {
    const int place = i / 16, k = i & 15, mb = address_of(place);
    if (mb < 0) continue;
    Memory &m = memory_of(place);
    const int y = mb / p.mb_width, x = mb - y * p.mb_width, stride = p.mb_width * 16;
    const uint8_t *from = p.source + size_t(16 * y + 4 * (k >> 2)) * stride + 16 * x + 4 * (k & 3);
    unsigned rows[4];
#pragma unroll
    for (int j = 0; j < 4; j++) rows[j] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(j) * stride));
    const Motion own = motion_of(16 * mb + k, ref_idx, mv);
    seen.references[i] = own.ref;
    seen.vectors[i] = own.v;
    if (k < 10) {
      const int bx = k < 6 ? k - 1 : -1, by = k < 6 ? -1 : k - 6, at = outside_of(place) + k;
      const int block = neighbour_block(mb, bx, by, p.mb_width, p.slice_first_mb[y]);
      const int row = y - tile.y + (by < 0 ? -1 : 0), column = x - tile.x + row + (bx < 0 ? -1 : bx > 3 ? 1 : 0);
      const bool here = block >= 0 && row >= 0 && column >= 0;
      m.blocks[k] = here ? 16 * (TILE * row + column) + (block & 15) : at;
      m.outer[k] = here ? -1 : block;
      const Motion other = motion_of(here ? -1 : block, ref_idx, mv);
      seen.references[at] = other.ref;
      seen.vectors[at] = other.v;
      m.references[k] = 99;  // nobody has that
      m.vectors[k] = 0;
    }
    if (k == 11) {
      const int r = place / TILE, column = place % TILE;
      const bool right = x + 1 < p.mb_width, below = y + 1 < row1, inner = r + 1 < tile.rows;
      const bool there[4] = {right, below && x > 0, below, below && right};
      const bool in[4] = {column + 1 < TILE, inner, inner && column + 1 < TILE, inner && column + 2 < TILE};
      unsigned bits[4], elsewhere = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        bits[j] = there[j] && in[j] ? 1u << (place + (j ? TILE - 1 + j : 1)) : 0;
        elsewhere |= there[j] && !in[j] ? 1u << j : 0;
      }
      m.next = four(bits);
      m.elsewhere = int(elsewhere);
    }
    keep_source(m.source, k, rows, p.satd);
    if (k <= TRIED) m.tried[k] = k < TRIED ? NOWHERE : 0;
    if (k < 2) m.centre[k] = NOWHERE;
    if (k == 10) m.intra_cost = p.intra_cost[mb];
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < MOST * 8; i += threads)
    if ((i & 7) < 6 && address_of(i / 8) >= 0) memory_of(i / 8).least[i & 7] = least_cost(p, search_of(memory_of(i / 8), p.n_ref), i & 7);
}

// A macroblock on its samples: where its block of this lane lies
struct Place {
  int x0, y0, at, stride;
  unsigned plane_size;
};
DEVICE Place place_of(const Picture &p, int x0, int y0) {
  const int k = threadIdx.x & 15, stride = p.mb_width * 16 + 2 * p.pad;
  return {x0, y0, (y0 + 4 * (k >> 2) + p.pad) * stride + x0 + 4 * (k & 3) + p.pad, stride, unsigned(stride) * (p.mb_height * 16 + 2 * p.pad)};
}
// The distortions at a vector for the lower lanes and one for the upper ones, ILLEGAL where one is
DEVICE uint2 try_two(const Picture &p, const Memory &m, const Place &place, unsigned v, unsigned *samples) {
  const bool legal = inside(x_of(v), y_of(v), place.x0, place.y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
  const unsigned all = __ballot_sync(FULL_WARP, legal);
  const unsigned own = legal ? v : 0;
  uint2 sums = half_sums(
      predicted(m.source, threadIdx.x & 15, p.reference, place.plane_size, place.stride, place.at, x_of(own), y_of(own), p.satd, samples));
  if (!(all & 1)) sums.x = ILLEGAL;
  if (!(all >> 31)) sums.y = ILLEGAL;
  return sums;
}

struct Tried {
  int skip, middle;  // as Memory has values
};

// What the P_Skip vector and the predictor cost on the samples
DEVICE Tried tried(const Picture &p, Memory &m, const Limits &limits, const Place &place, unsigned skip, unsigned middle) {
  const int lane = threadIdx.x & 31;
  const unsigned vector = lane <= TRIED ? now(m.tried + lane) : NOWHERE;
  const int known = lane < TRIED ? now(m.value + lane) : 0;
  const int skip_at = __ffs(int(__ballot_sync(FULL_WARP, lane < TRIED && vector == skip))) - 1;
  const int middle_at = __ffs(int(__ballot_sync(FULL_WARP, lane < TRIED && vector == middle))) - 1;
  if (min(skip_at, middle_at) >= 0) return {__shfl_sync(FULL_WARP, known, skip_at), __shfl_sync(FULL_WARP, known, middle_at)};
  unsigned samples[4];
  const unsigned own = lane < 16 ? skip : middle;
  const uint2 sums = try_two(p, m, place, own, samples);
  const unsigned worth = levels_worth(m.source, lane & 15, samples, limits);
  const unsigned both = __reduce_add_sync(FULL_WARP, lane < 16 ? worth : worth << 16);
  const Tried t = {int(sums.x << 2 | ((both & 0xffff) < BUDGET ? 1 : 2)), int(sums.y << 2 | (both >> 16 < BUDGET ? 1 : 2))};
  const int first = int(__shfl_sync(FULL_WARP, vector, TRIED));
  const bool one = skip_at < 0, second = skip != middle && middle_at < 0;
  if ((lane == 0 && one) || (lane == 16 && second)) {
    const int at = (first + (lane && one)) % TRIED;
    atomicExch(m.tried + at, own);
    atomicExch(m.value + at, lane ? t.middle : t.skip);
  }
  if (lane == 0) atomicExch(m.tried + TRIED, unsigned(first + one + second));
  __syncwarp();
  return t;
}

// The cheapest of the eight quarter-sample neighbours of `choice`, the first on a tie, if it costs less than `best`
DEVICE void refine(const Picture &p, Memory &m, const Place &place, unsigned middle, int &best, Motion &choice) {
  const int lane = threadIdx.x & 31;
  const unsigned centre = lane < 2 ? now(m.centre + lane) : NOWHERE;
  const unsigned known = __ballot_sync(FULL_WARP, lane < 2 && centre == choice.v);
  const int set = known ? __ffs(int(known)) - 1 : __any_sync(FULL_WARP, lane == 0 && centre == NOWHERE) ? 0 : 1;
  int value = 0;
  if (known) {
    if (lane < 9) value = now(m.nearby[set] + lane);
  } else {
#pragma unroll 2
    for (int round = 0; round < 4; round++) {
      const int i = 2 * round + (lane >> 4), n = i + (i >= 4);
      unsigned samples[4];
      const uint2 two = try_two(p, m, place, vector_of(x_of(choice.v) + n % 3 - 1, y_of(choice.v) + n / 3 - 1), samples);
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
    const int cost = value + p.lam * (BITS_16x16 + te_bits(0, p.most_te_bits) + difference_bits(v, middle));
    if (value < ILLEGAL) key = unsigned(cost) << 4 | unsigned(lane);
  }
  key = __reduce_min_sync(FULL_WARP, key);
  if (int(key >> 4) < best) {
    best = int(key >> 4);
    choice.v = __shfl_sync(FULL_WARP, v, int(key & 15));
  }
}

// P_16x16 with the vector found, the P_Skip vector, the predictor or what lies about the best. a, b, c: neighbours. True: the
// P_Skip vector costs no more than the vector found, and nothing of the residual would be left.
DEVICE bool whole_macroblock(const Picture &p, Memory &m, const Limits &limits, const Place &place, const Search &s, const Motion &a,
                             const Motion &b, const Motion &c, int &best, Motion &choice) {
  const unsigned middle = choose_predictor(0, 0, 4, 4, 0, a, b, c), skip = skip_vector(a, b, middle);
  choice = {0, s.mv[40]};
  best = s.distortion[40] + p.lam * (te_bits(0, p.most_te_bits) + difference_bits(choice.v, middle) + BITS_16x16);
#pragma unroll 1
  for (int r = 1; r < p.n_ref; r++) {
    const unsigned v = s.mv[41 * r + 40];
    const int bits = te_bits(r, p.most_te_bits) + difference_bits(v, choose_predictor(0, 0, 4, 4, r, a, b, c));
    const int cost = s.distortion[41 * r + 40] + p.lam * (bits + BITS_16x16);
    if (cost < best) {
      best = cost;
      choice = {r, v};
    }
  }
  const Tried t = tried(p, m, limits, place, skip, middle);
  const int fixed = BITS_16x16 + te_bits(0, p.most_te_bits), skip_value = t.skip >> 2, middle_value = t.middle >> 2;
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
  if (choice.ref == 0) refine(p, m, place, middle, best, choice);
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

// 8x8 against `best`, quadrant by quadrant, sub_mb_type t in the lanes 4 t to 4 t + 3 and a window of its own. least: what all
// quadrants cost at least
DEVICE int weigh_quarters(const Picture &p, Motion *windows, const Memory &m, const Search &s, int least, int kind, int &best, Motion &own,
                          int &sub_types) {
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
    part += p.lam * (te_bits(whole.ref, p.most_te_bits) + ue_bits(t));
    const int cheapest = __reduce_min_sync(FULL_WARP, allowed ? part * 4 + t : 2 * FAR), sub = cheapest & 3;
    cost += cheapest >> 2;
    least -= m.least[q];
    chosen |= sub << (2 * q);
    if (max(cost, cost + least) >= best) return kind;
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

// Decides the macroblock at (x0, y0) from its neighbours: `around` has in lanes 0..9 what predicts. own: of block lane & 15.
// Returns mb_type | sub_mb_type << 8. windows: [4][WINDOW]
DEVICE int decide(const Picture &p, Motion *windows, Memory &m, const Limits &limits, int x0, int y0, const Motion &around, Motion &own) {
  const int lane = threadIdx.x & 31;
  const Search s = search_of(m, p.n_ref);
  Motion c = from_lane(around, 5), choice = {0, 0};
  const Motion a = from_lane(around, 6), b = from_lane(around, 1), d = from_lane(around, 0);
  if (c.ref == -2) c = d;
  int best, kind = P_16x16, sub_types = 0;
  const bool skipped = whole_macroblock(p, m, limits, place_of(p, x0, y0), s, a, b, c, best, choice);
  own = choice;
  if (skipped) return kind;
  const int quarters = m.least[0] + m.least[1] + m.least[2] + m.least[3];
  const int least_halves = p.kinds & 2 ? min(m.least[4], m.least[5]) : FAR, least_quarters = p.kinds & 4 ? quarters + p.lam * BITS_8x8 : FAR;
  if (min(least_halves, least_quarters) < best) {
    if (lane < 10) {
#pragma unroll
      for (int t = 0; t < 4; t++) windows[WINDOW * t + (lane < 6 ? lane : 6 * (lane - 5))] = around;
    }
    __syncwarp();
    if (least_halves < best) kind = weigh_halves(p, windows, s, kind, best, own);
    if (least_quarters < best) kind = weigh_quarters(p, windows, m, s, quarters, kind, best, own, sub_types);
  }
  if (m.intra_cost + p.lam * BITS_INTRA < best) {
    kind = I_16x16;
    sub_types = 0;
    own = {-1, 0};
  }
  return kind | sub_types << 8;
}
