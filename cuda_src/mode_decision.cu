// Type, partitions, references and vectors of each macroblock of a P picture (not part of the standard).
//
// In decoding order a macroblock is decided from what its neighbours to the left and above chose. Here all are decided at
// once, from a guess, and again whenever a neighbour has changed its mind; since no chain of neighbours leads back, that ends,
// and in the very choice of the serial order. Each warp has some macroblocks of its own, far apart, and looks which of them
// were told of a change. How long such chains take is what counts, so a warp remembers what it learnt of its macroblocks.
#include "mode_choice.cuh"

constexpr int WARPS = 4, BLOCKS_AN_SM = 4;  // as the launcher has them

constexpr unsigned RIGHT_COLUMN = 0x8888, BOTTOM_ROW = 0xf000, BOTTOM_LEFT = 0x1000, BOTTOM_RIGHT = 0x8000;

// Macroblock rows [row0, row1). told: int32[1 + n_mb + blocks], of each macroblock how often it was told to look, [0] how many
// of all that were not followed yet, behind them for each block whether all is over; before the launch 1 each, and 0. All blocks
// of the grid run at once, each warp with `share` macroblocks, `slots` of them remembered. Dynamic shared memory: WARPS x
// (windows, int[share] in 16 bytes, slots x (Memory, int2[41 n_ref])).
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS_AN_SM) mode_decision(const uint8_t *__restrict__ source,
    const uint8_t *__restrict__ ref_luma, const int *__restrict__ ref_slots, int pad, const int *__restrict__ search_cost,
    const unsigned *__restrict__ search_mv, const short2 *__restrict__ predictor, const int *__restrict__ intra_cost,
    const int *__restrict__ slice_first_mb, int lam, int qp, int satd, int max_mv_y, int n_ref, int kinds, int mb_width,
    int mb_height, int row0, int row1, int share, int slots, int slot_bytes, int *told, uint8_t *mb_type, uint8_t *sub_mb_type,
    signed char *ref_idx, unsigned *mv) {
  DYNAMIC_SHARED(unsigned char, memory);
  const size_t slot = size_t(mb_width * 16 + 2 * pad) * (mb_height * 16 + 2 * pad) * 4;
  const Picture p = {source, ref_luma + slot * ref_slots[0], pad, search_cost, search_mv, predictor, intra_cost, slice_first_mb, lam, qp,
                     satd, max_mv_y, n_ref, kinds, mb_width, mb_height, mb_type, sub_mb_type, ref_idx, mv};
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, step = int(gridDim.x) * WARPS;
  const int end = row1 * mb_width, first = row0 * mb_width + int(blockIdx.x) * WARPS + warp;
  const int head = 4 * WINDOW * int(sizeof(Motion)), followed_bytes = (4 * share + 15) & ~15;
  unsigned char *own = memory + size_t(warp) * (head + followed_bytes + slots * slot_bytes), *remembered = own + head + followed_bytes;
  Motion *windows = reinterpret_cast<Motion *>(own);
  int *followed = reinterpret_cast<int *>(own + head);
  for (int i = lane; i < share; i += 32) followed[i] = 0;
  for (int i = lane; i < slots; i += 32) reinterpret_cast<Memory *>(remembered + i * slot_bytes)->mb = -1;
  __syncwarp();
  int *over = told + 1 + mb_width * mb_height;
  int sum = 1, owed = 0;  // the sum before this warp changed it, and what would make it 0
  for (bool busy = true;; busy = false) {
    for (int from = 0; from < share; from += 31) {  // lane 31 looks whether all is over
      const int i = from + lane;
      const bool mine = lane < 31 && i < share && first + i * step < end;
      const int seen = mine ? load_acquire(told + 1 + first + i * step) : lane == 31 ? load_acquire(over + blockIdx.x) : 0;
      if (__shfl_sync(FULL_WARP, seen, 31)) return;
      const int times = mine ? seen - followed[i] : 0;
      unsigned waiting = __ballot_sync(FULL_WARP, times != 0);
      if (times) followed[i] = seen;
      for (; waiting; waiting &= waiting - 1) {
        const int n = __ffs(int(waiting)) - 1, mb = first + (from + n) * step, mx = mb % mb_width;
        Memory &m = *reinterpret_cast<Memory *>(remembered + (from + n) % slots * slot_bytes);
        int *distortion = reinterpret_cast<int *>(&m + 1);
        busy = true;
        __syncwarp();
        const unsigned blocks = decide(p, mb, windows, m, {distortion, reinterpret_cast<unsigned *>(distortion + 41 * n_ref)});
        const bool below = mb + mb_width < end;
        int other = -1;  // whom lane 0..3 tells
        if (lane == 0 && blocks & RIGHT_COLUMN && mx + 1 < mb_width) other = mb + 1;
        if (lane == 1 && blocks & BOTTOM_LEFT && below && mx > 0) other = mb + mb_width - 1;
        if (lane == 2 && blocks & BOTTOM_ROW && below) other = mb + mb_width;
        if (lane == 3 && blocks & BOTTOM_RIGHT && below && mx + 1 < mb_width) other = mb + mb_width + 1;
        const int more = __popc(__ballot_sync(FULL_WARP, other >= 0)) - __shfl_sync(FULL_WARP, times, n);
        // before anyone is told, lest the sum be 0 while someone has to look
        if (lane == 0 && more) {
          sum = atomicAdd(told, more);
          owed = -more;
        }
        __syncwarp();
        if (other >= 0) {
          fence();
          atomicAdd(told + 1 + other, 1);
        }
      }
    }
    if (busy && __any_sync(FULL_WARP, sum == owed))
      for (int i = lane; i < int(gridDim.x); i += 32) store_release(over + i, 1);
    if (!busy) __nanosleep(64);
  }
}

