// CABAC: the bins of a macroblock by a warp (9.3.2, 9.3.3.1), as cpu_simd/entropy/cabac_macroblock.py has them but for
// end_of_slice_flag, which comes before the next macroblock. Each lane has a part, in the order of lanes: its bins are counted,
// and stored after those of the lanes before.
#pragma once
#include "entropy/cabac_b.cuh"
#include "cabac_tables.cuh"
#include "entropy/macroblock_state.cuh"
#include "inter/mv_prediction.cuh"

// Receives bins: counts them, or stores them
struct CountedBins {
  int count = 0;
  DEVICE void put(int, int) { count++; }
};
struct StoredBins {
  uint16_t *to;
  DEVICE void put(int context, int bin) { *to++ = uint16_t(context << 1 | bin); }
};

// Lanes of the part before residual()
constexpr int TYPE_LANE = 0, REF_LANES = 1, BLOCK_LANES = 5, PATTERN_LANE = 21;

// mb_qp_delta of a macroblock, and whether that of the macroblock before in coding order is not 0
struct QpDelta {
  int delta;
  bool after_delta;
};

// 7.4.5, 9.3.3.1.1.5, the whole warp: of a macroblock that has mb_qp_delta
DEVICE QpDelta qp_delta_of(const State &s, int mb, int first_mb) {
  const int lane = threadIdx.x & 31;
  int last = -1, qp[2] = {__ldg(s.frame_params), __ldg(s.frame_params)}, n_residuals = 0;  // of the two residuals before
  for (int end = mb; end > first_mb && n_residuals < 2; end -= 32) {
    const int i = end - 1 - lane;
    unsigned residual = __ballot_sync(FULL_WARP, i >= first_mb && has_residual(s, i, s.mb_type[i]));
    for (; residual && n_residuals < 2; residual &= residual - 1) {
      const int n = end - 1 - (__ffs(int(residual)) - 1);
      if (n_residuals == 0) last = n;
      qp[n_residuals++] = s.qp[n];
    }
  }
  if (n_residuals == 1) qp[1] = __ldg(s.frame_params);
  return {(int(s.qp[mb]) - qp[0] + 26 + 52) % 52 - 26, last == mb - 1 && last >= 0 && qp[0] != qp[1]};
}

// 9.3.2.3: the suffix of a UEGk binarisation
template <class Sink>
DEVICE void put_exp_golomb(Sink &sink, int value, int k) {
  for (; value >= 1 << k; k++) {
    sink.put(BYPASS, 1);
    value -= 1 << k;
  }
  sink.put(BYPASS, 0);
  while (k-- > 0) sink.put(BYPASS, value >> k & 1);
}

DEVICE bool is_nxn(int mb_type) { return mb_type == I_4x4 || mb_type == I_8x8; }

// Tables 9-36, 9-37: mb_type of an intra macroblock that is not I_NxN, after its first bin. step: 1 in I slices, else 0
template <class Sink>
DEVICE void put_intra_type(Sink &sink, const State &s, const CurrentMb &o, int context, int step) {
  sink.put(TERMINATE, o.mb_type == I_PCM);
  if (o.mb_type == I_PCM) return;
  const int mode = s.intra16x16_mode[o.mb];
  sink.put(context, (o.pattern & 15) != 0);
  sink.put(context + 1, o.pattern >> 4 != 0);
  if (o.pattern >> 4) sink.put(context + 1 + step, o.pattern >> 5);
  sink.put(context + 2 + step, mode >> 1);
  sink.put(context + 2 + 2 * step, mode & 1);
}

// 9.3.3.1.1.10
template <class Sink>
DEVICE void put_transform_flag(Sink &sink, const State &s, const CurrentMb &o) {
  const int a = o.left ? s.transform_8x8[o.mb - 1] : 0, b = o.above ? s.transform_8x8[o.mb - s.mb_width] : 0;
  sink.put(CTX_TRANSFORM_8x8 + a + b, s.transform_8x8[o.mb]);
}

// Table 9-37: sub_mb_type
template <class Sink>
DEVICE void put_sub_type(Sink &sink, int sub) {
  sink.put(CTX_SUB_MB_TYPE_P, sub == SUB_8x8);
  if (sub == SUB_8x8) return;
  sink.put(CTX_SUB_MB_TYPE_P + 1, sub != SUB_8x4);
  if (sub != SUB_8x4) sink.put(CTX_SUB_MB_TYPE_P + 2, sub != SUB_4x4);
}

