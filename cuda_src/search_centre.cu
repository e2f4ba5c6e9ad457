// Where the search window of every macroblock lies (not part of the standard): coarse pictures, and a warp a macroblock that
// searches them, a lane a column of candidates, and then weighs eleven centres by their SAD.
#include "simd.cuh"

constexpr int SCALE = 4, COARSE_PAD = 32, COARSE_X = 16, COARSE_Y = 10, SMALLEST_WINDOW = 12;
constexpr int WARPS = 4, CENTRES = 11;

// Means of 4x4 samples with borders, for coarse rows [y0, y1). Grid: columns, rows, 2 (source, reference).
extern "C" __global__ void subsample(const uint8_t *source, int source_stride, const uint8_t *reference, int reference_stride,
    int pad, uint8_t *coarse_source, uint8_t *coarse_reference, int width, int height, int y0, int y1) {
  wait_for_the_kernel_before();
  const int x = int(blockIdx.x * blockDim.x + threadIdx.x), y = y0 + int(blockIdx.y);
  if (x >= width || y >= y1) return;
  const int cx = clip3(0, width - 2 * COARSE_PAD - 1, x - COARSE_PAD), cy = clip3(0, height - 2 * COARSE_PAD - 1, y - COARSE_PAD);
  const bool second = blockIdx.z;
  const int stride = second ? reference_stride : source_stride;
  const uint8_t *p = second ? reference + size_t(pad) * stride + pad : source;
  p += size_t(SCALE * cy) * stride + SCALE * cx;
  unsigned total = 8;
#pragma unroll
  for (int i = 0; i < 4; i++) total = __dp4a(__ldg(reinterpret_cast<const unsigned *>(p + size_t(i) * stride)), 0x01010101u, total);
  (second ? coarse_reference : coarse_source)[size_t(y) * width + x] = uint8_t(total >> 4);
}

// Two words, eight samples, at any alignment
DEVICE void load_eight(const uint8_t *p, unsigned *a, unsigned *b) {
  const unsigned *w = reinterpret_cast<const unsigned *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(3));
  const unsigned offset = unsigned(reinterpret_cast<uintptr_t>(p) & 3), w0 = __ldg(w), w1 = __ldg(w + 1);
  *a = unaligned(w0, w1, offset);
  *b = offset ? unaligned(w1, __ldg(w + 2), offset) : w1;
}

// The best coarse vector about macroblock (mx, my): its rank in raster order. A row of the window is loaded once and serves
// the eight candidates it is part of: with row i of the source that of k = row - i, whose sum is number k & 7.
DEVICE int coarse_rank(const uint8_t *source, const uint8_t *reference, int stride, int mx, int my, int lam, int lane) {
  constexpr int WINDOW = 2 * COARSE_Y + 7;  // rows
  const size_t at = size_t(COARSE_PAD + 4 * my - 2) * stride + COARSE_PAD + 4 * mx - 2;
  unsigned s[8][2];
#pragma unroll
  for (int y = 0; y < 8; y++) load_eight(source + at + size_t(y) * stride, &s[y][0], &s[y][1]);
  const uint8_t *window = reference + at + lane - COARSE_X - ptrdiff_t(COARSE_Y) * stride;
  unsigned best = ~0u, sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const int across = lam * se_bits(lane - COARSE_X);
#pragma unroll 1
  for (int first = 0; first < WINDOW; first += 8) {
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const int row = first + j, done = row - 7;
      if (row >= WINDOW) break;
      unsigned a, b;
      load_eight(window + size_t(row) * stride, &a, &b);
      sum[j] = unsigned(across + lam * se_bits(row - COARSE_Y));
#pragma unroll
      for (int i = 0; i < 8; i++) sum[(j - i) & 7] = sad4(b, s[i][1], sad4(a, s[i][0], sum[(j - i) & 7]));
      if (done >= 0) best = min(best, sum[(j + 1) & 7] << 10 | unsigned(32 * done + lane));
    }
  }
  return int(__reduce_min_sync(FULL_WARP, best) & 1023);
}

