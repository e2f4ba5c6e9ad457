// Type, partitions, references and vectors of each macroblock of a P picture (not part of the standard).
//
// In decoding order a macroblock is decided from what its neighbours to the left and above chose. Here all are decided at
// once, from a guess, and again whenever a neighbour has changed its mind; since no chain of neighbours leads back, that ends,
// and in the very choice of the serial order. Each warp has some macroblocks of its own and looks for those with a flag.
//
// A warp decides one macroblock. What touches samples (the P_Skip vector in one half of the lanes, the predictor in the
// other; then two neighbours of the best vector at a time) runs on all lanes, a 4x4 block each; the weighing of partitions,
// a serial walk through few numbers, on lane 0.
#include "mv_prediction.cuh"
#include "probe.cuh"

constexpr int WARPS = 4;
constexpr int BITS_SKIP = 1, BITS_INTRA = 28;  // as cpu_simd/mode_decision.py
constexpr int BITS_16x16 = 2, BITS_16x8 = 4, BITS_8x16 = 4, BITS_8x8 = 6;
constexpr int FAR = 0x3fffffff;

DEVICE int ue_bits(int code_num) { return 2 * (32 - __clz(code_num + 1)) - 1; }
DEVICE int te_bits(int value, int n_ref) { return n_ref <= 1 ? 0 : n_ref == 2 ? 1 : ue_bits(value); }

struct Choice {
  Motion window[5][6];  // what predicts, at [by + 1][bx + 1]: the row above with corners, the column left, the own blocks
  int n_ref, lam;
  const int *distortion;   // [n_ref][41]
  const short2 *search_mv;  // [n_ref][41]
  short2 mv[16];  // the cheapest choice so far
  int ref[4];
};

DEVICE int2 predict(const Choice &s, int bx, int by, int bw, int bh, int ref) {
  Motion c = {-2, 0, 0};
  if (corner_available(bx, by, bw)) c = s.window[by][bx + bw + 1];
  if (c.ref == -2) c = s.window[by][bx];
  return choose_predictor(bx, by, bw, bh, ref, s.window[by + 1][bx], s.window[by][bx + 1], c);
}

DEVICE void put(Choice &s, int bx, int by, int bw, int bh, int ref, int x, int y) {
  for (int r = by + 1; r <= by + bh; r++)
    for (int c = bx + 1; c <= bx + bw; c++) s.window[r][c] = {ref, x, y};
}

DEVICE int vector_cost(const Choice &s, int bx, int by, int bw, int bh, int ref, short2 v) {
  const int2 p = predict(s, bx, by, bw, bh, ref);
  return s.lam * (se_bits(v.x - p.x) + se_bits(v.y - p.y));
}

// Best reference of partition k, which goes into the window; its cost with the bits of ref_idx
__device__ __noinline__ int choose_reference(Choice &s, int k, int bx, int by, int bw, int bh) {
  int best = FAR, ref = 0;
  for (int r = 0; r < s.n_ref; r++) {
    const int part = s.distortion[41 * r + k] + s.lam * te_bits(r, s.n_ref);
    if (part < best) {
      const int cost = part + vector_cost(s, bx, by, bw, bh, r, s.search_mv[41 * r + k]);
      if (cost < best) {
        best = cost;
        ref = r;
      }
    }
  }
  const short2 v = s.search_mv[41 * ref + k];
  put(s, bx, by, bw, bh, ref, v.x, v.y);
  return best;
}

