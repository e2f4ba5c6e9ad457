// A tile of macroblocks in shared memory: inputs of mode decision for each macroblock, and costs of vectors already tried.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decide/mode_decision_launch.cuh"
#include "decisions/decide.cuh"
#include "inter/mv_prediction.cuh"
#include "costs/block_probe.cuh"

constexpr int COST_MAX = 0x3fffffff, ILLEGAL = 1 << 26;
constexpr unsigned NOWHERE = 0x80008000u;

struct Picture {  // the kernel's arguments, as the launcher says
  const Sample *source, *reference;
  int pad;
  const int *search_cost;
  const unsigned *search_mv;
  const short2 *predictor;
  const int *intra_cost, *skip_limit, *slice_first_mb;
  const uint8_t *qp;
  int satd, by_cost, psy_rd, max_mv_y, n_ref, most_ref_idx_bits, partition_mask, mb_width, mb_height;
};

// TILE columns of macroblocks by some rows, each row one macroblock further to the left than the row above: such tiles depend
// only on tiles to the left and above
constexpr int MOST_IN_TILE = 32;  // macroblocks of a tile, a bit each
constexpr int TRIED = 8;            // vectors whose distortions are remembered
struct Tile {
  int x, y, rows;  // its first macroblock; index 8 r + k is that at (x + k - r, y + r)
};

// Motion of blocks: 16 of each macroblock of a tile, then for each macroblock 10 blocks of other tiles (order of MacroblockCache)
struct Blocks {
  unsigned vectors[(16 + 10) * MOST_IN_TILE];
  int references[(16 + 10) * MOST_IN_TILE];
};
DEVICE int outside_of(int tile_mb) { return 16 * MOST_IN_TILE + 10 * tile_mb; }

// A macroblock. The first half is written before the decisions of a block of threads, and then only read. The second half
// belongs to the warp that currently decides the macroblock: it is handed over by atomic operations.
struct alignas(16) MacroblockCache {
  Source source;
  uint4 next;     // bits of those of the tile to the right, below to the left, below, below to the right
  int elsewhere;  // bit i: the i-th of these is in another tile
  int intra_cost, skip_limit, qp, lam;
  int least[6];    // lower bounds of the cost of quadrants, 16x8 and 8x16; see least_cost
  int blocks[10];  // of the row above with both corners and the column to the left: where Blocks has them
  int outer[10];   // their global blocks, if they are in other tiles; else -1

  unsigned vectors[10];  // motion of those blocks at the last decision of the macroblock
  int references[10];
  unsigned tried[TRIED + 1];  // vectors; how many so far
  int value[TRIED];           // their distortion << 2 | 1: nothing of the residual would be left, 2: something
  int error[TRIED];           // by cost: their squared error, with psy_rd the difference in energy too
  unsigned centre[2];
  int nearby[2][9];  // distortions about the centres, 3 * row + column
};
static_assert(sizeof(MacroblockCache) == CACHE_BYTES, "the launcher allots as much");
struct Search {  // what the search found for the macroblock, [n_ref][41], and its lambda
  int *distortion;
  unsigned *mv;
  int lam;
};
DEVICE Search search_of(MacroblockCache &m, int n_ref, int lam) {
  int *distortion = reinterpret_cast<int *>(&m + 1);
  return {distortion, reinterpret_cast<unsigned *>(distortion + 41 * n_ref), lam};
}
DEVICE unsigned atomic_load(unsigned *v) { return atomicOr(v, 0u); }
DEVICE int atomic_load(int *v) { return atomicOr(v, 0); }

// What lane i < 6 knows of the least that quadrant i (i < 4), 16x8 or 8x16 may cost
DEVICE int least_cost(const Picture &p, const Search &s, int i) {
  int least = COST_MAX, halves[2] = {COST_MAX, COST_MAX};
  const int b = (i >> 1) * 8 + (i & 1) * 2, k = 36 + 2 * (i & 1);
#pragma unroll 1
  for (int r = 0; r < p.n_ref; r++) {
    const int *d = s.distortion + 41 * r, fixed = s.lam * ref_idx_bits(r, p.most_ref_idx_bits);
    if (i >= 4) {
      for (int n = 0; n < 2; n++) halves[n] = min(halves[n], d[k + n] + fixed + s.lam * BITS_LEAST);
      continue;
    }
    int cost = d[32 + i] + s.lam * (sub_type_bits(SUB_8x8) + BITS_LEAST);
    if (p.partition_mask & 8) {
      const int halves = min(d[16 + 2 * i] + d[17 + 2 * i], d[24 + 2 * i] + d[25 + 2 * i]);
      cost = min(cost, halves + s.lam * (sub_type_bits(SUB_8x4) + 2 * BITS_LEAST));
      if (p.partition_mask & 16)
        cost = min(cost, d[b] + d[b + 1] + d[b + 4] + d[b + 5] + s.lam * (sub_type_bits(SUB_4x4) + 4 * BITS_LEAST));
    }
    least = min(least, cost + fixed);
  }
  return i < 4 ? least : halves[0] + halves[1] + s.lam * BITS_16x8;
}

