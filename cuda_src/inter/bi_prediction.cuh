// Inter prediction of 4x4 blocks of B macroblocks, one in a thread: one or both lists (8.4.2), implicit weights (8.4.2.3).
#pragma once
#include "inter/motion_compensation.cuh"

// RefPicList0 and RefPicList1, see References in cpu_simd/bundles.py; width, height: of the frame, luma samples
struct BothLists {
  const Sample *luma, *chroma;
  const int *slots, *weights;  // weights: bi_weights
  int pad, n_ref, n_ref1, width, height;
};

// What both lists predict a quadrant from: entries, -1: not used; vectors
struct BothMotion {
  int ref[2];
  short2 mv[2];
};

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
    unsigned predicted[4];
    if (lane < 16) {
      const int wide = lists.width + 2 * pad, high = lists.height + 2 * pad;
      predict_luma(lists.luma + slot * 4 * wide * high, wide, high, pad, mx * 16, my * 16, bx, by, {bx, by, 1, 1}, v, predicted);
    } else {
      const int wide = chroma_width(lists.width, pad), high = chroma_height(lists.height, pad);
      predict_chroma_4x4(lists.chroma + (slot * 2 + plane) * wide * high, wide, high, pad / SUB_WIDTH_C, mx * MB_WIDTH_C,
                         my * MB_HEIGHT_C, lane & 3, v, predicted);
    }
    if (n && m.ref[0] >= 0) {
      const int weight = lists.weights[m.ref[0] * lists.n_ref1 + m.ref[1]];
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = weigh_both(out[i], predicted[i], weight);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = predicted[i];
    }
  }
}
