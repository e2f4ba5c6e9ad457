// Inter macroblocks: motion compensation, residual, transform, quantisation, reconstruction (8.4, 8.5).
//
// One warp a macroblock, one lane a 4x4 block: 0..15 luma in raster order, 16..19 Cb, 20..23 Cr. A block never leaves its
// lane's registers; what concerns several blocks (coded_block_pattern, chroma DC) goes by exchange between lanes. With the 8x8
// transform (kernels with 8x8 in their names) a lane has a part of an 8x8 block's levels in place of a 4x4 block of luma. B
// frames have kernels of their own, inter_residual_b.cu, so that those of P frames need no registers for list 1.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "residual/inter_residual_launch.cuh"
#include "decisions/quantise.cuh"
#include "quantiser/quantise_8x8.cuh"
#include "inter/motion_compensation.cuh"
#include "inter/weighting.cuh"
#include "residual/near_qps.cuh"

template <bool EITHER>
constexpr int WARPS = EITHER ? WARPS_OF_CHOICE : WARPS_OF_ONE;
constexpr int WORST = 1 << 30;  // more than any cost
constexpr int LAST_TURN = 3;    // of the levels that a macroblock is tried with
constexpr int RESIDENT = 2;  // minimum blocks a multiprocessor with the choice of the transform

// List 1 of P frames
struct NoList1 {
  static constexpr bool ANY = false;
};

// List 1 of B frames; `mv` and `ref_idx` as those of list 0, bi_weights: int32[n_ref * n_ref1], its implicit weights, of 64
struct List1 {
  static constexpr bool ANY = true;
  signed char *ref_idx;
  short2 *mv;
  const int *bi_weights;
  int n_ref, n_ref1;
};

// 8.4.2: the block of a lane of macroblock mb of a B frame, from list 0, list 1 or both
DEVICE void predict_b(const List1 &list_1, const Sample *ref_luma, const Sample *ref_chroma, const int *ref_slots,
                      const signed char *ref_idx, const short2 *mv, int pad, int mb, int mb_width, int mb_height, int lane,
                      unsigned *predicted) {
  const int mx = mb % mb_width, my = mb / mb_width, bx = lane & 3, by = lane >> 2 & 3, plane = lane >> 2 & 1, q = lane & 3;
  const bool luma = lane < 16;
  const int quadrant = 4 * mb + (luma ? (by >> 1) * 2 + (bx >> 1) : q), block = 16 * mb + (luma ? lane : 8 * (q >> 1) + 2 * (q & 1));
  const int ref_0 = ref_idx[quadrant], ref_1 = list_1.ref_idx[quadrant];
  unsigned first[4];
#pragma unroll
  for (int n = 0; n < 2; n++) {
    if ((n ? ref_1 : ref_0) < 0) continue;
    const size_t slot = ref_slots[n ? list_1.n_ref + ref_1 : ref_0];
    const short2 v = (n ? list_1.mv : mv)[block];
    if (luma) {  // as if the vector were the macroblock's: where that changes the limits, all samples of a row or column are equal
      const int wide = mb_width * 16 + 2 * pad, high = mb_height * 16 + 2 * pad;
      predict_luma(ref_luma + slot * 4 * wide * high, wide, high, pad, mx * 16, my * 16, bx, by, {0, 0, 4, 4}, v, predicted);
    } else {
      const int wide = chroma_width(mb_width * 16, pad), high = chroma_height(mb_height * 16, pad);
      predict_chroma_4x4(ref_chroma + (slot * 2 + plane) * wide * high, wide, high, pad / SUB_WIDTH_C, mx * MB_WIDTH_C,
                         my * MB_HEIGHT_C, q, v, predicted);
    }
#pragma unroll
    for (int i = 0; i < 4 && n == 0; i++) first[i] = predicted[i];
  }
  if ((ref_0 | ref_1) < 0) return;
  const int weight = __ldg(list_1.bi_weights + ref_0 * list_1.n_ref1 + ref_1);
#pragma unroll
  for (int i = 0; i < 4; i++) predicted[i] = weigh_both(first[i], predicted[i], weight);
}

