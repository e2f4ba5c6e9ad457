// 8.3, 8.5: one warp codes the luma of a macroblock whose type and modes are given (P pictures, see intra_estimate.cu).
//
// Optimised for latency: a block of Intra_4x4 waits for earlier blocks, so another warp prepares, one macroblock ahead, all that
// does not depend on their samples: the positions that each sample is predicted from, and the source's coefficients.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/intra.cuh"
#include "decisions/quantise.cuh"
#include "intra/intra_coding.cuh"

constexpr int STEPS = 10, PLAN = 32 * STEPS;  // words of four words of a macroblock, see plan_4x4
constexpr int DOWN_LEFT = 3, VERTICAL_LEFT = 7;

// In all modes but DC a sample is (a + 2 b + c + 2) >> 2 of three samples round the block: a byte each says where they lie,
// from the block's first sample on. After the modes: variants without the samples above right.
struct EdgeOffsets {
  unsigned of[N_MODES_4x4 + 2][16];
};
// Of sample i along the edge (see intra_prediction.cuh) up to `last`
constexpr int offset_of(int i, int last) {
  const int at = i < 1 ? 1 : i > last ? last : i;
  return at < 5 ? (4 - at) * TILE - 1 : at - 6 - TILE;
}
constexpr int FILTERED = 0, SAME = 32;
// 8.3.1.2.1 - 8.3.1.2.9: sample i, filtered, or the mean of i and i + 1, or itself
constexpr int edge_sample(int mode, int x, int y) {
  const int right = 2 * x - y, down = 2 * y - x;
  switch (mode) {
    case 0: return SAME + 6 + x;
    case 1: return SAME + 4 - y;
    case 3: return FILTERED + 7 + x + y;
    case 4: return FILTERED + 5 + x - y;
    case 5: return right < -1 ? FILTERED + 6 - y : right == -1 ? FILTERED + 5 : (y & 1 ? FILTERED : MEAN) + 5 + x - (y >> 1);
    case 6: return down < -1 ? FILTERED + 4 + x : down == -1 ? FILTERED + 5 : (x & 1 ? FILTERED + 5 : MEAN + 4) - (y - (x >> 1));
    case 7: return (y & 1 ? FILTERED + 7 : MEAN + 6) + x + (y >> 1);
    case 8: return x + 2 * y > 5 ? FILTERED : (x & 1 ? FILTERED : MEAN) + 3 - y - (x >> 1);
    default: return SAME + 5;
  }
}
constexpr EdgeOffsets make_offsets() {
  EdgeOffsets p = {};
  for (int n = 0; n < N_MODES_4x4 + 2; n++)
    for (int j = 0; j < 16; j++) {
      const int mode = n < N_MODES_4x4 ? n : n == N_MODES_4x4 ? DOWN_LEFT : VERTICAL_LEFT, last = n < N_MODES_4x4 ? 13 : 9;
      const int sample = edge_sample(mode, j & 3, j >> 2), filter = sample & ~15, i = sample & 15;
      const int a = offset_of(filter == FILTERED ? i - 1 : i, last), b = offset_of(filter == MEAN ? i + 1 : i, last);
      const int c = offset_of(filter == FILTERED ? i + 1 : i, last);
      p.of[n][j] = unsigned(a & 255) | unsigned(b & 255) << 8 | unsigned(c & 255) << 16;
    }
  return p;
}
__device__ const EdgeOffsets EDGE_OFFSETS = make_offsets();

// What each lane needs in each step of code_given_4x4, as bytes from `origin` on, where all macroblocks lie: samples a and b;
// sample c, the word to the left; the word above, the source's coefficient and whether the mode is DC; where its sample goes,
// and where once more. The mean of DC is that of two words, twice the same where only one is available. mode: of block lane & 15.
DEVICE void plan_4x4(Macroblock &m, Sample *origin, const Around &around, int mode, uint4 *plan, int lane, const LanePlace &lane_place) {
  const int rights = ABOVE_RIGHT_INSIDE | (around.top ? 7 : 0) | (around.right ? 8 : 0), grey = int(reinterpret_cast<Sample *>(&m.grey) - origin);
#pragma unroll 2
  for (int step = 0; step < STEPS; step++) {
    const int k = block_of(step, lane), bx = k & 3, by = k >> 2, of = __shfl_sync(FULL_WARP, mode, k);
    const int first = int(m.tile + (4 * by + 1) * TILE + 4 + 4 * bx - origin), column = int(m.sides + bx * SIDE + 4 * by + 4 - origin);
    const bool cut = !(rights >> k & 1), left = around.left || bx, top = around.top || by;
    const int n = cut && of == DOWN_LEFT ? N_MODES_4x4 : cut && of == VERTICAL_LEFT ? N_MODES_4x4 + 1 : of;
    const unsigned offsets = __ldg(&EDGE_OFFSETS.of[n][lane & 15]);
    const int a = first + static_cast<signed char>(offsets), b = first + static_cast<signed char>(offsets >> 8);
    const int c = first + static_cast<signed char>(offsets >> 16), above = first - TILE;
    const int one = left ? column : top ? above : grey, other = top ? above : left ? column : grey;
    const int coefficient = 2 * m.coefficients[16 * k + (lane & 15)] + (of == MODE_DC), to = first + lane_place.y * TILE + lane_place.x;
    plan[32 * step + lane] = make_uint4(unsigned(a | b << 16), unsigned(c | one << 16), unsigned(other | coefficient << 16),
                                        unsigned(to | (lane_place.x == 3 ? column + SIDE + lane_place.y : to) << 16));
  }
}

