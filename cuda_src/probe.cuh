// One 4x4 block in a thread predicted at any vector: its distortion, and what its levels would be worth.
#pragma once
#include "transform.cuh"

constexpr int BUDGET = 6;  // what levels of one may be worth in all

struct Block {  // a lane's 4x4 block: where it lies in the reference, and its source samples
  const uint8_t *luma;
  size_t plane_size;
  int stride, x, y;
  unsigned current[4];
};

// The prediction of a lane's block at vector (x, y), and its distortion. source: of the current samples
DEVICE unsigned predicted(const Block &block, const Transformed &source, int x, int y, bool satd, unsigned *p) {
  // from numbers in the instructions: lanes that ask a table for different vectors would wait for each other
  const unsigned first = y & 1 ? QUARTER_SAMPLE_PAIRS_1 : QUARTER_SAMPLE_PAIRS_0, second = y & 1 ? QUARTER_SAMPLE_PAIRS_3 : QUARTER_SAMPLE_PAIRS_2;
  const unsigned pair = (y & 2 ? second : first) >> (8 * (x & 3));
  const ptrdiff_t at = ptrdiff_t(block.y + (y >> 2)) * block.stride + block.x + (x >> 2);
  const uint8_t *a = block.luma + (pair & 3) * block.plane_size + at + (pair & 8 ? block.stride : 0) + (pair >> 2 & 1);
  const uint8_t *b = block.luma + (pair >> 4 & 3) * block.plane_size + at + (pair & 128 ? block.stride : 0) + (pair >> 6 & 1);
  // all rows begin alike within their words, since a row of the reference is a whole number of words
  const unsigned at_a = unsigned(reinterpret_cast<uintptr_t>(a) & 3), at_b = unsigned(reinterpret_cast<uintptr_t>(b) & 3);
  const unsigned *words_a = reinterpret_cast<const unsigned *>(a - at_a), *words_b = reinterpret_cast<const unsigned *>(b - at_b);
  const int stride = block.stride >> 2, next_a = at_a ? 1 : 0, next_b = at_b ? 1 : 0;
  unsigned low[8], high[8];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    low[i] = __ldg(words_a + i * stride);
    high[i] = __ldg(words_a + i * stride + next_a);
    low[4 + i] = __ldg(words_b + i * stride);
    high[4 + i] = __ldg(words_b + i * stride + next_b);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) p[i] = average4(unaligned(low[i], high[i], at_a), unaligned(low[4 + i], high[4 + i], at_b));
  return satd ? satd_4x4(source, p) : sad_4x4(block.current, p);
}

// What the levels of a lane's block would be worth
DEVICE unsigned levels_worth(const unsigned *current, const unsigned *p, int qp) {
  int c[16];
#pragma unroll
  for (int i = 0; i < 16; i++) c[i] = byte_of(p[i >> 2], i & 3) - byte_of(current[i >> 2], i & 3);
  forward_4x4(c);
  quantise_4x4(c, qp, DEAD_ZONE_INTER, false);
  // a level of one by its place; a larger one is always worth its bits
  constexpr unsigned long long WORTH = 0x0000001201121123ull;  // raster, from the lowest digit: 3 2 1 1, 2 1 1 0, 2 1 0 0
  unsigned worth = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) worth += (c[i] ? digit(WORTH, i) : 0) + (abs(c[i]) > 1 ? BUDGET : 0);
  return worth;
}
