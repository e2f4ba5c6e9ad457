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
constexpr int N_MODES_8x8 = 9;

// An Intra_8x8 macroblock in shared memory
struct alignas(16) Macroblock8x8 {
  uint8_t tile[17 * TILE_8x8];
  uint8_t values[DC_8x8 + 16];  // that samples of the block in work may take
  int exchange[WORDS_8x8];
  short levels[16 * 16];  // interleaved
  signed char modes[5 * 8];  // as in Macroblock
  uint8_t count[16];
  int cost, clipped, all, sum;
  int source_satd[4], source_sum[4];  // by quadrant, see look_ahead_8x8
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
  int count = 0, sum = 0, largest = 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint4 v = part[half];
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
DEVICE void code_given_8x8(Macroblock8x8 &m, const uint8_t *source, const Around &around, int qp, int lane) {
  const RowQuantiser quantiser = row_quantiser(qp, DEAD_ZONE_INTRA, lane & 7);
  const Bytes places = load_bytes(PLACING.of[lane & 7]);
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), mode = m.modes[first_mode(q)];
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

// ---- choice of modes: four lanes a mode, two columns of differences each, eight rows of two numbers a word: low + 65536 high
// The 8x8 Hadamard transform over four lanes but for its last stage, the sum and the difference of the two numbers
DEVICE void hadamard_8x8(int *w, int lane) {
#pragma unroll
  for (int step = 4; step; step >>= 1)
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (!(i & step)) {
        const int a = w[i], b = w[i + step];
        w[i] = a + b;
        w[i + step] = a - b;
      }
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const int sign = lane & step ? -1 : 1;
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = __shfl_xor_sync(FULL_WARP, w[i], step) + sign * w[i];
  }
}
DEVICE int low_number(int w) { return short(w & 0xffff); }
DEVICE int high_number(int w) { return (w - low_number(w)) >> 16; }
// Half the sum of the absolute coefficients: |a + b| + |a - b| = 2 max(|a|, |b|)
DEVICE int half_of_magnitudes(const int *w) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += max(abs(low_number(w[i])), abs(high_number(w[i])));
  sum += __shfl_xor_sync(FULL_WARP, sum, 1);
  return sum + __shfl_xor_sync(FULL_WARP, sum, 2);
}

// Column pair lane & 3 of a block of the source, rows of sixteen
DEVICE void load_columns(const uint8_t *source, int lane, int *w) {
#pragma unroll
  for (int i = 0; i < 8; i++) w[i] = source[16 * i + 2 * (lane & 3)] | source[16 * i + 2 * (lane & 3) + 1] << 16;
}

// Of each block of the source: the sum of its samples, and half the magnitudes of its other coefficients, twice
DEVICE void look_ahead_8x8(Macroblock8x8 &m, const uint8_t *source, int lane) {
  const int q = lane >> 2 & 3;
  int w[8];
  load_columns(source + 128 * (q >> 1) + 8 * (q & 1), lane, w);
  hadamard_8x8(w, lane);
  const int sum = low_number(w[0]) + high_number(w[0]), magnitudes = 2 * half_of_magnitudes(w) - sum;
  if (lane < 16 && !(lane & 3)) {
    m.source_satd[q] = magnitudes;
    m.source_sum[q] = sum;
  }
}

// The samples that a lane predicts in its mode: eight rows of two values
struct Trial {
  int mode, needs;  // needs: bit 0 the left column, bit 1 the row above
  Bytes left, right;
};
DEVICE Trial trial_of(int lane) {
  const int n = lane >> 2, mode = n < 2 ? n : n + 1, x = 2 * (lane & 3), both = NEEDS_ALL >> mode & 1;
  return {mode, int(NEEDS_LEFT >> mode & 1) | both | (int(NEEDS_TOP >> mode & 1) | both) << 1, load_bytes(VALUES_8x8.of[mode][x]),
          load_bytes(VALUES_8x8.of[mode][x + 1])};
}

// 8.3.2, 8.5.13: chooses modes of and codes an Intra_8x8 macroblock; ends early when the cost reaches `limit`, that of Intra_16x16
DEVICE void code_8x8(Macroblock8x8 &m, const uint8_t *source, const Around &around, int *limit_16x16, int qp, int lam, const Trial &trial,
                     int lane) {
  const RowQuantiser quantiser = row_quantiser(qp, DEAD_ZONE_INTRA, lane & 7);
  const Bytes places = load_bytes(PLACING.of[lane & 7]);
  int cost = lam * BITS_INTRA_8x8, limit = NO_LIMIT;
#pragma unroll 1
  for (int q = 0; q < 4 && cost < limit; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), at = first_mode(q), least = min(m.modes[at - 1], m.modes[at - 8]);
    const int predicted = least < 0 ? 2 : least;
    const Neighbours n = neighbours_of(around, q);
    const uint8_t *own = source + 16 * y + x;
    uint8_t *block = m.tile + (1 + y) * TILE_8x8 + 8 + x;
    int w[8];
    load_columns(own, lane, w);
    limit = lane == 0 ? atomicMin(limit_16x16, NO_LIMIT) : 0;
    make_values(m, block, n, lane);
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] -= m.values[trial.left.at(i)] | m.values[trial.right.at(i)] << 16;
    hadamard_8x8(w, lane);
    const int half = half_of_magnitudes(w), dc_half = (m.source_satd[q] + abs(m.source_sum[q] - 64 * m.values[DC_8x8])) >> 1;
    const bool usable = (n.left || !(trial.needs & 1)) && (n.top || !(trial.needs & 2));
    const int satd = (half + 1) >> 1, dc_satd = (dc_half + 1) >> 1;
    unsigned key = unsigned(satd + lam * mode_4x4_bits(trial.mode == predicted)) << 4 | unsigned(trial.mode);
    if (!usable) key = ~0u;
    key = min(key, unsigned(dc_satd + lam * mode_4x4_bits(predicted == 2)) << 4 | 2u);
    key = __reduce_min_sync(FULL_WARP, key);
    const int mode = int(key & 15);
    cost += int(key >> 4);
    code_block_8x8(m, own, block, q, load_bytes(VALUES_8x8.of[mode][lane & 7]), places, quantiser, lane);
    if (lane < 4) m.modes[at + (lane & 1) + 8 * (lane >> 1)] = static_cast<signed char>(mode);
    limit = __shfl_sync(FULL_WARP, limit, 0);
    __syncwarp();
  }
  if (cost < limit) count_8x8(m, lane);
  if (lane == 0) m.cost = cost;
}
