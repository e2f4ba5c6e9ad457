// 8.4.1: motion vector prediction, as cpu_simd/inter/mv_prediction.py has it. References: -1 intra, -2 not available.
#pragma once
#include "costs/bit_costs.cuh"
#include "tables.cuh"

struct alignas(8) Motion {
  int ref;
  unsigned v;  // the vector, x in the lower half; 0 where there is none
};

DEVICE int x_of(unsigned v) { return short(v & 0xffff); }
DEVICE int y_of(unsigned v) { return int(v) >> 16; }
DEVICE unsigned vector_of(int x, int y) { return unsigned(x & 0xffff) | unsigned(y) << 16; }
DEVICE unsigned median(unsigned a, unsigned b, unsigned c) { return max2(min2(a, b), min2(max2(a, b), c)); }
// bits of the difference of two vectors
DEVICE int difference_bits(unsigned a, unsigned b) { return mvd_bits(x_of(a) - x_of(b), y_of(a) - y_of(b)); }

// 8.4.1.3: the predictor from the neighbours A, B, C (C already replaced by D where 8.4.1.3.2 says so)
// (written without branches: lanes ask for different partitions)
DEVICE unsigned choose_predictor(int bx, int by, int bw, int bh, int ref, const Motion &a, const Motion &b, const Motion &c) {
  const bool of_a = a.ref == ref, of_b = b.ref == ref, of_c = c.ref == ref;
  const int same = of_a + 2 * of_b + 4 * of_c;
  unsigned v = median(a.v, b.v, c.v);
  v = same == 4 ? c.v : v;
  v = same == 2 ? b.v : v;
  v = (same == 1) | ((b.ref == -2) & (c.ref == -2) & (a.ref != -2)) ? a.v : v;
  const bool wide = (bw == 4) & (bh == 2), high = (bw == 2) & (bh == 4);
  v = of_a & ((wide & (by != 0)) | (high & (bx == 0))) ? a.v : v;
  v = of_b & wide & (by == 0) ? b.v : v;
  return of_c & high & (bx != 0) ? c.v : v;
}

// 6.4.12: where the 4x4 block at (bx, by) relative to macroblock mb lies, -1 <= by <= 3, -1 <= bx <= 4: 16 * address + block
// in raster order, -1: not available
DEVICE int neighbour_block(int mb, int bx, int by, int mb_width, int first_mb) {
  const int column = mb % mb_width;
  int n = mb;
  if (bx < 0) {
    if (column == 0) return -1;
    n--;
  } else if (bx > 3) {
    if (column == mb_width - 1) return -1;
    n++;
  }
  if (by < 0) n -= mb_width;
  return n < first_mb ? -1 : 16 * n + 4 * (by & 3) + (bx & 3);
}

// What that block has. Read past the L1 cache: another block of threads may have written it just now.
DEVICE Motion motion_of(int block, const signed char *ref_idx, const unsigned *mv) {
  if (block < 0) return {-2, 0};
  const int ref = __ldcg(ref_idx + (block >> 4) * 4 + (block >> 3 & 1) * 2 + (block >> 1 & 1));
  const unsigned v = __ldcg(mv + block);
  return {ref, ref < 0 ? 0 : v};
}

// 6.4.11.7: whether the block above right of a partition precedes it, if it lies in this macroblock row
DEVICE bool corner_available(int bx, int by, int bw) {
  const int x = bx + bw;
  return (by == 0) | ((x <= 3) & (((by - 1) >> 1) * 2 + (x >> 1) <= (by >> 1) * 2 + (bx >> 1)));
}

// 8.4.1.1: the vector of a P_Skip macroblock, whose predictor from A, B and C is given
DEVICE unsigned skip_vector(const Motion &a, const Motion &b, unsigned predictor) {
  const bool still = a.ref == -2 || b.ref == -2 || (a.ref == 0 && a.v == 0) || (b.ref == 0 && b.v == 0);
  return still ? 0 : predictor;
}
