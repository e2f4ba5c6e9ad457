// Intra refresh: macroblocks of a P picture that become intra, so that samples up to the end of a bar are clean.
//
// Twin of cpu_simd/intra/intra_refresh.py, which explains it; a thread a macroblock. The modes of all macroblocks come from
// intra_estimate.cu, in an array of their own.
#include "intra/intra_refresh_launch.cuh"
#include "decisions/intra.cuh"
#include "simd.cuh"
#include "tables.cuh"

// Columns [begin, end) of macroblocks; vectors: of 4x4 blocks, x and y of 16 bits
DEVICE bool reads_beyond(const unsigned *vectors, int x0, int limit) {
  bool beyond = false;
#pragma unroll
  for (int k = 0; k < 16; k++) {
    const int x = static_cast<short>(vectors[k] & 0xffff);
    beyond |= x0 + 4 * (k & 3) + 3 + (x >> 2) + (x & 3 ? TAPS : 0) >= limit;
  }
  return beyond;
}

// What is taken from sixteen modes, and the mode of block ABOVE_RIGHT, so that none reads samples above right
DEVICE int without_above_right(int *last) {
  int less = 0;
  if (*last >= AS_8x8) {
    *last -= AS_8x8;
    if (*last == HORIZONTAL || *last == TO_HORIZONTAL_DOWN || *last == TO_HORIZONTAL_UP) {
      *last += AS_8x8;
      return 0;
    }
    less = AS_8x8;
  }
  if (*last == TO_DOWN_LEFT || *last == TO_VERTICAL_LEFT) *last = VERTICAL;
  return less;
}

extern "C" __global__ void __launch_bounds__(THREADS) intra_refresh(const int *__restrict__ slice_first_mb,
    const int *__restrict__ refresh_columns, int disable_idc, int mb_width, int mb0, int mb1,
    const uint8_t *__restrict__ estimated, uint8_t *mb_type, uint8_t *sub_mb_type, signed char *ref_idx, unsigned *mv,
    uint8_t *intra_modes) {
  wait_for_the_kernel_before();
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x), begin = refresh_columns[0], end = refresh_columns[1];
  if (mb >= mb1) return;
  const int mx = mb % mb_width, limit = 16 * begin - (disable_idc == 1 ? 0 : DEBLOCKED);
  if (mx >= end) return;
  unsigned *const vectors = mv + 16 * size_t(mb);
  if (mx < begin && (mb_type[mb] <= LAST_INTRA || !reads_beyond(vectors, 16 * mx, limit))) return;
  const uint8_t *modes = estimated + 16 * size_t(mb);
  int last = modes[ABOVE_RIGHT], less = 0;
  if (mx == end - 1 && end < mb_width && mb - mb_width >= slice_first_mb[mb]) less = without_above_right(&last);
#pragma unroll
  for (int k = 0; k < 16; k++) {
    intra_modes[16 * size_t(mb) + k] = uint8_t(k == ABOVE_RIGHT ? last : modes[k] - less);
    vectors[k] = 0;
  }
  reinterpret_cast<unsigned *>(sub_mb_type)[mb] = 0x01010101u * SUB_8x8;
  reinterpret_cast<unsigned *>(ref_idx)[mb] = ~0u;
  mb_type[mb] = I_16x16;
}
