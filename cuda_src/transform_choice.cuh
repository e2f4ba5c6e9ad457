// Choice of the 4x4 or 8x8 transform for the luma of an inter macroblock: twin of cpu_simd/transform_choice.py, which explains it.
//
// A lane k < 16 has the levels of 4x4 block k (raster), or of the part of an 8x8 block that CAVLC sends there. Bits of a level depend
// on how many there are after it, and of which size: on bit masks of the block, which are known at once.
#pragma once
#include "cabac_bits.cuh"
#include "transform_8x8.cuh"

// Bits of a bin, the mean of four contexts
DEVICE int mean_bits(const unsigned *bits, bool bin) {
  return (bin_bits(bits[0], bin) + bin_bits(bits[1], bin) + bin_bits(bits[2], bin) + bin_bits(bits[3], bin)) >> 2;
}

// 9.3.2.3: bits of a level's magnitude and sign, after `ones` levels of one and `larger` ones; bits: of coeff_abs_level_minus1
DEVICE int magnitude_bits(const unsigned *bits, int size, int ones, int larger) {
  const unsigned first = bits[larger ? 0 : min(4, 1 + ones)];
  if (size == 1) return bin_bits(first, false) + ONE_BIT;
  const unsigned more = bits[5 + min(4, larger)];
  const int total = bin_bits(first, true) + ONE_BIT + min(size - 2, 13) * bin_bits(more, true);
  return size < 15 ? total + bin_bits(more, false) : total + ONE_BIT * (2 * (32 - __clz(size - 14)) - 1);
}
// 7.3.5.3.3: bits of significant_coeff_flag and last_significant_coeff_flag
DEVICE int position_bits(unsigned significant, unsigned last, bool coded, bool is_last) {
  return bin_bits(significant, coded) + (coded ? bin_bits(last, is_last) : 0);
}

// Levels that are not 0, and that are larger than one: bit i: scan position i
struct Masks {
  unsigned coded, larger;
};
DEVICE Masks masks_of(const int *c) {
  Masks m = {0, 0};
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int size = abs(c[digit(ZIGZAG_4x4_DIGITS, i)]);
    m.coded |= unsigned(size > 0) << i;
    m.larger |= unsigned(size > 1) << i;
  }
  return m;
}

// Bits of residual_block_cabac() of the lane's 4x4 block from scan position `first` on, 0 without levels; significant, last_flag: by
// scan position
DEVICE int block_bits(const int *c, const Masks &m, int first, const unsigned *significant, const unsigned *last_flag,
                      const unsigned *magnitude) {
  const int last = 31 - __clz(int(m.coded));
  int total = 0;
#pragma unroll
  for (int i = 15; i >= 0; i--) {
    const int size = abs(c[digit(ZIGZAG_4x4_DIGITS, i)]), ones = __popc((m.coded & ~m.larger) >> i >> 1), larger = __popc(m.larger >> i >> 1);
    if (i > last || i < first) continue;
    if (i < 15) total += position_bits(significant[i], last_flag[i], size, i == last);
    if (size) total += magnitude_bits(magnitude, size, ones, larger);
  }
  return total;
}

DEVICE int bits_4x4(const int *c, const Masks &m, const unsigned *bits) {
  return block_bits(c, m, 0, bits + AT_SIGNIFICANT_2, bits + AT_LAST_2, bits + AT_LEVEL_2);
}

// Bit i of 8 -> bit 4 i
DEVICE unsigned spread(unsigned x) {
  x = (x | x << 12) & 0x000f000fu;
  x = (x | x << 6) & 0x03030303u;
  return (x | x << 3) & 0x11111111u;
}
// The same masks of a block of 64 positions: lower and upper half
struct Masks_8x8 {
  Masks low, high;
};
DEVICE unsigned over_quadrant(unsigned mask) {
  mask |= __shfl_xor_sync(FULL_WARP, mask, 1);
  return mask | __shfl_xor_sync(FULL_WARP, mask, 4);
}
DEVICE Masks_8x8 masks_of_quadrant(const Masks &m, int part) {
  return {{over_quadrant(spread(m.coded & 255) << part), over_quadrant(spread(m.larger & 255) << part)},
          {over_quadrant(spread(m.coded >> 8) << part), over_quadrant(spread(m.larger >> 8) << part)}};
}

