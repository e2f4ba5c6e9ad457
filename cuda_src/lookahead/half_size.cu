// Source frames in half the width and height, in a quarter and in a sixteenth, for the lookahead: twin of cpu_simd/lookahead/half_size.py,
// which explains it.
// Samples of 8 bits only: words of four samples.
#include "decisions/lookahead.cuh"
#include "simd.cuh"
#include "tables.cuh"

DEVICE int mean(int a, int b) { return (a + b + 1) >> 1; }

// Four samples of the padded planes G, b, h, j a thread, for their rows [y0, y1). height, width: of luma. Grid: words of a row, rows.
extern "C" __global__ void half_size(const Sample *__restrict__ luma, int height, int width, Sample *planes, int mb_width,
    int mb_height, int y0, int y1) {
  wait_for_the_kernel_before();
  const int stride = 8 * mb_width + 2 * LOOK_PAD, lines = 8 * mb_height + 2 * LOOK_PAD;
  const int word = int(blockIdx.x * blockDim.x + threadIdx.x), line = y0 + int(blockIdx.y * blockDim.y + threadIdx.y);
  if (4 * word >= stride || line >= y1) return;
  const int y = 2 * clip3(0, 8 * mb_height - 1, line - LOOK_PAD);
  unsigned words[4] = {0, 0, 0, 0};
  const Sample *rows[3];
#pragma unroll
  for (int i = 0; i < 3; i++) rows[i] = luma + size_t(min(y + i, height - 1)) * width;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int x = 2 * clip3(0, 8 * mb_width - 1, 4 * word + k - LOOK_PAD);
    int means[2][3];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const int at = min(x + c, width - 1), middle = __ldg(rows[1] + at);
      means[0][c] = mean(__ldg(rows[0] + at), middle);
      means[1][c] = mean(middle, __ldg(rows[2] + at));
    }
#pragma unroll
    for (int p = 0; p < 4; p++) words[p] |= unsigned(mean(means[p >> 1][p & 1], means[p >> 1][(p & 1) + 1])) << (8 * k);
  }
#pragma unroll
  for (int p = 0; p < 4; p++) *reinterpret_cast<unsigned *>(planes + (size_t(p) * lines + line) * stride + 4 * word) = words[p];
}

// Four samples of the padded coarse frame a thread, for its rows [y0, y1). Grid: words of a row, rows.
extern "C" __global__ void quarter_size(const Sample *__restrict__ planes, Sample *coarse, int mb_width, int mb_height, int y0,
    int y1) {
  wait_for_the_kernel_before();
  const int stride = 8 * mb_width + 2 * LOOK_PAD, coarse_stride = 4 * mb_width + 2 * COARSE_PAD;
  const int word = int(blockIdx.x * blockDim.x + threadIdx.x), line = y0 + int(blockIdx.y * blockDim.y + threadIdx.y);
  if (4 * word >= coarse_stride || line >= y1) return;
  const Sample *row = planes + size_t(LOOK_PAD + 2 * clip3(0, 4 * mb_height - 1, line - COARSE_PAD)) * stride + LOOK_PAD;
  unsigned samples = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const Sample *p = row + 2 * clip3(0, 4 * mb_width - 1, 4 * word + k - COARSE_PAD);
    samples |= unsigned(mean(mean(p[0], p[stride]), mean(p[1], p[stride + 1]))) << (8 * k);
  }
  *reinterpret_cast<unsigned *>(coarse + size_t(line) * coarse_stride + 4 * word) = samples;
}

// The mean of macroblock mb of a coarse frame
DEVICE Sample mean_of(const Sample *__restrict__ coarse, int mb, int mb_width) {
  const int stride = 4 * mb_width + 2 * COARSE_PAD;
  const Sample *p = coarse + size_t(COARSE_PAD + 4 * (mb / mb_width)) * stride + COARSE_PAD + 4 * (mb % mb_width);
  unsigned total = 8;
#pragma unroll
  for (int i = 0; i < 4; i++) total = __dp4a(*reinterpret_cast<const unsigned *>(p + i * stride), 0x01010101u, total);
  return Sample(total >> 4);
}

// A thread a macroblock, for macroblock rows [row0, row1)
extern "C" __global__ void tiny_size(const Sample *__restrict__ coarse, Sample *tiny, int mb_width, int row0, int row1) {
  wait_for_the_kernel_before();
  const int mb = row0 * mb_width + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb < row1 * mb_width) tiny[mb] = mean_of(coarse, mb, mb_width);
}
// The same of two frames. Grid: macroblocks, 2
extern "C" __global__ void tiny_sizes(const Sample *__restrict__ coarse, const Sample *__restrict__ other_coarse, Sample *tiny,
    Sample *other_tiny, int mb_width, int mb_height) {
  wait_for_the_kernel_before();
  const int mb = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb < mb_width * mb_height) (blockIdx.y ? other_tiny : tiny)[mb] = mean_of(blockIdx.y ? other_coarse : coarse, mb, mb_width);
}

// Twin of sharpness in cpu_simd/lookahead/half_size.py. A thread a column of `rows` rows, for the height rows of width samples; stride: of
// luma; total: added to. Grid: columns, groups of rows.
extern "C" __global__ void sharpness(const Sample *__restrict__ luma, int height, int width, int stride, int rows,
    unsigned long long *total) {
  wait_for_the_kernel_before();
  const int x = 1 + int(blockIdx.x * blockDim.x + threadIdx.x), y0 = 1 + int(blockIdx.y) * rows, y1 = min(y0 + rows, height - 1);
  int sum = 0;
  if (x < width - 1 && y0 < y1) {
    const Sample *p = luma + size_t(y0) * stride + x;
    int above = __ldg(p - stride), middle = __ldg(p);
    for (int y = y0; y < y1; y++, p += stride) {
      const int below = __ldg(p + stride);
      sum += abs(2 * middle - __ldg(p - 1) - __ldg(p + 1)) + abs(2 * middle - above - below);
      above = middle;
      middle = below;
    }
  }
  sum = __reduce_add_sync(FULL_WARP, sum);
  if ((threadIdx.x & 31) == 0 && sum) atomicAdd(total, (unsigned long long)sum);
}
