// Trellis quantisation for CABAC: twin of cpu_simd/quantiser/trellis.py, which explains it.
//
// A 4x4 or DC block is the work of one lane, whose nodes are registers. The four 8x8 blocks of a macroblock are the work of a
// warp: a lane a node, eight lanes a block. Levels are known by their ratios, |coefficient| / step in units of 1 / RDO_ONE.
#pragma once
#include "decisions/common.cuh"
#include "decisions/quantise.cuh"
#include "costs/cabac_bits.cuh"


// The levels at ratios[stride * i] of scan position i: rounded to the nearest
DEVICE int nearest_level(int ratio) { return (ratio + RDO_ONE / 2) >> 6; }

template <class Path>
struct Node {
  int cost;
  Path path;  // bit i: the level at scan position i is lowered
  DEVICE Node plus(int bits) const { return {cost + bits, path}; }
  DEVICE Node lowered(int bits, Path lower) const { return {cost + bits, path | lower}; }
};
// The first on a tie
template <class Path>
DEVICE Node<Path> cheaper(Node<Path> a, Node<Path> b) { return b.cost < a.cost ? b : a; }

// 9.3.2.3: bits of the bins of a magnitude >= 2 from the second on; word: of their context
DEVICE int rest_bits(unsigned word, int size) {
  if (size < 15) return (size - 2) * bin_bits(word, 1) + bin_bits(word, 0);
  return 13 * bin_bits(word, 1) + ONE_BIT * (2 * (32 - __clz(size - 14)) - 1);
}
// The same for a magnitude >= 3, or one less with `extra`; `lower` or 0 to `path`
DEVICE int larger_bits(unsigned word, int size, int extra, unsigned lower, unsigned &path) {
  const int keep = rest_bits(word, size), less = rest_bits(word, size - 1) + extra;
  path = less < keep ? lower : 0;
  return min(keep, less);
}// The cost of distortion in chroma, whose squared step is another one
DEVICE int chroma_factor(int factor, int qp, int qp_c) { return factor * RD_CHROMA_WEIGHT[max(0, qp - qp_c + RD_CHROMA_LEAST)] >> 8; }
// Whether a level >= 3 may be lowered, by its distortion then (1 / 32 squared step)
DEVICE bool may_lower(int extra, int ratio) { return extra < RDO_ONE / 2 && ratio < LARGEST_RATIO; }

// The scan positions of one block of this lane to be lowered. ratios: uint16, `stride` apart, `count` <= 16; bits: of fill_bits;
// at: contexts of the block's category; cost_of_error: of TRELLIS_INTER or TRELLIS_INTRA, see transform.cuh; active: whether the
// lane has a block.
template <class Cost>
DEVICE unsigned choose_levels(const uint16_t *ratios, int stride, int count, const unsigned *bits, const BlockContexts &at,
                              const Cost &cost_of_error, bool active) {
  using One = Node<unsigned>;
  One n[8] = {{0, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}, {UNREACHABLE, 0}};
  const unsigned *level = bits + at.level, *zeros = bits + at.zeros;
  unsigned coded = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) coded |= unsigned(active && i < count && ratios[stride * i] >= RDO_ONE / 2) << i;
  const bool any = coded;
  bool has_large = false;
  int after = 32 - __clz(int(coded));  // the position after the last level, then that of the level before
