// Converts frames of display size from I420, NV12 or RGB to padded I420.
//
// Samples beyond the display area repeat its last column and row (scheduler/frames/frame.py, Frame.load).
#include "simd.cuh"

// Four samples from x on, `step` bytes apart, of a row of `width` samples that goes on with its last one
DEVICE unsigned load_samples(const uint8_t *row, int x, int width, int step) {
  if (step == 1 && x + 4 <= width && (reinterpret_cast<uintptr_t>(row + x) & 3) == 0)
    return __ldg(reinterpret_cast<const unsigned *>(row + x));
  unsigned word = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) word |= unsigned(__ldg(row + size_t(min(x + i, width - 1)) * step)) << (8 * i);
  return word;
}

// QP_Y of the macroblock whose first sample is (x, y): that of the frame
DEVICE void set_qp(int x, int y, int coded_width, const int *frame_params, uint8_t *qp) {
  if (((x | y) & 15) == 0) qp[(y >> 4) * (coded_width >> 4) + (x >> 4)] = uint8_t(__ldg(frame_params));
}

// width, height: of the display area; pitches: bytes from row to row; chroma_step: bytes from sample to sample (NV12: 2).
// Grid: words of a row of the coded luma, its rows, planes.
extern "C" __global__ void load_planes(const uint8_t *y, const uint8_t *u, const uint8_t *v, int pitch, int chroma_pitch,
    int chroma_step, int width, int height, int coded_width, int coded_height, const int *frame_params, uint8_t *out_y, uint8_t *out_u,
    uint8_t *out_v, uint8_t *qp) {
  wait_for_the_kernel_before();
  const bool luma = blockIdx.z == 0;
  const int half = luma ? 0 : 1, wide = coded_width >> half, high = coded_height >> half;
  const int column = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), row = int(blockIdx.y * blockDim.y + threadIdx.y);
  if (column >= wide || row >= high) return;
  if (luma) set_qp(column, row, coded_width, frame_params, qp);
  const uint8_t *plane = luma ? y : blockIdx.z == 1 ? u : v;
  uint8_t *out = luma ? out_y : blockIdx.z == 1 ? out_u : out_v;
  const int rows = (height + half) >> half, columns = (width + half) >> half;
  const uint8_t *line = plane + size_t(min(row, rows - 1)) * (luma ? pitch : chroma_pitch);
  *reinterpret_cast<unsigned *>(out + size_t(row) * wide + column) = load_samples(line, column, columns, luma ? 1 : chroma_step);
}

// An RGB picture: samples `step` bytes apart in a row, rows `pitch`, colours `plane` bytes
struct Rgb {
  const uint8_t *at;
  int pitch, step, plane, width, height;
  DEVICE void load(int x, int y, int *c) const {
    const uint8_t *p = at + size_t(min(y, height - 1)) * pitch + size_t(min(x, width - 1)) * step;
#pragma unroll
    for (int i = 0; i < 3; i++) c[i] = __ldg(p + size_t(i) * plane);
  }
};

// ITU-R BT.709, limited range: 65536 * 219 / 255 and 65536 * 224 / 255 times the matrix; a row of chroma sums to 0
DEVICE int luma_of(const int *c) { return (11966 * c[0] + 40254 * c[1] + 4064 * c[2] + (16 << 16) + (1 << 15)) >> 16; }
DEVICE int cb_of(const int *c) { return (-6596 * c[0] - 22188 * c[1] + 28784 * c[2] + (128 << 18) + (1 << 17)) >> 18; }
DEVICE int cr_of(const int *c) { return (28784 * c[0] - 26145 * c[1] - 2639 * c[2] + (128 << 18) + (1 << 17)) >> 18; }

// A thread makes four by two samples of luma and two of each chroma. Grid: words of a row, pairs of rows.
extern "C" __global__ void load_rgb(const uint8_t *picture, int pitch, int step, int plane, int width, int height, int coded_width,
    int coded_height, const int *frame_params, uint8_t *out_y, uint8_t *out_u, uint8_t *out_v, uint8_t *qp) {
  wait_for_the_kernel_before();
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), y = 2 * int(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= coded_width || y >= coded_height) return;
  set_qp(x, y, coded_width, frame_params, qp);
  const Rgb rgb = {picture, pitch, step, plane, width, height};
  int sum[2][3] = {{0, 0, 0}, {0, 0, 0}};  // of the four samples of each chroma sample
#pragma unroll
  for (int j = 0; j < 2; j++) {
    int luma[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int c[3];
      rgb.load(x + i, y + j, c);
      luma[i] = luma_of(c);
#pragma unroll
      for (int k = 0; k < 3; k++) sum[i >> 1][k] += c[k];
    }
    *reinterpret_cast<unsigned *>(out_y + size_t(y + j) * coded_width + x) = pack4(luma[0], luma[1], luma[2], luma[3]);
  }
  unsigned cb = 0, cr = 0;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int left = min(x + 2 * i, (width - 1) & ~1), upper = min(y, (height - 1) & ~1);
    if (left != x + 2 * i || upper != y) {  // beyond the display area: the chroma sample at its edge again
      sum[i][0] = sum[i][1] = sum[i][2] = 0;
      for (int n = 0; n < 4; n++) {
        int c[3];
        rgb.load(left + (n & 1), upper + (n >> 1), c);
#pragma unroll
        for (int k = 0; k < 3; k++) sum[i][k] += c[k];
      }
    }
    cb |= unsigned(cb_of(sum[i])) << (8 * i);
    cr |= unsigned(cr_of(sum[i])) << (8 * i);
  }
  const size_t at = size_t(y / 2) * (coded_width / 2) + x / 2;
  *reinterpret_cast<uint16_t *>(out_u + at) = uint16_t(cb);
  *reinterpret_cast<uint16_t *>(out_v + at) = uint16_t(cr);
}
