// Type, partitions, references and vectors of each macroblock of a P picture (not part of the standard).
//
// In decoding order a macroblock is decided from the choices of its neighbours to the left and above. Here all macroblocks
// are decided at once, from a guess, and again after each change of a neighbour. Dependencies have no cycle, so this ends,
// with the choices of the serial order. The time is that of the longest chain of changes. So a block of threads has a tile of
// macroblocks in shared memory, and any of its warps takes a macroblock with a changed neighbour. Warps communicate by atomic
// operations only; chains within a tile never leave the multiprocessor. Choices of other tiles are read from memory, and one
// warp polls for their messages. The kernel ends when no message is open. A tile ends earlier if all tiles that it depends on
// have ended and none of its macroblocks must be decided again. Blocks take tiles by ticket in the order of dependencies, so
// that any number of resident blocks makes progress.
#include "decisions/common.cuh"
#include "decide/mode_choice.cuh"

constexpr int WORKERS = WARPS - 1;  // the last warp receives messages
constexpr unsigned RIGHT_COLUMN = 0x8888, BOTTOM_ROW = 0xf000, BOTTOM_LEFT = 0x1000, BOTTOM_RIGHT = 0x8000;
constexpr int NOTHING = -1, OVER = -2;  // results of `take` that are no macroblock
// Words of a tile's inbox: by macroblock, the number of messages from other tiles. Two words get none: [DONE] counts ended
// predecessor tiles, [OPEN] is unused
constexpr int DONE = 31, OPEN = 30;
// Words before all inboxes: counters of tickets, of open messages (minus the tiles that have finished a first pass), of launches
// and of ended tiles
constexpr int TICKETS = 0, MESSAGES = 1, TURN = 2, ENDED = 3;
constexpr int SHORTEST = 20, LONGEST = 640;  // nanoseconds between polls of an idle warp, which leave issue slots to others
typedef unsigned long long Published;  // vector of a block, its reference, and from bit 40 on the number of the launch

// Pending macroblocks of a tile, one bit each
struct alignas(8) Board {
  unsigned dirty, busy;  // dirty: a neighbour changed. busy: in work; all bits at the end. A warp moves a bit from dirty to busy
  int ticket, turn;
};
DEVICE unsigned long long *both(Board &b) { return reinterpret_cast<unsigned long long *>(&b.dirty); }

// Takes a dirty macroblock and returns its index in the tile; prefers one whose neighbours are not pending, then the first from
// `first` on. Called by one lane
DEVICE int take(Board &b, int first) {
  constexpr unsigned LAST = 0x80808080u, LAST_TWO = 0xc0c0c0c0u;
  unsigned long long seen = atomicCAS(both(b), 0ull, 0ull);
  for (;;) {
    const unsigned dirty = unsigned(seen), busy = unsigned(seen >> 32), open = dirty | busy, inner = open & ~LAST;
    if (busy == ~0u) return OVER;
    const unsigned waits = inner << 1 | open << TILE | inner << (TILE + 1) | (open & ~LAST_TWO) << (TILE + 2), mine = dirty & ~busy;
    const unsigned can = mine & ~waits ? mine & ~waits : mine;
    if (!can) return NOTHING;
    const int macroblock = (__ffs(int(__funnelshift_r(can, can, first))) - 1 + first) & 31;
    const unsigned one = 1u << macroblock;
    const unsigned long long before = atomicCAS(both(b), seen, (seen & ~(unsigned long long)(one)) | (unsigned long long)(one) << 32);
    if (before == seen) {
      fence_block();
      return macroblock;
    }
    seen = before;
  }
}

