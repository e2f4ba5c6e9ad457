// Words of samples and modes that macroblocks of `intra` publish for the row below, and the neighbours of a macroblock.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "intra/intra_launch.cuh"
#include "intra/intra_coding.cuh"

struct Picture {
  int width, mb_width, chroma_qp_offset, dead_zone, slice;  // slice: 0 I, 1 P
  const Sample *src_y, *src_u, *src_v;
  const uint8_t *intra_modes, *qp;
  uint8_t *mb_type, *intra16x16_mode, *intra_chroma_mode;
  Sample *rec_y, *rec_u, *rec_v;
  uint8_t *total_coeff, *transform_8x8, *cbp;
  signed char *intra4x4_mode;
  short *levels;
};

// The slices of a row of macroblocks, from its first macroblock on. first: that of the slice that has the row, where it is one
struct RowSlices {
  const int *__restrict__ firsts;
  int mb, first, mb_width;
  bool one;
  DEVICE Around around(int mx) const {
    const int slice = one ? first : __ldg(firsts + mx), above = mb + mx - mb_width;
    const bool left = mx > 0 && mb + mx > slice, top = above >= slice;
    return {left, top, top && mx + 1 < mb_width, left && above > slice};
  }
};
// slice_first_mb: int32[n_mb]; mb: the row's first macroblock
DEVICE RowSlices slices_of_row(const int *__restrict__ slice_first_mb, int mb, int mb_width) {
  const int *firsts = slice_first_mb + mb;
  return {firsts, mb, __ldg(firsts), mb_width, __ldg(firsts) == __ldg(firsts + mb_width - 1)};
}

DEVICE unsigned from_l2(const uint8_t *p) { return __ldcg(reinterpret_cast<const unsigned *>(p)); }

// A word above a macroblock: on its way, from there if it is published
struct Word {
  const Published *from;
  Published v;
};
struct Row {  // the macroblocks above
  const uint8_t *types;
  const signed char *modes;
  const Published *packets;  // null: all is in memory
  unsigned turn;
};
DEVICE Word word_above(const Picture &p, const Row &row, bool wanted, int column, int number, const Sample *at) {
  Word w = {nullptr, Published(row.turn) << 32};
  if (!wanted || column < 0 || column >= p.mb_width) return w;
  const bool inter = row.types[column] > LAST_INTRA;
  if (!inter && row.packets) {
    w.from = row.packets + PACKET * column + number;
    w.v = published(w.from);
  } else {
    unsigned v = splat4(2);
    if (number < 8) v = from_l2(at);
    else if (!inter) v = from_l2(reinterpret_cast<const uint8_t *>(row.modes) + 16 * column + 12);
    w.v |= v;
  }
  return w;
}
struct Words {
  Word a, b, c;
};
// n_words: how many of its words warp 0 wants. LARGE: one more above right, for Intra_8x8
template <bool LARGE>
DEVICE Words words_above(const Picture &p, const Row &row, int warp, int lane, int mx, int my, int n_words) {
  const bool chroma = warp == 2;
  const Sample *plane = chroma ? (lane & 4 ? p.rec_v : p.rec_u) : p.rec_y;
  const int size = chroma ? MB_WIDTH_C : 16, width = chroma ? p.width / SUB_WIDTH_C : p.width, number = chroma ? 4 + (lane >> 1 & 2) : 0;
  const Sample *at = plane + size_t(size * my - 1) * width + size * mx;
  if (warp == 0) {  // lanes 0..5 (or 6) the words from the corner on to above right, then the modes
    constexpr int MODES = LARGE ? 7 : 6;
    const int column = lane == 0 ? mx - 1 : lane == 5 || (LARGE && lane == 6) ? mx + 1 : mx;
    const Word none = {nullptr, Published(row.turn) << 32};
    return {word_above(p, row, lane < n_words, column, lane == MODES ? 8 : (lane + 3) & 3, at - 4 + 4 * lane), none, none};
  }
  // of luma the word of this lane's block column, of chroma both words of this lane's plane; the corner
  const int k = chroma ? 0 : lane & 3;
  return {word_above(p, row, true, mx, number + k, at + 4 * k), word_above(p, row, chroma, mx, number + 1, at + 4),
          word_above(p, row, true, mx - 1, number + (chroma ? 1 : 3), at - 4)};
}
DEVICE bool missing(const Word &w, unsigned turn) { return unsigned(w.v >> 32) != turn; }
DEVICE Above wait_for(Words w, int warp, unsigned turn) {
  while (__any_sync(FULL_WARP, missing(w.a, turn) || missing(w.b, turn) || missing(w.c, turn))) {
    __nanosleep(100);
    if (missing(w.a, turn)) w.a.v = published(w.a.from);
    if (missing(w.b, turn)) w.b.v = published(w.b.from);
    if (missing(w.c, turn)) w.c.v = published(w.c.from);
  }
  return warp == 1 ? Above{unsigned(w.a.v), unsigned(w.c.v), 0} : Above{unsigned(w.a.v), unsigned(w.b.v), unsigned(w.c.v)};
}

// To the left of a macroblock, of a row in luma or chroma: the word of an inter macroblock
DEVICE unsigned word_left(const Picture &p, int warp, int lane, int mx, int my) {
  if (mx == 0) return 0;
  if (warp < 2) return from_l2(p.rec_y + size_t(16 * my + (lane & 15)) * p.width + 16 * mx - 4);
  return from_l2((lane & 8 ? p.rec_v : p.rec_u) + size_t(MB_HEIGHT_C * my + (lane & 7)) * (p.width / SUB_WIDTH_C) + MB_WIDTH_C * mx - 4);
}
