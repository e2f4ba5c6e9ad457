// Inter macroblocks: motion compensation, residual, transform, quantisation, reconstruction (8.4, 8.5).
//
// One warp a macroblock, one lane a 4x4 block: 0..15 luma in raster order, 16..19 Cb, 20..23 Cr. A block never leaves its
// lane's registers; what concerns several blocks (coded_block_pattern, chroma DC) goes by exchange between lanes.
#include "rdo_quant.cuh"
#include "weighting.cuh"

constexpr int WARPS = 4;

struct Part {
  int x, y, w, h;  // 4x4 blocks
};

// The partition of the macroblock that holds block (bx, by)
DEVICE Part partition_of(int mb_type, const uint8_t *sub_mb_type, int bx, int by) {
  int w = 4, h = 4;
  if (mb_type == P_16x8) h = 2;
  else if (mb_type == P_8x16) w = 2;
  else if (mb_type == P_8x8) {
    const int sub = sub_mb_type[(by >> 1) * 2 + (bx >> 1)];
    w = sub >= SUB_4x8 ? 1 : 2;
    h = sub & 1 ? 1 : 2;
  }
  return {bx & ~(w - 1), by & ~(h - 1), w, h};
}

// 8.4.2.2.1 for the block (bx, by): four rows of four samples. luma: the reference's four planes
DEVICE void predict_luma(const uint8_t *luma, int width, int height, int pad, int x0, int y0, int bx, int by, const Part &part,
                         short2 v, unsigned *out) {
  const int x = clip3(0, width - 4 * part.w - 1, x0 + 4 * part.x + pad + (v.x >> 2)) + 4 * (bx - part.x);
  const int y = clip3(0, height - 4 * part.h - 1, y0 + 4 * part.y + pad + (v.y >> 2)) + 4 * (by - part.y);
  const signed char *pair = QUARTER_SAMPLE_PAIRS[4 * (v.y & 3) + (v.x & 3)];
  const uint8_t *a = luma + (size_t(pair[0]) * height + y + pair[2]) * width + x + pair[1];
  const uint8_t *b = luma + (size_t(pair[3]) * height + y + pair[5]) * width + x + pair[4];
  const bool same = a == b;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned first = load_word(a + size_t(i) * width);
    out[i] = same ? first : average4(first, load_word(b + size_t(i) * width));
  }
}

// 8.4.2.2.2 for a 4x4 block of chroma: the four vectors of quadrant q, 2x2 samples each. plane with its border
DEVICE void predict_chroma(const uint8_t *plane, int width, int height, int pad, int x0, int y0, int q, int mb_type,
                           const uint8_t *sub_mb_type, const short2 *mv, unsigned *out) {
  unsigned word[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int bx = 2 * (q & 1) + (k & 1), by = 2 * (q >> 1) + (k >> 1);
    const Part part = partition_of(mb_type, sub_mb_type, bx, by);
    const short2 v = mv[4 * by + bx];
    const int x = clip3(0, width - 2 * part.w - 1, x0 + 2 * part.x + pad + (v.x >> 3)) + 2 * (bx - part.x);
    const int y = clip3(0, height - 2 * part.h - 1, y0 + 2 * part.y + pad + (v.y >> 3)) + 2 * (by - part.y);
    const int fx = v.x & 7, fy = v.y & 7;
    const int wa = (8 - fx) * (8 - fy), wb = fx * (8 - fy), wc = (8 - fx) * fy, wd = fx * fy;
    int s[3][3];
#pragma unroll
    for (int r = 0; r < 3; r++)
#pragma unroll
      for (int c = 0; c < 3; c++) s[r][c] = __ldg(plane + size_t(y + r) * width + x + c);
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int c = 0; c < 2; c++) {
        const int value = (wa * s[r][c] + wb * s[r][c + 1] + wc * s[r + 1][c] + wd * s[r + 1][c + 1] + 32) >> 6;
        word[2 * (k >> 1) + r] |= unsigned(value) << (8 * (2 * (k & 1) + c));
      }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = word[i];
}

// 8.5.11.1 over the four lanes of a plane: lane k of each four has value k
DEVICE int hadamard_2x2(int value, int lane) {
  int other = __shfl_xor_sync(FULL_WARP, value, 1);
  value = lane & 1 ? other - value : value + other;
  other = __shfl_xor_sync(FULL_WARP, value, 2);
  return lane & 2 ? other - value : value + other;
}

