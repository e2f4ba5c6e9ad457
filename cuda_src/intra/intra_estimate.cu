// Best intra modes of macroblocks of a P picture, and their cost, from source samples (not part of the standard).
//
// Two macroblocks a warp, a lane a 4x4 block: it predicts the block in every Intra_4x4 and Intra_16x16 mode. Only which mode
// is the predicted one depends on other blocks; that goes from lane to lane in seven diagonals. For Intra_8x8 (LARGE) the warp takes
// one block after another, four lanes a mode.
// Samples of 8 bits only: words of four samples.
#include "intra/intra_estimate_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/intra.cuh"
#include "intra/intra_8x8_modes.cuh"

// Places of the modes in the order in which they are tried: 2 0 3 7 1 8 4 5 6, the first wins a tie
constexpr unsigned long long RANK = 0x538762041ull;

// SATD of one mode, kept for when it is the predicted one; the least of all so far: cost << 8 | rank << 4 | mode
template <int MODE, int RANKED>
DEVICE void try_mode(const Transformed &source_transform, const unsigned *s, const unsigned *f, const unsigned *h, unsigned dc, bool usable, int lam,
                     uint16_t *satd, unsigned *best) {
  unsigned row[4];
  predict_4x4<MODE>(s, f, h, dc, row);
  const unsigned value = satd_4x4(source_transform, row);
  satd[MODE * 32] = uint16_t(usable ? value : 0xffff);
  if (usable) *best = min(*best, (value + unsigned(lam * mode_4x4_bits(false))) << 8 | RANKED << 4 | MODE);
}

// Cost of a macroblock as Intra_8x8, and its four modes, a byte each; valid in the lanes of its half of the warp
struct Estimate_8x8 {
  int cost;
  unsigned modes;
};
DEVICE void load_columns(const Sample *block, int width, int lane, int *w) {
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const unsigned two = __ldg(reinterpret_cast<const uint16_t *>(block + size_t(i) * width) + (lane & 3));
    w[i] = int((two & 255) | two >> 8 << 16);
  }
}
// source: Sample[height, width]; x0, y0, left, top, lam: of the lane's macroblock; values: Sample[VALUES] in shared memory
DEVICE Estimate_8x8 estimate_8x8(const Sample *source, int width, int x0, int y0, bool left, bool top, int lam, Sample *values, int lane) {
  const Trial trial = trial_of(lane);
  Estimate_8x8 result = {0, 0};
  int w[8];
  load_columns(source + size_t(y0 + (lane >> 3 & 1) * 8) * width + x0 + (lane >> 2 & 1) * 8, width, lane, w);
  const Spectrum spectra = spectrum_of(w, lane);
#pragma unroll 1
  for (int n = 0; n < 8; n++) {
    const int q = n & 3, half = n & 4 ? 16 : 0, bx = q & 1, by = q >> 1, weight = __shfl_sync(FULL_WARP, lam, half);
    const int x = __shfl_sync(FULL_WARP, x0, half) + 8 * bx, y = __shfl_sync(FULL_WARP, y0, half) + 8 * by;
    const Neighbours around = {__shfl_sync(FULL_WARP, int(left), half) || bx, __shfl_sync(FULL_WARP, int(top), half) || by, (!by || !bx) && x + 8 < width};
    const Sample *block = source + size_t(y) * width + x;
    const bool inside = (lane > 8 || around.left) && (lane < 8 || around.top);
    const int sample = __ldg(block + (inside ? place_of_reference(around, width, lane) : 0));
    load_columns(block, width, lane, w);
    // 8.3.2.1: of the block to the left and above, inside the macroblock
    const unsigned modes = __shfl_sync(FULL_WARP, result.modes, half);
    const int predicted = min(bx ? byte_of(modes, q - 1) : MODE_DC, by ? byte_of(modes, q - 2) : MODE_DC);
    const Spectrum spectrum = {__shfl_sync(FULL_WARP, spectra.sum, half + 4 * q), __shfl_sync(FULL_WARP, spectra.others, half + 4 * q)};
    make_values(values, sample, around, lane);
    unsigned key = try_modes(w, values, around, trial, predicted, weight, lane);
    key = min(key, try_dc(spectrum, values[DC_8x8], predicted, weight));
    __syncwarp();
    if ((lane & 16) == half) {
      result.cost += int(key >> 4);
      result.modes |= (key & 15) << (8 * q);
    }
  }
  result.cost += lam * (BITS_ESTIMATED_8x8 + intra_4x4_type_bits());
  return result;
}

