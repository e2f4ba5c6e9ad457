// 8.3.2, 8.5.13: one warp codes the luma of an Intra_8x8 macroblock, block after block, in modes that are given or chosen.
//
// All samples that a block may be predicted from, the reference samples, their (1, 2, 1) filter and the means of neighbours, are
// 75 bytes; in each mode a sample is one of them. Then eight lanes code the block, a column each and a row each by turns.
#pragma once
#include "intra_coding.cuh"
#include "transform_8x8.cuh"

constexpr int TILE_8x8 = 32;  // bytes a row: corner in 7, the macroblock in 8..23, above right in 24..31
constexpr int REFERENCES = 25;  // along the edge: the left column from bottom to top, the corner in 8, above and above right from 9 on
constexpr int FILTERED_8x8 = 32, MEAN_8x8 = 64, DC_8x8 = 96;  // from 0 on the references themselves; DC: their mean
constexpr int N_MODES_8x8 = 9, MODE_DC = 2;

// An Intra_8x8 macroblock in shared memory
struct alignas(16) Macroblock8x8 {
  uint8_t tile[17 * TILE_8x8];
  uint8_t values[DC_8x8 + 16];  // that samples of the block in work may take
  int exchange[WORDS_8x8];
  short levels[16 * 16];  // interleaved
  signed char modes[5 * 8];  // as in Macroblock
  uint8_t count[16];
  int cost, all, sum;
};

// 8.3.2.2.2 - 8.3.2.2.10: which value a sample takes
constexpr int value_8x8(int mode, int x, int y) {
  const int right = 2 * x - y, down = 2 * y - x, up = x + 2 * y;
  switch (mode) {
    case 0: return 9 + x;
    case 1: return 7 - y;
    case 3: return FILTERED_8x8 + 10 + x + y;
    case 4: return FILTERED_8x8 + 8 + x - y;
    case 5: return right < -1 ? FILTERED_8x8 + 9 + right : (right & 1 ? FILTERED_8x8 : MEAN_8x8) + 8 + x - (y >> 1);
    case 6: return down < -1 ? FILTERED_8x8 + 7 - down : (down & 1 ? FILTERED_8x8 + 8 : MEAN_8x8 + 7) - y + (x >> 1);
    case 7: return (y & 1 ? FILTERED_8x8 + 10 : MEAN_8x8 + 9) + x + (y >> 1);
    case 8: return up > 13 ? 0 : up == 13 ? FILTERED_8x8 : (up & 1 ? FILTERED_8x8 : MEAN_8x8) + 6 - y - (x >> 1);
    default: return DC_8x8;
  }
}
// Of each mode by columns, four rows a word
struct Values_8x8 {
  unsigned of[N_MODES_8x8][8][2];
};
constexpr Values_8x8 make_values() {
  Values_8x8 v = {};
  for (int mode = 0; mode < N_MODES_8x8; mode++)
    for (int x = 0; x < 8; x++)
      for (int y = 0; y < 8; y++) v.of[mode][x][y >> 2] |= unsigned(value_8x8(mode, x, y)) << (8 * (y & 3));
  return v;
}
__device__ const Values_8x8 VALUES_8x8 = make_values();

// What is available of a block's neighbours
struct Neighbours {
  bool left, top, right;
};
DEVICE Neighbours neighbours_of(const Around &around, int q) {
  return {q & 1 || around.left, q >> 1 || around.top, q == 0 ? around.top : q == 1 ? around.right : q == 2};
}

// 8.3.2.2.1: the values of a block, whose first sample is at `block`; lane i < REFERENCES has reference i
DEVICE void make_values(Macroblock8x8 &m, const uint8_t *block, const Neighbours &n, int lane) {
  const int i = min(lane, REFERENCES - 1), x = min(i - 9, n.right ? 15 : 7);
  const int own = i < 8 ? block[(7 - i) * TILE_8x8 - 1] : block[x - TILE_8x8];
  const bool both = n.left && n.top, first = i == 0 || (i == 9 && !both), last = i == REFERENCES - 1 || (i == 7 && !both);
  int before = __shfl_up_sync(FULL_WARP, own, 1), after = __shfl_down_sync(FULL_WARP, own, 1);
  const int value = ((first ? own : before) + 2 * own + (last ? own : after) + 2) >> 2;
  before = __shfl_up_sync(FULL_WARP, value, 1);
  after = __shfl_down_sync(FULL_WARP, value, 1);
  if (i == 0) before = value;
  if (i == REFERENCES - 1) after = value;
  const bool counts = lane < 8 ? n.left : lane > 8 && lane < 17 && n.top;
  const int sum = int(__reduce_add_sync(FULL_WARP, counts ? unsigned(value) : 0u));
  if (lane < REFERENCES) {
    m.values[i] = uint8_t(value);
    m.values[FILTERED_8x8 + i] = uint8_t((before + 2 * value + after + 2) >> 2);
    m.values[MEAN_8x8 + i] = uint8_t((value + after + 1) >> 1);
  }
  if (lane == REFERENCES) m.values[DC_8x8] = uint8_t(both ? (sum + 8) >> 4 : n.left || n.top ? (sum + 4) >> 3 : 128);
  __syncwarp();
}

