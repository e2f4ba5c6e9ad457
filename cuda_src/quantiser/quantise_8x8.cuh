// Quantisation of the luma of an inter macroblock by the 8x8 transform, for its cost beside that of the 4x4 transform.
#pragma once
#include "decisions/quantise.cuh"
#include "quantiser/rdo_quant.cuh"
#include "residual/transform_choice.cuh"
#include "quantiser/trellis.cuh"

// How levels are chosen: TRELLIS for CABAC (trellis.cuh), BY_CAVLC by rdo_quant.cuh
enum Choice { AS_ROUNDED, BY_CAVLC, TRELLIS };

// A warp's own shared memory; null: it needs none
struct Scratch {
  int *exchange;  // EXCHANGE_8x8, for the 8x8 transform
  unsigned *bits;  // N_INTER_BITS, of fill_bits
};

// Coefficients of a 4x4 block to levels with their ratios; skip_dc: the DC becomes 0
template <class Scaling>
DEVICE void quantise_with_ratios(const Scaling &scaling, const int *c, int qp, int dead_zone, bool skip_dc, int *words) {
  const int shift = 15 + qp / 6 - scaling.finer(), rounding = rounding_of(dead_zone, shift);
  const auto factors = scaling.multipliers(qp);
#pragma unroll
  for (int p = 0; p < 16; p++) {
    const int product = abs(c[p]) * factors.at(p), level = min((product + rounding) >> shift, MAX_LEVEL);
    words[p] = with_ratio(c[p] < 0 ? -level : level, min(product >> (shift - 6), LARGEST_RATIO));
  }
  if (skip_dc) words[0] = 0;
}

// Levels of the luma by the 8x8 transform. rows: coefficients of forward_8x8; words: levels with their ratios that lanes k < 16 send,
// 0 in the others; ratios: what the choice of levels needs, uint16[16 * 32] in shared memory, [i * 32] the own ones; factor: the trellis's
template <class Scaling>
DEVICE void quantise_8x8(const Scaling &scaling, const int *rows, int qp, Choice how, int dead_zone, int *words, uint16_t *ratios, const Scratch &scratch,
                         int lane, int factor = TRELLIS_INTER) {
  int x[8];
  const auto quantiser = row_quantiser(scaling, SCALING_SET, qp, how != AS_ROUNDED ? fraction_of(DEAD_ZONE_NEAREST) : dead_zone, lane & 7);
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int ratio = min(abs(rows[k]) * quantiser.factors.at(k) >> (quantiser.shift - 6), 32767);
    x[k] = with_ratio(quantise(quantiser, k, rows[k]), ratio);
  }
#pragma unroll
  for (int p = 0; p < 16; p++) words[p] = 0;
  rows_to_parts(x, words, scratch.exchange, lane);
  if (how == AS_ROUNDED) return;
#pragma unroll
  for (int i = 0; i < 16; i++) ratios[32 * i] = uint16_t(ratio_of(words[digit(ZIGZAG_4x4_DIGITS, i)]));
  if (how == BY_CAVLC) {
    int levels[16];
    unsigned mask = 0, ones = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int p = digit(ZIGZAG_4x4_DIGITS, i), value = level_of(words[p]);
      int level = abs(value);
      mask |= unsigned(level != 0) << i;
      if (level > 1 && ratio_of(words[p]) < RDO_ONE * (level - 1) + RDO_UP) level--;
      ones |= unsigned(level == 1) << i;
      levels[p] = value < 0 ? -level : level;
    }
    weigh(levels, mask, ones, 0, ratios);
#pragma unroll
    for (int p = 0; p < 16; p++) words[p] = with_ratio(levels[p], ratio_of(words[p]));
  }
  if (how == TRELLIS) {
    __syncwarp();
    Long path = choose_levels_8x8<true>(ratios - lane, scratch.bits, contexts_8x8(scratch.bits),
                                        scaling.cost_8x8(factor * TRELLIS_8x8 >> 2, SCALING_SET), lane);
    path = path_of_lane(path, 8 * ((lane >> 2 & 2) | (lane >> 1 & 1))) >> ((lane >> 1 & 2) | (lane & 1));
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int p = digit(ZIGZAG_4x4_DIGITS, i), level = level_of(words[p]);
      if (lane < 16 && path >> (4 * i) & 1) words[p] = with_ratio(level - (level > 0 ? 1 : -1), ratio_of(words[p]));
    }
  }
}
