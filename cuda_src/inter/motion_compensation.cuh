// 8.4.2.2: inter prediction of 4x4 blocks, one in a thread.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

// 8.4.2.2.1: four rows of four samples at a quarter sample (fx, fy): averages of two of the reference's four planes. at: of the first
// sample in a plane
DEVICE void load_quarter_samples(const Sample *luma, unsigned plane_size, int stride, unsigned at, int fx, int fy, unsigned *out) {
  // from immediate operands: table reads at different vectors would be serialised over lanes
  const unsigned first = fy & 1 ? QUARTER_SAMPLE_PAIRS_1 : QUARTER_SAMPLE_PAIRS_0, second = fy & 1 ? QUARTER_SAMPLE_PAIRS_3 : QUARTER_SAMPLE_PAIRS_2;
  const unsigned pair = (fy & 2 ? second : first) >> (8 * fx);
  const Rows a = rows_from(luma + (at + (pair & 3) * plane_size + (pair & 8 ? stride : 0) + (pair >> 2 & 1)), stride);
  const Rows b = rows_from(luma + (at + (pair >> 4 & 3) * plane_size + (pair & 128 ? stride : 0) + (pair >> 6 & 1)), stride);
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = average4(load_word(a, i), load_word(b, i));
}

// Where a vector's partition lies in its macroblock
struct Partition {
  int x, y, w, h;  // 4x4 blocks
};

// 8.4.2.2.1 for the block (bx, by): four rows of four samples. luma: the reference's four planes
DEVICE void predict_luma(const Sample *luma, int width, int height, int pad, int x0, int y0, int bx, int by, const Partition &partition,
                         short2 v, unsigned *out) {
  const int x = clip3(0, width - 4 * partition.w - 1, x0 + 4 * partition.x + pad + (v.x >> 2)) + 4 * (bx - partition.x);
  const int y = clip3(0, height - 4 * partition.h - 1, y0 + 4 * partition.y + pad + (v.y >> 2)) + 4 * (by - partition.y);
  load_quarter_samples(luma, unsigned(width) * unsigned(height), width, unsigned(y) * unsigned(width) + unsigned(x), v.x & 3, v.y & 3, out);
}

// Of a chroma plane of a reference with its border; width, height, pad: of luma
DEVICE int chroma_width(int width, int pad) { return width / SUB_WIDTH_C + 2 * pad / SUB_WIDTH_C; }
DEVICE int chroma_height(int height, int pad) { return height / SUB_HEIGHT_C + 2 * pad / SUB_HEIGHT_C; }

// 8.4.2.2.2 for the 4x4 block of chroma of quadrant q, with one vector, in eighths of a sample: 4:2:0. plane with its
// border `pad`, whose rows are whole words. The limits are those of the macroblock's vector: where those of a partition
// differ, all samples of a row or column are equal.
DEVICE void predict_chroma_4x4(const Sample *plane, int width, int height, int pad, int x0, int y0, int q, short2 v, unsigned *out) {
  const int x = clip3(0, width - 9, x0 + pad + (v.x >> 3)) + 4 * (q & 1), y = clip3(0, height - 9, y0 + pad + (v.y >> 3)) + 4 * (q >> 1);
  const int fx = v.x & 7, fy = v.y & 7;
  const unsigned weights = pack4((8 - fx) * (8 - fy), fx * (8 - fy), (8 - fx) * fy, fx * fy);
  const uintptr_t at = reinterpret_cast<uintptr_t>(plane + size_t(y) * width + x);
  const unsigned *row = reinterpret_cast<const unsigned *>(at & ~uintptr_t(3)), shift = unsigned(at & 3) * 8;
  unsigned left[5], right[5];  // samples 0 to 3 and 1 to 4 of each row
#pragma unroll
  for (int r = 0; r < 5; r++) {
    const unsigned low = __ldg(row + r * (width >> 2)), high = __ldg(row + r * (width >> 2) + 1);
    left[r] = __funnelshift_r(low, high, shift);
    right[r] = __funnelshift_rc(low, high, shift + 8);
  }
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int s0 = dot4(__byte_perm(left[r], left[r + 1], 0x5410), weights, 32), s1 = dot4(__byte_perm(right[r], right[r + 1], 0x5410), weights, 32);
    const int s2 = dot4(__byte_perm(left[r], left[r + 1], 0x7632), weights, 32), s3 = dot4(__byte_perm(right[r], right[r + 1], 0x7632), weights, 32);
    out[r] = pack4(s0 >> 6, s1 >> 6, s2 >> 6, s3 >> 6);
  }
}

// The same with four vectors of 2x2 samples each; mv: of the macroblock's blocks
DEVICE void predict_chroma(const Sample *plane, int width, int height, int pad, int x0, int y0, int q, const short2 *mv, unsigned *out) {
  const unsigned *v = reinterpret_cast<const unsigned *>(mv) + 8 * (q >> 1) + 2 * (q & 1);
  const bool same = v[0] == v[1] && v[0] == v[4] && v[0] == v[5];
#pragma unroll 1
  for (int k = 0; k < (same ? 1 : 4); k++) {
    unsigned predicted[4];
    predict_chroma_4x4(plane, width, height, pad, x0, y0, q, mv[8 * (q >> 1) + 2 * (q & 1) + 4 * (k >> 1) + (k & 1)], predicted);
    const unsigned mask = same ? ~0u : k & 1 ? 0xffff0000u : 0xffffu;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (same || i >> 1 == k >> 1) out[i] = (out[i] & ~mask) | (predicted[i] & mask);
  }
}

// 8.4.2.3: four samples predicted from both lists; weight: implicit, of list 1, of 64
DEVICE unsigned weigh_both(unsigned first, unsigned second, int weight) {
  if (weight == AVERAGE) return average4(first, second);
  int s[4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = clip1((byte_of(first, i) * (64 - weight) + byte_of(second, i) * weight + 32) >> 6);
  return pack4(s[0], s[1], s[2], s[3]);
}

// Whether the prediction of the macroblock at (x0, y0) with vector (x, y) lies in the padded frame and is legal
DEVICE bool inside(int x, int y, int x0, int y0, int width, int height, int pad, int max_mv_y) {
  const int left = x0 + (x >> 2), top = y0 + (y >> 2);
  return (left >= -pad) & (left + 17 <= width + pad) & (top >= -pad) & (top + 17 <= height + pad) & (abs(x) < 4 * 2047) &
         (y >= -4 * max_mv_y) & (y < 4 * max_mv_y);
}
