// 8.4.2.2: inter prediction of 4x4 blocks, one in a thread.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

struct Part {
  int x, y, w, h;  // 4x4 blocks
};

// The partition of the macroblock that holds block (bx, by)
DEVICE Part partition_of(int mb_type, const uint8_t *sub_mb_type, int bx, int by) {
  int w = 4, h = 4;
  if (mb_type == P_16x8) h = 2;
  else if (mb_type == P_8x16) w = 2;
  else if (mb_type == P_8x8) {
    const int sub = sub_mb_type[(by >> 1) * 2 + (bx >> 1)];
    w = sub >= SUB_4x8 ? 1 : 2;
    h = sub & 1 ? 1 : 2;
  }
  return {bx & ~(w - 1), by & ~(h - 1), w, h};
}

// 8.4.2.2.1 for the block (bx, by): four rows of four samples. luma: the reference's four planes
DEVICE void predict_luma(const uint8_t *luma, int width, int height, int pad, int x0, int y0, int bx, int by, const Part &part,
                         short2 v, unsigned *out) {
  const int x = clip3(0, width - 4 * part.w - 1, x0 + 4 * part.x + pad + (v.x >> 2)) + 4 * (bx - part.x);
  const int y = clip3(0, height - 4 * part.h - 1, y0 + 4 * part.y + pad + (v.y >> 2)) + 4 * (by - part.y);
  const signed char *pair = QUARTER_SAMPLE_PAIRS[4 * (v.y & 3) + (v.x & 3)];
  const uint8_t *a = luma + (size_t(pair[0]) * height + y + pair[2]) * width + x + pair[1];
  const uint8_t *b = luma + (size_t(pair[3]) * height + y + pair[5]) * width + x + pair[4];
  const bool same = a == b;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned first = load_word(a + size_t(i) * width);
    out[i] = same ? first : average4(first, load_word(b + size_t(i) * width));
  }
}

// 8.4.2.2.2 for a 4x4 block of chroma: the four vectors of quadrant q, 2x2 samples each. plane with its border
DEVICE void predict_chroma(const uint8_t *plane, int width, int height, int pad, int x0, int y0, int q, int mb_type,
                           const uint8_t *sub_mb_type, const short2 *mv, unsigned *out) {
  unsigned word[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int bx = 2 * (q & 1) + (k & 1), by = 2 * (q >> 1) + (k >> 1);
    const Part part = partition_of(mb_type, sub_mb_type, bx, by);
    const short2 v = mv[4 * by + bx];
    const int x = clip3(0, width - 2 * part.w - 1, x0 + 2 * part.x + pad + (v.x >> 3)) + 2 * (bx - part.x);
    const int y = clip3(0, height - 2 * part.h - 1, y0 + 2 * part.y + pad + (v.y >> 3)) + 2 * (by - part.y);
    const int fx = v.x & 7, fy = v.y & 7;
    const int wa = (8 - fx) * (8 - fy), wb = fx * (8 - fy), wc = (8 - fx) * fy, wd = fx * fy;
    int s[3][3];
#pragma unroll
    for (int r = 0; r < 3; r++)
#pragma unroll
      for (int c = 0; c < 3; c++) s[r][c] = __ldg(plane + size_t(y + r) * width + x + c);
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int c = 0; c < 2; c++) {
        const int value = (wa * s[r][c] + wb * s[r][c + 1] + wc * s[r + 1][c] + wd * s[r + 1][c + 1] + 32) >> 6;
        word[2 * (k >> 1) + r] |= unsigned(value) << (8 * (2 * (k & 1) + c));
      }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = word[i];
}

// 8.4.2.2.2 for the 4x4 block of chroma of quadrant q, with one vector. plane with its border
DEVICE void predict_chroma_4x4(const uint8_t *plane, int width, int height, int pad, int x0, int y0, int q, short2 v, unsigned *out) {
  const int x = clip3(0, width - 9, x0 + pad + (v.x >> 3)) + 4 * (q & 1), y = clip3(0, height - 9, y0 + pad + (v.y >> 3)) + 4 * (q >> 1);
  const int fx = v.x & 7, fy = v.y & 7;
  const int wa = (8 - fx) * (8 - fy), wb = fx * (8 - fy), wc = (8 - fx) * fy, wd = fx * fy;
  int above[5];
#pragma unroll
  for (int c = 0; c < 5; c++) above[c] = __ldg(plane + size_t(y) * width + x + c);
#pragma unroll
  for (int r = 0; r < 4; r++) {
    int below[5], value[4];
#pragma unroll
    for (int c = 0; c < 5; c++) below[c] = __ldg(plane + size_t(y + r + 1) * width + x + c);
#pragma unroll
    for (int c = 0; c < 4; c++) value[c] = (wa * above[c] + wb * above[c + 1] + wc * below[c] + wd * below[c + 1] + 32) >> 6;
    out[r] = pack4(value[0], value[1], value[2], value[3]);
#pragma unroll
    for (int c = 0; c < 5; c++) above[c] = below[c];
  }
}

constexpr int HALF_WEIGHT = 32;  // implicit weight of list 1, of 64, where both predictions count alike

// 8.4.2.3: four samples predicted from both lists; weight: implicit, of list 1, of 64
DEVICE unsigned weigh_both(unsigned first, unsigned second, int weight) {
  if (weight == HALF_WEIGHT) return average4(first, second);
  int s[4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = clip255((byte_of(first, i) * (64 - weight) + byte_of(second, i) * weight + 32) >> 6);
  return pack4(s[0], s[1], s[2], s[3]);
}

// Whether the prediction of the macroblock at (x0, y0) with vector (x, y) lies in the padded frame and is legal
DEVICE bool inside(int x, int y, int x0, int y0, int width, int height, int pad, int max_mv_y) {
  const int left = x0 + (x >> 2), top = y0 + (y >> 2);
  return (left >= -pad) & (left + 17 <= width + pad) & (top >= -pad) & (top + 17 <= height + pad) & (abs(x) < 4 * 2047) &
         (y >= -4 * max_mv_y) & (y < 4 * max_mv_y);
}
