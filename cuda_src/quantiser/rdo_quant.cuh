// Rate-distortion-optimised quantisation of one 4x4 block in a thread: twin of cpu_simd/quantiser/rdo_quant.py, which explains it.
#pragma once
#include "decisions/quantise.cuh"
#include "residual/transform.cuh"

// 9.2: bits of a block with levels at `mask`, those at `ones` of magnitude one, but for what the larger ones cost
DEVICE int bits_of(unsigned mask, unsigned ones, int nc_class) {
  const int total = __popc(mask);
  if (total == 0) return COEFF_TOKEN_BITS[nc_class][0][0];
  unsigned rest = mask;
  int trailing = 0;
  while (rest && trailing < 3) {
    const int last = 31 - __clz(int(rest));
    if (!(ones >> last & 1)) break;
    trailing++;
    rest ^= 1u << last;
  }
  int last = 31 - __clz(int(mask)), zeros = last + 1 - total;
  int bits = COEFF_TOKEN_BITS[nc_class][total][trailing] + trailing + 2 * __popc(rest & ones) + TOTAL_ZEROS_BITS[total][zeros];
  rest = mask ^ 1u << last;
  while (zeros > 0 && rest) {
    const int here = 31 - __clz(int(rest)), run = last - here - 1;
    bits += RUN_BEFORE_BITS[min(zeros, 7)][run];
    zeros -= run;
    rest ^= 1u << here;
    last = here;
  }
  return bits;
}

// Removes levels of a block that are not worth their bits. c: levels (raster, registers), `ones` those of magnitude one, `mask` all
// that are not 0, by scan position; ratios: |coefficient| / step, uint16[16 * 32] in shared memory, [i * 32] the own ones; first: 1
// leaves the DC out.
DEVICE void weigh(int *c, unsigned mask, unsigned ones, int first, const uint16_t *ratios) {
  const int count = __popc(mask), sure = count <= RDO_MANY_LEVELS ? RDO_SURE_RATIO : RDO_SURE_RATIO_OF_MANY, nc_class = NC_CLASS[min(16, count + 2)];
  unsigned maybe = 0;
  for (unsigned rest = ones; rest; rest &= rest - 1) {
    const int i = __ffs(int(rest)) - 1;
    maybe |= unsigned(ratios[32 * i] < sure) << i;
  }
  if (!maybe) return;
  const unsigned before = mask;
  int bits = bits_of(mask >> first, ones >> first, nc_class);
  for (unsigned rest = maybe; rest;) {
    const int i = 31 - __clz(int(rest));
    const unsigned one = 1u << i;
    rest ^= one;
    const int without = bits_of((mask ^ one) >> first, (ones & ~one) >> first, nc_class);
    if (RDO_BIT * (bits - without) > 2 * ratios[32 * i] - RDO_ONE) {
      mask ^= one;
      ones &= ~one;
      bits = without;
    }
  }
  if (mask && mask == ones) {
    int saved = 0;
    for (unsigned rest = mask; rest; rest &= rest - 1) saved += 2 * ratios[32 * (__ffs(int(rest)) - 1)] - RDO_ONE;
    if (RDO_BIT * (bits - COEFF_TOKEN_BITS[nc_class][0][0]) > saved) mask = 0;
  }
  const unsigned dropped = before & ~mask;
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (dropped >> i & 1) c[digit(ZIGZAG_4x4_DIGITS, i)] = 0;
}

// Coefficients (raster, registers) to the levels that are worth their bits. ratios: as weigh takes them; first: 1 leaves the DC
// out (level 0).
template <class Scaling>
DEVICE void quantise_weighed(const Scaling &scaling, int *c, int qp, int first, uint16_t *ratios) {
  const int shift = 15 + qp / 6 - scaling.finer(), half = 1 << (shift - 1);
  const auto factors = scaling.multipliers(qp);
  unsigned mask = 0, ones = 0;
  if (first) c[0] = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int p = digit(ZIGZAG_4x4_DIGITS, i), scaled = abs(c[p]) * factors.at(p);
    const int ratio = min(scaled >> (shift - 6), 32767);
    int level = (scaled + half) >> shift;
    if (Scaling::ANY) level = min(level, MAX_LEVEL);
    mask |= unsigned(level != 0) << i;
    if (level > 1 && ratio < RDO_ONE * (level - 1) + RDO_UP) level--;
    ones |= unsigned(level == 1) << i;
    ratios[32 * i] = uint16_t(ratio);
    c[p] = c[p] < 0 ? -level : level;
  }
  weigh(c, mask, ones, first, ratios);
}
