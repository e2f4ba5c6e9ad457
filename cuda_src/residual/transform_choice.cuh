// Choice of the 4x4 or 8x8 transform for the luma of an inter macroblock: twin of cpu_simd/residual/transform_choice.py, which explains it.
//
// A lane k < 16 has the levels of 4x4 block k (raster), or of the part of an 8x8 block that CAVLC sends there. Bits of a level depend
// on how many there are after it, and of which size: on bit masks of the block, which are known at once.
#pragma once
#include "decisions/quantise.cuh"
#include "costs/cabac_bits.cuh"
#include "residual/transform_8x8.cuh"

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

// Worth of the levels of a block: 9 if any is above 1, else for each 3, 2, 1 or 0 by the zeros before it: none, at most two, at most
// five or more (not part of the standard)
DEVICE int decimate_score(const Masks &m) {
  const unsigned before = m.coded << 1 | 1, two = before | before << 1 | before << 2, five = two | two << 3;
  return m.larger ? 9 : __popc(m.coded & before) + __popc(m.coded & two) + __popc(m.coded & five);
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

// Bits of residual_block_cabac() of the four levels of a chroma DC block, 0 without levels
DEVICE int dc_bits(const int *levels, const unsigned *bits) {
  const int last = levels[3] ? 3 : levels[2] ? 2 : levels[1] ? 1 : 0;
  int total = 0, ones = 0, larger = 0;
#pragma unroll
  for (int i = 3; i >= 0; i--) {
    const int size = abs(levels[i]);
    if (i > last) continue;
    if (i < 3) total += position_bits(bits[AT_SIGNIFICANT_3 + i], bits[AT_LAST_3 + i], size, i == last);
    if (size) total += magnitude_bits(bits + AT_LEVEL_3, size, ones, larger);
    ones += size == 1;
    larger += size > 1;
  }
  return levels[0] | levels[1] | levels[2] | levels[3] ? total : 0;
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
DEVICE Masks_8x8 masks_of_quadrant(const Masks &m, int quarter) {
  return {{over_quadrant(spread(m.coded & 255) << quarter), over_quadrant(spread(m.larger & 255) << quarter)},
          {over_quadrant(spread(m.coded >> 8) << quarter), over_quadrant(spread(m.larger >> 8) << quarter)}};
}

// Where the words of a block category stand in a table of bits, and its last position, which has no flags
struct CodedAs {
  int significant, last, magnitude, zeros, end;
};
// chroma: AC levels of the 4:2:0 formats
DEVICE CodedAs coded_as(bool is_8x8, bool chroma) {
  if (is_8x8) return {AT_SIGNIFICANT_5, AT_LAST_5, AT_LEVEL_5, ZEROS_5, 63};
  if (chroma) return {AT_SIGNIFICANT_4, AT_LAST_4, AT_LEVEL_4, ZEROS_4, 14};
  return {AT_SIGNIFICANT_2, AT_LAST_2, AT_LEVEL_2, ZEROS_2, 15};
}

// Bits of levels of the lane's 4x4 block, or its share of those of its quadrant's 8x8 block. coded: mask of its levels; m: masks of the whole
// block; sizes: as in level_bits
DEVICE int bits_of_levels(const uint16_t *sizes, unsigned coded, const Masks_8x8 &m, bool is_8x8, bool chroma, int quarter,
                          const unsigned *bits) {
  const CodedAs as = coded_as(is_8x8, chroma);
  const int last = m.high.coded ? 63 - __clz(int(m.high.coded)) : 31 - __clz(int(m.low.coded));
  int total = last >= 0 && (!is_8x8 || quarter == 0) ? int(bits[as.zeros + min(last + 1, as.end)]) : 0;  // as if all up to the last were zeros
#pragma unroll 1
  for (unsigned rest = coded; rest; rest &= rest - 1) {
    const int i = __ffs(int(rest)) - 1, at = is_8x8 ? 4 * i + quarter : i;
    const bool upper = at > 31;
    const unsigned after = ~1u << (at & 31);  // what is coded before it
    const int larger = __popc((upper ? m.high : m.low).larger & after) + (upper ? 0 : __popc(m.high.larger));
    const int all = __popc((upper ? m.high : m.low).coded & after) + (upper ? 0 : __popc(m.high.coded));
    total += magnitude_bits(bits + as.magnitude, sizes[32 * i], all - larger, larger);
    if (at == as.end) continue;
    const int increments = is_8x8 ? increments_8x8(at) : i | i << 4;
    const unsigned flag = bits[as.significant + (increments & 15)];
    total += bin_bits(flag, true) - bin_bits(flag, false) + bin_bits(bits[as.last + (increments >> 4)], at == last);
  }
  return total;
}

// Bits of residual_block_cabac() of the lane's 4x4 block, or its share of those of its quadrant's 8x8 block; 0 without levels.
// sizes: magnitudes of the levels, uint16 in shared memory, [i * 32] that of position i
DEVICE int level_bits(const uint16_t *sizes, const Masks &masks, bool is_8x8, bool chroma, int quarter, const unsigned *bits) {
  Masks_8x8 m = {masks, {0, 0}};
  if (is_8x8) m = masks_of_quadrant(masks, quarter);
  return bits_of_levels(sizes, masks.coded, m, is_8x8, chroma, quarter, bits);
}
// The lane's share of the bits of its chroma DC block with coded_block_flag; level: of the DC of the lane's block; active: whether it is chroma
DEVICE int dc_share(int level, bool active, const unsigned *bits, int lane) {
  const int size = abs(level), i = lane & 3;
  const unsigned all_coded = __ballot_sync(FULL_WARP, active && size), all_larger = __ballot_sync(FULL_WARP, active && size > 1);
  const unsigned coded = all_coded >> (lane & ~3) & 15, larger = all_larger >> (lane & ~3) & 15, after = ~1u << i;
  const int last = 31 - __clz(int(coded)), larger_after = __popc(larger & after);
  int total = i == 0 ? mean_bits(bits + AT_CODED_3, coded != 0) : 0;
  if (i <= last && i < 3) total += position_bits(bits[AT_SIGNIFICANT_3 + i], bits[AT_LAST_3 + i], size, i == last);
  if (size) total += magnitude_bits(bits + AT_LEVEL_3, size, __popc(coded & after) - larger_after, larger_after);
  return active ? total : 0;
}

DEVICE int sum_of_quadrant(int v) {
  v += __shfl_xor_sync(FULL_WARP, v, 1);
  return v + __shfl_xor_sync(FULL_WARP, v, 4);
}

// A level and its ratio, |coefficient| / step in units of 1 / RDO_ONE, in a word
DEVICE int with_ratio(int level, int ratio) { return int(unsigned(ratio) << 16 | (unsigned(level) & 0xffff)); }
DEVICE int level_of(int word) { return short(word); }
DEVICE int ratio_of(int word) { return int(unsigned(word) >> 16); }

// Of the lane's block: squared error in ratios without and with its levels, their bits, and where they are
struct BlockCost {
  int dropped, kept, bits;
  unsigned coded;
};
// words: levels with their ratios (raster order), the DC of chroma 0; bits: of fill_bits with those of zeros; exchange: EXCHANGE_8x8
// words of the warp
DEVICE BlockCost block_cost(const int *words, bool is_8x8, const unsigned *bits, int *exchange, int lane) {
  const bool chroma = lane >= 16;
  uint16_t *sizes = reinterpret_cast<uint16_t *>(exchange) + lane;
  Masks masks = {0, 0};
  BlockCost cost = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int word = words[digit(ZIGZAG_4x4_DIGITS, i)];
    const int size = abs(level_of(word)), ratio = ratio_of(word), left = short(ratio - (size << 6));  // as on the CPU
    const int without = min(ratio, CHOICE_MOST_RATIO), with = min(abs(left), CHOICE_MOST_RATIO);
    cost.dropped += without * without;
    cost.kept += with * with;
    sizes[32 * i] = uint16_t(size);
    masks.coded |= unsigned(size > 0) << i;
    masks.larger |= unsigned(size > 1) << i;
  }
  cost.coded = masks.coded;
  const int dc = chroma && !is_8x8;
  cost.bits = level_bits(sizes + 32 * dc, {masks.coded >> dc, masks.larger >> dc}, is_8x8, chroma, (lane >> 1 & 2) | (lane & 1), bits);
  if (!is_8x8) cost.bits += mean_bits(bits + (chroma ? AT_CODED_4 : AT_CODED_2), masks.coded != 0);
  __syncwarp();
  return cost;
}

// Cost of the luma in 1 / 256 bit, and the coded_block_pattern for which it is lowest
DEVICE int luma_cost(const BlockCost &of, const unsigned *bits, int &pattern) {
  const bool coded = over_quadrant(of.coded) != 0;
  const int dropped = int((long long)(sum_of_quadrant(of.dropped)) * CHOICE_DISTORTION >> 8) + mean_bits(bits + AT_CODED_5, false);
  int kept = int((long long)(sum_of_quadrant(of.kept)) * CHOICE_DISTORTION >> 8) + mean_bits(bits + AT_CODED_5, true);
  kept += sum_of_quadrant(of.bits);
  const bool is_kept = coded && kept < dropped;
  const unsigned votes = __ballot_sync(FULL_WARP, is_kept);
  pattern = int((votes & 1) | (votes >> 1 & 2) | (votes >> 6 & 4) | (votes >> 7 & 8));  // lanes 0, 2, 8, 10
  int total = is_kept ? kept : dropped;
  total += __shfl_xor_sync(FULL_WARP, total, 2);
  total += __shfl_xor_sync(FULL_WARP, total, 8);
  return __shfl_sync(FULL_WARP, total, 0);
}
