// Quantisation of the luma of an inter macroblock by the 4x4 and the 8x8 transform, and the cost of either.
#pragma once
#include "rdo_quant.cuh"
#include "transform_choice.cuh"

// Ratios of a lane's coefficients, as quantise_weighed leaves them
DEVICE void store_ratios(const int *c, int qp, uint16_t *ratios) {
  const int shift = 15 + qp / 6, m = qp % 6;
  const int factor[3] = {QUANT_MF[m][0], QUANT_MF[m][5], QUANT_MF[m][1]};
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i);
    ratios[32 * i] = uint16_t(min(abs(c[p]) * factor[position_class(p)] >> (shift - 6), 32767));
  }
}

// The 8x8 transform of the luma. c: differences of the lane's 4x4 block; parts: levels that lanes k < 16 send, 0 in the others
DEVICE void quantise_8x8(const int *c, int qp, bool weighed, int *parts, uint16_t *ratios, int *exchange, int lane) {
  int x[8];
  forward_8x8(c, x, exchange, lane);
  const RowQuantiser quantiser = row_quantiser(qp, weighed ? 2 : DEAD_ZONE_INTER, lane & 7);
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int ratio = min(abs(x[k]) * quantiser.factors.at(k) >> (quantiser.shift - 6), 32767);
    x[k] = int(unsigned(ratio) << 16 | (unsigned(quantise(quantiser, k, x[k])) & 0xffff));
  }
#pragma unroll
  for (int p = 0; p < 16; p++) parts[p] = 0;
  rows_to_parts(x, parts, exchange, lane);
  unsigned mask = 0, ones = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i), ratio = int(unsigned(parts[p]) >> 16), value = short(parts[p]);
    int level = abs(value);
    mask |= unsigned(level != 0) << i;
    if (weighed && level > 1 && ratio < RDO_ONE * (level - 1) + RDO_UP) level--;
    ones |= unsigned(level == 1) << i;
    ratios[32 * i] = uint16_t(ratio);
    parts[p] = value < 0 ? -level : level;
  }
  if (weighed) weigh(parts, mask, ones, 0, ratios);
}