// What a macroblock may have, to begin with: the best 16x16 vector over the references
DEVICE Motion guess(const Picture &p, int mb) {
  const size_t n_mb = size_t(p.mb_width) * p.mb_height;
  int best = COST_MAX, ref = 0;
  const int lam = p.n_ref > 1 ? lambda_of(p.qp, mb) : 0;
#pragma unroll 1
  for (int r = 0; r < p.n_ref && p.n_ref > 1; r++) {
    const int cost = p.search_cost[(r * n_mb + mb) * 41 + 40] + lam * ref_idx_bits(r, p.most_ref_idx_bits);
    if (cost < best) {
      best = cost;
      ref = r;
    }
  }
  return {ref, p.search_mv[(ref * n_mb + mb) * 41 + 40]};
}

// Loads the macroblocks of a tile; called by all `threads` threads of a block
DEVICE void load_neighbourhood(const Picture &p, const Tile &tile, unsigned char *memory, int slot_bytes, Blocks &seen,
                        const signed char *ref_idx, const unsigned *mv, int row0, int row1, int threads) {
  const int n_mb = p.mb_width * p.mb_height, each = 41 * p.n_ref;
  const auto cache_of = [&](int tile_mb) -> MacroblockCache & { return *reinterpret_cast<MacroblockCache *>(memory + tile_mb * slot_bytes); };
  const auto address_of = [&](int tile_mb) {
    const int r = tile_mb / TILE, x = tile.x + tile_mb % TILE - r;
    return r < tile.rows && x >= 0 && x < p.mb_width ? (tile.y + r) * p.mb_width + x : -1;
  };
#pragma unroll 4
  for (int i = int(threadIdx.x); i < MOST_IN_TILE * each; i += threads) {
    const int tile_mb = i / each, j = i - each * tile_mb, r = j / 41, mb = address_of(tile_mb);
    if (mb < 0) continue;
    const size_t from = size_t(r) * n_mb + mb;
    const short2 centre = p.predictor[from];
    const unsigned v = __ldg(p.search_mv + from * 41 + (j - 41 * r));
    const Search s = search_of(cache_of(tile_mb), p.n_ref, lambda_of(p.qp, mb));
    s.distortion[j] = p.search_cost[from * 41 + (j - 41 * r)] - s.lam * difference_bits(v, vector_of(centre.x, centre.y));
    s.mv[j] = v;
  }
#pragma unroll 1
  for (int i = int(threadIdx.x); i < MOST_IN_TILE * 16; i += threads) {
    const int tile_mb = i / 16, k = i & 15, mb = address_of(tile_mb);
    if (mb < 0) continue;
    MacroblockCache &m = cache_of(tile_mb);
    const int y = mb / p.mb_width, x = mb - y * p.mb_width, stride = p.mb_width * 16;
    const Sample *from = p.source + size_t(16 * y + 4 * (k >> 2)) * stride + 16 * x + 4 * (k & 3);
    unsigned rows[4];
#pragma unroll
    for (int j = 0; j < 4; j++) rows[j] = __ldg(reinterpret_cast<const unsigned *>(from + size_t(j) * stride));
    const Motion motion = guess(p, mb);
    seen.references[i] = motion.ref;
    seen.vectors[i] = motion.v;
    if (k < 10) {
      const int bx = k < 6 ? k - 1 : -1, by = k < 6 ? -1 : k - 6, at = outside_of(tile_mb) + k;
      const int block = neighbour_block(mb, bx, by, p.mb_width, p.slice_first_mb[mb]);
      const int row = y - tile.y + (by < 0 ? -1 : 0), column = x - tile.x + row + (bx < 0 ? -1 : bx > 3 ? 1 : 0);
      const bool here = block >= 0 && row >= 0 && column >= 0;
      m.blocks[k] = here ? 16 * (TILE * row + column) + (block & 15) : at;
      m.outer[k] = here ? -1 : block;
      // those above row0 are decided
      const Motion other = here || block < 16 * row0 * p.mb_width ? motion_of(here ? -1 : block, ref_idx, mv) : guess(p, block >> 4);
      seen.references[at] = other.ref;
      seen.vectors[at] = other.v;
      m.references[k] = 99;  // a value that no block has
      m.vectors[k] = 0;
    }
    if (k == 11) {
      const int r = tile_mb / TILE, column = tile_mb % TILE;
      const bool right = x + 1 < p.mb_width, below = y + 1 < row1, inner = r + 1 < tile.rows;
      const bool there[4] = {right, below && x > 0, below, below && right};
      const bool in[4] = {column + 1 < TILE, inner, inner && column + 1 < TILE, inner && column + 2 < TILE};
      unsigned bits[4], elsewhere = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        bits[j] = there[j] && in[j] ? 1u << (tile_mb + (j ? TILE - 1 + j : 1)) : 0;
        elsewhere |= there[j] && !in[j] ? 1u << j : 0;
      }
      m.next = four(bits);
      m.elsewhere = int(elsewhere);
    }
    keep_source(m.source, k, rows, p.satd);
    if (k <= TRIED) m.tried[k] = k < TRIED ? NOWHERE : 0;
    if (k < 2) m.centre[k] = NOWHERE;
    if (k == 10) {
      m.intra_cost = p.intra_cost[mb];
      m.skip_limit = p.by_cost ? p.skip_limit[mb] : 0;
      m.qp = p.qp[mb];
      m.lam = lambda_of(p.qp, mb);
    }
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < MOST_IN_TILE * 8; i += threads)
    if ((i & 7) < 6 && address_of(i / 8) >= 0) {
      MacroblockCache &m = cache_of(i / 8);
      m.least[i & 7] = least_cost(p, search_of(m, p.n_ref, m.lam), i & 7);
    }
}
