// 8.5.13: transform, quantisation and scaling of a macroblock's 8x8 luma blocks. Twin of cpu_simd/residual/transform_8x8.py.
//
// A warp takes four blocks, a lane a row or a column: lane 8 q + i has row or column i of block q in eight registers. Rows become
// columns in shared memory. The forward transform takes columns first, the inverse rows first, so that quantised levels stay in
// their registers. Levels in the order of the stream go to lanes that have a 4x4 block each, by the same memory.
#pragma once
#include "residual/transform.cuh"

// Words in shared memory of a row of a block, and of a block: no two lanes of an access meet in a bank
constexpr int ROW_8x8 = 12, WORDS_8x8 = 8 * ROW_8x8 + 8, EXCHANGE_8x8 = 4 * WORDS_8x8;
constexpr int PART_8x8 = 20, LEVELS_8x8 = 4 * PART_8x8;  // of one of the four interleaved parts of a block's levels, of all

// The one-dimensional forward transform, the transpose of inverse_8, in place (not part of the standard)
DEVICE void forward_8(int *x) {
  const int s0 = x[0] + x[7], s1 = x[1] + x[6], s2 = x[2] + x[5], s3 = x[3] + x[4];
  const int d0 = x[0] - x[7], d1 = x[1] - x[6], d2 = x[2] - x[5], d3 = x[3] - x[4];
  const int a0 = s0 + s3, a1 = s1 + s2, a2 = s0 - s3, a3 = s1 - s2;
  const int a4 = d1 + d2 + (d0 + (d0 >> 1)), a5 = d0 - d3 - (d2 + (d2 >> 1));
  const int a6 = d0 + d3 - (d1 + (d1 >> 1)), a7 = d1 - d2 + (d3 + (d3 >> 1));
  x[0] = a0 + a1;
  x[1] = a4 + (a7 >> 2);
  x[2] = a2 + (a3 >> 1);
  x[3] = a5 + (a6 >> 2);
  x[4] = a0 - a1;
  x[5] = a6 - (a5 >> 2);
  x[6] = (a2 >> 1) - a3;
  x[7] = (a4 >> 2) - a7;
}

// 8.5.13.2: the one-dimensional inverse transform, in place
DEVICE void inverse_8(int *x) {
  const int e0 = x[0] + x[4], e1 = x[5] - x[3] - x[7] - (x[7] >> 1), e2 = x[0] - x[4], e3 = x[1] + x[7] - x[3] - (x[3] >> 1);
  const int e4 = (x[2] >> 1) - x[6], e5 = x[7] - x[1] + x[5] + (x[5] >> 1), e6 = x[2] + (x[6] >> 1);
  const int e7 = x[3] + x[5] + x[1] + (x[1] >> 1);
  const int f0 = e0 + e6, f1 = e1 + (e7 >> 2), f2 = e2 + e4, f3 = e3 + (e5 >> 2);
  const int f4 = e2 - e4, f5 = (e3 >> 2) - e5, f6 = e0 - e6, f7 = e7 - (e1 >> 2);
  x[0] = f0 + f7;
  x[1] = f2 + f5;
  x[2] = f4 + f3;
  x[3] = f6 + f1;
  x[4] = f6 - f1;
  x[5] = f4 - f3;
  x[6] = f2 - f5;
  x[7] = f0 - f7;
}

