// Bits of CABAC bins in decisions by frozen states: twin of cpu_simd/cabac_bits.py.
#pragma once
#include "residual_bits.cuh"
#include "transform.cuh"

// The bits of a bin in a context, a word: of 0 in the lower half, of 1 in the upper
DEVICE int bin_bits(unsigned word, bool bin) { return int(bin ? word >> 16 : word & 0xffff); }

// A table of bits of `count` contexts by the places AT_*; slice: 0 I, 1 P. By `step` threads, `thread` is the number of this one.
DEVICE void fill_bits(unsigned *bits, int count, int slice, int qp, int thread, int step) {
  for (int k = thread; k < count; k += step) {
    const short *line = RESIDUAL_M_N[slice][k];
    const short *of = STATE_BITS[clip3(1, 126, (line[0] * qp >> 4) + line[1])];
    bits[k] = unsigned(of[0]) | unsigned(of[1]) << 16;
  }
}
// The mean over four contexts of bin 0 less bin 1
DEVICE int empty_bits(const unsigned *bits) {
  int total = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) total += bin_bits(bits[k], 0) - bin_bits(bits[k], 1);
  return total >> 2;
}

// Where the contexts of a block category stand; most: the last ctxIdxInc of significance; large: of coeff_abs_level_minus1
struct BlockContexts {
  int significant, last, level, most, large, empty;
};
DEVICE BlockContexts contexts_4x4(const unsigned *bits, bool chroma) {
  const int coded = chroma ? AT_CODED_4 : AT_CODED_2;
  return {chroma ? AT_SIGNIFICANT_4 : AT_SIGNIFICANT_2, chroma ? AT_LAST_4 : AT_LAST_2, chroma ? AT_LEVEL_4 : AT_LEVEL_2, 15, 9,
          empty_bits(bits + coded)};
}
DEVICE BlockContexts contexts_chroma_dc(const unsigned *bits) {
  return {AT_SIGNIFICANT_3, AT_LAST_3, AT_LEVEL_3, 2, 8, empty_bits(bits + AT_CODED_3)};
}
DEVICE BlockContexts contexts_8x8(const unsigned *bits) {
  return {AT_SIGNIFICANT_5, AT_LAST_5, AT_LEVEL_5, 0, 9, empty_bits(bits + AT_CODED_5)};
}
DEVICE BlockContexts contexts_16x16(const unsigned *bits, bool ac) {
  const int coded = ac ? AT_CODED_1 : AT_CODED_0;
  return {ac ? AT_SIGNIFICANT_1 : AT_SIGNIFICANT_0, ac ? AT_LAST_1 : AT_LAST_0, ac ? AT_LEVEL_1 : AT_LEVEL_0, 15, 9,
          empty_bits(bits + coded)};
}
