// CABAC: the bins of a block of levels in a lane (7.3.5.3.3, 9.3.3.1.1.9, 9.3.3.1.3), as cpu_simd/entropy/cabac_residual.py has them.
#pragma once
#include "entropy/cabac_macroblock.cuh"

// A lane's block of residual()
struct Block {
  const short *levels;
  unsigned long long mask;  // levels that are not 0
  int most, category, flag;  // maxNumCoeff; ctxBlockCat; ctxIdx of coded_block_flag, -1 without
  bool coded;                // whether it has any bins
};

DEVICE int highest(unsigned long long mask) {
  const unsigned upper = unsigned(mask >> 32);
  return upper ? 63 - __clz(int(upper)) : 31 - __clz(int(mask));
}
DEVICE int level_at(const Block &b, int i) { return __ldg(b.levels + (b.category == CAT_LUMA_8x8 ? (i & 3) * 16 + (i >> 2) : i)); }

// Every fourth of 64 bits
DEVICE unsigned long long spread(unsigned mask) {
  unsigned long long v = mask;
  v = (v | v << 24) & 0x000000FF000000FFull;
  v = (v | v << 12) & 0x000F000F000F000Full;
  v = (v | v << 6) & 0x0303030303030303ull;
  return (v | v << 3) & 0x1111111111111111ull;
}

// 9.3.3.1.1.9: coded_block_flag of a luma block of a neighbour
DEVICE int luma_flag(const State &s, int mb, int raster) {
  if (s.transform_8x8[mb]) return s.cbp[mb] >> ((raster >> 3) * 2 + (raster >> 1 & 1)) & 1;
  return s.total_coeff[24 * size_t(mb) + raster] != 0;
}
DEVICE int luma_flags_around(const State &s, const CurrentMb &o, int raster) {
  const uint8_t *counts = s.total_coeff + 24 * size_t(o.mb);
  const int unavailable = o.mb_type <= LAST_INTRA;
  const int a = raster & 3 ? counts[raster - 1] != 0 : o.left ? luma_flag(s, o.mb - 1, raster + 3) : unavailable;
  const int b = raster >> 2 ? counts[raster - 4] != 0 : o.above ? luma_flag(s, o.mb - s.mb_width, raster + 12) : unavailable;
  return a + 2 * b;
}
DEVICE int chroma_flags_around(const State &s, const CurrentMb &o, int block) {
  const uint8_t *counts = s.total_coeff + 24 * size_t(o.mb) + block;
  const int unavailable = o.mb_type <= LAST_INTRA;
  const int a = block & 1 ? counts[-1] != 0 : o.left ? counts[1 - 24] != 0 : unavailable;
  const int b = block & 2 ? counts[-2] != 0 : o.above ? counts[2 - 24 * s.mb_width] != 0 : unavailable;
  return a + 2 * b;
}
DEVICE int dc_flag(const State &s, const CurrentMb &o, int mb, int block, bool available) {
  if (!available) return o.mb_type <= LAST_INTRA;
  const int mb_type = s.mb_type[mb];
  if (mb_type == I_PCM) return 1;
  if (block == LUMA_DC ? mb_type != I_16x16 : mb_type == SKIP || s.cbp[mb] >> 4 == 0) return 0;
  const unsigned mask = nonzero_levels(s.levels + (size_t(mb) * N_LEVEL_BLOCKS + block) * 16);
  return (mask & (block == LUMA_DC ? 0xffffu : 15u)) != 0;
}