// Best reference and sub-partitions of quadrant q, which go into the window; cost, and sub_mb_type in `chosen`
__device__ __noinline__ int choose_sub_type(Choice &s, int q, int kinds, int &chosen) {
  const int bx = (q & 1) * 2, by = (q >> 1) * 2, b = by * 4 + bx;
  int best = choose_reference(s, 32 + q, bx, by, 2, 2) + s.lam * ue_bits(SUB_8x8);
  chosen = SUB_8x8;
  if (!(kinds & 8)) return best;
  const Motion whole = s.window[by + 1][bx + 1];
  const int *distortion = s.distortion + 41 * whole.ref;
  const short2 *search_mv = s.search_mv + 41 * whole.ref;
  const int fixed = s.lam * te_bits(whole.ref, s.n_ref);
  for (int sub = SUB_8x4; sub <= SUB_4x4; sub++) {
    const int first = sub == SUB_8x4 ? 16 + 2 * q : sub == SUB_4x8 ? 24 + 2 * q : b, count = sub == SUB_4x4 ? 4 : 2;
    const int w = sub == SUB_8x4 ? 2 : 1, h = sub == SUB_4x8 ? 2 : 1;
    int cost = fixed + s.lam * ue_bits(sub);
    for (int i = 0; i < count; i++) cost += distortion[first + i + (i >= 2 ? 2 : 0)] + 2 * s.lam;  // two bits at least
    if (cost >= best) continue;
    cost -= 2 * s.lam * count;
    for (int i = 0; i < count; i++) {
      const int k = first + i + (i >= 2 ? 2 : 0), px = bx + (w == 1 ? i & 1 : 0), py = by + (sub == SUB_8x4 ? i : i >> 1);
      const short2 v = search_mv[k];
      cost += vector_cost(s, px, py, w, h, whole.ref, v);
      put(s, px, py, w, h, whole.ref, v.x, v.y);
    }
    if (cost < best) {
      best = cost;
      chosen = sub;
    }
  }
  if (chosen == SUB_8x8) {
    put(s, bx, by, 2, 2, whole.ref, whole.x, whole.y);
  } else {
    for (int j = 0; j < 4; j++) {
      const int dx = j & 1, dy = j >> 1;
      const short2 v = search_mv[chosen == SUB_8x4 ? 16 + 2 * q + dy : chosen == SUB_4x8 ? 24 + 2 * q + dx : b + 4 * dy + dx];
      put(s, bx + dx, by + dy, 1, 1, whole.ref, v.x, v.y);
    }
  }
  return best;
}

DEVICE bool inside(int x, int y, int x0, int y0, int width, int height, int pad, int max_mv_y) {
  const int left = x0 + (x >> 2), top = y0 + (y >> 2);
  if (left < -pad || left + 17 > width + pad || top < -pad || top + 17 > height + pad) return false;
  return abs(x) < 4 * 2047 && y >= -4 * max_mv_y && y < 4 * max_mv_y;
}

DEVICE unsigned half_sum(unsigned v) {
#pragma unroll
  for (int d = 1; d < 16; d *= 2) v += __shfl_xor_sync(FULL_WARP, v, d);
  return v;
}

struct Picture {  // the kernel's arguments, as the launcher says
  const uint8_t *source, *ref_luma;
  const int *ref_slots;
  int pad;
  const int *search_cost;
  const short2 *search_mv, *predictor;
  const int *intra_cost, *slice_first_mb;
  int lam, qp, satd, max_mv_y, n_ref, kinds, mb_width, mb_height;
  uint8_t *mb_type, *sub_mb_type;
  signed char *ref_idx;
  short2 *mv;
};

DEVICE void keep(Choice &s) {
  for (int k = 0; k < 16; k++) {
    const Motion &m = s.window[(k >> 2) + 1][(k & 3) + 1];
    s.mv[k] = make_short2(short(m.x), short(m.y));
    if (!(k & 5)) s.ref[(k >> 3) * 2 + (k >> 1 & 1)] = m.ref;
  }
}

// 16x8, 8x16, 8x8 and intra against `best`: mb_type, and the sub-types in `sub_types`, two bits a quadrant
DEVICE int smaller_partitions(Choice &s, int kinds, int best, int intra_cost, int &sub_types) {
  int kind = P_16x16;
  for (int shape = 0; shape < 2 && (kinds & 2); shape++) {
    int cost = s.lam * (shape ? BITS_8x16 : BITS_16x8);
    for (int i = 0; i < 2; i++) {
      cost += choose_reference(s, (shape ? 38 : 36) + i, shape ? 2 * i : 0, shape ? 0 : 2 * i, shape ? 2 : 4, shape ? 4 : 2);
      if (cost >= best) break;
    }
    if (cost < best) {
      best = cost;
      kind = shape ? P_8x16 : P_16x8;
      keep(s);
    }
  }
  if (kinds & 4) {
    int cost = s.lam * BITS_8x8, chosen = 0;
    for (int q = 0; q < 4; q++) {
      int sub;
      cost += choose_sub_type(s, q, kinds, sub);
      chosen |= sub << (2 * q);
      if (cost >= best) break;
    }
    if (cost < best) {
      best = cost;
      kind = P_8x8;
      sub_types = chosen;
      keep(s);
    }
  }
  if (intra_cost + s.lam * BITS_INTRA < best) {
    kind = I_16x16;
    sub_types = 0;
    put(s, 0, 0, 4, 4, -1, 0, 0);
    keep(s);
  }
  return kind;
}

