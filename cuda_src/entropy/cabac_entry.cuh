// CABAC: the bins of an entry by a warp: of a macroblock, with end_of_slice_flag of the one before; or the last end_of_slice_flag.
#pragma once
#include "entropy/cabac_residual.cuh"

struct Entry {
  CurrentMb macroblock;
  bool coded, ends;
};
DEVICE Entry entry_of(const State &s, int entry, int entries) {
  const int pitch = s.mb_width + 1, row = entry / pitch, mx = entry % pitch, mb = row * s.mb_width + mx;
  const int first_mb = s.slice_first_mb[row * s.mb_width];
  if (mx == s.mb_width) {
    const bool ends = entry + 1 == entries || s.slice_first_mb[(row + 1) * s.mb_width] != first_mb;
    return {{mb, first_mb, SKIP, 0, false, false}, false, ends};
  }
  return {{mb, first_mb, int(s.mb_type[mb]), int(s.cbp[mb]), mx > 0, mb - s.mb_width >= first_mb}, true, false};
}

// The bins of an entry -> to, if there are at most `room`. Returns their number. The whole warp
DEVICE int make_entry(const State &s, const Entry &e, uint16_t *to, int room) {
  const int lane = threadIdx.x & 31;
  const CurrentMb &o = e.macroblock;
  if (!e.coded) {
    if (e.ends && lane == 0) to[0] = uint16_t(TERMINATE << 1 | 1);
    return e.ends;
  }
  const bool residual = o.mb_type == I_16x16 || (o.mb_type != SKIP && o.mb_type != I_PCM && o.pattern);
  QpDelta qp = {0, false};
  Difference mvd = {0, 0, 0, 0};
  Block block = {nullptr, 0, 0, 0, -1, false};
  if (residual) qp = qp_delta_of(s, o.mb, o.first_mb);
  if (o.mb_type > LAST_INTRA && o.mb_type != SKIP) {
    const int k = (lane - BLOCK_LANES) & 15;
    mvd = lane_difference(s, o, int(BLOCK_TO_RASTER_DIGITS >> (4 * k) & 15));
  }
  CountedBins head;
  put_head(head, s, o, qp, mvd);
  int all, all_levels = 0;
  const int at = sum_before(head.count, all);
  if (residual) block = lane_block(s, o);
  const int at_levels = residual ? sum_before(bins_of_block(block), all_levels) : 0;
  if (all + all_levels > room) return all + all_levels;
  StoredBins stored = {to + at};
  put_head(stored, s, o, qp, mvd);
  stored.to = to + all + at_levels;
  put_block(stored, block);
  return all + all_levels;
}

#define STATE_PARAMETERS                                                                                                          \
  const int *slice_first_mb, const int *frame_params, int n_ref, int mb_width, const uint8_t *mb_type, const uint8_t *sub_mb_type, \
      const signed char *ref_idx, const unsigned *mv, const signed char *intra4x4_mode, const uint8_t *intra16x16_mode,           \
      const uint8_t *intra_chroma_mode, const uint8_t *cbp, const uint8_t *qp, const short *levels, const uint8_t *total_coeff,   \
      const uint8_t *transform_8x8, int transform_8x8_mode LIST1_PARAMETERS
#define STATE                                                                                                                \
  {slice_first_mb, frame_params, n_ref, mb_width, mb_type, sub_mb_type, ref_idx, mv, intra4x4_mode, intra16x16_mode,         \
   intra_chroma_mode, cbp, qp, levels, total_coeff, transform_8x8, transform_8x8_mode LIST1}