// EITHER: luma by the 4x4 or the 8x8 transform. FOR_CABAC: levels are chosen by the trellis. Arguments as the launcher says;
// macroblock rows [row0, row0 + gridDim.y). Scaling: of scaling lists, see transform.cuh. Second: NoList1 or List1. Qps: OneQp or NearQps,
// with which a macroblock is coded by one QP after another, and at last by the best one.
template <bool EITHER, bool FOR_CABAC, class Scaling, class Second, class Qps>
DEVICE void code_macroblock(const Scaling &all_scaling, const Second &list_1, const Qps &qps, const Scratch &scratch,
    const Sample *__restrict__ src_y, const Sample *__restrict__ src_u, const Sample *__restrict__ src_v,
    const Sample *__restrict__ ref_luma, const Sample *__restrict__ ref_chroma,
    const int *__restrict__ ref_slots, const int *__restrict__ weights, int pad, int mb_width, int mb_height, int row0,
    int chroma_qp_offset, int trellis, int dead_zone, const uint8_t *__restrict__ sub_mb_type, const uint8_t *__restrict__ qp,
    uint8_t *mb_type, signed char *ref_idx, short2 *mv,
    Sample *rec_y, Sample *rec_u, Sample *rec_v, short *levels, uint8_t *total_coeff, uint8_t *transform_8x8, uint8_t *cbp) {
  SHARED(uint16_t, ratios, WARPS<EITHER> * 16 * 32);
  SHARED(unsigned, levels_8x8, EITHER ? WARPS<EITHER> * 8 * 32 : 1);  // two a word; here and the prediction too, since registers are few
  SHARED(unsigned, prediction, EITHER ? WARPS<EITHER> * 4 * 32 : 1);
  constexpr bool AGAIN = EITHER && Qps::ANY;  // the source is there too
  SHARED(unsigned, original, AGAIN ? WARPS<EITHER> * 4 * 32 : 1);
  const int lane = threadIdx.x & 31, mx = int(blockIdx.x) * WARPS<EITHER> + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0;
  if (mx >= mb_width) return;
  const int mb = my * mb_width + mx, mb_qp = load_before_the_wait(qp + mb);
  wait_for_the_kernel_before();
  const int type_of_mb = mb_type[mb];
  if (type_of_mb <= LAST_INTRA) return;
  const bool luma = lane < 16, active = lane < 24, skipped = type_of_mb == (Second::ANY ? B_SKIP : P_SKIP);
  const int plane = lane >> 2 & 1, q = lane & 3;  // of chroma lanes
  const int bx = lane & 3, by = lane >> 2 & 3;    // of luma lanes
  const int width = mb_width * 16, height = mb_height * 16;
  const uint8_t *sub = sub_mb_type + 4 * mb;
  unsigned predicted[4] = {0, 0, 0, 0}, source[4] = {0, 0, 0, 0};
  const int quadrant = luma ? (by >> 1) * 2 + (bx >> 1) : q;
  if (luma) {
    if constexpr (!Second::ANY) {
      const size_t slot = ref_slots[ref_idx[4 * mb + quadrant]];
      const int wide = width + 2 * pad, high = height + 2 * pad;
      predict_luma(ref_luma + slot * 4 * wide * high, wide, high, pad, mx * 16, my * 16, bx, by, {bx, by, 1, 1},
                   mv[16 * mb + lane], predicted);
    }
    const Sample *from = src_y + size_t(my * 16 + 4 * by) * width + mx * 16 + 4 * bx;
#pragma unroll
    for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>(from + i * width));
  } else if (active) {
    if constexpr (!Second::ANY) {
      const size_t slot = ref_slots[ref_idx[4 * mb + q]];
      const int wide = chroma_width(width, pad), high = chroma_height(height, pad);
      predict_chroma(ref_chroma + (slot * 2 + plane) * wide * high, wide, high, pad / SUB_WIDTH_C, mx * MB_WIDTH_C,
                     my * MB_HEIGHT_C, q, mv + 16 * mb, predicted);
    }
    const Sample *from = (plane ? src_v : src_u) + size_t(my * MB_HEIGHT_C + 4 * (q >> 1)) * (width / SUB_WIDTH_C) +
                         mx * MB_WIDTH_C + 4 * (q & 1);
#pragma unroll
    for (int i = 0; i < 4; i++) source[i] = __ldg(reinterpret_cast<const unsigned *>(from + i * (width / SUB_WIDTH_C)));
  }
  if constexpr (Second::ANY) {
    if (active) predict_b(list_1, ref_luma, ref_chroma, ref_slots, ref_idx, mv, pad, mb, mb_width, mb_height, lane, predicted);
  } else {
    if (active) weigh_block(weights, ref_idx[4 * mb + quadrant], luma, plane, predicted);
  }
  unsigned *own_prediction = prediction + (EITHER ? (threadIdx.x >> 5) * 4 * 32 + lane : 0);