#pragma unroll 1
  while (coded) {
    const int i = 31 - __clz(int(coded)), ratio = ratios[stride * i], size = nearest_level(ratio);
    coded ^= 1u << i;
    if (after > i + 1) n[0].cost -= int(zeros[after] - zeros[i + 1]);
    after = i;
    int none = 0, last = 0, other = 0;
    if (i < count - 1) {
      const unsigned flag = bits[at.significant + min(i, at.most)], end = bits[at.last + min(i, at.most)];
      none = -bin_bits(flag, 0);
      other = bin_bits(flag, 1) + none;
      last = other + bin_bits(end, 1);
      other += bin_bits(end, 0);
    }
    const unsigned lower = 1u << i;
    int extra = ratio - RDO_ONE * size + RDO_ONE / 2;
    last += ONE_BIT;
    other += ONE_BIT;
    if (size == 1) {
      extra *= cost_of_error.at(i);
      if (has_large) {
        const int one = other + bin_bits(level[0], 0);
#pragma unroll
        for (int k = 4; k < 8; k++) n[k] = cheaper(n[k].plus(one), n[k].lowered(extra, lower));
      }
      n[3] = cheaper(cheaper(n[3].plus(other + bin_bits(level[4], 0)), n[3].lowered(extra, lower)), n[2].plus(other + bin_bits(level[3], 0)));
      n[2] = cheaper(n[1].plus(other + bin_bits(level[2], 0)), n[2].lowered(extra, lower));
      n[1] = cheaper(n[0].plus(last + bin_bits(level[1], 0)), n[1].lowered(extra, lower));
      n[0] = n[0].lowered(none + extra, lower);
      continue;
    }
    const One first[4] = {n[0].plus(last), n[1].plus(other), n[2].plus(other), n[3].plus(other)};
    const int big = other + bin_bits(level[0], 1);
    if (size == 2) {
      extra *= cost_of_error.at(i);
      const int one = other + extra + bin_bits(level[0], 0), rest = bin_bits(level[5], 0);
      if (has_large) {
        n[7] = cheaper(cheaper(n[7].plus(big + bin_bits(level[at.large], 0)), n[7].lowered(one, lower)), n[6].plus(big + bin_bits(level[8], 0)));
        n[6] = cheaper(n[5].plus(big + bin_bits(level[7], 0)), n[6].lowered(one, lower));
        n[5] = cheaper(n[4].plus(big + bin_bits(level[6], 0)), n[5].lowered(one, lower));
      }
      n[4] = n[4].lowered(one, lower);
#pragma unroll
      for (int k = 3; k >= 0; k--) n[4] = cheaper(n[4], first[k].plus(bin_bits(level[1 + k], 1) + rest));
      n[3] = cheaper(first[3].lowered(bin_bits(level[4], 0) + extra, lower), first[2].lowered(bin_bits(level[3], 0) + extra, lower));
      n[2] = first[1].lowered(bin_bits(level[2], 0) + extra, lower);
      n[1] = first[0].lowered(bin_bits(level[1], 0) + extra, lower);
    } else {
      extra = may_lower(extra, ratio) ? extra * cost_of_error.at(i) : UNREACHABLE;
      unsigned less;
      int rest;
      if (has_large) {
        rest = larger_bits(level[at.large], size, extra, lower, less);
        n[7] = n[7].lowered(big + rest, less);
        rest = larger_bits(level[8], size, extra, lower, less);
        n[7] = cheaper(n[7], n[6].lowered(big + rest, less));
        rest = larger_bits(level[7], size, extra, lower, less);
        n[6] = n[5].lowered(big + rest, less);
        rest = larger_bits(level[6], size, extra, lower, less);
        n[5] = n[4].lowered(big + rest, less);
      }
      rest = larger_bits(level[5], size, extra, lower, less);
      n[4] = first[3].plus(bin_bits(level[4], 1));
#pragma unroll
      for (int k = 2; k >= 0; k--) n[4] = cheaper(n[4], first[k].plus(bin_bits(level[1 + k], 1)));
      n[4] = n[4].lowered(rest, less);
      n[1].cost = n[2].cost = n[3].cost = UNREACHABLE;
    }
    n[0].cost = UNREACHABLE;
    has_large = true;
  }
  One best = n[0].plus(at.empty - int(zeros[after]));
#pragma unroll
  for (int k = 1; k < 8; k++) best = cheaper(best, n[k]);
  return any ? best.path : 0;
}

using Long = unsigned long long;
DEVICE Long path_of_lane(Long path, int lane) {
  return Long(__shfl_sync(FULL_WARP, unsigned(path >> 32), lane)) << 32 | __shfl_sync(FULL_WARP, unsigned(path), lane);
}
DEVICE Node<Long> from_lane(Node<Long> v, int lane) { return {__shfl_sync(FULL_WARP, v.cost, lane), path_of_lane(v.path, lane)}; }

