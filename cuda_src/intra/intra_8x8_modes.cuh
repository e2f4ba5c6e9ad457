// 8.3.2: the values that samples of an Intra_8x8 block may take, and the cost of each mode in four lanes.
//
// All samples that a block may be predicted from, the filtered reference samples, their (1, 2, 1) filter and the means of
// neighbours, are 75 bytes; in each mode a sample is one of them.
#pragma once
#include "decisions/intra.cuh"
#include "costs/bit_costs.cuh"
#include "intra/intra_prediction.cuh"
#include "residual/transform_8x8.cuh"

constexpr int REFERENCES = 25;  // along the edge: the left column from bottom to top, the corner in 8, above and above right from 9 on
constexpr int FILTERED_8x8 = 32, MEAN_8x8 = 64, DC_8x8 = 96;  // from 0 on the references themselves; DC: their mean
constexpr int VALUES = DC_8x8 + 16;  // bytes of a block's values
constexpr int N_MODES_8x8 = 9;

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
// Where a lane's reference is, from the first sample of the block on: rows of `stride` samples
DEVICE int place_of_reference(const Neighbours &n, int stride, int lane) {
  const int i = min(lane, REFERENCES - 1);
  return i < 8 ? (7 - i) * stride - 1 : min(i - 9, n.right ? 15 : 7) - stride;
}
// 8.3.2.2.1: the values of a block; lane i < REFERENCES has reference i, the others the last one
DEVICE void make_values(Sample *values, int sample, const Neighbours &n, int lane) {
  const int i = min(lane, REFERENCES - 1);
  const bool both = n.left && n.top, first = i == 0 || (i == 9 && !both), last = i == REFERENCES - 1 || (i == 7 && !both);
  int before = __shfl_up_sync(FULL_WARP, sample, 1), after = __shfl_down_sync(FULL_WARP, sample, 1);
  const int value = ((first ? sample : before) + 2 * sample + (last ? sample : after) + 2) >> 2;
  before = __shfl_up_sync(FULL_WARP, value, 1);
  after = __shfl_down_sync(FULL_WARP, value, 1);
  if (i == 0) before = value;
  if (i == REFERENCES - 1) after = value;
  const bool counts = lane < 8 ? n.left : lane > 8 && lane < 17 && n.top;
  const int sum = int(__reduce_add_sync(FULL_WARP, counts ? unsigned(value) : 0u));
  if (lane < REFERENCES) {
    values[i] = Sample(value);
    values[FILTERED_8x8 + i] = Sample((before + 2 * value + after + 2) >> 2);
    values[MEAN_8x8 + i] = Sample((value + after + 1) >> 1);
  }
  if (lane == REFERENCES) values[DC_8x8] = Sample(both ? (sum + 8) >> 4 : n.left || n.top ? (sum + 4) >> 3 : SAMPLE_MIDDLE);
  __syncwarp();
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
// Cost of the mode of the lane's trial: SATD + lam * bits, then the mode, in the lower four bits; all ones if it cannot be used. w: the
// columns of the source; values: of make_values; predicted: the mode that costs one bit
DEVICE unsigned try_mode(int *w, const Sample *values, const Neighbours &n, const Trial &trial, int predicted, int lam, int lane) {
#pragma unroll
  for (int i = 0; i < 8; i++) w[i] -= values[trial.left.at(i)] | values[trial.right.at(i)] << 16;
  hadamard_8x8(w, lane);
  const int satd = (half_of_magnitudes(w) + 1) >> 1;
  const bool usable = (n.left || !(trial.needs & 1)) && (n.top || !(trial.needs & 2));
  const unsigned key = unsigned(satd + lam * mode_4x4_bits(trial.mode == predicted)) << 4 | unsigned(trial.mode);
  return usable ? key : ~0u;
}
// The least of these
DEVICE unsigned try_modes(int *w, const Sample *values, const Neighbours &n, const Trial &trial, int predicted, int lam, int lane) {
  return __reduce_min_sync(FULL_WARP, try_mode(w, values, n, trial, predicted, lam, lane));
}

// What mode DC needs of a block of the source: the sum of its samples, and the magnitudes of its other Hadamard coefficients
struct Spectrum {
  int sum, others;
};
DEVICE Spectrum spectrum_of(int *w, int lane) {  // valid in the first lane of four
  hadamard_8x8(w, lane);
  const int sum = low_number(w[0]) + high_number(w[0]);
  return {sum, 2 * half_of_magnitudes(w) - sum};
}
DEVICE unsigned try_dc(const Spectrum &s, int mean, int predicted, int lam) {
  const int satd = (((s.others + abs(s.sum - 64 * mean)) >> 1) + 1) >> 1;
  return unsigned(satd + lam * mode_4x4_bits(predicted == MODE_DC)) << 4 | unsigned(MODE_DC);
}
