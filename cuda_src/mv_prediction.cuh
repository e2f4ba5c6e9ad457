// 8.4.1: motion vector prediction, as cpu_simd/mv_prediction.py has it. References: -1 intra, -2 not available.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

struct Motion {
  int ref, x, y;
};

DEVICE int median(int a, int b, int c) { return max(min(a, b), min(max(a, b), c)); }

// 8.4.1.3: the predictor from the neighbours A, B, C (C already replaced by D where 8.4.1.3.2 says so)
DEVICE int2 choose_predictor(int bx, int by, int bw, int bh, int ref, const Motion &a, const Motion &b, const Motion &c) {
  if (bw == 4 && bh == 2) {
    if (by == 0) {
      if (b.ref == ref) return make_int2(b.x, b.y);
    } else if (a.ref == ref) return make_int2(a.x, a.y);
  } else if (bw == 2 && bh == 4) {
    if (bx == 0) {
      if (a.ref == ref) return make_int2(a.x, a.y);
    } else if (c.ref == ref) return make_int2(c.x, c.y);
  }
  if (b.ref == -2 && c.ref == -2 && a.ref != -2) return make_int2(a.x, a.y);
  const int same = (a.ref == ref) + 2 * (b.ref == ref) + 4 * (c.ref == ref);
  if (same == 1) return make_int2(a.x, a.y);
  if (same == 2) return make_int2(b.x, b.y);
  if (same == 4) return make_int2(c.x, c.y);
  return make_int2(median(a.x, b.x, c.x), median(a.y, b.y, c.y));
}

// 6.4.12: the 4x4 block at (bx, by) relative to macroblock mb, -1 <= by <= 3, -1 <= bx <= 4. Read past the L1 cache:
// another block of threads may have written it just now.
DEVICE Motion neighbour(int mb, int bx, int by, const signed char *ref_idx, const short2 *mv, int mb_width, int first_mb) {
  const int column = mb % mb_width;
  int n = mb;
  if (bx < 0) {
    if (column == 0) return {-2, 0, 0};
    n--;
  } else if (bx > 3) {
    if (column == mb_width - 1) return {-2, 0, 0};
    n++;
  }
  if (by < 0) n -= mb_width;
  if (n < first_mb) return {-2, 0, 0};
  const int x = bx & 3, y = by & 3, ref = __ldcg(ref_idx + 4 * n + (y >> 1) * 2 + (x >> 1));
  if (ref < 0) return {-1, 0, 0};
  const short2 v = __ldcg(mv + 16 * n + 4 * y + x);
  return {ref, v.x, v.y};
}

// 6.4.11.7: whether the block above right of a partition precedes it, if it lies in this macroblock row
DEVICE bool corner_available(int bx, int by, int bw) {
  if (by == 0) return true;
  const int x = bx + bw;
  if (x > 3) return false;
  return ((by - 1) >> 1) * 2 + (x >> 1) <= (by >> 1) * 2 + (bx >> 1);
}

// 8.4.1.1: the vector of a P_Skip macroblock
DEVICE int2 predict_skip_mv(int mb, const signed char *ref_idx, const short2 *mv, int mb_width, int first_mb) {
  const Motion a = neighbour(mb, -1, 0, ref_idx, mv, mb_width, first_mb), b = neighbour(mb, 0, -1, ref_idx, mv, mb_width, first_mb);
  if (a.ref == -2 || b.ref == -2) return make_int2(0, 0);
  if (a.ref == 0 && a.x == 0 && a.y == 0) return make_int2(0, 0);
  if (b.ref == 0 && b.x == 0 && b.y == 0) return make_int2(0, 0);
  Motion c = neighbour(mb, 4, -1, ref_idx, mv, mb_width, first_mb);
  if (c.ref == -2) c = neighbour(mb, -1, -1, ref_idx, mv, mb_width, first_mb);
  return choose_predictor(0, 0, 4, 4, 0, a, b, c);
}