// end_of_slice_flag of the macroblock before, mb_skip_flag, mb_type, transform_size_8x8_flag of intra macroblocks, sub_mb_type
template <class Sink>
DEVICE void put_type(Sink &sink, const State &s, const CurrentMb &o) {
  const int type_a = o.left ? s.mb_type[o.mb - 1] : -1, type_b = o.above ? s.mb_type[o.mb - s.mb_width] : -1;
  if (o.mb > o.first_mb) sink.put(TERMINATE, 0);
  if (s.n_ref) {
    sink.put((IS_B ? CTX_SKIP_B : CTX_SKIP_P) + (o.left && type_a != SKIP) + (o.above && type_b != SKIP), o.mb_type == SKIP);
    if (o.mb_type == SKIP) return;
    if (IS_B) put_b_type(sink, o.mb_type <= LAST_INTRA ? B_INTRA_PREFIX : b_mb_type(s, o), type_a, type_b);
    else sink.put(CTX_MB_TYPE_P, o.mb_type <= LAST_INTRA);
  }
  if (IS_B && o.mb_type > LAST_INTRA) {
    for (int q = 0; o.mb_type == B_8x8 && q < 4; q++) put_b_sub_type(sink, s.sub_mb_type[4 * size_t(o.mb) + q]);
    return;
  }
  if (o.mb_type > LAST_INTRA) {
    const bool halves = o.mb_type == P_16x8 || o.mb_type == P_8x16;
    sink.put(CTX_MB_TYPE_P + 1, halves);
    sink.put(CTX_MB_TYPE_P + (halves ? 3 : 2), halves ? o.mb_type == P_16x8 : o.mb_type == P_8x8);
    if (o.mb_type == P_8x8)
      for (int q = 0; q < 4; q++) put_sub_type(sink, s.sub_mb_type[4 * size_t(o.mb) + q]);
    return;
  }
  constexpr int inter_prefix = IS_B ? CTX_MB_TYPE_B_INTRA : CTX_MB_TYPE_P_INTRA;
  const int first = s.n_ref ? inter_prefix : CTX_MB_TYPE_I + (o.left && !is_nxn(type_a)) + (o.above && !is_nxn(type_b));
  sink.put(first, !is_nxn(o.mb_type));
  if (!is_nxn(o.mb_type)) put_intra_type(sink, s, o, s.n_ref ? inter_prefix + 1 : CTX_MB_TYPE_I + 3, s.n_ref ? 0 : 1);
  else if (s.transform_8x8_mode) put_transform_flag(sink, s, o);
}

// 9.3.3.1.1.6: ref_idx_l0 of the partition that begins in quadrant q
template <class Sink>
DEVICE void put_ref_idx(Sink &sink, const State &s, const CurrentMb &o, int q) {
  const signed char *refs = s.ref_idx + 4 * size_t(o.mb);
  int inc = 0;
  if (q & 1 || o.left) inc += refs[q & 1 ? q - 1 : q + 1 - 4] > 0;
  if (q & 2 || o.above) inc += 2 * (refs[q & 2 ? q - 2 : q + 2 - 4 * s.mb_width] > 0);
  for (int k = refs[q]; k > 0; k--) {
    sink.put(CTX_REF_IDX + inc, 1);
    inc = (inc >> 2) + 4;
  }
  sink.put(CTX_REF_IDX + inc, 0);
}

// 7.3.5.1: the mode of the block or quadrant that begins at a 4x4 block
template <class Sink>
DEVICE void put_mode(Sink &sink, const State &s, const CurrentMb &o, int raster) {
  const int predicted = predicted_mode(s, o, raster), mode = s.intra4x4_mode[16 * size_t(o.mb) + raster];
  sink.put(CTX_PREV_INTRA_MODE, mode == predicted);
  if (mode == predicted) return;
  for (int i = 0; i < 3; i++) sink.put(CTX_REM_INTRA_MODE, (mode - (mode > predicted)) >> i & 1);
}

// 9.3.2.3, 9.3.3.1.1.7: a component of mvd_l0; total: absMvdComp
template <class Sink>
DEVICE void put_mvd(Sink &sink, int context, int value, int total) {
  const int size = abs(value);
  sink.put(context + (total >= 3) + (total > 32), size > 0);
  if (!size) return;
  for (int k = 1; k < min(size, MVD_PREFIX); k++) sink.put(context + min(2 + k, 6), 1);
  if (size < MVD_PREFIX) sink.put(context + min(2 + size, 6), 0);
  else put_exp_golomb(sink, size - MVD_PREFIX, 3);
  sink.put(BYPASS, value < 0);
}

