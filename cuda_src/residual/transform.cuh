// 8.5: transforms, quantisation and scaling of one 4x4 block in a thread's registers; raster order, y * 4 + x.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "residual/inter_residual_launch.cuh"
#include "decisions/quantise.cuh"
#include "simd.cuh"
#include "tables.cuh"


DEVICE int digit(unsigned long long packed, int i) { return int(packed >> (4 * i) & 15); }
// 8.5.9: the class of a position: 0 both coordinates even, 1 both odd, 2 otherwise; and a position of each class
DEVICE int position_class(int p) {
  const bool x = p & 1, y = p >> 2 & 1;
  return x != y ? 2 : x ? 1 : 0;
}

// The inverse of 8.5.12.2 without scaling, in place
DEVICE void forward_4x4(int *c) {
#pragma unroll
  for (int pass = 0; pass < 2; pass++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int step = pass ? 4 : 1, r = pass ? i : 4 * i;
      const int a = c[r], b = c[r + step], d = c[r + 2 * step], e = c[r + 3 * step];
      const int s = a + e, t = b + d, u = b - d, v = a - e;
      c[r] = s + t;
      c[r + step] = 2 * v + u;
      c[r + 2 * step] = s - t;
      c[r + 3 * step] = v - 2 * u;
    }
}

// 8.5.12.2, with the final rounding, in place
DEVICE void inverse_4x4(int *c) {
#pragma unroll
  for (int pass = 0; pass < 2; pass++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int step = pass ? 4 : 1, r = pass ? i : 4 * i;
      const int a = c[r], b = c[r + step], d = c[r + 2 * step], e = c[r + 3 * step];
      const int s = a + d, t = a - d, u = (b >> 1) - e, v = b + (e >> 1);
      c[r] = s + v;
      c[r + step] = t + u;
      c[r + 2 * step] = t - u;
      c[r + 3 * step] = s - v;
    }
#pragma unroll
  for (int i = 0; i < 16; i++) c[i] = (c[i] + 32) >> 6;
}

// Whether a residual sample of a block leaves the range of cpu_simd/residual/residual_range.py
DEVICE bool is_beyond(const int *residual) {
  int largest = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) largest = max(largest, abs(residual[i]));
  return largest > MOST_RESIDUAL;
}

// The rows of a coded block: prediction and scaled levels (c, raster) into four words `stride` bytes apart; c becomes the residual
DEVICE void reconstruct(int *c, const unsigned *predicted, Sample *to, int stride) {
  inverse_4x4(c);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int s[4];
#pragma unroll
    for (int x = 0; x < 4; x++) s[x] = clip1(byte_of(predicted[i], x) + c[4 * i + x]);
    *reinterpret_cast<unsigned *>(to + i * stride) = pack4(s[0], s[1], s[2], s[3]);
  }
}

// A dead zone of decisions/quantise.py as kernels have it, in 1 / 2^24 of a step, so that they need no division; what is added to a
// coefficient before it is shifted
DEVICE int fraction_of(int dead_zone) { return int((unsigned(dead_zone) << DEAD_ZONE_BITS) / unsigned(ROUNDING)); }
DEVICE int rounding_of(int dead_zone, int shift) { return dead_zone >> (DEAD_ZONE_BITS - shift); }

