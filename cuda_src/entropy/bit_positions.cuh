// Changes of positions in a slice by its parts, some of which end at a multiple of a unit; and their sums.
#pragma once
#include "simd.cuh"

// The entry of the first macroblock of a row: one more follows each row
DEVICE int entry_at(int first_mb, int mb_width) { return first_mb + first_mb / mb_width; }

constexpr int SAMPLE_BITS = MB_SAMPLES * BIT_DEPTH;  // of I_PCM

// p + before; with after >= 0 then to the next multiple of UNIT, plus `after`
template <int UNIT>
struct Advance {
  int before, after;
};
using BitAdvance = Advance<8>;  // of bits: the samples of I_PCM begin at a byte
template <int UNIT>
DEVICE int to_unit(int p) { return (p + UNIT - 1) & -UNIT; }
DEVICE int to_byte(int p) { return to_unit<8>(p); }
template <int UNIT>
DEVICE int apply(int p, const Advance<UNIT> &m) { return m.after < 0 ? p + m.before : to_unit<UNIT>(p + m.before) + m.after; }
template <int UNIT>
DEVICE Advance<UNIT> compose(const Advance<UNIT> &a, const Advance<UNIT> &b) {
  if (a.after < 0) return {a.before + b.before, b.after};
  return {a.before, apply(a.after, b)};
}
template <int UNIT>
DEVICE Advance<UNIT> scan(Advance<UNIT> m) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const Advance<UNIT> v = {__shfl_up_sync(FULL_WARP, m.before, unsigned(step)), __shfl_up_sync(FULL_WARP, m.after, unsigned(step))};
    if (lane >= step) m = compose(v, m);
  }
  return m;
}
// p after the threads of a block before this one, and in `all` after all of its 32 warps. warps: shared, [32]
template <int UNIT>
DEVICE int apply_in_block(int p, const Advance<UNIT> &advance, Advance<UNIT> *warps, int &all) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const Advance<UNIT> upto = scan(advance);
  if (lane == 31) warps[warp] = upto;
  __syncthreads();
  if (warp == 0) {
    const Advance<UNIT> sums = scan(warps[lane]);
    __syncwarp();
    warps[lane] = sums;
  }
  __syncthreads();
  const Advance<UNIT> before = {__shfl_up_sync(FULL_WARP, upto.before, 1u), __shfl_up_sync(FULL_WARP, upto.after, 1u)};
  all = apply(p, warps[31]);
  if (warp) p = apply(p, warps[warp - 1]);
  return lane ? apply(p, before) : p;
}
