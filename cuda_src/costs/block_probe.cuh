// Prediction of one 4x4 block in a thread at any vector: its distortion, and the worth of its levels.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/quantise.cuh"
#include "inter/motion_compensation.cuh"
#include "residual/transform.cuh"

// The 4x4 blocks of a macroblock's source, prepared for distortions and levels
struct alignas(16) Source {
  uint4 rows[2][16];          // the bias less the transforms of its rows (SATD), or its samples in the first
  uint4 coefficients[2][16];  // two a word, as transformed_columns gives them
};

// The forward transform of a block's rows: rows 0..3 of the columns 0 and 2, then of 1 and 3; what a word's lower half
// borrowed from the upper one is still to be given back
DEVICE void transformed_rows(const unsigned *rows, unsigned *c) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    c[i] = mad(unsigned(dot4(rows[i], 0x01ffff01u, 0)), HIGH_HALF, unsigned(dot4(rows[i], 0x01010101u, 0)));
    c[4 + i] = mad(unsigned(dot4(rows[i], 0xff02fe01u, 0)), HIGH_HALF, unsigned(dot4(rows[i], 0xfeff0102u, 0)));
  }
}
DEVICE void transformed_columns(const unsigned *rows, unsigned *c) {
  transformed_rows(rows, c);
#pragma unroll
  for (int k = 0; k < 8; k += 4) {
    const unsigned s = c[k] + c[k + 3], t = c[k + 1] + c[k + 2], u = c[k + 1] - c[k + 2], v = c[k] - c[k + 3];
    c[k] = s + t;
    c[k + 1] = 2 * v + u;
    c[k + 2] = s - t;
    c[k + 3] = v - 2 * u;
  }
}
DEVICE uint4 four(const unsigned *w) { return make_uint4(w[0], w[1], w[2], w[3]); }

// Block k from its rows
DEVICE void keep_source(Source &source, int k, const unsigned *rows, bool satd) {
  const Transformed t = transformed(rows);
  unsigned c[8];
  transformed_columns(rows, c);
  source.rows[0][k] = four(satd ? t.first : rows);
  source.rows[1][k] = four(t.second);
  source.coefficients[0][k] = four(c);
  source.coefficients[1][k] = four(c + 4);
}

// What |coefficient| makes a level of one, and of two, by the class of its position; the first less one, negative, in both
// halves of a word each
struct Limits {
  unsigned one[3], two[3];
};
DEVICE Limits limits_of(int qp) {
  const int shift = 15 + qp / 6, rounding = rounding_of(fraction_of(DEAD_ZONE_INTER), shift), m = qp % 6;
  const int factor[3] = {QUANT_MF[m][0], QUANT_MF[m][5], QUANT_MF[m][1]};
  Limits limits;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    limits.one[i] = unsigned(-(((1 << shift) - rounding - 1) / factor[i]) & 0xffff) * BOTH_HALVES;
    limits.two[i] = unsigned(-(((2 << shift) - rounding - 1) / factor[i]) & 0xffff) * BOTH_HALVES;
  }
  return limits;
}

// The prediction of block k, at `at` in the integer samples, at vector (x, y), and its distortion
DEVICE unsigned predicted(const Source &source, int k, const Sample *luma, unsigned plane_size, int stride, int at, int x, int y, bool satd,
                          unsigned *p) {
  load_quarter_samples(luma, plane_size, stride, unsigned(at + (y >> 2) * stride + (x >> 2)), x & 3, y & 3, p);
  const uint4 block_words = source.rows[0][k], more = source.rows[1][k];
  const Transformed t = {{block_words.x, block_words.y, block_words.z, block_words.w}, {more.x, more.y, more.z, more.w}};
  return satd ? satd_4x4(t, p) : sad_4x4(t.first, p);
}

// Class of the positions of word i of a block's coefficients: 0 both coordinates even, 1 both odd, 2 otherwise
DEVICE constexpr int class_of_word(int i) { return i < 4 ? (i & 1 ? 2 : 0) : i & 1 ? 1 : 2; }

// Squared error of block k with prediction p: that of the coefficients, each in units of its basis function
DEVICE unsigned squared_error(const Source &source, int k, const unsigned *p) {
  const uint4 even = source.coefficients[0][k], odd = source.coefficients[1][k];
  const unsigned source_words[8] = {even.x, even.y, even.z, even.w, odd.x, odd.y, odd.z, odd.w};
  constexpr unsigned WEIGHT[3] = {25, 4, 10};  // 400 / the squares of basis functions: 16, 100, 40
  unsigned c[8], sum = 0;  // at most 400 * 16 * 255^2
  transformed_columns(p, c);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    unsigned v = c[i] - source_words[i];
    v += (v & 0x8000) << 1;  // halves
    const int low = short(v), high = short(v >> 16);
    sum += WEIGHT[class_of_word(i)] * unsigned(low * low + high * high);
  }
  return sum / 400;
}

// Difference in energy of prediction p to block k, kept for SATD
DEVICE int energy_difference(const Source &source, int k, const unsigned *p) {
  const uint4 words = source.rows[0][k], more = source.rows[1][k];
  const unsigned none[4] = {0, 0, 0, 0};
  const Transformed t = {{words.x, words.y, words.z, words.w}, {more.x, more.y, more.z, more.w}};
  const int sum = short(source.coefficients[0][k].x);  // the DC
  return ac_energy(p) - (2 * int(satd_4x4(t, none)) - sum);
}

// Worth of the levels of block k with prediction p
DEVICE unsigned levels_score(const Source &source, int k, const unsigned *p, const Limits &limits) {
  const uint4 even = source.coefficients[0][k], odd = source.coefficients[1][k];
  const unsigned source_words[8] = {even.x, even.y, even.z, even.w, odd.x, odd.y, odd.z, odd.w};
  // a level of one by its place, the lower half first; a larger one is always worth its bits
  constexpr unsigned LEVEL_SCORES[8] = {0x0103, 0x0102, 0x0002, 0, 0x0102, 0x0001, 0x0001, 0};
  unsigned c[8], score = 0, larger = 0;
  transformed_columns(p, c);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int position = class_of_word(i);
    unsigned v = c[i] - source_words[i];
    v += (v & 0x8000) << 1;  // halves
    const unsigned sign = signs2(v);
    const unsigned magnitudes = (v ^ sign) + (sign & BOTH_HALVES);
    if (LEVEL_SCORES[i]) score = dot2(min2(add_max2(magnitudes, limits.one[position], 0), BOTH_HALVES), LEVEL_SCORES[i], score);
    larger = add_max2(magnitudes, limits.two[position], larger);
  }
  return score + (larger ? BUDGET : 0);
}
