// True cost of the residual of an inter macroblock by a warp: twin of cpu_simd/decide/rd_cost.py. One lane a 4x4 block: 0..15 luma in raster
// order, 16..19 Cb, 20..23 Cr.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "decisions/quantise.cuh"
#include "quantiser/quantise_8x8.cuh"

// Least blocks of a multiprocessor for kernels that move vectors by true cost: with more the assembler spills registers
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define RESIDENT_BLOCKS 2
#else
#define RESIDENT_BLOCKS 3
#endif

// Shared memory of a warp; bits: of fill_bits
struct alignas(16) Residue {
  int exchange[EXCHANGE_8x8];
  unsigned bits[N_INTER_BITS];
};

// The 8x8 quadrant of the lane's block
DEVICE int quadrant_of_lane(int lane) { return lane < 16 ? (lane >> 3) * 2 + (lane >> 1 & 1) : lane & 3; }

// Neighbour n of a vector at a quarter sample: above, left, right, below; below 0: the vector itself
DEVICE short2 neighbour(short2 v, int n) { return make_short2(short(v.x + (n == 2) - (n == 1)), short(v.y + (n == 3) - (n == 0))); }

// The source of the lane's block of macroblock (mx, my), 0 in lanes without one
DEVICE void load_source(const Sample *src_y, const Sample *src_u, const Sample *src_v, int mb_width, int mx, int my, int lane,
                        unsigned *source) {
#pragma unroll
  for (int i = 0; i < 4; i++) source[i] = 0;
  if (lane >= 24) return;
  const bool luma = lane < 16;
  const int stride = luma ? mb_width * 16 : mb_width * MB_WIDTH_C;
  const Sample *plane = luma ? src_y : lane & 4 ? src_v : src_u;
  const size_t at = luma ? size_t(my * 16 + (lane & ~3)) * stride + mx * 16 + 4 * (lane & 3)
                         : size_t(my * MB_HEIGHT_C + 2 * (lane & 2)) * stride + mx * MB_WIDTH_C + 4 * (lane & 1);
#pragma unroll
  for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>(plane + at + i * stride));
}

DEVICE long long lesser(long long a, long long b) { return a < b ? a : b; }
struct ChromaCost {
  long long best, without;  // see chroma_of in cpu_simd/decide/rd_cost.py
};
// ac: of the lane's block, chroma in lanes 16 to 23; dc_of: its DC before the second transform
template <class Scaling>
DEVICE ChromaCost chroma_of(const Scaling &scaling, const BlockCost &ac, int dc_of, const Residue &m, int qp, int qp_c, int lane) {
  const bool active = lane >= 16 && lane < 24;
  const bool any_ac = __any_sync(FULL_WARP, active && ac.coded);
  // the second transform and its levels, one a lane
  const int value = hadamard_2x2(dc_of, lane), level = abs(quantise_dc(scaling, value, qp_c, fraction_of(DEAD_ZONE_INTER)));
  const int ratio = int(unsigned(abs(value)) * unsigned(scaling.dc_multiplier(qp_c)) >> (10 + qp_c / 6 - scaling.finer()));
  const int dropped = min(ratio, CHOICE_MOST_RATIO), kept = min(abs(ratio - 64 * level), CHOICE_MOST_RATIO);
  const bool any_dc = __any_sync(FULL_WARP, active && level);
  const int of_dc = dc_share(level, active, m.bits, lane);
  const auto sum = [&](int v) { return (long long)(__reduce_add_sync(FULL_WARP, active ? v : 0)); };
  const long long ac_none = sum(ac.dropped), ac_some = sum(ac.kept), dc_none = sum(dropped * dropped), dc_some = sum(kept * kept);
  const long long ac_bits = sum(ac.bits), all_dc_bits = sum(of_dc);
  const long long weight = (long long)(CHOICE_DISTORTION) * RD_CHROMA_WEIGHT[max(0, qp - qp_c + RD_CHROMA_LEAST)];
  const unsigned *any = m.bits + AT_CHROMA_PATTERN;
  ChromaCost cost;
  cost.without = (ac_none + dc_none) * weight >> 16;
  cost.best = cost.without + mean_bits(any, false);
  if (any_dc) {
    const long long with_dc = ((ac_none + dc_some) * weight >> 16) + all_dc_bits + mean_bits(any, true) + mean_bits(any + 4, false);
    cost.best = lesser(cost.best, with_dc);
  }
  if (any_ac) {
    const long long all = ((ac_some + dc_some) * weight >> 16) + all_dc_bits + ac_bits + mean_bits(any, true) + mean_bits(any + 4, true);
    cost.best = lesser(cost.best, all);
  }
  return cost;
}