// Arguments as the launcher says; macroblock rows [row0, row0 + gridDim.y).
extern "C" __global__ void __launch_bounds__(32 * WARPS) inter_residual(const uint8_t *__restrict__ src_y,
    const uint8_t *__restrict__ src_u, const uint8_t *__restrict__ src_v, const uint8_t *__restrict__ ref_luma,
    const uint8_t *__restrict__ ref_chroma, const int *__restrict__ ref_slots, const int *__restrict__ weights, int pad, int mb_width,
    int mb_height, int row0,
    int chroma_qp_offset, int trellis, const uint8_t *__restrict__ sub_mb_type, const uint8_t *__restrict__ qp, uint8_t *mb_type,
    signed char *ref_idx, short2 *mv, uint8_t *rec_y, uint8_t *rec_u, uint8_t *rec_v, short *levels, uint8_t *total_coeff,
    uint8_t *transform_8x8, uint8_t *cbp) {
  SHARED(uint16_t, ratios, WARPS * 16 * 32);
  const int lane = threadIdx.x & 31, mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0;
  if (mx >= mb_width) return;
  const int mb = my * mb_width + mx, qp_y = load_before_the_wait(qp + mb);
  wait_for_the_kernel_before();
  const int kind = mb_type[mb];
  if (kind <= LAST_INTRA) return;
  const bool luma = lane < 16, active = lane < 24;
  const int plane = lane >> 2 & 1, q = lane & 3;  // of chroma lanes
  const int bx = lane & 3, by = lane >> 2 & 3;    // of luma lanes
  const int width = mb_width * 16, height = mb_height * 16;
  const uint8_t *sub = sub_mb_type + 4 * mb;
  unsigned predicted[4] = {0, 0, 0, 0}, source[4] = {0, 0, 0, 0};
  uint8_t *rec = nullptr;
  int stride = width;
  if (luma) {
    const size_t slot = ref_slots[ref_idx[4 * mb + (by >> 1) * 2 + (bx >> 1)]];
    const int wide = width + 2 * pad, high = height + 2 * pad;
    predict_luma(ref_luma + slot * 4 * wide * high, wide, high, pad, mx * 16, my * 16, bx, by, partition_of(kind, sub, bx, by),
                 mv[16 * mb + lane], predicted);
    const size_t at = size_t(my * 16 + 4 * by) * stride + mx * 16 + 4 * bx;
#pragma unroll
    for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>(src_y + at + i * stride));
    rec = rec_y + at;
  } else if (active) {
    const size_t slot = ref_slots[ref_idx[4 * mb + q]];
    const int wide = width / 2 + pad, high = height / 2 + pad;
    stride = width / 2;
    predict_chroma(ref_chroma + (slot * 2 + plane) * wide * high, wide, high, pad / 2, mx * 8, my * 8, q, kind, sub, mv + 16 * mb,
                   predicted);
    const size_t at = size_t(my * 8 + 4 * (q >> 1)) * stride + mx * 8 + 4 * (q & 1);
#pragma unroll
    for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>((plane ? src_v : src_u) + at + i * stride));
    rec = (plane ? rec_v : rec_u) + at;
  }
  // 8.4.2.3: the quadrants that reference 0 predicts
  if (weights[0] & (luma ? LUMA_WEIGHTED : CHROMA_WEIGHTED) && active && !ref_idx[4 * mb + (luma ? (by >> 1) * 2 + (bx >> 1) : q)]) {
    const int *pair = weights + (luma ? 2 : 5 + 2 * plane), log2 = weights[luma ? 1 : 4];
#pragma unroll
    for (int i = 0; i < 4; i++) predicted[i] = weigh4(predicted[i], log2, pair[0], pair[1]);
  }
  int c[16];