// source Sample[height, width]; search_cost int32[n_ref, n_mb, 41]; macroblock rows [row0, row0 + gridDim.y); intra_cost
// int32[n_mb]; intra_modes uint8[n_mb, 16]. LARGE: Intra_8x8 too
template <bool LARGE>
DEVICE void estimate(const Sample *__restrict__ source, int mb_width, const uint8_t *__restrict__ qp,
                     const int *__restrict__ search_cost, int n_ref, int n_mb, const int *__restrict__ slice_first_mb, int row0, int quiet,
                     int *intra_cost, uint8_t *intra_modes) {
  SHARED(uint16_t, all_satd, WARPS * 9 * 32);
  const int lane = threadIdx.x & 31, k = lane & 15, bx = k & 3, by = k >> 2;
  const int column = (int(blockIdx.x) * WARPS + int(threadIdx.x >> 5)) * 2 + (lane >> 4), mx = min(column, mb_width - 1);
  const int my = int(blockIdx.y) + row0, width = 16 * mb_width, x0 = 16 * mx, y0 = 16 * my, x = x0 + 4 * bx, y = y0 + 4 * by;
  uint16_t *satd = all_satd + (threadIdx.x >> 5) * (9 * 32) + lane;
  const int mb = my * mb_width + mx;
  const int lam = LAMBDA[load_before_the_wait(qp + mb)];
  wait_for_the_kernel_before();
  const int slice = __ldg(slice_first_mb + mb);
  const bool mb_left = x0 > 0 && mb > slice, mb_top = mb - mb_width >= slice, mb_corner = mb_left && mb - mb_width > slice;
  const bool left = mb_left || bx > 0, top = mb_top || by > 0, all = left && top && (k || mb_corner), right = (by == 0 || (ABOVE_RIGHT_INSIDE >> k & 1)) && x + 4 < width;
  const Sample *block = source + size_t(y) * width + x;
  unsigned rows[4], side[4], above = splat4(SAMPLE_MIDDLE), beyond = above, corner = SAMPLE_MIDDLE;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    rows[i] = __ldg(reinterpret_cast<const unsigned *>(block + size_t(i) * width));
    side[i] = left ? __ldg(reinterpret_cast<const unsigned *>(block + size_t(i) * width) - 1) >> 24 : SAMPLE_MIDDLE;
  }
  if (top) {
    const unsigned *row = reinterpret_cast<const unsigned *>(block - width);
    above = __ldg(row);
    beyond = right ? __ldg(row + 1) : splat4(int(above >> 24));
    if (left) corner = __ldg(row - 1) >> 24;
  }
  const Transformed source_transform = transformed(rows);
  unsigned s[4], f[4], h[4];
  pack_edge(side, corner, above, beyond, s);
  filter_edge(s, f, h);
  const int sum_left = int(side[0] + side[1] + side[2] + side[3]), sum_top = int(__dp4a(above, 0x01010101u, 0u));
  const int dc = left && top ? (sum_left + sum_top + 4) >> 3 : left ? (sum_left + 2) >> 2 : top ? (sum_top + 2) >> 2 : SAMPLE_MIDDLE;
  unsigned best = ~0u;
  try_mode<2, 0>(source_transform, s, f, h, splat4(dc), true, lam, satd, &best);
  try_mode<0, 1>(source_transform, s, f, h, 0, top, lam, satd, &best);
  try_mode<3, 2>(source_transform, s, f, h, 0, top, lam, satd, &best);
  try_mode<7, 3>(source_transform, s, f, h, 0, top, lam, satd, &best);
  try_mode<1, 4>(source_transform, s, f, h, 0, left, lam, satd, &best);
  try_mode<8, 5>(source_transform, s, f, h, 0, left, lam, satd, &best);
  try_mode<4, 6>(source_transform, s, f, h, 0, all, lam, satd, &best);
  try_mode<5, 7>(source_transform, s, f, h, 0, all, lam, satd, &best);
  try_mode<6, 8>(source_transform, s, f, h, 0, all, lam, satd, &best);
  const unsigned general = best;
