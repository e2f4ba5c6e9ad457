// 8.3: intra prediction in a thread's registers, four words of four samples a 4x4 block.
//
// Intra_4x4 (8.3.1.2): the edge is sixteen bytes: 0 = sample 1 again, 1..4 = left column from bottom to top, 5 = corner,
// 6..13 = the row above and above right, 14 = sample 13 again. Each sample of a directional mode is a (1, 2, 1) filter F
// or a mean H along it.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "simd.cuh"

DEVICE unsigned splat4(int v) { return unsigned(v) * 0x01010101u; }
// four rounded-down averages
DEVICE unsigned average4_down(unsigned a, unsigned b) { return (a & b) + (((a ^ b) >> 1) & 0x7f7f7f7fu); }
// bytes i..i + 3 of a row of words, i known to the compiler
DEVICE unsigned window(const unsigned *w, int i) { return i & 3 ? unaligned(w[i >> 2], w[(i >> 2) + 1], i & 3) : w[i >> 2]; }

// F (i: samples i - 1, i, i + 1) and H (i: samples i, i + 1) of the edge s; F of 0 and H of 15 are not used
DEVICE void filter_edge(const unsigned *s, unsigned *f, unsigned *h) {
#pragma unroll
  for (int w = 0; w < 4; w++) {
    const unsigned before = __byte_perm(w ? s[w - 1] : s[0], s[w], 0x6543), after = __byte_perm(s[w], w < 3 ? s[w + 1] : 0, 0x4321);
    f[w] = average4(average4_down(before, after), s[w]);
    h[w] = average4(s[w], after);
  }
}

// 8.3.1.2.1 - 8.3.1.2.9: the four rows of a mode known to the compiler
template <int MODE>
DEVICE void predict_4x4(const unsigned *s, const unsigned *f, const unsigned *h, unsigned dc, unsigned *row) {
  if (MODE == 0) {
    row[0] = row[1] = row[2] = row[3] = window(s, 6);
  } else if (MODE == 1) {
#pragma unroll
    for (int y = 0; y < 4; y++) row[y] = splat4(byte_of(s[(4 - y) >> 2], (4 - y) & 3));
  } else if (MODE == 2) {
    row[0] = row[1] = row[2] = row[3] = dc;
  } else if (MODE == 3) {
#pragma unroll
    for (int y = 0; y < 4; y++) row[y] = window(f, 7 + y);
  } else if (MODE == 4) {
#pragma unroll
    for (int y = 0; y < 4; y++) row[y] = window(f, 5 - y);
  } else if (MODE == 5) {
    row[0] = window(h, 5);
    row[1] = window(f, 5);
    row[2] = row[0] << 8 | (f[1] & 255);
    row[3] = row[1] << 8 | f[0] >> 24;
  } else if (MODE == 6) {
    const unsigned low = __byte_perm(window(h, 1), window(f, 2), 0x5140);   // H1 F2 H2 F3
    const unsigned high = __byte_perm(window(h, 3), window(f, 4), 0x5140);  // H3 F4 H4 F5
    row[0] = __byte_perm(high, window(f, 6), 0x5432);
    row[1] = high;
    row[2] = __byte_perm(low, high, 0x5432);
    row[3] = low;
  } else if (MODE == 7) {
    row[0] = window(h, 6);
    row[1] = window(f, 7);
    row[2] = window(h, 7);
    row[3] = window(f, 8);
  } else {
    row[0] = __byte_perm(h[0], f[0], 0x6273);  // H3 F3 H2 F2
    row[1] = __byte_perm(h[0], f[0], 0x5162);  // H2 F2 H1 F1
    row[2] = __byte_perm(h[0], f[0], 0x0051);  // H1 F1 H0 H0
    row[3] = splat4(int(h[0] & 255));
  }
}

// The sum over the sixteen lanes of a half of the warp, in each of them
DEVICE int sum_16(int v) {
#pragma unroll
  for (int step = 8; step; step >>= 1) v += __shfl_xor_sync(FULL_WARP, v, step);
  return v;
}

// 8.3.3.4, 8.3.4.4: a 4x4 block of plane prediction; base: the value at its first sample, b and c the steps, times 32
DEVICE void predict_plane(int base, int b, int c, unsigned *row) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int v = base + c * i;
    row[i] = pack4(clip1(v >> 5), clip1((v + b) >> 5), clip1((v + 2 * b) >> 5), clip1((v + 3 * b) >> 5));
  }
}

// 8.3.3.3: DC of a macroblock; l, t: of lane k and k + 16 sample k of the column to the left and of the row above, or 0
DEVICE int mean_16x16(bool left, bool top, int l, int t) {
  const int count = 16 * left + 16 * top, total = sum_16(t + l);
  return count ? (total + (count >> 1)) / count : SAMPLE_MIDDLE;
}
// 8.3.3.4: the plane in block lane & 15
DEVICE void plane_16x16(int l, int t, int corner, int lane, unsigned *row) {
  const int k = lane & 15;
  const int b = (5 * (sum_16((k - 7) * t) - 8 * corner) + 32) >> 6, c = (5 * (sum_16((k - 7) * l) - 8 * corner) + 32) >> 6;
  const int last = __shfl_sync(FULL_WARP, t + l, lane | 15);
  predict_plane(16 * last + 16 + b * (4 * (k & 3) - 7) + c * (4 * (k >> 2) - 7), b, c, row);
}

// The edge of a block as filter_edge takes it. side: the four samples to the left; above, beyond: eight samples above
DEVICE void pack_edge(const unsigned *side, unsigned corner, unsigned above, unsigned beyond, unsigned *s) {
  s[0] = side[3] | side[3] << 8 | side[2] << 16 | side[1] << 24;
  s[1] = side[0] | corner << 8 | above << 16;
  s[2] = above >> 16 | beyond << 16;
  s[3] = beyond >> 16 | (beyond >> 24) * 0x01010000u;
}

// The neighbours of a macroblock that are available
struct Around {
  bool left, top, right, corner;  // available; right: above right; corner: above left, which a slice that begins above excludes
};
// Blocks, as bits, in which an Intra_4x4 mode is usable. lefts, tops: those that have a left column, a row above; needs: see LanePlace
DEVICE int usable_in(const Around &around, int lefts, int tops, int needs) {
  const int usable = needs & 4 ? 0 : (needs & 1 ? lefts : 0xffff) & (needs & 2 ? tops : 0xffff);
  return (needs & 3) == 3 && !around.corner ? usable & ~1 : usable;
}