DEVICE int floor_divide(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
DEVICE int clamp(int value, int low, int high) { return max(low, min(high, value)); }

// Arguments as the launcher says; macroblock rows [row0, row0 + gridDim.y).
extern "C" __global__ void __launch_bounds__(32 * WARPS) search_centre(const uint8_t *__restrict__ source,
    const uint8_t *__restrict__ reference, int width, int height, int pad, const uint8_t *__restrict__ coarse_source,
    const uint8_t *__restrict__ coarse_reference, const signed char *__restrict__ previous_ref_idx,
    const short2 *__restrict__ previous_mv, int distance, int lam, int merange, int max_mv_y, int row0, short2 *centre,
    short2 *predictor) {
  wait_for_the_kernel_before();
  const int lane = threadIdx.x & 31, mb_width = width / 16;
  const int mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0, mb = my * mb_width + mx;
  if (mx >= mb_width) return;
  const int x0 = 16 * mx, y0 = 16 * my, stride = width + 2 * pad, reach = max(merange, SMALLEST_WINDOW) + 3;
  const int low_x = max(-x0 - pad + reach, -2047 + merange), high_x = min(width + pad - x0 - 15 - reach, 2047 - merange);
  const int low_y = max(-y0 - pad + reach, min(0, merange + 1 - max_mv_y));
  const int high_y = min(height + pad - y0 - 15 - reach, max(0, max_mv_y - merange - 1));
  const int rank = coarse_rank(coarse_source, coarse_reference, width / SCALE + 2 * COARSE_PAD, mx, my, lam, lane);
  const int coarse_x = (rank & 31) - COARSE_X, coarse_y = (rank >> 5) - COARSE_Y;
  const int row = lane >> 1, half = 8 * (lane & 1);
  const uint2 own = *reinterpret_cast<const uint2 *>(source + size_t(y0 + row) * width + x0 + half);
  const uint8_t *corner = reference + size_t(y0 + pad + row) * stride + x0 + pad + half;
  const int steps = previous_ref_idx[4 * mb] + 1;
  const short2 before = previous_mv[16 * mb];
  unsigned value[CENTRES];
  int xs[CENTRES], ys[CENTRES];
#pragma unroll
  for (int n = 0; n < CENTRES; n++) {  // all loads on their way before the first sum
    int x = 0, y = 0;
    if (n == 1 && steps > 0) {
      x = (floor_divide(before.x * distance, steps) + 2) >> 2;
      y = (floor_divide(before.y * distance, steps) + 2) >> 2;
    } else if (n > 1) {
      x = SCALE * coarse_x + 2 * ((n - 2) % 3 - 1);
      y = SCALE * coarse_y + 2 * ((n - 2) / 3 - 1);
    }
    x = clamp(x, low_x, high_x);
    y = clamp(y, low_y, high_y);
    unsigned a, b;
    load_eight(corner + ptrdiff_t(y) * stride + x, &a, &b);
    value[n] = sad4(a, own.x, sad4(b, own.y, 0));
    xs[n] = x;
    ys[n] = y;
  }
  int lowest = 0x7fffffff, best_x = 0, best_y = 0;
#pragma unroll
  for (int n = 0; n < CENTRES; n++) {
    const int cost = int(__reduce_add_sync(FULL_WARP, value[n])) + lam * (se_bits(4 * xs[n]) + se_bits(4 * ys[n]));
    if (cost < lowest) {  // where there is no vector before, n = 1 is the first again, and no better
      lowest = cost;
      best_x = xs[n];
      best_y = ys[n];
    }
  }
  if (lane == 0) {
    centre[mb] = make_short2(short(best_x), short(best_y));
    predictor[mb] = make_short2(short(4 * best_x), short(4 * best_y));
  }
}