#pragma unroll 1
  for (int diagonal = 0; diagonal < 7; diagonal++) {
    const int before = int(best & 15), a = __shfl_up_sync(FULL_WARP, before, 1), b = __shfl_up_sync(FULL_WARP, before, 4);
    const int predicted = min(bx ? a : 2, by ? b : 2);
    const unsigned value = satd[predicted * 32];
    if (bx + by == diagonal && value != 0xffff)
      best = min(general, (value + unsigned(lam * mode_4x4_bits(true))) << 8 | unsigned(RANK >> (4 * predicted) & 15) << 4 | unsigned(predicted));
  }
  const int cost_4x4 = sum_16(int(best >> 8)) + lam * (BITS_ESTIMATED_4x4 + intra_4x4_type_bits());
  // 8.3.3: lane k has the sample k of the row above and of the column to the left of its macroblock. The least of all so far:
  // cost << 4 | rank << 2 | mode
  const Sample *origin = source + size_t(y0) * width + x0;
  const int t = mb_top ? __ldg(origin - width + k) : 0, l = mb_left ? __ldg(origin + size_t(k) * width - 1) : 0;
  const int mean = mean_16x16(mb_left, mb_top, l, t);
  unsigned row[4] = {splat4(mean), splat4(mean), splat4(mean), splat4(mean)};
  unsigned cost = unsigned(sum_16(int(satd_4x4(source_transform, row))) + lam * intra_16x16_type_bits(MODE_DC)) << 4 | 0 << 2 | MODE_DC;
  if (__any_sync(FULL_WARP, mb_top)) {
    const unsigned word = mb_top ? __ldg(reinterpret_cast<const unsigned *>(origin - width) + bx) : 0;
    row[0] = row[1] = row[2] = row[3] = word;
    const unsigned value = unsigned(sum_16(int(satd_4x4(source_transform, row))) + lam * intra_16x16_type_bits(0));
    if (mb_top) cost = min(cost, value << 4 | 1 << 2 | 0);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) row[i] = splat4(__shfl_sync(FULL_WARP, l, (lane & 16) + 4 * by + i));
  unsigned value = unsigned(sum_16(int(satd_4x4(source_transform, row))) + lam * intra_16x16_type_bits(1));
  if (mb_left) cost = min(cost, value << 4 | 2 << 2 | 1);
  plane_16x16(l, t, mb_corner ? __ldg(origin - width - 1) : 0, lane, row);
  value = unsigned(sum_16(int(satd_4x4(source_transform, row))) + lam * intra_16x16_type_bits(3));
  if (mb_corner) cost = min(cost, value << 4 | 3 << 2 | 3);
  Estimate_8x8 large = {1 << 30, 0};
  if constexpr (LARGE) {
    SHARED(Sample, values, WARPS * VALUES);
    large = estimate_8x8(source, width, x0, y0, mb_left, mb_top, lam, values + (threadIdx.x >> 5) * VALUES, lane);
    if (!mb_corner && mb_left && mb_top) large.cost = 1 << 30;  // the edge is filtered otherwise
  }
  if (column >= mb_width) return;
  int limit = INTER_IS_CHEAPER;
  for (int r = 0; r < n_ref; r++) limit = min(limit, __ldg(search_cost + (size_t(r) * n_mb + mb) * 41 + 40) - lam * BITS_INTRA);
  const int cost_16x16 = int(cost >> 4), other = LARGE ? min(cost_16x16, large.cost) : cost_16x16, least = min(other, cost_4x4);
  unsigned mode = AS_16x16 + (cost & 3);
  if (LARGE && large.cost < cost_16x16) mode = AS_8x8 + unsigned(byte_of(large.modes, (by & 2) | bx >> 1));
  if (cost_4x4 < other) mode = best & 15;
  const bool is_cheaper = limit >= quiet * lam && least < limit;
  intra_modes[16 * size_t(mb) + k] = uint8_t(is_cheaper ? mode : AS_16x16 + MODE_DC);
  if (k == 0) intra_cost[mb] = is_cheaper ? least : INTER_IS_CHEAPER;
}

#define INTRA_ESTIMATE(name, large)                                                                                                \
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name(const Sample *__restrict__ source, int mb_width,                   \
      const uint8_t *__restrict__ qp, const int *__restrict__ search_cost, int n_ref, int n_mb,                                    \
      const int *__restrict__ slice_first_mb, int row0, int quiet, int *intra_cost, uint8_t *intra_modes) {                        \
    estimate<large>(source, mb_width, qp, search_cost, n_ref, n_mb, slice_first_mb, row0, quiet, intra_cost, intra_modes);         \
  }
INTRA_ESTIMATE(intra_estimate, false)
INTRA_ESTIMATE(intra_estimate_8x8, true)
