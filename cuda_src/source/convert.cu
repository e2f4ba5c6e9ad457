// Converts frames of display size from I420, NV12 or RGB to padded I420.
//
// Samples beyond the display area repeat its last column and row (scheduler/frames/frame.py, Frame.load).
// Samples of 8 bits only: words of four samples, colours of 8 bits.
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

// QP_Y of the macroblock whose first sample is (x, y): that of the frame; if that is negative, its own of the bytes behind it
DEVICE void set_qp(int x, int y, int coded_width, const int *load_qp, uint8_t *qp) {
  if (((x | y) & 15) != 0) return;
  const int mb = (y >> 4) * (coded_width >> 4) + (x >> 4), of_all = __ldg(load_qp);
  qp[mb] = of_all >= 0 ? uint8_t(of_all) : __ldg(reinterpret_cast<const uint8_t *>(load_qp + 1) + mb);
}

// width, height: of the display area; pitches: bytes from row to row; chroma_step: bytes from sample to sample (NV12: 2).
// Grid: words of a row of the coded luma, its rows, planes.
extern "C" __global__ void load_planes(const uint8_t *y, const uint8_t *u, const uint8_t *v, int pitch, int chroma_pitch,
    int chroma_step, int width, int height, int coded_width, int coded_height, const int *load_qp, Sample *out_y, Sample *out_u,
    Sample *out_v, uint8_t *qp) {
  wait_for_the_kernel_before();
  const bool luma = blockIdx.z == 0;
  const int half = luma ? 0 : 1, wide = coded_width >> half, high = coded_height >> half;
  const int column = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), row = int(blockIdx.y * blockDim.y + threadIdx.y);
  if (column >= wide || row >= high) return;
  if (luma) set_qp(column, row, coded_width, load_qp, qp);
  const uint8_t *plane = luma ? y : blockIdx.z == 1 ? u : v;
  Sample *out = luma ? out_y : blockIdx.z == 1 ? out_u : out_v;
  const int rows = (height + half) >> half, columns = (width + half) >> half;
  const uint8_t *line = plane + size_t(min(row, rows - 1)) * (luma ? pitch : chroma_pitch);
  *reinterpret_cast<unsigned *>(out + size_t(row) * wide + column) = load_samples(line, column, columns, luma ? 1 : chroma_step);
}

// A sample as stored: its value as float32 (as_float32), its 8 bits (level)
struct Uint8 {
  uint8_t bits;
};
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};
struct Float32 {
  float value;
};
struct Float64 {
  double value;
};

DEVICE float as_float32(Float16 s) {
  const unsigned magnitude = (s.bits & 0x7fffu) << 13;  // at the place of a float32's bits: too small by 2^112
  unsigned value = bits_of_float(multiply_rounded(float_of_bits(magnitude), 5192296858534827628530496329220096.f));
  if ((s.bits & 0x7c00u) == 0x7c00u) value |= 0x7f800000u;  // infinite, or no number
  return float_of_bits(value | (s.bits & 0x8000u) << 16);
}
DEVICE float as_float32(Bfloat16 s) { return float_of_bits(unsigned(s.bits) << 16); }
DEVICE float as_float32(Float32 s) { return s.value; }
DEVICE float as_float32(Float64 s) { return float(s.value); }

// A tenth beyond 0..255 a sample is not of the range that was assumed
struct Range {
  float low, scale;
  bool outside;
  DEVICE int level(Uint8 s) { return s.bits; }
  template <class Input>
  DEVICE int level(Input s) {
    float scaled = multiply_rounded(add_rounded(as_float32(s), -low), scale);
    outside |= !(scaled >= -25.5f && scaled <= 280.5f);
    scaled = scaled > 0.f ? scaled : 0.f;
    scaled = scaled < 255.f ? scaled : 255.f;
    return int(add_rounded(scaled, 0.5f));
  }
};

template <class Input>
DEVICE Input load_sample(const uint8_t *at) {
  return *reinterpret_cast<const Input *>(at);  // aligned to its size
}

// Four neighbours that lie in whole words
template <class Input>
struct alignas(4 * sizeof(Input)) Four {
  Input samples[4];
};

