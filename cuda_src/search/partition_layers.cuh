// The seven layers of partitions that cover a macroblock (cpu_simd/layout.py): 4x4, 8x4, 4x8, 8x8, 16x8, 8x16, 16x16.
#pragma once
#include "simd.cuh"

constexpr int LAYERS = 7;
struct Layer {
  int partition, width, height;  // in 4x4 blocks
  unsigned shared;               // bytes: 1 if the block 1, 2, 4, 8 lanes away belongs to the same partition
};
// The partition of a layer that holds 4x4 block `block` (raster order)
DEVICE Layer layer_of(int layer, int block) {
  const int bx = block & 3, by = block >> 2, q = (by >> 1) * 2 + (bx >> 1);
  switch (layer) {
    case 0: return {block, 1, 1};
    case 1: return {16 + 2 * q + (by & 1), 2, 1};
    case 2: return {24 + 2 * q + (bx & 1), 1, 2};
    case 3: return {32 + q, 2, 2};
    case 4: return {36 + (by >> 1), 4, 2};
    case 5: return {38 + (bx >> 1), 2, 4};
    default: return {40, 4, 4};
  }
}