#pragma unroll
  for (int i = 0; i < 4 && EITHER; i++) own_prediction[32 * i] = predicted[i];
  unsigned *own_source = original + (AGAIN ? (threadIdx.x >> 5) * 4 * 32 + lane : 0);
#pragma unroll
  for (int i = 0; i < 4 && AGAIN; i++) own_source[32 * i] = source[i];
  BestQp best = {1ll << 60, mb_qp};
#pragma unroll 1
  for (int turn_of_qp = 0;; turn_of_qp++) {  // one, or those of the QPs and that of the best one
    bool last = !Qps::ANY || turn_of_qp > 2 * QP_REACH;
    const int qp_y = last ? best.qp : near_qp(mb_qp, turn_of_qp);
    if constexpr (Qps::ANY)
      if (turn_of_qp && !last && (qp_y < qps.least || qp_y > qps.most)) continue;
    const int factor = Qps::ANY ? TRELLIS_INTER * QP_FACTOR[QP_REACH + qp_y - mb_qp] >> 8 : TRELLIS_INTER;
    int c[16];
#pragma unroll
    for (int p = 0; p < 16; p++) {
      const unsigned row = AGAIN ? own_prediction[32 * (p >> 2)] : predicted[p >> 2];
      c[p] = byte_of(AGAIN ? own_source[32 * (p >> 2)] : source[p >> 2], p & 3) - byte_of(row, p & 3);
    }
    const int qp_c = QP_CHROMA[clip3(0, 51, qp_y + chroma_qp_offset)], own_qp = luma ? qp_y : qp_c;
    const auto scaling = of_block(all_scaling, SCALING_SET, luma, plane);
    uint16_t *own_ratios = ratios + (threadIdx.x >> 5) * 16 * 32 + lane;
    unsigned *parts_8x8 = levels_8x8 + (EITHER ? (threadIdx.x >> 5) * 8 * 32 + lane : 0);
    bool either = false, is_8x8 = false, any = false;
    int rows[8], cost = 0, cost_8x8 = 0, patterns = 0;  // of 4x4 blocks, and of 8x8 from bit 4 on
    const Choice how = FOR_CABAC ? TRELLIS : trellis ? BY_CAVLC : AS_ROUNDED;
    if ((EITHER || FOR_CABAC) && (!Qps::ANY || turn_of_qp == 0)) {
      fill_bits<true>(scratch.bits, N_INTER_CONTEXTS, Second::ANY ? 2 : 1, qp_y, lane);
    }
    if (EITHER) {  // 7.3.5: NoSubMbPartSizeLessThan8x8Flag
      either = !skipped && (type_of_mb != P_8x8 || !*reinterpret_cast<const unsigned *>(sub));
      if (either) forward_8x8(c, rows, scratch.exchange, lane);
    }
    forward_4x4(c);
    int dc = 0;
    // As in _code_either of cpu_simd/residual/inter_residual.py: 4x4 and 8x8 rounded, then 8x8 with chosen levels; at last 4x4 and chroma. One
    // copy of the code for all, which is longer than the instruction cache.
#pragma unroll 1
    for (int turn = EITHER ? 0 : LAST_TURN; turn <= LAST_TURN; turn++) {
      if (EITHER) {
        if (!Qps::ANY) __syncthreads();  // the warps take the same code at the same time, since all of it does not fit the instruction cache
        if (turn < LAST_TURN && !either) continue;
      }
      int words[16];  // levels with their ratios
      if (EITHER && turn == 0) {
        quantise_with_ratios(scaling, c, own_qp, dead_zone, !luma, words);
      } else if (EITHER && turn < LAST_TURN) {
        if (turn == 2 && (how == AS_ROUNDED || cost_8x8 == WORST)) continue;
        quantise_8x8(scaling, rows, qp_y, turn == 2 ? how : AS_ROUNDED, dead_zone, words, own_ratios, scratch, lane, factor);
      } else {
#pragma unroll
        for (int p = 0; p < 16; p++)
          if (EITHER && cost == WORST && luma) c[p] = 0;
        const int dc_coefficient = hadamard_2x2(c[0], lane);
        dc = quantise_dc(scaling, dc_coefficient, qp_c, FOR_CABAC ? fraction_of(DEAD_ZONE_NEAREST) : fraction_of(DEAD_ZONE_INTER));
        if (FOR_CABAC && !skipped) {  // lanes 24 and 25: chroma DC
          const bool is_dc = lane >= 24;
          const int first = luma || is_dc ? 0 : 1;
          __syncwarp();
          if (active) store_ratios(scaling, c, own_qp, own_ratios);
          if (active && !luma) own_ratios[32 * q + 24 + plane - lane] = uint16_t(dc_ratio(scaling, dc_coefficient, qp_c));
          __syncwarp();
          const BlockContexts at = is_dc ? contexts_chroma_dc(scratch.bits) : contexts_4x4(scratch.bits, !luma);
          const int own_factor = luma ? factor : chroma_factor(factor, qp_y, qp_c);
          const auto cost_of_error = is_dc ? of_block(all_scaling, SCALING_SET, false, lane & 1).dc_cost(own_factor) : scaling.cost(own_factor, first);
          const unsigned path = choose_levels(own_ratios + 32 * first, 32, is_dc ? 4 : 16 - first, scratch.bits, at, cost_of_error,
                                              lane < 26);
          if (!luma) c[0] = 0;
          quantise_lowered(scaling, c, own_qp, path << first);
          if (__shfl_sync(FULL_WARP, path, 24 + plane) >> q & 1) dc -= dc > 0 ? 1 : -1;
        }
        if (how == BY_CAVLC) quantise_weighed(scaling, c, own_qp, luma ? 0 : 1, own_ratios);
        if (how == AS_ROUNDED) quantise_4x4(scaling, c, own_qp, luma ? dead_zone : fraction_of(DEAD_ZONE_INTER), !luma);
        if (!EITHER || !either || how == AS_ROUNDED || cost == WORST) break;
#pragma unroll
        for (int i = 0; i < 16; i++) {
          const int p = digit(ZIGZAG_4x4_DIGITS, i);
          words[p] = luma ? with_ratio(c[p], own_ratios[32 * i]) : 0;
        }
      }
      if constexpr (EITHER) {
        const bool by_8x8 = turn == 1 || turn == 2;
        const BlockCost block = block_cost(words, by_8x8, scratch.bits, scratch.exchange, lane);
        int pattern;
        const int value = luma_cost(block, scratch.bits, pattern);
        (by_8x8 ? cost_8x8 : cost) = value;
        patterns = by_8x8 ? (patterns & 15) | pattern << 4 : (patterns & ~15) | pattern;
        if (turn == LAST_TURN) break;
        any |= luma && block.coded;
        if (by_8x8)
#pragma unroll
          for (int p = 0; p < 8; p++) parts_8x8[32 * p] = (unsigned(words[2 * p]) & 0xffff) | unsigned(words[2 * p + 1]) << 16;
        if (turn == 1 && how != AS_ROUNDED) {
          any = __any_sync(FULL_WARP, any);
          const bool try_4x4 = any && cost <= cost_8x8 + (cost_8x8 >> CHOICE_NEAR);
          const bool try_8x8 = any && cost_8x8 < cost + (cost >> CHOICE_NEAR);
          if (!try_8x8) cost_8x8 = WORST;
          if (!try_4x4) cost = WORST, patterns &= ~15;
        }
      }
    }
    if (EITHER && !Qps::ANY) __syncthreads();
    if (luma || !active || skipped) dc = 0;
    const bool any_dc = __any_sync(FULL_WARP, dc);
    const bool clipped = __any_sync(FULL_WARP, abs(dc) >= CLIPPED<Scaling>);
    if (EITHER && either) {
      is_8x8 = cost_8x8 < cost;
      if (is_8x8) {
        patterns >>= 4;
#pragma unroll
        for (int p = 0; p < 16; p++)
          if (luma) c[p] = p & 1 ? int(parts_8x8[32 * (p >> 1)]) >> 16 : int(short(parts_8x8[32 * (p >> 1)]));
      }
    }
    // what is not worth its bits
    const Masks masks = masks_of(c);
    const int score = decimate_score(masks);
    int group = score;
    if (luma) {  // a quadrant's blocks are lanes that differ in bits 0 and 2
      group += __shfl_xor_sync(0xffffu, group, 1);
      group += __shfl_xor_sync(0xffffu, group, 4);
    } else {  // a plane's in bits 0 and 1
      group += __shfl_xor_sync(0xffff0000u, group, 1);
      group += __shfl_xor_sync(0xffff0000u, group, 2);
    }
    bool kept = active && !skipped && group >= (!luma ? THRESHOLD_CHROMA : FOR_CABAC ? TRELLIS_THRESHOLD_8x8 : THRESHOLD_8x8);
    const unsigned total = __reduce_add_sync(FULL_WARP, luma && kept ? unsigned(score) : 0u);
    if (luma && total < (FOR_CABAC ? TRELLIS_THRESHOLD_16x16 : THRESHOLD_16x16)) kept = false;
    if (EITHER && either && luma) kept = patterns >> (by & 2 | bx >> 1) & 1;
    const unsigned votes = __ballot_sync(FULL_WARP, kept);
    const int luma_cbp = int((votes & 1) | (votes >> 1 & 2) | (votes >> 6 & 4) | (votes >> 7 & 8));  // lanes 0, 2, 8, 10
    const int chroma_cbp = votes >> 16 & 0xff ? 2 : any_dc ? 1 : 0;
    if (!kept)
#pragma unroll
      for (int p = 0; p < 16; p++) c[p] = 0;
    int bits = 0;
    if constexpr (Qps::ANY) {
      last = last || (turn_of_qp == 0 && (luma_cbp | chroma_cbp) == 0);
      const Masks left = {kept ? masks.coded : 0, kept ? masks.larger : 0};
      if (!last) bits = residual_bits(c, left, is_8x8, luma_cbp + 16 * chroma_cbp, dc, own_ratios, scratch.bits, lane);
    }
    bool too_large = clipped;  // DC levels, and those of 8x8 blocks; all with scaling lists that are not flat
    if (Scaling::ANY || (EITHER && is_8x8)) {
      bool any = false;
#pragma unroll
      for (int p = 0; p < 16; p++) any |= (luma || Scaling::ANY) && abs(c[p]) >= CLIPPED<Scaling>;
      too_large |= __any_sync(FULL_WARP, any);
    }
    const int count = kept ? __popc(masks.coded) : 0;
    short *to = levels + size_t(mb) * N_LEVEL_BLOCKS * 16;
    if (last && active) {
      total_coeff[mb * 24 + lane] = uint8_t(count);
      store_levels(to + 16 * (luma ? digit(RASTER_TO_BLOCK_DIGITS, lane) : lane), c);
    }
    // the DC blocks: four levels and twelve zeros each, eight bytes a lane
    const int d0 = __shfl_sync(FULL_WARP, dc, lane & ~3), d1 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 1);
    const int d2 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 2), d3 = __shfl_sync(FULL_WARP, dc, (lane & ~3) + 3);
    if (last && lane >= 16 && lane < 28) {
      uint2 v = {0, 0};
      if (lane < 24 && q == 0) v = {(unsigned(d0) & 0xffff) | unsigned(d1) << 16, (unsigned(d2) & 0xffff) | unsigned(d3) << 16};
      const int block = lane < 24 ? CB_DC + plane : LUMA_DC;
      reinterpret_cast<uint2 *>(to + 16 * block)[q] = v;
    }
    // I_PCM where the levels cost more
    const int all = int(__reduce_add_sync(FULL_WARP, unsigned(count + (dc != 0))));
    bool pcm = too_large;
    if (last && all > FEW_LEVELS) {
      // lanes 24 and 25: the chroma DC blocks, as if their four levels were a block in scan order
      int block[16];
#pragma unroll
      for (int i = 0; i < 16; i++) block[i] = active ? c[i] : 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int level = __shfl_sync(FULL_WARP, dc, 16 + 4 * (lane & 1) + i);
        if (lane == 24 || lane == 25) block[digit(ZIGZAG_4x4_DIGITS, i)] = level;
      }
      const int bits = bits_at_most(block);
      pcm |= __reduce_add_sync(FULL_WARP, unsigned(bits)) > unsigned(PCM_BITS);
    }
    // reconstruction
    int scaled_dc = hadamard_2x2(dc, lane);
    scaled_dc = ((scaled_dc * scaling.dc_scale(qp_c)) << (qp_c / 6)) >> 5;
    int x[8];  // a row of an 8x8 block
    if (EITHER && is_8x8) parts_to_rows(c, x, scratch.exchange, lane);
    scale_4x4(scaling, c, own_qp);
    if (!luma) c[0] = scaled_dc;
    inverse_4x4(c);
    if (EITHER && is_8x8) {
      const auto quantiser = row_quantiser(scaling, SCALING_SET, qp_y, fraction_of(DEAD_ZONE_INTER), lane & 7);
#pragma unroll
      for (int k = 0; k < 8; k++) x[k] = scale(quantiser, k, x[k]);
      inverse_8x8(x, c, scratch.exchange, lane);
    }
    if (Scaling::ANY || max(qp_y, qp_c) >= RANGE_QP) pcm |= __any_sync(FULL_WARP, active && is_beyond(c));
    int error = 0;
    if (active) {
      const int stride = luma ? width : width / SUB_WIDTH_C;
      Sample *rec = luma ? rec_y + size_t(my * 16 + 4 * by) * stride + mx * 16 + 4 * bx
                         : (plane ? rec_v : rec_u) + size_t(my * MB_HEIGHT_C + 4 * (q >> 1)) * stride + mx * MB_WIDTH_C + 4 * (q & 1);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const unsigned row = EITHER ? own_prediction[32 * i] : predicted[i];
        int s[4];
#pragma unroll
        for (int j = 0; j < 4; j++) s[j] = clip1(byte_of(row, j) + c[4 * i + j]);
        if (last) *reinterpret_cast<unsigned *>(rec + size_t(i) * stride) = pack4(s[0], s[1], s[2], s[3]);
#pragma unroll
        for (int j = 0; j < 4 && Qps::ANY; j++) {
          const int left = s[j] - byte_of(AGAIN ? own_source[32 * i] : source[i], j);
          error += left * left;
        }
      }
    }
    if constexpr (Qps::ANY) {
      if (!last) {
        const int squared = int(__reduce_add_sync(FULL_WARP, unsigned(error)));
        if (luma_cbp | chroma_cbp) bits += ONE_BIT * QP_CHANGE_BITS[QP_REACH + qp_y - mb_qp];
        const long long cost = ((long long)(squared) * QP_DISTORTION[mb_qp] >> 8) + bits;
        if (cost < best.cost) best = {cost, qp_y};
        continue;
      }
      if (lane == 0 && (luma_cbp | chroma_cbp) && !pcm) qps.qp[mb] = uint8_t(qp_y);
    }
    __syncwarp();
    if (lane == 0) {
      cbp[mb] = uint8_t(luma_cbp + 16 * chroma_cbp);
      transform_8x8[mb] = EITHER && is_8x8 && patterns;
      if (pcm) mb_type[mb] = I_PCM;
    }
    if (pcm) {
      if (lane < 4) ref_idx[4 * mb + lane] = -1;
      if (lane < 16) mv[16 * mb + lane] = make_short2(0, 0);
      if constexpr (Second::ANY) {
        if (lane < 4) list_1.ref_idx[4 * mb + lane] = -1;
        if (lane < 16) list_1.mv[16 * mb + lane] = make_short2(0, 0);
      }
    }
    break;
  }
}