// An RGB frame: samples `step` bytes apart in a row, rows `pitch`
template <class Input>
struct Rgb {
  const uint8_t *colours[3];
  int step, pitch, width, height;
  Range range;
  DEVICE void load(int x, int y, int *c) {
    const long long at = (long long)min(y, height - 1) * pitch + (long long)min(x, width - 1) * step;
#pragma unroll
    for (int k = 0; k < 3; k++) c[k] = range.level(load_sample<Input>(colours[k] + at));
  }
  // Four samples of a row from x on, as [column][colour]
  DEVICE void load4(int x, int y, int (*c)[3]) {
    const long long at = (long long)min(y, height - 1) * pitch + (long long)x * step;
    if (step == sizeof(Input) && x + 4 <= width) {
#pragma unroll
      for (int k = 0; k < 3; k++) {
        const uint8_t *first = colours[k] + at;
        Four<Input> four;
        if (reinterpret_cast<uintptr_t>(first) % sizeof(four) == 0)
          four = *reinterpret_cast<const Four<Input> *>(first);
        else
          for (int i = 0; i < 4; i++) four.samples[i] = load_sample<Input>(first + i * sizeof(Input));
#pragma unroll
        for (int i = 0; i < 4; i++) c[i][k] = range.level(four.samples[i]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) load(x + i, y, c[i]);
    }
  }
};

// ITU-R BT.709, limited range: 65536 * 219 / 255 and 65536 * 224 / 255 times the matrix; a row of chroma sums to 0
DEVICE int luma_of(const int *c) { return (11966 * c[0] + 40254 * c[1] + 4064 * c[2] + (16 << 16) + (1 << 15)) >> 16; }
DEVICE int cb_of(const int *c) { return (-6596 * c[0] - 22188 * c[1] + 28784 * c[2] + (128 << 18) + (1 << 17)) >> 18; }
DEVICE int cr_of(const int *c) { return (28784 * c[0] - 26145 * c[1] - 2639 * c[2] + (128 << 18) + (1 << 17)) >> 18; }

// The planes and numbers that all kernels write
struct Target {
  int coded_width, coded_height;
  const int *load_qp;
  Sample *y, *u, *v;
  uint8_t *qp;
};

// A thread makes four by two samples of luma and two of each chroma. Grid: words of a row, pairs of rows.
template <class Input>
DEVICE void convert_rgb(Rgb<Input> rgb, const Target &to, int *any_outside) {
  const int x = 4 * int(blockIdx.x * blockDim.x + threadIdx.x), y = 2 * int(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= to.coded_width || y >= to.coded_height) return;
  set_qp(x, y, to.coded_width, to.load_qp, to.qp);
  int sum[2][3] = {{0, 0, 0}, {0, 0, 0}};  // of the four samples of each chroma sample
#pragma unroll
  for (int j = 0; j < 2; j++) {
    int luma[4], c[4][3];
    rgb.load4(x, y + j, c);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      luma[i] = luma_of(c[i]);
#pragma unroll
      for (int k = 0; k < 3; k++) sum[i >> 1][k] += c[i][k];
    }
    *reinterpret_cast<unsigned *>(to.y + size_t(y + j) * to.coded_width + x) = pack4(luma[0], luma[1], luma[2], luma[3]);
  }
  unsigned cb = 0, cr = 0;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int left = min(x + 2 * i, (rgb.width - 1) & ~1), upper = min(y, (rgb.height - 1) & ~1);
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
  const size_t at = size_t(y / SUB_HEIGHT_C) * (to.coded_width / SUB_WIDTH_C) + x / SUB_WIDTH_C;
  *reinterpret_cast<uint16_t *>(to.u + at) = uint16_t(cb);
  *reinterpret_cast<uint16_t *>(to.v + at) = uint16_t(cr);
  if (rgb.range.outside) *any_outside = 1;
}

// low, scale: bits of float32; any_outside: host memory, written only where a sample is outside of the range
#define LOAD_RGB(name, Input) \
  extern "C" __global__ void name(const uint8_t *red, const uint8_t *green, const uint8_t *blue, int step, int pitch, int low, \
      int scale, int width, int height, int coded_width, int coded_height, const int *load_qp, Sample *out_y, \
      Sample *out_u, Sample *out_v, uint8_t *qp, int *any_outside) { \
    wait_for_the_kernel_before(); \
    const Range range = {float_of_bits(low), float_of_bits(scale), false}; \
    const Rgb<Input> rgb = {{red, green, blue}, step, pitch, width, height, range}; \
    const Target to = {coded_width, coded_height, load_qp, out_y, out_u, out_v, qp}; \
    convert_rgb(rgb, to, any_outside); \
  }

LOAD_RGB(load_rgb_uint8, Uint8)
LOAD_RGB(load_rgb_float16, Float16)
LOAD_RGB(load_rgb_bfloat16, Bfloat16)
LOAD_RGB(load_rgb_float32, Float32)
LOAD_RGB(load_rgb_float64, Float64)
