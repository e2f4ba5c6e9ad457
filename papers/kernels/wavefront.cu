// Paper 004, to compare: the deblocking filter (8.7) as the wavefront of macroblocks, in the standard's order.
#include "loopfilter/deblock_lines.cuh"
#include "simd.cuh"

// Copies rec_* into out_*, a macroblock a warp, for the wavefront, which filters in place.
extern "C" __global__ void deblock_copy(const uint8_t *rec_y, const uint8_t *rec_u, const uint8_t *rec_v, int mb_width,
    uint8_t *out_y, int y_stride, uint8_t *out_u, uint8_t *out_v, int c_stride) {
  wait_for_the_kernel_before();
  const int lane = threadIdx.x, mx = blockIdx.x, my = blockIdx.y;
  for (int i = lane; i < 64; i += 32) {
    int r = i >> 2, w = i & 3;
    *reinterpret_cast<unsigned *>(out_y + size_t(my * 16 + r) * y_stride + mx * 16 + 4 * w) =
        *reinterpret_cast<const unsigned *>(rec_y + size_t(my * 16 + r) * mb_width * 16 + mx * 16 + 4 * w);
  }
  int r = lane >> 1 & 7, w = lane & 1;
  *reinterpret_cast<unsigned *>((lane >> 4 ? out_v : out_u) + size_t(my * 8 + r) * c_stride + mx * 8 + 4 * w) =
      *reinterpret_cast<const unsigned *>((lane >> 4 ? rec_v : rec_u) + size_t(my * 8 + r) * mb_width * 8 + mx * 8 + 4 * w);
}

// The standard's order, in place on out_*: one warp a row of macroblocks, two macroblocks after the row above.
// progress int32[mb_height]: macroblocks done a row, 0 before the launch. Lanes: 16 luma lines, 8 Cb, 8 Cr.
extern "C" __global__ void __launch_bounds__(32) deblock_wavefront(const unsigned *records, int mb_width, uint8_t *out_y,
    int y_stride, uint8_t *out_u, uint8_t *out_v, int c_stride, int *progress) {
  wait_for_the_kernel_before();
  const int lane = threadIdx.x, my = blockIdx.x;
  const bool luma = lane < 16;
  const int k = luma ? lane : lane & 7, stride = luma ? y_stride : c_stride, size = luma ? 16 : 8;
  uint8_t *plane = luma ? out_y : lane < 24 ? out_u : out_v;
  for (int mx = 0; mx < mb_width; mx++) {
    if (my) {
      if (lane == 0) wait_at_least(progress + my - 1, min(mx + 2, mb_width));
      __syncwarp();
    }
    const unsigned *record = records + (size_t(my) * mb_width + mx) * RECORD;
    for (int direction = 0; direction < 2; direction++) {
      const int step = direction ? stride : 1;
      uint8_t *line = plane + size_t(my) * size * stride + mx * size + (direction ? k : k * stride);
      for (int edge = 0; edge < 4; edge++) {
        const unsigned bs = strength_of(record, direction, edge, luma ? k >> 2 : k >> 1);
        if (luma) {
          if (bs) filter_line<true>(line + 4 * edge * step, step, bs, record[4 + edge_class_of(direction, edge)]);
        } else if (bs && !(edge & 1)) {
          filter_line<false>(line + 2 * edge * step, step, bs, record[7 + edge_class_of(direction, edge)]);
        }
      }
      __syncwarp();
    }
    __threadfence();
    __syncwarp();
    if (lane == 0) store_release(progress + my, mx + 1);
  }
}
