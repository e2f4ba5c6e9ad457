// Choice of a QP near that of an inter macroblock: twin of cpu_simd/residual/inter_residual_qp.py, which explains it.
#pragma once
#include "decisions/quantise.cuh"
#include "residual/transform_choice.cuh"

// Least blocks of a multiprocessor with the choice of the transform: with more the assembler spills registers
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define RESIDENT_OF_QPS 1
#else
#define RESIDENT_OF_QPS 2
#endif

// A macroblock has one QP
struct OneQp {
  static constexpr bool ANY = false;
};
// QPs near that of the macroblock are tried within these limits, and the best one is stored in qp, of all macroblocks
struct NearQps {
  static constexpr bool ANY = true;
  uint8_t *qp;
  int least, most;
};

struct BestQp {
  long long cost;
  int qp;
};

// The QPs in the order of trial: that of the macroblock, one more, one less, ...
DEVICE int near_qp(int qp, int turn) { return qp + (turn & 1 ? (turn + 1) >> 1 : -(turn >> 1)); }

// Bits of the levels and of coded_block_pattern, `pattern`. c: of the lane's block, 0 where they are not coded, that of chroma without the
// DC; masks: of these; dc: a chroma lane's level of the DC, else 0; sizes: uint16 of the warp, [i * 32] the lane's own, scratch
DEVICE int residual_bits(const int *c, const Masks &masks, bool is_8x8, int pattern, int dc, uint16_t *sizes, const unsigned *bits, int lane) {
  const bool luma = lane < 16, chroma = lane >= 16 && lane < 24;
  const int quarter = (lane >> 1 & 2) | (lane & 1), quadrant = (lane >> 3) * 2 + (lane >> 1 & 1), ac = chroma;
#pragma unroll
  for (int i = 0; i < 16; i++) sizes[32 * i] = uint16_t(abs(c[digit(ZIGZAG_4x4_DIGITS, i)]));
  Masks_8x8 all = {{masks.coded >> ac, masks.larger >> ac}, {0, 0}};
  if (is_8x8) {
    const Masks_8x8 of_quadrant = masks_of_quadrant(masks, quarter);
    if (luma) all = of_quadrant;
  }
  const bool is_coded = luma ? pattern >> quadrant & 1 : chroma && pattern & 32;
  int total = 0;
  if (is_coded) {
    total = bits_of_levels(sizes + 32 * ac, masks.coded >> ac, all, is_8x8 && luma, chroma, quarter, bits);
    if (!(is_8x8 && luma)) total += mean_bits(bits + (chroma ? AT_CODED_4 : AT_CODED_2), masks.coded != 0);
  }
  const int of_dc = dc_share(dc, chroma, bits, lane);
  if (pattern >> 4) total += of_dc;
  total = int(__reduce_add_sync(FULL_WARP, unsigned(total)));
#pragma unroll
  for (int q = 0; q < 4; q++) total += mean_bits(bits + AT_CODED_5, pattern >> q & 1);
  total += mean_bits(bits + AT_CHROMA_PATTERN, pattern >> 4);
  return pattern >> 4 ? total + mean_bits(bits + AT_CHROMA_PATTERN + 4, pattern >> 5) : total;
}
