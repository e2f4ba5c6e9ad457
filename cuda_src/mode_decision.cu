// Type, partitions, references and vectors of each macroblock of a P picture (not part of the standard).
//
// A macroblock is decided from what its neighbours to the left and above chose. A block of threads has a tile of macroblocks, two
// warps a row of it: all go one macroblock to the right at a time, each row 2 - SLANT of these steps after the one above, so
// that what a macroblock sees of its tile is decided. What lies in other tiles is guessed from the search. Tiles do not wait
// for each other. In a step the first warp of a row weighs the whole macroblock while the second weighs its partitions; then
// the first one settles it while the second prepares what the search found for the next.
#include "mode_choice.cuh"

// as cpu_simd/mode_decision.py
constexpr int TILE_WIDTH = 16, TILE_HEIGHT = 10, SLANT = 1, LATER = 2 - SLANT, STEPS = TILE_WIDTH + LATER * (TILE_HEIGHT - 1);
// The board: bottom blocks of the tile's macroblocks, of the row above and of those to the left that predict them
constexpr int COLUMNS = TILE_WIDTH + SLANT + 2, CELLS = (TILE_HEIGHT + 1) * COLUMNS;

// What stands for a macroblock of another tile: its best 16x16 vector over the references
DEVICE Motion guess(const Picture &p, int mb) {
  const int n_mb = p.mb_width * p.mb_height;
  int best = FAR, ref = 0;
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const int cost = p.search_cost[(size_t(r) * n_mb + mb) * 41 + 40] + p.lam * te_bits(r, p.n_ref);
    if (cost < best) {
      best = cost;
      ref = r;
    }
  }
  return {ref, p.search_mv[(size_t(ref) * n_mb + mb) * 41 + 40]};
}