// The lane's share of the bits of its quadrant's 8x8 block
DEVICE int bits_8x8(const int *c, const Masks_8x8 &m, int part, const unsigned *bits) {
  const int last = m.high.coded ? 63 - __clz(int(m.high.coded)) : 31 - __clz(int(m.low.coded));
  int total = 0;
#pragma unroll
  for (int i = 15; i >= 0; i--) {
    const int at = 4 * i + part, size = abs(c[digit(ZIGZAG_4x4_DIGITS, i)]), beyond = at & 31;
    if (at > last) continue;
    if (at < 63) {
      const unsigned increments = __ldg(INCREMENTS_8x8 + 4 * part + (i >> 2)) >> (8 * (i & 3)) & 255;
      total += position_bits(bits[AT_SIGNIFICANT_5 + (increments & 15)], bits[AT_LAST_5 + (increments >> 4)], size, at == last);
    }
    if (size) {
      const unsigned coded = (i < 8 ? m.low.coded : m.high.coded) >> beyond >> 1, large = (i < 8 ? m.low.larger : m.high.larger) >> beyond >> 1;
      const int larger = __popc(large) + (i < 8 ? __popc(m.high.larger) : 0), all = __popc(coded) + (i < 8 ? __popc(m.high.coded) : 0);
      total += magnitude_bits(bits + AT_LEVEL_5, size, all - larger, larger);
    }
  }
  return total;
}

DEVICE int sum_of_quadrant(int v) {
  v += __shfl_xor_sync(FULL_WARP, v, 1);
  return v + __shfl_xor_sync(FULL_WARP, v, 4);
}

// Cost of the luma in 1 / 256 bit, and the coded_block_pattern for which it is lowest. ratios: as weigh takes them
DEVICE int luma_cost(const int *c, const uint16_t *ratios, bool is_8x8, const unsigned *bits, int lane, int &pattern) {
  int dropped = 0, kept = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int ratio = ratios[32 * i], left = short(ratio - (abs(c[digit(ZIGZAG_4x4_DIGITS, i)]) << 6));  // 16 bits, as on the CPU
    const int without = min(ratio, CHOICE_MOST_RATIO), with = min(abs(left), CHOICE_MOST_RATIO);
    dropped += without * without;
    kept += with * with;
  }
  const int part = (lane >> 1 & 2) | (lane & 1);
  const Masks own = masks_of(c);
  int cost_of_levels;
  if (is_8x8) {
    cost_of_levels = bits_8x8(c, masks_of_quadrant(own, part), part, bits);
  } else {
    cost_of_levels = bits_4x4(c, own, bits);
    cost_of_levels += mean_bits(bits + AT_CODED_2, own.coded != 0);
  }
  const bool coded = over_quadrant(own.coded) != 0;
  dropped = int((long long)(sum_of_quadrant(dropped)) * CHOICE_DISTORTION >> 8) + mean_bits(bits + AT_CODED_5, false);
  kept = int((long long)(sum_of_quadrant(kept)) * CHOICE_DISTORTION >> 8) + mean_bits(bits + AT_CODED_5, true);
  kept += sum_of_quadrant(cost_of_levels);
  const bool worth = coded && kept < dropped;
  const unsigned votes = __ballot_sync(FULL_WARP, worth);
  pattern = int((votes & 1) | (votes >> 1 & 2) | (votes >> 6 & 4) | (votes >> 7 & 8));  // lanes 0, 2, 8, 10
  int total = worth ? kept : dropped;
  total += __shfl_xor_sync(FULL_WARP, total, 2);
  total += __shfl_xor_sync(FULL_WARP, total, 8);
  return __shfl_sync(FULL_WARP, total, 0);
}
