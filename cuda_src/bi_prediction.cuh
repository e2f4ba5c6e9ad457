// Inter prediction of 4x4 blocks of B macroblocks, one in a thread: one or both lists (8.4.2), implicit weights (8.4.2.3).
#pragma once
#include "motion_compensation.cuh"

// RefPicList0 and RefPicList1, see References in cpu_simd/bundles.py; width, height: of the frame, luma samples
struct BothLists {
  const uint8_t *luma, *chroma;
  const int *slots, *weights;  // weights: bi_weights
  int pad, n_ref, n_ref1, width, height;
};

// What both lists predict a quadrant from: entries, -1: not used; vectors
struct BothMotion {
  int ref[2];
  short2 mv[2];
};

// 8.4.2.2.2 for a 4x4 block of chroma with one vector; (x, y): its place in the plane with its border
DEVICE void predict_chroma_4x4(const uint8_t *plane, int width, int height, int x, int y, short2 v, unsigned *out) {
  const uint8_t *from = plane + size_t(clip3(0, height - 5, y + (v.y >> 3))) * width + clip3(0, width - 5, x + (v.x >> 3));
  const int fx = v.x & 7, fy = v.y & 7, wa = (8 - fx) * (8 - fy), wb = fx * (8 - fy), wc = (8 - fx) * fy, wd = fx * fy;
  unsigned above = load_word(from), above_right = __ldg(from + 4);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    from += width;
    const unsigned below = load_word(from), below_right = __ldg(from + 4);
    int s[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int b = j < 3 ? byte_of(above, (j + 1) & 3) : int(above_right), d = j < 3 ? byte_of(below, (j + 1) & 3) : int(below_right);
      s[j] = (wa * byte_of(above, j) + wb * b + wc * byte_of(below, j) + wd * d + 32) >> 6;
    }
    out[i] = pack4(s[0], s[1], s[2], s[3]);
    above = below;
    above_right = below_right;
  }
}

// 8.4.2.3.2, implicit weights: logWD 5, no offset; four samples. weight: of b, of 64
DEVICE unsigned weigh_both4(unsigned a, unsigned b, int weight) {
  int s[4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = clip255((byte_of(a, i) * (64 - weight) + byte_of(b, i) * weight + 32) >> 6);
  return pack4(s[0], s[1], s[2], s[3]);
}

// The lane's block of macroblock (mx, my), four rows: lanes 0..15 luma in raster order, 16..19 Cb, 20..23 Cr. m: of its quadrant
DEVICE void predict_both(const BothLists &lists, const BothMotion &m, int mx, int my, int lane, unsigned *out) {
  const int bx = lane & 3, by = lane >> 2 & 3, plane = lane >> 2 & 1, pad = lists.pad;
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = 0;
  if (lane >= 24) return;
#pragma unroll 1
  for (int n = 0; n < 2; n++) {
    if (m.ref[n] < 0) continue;
    const size_t slot = lists.slots[n ? lists.n_ref + m.ref[1] : m.ref[0]];
    const short2 v = m.mv[n];
    unsigned own[4];
    if (lane < 16) {
      const int wide = lists.width + 2 * pad, high = lists.height + 2 * pad;
      predict_luma(lists.luma + slot * 4 * wide * high, wide, high, pad, mx * 16, my * 16, bx, by, {bx, by, 1, 1}, v, own);
    } else {
      const int wide = lists.width / 2 + pad, high = lists.height / 2 + pad;
      predict_chroma_4x4(lists.chroma + (slot * 2 + plane) * wide * high, wide, high, mx * 8 + 4 * (lane & 1) + pad / 2,
                         my * 8 + 2 * (lane & 2) + pad / 2, v, own);
    }
    if (n && m.ref[0] >= 0) {
      const int weight = lists.weights[m.ref[0] * lists.n_ref1 + m.ref[1]];
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = weight == 32 ? average4(out[i], own[i]) : weigh_both4(out[i], own[i], weight);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = own[i];
    }
  }
}
