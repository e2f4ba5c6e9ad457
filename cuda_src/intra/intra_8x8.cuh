// 8.3.2, 8.5.13: one warp codes the luma of an Intra_8x8 macroblock, block after block, in modes that are given or chosen.
//
// Eight lanes code a block, a column each and a row each by turns. While modes are tried, four lanes have a mode.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/common.cuh"
#include "decisions/intra.cuh"
#include "decisions/quantise.cuh"
#include "intra/intra_8x8_modes.cuh"
#include "intra/intra_coding.cuh"

constexpr int TILE_8x8 = 32;  // bytes a row: corner in 7, the macroblock in 8..23, above right in 24..31

// An Intra_8x8 macroblock in shared memory
struct alignas(16) Macroblock8x8 {
  Sample tile[17 * TILE_8x8];
  Sample values[VALUES];  // of the block in work
  int exchange[2 * WORDS_8x8];  // of the block in work, in two modes
  short levels[16 * 16];  // interleaved
  signed char modes[5 * 8];  // as in Macroblock
  uint8_t count[16];
  int cost, clipped, all, sum;
  int beyond;  // whether residual samples are, see is_beyond
  Spectrum spectra[4];  // of the source's blocks
};

DEVICE Neighbours neighbours_of(const Around &around, int q) {
  return {q & 1 || around.left, q >> 1 || around.top, q == 0 ? around.top : q == 1 ? around.right : q == 2};
}

// The scan position of a level at a offset of PLACING
DEVICE int scan_position(int offset) { return 4 * (offset & 15) + (offset >> 4); }

// Row or column of a block's residual
DEVICE void note_beyond(Macroblock8x8 &m, const int *residual) {
  int largest = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) largest = max(largest, abs(residual[k]));
  if (largest > MOST_RESIDUAL) m.beyond = 1;
}

// 8.5.13: codes block q, predicted from the values `choice` of m.values; source: rows of sixteen, block: rows of TILE_8x8 samples
template <bool WEIGHED, class Scaling, class F>
DEVICE void code_block_8x8(const Scaling &scaling, Macroblock8x8 &m, const Sample *source, Sample *block, int q, const Bytes &choice, const Bytes &offsets,
                           const RowQuantiser<F> &quantiser, int lane, Weighing *weighing) {
  constexpr unsigned EIGHT = 0xff;
  int x[8] = {};
  Sample predicted[8];
  Long path = 0;
  if (lane < 8) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
      predicted[k] = m.values[choice.at(k)];
      x[k] = int(source[16 * k + lane]) - predicted[k];
    }
    forward_8(x);
    transpose_8(x, m.exchange, lane, EIGHT);
    forward_8(x);
  }
  if constexpr (WEIGHED) {
    if (lane < 8)
#pragma unroll
      for (int k = 0; k < 8; k++)
        weighing->ratios[scan_position(offsets.at(k))] =
            uint16_t(min(abs(x[k]) * quantiser.factors.at(k) >> (quantiser.shift - 6), LARGEST_RATIO));
    __syncwarp();
    path = choose_levels_8x8<false>(weighing->ratios, weighing->bits, contexts_8x8(weighing->bits),
                                   scaling.cost_8x8(TRELLIS_INTRA * TRELLIS_8x8 >> 2, 0), lane);
  }
  if (lane < 8) {
    short *levels = m.levels + 64 * q;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      x[k] = quantise(quantiser, k, x[k]);
      if (WEIGHED && path >> scan_position(offsets.at(k)) & 1) x[k] -= x[k] > 0 ? 1 : -1;
      levels[offsets.at(k)] = short(x[k]);
      x[k] = scale(quantiser, k, x[k]);
    }
    inverse_8(x);
    transpose_8(x, m.exchange, lane, EIGHT);
    inverse_8(x);
#pragma unroll
    for (int k = 0; k < 8; k++) {
      x[k] = (x[k] + 32) >> 6;
      block[TILE_8x8 * k + lane] = Sample(clip1(int(predicted[k]) + x[k]));
    }
    note_beyond(m, x);
  }
  __syncwarp();
}

// What choose() and write_state() need of the levels: lane k < 16 takes the part that 4x4 block k (raster) holds
DEVICE void count_8x8(Macroblock8x8 &m, int lane) {
  const uint4 *lane_levels = reinterpret_cast<const uint4 *>(m.levels + 16 * digit(RASTER_TO_BLOCK_DIGITS, lane & 15));
  int count = 0, sum = 0, largest = 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint4 v = lane_levels[half];
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int level = abs(int(short(words[i >> 1] >> (16 * (i & 1)))));
      count += level != 0;
      sum += level;
      largest = max(largest, level);
    }
  }
  if (lane < 16) m.count[lane] = uint8_t(count);
  const bool clipped = __any_sync(FULL_WARP, largest >= MAX_LEVEL);
  count = __reduce_add_sync(FULL_WARP, lane < 16 ? count : 0);
  sum = __reduce_add_sync(FULL_WARP, lane < 16 ? sum : 0);
  if (lane == 0) {
    m.all = count;
    m.sum = sum;
    m.clipped = clipped;
  }
}