// Receives messages until the tile has ended or all is over; one warp. open: number of open messages of all tiles, minus the
// `tiles` that have finished a first pass; before: number of tiles that this one depends on
template <class CacheOf>
DEVICE void drain_inbox(Board &b, const int *inbox, int *open, int tiles, int before, const CacheOf &cache_of, Blocks &seen,
                          const Published *published, unsigned turn) {
  const int lane = threadIdx.x & 31;
  int last = 0, owed = 1;  // messages followed but not yet subtracted, and 1 for the tile
  bool done = false;       // predecessor tiles have ended: their messages were sent before, so they are visible
  for (;;) {
    const int sent = load_past_l1(lane == OPEN ? open : inbox + lane), times = lane < OPEN ? sent - last : 0;
    unsigned who = __ballot_sync(FULL_WARP, times);
    last = sent;
    if (who) {
      owed += int(__reduce_add_sync(FULL_WARP, unsigned(times)));
      do {  // three macroblocks at a time, ten blocks each
        const unsigned first = who & (0u - who), rest = who ^ first, second = rest & (0u - rest), third = (rest ^ second) & (0u - (rest ^ second));
        const unsigned one = lane < 10 ? first : lane < 20 ? second : lane < 30 ? third : 0;
        if (one) {
          const int tile_mb = __ffs(int(one)) - 1, k = lane % 10, block = cache_of(tile_mb).outer[k];
          if (block >= 0) {
            const Published word = __ldcg(published + block);
            if (unsigned(word >> 40) == turn) {  // else the block still has its guess
              atomicExch(seen.references + outside_of(tile_mb) + k, int(static_cast<signed char>(word >> 32)));
              atomicExch(seen.vectors + outside_of(tile_mb) + k, unsigned(word));
            }
          }
        }
        __syncwarp();
        if (lane == 0) {
          fence_block();
          set_bits(&b.dirty, first | second | third);
        }
        who ^= first | second | third;
      } while (who);
    } else {
      const bool quiet = __all_sync(FULL_WARP, lane || atomicCAS(both(b), 0ull, 0ull) == 0);
      if (quiet && owed) {
        if (lane == 0) add_release(open, -owed);
        owed = 0;
      }
      if ((quiet && done) || __any_sync(FULL_WARP, lane == OPEN && sent == -tiles)) return;
    }
    if (!done && __any_sync(FULL_WARP, lane == DONE && sent == before)) {
      fence();
      done = true;
    }
    __nanosleep(20);
  }
}

struct Tables {
  Board board;
  Blocks blocks;
  Limits limits[N_QP];
  int chosen[MOST_IN_TILE];  // mb_type | sub_mb_type << 8
};