// Sizes of the partition that has a 4x4 block, in blocks
DEVICE void partition_at(const State &s, int mb, int mb_type, int bx, int by, int &bw, int &bh) {
  const int sub_type = mb_type == P_8x8 ? s.sub_mb_type[4 * size_t(mb) + (by >> 1) * 2 + (bx >> 1)] : SUB_8x8;
  bw = sub_type == SUB_4x8 || sub_type == SUB_4x4 ? 1 : mb_type == P_8x16 || mb_type == P_8x8 ? 2 : 4;
  bh = sub_type == SUB_8x4 || sub_type == SUB_4x4 ? 1 : mb_type == P_16x8 || mb_type == P_8x8 ? 2 : 4;
}

// 7.4.5.1: mvd_l0 of the partition that has a 4x4 block of a macroblock
DEVICE unsigned difference_at(const State &s, int mb, int first_mb, int raster) {
  const int mb_type = s.mb_type[mb];
  if (mb_type <= LAST_INTRA || mb_type == SKIP) return 0;
  int bw, bh;
  partition_at(s, mb, mb_type, raster & 3, raster >> 2, bw, bh);
  const int bx = raster & 3 & -bw, by = raster >> 2 & -bh;
  const auto at = [&](int dx, int dy) { return motion_of(neighbour_block(mb, bx + dx, by + dy, s.mb_width, first_mb), s.ref_idx, s.mv); };
  const Motion current = at(0, 0), a = at(-1, 0), b = at(0, -1);
  Motion c = {-2, 0};
  if (corner_available(bx, by, bw)) c = at(bw, -1);
  if (c.ref == -2) c = at(-1, -1);
  const unsigned p = choose_predictor(bx, by, bw, bh, current.ref, a, b, c);
  return vector_of(x_of(current.v) - x_of(p), y_of(current.v) - y_of(p));
}

// mvd_l0 of a lane's block and absMvdComp, x and y, the whole warp. Lanes from BLOCK_LANES on have blocks in decoding order
struct Difference {
  int x, y, total_x, total_y;
};
DEVICE Difference lane_difference(const State &s, const CurrentMb &o, int raster) {
  const int lane = threadIdx.x & 31, k = lane & 3;
  if (IS_B) {
    unsigned current, a, b;
    b_lane_difference(s, o, current, a, b);
    return {x_of(current), y_of(current), abs(x_of(a)) + abs(x_of(b)), abs(y_of(a)) + abs(y_of(b))};
  }
  // lanes 0 to 15 have the own blocks in raster order, four each those beside them to the left and above
  unsigned difference = 0;
  if (lane < 16) difference = difference_at(s, o.mb, o.first_mb, lane);
  else if (lane < 20 && o.left) difference = difference_at(s, o.mb - 1, o.first_mb, 4 * k + 3);
  else if (lane >= 20 && lane < 24 && o.above) difference = difference_at(s, o.mb - s.mb_width, o.first_mb, 12 + k);
  const unsigned current = __shfl_sync(FULL_WARP, difference, raster);
  const unsigned a = __shfl_sync(FULL_WARP, difference, raster & 3 ? raster - 1 : 16 + (raster >> 2));
  const unsigned b = __shfl_sync(FULL_WARP, difference, raster >> 2 ? raster - 4 : 20 + (raster & 3));
  return {x_of(current), y_of(current), abs(x_of(a)) + abs(x_of(b)), abs(y_of(a)) + abs(y_of(b))};
}

// 9.3.3.1.1.8
DEVICE bool has_chroma_mode(const State &s, int mb) { return s.mb_type[mb] < I_PCM && s.intra_chroma_mode[mb] != 0; }
template <class Sink>
DEVICE void put_chroma_mode(Sink &sink, const State &s, const CurrentMb &o) {
  const int mode = s.intra_chroma_mode[o.mb];
  const int a = o.left && has_chroma_mode(s, o.mb - 1), b = o.above && has_chroma_mode(s, o.mb - s.mb_width);
  sink.put(CTX_INTRA_CHROMA + a + b, mode > 0);
  if (mode > 0) sink.put(CTX_INTRA_CHROMA + 3, mode > 1);
  if (mode > 1) sink.put(CTX_INTRA_CHROMA + 3, mode > 2);
}

