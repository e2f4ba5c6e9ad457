// Weighted sample prediction of reference 0 (8.4.2.3).
#pragma once
#include "simd.cuh"

// 8.4.2.3.2, explicit mode in one direction: four samples; log2: logWD
DEVICE unsigned weigh4(unsigned samples, int log2, int weight, int offset) {
  int s[4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i] = clip255(((byte_of(samples, i) * weight + ((1 << log2) >> 1)) >> log2) + offset);
  return pack4(s[0], s[1], s[2], s[3]);
}
