// What a warp needs to code a macroblock, by CAVLC and by CABAC.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

// Modules for B slices define B_SLICES before they include their kernels: those for other slices have no code for B macroblocks.
#ifdef B_SLICES
constexpr bool IS_B = true;
#define LIST1_PARAMETERS , int n_ref1, const signed char *ref_idx1, const unsigned *mv1
#define LIST1 , n_ref1, ref_idx1, mv1
#else
constexpr bool IS_B = false;
#define LIST1_PARAMETERS
#define LIST1
#endif
constexpr int SKIP = IS_B ? B_SKIP : P_SKIP;

struct State {
  const int *__restrict__ slice_first_mb, *__restrict__ frame_params;
  int n_ref, mb_width;
  const uint8_t *__restrict__ mb_type, *__restrict__ sub_mb_type;
  const signed char *__restrict__ ref_idx;
  const unsigned *__restrict__ mv;
  const signed char *__restrict__ intra4x4_mode;
  const uint8_t *__restrict__ intra16x16_mode, *__restrict__ intra_chroma_mode, *__restrict__ cbp, *__restrict__ qp;
  const short *__restrict__ levels;
  const uint8_t *__restrict__ total_coeff, *__restrict__ transform_8x8;
  int transform_8x8_mode;
  int n_ref1;  // these for B slices only
  const signed char *__restrict__ ref_idx1;
  const unsigned *__restrict__ mv1;
};

// The macroblock of a warp
struct CurrentMb {
  int mb, first_mb, mb_type, pattern;
  bool left, above;
};

DEVICE bool has_residual(const State &s, int mb, int mb_type) { return mb_type == I_16x16 || (mb_type != SKIP && mb_type != I_PCM && s.cbp[mb]); }

// 8.3.1.1: the predicted mode of an Intra 4x4 block
DEVICE int predicted_mode(const State &s, const CurrentMb &o, int raster) {
  const int bx = raster & 3, by = raster >> 2;
  const signed char *modes = s.intra4x4_mode + 16 * size_t(o.mb);
  if (!(bx || o.left) || !(by || o.above)) return 2;
  return min(int(modes[bx ? raster - 1 : raster + 3 - 16]), int(modes[by ? raster - 4 : raster + 12 - 16 * s.mb_width]));
}

DEVICE unsigned nonzero_levels(const short *levels) {
  const uint4 *w = reinterpret_cast<const uint4 *>(levels);
  const uint4 a = __ldg(w), b = __ldg(w + 1);
  const unsigned words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  unsigned mask = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) mask |= unsigned((words[i] & 0xffff) != 0) << (2 * i) | unsigned((words[i] >> 16) != 0) << (2 * i + 1);
  return mask;
}

// Sum of `value` over the lanes before this one; all: over all lanes
DEVICE int sum_before(int value, int &all) {
  const int lane = threadIdx.x & 31;
  int upto = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int v = __shfl_up_sync(FULL_WARP, upto, unsigned(step));
    if (lane >= step) upto += v;
  }
  all = __shfl_sync(FULL_WARP, upto, 31);
  return upto - value;
}