// The scan positions of four 8x8 blocks to be lowered: those of block lane >> 3. ratios: uint16 of this warp; SPREAD: that of
// position i of block q at [32 * (i >> 2) + raster number of 4x4 block 4 * q + (i & 3)], else of one block at [i].
template <bool SPREAD, class Cost>
DEVICE Long choose_levels_8x8(const uint16_t *ratios, const unsigned *bits, const BlockContexts &at, const Cost &cost_of_error, int lane) {
  const int k = lane & 7, q = lane >> 3, before = k ? lane - 1 : lane, group = lane & ~7;
  const uint16_t *lane_ratios = SPREAD ? ratios + (q & 1) * 2 + (q >> 1) * 8 : ratios;
  const unsigned *level = bits + at.level;
  const unsigned first = level[k < 4 ? 1 + k : 0], more = level[k < 4 ? 5 : 2 + k], *zeros = bits + at.zeros;
  Node<Long> n = {k ? UNREACHABLE : 0, 0};
  Long coded = 0;  // positions where the lane's block has a level
#pragma unroll
  for (int i = 0; i < 64; i += 8) {
    const int j = i + k;
    const unsigned votes = __ballot_sync(FULL_WARP, lane_ratios[SPREAD ? 32 * (j >> 2) + (j & 1) + (j & 2) * 2 : j] >= RDO_ONE / 2);
    coded |= Long(votes >> group & 255) << i;
  }
  const bool any = coded;
  int after = 64;
#pragma unroll 1
  for (int left = __reduce_max_sync(FULL_WARP, __popcll(coded)); left; left--) {
    const bool live = coded;
    const unsigned high_half = unsigned(coded >> 32);
    const int i = high_half ? 63 - __clz(int(high_half)) : max(31 - __clz(int(coded)), 0);
    if (live && k == 0 && after < 64) n.cost -= int(zeros[after] - zeros[i + 1]);
    if (live) after = i;
    coded &= ~(1ull << i);
    const int ratio = lane_ratios[SPREAD ? 32 * (i >> 2) + (i & 1) + (i & 2) * 2 : i], size = nearest_level(ratio);
    int none = 0, here = 0;
    if (i < 63) {
      const unsigned increments = increments_8x8(i);
      const unsigned flag = bits[at.significant + (increments & 15)], end = bits[at.last + (increments >> 4)];
      none = -bin_bits(flag, 0);
      here = bin_bits(flag, 1) + none + bin_bits(end, k == 0);
    }
    const Long lower = 1ull << i;
    const int distance = ratio - RDO_ONE * size + RDO_ONE / 2, base = n.cost + here + ONE_BIT;
    const int extra = size <= 2 || may_lower(distance, ratio) ? distance * cost_of_error.at(i) : UNREACHABLE;
    // after a level of one, after a larger one
    Node<Long> one = {UNREACHABLE, n.path}, big = {UNREACHABLE, n.path};
    if (size == 1) one.cost = base + bin_bits(first, 0);
    else if (size == 2) one = {base + bin_bits(first, 0) + extra, n.path | lower};
    if (size == 2) {
      big.cost = base + bin_bits(first, 1) + bin_bits(more, 0);
    } else if (size > 2) {
      const int keep = rest_bits(more, size), less = rest_bits(more, size - 1) + extra;
      big = {base + bin_bits(first, 1) + min(keep, less), less < keep ? n.path | lower : n.path};
    }
    const Node<Long> one_before = from_lane(one, before), big_before = from_lane(big, before);
    Node<Long> pair = from_lane(big, lane ^ 1);  // of nodes 0 to 3 the cheapest, the last on a tie
    pair = lane & 1 ? cheaper(big, pair) : cheaper(pair, big);
    const Node<Long> high = from_lane(pair, group + 2), low = from_lane(pair, group);
    if (!live) {
    } else if (size == 1) {
      const Node<Long> zero = n.lowered(extra + (k ? 0 : none), lower);
      n = k == 0 ? zero : cheaper(k >= 3 ? one : one_before, zero);
      if (k == 3) n = cheaper(n, one_before);
    } else {
      n = k == 0 ? Node<Long>{UNREACHABLE, 0} : k == 7 ? cheaper(cheaper(big, one), big_before) : k > 4 ? cheaper(big_before, one) : k > 2 ? one : one_before;
      if (k == 3) n = cheaper(n, one_before);
      if (k == 4) n = cheaper(n, cheaper(high, low));
    }
  }
  if (k == 0) n.cost += at.empty - int(any ? zeros[after] : 0);
#pragma unroll
  for (int step = 1; step < 8; step *= 2) {
    const Node<Long> with = from_lane(n, lane ^ step);
    n = lane & step ? cheaper(with, n) : cheaper(n, with);
  }
  return any ? n.path : 0;
}

// |coefficient| / step of a 4x4 block's coefficients (raster, registers), in scan order 32 apart
template <class Scaling>
DEVICE void store_ratios(const Scaling &scaling, const int *c, int qp, uint16_t *ratios) {
  const int shift = 15 + qp / 6 - scaling.finer();
  const auto factors = scaling.multipliers(qp);
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i);
    ratios[32 * i] = uint16_t(min(abs(c[p]) * factors.at(p) >> (shift - 6), LARGEST_RATIO));
  }
}
// The same for a DC coefficient after the second transform
template <class Scaling>
DEVICE int dc_ratio(const Scaling &scaling, int value, int qp) {
  return int(min(unsigned(abs(value)) * unsigned(scaling.dc_multiplier(qp)) >> (10 + qp / 6 - scaling.finer()), unsigned(LARGEST_RATIO)));
}
// Coefficients to levels rounded to the nearest, those of `path` (scan positions) lowered
template <class Scaling>
DEVICE void quantise_lowered(const Scaling &scaling, int *c, int qp, unsigned path) {
  quantise_4x4(scaling, c, qp, fraction_of(DEAD_ZONE_NEAREST), false);
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i);
    if (path >> i & 1) c[p] -= c[p] > 0 ? 1 : -1;
  }
}

// What a warp of intra.cu has in shared memory to choose levels
struct Weighing {
  int qp;  // of the bits
  unsigned bits[N_RESIDUAL_BITS];
  uint16_t ratios[16 * 32];
};
// The bits of a slice at a macroblock's QP; slice: 0 I, 1 P
DEVICE void set_qp(Weighing &w, int qp, int slice, int lane) {
  if (w.qp == qp) return;
  __syncwarp();
  fill_bits<true>(w.bits, N_RESIDUAL_CONTEXTS, slice, qp, lane);
  if (lane == 0) w.qp = qp;
  __syncwarp();
}
