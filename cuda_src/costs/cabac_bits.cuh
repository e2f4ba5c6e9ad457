// Bits of CABAC bins in decisions by frozen states: twin of cpu_simd/costs/cabac_bits.py.
#pragma once
#include "cabac_bit_tables.cuh"
#include "residual/transform.cuh"

// The bits of a bin in a context, a word: of 0 in the lower half, of 1 in the upper
DEVICE int bin_bits(unsigned word, bool bin) { return int(bin ? word >> 16 : word & 0xffff); }

// Words of a table of bits before those of contexts: bits of zeros in significant_coeff_flag at all positions before one, by
// ctxBlockCat
constexpr int ZEROS_2 = 0, ZEROS_4 = 16, ZEROS_0 = 32, ZEROS_1 = 48, ZEROS_3 = 64, ZEROS_5 = 68;

// The sum over the lanes below of a group of `width`
DEVICE int sum_below(int v, int width, int lane) {
  int total = v;
#pragma unroll
  for (int step = 1; step < width; step *= 2) {
    const int other = __shfl_up_sync(FULL_WARP, total, step, width);
    total += (lane & (width - 1)) >= step ? other : 0;
  }
  return total - v;
}
DEVICE int increments_8x8(int i) { return __ldg(INCREMENTS_8x8 + 4 * (i & 3) + (i >> 4)) >> (8 * (i >> 2 & 3)) & 255; }

// A table of bits of the first `count` contexts, by one warp; slice: 0 I, 1 P, 2 B. For the trellis with the bits of zeros.
template <bool ZEROS>
DEVICE void fill_bits(unsigned *bits, int count, int slice, int qp, int lane) {
  for (int k = lane; k < count; k += 32) {
    const short *line = RESIDUAL_M_N[slice][k];
    const short *of = STATE_BITS[clip3(1, 126, (line[0] * qp >> 4) + line[1])];
    bits[FIRST_CONTEXT + k] = unsigned(of[0]) | unsigned(of[1]) << 16;
  }
  __syncwarp();
  if (!ZEROS) return;
  const int i = lane & 15, high = lane >> 4;
  bits[ZEROS_2 + lane] = sum_below(i < 15 - high ? int(bits[(high ? AT_SIGNIFICANT_4 : AT_SIGNIFICANT_2) + i] & 0xffff) : 0, 16, lane);
  const int dc = sum_below(lane < 3 ? int(bits[AT_SIGNIFICANT_3 + lane] & 0xffff) : 0, 32, lane);
  if (lane < 4) bits[ZEROS_3 + lane] = dc;
  int before = 0;
#pragma unroll
  for (int half = 0; half < 64; half += 32) {
    const int v = int(bits[AT_SIGNIFICANT_5 + (increments_8x8(half + lane) & 15)] & 0xffff), sum = before + sum_below(v, 32, lane);
    bits[ZEROS_5 + half + lane] = sum;
    before = __shfl_sync(FULL_WARP, sum + v, 31);
  }
  if (count == N_RESIDUAL_CONTEXTS)
    bits[ZEROS_0 + lane] = sum_below(i < 15 - high ? int(bits[(high ? AT_SIGNIFICANT_1 : AT_SIGNIFICANT_0) + i] & 0xffff) : 0, 16, lane);
  __syncwarp();
}
// The mean over four contexts of bin 0 less bin 1
DEVICE int empty_bits(const unsigned *bits) {
  int total = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) total += bin_bits(bits[k], 0) - bin_bits(bits[k], 1);
  return total >> 2;
}

// Where the contexts of a block category and its ZEROS stand; most: the last ctxIdxInc of significance; large: of coeff_abs_level_minus1
struct BlockContexts {
  int significant, last, level, most, large, zeros, empty;
};
DEVICE BlockContexts contexts_4x4(const unsigned *bits, bool chroma) {
  const int coded = chroma ? AT_CODED_4 : AT_CODED_2;
  return {chroma ? AT_SIGNIFICANT_4 : AT_SIGNIFICANT_2, chroma ? AT_LAST_4 : AT_LAST_2, chroma ? AT_LEVEL_4 : AT_LEVEL_2, 15, 9, chroma ? ZEROS_4 : ZEROS_2,
          empty_bits(bits + coded)};
}
DEVICE BlockContexts contexts_chroma_dc(const unsigned *bits) {
  return {AT_SIGNIFICANT_3, AT_LAST_3, AT_LEVEL_3, 2, 8, ZEROS_3, empty_bits(bits + AT_CODED_3)};
}
DEVICE BlockContexts contexts_8x8(const unsigned *bits) {
  return {AT_SIGNIFICANT_5, AT_LAST_5, AT_LEVEL_5, 0, 9, ZEROS_5, empty_bits(bits + AT_CODED_5)};
}
DEVICE BlockContexts contexts_16x16(const unsigned *bits, bool ac) {
  const int coded = ac ? AT_CODED_1 : AT_CODED_0;
  return {ac ? AT_SIGNIFICANT_1 : AT_SIGNIFICANT_0, ac ? AT_LAST_1 : AT_LAST_0, ac ? AT_LEVEL_1 : AT_LEVEL_0, 15, 9, ac ? ZEROS_1 : ZEROS_0,
          empty_bits(bits + coded)};
}
