// Where samples come from: global memory, or a texture object, which clamps coordinates by itself.
#pragma once
#include "simd.cuh"

// uint8[height, stride]; with CLAMP coordinates outside the picture take the edge's sample, else they must not occur
template <bool CLAMP>
struct Linear {
  const uint8_t *samples;
  int stride, width, height;
  DEVICE int at(int x, int y) const {
    if (CLAMP) x = clip3(0, width - 1, x), y = clip3(0, height - 1, y);
    return samples[size_t(y) * stride + x];
  }
};
// Point sampling, coordinates not normalised, the element as it is (cudaReadModeElementType): no filter, no other value
struct Texture {
  cudaTextureObject_t object;
  DEVICE int at(int x, int y) const { return tex2D<unsigned char>(object, float(x) + 0.5f, float(y) + 0.5f); }
};