// Quantiser and scaling of a block with flat scaling lists
struct FlatScaling {
  static constexpr bool ANY = false;
  struct Cost {  // of distortion, by scan position
    int of;
    DEVICE int at(int) const { return of; }
  };
  DEVICE Cost cost(int of, int) const { return {of}; }
  DEVICE Cost dc_cost(int of) const { return {of}; }
  DEVICE Cost cost_8x8(int of, int) const { return {of}; }
  struct Factors {
    int of[3];  // by class
    DEVICE int at(int p) const { return of[position_class(p)]; }
  };
  DEVICE int finer() const { return 0; }
  DEVICE Factors multipliers(int qp) const {
    const int m = qp % 6;
    return {{QUANT_MF[m][0], QUANT_MF[m][5], QUANT_MF[m][1]}};
  }
  DEVICE int dc_multiplier(int qp) const { return QUANT_MF[qp % 6][0]; }
  DEVICE int dc_scale(int qp) const { return 16 * NORM_ADJUST_4x4[qp % 6][0]; }  // LevelScale4x4(qp % 6, 0, 0)
};
// The same with others, by the table of cpu_simd/quantiser/scaling.py; block: where the multipliers of the lane's block begin; list: its list
struct ListScaling {
  static constexpr bool ANY = true;
  const short *table;
  int block, list;
  struct Cost {  // by the error of samples: steps are weight / 16 times those of a flat list
    int of;
    const short *weights;  // null: `of` has them
    DEVICE int at(int i) const { return weights ? weighed(of, __ldg(weights + i)) : of; }
  };
  static DEVICE int weighed(int of, int weight) { return min(of * weight * weight >> 8, TRELLIS_MOST); }
  // first: scan position of the first level; set: 0 for intra, SCALING_SET for inter macroblocks
  DEVICE Cost cost(int of, int first) const { return {of, table + list + first}; }
  DEVICE Cost dc_cost(int of) const { return {weighed(of, __ldg(table + list)), nullptr}; }
  DEVICE Cost cost_8x8(int of, int set) const { return {of, table + SCALING_WEIGHTS + (set ? WEIGHTS_SET : 0) + WEIGHTS_8x8}; }
  struct Factors {
    const short *from;
    DEVICE int at(int p) const {
      const uint2 row = __ldg(reinterpret_cast<const uint2 *>(from + 16 * (p >> 2)));
      return short((p & 2 ? row.y : row.x) >> (16 * (p & 1)));
    }
  };
  DEVICE int finer() const { return __ldg(table + SCALING_FINER); }
  DEVICE Factors multipliers(int qp) const { return {table + block + 64 * (qp % 6)}; }
  DEVICE Factors factors(int qp) const { return {table + block + SCALING_FACTORS + 64 * (qp % 6)}; }
  DEVICE int dc_multiplier(int qp) const { return __ldg(multipliers(qp).from); }
  DEVICE int dc_scale(int qp) const { return __ldg(factors(qp).from); }
};
// 8.5.12.1: a scaled coefficient from level * LevelScale4x4
DEVICE int shifted(int product, int qp) {
  const int down = max(0, 4 - qp / 6);
  return ((product << max(0, qp / 6 - 4)) + ((1 << down) >> 1)) >> down;
}
// The block of a lane: set: 0 for intra, SCALING_SET for inter macroblocks; plane: of chroma lanes
DEVICE FlatScaling of_block(FlatScaling scaling, int, bool, int) { return scaling; }
DEVICE ListScaling of_block(const ListScaling &scaling, int set, bool luma, int plane) {
  return {scaling.table, set + (luma ? SCALING_MF : SCALING_MF_CHROMA + 8 * plane),
          SCALING_WEIGHTS + (set ? WEIGHTS_SET : 0) + (luma ? 0 : 16 + 16 * plane)};
}
// The least level that stands for a larger one: those of MAX_LEVEL are clipped, and quantise_weighed may lower them by one
template <class Scaling>
constexpr int CLIPPED = MAX_LEVEL - Scaling::ANY;

// Coefficients to levels, from position `first` on (the levels before are 0); not part of the standard
template <class Scaling>
DEVICE void quantise_4x4(const Scaling &scaling, int *c, int qp, int dead_zone, bool skip_dc) {
  const int shift = 15 + qp / 6 - scaling.finer(), rounding = rounding_of(dead_zone, shift);
  const auto factors = scaling.multipliers(qp);
#pragma unroll
  for (int p = 0; p < 16; p++) {
    const int level = min((abs(c[p]) * factors.at(p) + rounding) >> shift, MAX_LEVEL);
    c[p] = c[p] < 0 ? -level : level;
  }
  if (skip_dc) c[0] = 0;
}