DEVICE int first_mode(int q) { return 8 * (1 + (q & 2)) + 4 + 2 * (q & 1); }  // of block q in `modes`

// 8.3.2, 8.5.13: the four blocks of an Intra_8x8 macroblock in the modes that m.modes says
template <class Scaling>
DEVICE void code_given_8x8(const Scaling &scaling, Macroblock8x8 &m, const Sample *source, const Around &around, int qp, int dead_zone, int lane) {
  const auto quantiser = row_quantiser(scaling, 0, qp, dead_zone, lane & 7);
  const Bytes offsets = load_bytes(PLACING.of[lane & 7]);
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), mode = m.modes[first_mode(q)];
    const Bytes choice = load_bytes(VALUES_8x8.of[mode][lane & 7]);
    Sample *block = m.tile + (1 + y) * TILE_8x8 + 8 + x;
    const Neighbours n = neighbours_of(around, q);
    make_values(m.values, block[place_of_reference(n, TILE_8x8, lane)], n, lane);
    code_block_8x8<false>(scaling, m, source + 16 * y + x, block, q, choice, offsets, quantiser, lane, nullptr);
  }
  count_8x8(m, lane);
}

// Before the blocks of a macroblock: the edge: words above from the corner on, and `word` to the left of this lane's row
DEVICE void set_edge_8x8(Macroblock8x8 &m, unsigned above, unsigned word, int lane) {
  if (lane == 0) m.beyond = 0;
  if (lane < 16) m.tile[(lane + 1) * TILE_8x8 + 7] = Sample(word >> 24);
  if (lane < 7) *reinterpret_cast<unsigned *>(m.tile + 4 + 4 * lane) = above;
}

// Column pair lane & 3 of a block of the source, rows of sixteen
DEVICE void load_columns(const Sample *source, int lane, int *w) {
#pragma unroll
  for (int i = 0; i < 8; i++) w[i] = source[16 * i + 2 * (lane & 3)] | source[16 * i + 2 * (lane & 3) + 1] << 16;
}

// Data of the macroblock's blocks that do not depend on neighbours; four lanes a block
DEVICE void look_ahead_8x8(Macroblock8x8 &m, const Sample *source, int lane) {
  const int q = lane >> 2 & 3;
  int w[8];
  load_columns(source + 128 * (q >> 1) + 8 * (q & 1), lane, w);
  const Spectrum spectrum = spectrum_of(w, lane);
  if (lane < 16 && !(lane & 3)) m.spectra[q] = spectrum;
}

// 8.3.2, 8.5.13: chooses modes of and codes an Intra_8x8 macroblock; ends early when the cost reaches `limit`, that of Intra_16x16
template <bool WEIGHED, class Scaling>
DEVICE void code_8x8(const Scaling &scaling, Macroblock8x8 &m, const Sample *source, const Around &around, int *limit_16x16, int qp, int dead_zone, const Trial &trial,
                     int lane, Weighing *weighing) {
  const auto quantiser = row_quantiser(scaling, 0, qp, WEIGHED ? fraction_of(DEAD_ZONE_NEAREST) : dead_zone, lane & 7);
  const int lam = LAMBDA[qp];
  const Bytes offsets = load_bytes(PLACING.of[lane & 7]);
  int cost = lam * BITS_INTRA_8x8, limit = NO_LIMIT;
#pragma unroll 1
  for (int q = 0; q < 4 && cost < limit; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), at = first_mode(q), least = min(m.modes[at - 1], m.modes[at - 8]);
    const int predicted = least < 0 ? 2 : least;
    const Neighbours n = neighbours_of(around, q);
    const Sample *block_source = source + 16 * y + x;
    Sample *block = m.tile + (1 + y) * TILE_8x8 + 8 + x;
    int w[8];
    load_columns(block_source, lane, w);
    limit = lane == 0 ? atomicMin(limit_16x16, NO_LIMIT) : 0;
    make_values(m.values, block[place_of_reference(n, TILE_8x8, lane)], n, lane);
    const unsigned key = min(try_modes(w, m.values, n, trial, predicted, lam, lane), try_dc(m.spectra[q], m.values[DC_8x8], predicted, lam));
    const int mode = int(key & 15);
    cost += int(key >> 4);
    code_block_8x8<WEIGHED>(scaling, m, block_source, block, q, load_bytes(VALUES_8x8.of[mode][lane & 7]), offsets, quantiser, lane, weighing);
    if (lane < 4) m.modes[at + (lane & 1) + 8 * (lane >> 1)] = static_cast<signed char>(mode);
    limit = __shfl_sync(FULL_WARP, limit, 0);
    __syncwarp();
  }
  if (cost < limit) count_8x8(m, lane);
  if (lane == 0) m.cost = cost;
}