// 9.3.3.1.1.4: coded_block_pattern, and what contexts assume of a neighbour's
DEVICE int context_pattern(const State &s, int mb, bool available) {
  if (!available) return 15;
  const int mb_type = s.mb_type[mb];
  return mb_type == I_PCM ? 47 : mb_type == SKIP ? 0 : s.cbp[mb];
}
template <class Sink>
DEVICE void put_pattern(Sink &sink, const State &s, const CurrentMb &o) {
  const int a = context_pattern(s, o.mb - 1, o.left), b = context_pattern(s, o.mb - s.mb_width, o.above);
  for (int q = 0; q < 4; q++) {
    const int coded_a = (q & 1 ? o.pattern >> (q - 1) : a >> (q + 1)) & 1, coded_b = (q & 2 ? o.pattern >> (q - 2) : b >> (q + 2)) & 1;
    sink.put(CTX_CBP_LUMA + 1 - coded_a + 2 * (1 - coded_b), o.pattern >> q & 1);
  }
  sink.put(CTX_CBP_CHROMA + (a >> 4 > 0) + 2 * (b >> 4 > 0), o.pattern >> 4 > 0);
  if (o.pattern >> 4) sink.put(CTX_CBP_CHROMA + 4 + (a >> 4 == 2) + 2 * (b >> 4 == 2), o.pattern >> 5);
}

// 9.3.2.7, 9.3.3.1.1.5
template <class Sink>
DEVICE void put_qp_delta(Sink &sink, const QpDelta &qp) {
  int context = CTX_MB_QP_DELTA + qp.after_delta;
  for (int k = qp.delta > 0 ? 2 * qp.delta - 1 : -2 * qp.delta, n = 0; n < k; n++) {
    sink.put(context, 1);
    context = CTX_MB_QP_DELTA + (n == 0 ? 2 : 3);
  }
  sink.put(context, 0);
}

// What a lane has of all that comes before residual()
template <class Sink>
DEVICE void put_head(Sink &sink, const State &s, const CurrentMb &o, const QpDelta &qp, const Difference &mvd) {
  const int lane = threadIdx.x & 31, q = lane - REF_LANES, k = lane - BLOCK_LANES;
  const bool inter = o.mb_type > LAST_INTRA && o.mb_type != SKIP;
  if (lane == TYPE_LANE) put_type(sink, s, o);
  if (lane == TYPE_LANE || o.mb_type == SKIP || o.mb_type == I_PCM) return;
  if (IS_B && inter && lane <= B_LAST_LANE) {
    const int index = (lane - B_REF_LANES) & 7, list = index >> 2, quadrant = index & 3;
    if (!begins_partition(o.mb_type, quadrant) || !has_vector(s, o.mb, o.mb_type, quadrant, list)) return;
    if (lane < B_MVD_LANES) {
      if ((list ? s.n_ref1 : s.n_ref) > 1) put_b_ref_idx(sink, s, o, quadrant, list);
      return;
    }
    put_mvd(sink, CTX_MVD_X, mvd.x, mvd.total_x);
    put_mvd(sink, CTX_MVD_Y, mvd.y, mvd.total_y);
    return;
  }
  if (k < 0) {
    const int wide = o.mb_type == P_8x16 || o.mb_type == P_8x8 ? 2 : 4, high = o.mb_type == P_16x8 || o.mb_type == P_8x8 ? 2 : 4;
    if (!IS_B && inter && s.n_ref > 1 && (q & 1) * 2 % wide == 0 && (q >> 1) * 2 % high == 0) put_ref_idx(sink, s, o, q);
  } else if (k < 16) {
    const int raster = int(BLOCK_TO_RASTER_DIGITS >> (4 * k) & 15), bx = raster & 3, by = raster >> 2;
    if (o.mb_type == I_4x4 || (o.mb_type == I_8x8 && k % 4 == 0)) put_mode(sink, s, o, raster);
    if (!inter || IS_B) return;
    int bw, bh;
    partition_at(s, o.mb, o.mb_type, bx, by, bw, bh);
    if (bx % bw || by % bh) return;
    put_mvd(sink, CTX_MVD_X, mvd.x, mvd.total_x);
    put_mvd(sink, CTX_MVD_Y, mvd.y, mvd.total_y);
  } else if (lane == PATTERN_LANE) {
    if (!inter) put_chroma_mode(sink, s, o);
    if (o.mb_type != I_16x16) put_pattern(sink, s, o);
    const bool whole = o.mb_type != P_8x8 || !*reinterpret_cast<const unsigned *>(s.sub_mb_type + 4 * size_t(o.mb));  // all SUB_8x8
    if (inter && s.transform_8x8_mode && o.pattern & 15 && whole) put_transform_flag(sink, s, o);
    if (o.pattern || o.mb_type == I_16x16) put_qp_delta(sink, qp);
  }
}
