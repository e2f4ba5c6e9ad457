// 8.7.2.3, 8.7.2.4: the deblocking filter of one line across an edge, and where its strength and thresholds stand.
#pragma once
#include "loopfilter/deblock_launch.cuh"
#include "simd.cuh"

// 8.7.2.3, 8.7.2.4: one line across an edge; s is its q0, d the distance from sample to sample
template <bool LUMA>
DEVICE void filter_line(Sample *s, int d, unsigned bs, unsigned limits) {
  const int p0 = s[-d], p1 = s[-2 * d], q0 = s[0], q1 = s[d];
  const int alpha = int(limits & 255), beta = int(limits >> 8 & 255);
  if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
  if (bs < 4) {
    const int tc0 = int(limits >> (11 + 5 * bs) & 31);
    if (LUMA) {
      const int p2 = s[-3 * d], q2 = s[2 * d];
      const bool p_near = abs(p2 - p0) < beta, q_near = abs(q2 - q0) < beta;
      const int tc = tc0 + p_near + q_near, middle = (p0 + q0 + 1) >> 1;
      const int delta = clip3(-tc, tc, (4 * (q0 - p0) + (p1 - q1) + 4) >> 3);
      s[-d] = Sample(clip1(p0 + delta));
      s[0] = Sample(clip1(q0 - delta));
      if (p_near) s[-2 * d] = Sample(p1 + clip3(-tc0, tc0, (p2 + middle - 2 * p1) >> 1));
      if (q_near) s[d] = Sample(q1 + clip3(-tc0, tc0, (q2 + middle - 2 * q1) >> 1));
    } else {
      const int tc = tc0 + 1, delta = clip3(-tc, tc, (4 * (q0 - p0) + (p1 - q1) + 4) >> 3);
      s[-d] = Sample(clip1(p0 + delta));
      s[0] = Sample(clip1(q0 - delta));
    }
    return;
  }
  if (!LUMA) {
    s[-d] = Sample((2 * p1 + p0 + q1 + 2) >> 2);
    s[0] = Sample((2 * q1 + q0 + p1 + 2) >> 2);
    return;
  }
  const int p2 = s[-3 * d], q2 = s[2 * d];
  const bool small = abs(p0 - q0) < (alpha >> 2) + 2;
  if (small && abs(p2 - p0) < beta) {
    const int p3 = s[-4 * d];
    s[-d] = Sample((p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3);
    s[-2 * d] = Sample((p2 + p1 + p0 + q0 + 2) >> 2);
    s[-3 * d] = Sample((2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3);
  } else {
    s[-d] = Sample((2 * p1 + p0 + q1 + 2) >> 2);
  }
  if (small && abs(q2 - q0) < beta) {
    const int q3 = s[3 * d];
    s[0] = Sample((p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3);
    s[d] = Sample((p0 + q0 + q1 + q2 + 2) >> 2);
    s[2 * d] = Sample((2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3);
  } else {
    s[0] = Sample((2 * q1 + q0 + p1 + 2) >> 2);
  }
}

DEVICE unsigned strength_of(const unsigned *record, int direction, int edge, int k) {
  int n = direction * 16 + edge * 4 + k;
  return record[n >> 3] >> (4 * (n & 7)) & 15;
}
DEVICE int edge_class_of(int direction, int edge) { return edge ? 2 : direction; }
