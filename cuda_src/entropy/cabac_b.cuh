// CABAC: the bins of B macroblocks by a warp, as cpu_simd/entropy/cabac_b.py has them; lanes as in cabac_macroblock.cuh.
#pragma once
#include "entropy/b_macroblock.cuh"
#include "cabac_tables.cuh"

// Lanes of ref_idx and of mvd: four quadrants of list 0, then of list 1
constexpr int B_REF_LANES = 1, B_MVD_LANES = 9, B_LAST_LANE = 16;
constexpr int B_INTRA_PREFIX = -1;  // in place of mb_type

// 9.3.3.1.1.3, 9.3.3.1.2, Table 9-37: mb_type in B slices, of intra macroblocks its prefix. type_a, type_b: of the neighbours, -1: none
template <class Sink>
DEVICE void put_b_type(Sink &sink, int mb_type, int type_a, int type_b) {
  const bool a = type_a >= 0 && type_a != B_SKIP && type_a != B_DIRECT, b = type_b >= 0 && type_b != B_SKIP && type_b != B_DIRECT;
  sink.put(CTX_MB_TYPE_B + a + b, mb_type != B_DIRECT_TYPE);
  if (mb_type == B_DIRECT_TYPE) return;
  const bool whole = mb_type == 1 || mb_type == 2;  // 16x16 from one list
  sink.put(CTX_MB_TYPE_B + 3, !whole);
  if (whole) {
    sink.put(CTX_MB_TYPE_B + 5, mb_type == 2);
    return;
  }
  const bool five = mb_type >= 12 && mb_type != B_8x8_TYPE;  // bins that follow: five or four
  int rest = five ? mb_type + 4 : mb_type - 3;
  if (mb_type == B_INTRA_PREFIX) rest = 13;
  if (mb_type == 11) rest = 14;
  if (mb_type == B_8x8_TYPE) rest = 15;
  for (int k = five ? 4 : 3, context = 4; k >= 0; k--, context = 5) sink.put(CTX_MB_TYPE_B + context, rest >> k & 1);
}

// Table 9-38: sub_mb_type without partitions below 8x8: 0, 100, 101, 11000
template <class Sink>
DEVICE void put_b_sub_type(Sink &sink, int sub) {
  sink.put(CTX_SUB_MB_TYPE_B, sub != B_SUB_DIRECT);
  if (sub == B_SUB_DIRECT) return;
  sink.put(CTX_SUB_MB_TYPE_B + 1, sub == B_SUB_BI);
  if (sub == B_SUB_BI) sink.put(CTX_SUB_MB_TYPE_B + 2, 0);
  sink.put(CTX_SUB_MB_TYPE_B + 3, sub == B_SUB_L1);
  if (sub == B_SUB_BI) sink.put(CTX_SUB_MB_TYPE_B + 3, 0);
}

// 9.3.3.1.1.6: whether the ref_idx of a quadrant in the bits is above 0
DEVICE bool is_later_entry(const State &s, int mb, int q, int list) {
  return refs_of(s, mb, list)[q] > 0 && !is_direct(s, mb, s.mb_type[mb], q);
}

// 9.3.3.1.1.6: ref_idx of the partition that begins in quadrant q
template <class Sink>
DEVICE void put_b_ref_idx(Sink &sink, const State &s, const CurrentMb &o, int q, int list) {
  int inc = 0;
  if (q & 1 || o.left) inc += is_later_entry(s, q & 1 ? o.mb : o.mb - 1, q ^ 1, list);
  if (q & 2 || o.above) inc += 2 * is_later_entry(s, q & 2 ? o.mb : o.mb - s.mb_width, q ^ 2, list);
  for (int k = refs_of(s, o.mb, list)[q]; k > 0; k--) {
    sink.put(CTX_REF_IDX + inc, 1);
    inc = (inc >> 2) + 4;
  }
  sink.put(CTX_REF_IDX + inc, 0);
}

// mvd of the quadrant of a lane from B_MVD_LANES on, and absMvdComp; see lane_difference
DEVICE void b_lane_difference(const State &s, const CurrentMb &o, unsigned &current, unsigned &a, unsigned &b) {
  const int lane = threadIdx.x & 31, of = lane & 7;
  // eight lanes a list: the own quadrants, those beside them to the left, those above
  unsigned difference = 0;
  if (lane < 16) {
    const int list = lane >> 3;
    if (of < 4) difference = b_difference(s, o.mb, o.first_mb, of, list);
    else if (of < 6 && o.left) difference = b_difference(s, o.mb - 1, o.first_mb, 2 * (of - 4) + 1, list);
    else if (of >= 6 && o.above) difference = b_difference(s, o.mb - s.mb_width, o.first_mb, of - 4, list);
  }
  const int index = lane - B_MVD_LANES, q = index & 3, first = index & 4 ? 8 : 0;
  current = __shfl_sync(FULL_WARP, difference, first + q);
  a = __shfl_sync(FULL_WARP, difference, first + (q & 1 ? q - 1 : 4 + (q >> 1)));
  b = __shfl_sync(FULL_WARP, difference, first + (q & 2 ? q - 2 : 6 + (q & 1)));
}