// 8.3.1, 8.5.1: the blocks of an Intra_4x4 macroblock in ten steps as in code_4x4, with planned modes. Where there is one block,
// both halves of the warp do the same; the levels of the second half go to places that are written later, or after all.
template <class Scaling>
DEVICE void code_given_4x4(Macroblock &m, Sample *origin, const uint4 *plan, const Quantiser<Scaling> &quantiser, int lane, const LanePlace &lane_place) {
  const int half = lane >> 4;
  Sample *mine = m.predicted + lane;
  const uint4 *block = reinterpret_cast<const uint4 *>(m.predicted) + half;
  short *levels = m.levels_4x4 + levels_at(0, lane) + lane_place.scan;
  int magnitudes = 0, largest = 0;
  unsigned votes = 0;
  uint4 next = plan[lane];
#pragma unroll 1
  for (int step = 0; step < STEPS; step++) {
    const uint4 now = next;
    const int a = origin[now.x & 0xffff], b = origin[now.x >> 16], c = origin[now.y & 0xffff];
    const unsigned left = word_at(origin + (now.y >> 16)), above = word_at(origin + (now.z & 0xffff)), ones = 0x01010101u;
    const int mean = int(__dp4a(left, ones, __dp4a(above, ones, 4u)) >> 3);
    const int predicted = now.z & 0x10000 ? mean : (a + 2 * b + c + 2) >> 2;
    *mine = Sample(predicted);
    __syncwarp();
    const uint4 rows = *block;
    int v = int(now.z) >> 17;
    v -= int(lane_place.down[0]) * dot4(rows.x, lane_place.across, 0) + int(lane_place.down[1]) * dot4(rows.y, lane_place.across, 0);
    v -= int(lane_place.down[2]) * dot4(rows.z, lane_place.across, 0) + int(lane_place.down[3]) * dot4(rows.w, lane_place.across, 0);
    int level = (abs(v) * quantiser.factor + quantiser.rounding) >> quantiser.shift;
    if (Scaling::ANY) level = min(level, MAX_LEVEL);
    magnitudes += !half || (step >= 2 && step < 8) ? level : 0;
    level = v < 0 ? -level : level;
    next = plan[32 * min(step + 1, STEPS - 1) + lane];
    v = inverse_pass(quantiser.scaled(level), lane_place.row);
    const unsigned coded = __ballot_sync(FULL_WARP, level != 0);
    votes = lane == step ? coded : votes;
    levels[16 * step] = short(level);
    v = inverse_pass(v, lane_place.column);
    const int residual = (v + 32) >> 6;
    largest = max(largest, abs(residual));
    const Sample sample = Sample(clip1(predicted + residual));
    origin[now.w & 0xffff] = sample;
    origin[now.w >> 16] = sample;
    __syncwarp();
  }
  magnitudes = __reduce_add_sync(FULL_WARP, magnitudes);
  const int at = digit(PLACE_OF_RASTER, lane & 15), second = at >= STEPS;
  const unsigned coded = __shfl_sync(FULL_WARP, votes, second ? at - 8 : at) >> (16 * second);
  const int count = __popc(coded & 0xffff), all = __reduce_add_sync(FULL_WARP, lane < 16 ? count : 0);
  if (lane < 16) m.count_4x4[lane] = uint8_t(count);
  const bool beyond = __any_sync(FULL_WARP, largest > MOST_RESIDUAL);
  if (lane == 0) {
    m.beyond_4x4 = beyond;
    m.all_4x4 = all;
    m.sum_4x4 = magnitudes;
  }
}

// 8.3.3, 8.5.2: an Intra_16x16 macroblock in its mode, as code_16x16
template <class Scaling>
DEVICE void code_given_16x16(const Scaling &scaling, Macroblock &m, const Around &around, const Above &above, int left, int mode, int qp, int dead_zone, int lane,
                             int scan) {
  const int k = lane & 15, bx = k & 3, by = k >> 2;
  unsigned source_rows[4], row[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    source_rows[i] = word_at(m.source + 64 * by + 16 * i + 4 * bx);
    row[i] = mode == 0 ? above.a : splat4(__shfl_sync(FULL_WARP, left, 4 * by + i));
  }
  if (mode >= 2) {
    const int t = around.top ? byte_of(__shfl_sync(FULL_WARP, above.a, k >> 2), k & 3) : 0, l = around.left ? left : 0;
    if (mode == 2) row[0] = row[1] = row[2] = row[3] = splat4(mean_16x16(around.left, around.top, l, t));
    else plane_16x16(l, t, int(above.b >> 24), lane, row);
  }
  if (lane == 0) m.mode_16x16 = mode;
  code_predicted_16x16<false>(scaling, m, source_rows, row, qp, dead_zone, lane, scan, nullptr);
}