DEVICE void load_8(const int *from, int *x) {
  const int4 a = *reinterpret_cast<const int4 *>(from), b = *reinterpret_cast<const int4 *>(from + 4);
  x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
// Column i of the lane's block becomes row i, or the other way. exchange: int[EXCHANGE_8x8], shared by the lanes of `mask`
DEVICE void transpose_8(int *x, int *exchange, int lane, unsigned mask = FULL_WARP) {
  int *block = exchange + (lane >> 3) * WORDS_8x8;
  const int i = lane & 7;
#pragma unroll
  for (int k = 0; k < 8; k++) block[ROW_8x8 * k + i] = x[k];
  __syncwarp(mask);
  load_8(block + ROW_8x8 * i, x);
  __syncwarp(mask);
}

// Of a row of a block: the entries of a table [6][64] in columns 0, 1, 2, of which the others are copies (8.5.9)
struct Factors {
  int of[3];
  DEVICE int at(int x) const { return of[x & 1 ? 1 : x & 2 ? 2 : 0]; }
};
template <class T>
DEVICE Factors factors_8x8(const T *table, int row) {
  const int parity = row & 1 ? 1 : row & 2;  // 0: row % 4 is 0; 1: odd; 2
  const int even = table[0], odd = table[9], two = table[18], first = table[1], second = table[2], last = table[10];
  return {{parity == 0 ? even : parity == 1 ? first : second, parity == 0 ? first : parity == 1 ? odd : last,
           parity == 0 ? second : parity == 1 ? last : two}};
}

// The same with scaling lists that are not flat, from the table of cpu_simd/quantiser/scaling.py
struct GivenFactors {
  const short *of;
  DEVICE int at(int x) const { return __ldg(of + 16 * x); }
};

// Quantisation and scaling of a row of coefficients at a QP (not part of the standard; 8.5.13.1, with flat scaling lists by
// normAdjust8x8, a sixteenth of LevelScale8x8)
template <class F>
struct RowQuantiser {
  F factors, scales;
  int shift, rounding, left, right;
};
DEVICE RowQuantiser<Factors> row_quantiser(FlatScaling, int, int qp, int dead_zone, int row) {
  const int m = qp % 6, shift = 16 + qp / 6;
  return {factors_8x8(QUANT_MF_8x8[m], row), factors_8x8(NORM_ADJUST_8x8[m], row), shift, rounding_of(dead_zone, shift),
          max(0, qp / 6 - 2), max(0, 2 - qp / 6)};
}
// set: 0 for intra, SCALING_SET for inter macroblocks
DEVICE RowQuantiser<GivenFactors> row_quantiser(const ListScaling &scaling, int set, int qp, int dead_zone, int row) {
  const int shift = 16 + qp / 6 - scaling.finer();
  const short *from = scaling.table + set + 128 * (qp % 6) + row;
  return {{from + SCALING_MF_8x8}, {from + SCALING_FACTORS_8x8}, shift, rounding_of(dead_zone, shift), max(0, qp / 6 - 6),
          max(0, 6 - qp / 6)};
}
template <class F>
DEVICE int quantise(const RowQuantiser<F> &q, int x, int coefficient) {
  const int level = min((abs(coefficient) * q.factors.at(x) + q.rounding) >> q.shift, MAX_LEVEL);
  return coefficient < 0 ? -level : level;
}
template <class F>
DEVICE int scale(const RowQuantiser<F> &q, int x, int level) {
  return ((level * q.scales.at(x) << q.left) + ((1 << q.right) >> 1)) >> q.right;
}

// Figure 8-8: the place of a position in the scan of an 8x8 block
constexpr int scan_8x8(int x, int y) {
  const int d = x + y, before = d < 8 ? d * (d + 1) / 2 : 64 - (15 - d) * (16 - d) / 2;  // of earlier diagonals
  const int along = d & 1 ? y - (d < 8 ? 0 : d - 7) : x - (d < 8 ? 0 : d - 7);           // odd diagonals go down
  return before + along;
}
// Of each row: where the levels of its columns stand among those of its block, four interleaved parts one after another, `part`
// from one to the next; a byte each
struct Placing {
  unsigned of[8][2];
};
constexpr Placing make_placing(int part) {
  Placing p = {};
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < 8; x++) p.of[y][x >> 2] |= unsigned(part * (scan_8x8(x, y) & 3) + (scan_8x8(x, y) >> 2)) << (8 * (x & 3));
  return p;
}
__device__ const Placing PLACING_APART = make_placing(PART_8x8), PLACING = make_placing(16);