// Macroblock rows [row0, row1) in tiles_x columns of tiles, `tile_rows` macroblock rows high. inboxes: 0 before the first launch;
// counters; from [32] on 32 words a tile, twice (launches alternate, and clear the words of the next launch); then the published
// choices of macroblocks, 16 blocks each.
// Dynamic shared memory: mv_caches of WORKERS warps, MOST_IN_TILE x (MacroblockCache, int2[41 n_ref]). Launch bounds for three blocks a
// multiprocessor, although a 1080p frame has tiles for two: registers are left for kernels of another GOP.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 3) mode_decision(const Sample *__restrict__ source,
    const Sample *__restrict__ ref_luma, const int *__restrict__ ref_slots, int pad, const int *__restrict__ search_cost,
    const unsigned *__restrict__ search_mv, const short2 *__restrict__ predictor, const int *__restrict__ intra_cost,
    const int *__restrict__ skip_limit, const int *__restrict__ slice_first_mb, const uint8_t *__restrict__ qp, int satd,
    int by_cost, int psy_rd, int max_mv_y, int n_ref, int partition_mask, int mb_width, int mb_height, int row0, int row1, int tile_rows, int tiles_x,
    int slot_bytes, int *inboxes, uint8_t *mb_type, uint8_t *sub_mb_type, signed char *ref_idx, unsigned *mv) {
  DYNAMIC_SHARED(unsigned char, shared);
  SHARED(Tables, shared_tables, 1);
  unsigned char *memory = in_register(shared);
  Tables &tables = *in_register(shared_tables);
  if (threadIdx.x >= 32 && threadIdx.x < 32 + N_QP) tables.limits[threadIdx.x - 32] = limits_of(int(threadIdx.x) - 32);
  wait_for_the_kernel_before();
  const size_t slot = size_t(mb_width * 16 + 2 * pad) * (mb_height * 16 + 2 * pad) * 4;
  const Picture p = {source, ref_luma + slot * ref_slots[0], pad, search_cost, search_mv, predictor, intra_cost, skip_limit, slice_first_mb, qp,
                     satd, by_cost, psy_rd, max_mv_y, n_ref, most_ref_idx_bits(n_ref), partition_mask, mb_width, mb_height};
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Board &board = tables.board;
  if (threadIdx.x == 0) {
    board.ticket = atomicAdd(inboxes + TICKETS, 1);
    board.turn = inboxes[TURN];
  }
  __syncthreads();
  const int tx = board.ticket % tiles_x, ty = board.ticket / tiles_x;
  const int rows = min(tile_rows, row1 - row0 - tile_rows * ty);
  const Tile tile = {TILE * tx, row0 + tile_rows * ty, rows};
  const int tiles = int(gridDim.x), turn = board.turn;
  int *own_inbox = inboxes + 32 * (1 + tiles * (turn & 1) + board.ticket);
  if (threadIdx.x < 32) inboxes[32 * (1 + tiles * (~turn & 1) + board.ticket) + threadIdx.x] = 0;
  Published *published = reinterpret_cast<Published *>(inboxes + 32 * (1 + 2 * tiles));
  const unsigned mark = unsigned(turn) % 0xffffffu + 1;  // never 0, the value of unwritten words
  unsigned char *caches = memory + WORKERS * 4 * MV_CACHE * sizeof(Motion);
  const auto cache_of = [&](int tile_mb) -> MacroblockCache & { return *reinterpret_cast<MacroblockCache *>(caches + tile_mb * slot_bytes); };
  load_neighbourhood(p, tile, caches, slot_bytes, tables.blocks, ref_idx, mv, row0, row1, 32 * WARPS);
  if (warp == 0) {
    const int r = lane / TILE, x = tile.x + lane % TILE - r;
    const unsigned all = __ballot_sync(FULL_WARP, r < rows && x >= 0 && x < mb_width);
    if (lane == 0) {
      board.dirty = all;
      board.busy = 0;
    }
  }
  __syncthreads();
  if (warp == WORKERS) {
    const int before = (tx > 0) + (ty > 0) + (ty > 0 && tx + 1 < tiles_x);
    drain_inbox(board, own_inbox, inboxes + MESSAGES, tiles, before, cache_of, tables.blocks, published, mark);
    if (lane == 0) {
      atomicOr(&board.busy, ~0u);
      const bool below = tile.y + tile_rows < row1;
      if (tx + 1 < tiles_x) add_release(own_inbox + 32 + DONE, 1);
      if (below) add_release(own_inbox + 32 * tiles_x + DONE, 1);
      if (below && tx > 0) add_release(own_inbox + 32 * (tiles_x - 1) + DONE, 1);
    }
    __syncwarp();
  } else {
    Motion *mv_caches = reinterpret_cast<Motion *>(memory) + warp * 4 * MV_CACHE;
    for (int pause = SHORTEST;;) {
      const int tile_mb = __shfl_sync(FULL_WARP, lane ? 0 : take(board, 4 * warp), 0), r = tile_mb / TILE, k = tile_mb % TILE;
      if (tile_mb == OVER) break;
      if (tile_mb == NOTHING) {
        __nanosleep(pause);
        pause = min(2 * pause, LONGEST);
        continue;
      }
      pause = SHORTEST;
      MacroblockCache &m = cache_of(tile_mb);
      const int mx = tile.x + k - r, my = tile.y + r, mb = my * mb_width + mx, b = lane & 15;
      // lanes 0..9: neighbour blocks for the prediction; 16..31: the macroblock's blocks
      const int where = lane < 10 ? m.blocks[lane] : 16 * tile_mb + b;
      Motion around = {-2, 0}, last = around, motion;
      if (lane < 10 || lane > 15) around = {atomic_load(tables.blocks.references + where), atomic_load(tables.blocks.vectors + where)};
      if (lane < 10) last = {atomic_load(m.references + lane), atomic_load(m.vectors + lane)};
      const bool another = lane < 10 && (around.ref != last.ref || around.v != last.v);
      if (!__any_sync(FULL_WARP, another)) {  // it had seen these changes
        if (lane == 0) clear_bits(&board.busy, 1u << tile_mb);
        continue;
      }
      if (another) {
        atomicExch(m.references + lane, around.ref);
        atomicExch(m.vectors + lane, around.v);
      }
      const int choice = decide(p, mv_caches, m, tables.limits[m.qp], 16 * mx, 16 * my, around, motion);
      const bool changed = lane > 15 && (around.ref != motion.ref || around.v != motion.v);
      if (changed) {
        atomicExch(tables.blocks.references + where, motion.ref);
        atomicExch(tables.blocks.vectors + where, motion.v);
      }
      if (lane == 0) atomicExch(tables.chosen + tile_mb, choice);
      const unsigned bits = __ballot_sync(FULL_WARP, changed) >> 16;
      const bool right = bits & RIGHT_COLUMN, left = bits & BOTTOM_LEFT, below = bits & BOTTOM_ROW, corner = bits & BOTTOM_RIGHT;
      const uint4 next = m.next;
      const unsigned here = (right ? next.x : 0) | (left ? next.y : 0) | (below ? next.z : 0) | (corner ? next.w : 0);
      const unsigned away = unsigned(m.elsewhere) & (right | left << 1 | below << 2 | corner << 3);
      __syncwarp();
      if (lane == 0) {
        fence_block();
        set_bits(&board.dirty, here);
      }
      if (away) {
        if (lane == 0) atomicAdd(inboxes + MESSAGES, __popc(away));  // before the messages, so that the end is not detected too early
        if (changed) published[16 * size_t(mb) + b] = Published(mark << 8 | unsigned(motion.ref & 255)) << 32 | motion.v;
        __syncwarp();
        if (away >> lane & 1) {
          const int row = r + (lane > 0), down = row == tile_rows;
          const int x = mx + (lane ? lane - 2 : 1) + (down ? 0 : row);  // row 0 of the tile below
          add_release(own_inbox + 32 * (tiles_x * down + x / TILE - tx) + TILE * (down ? 0 : row) + x % TILE, 1);
        }
        __syncwarp();
      }
      if (lane == 0) {
        fence_block();
        clear_bits(&board.busy, 1u << tile_mb);
      }
    }
  }
  __syncthreads();
  for (int k = int(threadIdx.x); k < 16 * MOST_IN_TILE; k += 32 * WARPS) {
    const int tile_mb = k >> 4, r = tile_mb / TILE, x = tile.x + tile_mb % TILE - r, mb = (tile.y + r) * mb_width + x;
    if (r >= rows || x < 0 || x >= mb_width) continue;
    mv[16 * size_t(mb) + (k & 15)] = tables.blocks.vectors[k];
    if (!(k & 5)) ref_idx[4 * size_t(mb) + (k >> 2 & 2) + (k >> 1 & 1)] = (signed char)(tables.blocks.references[k]);
    if (k & 15) continue;
    mb_type[mb] = uint8_t(tables.chosen[tile_mb]);
    for (int q = 0; q < 4; q++) sub_mb_type[4 * mb + q] = uint8_t(tables.chosen[tile_mb] >> (8 + 2 * q) & 3);
  }
  if (threadIdx.x == 0 && atomicAdd(inboxes + ENDED, 1) == tiles - 1) {  // no block reads the counters any more
    inboxes[TICKETS] = inboxes[MESSAGES] = inboxes[ENDED] = 0;
    inboxes[TURN] = turn + 1;
  }
}

