// Weighted sample prediction (8.4.2.3).
// Samples of 8 bits only: words of four samples.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

// 8.4.2.3.2, explicit mode in one direction: four samples; log2: logWD
DEVICE unsigned weigh4(unsigned samples, int log2, int weight, int offset) {
  int s[4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = clip1(((byte_of(samples, i) * weight + ((1 << log2) >> 1)) >> log2) + offset);
  return pack4(s[0], s[1], s[2], s[3]);
}

// 8.4.2.3: the samples of a 4x4 block that entry `ref` of RefPicList0 predicts. weights: int32[MOST_WEIGHTED * N_WEIGHTS], see
// layout.py; plane: of chroma
DEVICE void weigh_block(const int *weights, int ref, bool luma, int plane, unsigned *samples) {
  if (unsigned(ref) >= unsigned(MOST_WEIGHTED)) return;
  weights += N_WEIGHTS * ref;
  if (!(weights[0] & (luma ? LUMA_WEIGHTED : CHROMA_WEIGHTED))) return;
  const int *pair = weights + (luma ? 2 : 5 + 2 * plane), log2 = weights[luma ? 1 : 4];
#pragma unroll
  for (int i = 0; i < 4; i++) samples[i] = weigh4(samples[i], log2, pair[0], pair[1]);
}