// Eight bytes in registers, such as the places of a row
struct Bytes {
  unsigned of[2];
  DEVICE int at(int i) const { return byte_of(of[i >> 2], i & 3); }
};
DEVICE Bytes load_bytes(const unsigned *from) { return {{__ldg(from), __ldg(from + 1)}}; }

// Of 4x4 block k (raster): its first word of a block of rows, and of its part of interleaved levels
DEVICE int corner_8x8(int k) { return ((k >> 3) * 2 + (k >> 1 & 1)) * WORDS_8x8 + (k >> 2 & 1) * 4 * ROW_8x8 + (k & 1) * 4; }
DEVICE int part_8x8(int k) { return PART_8x8 * digit(RASTER_TO_BLOCK_DIGITS, k); }

// The 4x4 block (raster order) of each lane k < 16 -> coefficients, row i of each lane's 8x8 block
DEVICE void forward_8x8(const int *c, int *x, int *exchange, int lane) {
  const int *lane_words = exchange + (lane >> 3) * WORDS_8x8 + (lane & 7);
  int *to = exchange + corner_8x8(lane);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (lane < 16) *reinterpret_cast<int4 *>(to + ROW_8x8 * i) = make_int4(c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3]);
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 8; k++) x[k] = lane_words[ROW_8x8 * k];
  __syncwarp();
  forward_8(x);
  transpose_8(x, exchange, lane);
  forward_8(x);
}

// Scaled coefficients, row i of each lane's 8x8 block -> residual samples: the 4x4 block of each lane k < 16
DEVICE void inverse_8x8(int *x, int *c, int *exchange, int lane) {
  int *lane_words = exchange + (lane >> 3) * WORDS_8x8 + (lane & 7);
  const int *from = exchange + corner_8x8(lane & 15);
  inverse_8(x);
  transpose_8(x, exchange, lane);
  inverse_8(x);
#pragma unroll
  for (int k = 0; k < 8; k++) lane_words[ROW_8x8 * k] = (x[k] + 32) >> 6;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int4 row = *reinterpret_cast<const int4 *>(from + ROW_8x8 * i);
    if (lane < 16) c[4 * i] = row.x, c[4 * i + 1] = row.y, c[4 * i + 2] = row.z, c[4 * i + 3] = row.w;
  }
  __syncwarp();
}

// Sixteen levels of each lane k < 16 in the order of the stream, at the places that transforms of 4x4 blocks have for them, from
// or to rows of 8x8 blocks
DEVICE void rows_to_parts(const int *x, int *c, int *exchange, int lane) {
  int *block = exchange + (lane >> 3) * LEVELS_8x8;
  const int *from = exchange + part_8x8(lane & 15);
  const Bytes offsets = load_bytes(PLACING_APART.of[lane & 7]);
#pragma unroll
  for (int k = 0; k < 8; k++) block[offsets.at(k)] = x[k];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    const int4 v = *reinterpret_cast<const int4 *>(from + i);
    if (lane >= 16) continue;
    c[digit(ZIGZAG_4x4_DIGITS, i)] = v.x, c[digit(ZIGZAG_4x4_DIGITS, i + 1)] = v.y;
    c[digit(ZIGZAG_4x4_DIGITS, i + 2)] = v.z, c[digit(ZIGZAG_4x4_DIGITS, i + 3)] = v.w;
  }
  __syncwarp();
}
DEVICE void parts_to_rows(const int *c, int *x, int *exchange, int lane) {
  const int *block = exchange + (lane >> 3) * LEVELS_8x8;
  int *to = exchange + part_8x8(lane & 15);
  const Bytes offsets = load_bytes(PLACING_APART.of[lane & 7]);
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    if (lane < 16)
      *reinterpret_cast<int4 *>(to + i) = make_int4(c[digit(ZIGZAG_4x4_DIGITS, i)], c[digit(ZIGZAG_4x4_DIGITS, i + 1)],
                                                    c[digit(ZIGZAG_4x4_DIGITS, i + 2)], c[digit(ZIGZAG_4x4_DIGITS, i + 3)]);
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 8; k++) x[k] = block[offsets.at(k)];
  __syncwarp();
}