// 8.4.1.1: P_16x16 of reference 0 with the P_Skip vector and nothing coded becomes P_Skip; B_Direct_16x16 with nothing coded
// becomes B_Skip. P_Skip whose vector a decoder would not derive, beside I_PCM, becomes P_16x16. A thread a macroblock.
extern "C" __global__ void mark_skipped(const int *slice_first_mb, const signed char *ref_idx, const unsigned *mv, const uint8_t *cbp,
    int mb_width, int mb0, int mb1, uint8_t *mb_type) {
  wait_for_the_kernel_before();
  const int mb = mb0 + int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= mb1 || cbp[mb]) return;
  const int type_of_mb = mb_type[mb];
  if (type_of_mb == B_DIRECT) mb_type[mb] = B_SKIP;
  if (type_of_mb != P_SKIP && (type_of_mb != P_16x16 || ref_idx[4 * mb])) return;
  const int first_mb = slice_first_mb[mb];
  const Motion a = motion_of(neighbour_block(mb, -1, 0, mb_width, first_mb), ref_idx, mv);
  const Motion b = motion_of(neighbour_block(mb, 0, -1, mb_width, first_mb), ref_idx, mv);
  Motion c = motion_of(neighbour_block(mb, 4, -1, mb_width, first_mb), ref_idx, mv);
  if (c.ref == -2) c = motion_of(neighbour_block(mb, -1, -1, mb_width, first_mb), ref_idx, mv);
  mb_type[mb] = mv[16 * mb] == skip_vector(a, b, choose_predictor(0, 0, 4, 4, 0, a, b, c)) ? P_SKIP : P_16x16;
}