// The block of a lane: 0 luma DC, then luma, chroma DC, chroma AC; of an 8x8 block in the first of its lanes
DEVICE Block lane_block(const State &s, const CurrentMb &o) {
  const int lane = threadIdx.x & 31;
  const int block = lane == 0 ? LUMA_DC : lane <= 16 ? lane - 1 : lane == 17 ? CB_DC : lane == 18 ? CR_DC : lane - 3;
  const bool whole = o.mb_type == I_16x16, luma = lane >= 1 && lane <= 16, ac = lane > 18;
  const int first = (luma && whole) || ac;
  Block b = {s.levels + (size_t(o.mb) * N_LEVEL_BLOCKS + block) * 16 + first, 0, 16 - first, CAT_LUMA_DC, -1, false};
  if (lane > 26) return b;
  b.coded = lane == 0 ? whole : luma ? o.pattern >> (block >> 2) & 1 : ac ? o.pattern >> 5 : o.pattern >> 4;
  if (!b.coded) return b;
  if (luma && s.transform_8x8[o.mb]) {
    b.coded = block % 4 == 0;
    b.most = 64;
    b.category = CAT_LUMA_8x8;
    for (int k = 0; b.coded && k < 4; k++) b.mask |= spread(nonzero_levels(b.levels + 16 * k)) << k;
    return b;
  }
  if (lane == 17 || lane == 18) b.most = 4;
  b.mask = nonzero_levels(b.levels - first) >> first & ((1u << b.most) - 1);
  int around;
  if (luma) around = luma_flags_around(s, o, int(BLOCK_TO_RASTER_DIGITS >> (4 * block) & 15));
  else if (ac) around = chroma_flags_around(s, o, block);
  else around = dc_flag(s, o, o.mb - 1, block, o.left) + 2 * dc_flag(s, o, o.mb - s.mb_width, block, o.above);
  b.category = luma ? (whole ? CAT_LUMA_AC : CAT_LUMA_4x4) : ac ? CAT_CHROMA_AC : lane == 0 ? CAT_LUMA_DC : CAT_CHROMA_DC;
  b.flag = CODED_BLOCK_BASE[b.category] + around;
  return b;
}

// The number of bins of a block
DEVICE int bins_of_block(const Block &b) {
  if (!b.coded) return 0;
  const int flag = b.flag >= 0;
  if (!b.mask) return flag;
  const unsigned long long early = b.mask & ((1ull << (b.most - 1)) - 1);  // the last position has no flags
  int count = flag + min(highest(b.mask) + 1, b.most - 1) + __popc(unsigned(early)) + __popc(unsigned(early >> 32));
  for (unsigned long long rest = b.mask; rest;) {
    const int i = highest(rest), size = abs(level_at(b, i));
    rest ^= 1ull << i;
    if (size == 1) count += 2;
    else if (size <= LEVEL_PREFIX) count += size + 1;
    else count += LEVEL_PREFIX + 1 + 2 * (31 - __clz(size - LEVEL_PREFIX)) + 1;
  }
  return count;
}

// 9.3.2.3: coeff_abs_level_minus1 and coeff_sign_flag; contexts: of the first bin, of the other bins of the prefix
template <class Sink>
DEVICE void put_level(Sink &sink, int level, int first, int others) {
  const int size = abs(level);
  sink.put(first, size > 1);
  if (size > 1) {
    for (int k = 0; k < min(size - 2, LEVEL_PREFIX - 1); k++) sink.put(others, 1);
    if (size <= LEVEL_PREFIX) sink.put(others, 0);
    else put_exp_golomb(sink, size - 1 - LEVEL_PREFIX, 0);
  }
  sink.put(BYPASS, level < 0);
}

template <class Sink>
DEVICE void put_block(Sink &sink, const Block &b) {
  if (!b.coded) return;
  if (b.flag >= 0) sink.put(b.flag, b.mask != 0);
  if (!b.mask) return;
  const bool large = b.category == CAT_LUMA_8x8;
  const int significant = SIGNIFICANT_BASE[b.category], last_one = LAST_BASE[b.category], base = ABS_LEVEL_BASE[b.category];
  const int last = highest(b.mask), end = min(last + 1, b.most - 1);
  for (int i = 0; i < end; i++) {
    const int flag = int(b.mask >> i & 1);
    sink.put(significant + (large ? SIGNIFICANT_INC_8x8[i] : i), flag);
    if (flag) sink.put(last_one + (large ? LAST_INC_8x8[i] : i), i == last);
  }
  int ones = 0, larger = 0;
  for (unsigned long long rest = b.mask; rest;) {
    const int i = highest(rest), level = level_at(b, i);
    rest ^= 1ull << i;
    put_level(sink, level, base + (larger ? 0 : min(4, 1 + ones)), base + 5 + min(larger, b.category == CAT_CHROMA_DC ? 3 : 4));
    if (abs(level) == 1) ones++;
    else larger++;
  }
}