// 8.5.13: codes block q, predicted from the values `choice` of m.values; source: rows of sixteen, block: rows of TILE_8x8 samples
DEVICE void code_block_8x8(Macroblock8x8 &m, const uint8_t *source, uint8_t *block, int q, const Bytes &choice, const Bytes &places,
                           const RowQuantiser &quantiser, int lane) {
  constexpr unsigned EIGHT = 0xff;
  if (lane < 8) {
    int x[8];
    uint8_t predicted[8];
    short *levels = m.levels + 64 * q;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      predicted[k] = m.values[choice.at(k)];
      x[k] = int(source[16 * k + lane]) - predicted[k];
    }
    forward_8(x);
    transpose_8(x, m.exchange, lane, EIGHT);
    forward_8(x);
#pragma unroll
    for (int k = 0; k < 8; k++) {
      x[k] = quantise(quantiser, k, x[k]);
      levels[places.at(k)] = short(x[k]);
      x[k] = scale(quantiser, k, x[k]);
    }
    inverse_8(x);
    transpose_8(x, m.exchange, lane, EIGHT);
    inverse_8(x);
#pragma unroll
    for (int k = 0; k < 8; k++) block[TILE_8x8 * k + lane] = uint8_t(clip255(int(predicted[k]) + ((x[k] + 32) >> 6)));
  }
  __syncwarp();
}

// What choose() and write_state() need of the levels: lane k < 16 takes the part that 4x4 block k (raster) holds
DEVICE void count_8x8(Macroblock8x8 &m, int lane) {
  const uint4 *part = reinterpret_cast<const uint4 *>(m.levels + 16 * digit(RASTER_TO_BLOCK_DIGITS, lane & 15));
  int count = 0, sum = 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint4 v = part[half];
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int low = int(short(words[i] & 0xffff)), high = int(words[i]) >> 16;
      count += (low != 0) + (high != 0);
      sum += abs(low) + abs(high);
    }
  }
  if (lane < 16) m.count[lane] = uint8_t(count);
  count = __reduce_add_sync(FULL_WARP, lane < 16 ? count : 0);
  sum = __reduce_add_sync(FULL_WARP, lane < 16 ? sum : 0);
  if (lane == 0) {
    m.all = count;
    m.sum = sum;
  }
}

// 8.3.2, 8.5.13: the four blocks of an Intra_8x8 macroblock in the modes that m.modes says
DEVICE void code_given_8x8(Macroblock8x8 &m, const uint8_t *source, const Around &around, int qp, int lane) {
  const RowQuantiser quantiser = row_quantiser(qp, DEAD_ZONE_INTRA, lane & 7);
  const Bytes places = load_bytes(PLACING.of[lane & 7]);
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), mode = m.modes[8 * (1 + y / 4) + 4 + x / 4];
    const Bytes choice = load_bytes(VALUES_8x8.of[mode][lane & 7]);
    uint8_t *block = m.tile + (1 + y) * TILE_8x8 + 8 + x;
    make_values(m, block, neighbours_of(around, q), lane);
    code_block_8x8(m, source + 16 * y + x, block, q, choice, places, quantiser, lane);
  }
  count_8x8(m, lane);
}

// The edge: words above from the corner on, and `word` to the left of this lane's row
DEVICE void set_edge_8x8(Macroblock8x8 &m, unsigned above, unsigned word, int lane) {
  if (lane < 16) m.tile[(lane + 1) * TILE_8x8 + 7] = uint8_t(word >> 24);
  if (lane < 7) *reinterpret_cast<unsigned *>(m.tile + 4 + 4 * lane) = above;
}