#define NO_MORE
#define SCALING , const short *__restrict__ scaling
#define INTER_RESIDUAL(name, either, cabac, scaling, list_1, qps, more, ...)                                                                                         \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name(const Sample *__restrict__ src_y, const Sample *__restrict__ src_u, \
      const Sample *__restrict__ src_v, const Sample *__restrict__ ref_luma, const Sample *__restrict__ ref_chroma,                 \
      const int *__restrict__ ref_slots, const int *__restrict__ weights, int pad, int mb_width, int mb_height, int row0,           \
      int chroma_qp_offset, int trellis, int dead_zone, const uint8_t *__restrict__ sub_mb_type,                                    \
      const uint8_t *__restrict__ qp, uint8_t *mb_type, signed char *ref_idx, short2 *mv,                                           \
      Sample *rec_y, Sample *rec_u, Sample *rec_v, short *levels, uint8_t *total_coeff, uint8_t *transform_8x8, uint8_t *cbp more) {     \
    Scratch scratch = {nullptr, nullptr};                                                                                           \
    const int warp = int(threadIdx.x >> 5);                                                                                         \
    if constexpr (either) {                                                                                                         \
      SHARED(int, exchange, WARPS<either> * EXCHANGE_8x8);                                                                              \
      scratch.exchange = exchange + warp * EXCHANGE_8x8;                                                                            \
    }                                                                                                                               \
    if constexpr (either || cabac) {                                                                                                \
      SHARED(unsigned, bits, WARPS<either> * N_INTER_BITS);                                                                             \
      scratch.bits = bits + warp * N_INTER_BITS;                                                                                    \
    }                                                                                                                               \
    code_macroblock<either, cabac>(scaling, list_1, qps, scratch, src_y, src_u, src_v, ref_luma, ref_chroma, ref_slots, weights, pad, mb_width, mb_height,\
                                   row0, chroma_qp_offset, trellis, dead_zone, sub_mb_type, qp, mb_type, ref_idx, mv, rec_y, rec_u, rec_v, levels,\
                                   total_coeff, transform_8x8, cbp);                                                                \
  }