// Weight of energies, and that of the lane's source block
struct Psy {
  int strength, energy;
};
// Levels of the lane's block are 0 if its quadrant is not in `pattern`
DEVICE void drop_levels(int *c, int pattern, int lane) {
#pragma unroll
  for (int i = 0; i < 16; i++) c[i] = pattern >> quadrant_of_lane(lane) & 1 ? c[i] : 0;
}
// Cost of the difference in energy of the reconstructed luma, in 1 / 256 bit. c: residual samples of the lanes k < 16
DEVICE long long psy_cost(const int *c, const unsigned *predicted, const Psy &psy, int qp, int lane) {
  unsigned rows[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int s[4];
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] = clip1(byte_of(predicted[i], j) + c[4 * i + j]);
    rows[i] = pack4(s[0], s[1], s[2], s[3]);
  }
  const int difference = abs(sum_of_quadrant(ac_energy(rows) - psy.energy));
  const int total = __reduce_add_sync(FULL_WARP, lane < 16 && !(lane & 5) ? difference : 0);
  return (long long)(total) * psy.strength * PSY_BITS[qp] >> 16;
}

// QPs and lambda of a macroblock
struct Scales {
  int qp_y, qp_c, lam;
};
// In units of SATD: the residual without the bits of its motion; the squared error of chroma without levels
struct ResidualCost {
  int all, without;
};
// c: differences of the lane's block to `predicted`, lost; may_be_8x8: whether luma may have both transforms; PSY: psy_rd is not 0.
// Without with_luma, `all` means nothing. Both transforms take one copy of the code, which is longer than the instruction cache.
template <bool PSY, class Scaling>
DEVICE ResidualCost residual_cost(const Scaling &scaling, int *c, const unsigned *predicted, bool with_luma, bool may_be_8x8, const Scales &s,
                                  const Psy &psy, Residue &m, int lane) {
  const int qp_y = s.qp_y, qp_c = s.qp_c;
  long long luma = 1ll << 50;
  int dc = 0;
  BlockCost block = {0, 0, 0, 0};
#pragma unroll 1
  for (int is_8x8 = with_luma && may_be_8x8; is_8x8 >= 0; is_8x8--) {
    int words[16];
    if (is_8x8) {
      int rows[8], any = 0;
      forward_8x8(c, rows, m.exchange, lane);
      quantise_8x8(scaling, rows, qp_y, AS_ROUNDED, fraction_of(DEAD_ZONE_INTER), words, nullptr, {m.exchange, m.bits}, lane);
#pragma unroll
      for (int p = 0; p < 16; p++) any |= words[p];
      if (!__any_sync(FULL_WARP, level_of(any))) continue;
    } else {
      forward_4x4(c);
      dc = c[0];
      quantise_with_ratios(scaling, c, lane < 16 ? qp_y : qp_c, fraction_of(DEAD_ZONE_INTER), lane >= 16, words);
    }
    block = block_cost(words, is_8x8, m.bits, m.exchange, lane);
    int pattern;
    long long cost = luma_cost(block, m.bits, pattern);
    if (PSY && with_luma) {
      int x[16];
#pragma unroll
      for (int p = 0; p < 16; p++) x[p] = level_of(words[p]);
      drop_levels(x, pattern, lane);
      if (is_8x8) {
        int rows[8];
        parts_to_rows(x, rows, m.exchange, lane);
        const auto quantiser = row_quantiser(scaling, SCALING_SET, qp_y, 0, lane & 7);
#pragma unroll
        for (int i = 0; i < 8; i++) rows[i] = scale(quantiser, i, rows[i]);
        inverse_8x8(rows, x, m.exchange, lane);
      } else {
        scale_4x4(scaling, x, qp_y);
        inverse_4x4(x);
      }
      cost += psy_cost(x, predicted, psy, qp_y, lane);
    }
    luma = lesser(luma, cost);
  }
  const ChromaCost chroma = chroma_of(scaling, block, dc, m, qp_y, qp_c, lane);
  const long long all = (chroma.best + luma) * s.lam / ONE_BIT, without = chroma.without * s.lam / ONE_BIT;
  return {int(lesser(all, RD_MOST)), int(lesser(without, RD_MOST))};
}