// Macroblock rows [row0, row1) in tiles_x columns of tiles. Dynamic shared memory: a row 4 windows and `buffers` (1 or 2: what
// the search found is copied a macroblock further ahead) of 84 n_ref words.
extern "C" __global__ void __launch_bounds__(64 * TILE_HEIGHT, 1) mode_decision(const uint8_t *__restrict__ source,
    const uint8_t *__restrict__ ref_luma, const int *__restrict__ ref_slots, int pad, const int *__restrict__ search_cost,
    const unsigned *__restrict__ search_mv, const unsigned *__restrict__ predictor, const int *__restrict__ intra_cost,
    const int *__restrict__ slice_first_mb, int lam, int qp, int satd, int max_mv_y, int n_ref, int kinds, int mb_width,
    int mb_height, int row0, int row1, int tiles_x, int buffers, uint8_t *mb_type, uint8_t *sub_mb_type, signed char *ref_idx,
    unsigned *mv) {
  wait_for_the_kernel_before();
  DYNAMIC_SHARED(unsigned char, memory);
  SHARED(Motion, board, 4 * CELLS);
  const size_t slot = size_t(mb_width * 16 + 2 * pad) * (mb_height * 16 + 2 * pad) * 4;
  const Picture p = {source, ref_luma + slot * ref_slots[0], pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb, lam, qp,
                     satd, max_mv_y, n_ref, kinds, mb_width, mb_height};
  SHARED(Weighed, all_weighed, TILE_HEIGHT);
  SHARED(Motion, all_chosen, TILE_HEIGHT * 16);
  const int lane = threadIdx.x & 31, r = threadIdx.x >> 6;
  const bool first = !(threadIdx.x & 32);
  const int left = TILE_WIDTH * int(blockIdx.x % tiles_x), top = TILE_HEIGHT * (row0 / TILE_HEIGHT + int(blockIdx.x) / tiles_x);
  const int my = top + r, begin = max(left - SLANT * r, 0);
  const int end = my >= row0 && my < row1 ? min(left - SLANT * r + TILE_WIDTH, mb_width) : begin;
  Motion *windows = reinterpret_cast<Motion *>(memory) + r * 4 * WINDOW, *chosen = all_chosen + 16 * r;
  Weighed &weighed = all_weighed[r];
  int *found = reinterpret_cast<int *>(memory + TILE_HEIGHT * 4 * WINDOW * sizeof(Motion)) + r * buffers * 84 * n_ref;
  const auto search = [&](int mx) {
    int *distortion = found + (buffers > 1 && (mx & 1) ? 84 * n_ref : 0);
    unsigned *vectors = reinterpret_cast<unsigned *>(distortion) + 41 * n_ref;
    return Search{distortion, vectors, vectors + 41 * n_ref};
  };
  const auto begin_to_fetch = [&](int mx) {
    if (mx < end) fetch(p, my * mb_width + mx, search(mx));
  };
  Macroblock m;
  if (first) {
    if (begin < end) load(p, begin, my, m);
  } else if (begin < end) {
    begin_to_fetch(begin);
    prepare(p, search(begin));
    if (buffers > 1) begin_to_fetch(begin + 1);
  }
  for (int i = int(threadIdx.x); i < CELLS; i += 64 * TILE_HEIGHT) {
    const int row = i / COLUMNS - 1, k = i % COLUMNS - SLANT - 1, x = left + k - SLANT * row, y = top + row, mb = y * mb_width + x;
    const bool ours = row >= 0 && k >= 0 && k < TILE_WIDTH;
    if (x < 0 || x >= mb_width || y < 0 || y >= row1 || (ours && y >= row0)) continue;
    const Motion guessed = ours ? Motion{} : guess(p, mb);
    for (int b = 0; b < 4; b++) board[4 * i + b] = ours ? motion_of(16 * mb + 12 + b, ref_idx, mv) : guessed;
  }
  for (int step = 0; step < STEPS; step++) {
    __syncthreads();
    const int k = step - LATER * r, mx = left + k - SLANT * r, mb = my * mb_width + mx;
    const bool active = k >= 0 && mx >= begin && mx < end;
    Whole whole;
    if (active) {
      const int dx = lane == 5 ? 1 : lane > 0 && lane < 6 ? 0 : -1, n = mb + dx - (lane < 6 ? mb_width : 0);
      const int cell = lane < 6 ? r * COLUMNS + k + dx + 1 : (r + 1) * COLUMNS + SLANT;
      Motion around = board[4 * (lane < 10 ? cell : 0) + (lane < 6 ? (lane - 1) & 3 : 0)];
      if (lane >= 6 && k > 0) around = chosen[(4 * lane - 21) & 15];  // of the column to the left
      if (mx + dx < 0 || mx + dx >= mb_width || n < slice_first_mb[my]) around = {-2, 0};
      if (first) whole = weigh_whole(p, m, search(mx), around);
      else weigh(p, windows, search(mx), around, weighed);
    }
    __syncthreads();
    if (!active) continue;
    if (first) {
      Motion own;
      const int choice = settle(p, m, whole, weighed, own);
      if (mx + 1 < end) load(p, mx + 1, my, m);
      if (lane < 16) chosen[lane] = own;
      if (lane >= 12 && lane < 16) board[4 * ((r + 1) * COLUMNS + k + SLANT + 1) + lane - 12] = own;
      if (lane < 16) mv[16 * size_t(mb) + lane] = own.v;
      if (lane < 16 && !(lane & 5)) ref_idx[4 * mb + (lane >> 3) * 2 + (lane >> 1 & 1)] = (signed char)(own.ref);
      if (lane < 4) sub_mb_type[4 * mb + lane] = uint8_t(choice >> (8 + 2 * lane) & 3);
      if (lane == 0) mb_type[mb] = uint8_t(choice);
    } else if (mx + 1 < end) {
      if (buffers == 1) begin_to_fetch(mx + 1);
      prepare(p, search(mx + 1));
      if (buffers > 1) begin_to_fetch(mx + 2);
    }
  }
}

// 8.4.1.1: P_16x16 of reference 0 with the P_Skip vector and nothing coded becomes P_Skip. A thread a macroblock.
extern "C" __global__ void mark_skipped(const int *slice_first_mb, const signed char *ref_idx, const unsigned *mv, const uint8_t *cbp,
    int mb_width, int mb0, int mb1, uint8_t *mb_type) {
  wait_for_the_kernel_before();
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= mb1 || mb_type[mb] != P_16x16 || cbp[mb] || ref_idx[4 * mb]) return;
  const int first_mb = slice_first_mb[mb / mb_width];
  const Motion a = motion_of(neighbour_block(mb, -1, 0, mb_width, first_mb), ref_idx, mv);
  const Motion b = motion_of(neighbour_block(mb, 0, -1, mb_width, first_mb), ref_idx, mv);
  Motion c = motion_of(neighbour_block(mb, 4, -1, mb_width, first_mb), ref_idx, mv);
  if (c.ref == -2) c = motion_of(neighbour_block(mb, -1, -1, mb_width, first_mb), ref_idx, mv);
  if (mv[16 * mb] == skip_vector(a, b, choose_predictor(0, 0, 4, 4, 0, a, b, c))) mb_type[mb] = P_SKIP;
}
