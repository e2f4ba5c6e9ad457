// True cost of the residual of an inter macroblock by a warp: twin of cpu_simd/rd_cost.py. One lane a 4x4 block: 0..15 luma in raster
// order, 16..19 Cb, 20..23 Cr.
#pragma once
#include "either_transform.cuh"

// Shared memory of a warp; bits: of fill_bits
struct alignas(16) Residue {
  int exchange[EXCHANGE_8x8];
  uint16_t ratios[16 * 32];
  unsigned bits[N_INTER_BITS];
};

// The 8x8 quadrant of the lane's block
DEVICE int own_quadrant(int lane) { return lane < 16 ? (lane >> 3) * 2 + (lane >> 1 & 1) : lane & 3; }

// The source of the lane's block of macroblock (mx, my), 0 in lanes without one
DEVICE void load_source(const uint8_t *src_y, const uint8_t *src_u, const uint8_t *src_v, int mb_width, int mx, int my, int lane,
                        unsigned *source) {
#pragma unroll
  for (int i = 0; i < 4; i++) source[i] = 0;
  if (lane >= 24) return;
  const bool luma = lane < 16;
  const int stride = luma ? mb_width * 16 : mb_width * 8;
  const uint8_t *plane = luma ? src_y : lane & 4 ? src_v : src_u;
  const size_t at = luma ? size_t(my * 16 + (lane & ~3)) * stride + mx * 16 + 4 * (lane & 3)
                         : size_t(my * 8 + 2 * (lane & 2)) * stride + mx * 8 + 4 * (lane & 1);
#pragma unroll
  for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>(plane + at + i * stride));
}

DEVICE long long lesser(long long a, long long b) { return a < b ? a : b; }
struct ChromaCost {
  long long best, without;  // see chroma_of in cpu_simd/rd_cost.py
};
// c: levels of the lane's block, chroma in lanes 16 to 23, DC 0; dc_of: its DC before the second transform
template <class Lists>
DEVICE ChromaCost chroma_of(const Lists &lists, const int *c, int dc_of, const Residue &m, int qp, int qp_c, int lane) {
  const bool active = lane >= 16 && lane < 24;
  const uint16_t *ratios = m.ratios + lane;
  int none = 0, some = 0, total = 0;
#pragma unroll
  for (int i = 1; i < 16; i++) {
    const int ratio = ratios[32 * i], left = short(ratio - (abs(c[digit(ZIGZAG_4x4_DIGITS, i)]) << 6));  // 16 bits, as on the CPU
    const int dropped = min(ratio, CHOICE_MOST_RATIO), kept = min(abs(left), CHOICE_MOST_RATIO);
    none += dropped * dropped;
    some += kept * kept;
  }
  const Masks own = masks_of(c);
  if (own.coded) total = block_bits(c, own, 1, m.bits + AT_SIGNIFICANT_4 - 1, m.bits + AT_LAST_4 - 1, m.bits + AT_LEVEL_4);
  total += mean_bits(m.bits + AT_CODED_4, own.coded != 0);
  const bool any_ac = __any_sync(FULL_WARP, active && own.coded);
  // the second transform and its levels
  const int value = hadamard_2x2(dc_of, lane), level = quantise_dc(lists, value, qp_c, fraction_of(DEAD_ZONE_INTER));
  const int ratio = int(unsigned(abs(value)) * unsigned(lists.dc_multiplier(qp_c)) >> (10 + qp_c / 6 - lists.finer()));
  const int dropped = min(ratio, CHOICE_MOST_RATIO), kept = min(abs(ratio - 64 * abs(level)), CHOICE_MOST_RATIO);
  int levels[4], of_dc = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) levels[k] = __shfl_sync(FULL_WARP, level, (lane & ~3) + k);
  const bool any_level = levels[0] | levels[1] | levels[2] | levels[3], any_dc = __any_sync(FULL_WARP, active && any_level);
  if (active && !(lane & 3)) of_dc = mean_bits(m.bits + AT_CODED_3, any_level) + dc_bits(levels, m.bits);
  const auto sum = [&](int v) { return (long long)(__reduce_add_sync(FULL_WARP, active ? v : 0)); };
  const long long ac_none = sum(none), ac_some = sum(some), dc_none = sum(dropped * dropped), dc_some = sum(kept * kept);
  const long long ac_bits = sum(total), all_dc_bits = sum(of_dc);
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
  for (int i = 0; i < 16; i++) c[i] = pattern >> own_quadrant(lane) & 1 ? c[i] : 0;
}
// Cost of the difference in energy of the reconstructed luma, in 1 / 256 bit. c: residual samples of the lanes k < 16
DEVICE long long psy_cost(const int *c, const unsigned *predicted, const Psy &psy, int qp, int lane) {
  unsigned rows[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int s[4];
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] = clip255(byte_of(predicted[i], j) + c[4 * i + j]);
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
// Without with_luma, `all` means nothing.
template <bool PSY, class Lists>
DEVICE ResidualCost residual_cost(const Lists &lists, int *c, const unsigned *predicted, bool with_luma, bool may_be_8x8, const Scales &s,
                                  const Psy &psy, Residue &m, int lane) {
  const int qp_y = s.qp_y, qp_c = s.qp_c, own_qp = lane < 16 ? qp_y : qp_c;
  int pattern = 0;
  long long luma = 1ll << 50;
  if (with_luma && may_be_8x8) {
    int rows[8], parts[16];
    forward_8x8(c, rows, m.exchange, lane);
    quantise_8x8(lists, rows, qp_y, AS_ROUNDED, fraction_of(DEAD_ZONE_INTER), parts, m.ratios + lane, {m.exchange, m.bits}, lane);
    int any = 0;
#pragma unroll
    for (int p = 0; p < 16; p++) any |= parts[p];
    if (__any_sync(FULL_WARP, any)) {
      luma = luma_cost(parts, m.ratios + lane, true, m.bits, m.exchange, lane, pattern);
      if (PSY) {
        drop_levels(parts, pattern, lane);
        parts_to_rows(parts, rows, m.exchange, lane);
        const auto quantiser = row_quantiser(lists, SCALING_SET, qp_y, 0, lane & 7);
#pragma unroll
        for (int i = 0; i < 8; i++) rows[i] = scale(quantiser, i, rows[i]);
        inverse_8x8(rows, parts, m.exchange, lane);
        luma += psy_cost(parts, predicted, psy, qp_y, lane);
      }
    }
  }
  forward_4x4(c);
  const int dc = c[0];
  store_ratios(lists, c, own_qp, m.ratios + lane);
  quantise_4x4(lists, c, own_qp, fraction_of(DEAD_ZONE_INTER), lane >= 16);
  long long luma_4x4 = with_luma ? luma_cost(c, m.ratios + lane, false, m.bits, m.exchange, lane, pattern) : 0;
  const ChromaCost chroma = chroma_of(lists, c, dc, m, qp_y, qp_c, lane);
  if (PSY && with_luma) {
    drop_levels(c, pattern, lane);
    scale_4x4(lists, c, qp_y);
    inverse_4x4(c);
    luma_4x4 += psy_cost(c, predicted, psy, qp_y, lane);
  }
  luma = lesser(luma, luma_4x4);
  const long long all = (chroma.best + luma) * s.lam / ONE_BIT, without = chroma.without * s.lam / ONE_BIT;
  return {int(lesser(all, RD_MOST)), int(lesser(without, RD_MOST))};
}