// The guess to begin with, everyone's best 16x16 vector over the references, and all are told. A thread a macroblock.
extern "C" __global__ void mode_seed(const int *search_cost, const unsigned *search_mv, int n_ref, int lam, int n_mb, int mb0, int mb1,
    int blocks, int *told, signed char *ref_idx, unsigned *mv) {
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb == mb0) told[0] = mb1 - mb0;
  if (mb - mb0 < blocks) told[1 + n_mb + mb - mb0] = 0;
  if (mb >= mb1) return;
  int best = FAR, ref = 0;
  for (int r = 0; r < n_ref; r++) {
    const int cost = search_cost[(size_t(r) * n_mb + mb) * 41 + 40] + lam * te_bits(r, n_ref);
    if (cost < best) {
      best = cost;
      ref = r;
    }
  }
  const unsigned v = search_mv[(size_t(ref) * n_mb + mb) * 41 + 40];
  for (int q = 0; q < 4; q++) ref_idx[4 * mb + q] = (signed char)(ref);
  for (int k = 0; k < 16; k++) mv[16 * mb + k] = v;
  told[1 + mb] = 1;
}

// 8.4.1.1: P_16x16 of reference 0 with the P_Skip vector and nothing coded becomes P_Skip. A thread a macroblock.
extern "C" __global__ void mark_skipped(const int *slice_first_mb, const signed char *ref_idx, const unsigned *mv, const uint8_t *cbp,
    int mb_width, int mb0, int mb1, uint8_t *mb_type) {
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= mb1 || mb_type[mb] != P_16x16 || cbp[mb] || ref_idx[4 * mb]) return;
  const int first_mb = slice_first_mb[mb / mb_width];
  const Motion a = motion_of(neighbour_block(mb, -1, 0, mb_width, first_mb), ref_idx, mv);
  const Motion b = motion_of(neighbour_block(mb, 0, -1, mb_width, first_mb), ref_idx, mv);
  Motion c = motion_of(neighbour_block(mb, 4, -1, mb_width, first_mb), ref_idx, mv);
  if (c.ref == -2) c = motion_of(neighbour_block(mb, -1, -1, mb_width, first_mb), ref_idx, mv);
  if (mv[16 * mb] == skip_vector(a, b, choose_predictor(0, 0, 4, 4, 0, a, b, c))) mb_type[mb] = P_SKIP;
}
