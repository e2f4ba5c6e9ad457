// Motion of B macroblocks in the bits (7.3.5.1, 7.3.5.2), for CAVLC and CABAC, as cpu_simd/entropy/macroblock_syntax.py has it.
#pragma once
#include "entropy/macroblock_state.cuh"
#include "inter/mv_prediction.cuh"

// Half of mb_type of the B_*_16x8 types by 3 (first - 1) + second - 1, the modes of their partitions (Table 7-14)
constexpr unsigned long long B_HALVES_DIGITS = 0xA98735642;

DEVICE const signed char *refs_of(const State &s, int mb, int list) { return (list ? s.ref_idx1 : s.ref_idx) + 4 * size_t(mb); }

// Whether a quadrant is predicted directly: its motion is not in the bits
DEVICE bool is_direct(const State &s, int mb, int mb_type, int q) {
  return mb_type == B_SKIP || mb_type == B_DIRECT || (mb_type == B_8x8 && s.sub_mb_type[4 * size_t(mb) + q] == B_SUB_DIRECT);
}
// Whether ref_idx and mvd of a quadrant in a list are in the bits
DEVICE bool has_vector(const State &s, int mb, int mb_type, int q, int list) {
  return refs_of(s, mb, list)[q] >= 0 && !is_direct(s, mb, mb_type, q);
}

// Table 7-14: 1 Pred_L0, 2 Pred_L1, 3 BiPred
DEVICE int used_lists(const State &s, int mb, int q) { return (refs_of(s, mb, 0)[q] >= 0) + 2 * (refs_of(s, mb, 1)[q] >= 0); }

// Table 7-14: mb_type of a B macroblock that is not B_Skip
DEVICE int b_mb_type(const State &s, const CurrentMb &o) {
  if (o.mb_type == B_DIRECT) return B_DIRECT_TYPE;
  if (o.mb_type == B_8x8) return B_8x8_TYPE;
  const int first = used_lists(s, o.mb, 0);
  if (o.mb_type == B_16x16) return first;
  const int halves = 3 * (first - 1) + used_lists(s, o.mb, 3) - 1;
  return 2 * int(B_HALVES_DIGITS >> (4 * halves) & 15) + (o.mb_type == B_8x16);
}

// Sizes of the partitions in 4x4 blocks, of B_8x8 its quadrants
DEVICE int b_width(int mb_type) { return mb_type == B_8x16 || mb_type == B_8x8 ? 2 : 4; }
DEVICE int b_height(int mb_type) { return mb_type == B_16x8 || mb_type == B_8x8 ? 2 : 4; }
// Whether a partition begins in a quadrant
DEVICE bool begins_partition(int mb_type, int q) { return (q & 1) * 2 % b_width(mb_type) == 0 && (q >> 1) * 2 % b_height(mb_type) == 0; }

// 7.4.5.1: mvd in a list of the partition that has a quadrant; 0 if it is not in the bits
DEVICE unsigned b_difference(const State &s, int mb, int first_mb, int q, int list) {
  const int mb_type = s.mb_type[mb];
  if (!has_vector(s, mb, mb_type, q, list)) return 0;
  const int bw = b_width(mb_type), bh = b_height(mb_type), bx = (q & 1) * 2 & -bw, by = (q >> 1) * 2 & -bh;
  const signed char *refs = list ? s.ref_idx1 : s.ref_idx;
  const unsigned *vectors = list ? s.mv1 : s.mv;
  const auto at = [&](int dx, int dy) { return motion_of(neighbour_block(mb, bx + dx, by + dy, s.mb_width, first_mb), refs, vectors); };
  const Motion current = at(0, 0), a = at(-1, 0), b = at(0, -1);
  Motion c = {-2, 0};
  if (corner_available(bx, by, bw)) c = at(bw, -1);
  if (c.ref == -2) c = at(-1, -1);
  const unsigned p = choose_predictor(bx, by, bw, bh, current.ref, a, b, c);
  return vector_of(x_of(current.v) - x_of(p), y_of(current.v) - y_of(p));
}