// The cheapest of the eight quarter-sample neighbours of vector (x, y): cost << 4 | 3 * row + column, the first on a tie;
// a neighbour in each half of the lanes. middle: the predictor
DEVICE unsigned best_nearby(const Picture &p, const Block &block, int x, int y, int2 middle, int x0, int y0) {
  const int half = int(threadIdx.x >> 4 & 1), fixed = BITS_16x16 + te_bits(0, p.n_ref);
  unsigned best = ~0u;
#pragma unroll
  for (int round = 0; round < 4; round++) {
    const int i = 2 * round + half, n = i + (i >= 4), vx = x + n % 3 - 1, vy = y + n / 3 - 1;
    const bool legal = inside(vx, vy, x0, y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
    unsigned samples[4];
    const unsigned value = half_sum(legal ? predicted(block, vx, vy, p.satd, samples) : 0);
    const unsigned cost = value + unsigned(p.lam * (fixed + se_bits(vx - middle.x) + se_bits(vy - middle.y)));
    if (legal) best = min(best, cost << 4 | unsigned(n));
  }
  return min(best, __shfl_xor_sync(FULL_WARP, best, 16));
}

// Decides macroblock mb from its neighbours as they are now. Returns the 4x4 blocks that have changed, a bit each.
DEVICE unsigned decide(const Picture &p, int mb, Choice &s, int *distortion, short2 *own_mv) {
  const int lane = threadIdx.x & 31, my = mb / p.mb_width, n_mb = p.mb_width * p.mb_height;
  const int x0 = 16 * (mb - my * p.mb_width), y0 = 16 * my;
  for (int i = lane; i < 41 * p.n_ref; i += 32) {
    const int r = i / 41, k = i - 41 * r;
    const short2 v = p.search_mv[(size_t(r) * n_mb + mb) * 41 + k], centre = p.predictor[size_t(r) * n_mb + mb];
    own_mv[i] = v;
    distortion[i] = p.search_cost[(size_t(r) * n_mb + mb) * 41 + k] - p.lam * (se_bits(v.x - centre.x) + se_bits(v.y - centre.y));
  }
  const int first_mb = p.slice_first_mb[my];
  if (lane < 10) {
    const int bx = lane < 6 ? lane - 1 : -1, by = lane < 6 ? -1 : lane - 6;
    s.window[by + 1][bx + 1] = neighbour(mb, bx, by, p.ref_idx, p.mv, p.mb_width, first_mb);
  }
  if (lane == 10) {
    s.n_ref = p.n_ref;
    s.lam = p.lam;
    s.distortion = distortion;
    s.search_mv = own_mv;
  }
  __syncwarp();
  // the P_Skip vector and the predictor
  const int2 skip = predict_skip_mv(mb, p.ref_idx, p.mv, p.mb_width, first_mb), middle = predict(s, 0, 0, 4, 4, 0);
  const int2 own = lane < 16 ? skip : middle;
  const bool legal = inside(own.x, own.y, x0, y0, p.mb_width * 16, p.mb_height * 16, p.pad, p.max_mv_y);
  const int block_x = 4 * (lane & 3), block_y = 4 * (lane >> 2 & 3), stride = p.mb_width * 16 + 2 * p.pad;
  const size_t plane_size = size_t(stride) * (p.mb_height * 16 + 2 * p.pad);
  Block block = {p.ref_luma + size_t(p.ref_slots[0]) * 4 * plane_size, plane_size, stride, x0 + block_x + p.pad, y0 + block_y + p.pad,
                 {0, 0, 0, 0}};
#pragma unroll
  for (int i = 0; i < 4; i++)
    block.current[i] = __ldg(reinterpret_cast<const unsigned *>(p.source + size_t(y0 + block_y + i) * p.mb_width * 16 + x0 + block_x));
  unsigned value = 0, worth = BUDGET;
  if (legal) {
    unsigned samples[4];
    value = predicted(block, own.x, own.y, p.satd, samples);
    worth = levels_worth(block.current, samples, p.qp);
  }
  value = half_sum(value);
  worth = half_sum(worth);
  const unsigned middle_value = __shfl_sync(FULL_WARP, value, 16);
  const bool middle_legal = __shfl_sync(FULL_WARP, int(legal), 16);
  __syncwarp();
  int best = 0;
  bool skipped = false;
  if (lane == 0) {
    best = choose_reference(s, 40, 0, 0, 4, 4) + p.lam * BITS_16x16;
    if (legal) {
      if (int(value) + p.lam * BITS_SKIP <= best && worth < unsigned(BUDGET)) {
        put(s, 0, 0, 4, 4, 0, skip.x, skip.y);
        skipped = true;
      } else {
        const int bits = BITS_16x16 + te_bits(0, p.n_ref) + se_bits(skip.x - middle.x) + se_bits(skip.y - middle.y);
        const int cost = int(value) + p.lam * bits;
        if (cost < best) {
          best = cost;
          put(s, 0, 0, 4, 4, 0, skip.x, skip.y);
        }
      }
    }
    if (!skipped && middle_legal && (skip.x != middle.x || skip.y != middle.y)) {
      const int cost = int(middle_value) + p.lam * (BITS_16x16 + te_bits(0, p.n_ref) + 2);
      if (cost < best) {
        best = cost;
        put(s, 0, 0, 4, 4, 0, middle.x, middle.y);
      }
    }
  }
  __syncwarp();
  const Motion about = s.window[1][1];
  unsigned nearby = ~0u;
  if (about.ref == 0 && !__shfl_sync(FULL_WARP, int(skipped), 0))
    nearby = best_nearby(p, block, about.x, about.y, middle, x0, y0);
  __syncwarp();
  if (lane == 0) {
    int kind = P_16x16, sub_types = 0;
    if (int(nearby >> 4) < best) {
      const int n = int(nearby & 15);
      best = int(nearby >> 4);
      put(s, 0, 0, 4, 4, 0, about.x + n % 3 - 1, about.y + n / 3 - 1);
    }
    keep(s);
    if (!skipped) kind = smaller_partitions(s, p.kinds, best, p.intra_cost[mb], sub_types);
    p.mb_type[mb] = uint8_t(kind);
    for (int q = 0; q < 4; q++) p.sub_mb_type[4 * mb + q] = uint8_t(sub_types >> (2 * q) & 3);
  }
  __syncwarp();
  bool changed = false;
  if (lane < 16) {  // only here, so that whoever reads something that will not stay is told
    const int q = (lane >> 3) * 2 + (lane >> 1 & 1);
    const short2 before = p.mv[16 * mb + lane], after = s.mv[lane];
    changed = before.x != after.x || before.y != after.y || p.ref_idx[4 * mb + q] != s.ref[q];
    p.mv[16 * mb + lane] = after;
  }
  const unsigned blocks = __ballot_sync(FULL_WARP, changed);
  if (lane < 4) p.ref_idx[4 * mb + lane] = (signed char)(s.ref[lane]);
  return blocks;
}

constexpr unsigned RIGHT_COLUMN = 0x8888, BOTTOM_ROW = 0xf000, BOTTOM_LEFT = 0x1000, BOTTOM_RIGHT = 0x8000;

// Macroblock rows [row0, row1), every one flagged before. flags: int32[1 + n_mb], [0] = how many are flagged or at work; all
// blocks of the grid run at once. Dynamic shared memory: WARPS x (Choice, n_ref x 41 distortions and vectors).
extern "C" __global__ void __launch_bounds__(32 * WARPS) mode_decision(const uint8_t *__restrict__ source,
    const uint8_t *__restrict__ ref_luma, const int *__restrict__ ref_slots, int pad, const int *__restrict__ search_cost,
    const short2 *__restrict__ search_mv, const short2 *__restrict__ predictor, const int *__restrict__ intra_cost,
    const int *__restrict__ slice_first_mb, int lam, int qp, int satd, int max_mv_y, int n_ref, int kinds, int mb_width,
    int mb_height, int row0, int row1, int share, int *flags, uint8_t *mb_type, uint8_t *sub_mb_type, signed char *ref_idx,
    short2 *mv) {
  DYNAMIC_SHARED(unsigned char, memory);
  const Picture p = {source, ref_luma, ref_slots, pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb, lam, qp, satd,
                     max_mv_y, n_ref, kinds, mb_width, mb_height, mb_type, sub_mb_type, ref_idx, mv};
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const size_t own_bytes = sizeof(Choice) + size_t(n_ref) * 41 * 8;
  Choice &s = *reinterpret_cast<Choice *>(memory + warp * own_bytes);
  int *distortion = reinterpret_cast<int *>(memory + warp * own_bytes + sizeof(Choice));
  short2 *own_mv = reinterpret_cast<short2 *>(distortion + 41 * n_ref);
  const int end = row1 * mb_width, first = row0 * mb_width + (int(blockIdx.x) * WARPS + warp) * share, last = min(first + share, end);
  int *flag = flags + 1;
  for (bool busy = true;;) {
    if (!busy) {
      if (__shfl_sync(FULL_WARP, lane == 0 ? load_acquire(flags) : 0, 0) == 0) return;
      __nanosleep(64);
    }
    busy = false;
    for (int from = first; from < last; from += 32) {
      unsigned flagged = __ballot_sync(FULL_WARP, from + lane < last && load_acquire(flag + from + lane) != 0);
      for (; flagged; flagged &= flagged - 1) {
        const int mb = from + __ffs(int(flagged)) - 1;
        busy = true;
        if (lane == 0) atomicExch(flag + mb, 0);
        __threadfence();
        __syncwarp();
        const unsigned blocks = decide(p, mb, s, distortion, own_mv);
        __threadfence();
        __syncwarp();
        const int mx = mb % mb_width;
        const bool below = mb + mb_width < end;
        int other = -1;  // which one lane 0..3 tells
        if (lane == 0 && blocks & RIGHT_COLUMN && mx + 1 < mb_width) other = mb + 1;
        if (lane == 1 && blocks & BOTTOM_LEFT && below && mx > 0) other = mb + mb_width - 1;
        if (lane == 2 && blocks & BOTTOM_ROW && below) other = mb + mb_width;
        if (lane == 3 && blocks & BOTTOM_RIGHT && below && mx + 1 < mb_width) other = mb + mb_width + 1;
        const int told = __popc(__ballot_sync(FULL_WARP, other >= 0));
        if (told) {
          if (lane == 0) atomicAdd(flags, told);  // before the flags, lest the count be 0 while one is up
          __threadfence();
          __syncwarp();
        }
        const bool known = other >= 0 && atomicExch(flag + other, 1) != 0;
        const int twice = __popc(__ballot_sync(FULL_WARP, known));
        if (lane == 0) atomicAdd(flags, -1 - twice);
        // the one to the right may be next
        if (told && mb + 1 < min(from + 32, last) && blocks & RIGHT_COLUMN && mx + 1 < mb_width) flagged |= 2u << (mb - from);
      }
    }
  }
}

// The guess to begin with, everyone's best 16x16 vector over the references, and all flags. A thread a macroblock.
extern "C" __global__ void mode_seed(const int *search_cost, const short2 *search_mv, int n_ref, int lam, int n_mb, int mb0, int mb1,
    int *flags, signed char *ref_idx, short2 *mv) {
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb == mb0) flags[0] = mb1 - mb0;
  if (mb >= mb1) return;
  int best = FAR, ref = 0;
  for (int r = 0; r < n_ref; r++) {
    const int cost = search_cost[(size_t(r) * n_mb + mb) * 41 + 40] + lam * te_bits(r, n_ref);
    if (cost < best) {
      best = cost;
      ref = r;
    }
  }
  const short2 v = search_mv[(size_t(ref) * n_mb + mb) * 41 + 40];
  for (int q = 0; q < 4; q++) ref_idx[4 * mb + q] = (signed char)(ref);
  for (int k = 0; k < 16; k++) mv[16 * mb + k] = v;
  flags[1 + mb] = 1;
}

// 8.4.1.1: P_16x16 of reference 0 with the P_Skip vector and nothing coded becomes P_Skip. A thread a macroblock.
extern "C" __global__ void mark_skipped(const int *slice_first_mb, const signed char *ref_idx, const short2 *mv, const uint8_t *cbp,
    int mb_width, int mb0, int mb1, uint8_t *mb_type) {
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= mb1 || mb_type[mb] != P_16x16 || cbp[mb] || ref_idx[4 * mb]) return;
  const int2 skip = predict_skip_mv(mb, ref_idx, mv, mb_width, slice_first_mb[mb / mb_width]);
  if (mv[16 * mb].x == skip.x && mv[16 * mb].y == skip.y) mb_type[mb] = P_SKIP;
}