#pragma unroll
  for (int p = 0; p < 16; p++) c[p] = byte_of(source[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
  const int qp_c = QP_CHROMA[clip3(0, 51, qp_y + chroma_qp_offset)], own_qp = luma ? qp_y : qp_c;
  forward_4x4(c);
  // chroma DC
  int dc = quantise_dc(hadamard_2x2(c[0], lane), qp_c, DEAD_ZONE_INTER);
  if (luma || !active) dc = 0;
  const bool any_dc = __any_sync(FULL_WARP, dc);
  const bool clipped = __any_sync(FULL_WARP, abs(dc) >= MAX_LEVEL);
  if (trellis) quantise_weighed(c, own_qp, luma ? 0 : 1, ratios + (threadIdx.x >> 5) * 16 * 32 + lane);
  else quantise_4x4(c, own_qp, DEAD_ZONE_INTER, !luma);
  // what is not worth its bits
  int score = decimate_score(c), group = score;
  if (luma) {  // a quadrant's blocks are lanes that differ in bits 0 and 2
    group += __shfl_xor_sync(0xffffu, group, 1);
    group += __shfl_xor_sync(0xffffu, group, 4);
  } else {  // a plane's in bits 0 and 1
    group += __shfl_xor_sync(0xffff0000u, group, 1);
    group += __shfl_xor_sync(0xffff0000u, group, 2);
  }
  bool kept = active && group >= (luma ? THRESHOLD_8x8 : THRESHOLD_CHROMA);
  const unsigned total = __reduce_add_sync(FULL_WARP, luma && kept ? unsigned(score) : 0u);
  if (luma && total < THRESHOLD_16x16) kept = false;
  const unsigned votes = __ballot_sync(FULL_WARP, kept);
  const int luma_cbp = int((votes & 1) | (votes >> 1 & 2) | (votes >> 6 & 4) | (votes >> 7 & 8));  // lanes 0, 2, 8, 10
  const int chroma_cbp = votes >> 16 & 0xff ? 2 : any_dc ? 1 : 0;
  if (!kept)
#pragma unroll
    for (int p = 0; p < 16; p++) c[p] = 0;
  const int count = active ? count_levels(c) : 0;
  short *to = levels + size_t(mb) * N_LEVEL_BLOCKS * 16;
  if (active) {
    total_coeff[mb * 24 + lane] = uint8_t(count);
    store_levels(to + 16 * (luma ? digit(RASTER_TO_BLOCK_DIGITS, lane) : lane), c);
  }
  // the DC blocks: four levels and twelve zeros each, eight bytes a lane
  const int d0 = __shfl_sync(FULL_WARP, dc, lane & ~3), d1 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 1);
  const int d2 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 2), d3 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 3);
  if (lane >= 16 && lane < 28) {
    uint2 v = {0, 0};
    if (lane < 24 && q == 0) v = {(unsigned(d0) & 0xffff) | unsigned(d1) << 16, (unsigned(d2) & 0xffff) | unsigned(d3) << 16};
    const int block = lane < 24 ? CB_DC + plane : LUMA_DC;
    reinterpret_cast<uint2 *>(to + 16 * block)[q] = v;
  }
  // I_PCM where the levels cost more
  const int all = int(__reduce_add_sync(FULL_WARP, unsigned(count + (dc != 0))));
  bool pcm = clipped;
  if (all > FEW_LEVELS) {
    int bits = active ? bits_at_most(c) : 0;
    if (lane == 24 || lane == 25) bits = 0;
    // the chroma DC blocks, as if their four levels were a block in scan order
    int block[16];
#pragma unroll
    for (int i = 0; i < 16; i++) block[i] = 0;
    block[digit(ZIGZAG_4x4_DIGITS, 0)] = d0;
    block[digit(ZIGZAG_4x4_DIGITS, 1)] = d1;
    block[digit(ZIGZAG_4x4_DIGITS, 2)] = d2;
    block[digit(ZIGZAG_4x4_DIGITS, 3)] = d3;
    if (lane == 16 || lane == 20) bits += bits_at_most(block);
    pcm |= __reduce_add_sync(FULL_WARP, unsigned(bits)) > unsigned(PCM_BITS);
  }
  // reconstruction
  int scaled_dc = hadamard_2x2(dc, lane);
  scaled_dc = ((scaled_dc * 16 * NORM_ADJUST_4x4[qp_c % 6][0]) << (qp_c / 6)) >> 5;
  scale_4x4(c, own_qp);
  if (!luma) c[0] = scaled_dc;
  inverse_4x4(c);
  if (active) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int s[4];
#pragma unroll
      for (int j = 0; j < 4; j++) s[j] = clip255(byte_of(predicted[i], j) + c[4 * i + j]);
      *reinterpret_cast<unsigned *>(rec + size_t(i) * stride) = pack4(s[0], s[1], s[2], s[3]);
    }
  }
  __syncwarp();
  if (lane == 0) {
    cbp[mb] = uint8_t(luma_cbp + 16 * chroma_cbp);
    transform_8x8[mb] = 0;
    if (pcm) mb_type[mb] = I_PCM;
  }
  if (pcm) {
    if (lane < 4) ref_idx[4 * mb + lane] = -1;
    if (lane < 16) mv[16 * mb + lane] = make_short2(0, 0);
  }
}
