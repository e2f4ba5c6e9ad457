// Quantisation of the luma of an inter macroblock by the 8x8 transform, for its cost beside that of the 4x4 transform.
#pragma once
#include "rdo_quant.cuh"
#include "transform_choice.cuh"
#include "trellis.cuh"

// How levels are chosen: TRELLIS for CABAC (trellis.cuh), BY_CAVLC by rdo_quant.cuh
enum Choice { AS_ROUNDED, BY_CAVLC, TRELLIS };

// A warp's own shared memory; null: it needs none
struct Scratch {
  int *exchange;  // EXCHANGE_8x8, for the 8x8 transform
  unsigned *bits;  // N_INTER_BITS, of fill_bits
};

// Levels of the luma by the 8x8 transform. rows: coefficients of forward_8x8; parts: levels that lanes k < 16 send, 0 in the others
template <class Lists>
DEVICE void quantise_8x8(const Lists &lists, const int *rows, int qp, Choice how, int dead_zone, int *parts, uint16_t *ratios, const Scratch &scratch,
                         int lane) {
  int x[8];
  const auto quantiser = row_quantiser(lists, SCALING_SET, qp, how != AS_ROUNDED ? fraction_of(DEAD_ZONE_NEAREST) : dead_zone, lane & 7);
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int ratio = min(abs(rows[k]) * quantiser.factors.at(k) >> (quantiser.shift - 6), 32767);
    x[k] = int(unsigned(ratio) << 16 | (unsigned(quantise(quantiser, k, rows[k])) & 0xffff));
  }
#pragma unroll
  for (int p = 0; p < 16; p++) parts[p] = 0;
  rows_to_parts(x, parts, scratch.exchange, lane);
  unsigned mask = 0, ones = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i), ratio = int(unsigned(parts[p]) >> 16), value = short(parts[p]);
    int level = abs(value);
    mask |= unsigned(level != 0) << i;
    if (how == BY_CAVLC && level > 1 && ratio < RDO_ONE * (level - 1) + RDO_UP) level--;
    ones |= unsigned(level == 1) << i;
    ratios[32 * i] = uint16_t(ratio);
    parts[p] = value < 0 ? -level : level;
  }
  if (how == BY_CAVLC) weigh(parts, mask, ones, 0, ratios);
  if (how == TRELLIS) {
    __syncwarp();
    Long path = choose_levels_8x8<true>(ratios - lane, scratch.bits, contexts_8x8(scratch.bits),
                                        lists.cost_8x8(TRELLIS_INTER * TRELLIS_8x8 >> 2, SCALING_SET), lane);
    path = path_of_lane(path, 8 * ((lane >> 2 & 2) | (lane >> 1 & 1))) >> ((lane >> 1 & 2) | (lane & 1));
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const int p = digit(ZIGZAG_4x4_DIGITS, i);
      if (lane < 16 && path >> (4 * i) & 1) parts[p] -= parts[p] > 0 ? 1 : -1;
    }
  }
}