// 8.5.12.1
DEVICE void scale_4x4(FlatScaling, int *c, int qp) {
  const int shift = qp / 6, m = qp % 6;
  const int factor[3] = {NORM_ADJUST_4x4[m][0] << shift, NORM_ADJUST_4x4[m][5] << shift, NORM_ADJUST_4x4[m][1] << shift};
#pragma unroll
  for (int p = 0; p < 16; p++) c[p] *= factor[position_class(p)];
}

DEVICE void scale_4x4(const ListScaling &scaling, int *c, int qp) {
  const auto factors = scaling.factors(qp);
#pragma unroll
  for (int p = 0; p < 16; p++) c[p] = shifted(c[p] * factors.at(p), qp);
}

template <class Scaling>
DEVICE int quantise_dc(const Scaling &scaling, int value, int qp, int dead_zone) {
  const int shift = 16 + qp / 6 - scaling.finer();
  const int level = int(min((unsigned(abs(value)) * unsigned(scaling.dc_multiplier(qp)) + unsigned(rounding_of(dead_zone, shift))) >> shift,
                            unsigned(MAX_LEVEL)));
  return value < 0 ? -level : level;
}

// 8.5.11.1 over the four lanes of a plane: lane k of each four has value k
DEVICE int hadamard_2x2(int value, int lane) {
  int other = __shfl_xor_sync(FULL_WARP, value, 1);
  value = lane & 1 ? other - value : value + other;
  other = __shfl_xor_sync(FULL_WARP, value, 2);
  return lane & 2 ? other - value : value + other;
}

DEVICE int count_levels(const int *c) {
  int n = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) n += c[i] != 0;
  return n;
}

DEVICE int sum_of_magnitudes(const int *c) {
  int n = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) n += abs(c[i]);
  return n;
}

// 9.2: an upper bound of the bits of one block's levels (raster); very many if a level was clipped
DEVICE int bits_at_most(const int *c) {
  const int count = count_levels(c);
  if (count == 0) return 0;
  int last = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) last = c[digit(ZIGZAG_4x4_DIGITS, i)] ? i : last;
  int bits = 16 + 9 + 3 * count + last + 1 - count, suffix_length = -1, ones = 0;
#pragma unroll
  for (int i = 15; i >= 0; i--) {
    const int level = abs(c[digit(ZIGZAG_4x4_DIGITS, i)]);
    if (level == 0) continue;
    if (level == 1 && ones < 3 && suffix_length < 0) {
      ones++;
      bits++;
      continue;
    }
    if (level >= MAX_LEVEL) return 1 << 20;
    if (suffix_length < 0) suffix_length = count > 10 && ones < 3 ? 1 : 0;
    const int code = 2 * level - 1;
    if (suffix_length == 0 && code < 30) bits += code < 14 ? code + 1 : 19;
    else if (code < 15 << suffix_length) bits += (code >> suffix_length) + 1 + suffix_length;
    else bits += 28;
    suffix_length = max(1, suffix_length);
    if (level > 3 << (suffix_length - 1) && suffix_length < 6) suffix_length++;
  }
  return bits;
}

// Sixteen levels in scan order as two vectors
DEVICE void store_levels(short *to, const int *c) {
  unsigned w[8];
#pragma unroll
  for (int i = 0; i < 8; i++)
    w[i] = (unsigned(c[digit(ZIGZAG_4x4_DIGITS, 2 * i)]) & 0xffff) | unsigned(c[digit(ZIGZAG_4x4_DIGITS, 2 * i + 1)]) << 16;
  reinterpret_cast<uint4 *>(to)[0] = make_uint4(w[0], w[1], w[2], w[3]);
  reinterpret_cast<uint4 *>(to)[1] = make_uint4(w[4], w[5], w[6], w[7]);
}
