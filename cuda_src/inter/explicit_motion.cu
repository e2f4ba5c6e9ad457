// Direct macroblocks whose neighbours became I_PCM after the mode decision: their motion is written explicitly.
#include "inter/explicit_motion_launch.cuh"
#include "inter/mv_prediction.cuh"
#include "simd.cuh"

struct Neighbours {
  Motion a, b, c;
};

// 8.4.1.2.2: MinPositive
DEVICE int min_positive(int a, int b) { return a >= 0 && b >= 0 ? min(a, b) : max(a, b); }

// The neighbours of a macroblock in one list, C replaced by D where it is not available
DEVICE Neighbours neighbours_of(int mb, int mb_width, int first_mb, const signed char *ref_idx, const unsigned *mv) {
  Motion c = motion_of(neighbour_block(mb, 4, -1, mb_width, first_mb), ref_idx, mv);
  if (c.ref == -2) c = motion_of(neighbour_block(mb, -1, -1, mb_width, first_mb), ref_idx, mv);
  return {motion_of(neighbour_block(mb, -1, 0, mb_width, first_mb), ref_idx, mv),
          motion_of(neighbour_block(mb, 0, -1, mb_width, first_mb), ref_idx, mv), c};
}

DEVICE int direct_reference(const Neighbours &n) { return min_positive(n.a.ref, min_positive(n.b.ref, n.c.ref)); }

// Macroblocks [mb0, mb1), a thread each. Motion; colZeroFlag of quadrants; first macroblocks of slices, by macroblock
extern "C" __global__ void __launch_bounds__(THREADS) explicit_motion(uint8_t *mb_type, uint8_t *sub_mb_type,
    const signed char *ref_idx, const unsigned *mv, const signed char *ref_idx1, const unsigned *mv1, const uint8_t *colocated_still,
    const int *slice_first_mb, int mb_width, int mb0, int mb1) {
  wait_for_the_kernel_before();
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= mb1) return;
  const int type_of_mb = mb_type[mb], first_mb = slice_first_mb[mb];
  if (type_of_mb != B_SKIP && type_of_mb != B_DIRECT && type_of_mb != B_8x8) return;
  const Neighbours n0 = neighbours_of(mb, mb_width, first_mb, ref_idx, mv);
  const Neighbours n1 = neighbours_of(mb, mb_width, first_mb, ref_idx1, mv1);
  const int direct_ref0 = direct_reference(n0), direct_ref1 = direct_reference(n1);
  const bool none = direct_ref0 < 0 && direct_ref1 < 0;
  const unsigned v0 = direct_ref0 >= 0 ? choose_predictor(0, 0, 4, 4, direct_ref0, n0.a, n0.b, n0.c) : 0;
  const unsigned v1 = direct_ref1 >= 0 ? choose_predictor(0, 0, 4, 4, direct_ref1, n1.a, n1.b, n1.c) : 0;
  const int ref0 = none ? 0 : max(direct_ref0, -1), ref1 = none ? 0 : max(direct_ref1, -1), still = colocated_still[mb];
  bool same = true;
  for (int q = 0; q < 4; q++) {
    if (type_of_mb == B_8x8 && sub_mb_type[4 * mb + q] != B_SUB_DIRECT) continue;
    const int block = 16 * mb + 8 * (q >> 1) + 2 * (q & 1);
    const bool zero = still >> q & 1;
    same &= ref_idx[4 * mb + q] == ref0 && mv[block] == (zero && ref0 == 0 ? 0 : v0);
    same &= ref_idx1[4 * mb + q] == ref1 && mv1[block] == (zero && ref1 == 0 ? 0 : v1);
  }
  if (same) return;
  for (int q = 0; q < 4; q++)
    if (type_of_mb != B_8x8 || sub_mb_type[4 * mb + q] == B_SUB_DIRECT)
      sub_mb_type[4 * mb + q] = uint8_t(B_SUB_L0 - 1 + (ref_idx[4 * mb + q] >= 0) + 2 * (ref_idx1[4 * mb + q] >= 0));
  mb_type[mb] = B_8x8;
}
