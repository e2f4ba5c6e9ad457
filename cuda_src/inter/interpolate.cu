// 8.4.2.2.1: the half-sample planes of a reference frame, and the borders of a frame.
//
// A thread walks down four columns with the last six rows of integer samples and of unrounded horizontal sums in
// registers, so every sample is loaded from memory by two or three threads and filtered once in each direction.
// Samples of 8 bits only: words of four samples.
#include "inter/interpolate_launch.cuh"
#include "simd.cuh"

// 8.4.2.2.1: (1, -5, 20, 20, -5, 1), unrounded
DEVICE int six(int a, int b, int c, int d, int e, int f) { return a + f - 5 * (b + e) + 20 * (c + d); }
DEVICE int round5(int v) { return clip1((v + 16) >> 5); }
DEVICE int round10(int v) { return clip1((v + 512) >> 10); }

// The samples x - 2 .. x + 6 of a row (clamped to the plane) as three words from x - 4 on.
DEVICE void load_row(const Sample *plane, int width, int height, int x, int y, unsigned *w) {
  const Sample *row = plane + size_t(clip3(0, height - 1, y)) * width;
  const unsigned *p = reinterpret_cast<const unsigned *>(row + x);
  w[1] = __ldg(p);
  w[0] = x > 0 ? __ldg(p - 1) : (w[1] & 255) * 0x01010101u;
  w[2] = x + 4 < width ? __ldg(p + 1) : (w[1] >> 24) * 0x01010101u;
}

DEVICE void horizontal(const unsigned *w, int *sum) {
  int s[9];
#pragma unroll
  for (int i = 0; i < 9; i++) s[i] = byte_of(w[(i + 2) >> 2], (i + 2) & 3);
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = six(s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4], s[i + 5]);
}

// luma Sample[4, height, width]: planes b, h, j from G, sample rows [y0, y1). Grid: columns / 4 / threads, bands of ROWS.
extern "C" __global__ void interpolate(Sample *luma, int width, int height, int y0, int y1) {
  wait_for_the_kernel_before();
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), first = y0 + int(blockIdx.y) * ROWS;
  if (x >= width) return;
  const size_t size = size_t(width) * height;
  const int last = min(first + ROWS, y1);
  int g[6][4], sum[6][4];  // rows y - 2 .. y + 3
#pragma unroll
  for (int k = 0; k < 5; k++) {
    unsigned w[3];
    load_row(luma, width, height, x, first - 2 + k, w);
    horizontal(w, sum[k + 1]);
#pragma unroll
    for (int i = 0; i < 4; i++) g[k + 1][i] = byte_of(w[1], i);
  }
  for (int y = first; y < last; y++) {
#pragma unroll
    for (int k = 0; k < 5; k++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        g[k][i] = g[k + 1][i];
        sum[k][i] = sum[k + 1][i];
      }
    unsigned w[3];
    load_row(luma, width, height, x, y + 3, w);
    horizontal(w, sum[5]);
    int b[4], h[4], j[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      g[5][i] = byte_of(w[1], i);
      b[i] = round5(sum[2][i]);
      h[i] = round5(six(g[0][i], g[1][i], g[2][i], g[3][i], g[4][i], g[5][i]));
      j[i] = round10(six(sum[0][i], sum[1][i], sum[2][i], sum[3][i], sum[4][i], sum[5][i]));
    }
    Sample *to = luma + size_t(y) * width + x;
    *reinterpret_cast<unsigned *>(to + size) = pack4(b[0], b[1], b[2], b[3]);
    *reinterpret_cast<unsigned *>(to + 2 * size) = pack4(h[0], h[1], h[2], h[3]);
    *reinterpret_cast<unsigned *>(to + 3 * size) = pack4(j[0], j[1], j[2], j[3]);
  }
}

// plane Sample[n, height, width]: repeats the samples at the edge of each interior into its border of `pad` samples
// (a multiple of 4, as width is). Grid: words of a row, rows, planes.
extern "C" __global__ void extend_borders(Sample *plane, int width, int height, int pad) {
  wait_for_the_kernel_before();
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), y = int(blockIdx.y * blockDim.y + threadIdx.y);
  const bool edge = y < pad || y >= height - pad;
  if (x >= width || y >= height || (!edge && x >= pad && x < width - pad)) return;
  plane += size_t(blockIdx.z) * width * height;
  const Sample *row = plane + size_t(clip3(pad, height - pad - 1, y)) * width;
  unsigned v;
  if (x < pad) v = row[pad] * 0x01010101u;
  else if (x >= width - pad) v = row[width - pad - 1] * 0x01010101u;
  else v = *reinterpret_cast<const unsigned *>(row + x);
  *reinterpret_cast<unsigned *>(plane + size_t(y) * width + x) = v;
}
