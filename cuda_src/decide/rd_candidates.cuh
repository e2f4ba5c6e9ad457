// True costs of the divisions of each macroblock in a P frame at their searched vectors: twin of cpu_simd/decide/rd_candidates.py, which
// explains it.
//
// One warp a macroblock. The searched partitions are weighed a lane each; then for each division that is near the best by
// estimates, one lane a 4x4 block: 0..15 luma in raster order, 16..19 Cb, 20..23 Cr.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decide/rd_candidates_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "costs/bit_costs.cuh"
#include "inter/motion_compensation.cuh"
#include "decide/rd_cost.cuh"
#include "inter/weighting.cuh"


// Of one macroblock, in shared memory
struct alignas(16) Macroblock : Residue {
  int cost[41], satd[41];  // of the searched partitions in the best reference of each 8x8 block or larger one
  short2 searched[41];
  int ref[9];            // of partitions 32 to 40
  short2 middle;         // the search's predictor of the undivided macroblock's vector
  short2 mv[16];         // of the division that is coded, 4x4 blocks
  alignas(4) uint8_t sub[4];
  // by division: by estimates; of SATD; what the true cost has more
  int estimate[4], distortion[4], extra[4];
};

// The kernel's arguments, as the launcher says
struct Frame {
  const Sample *src_y, *src_u, *src_v, *ref_luma, *ref_chroma;
  const int *ref_slots, *weights;
  int pad, n_ref, mb_width, mb_height, partition_mask, chroma_qp_offset, transform_8x8_mode;
};

// Quadrant of partition k < 32
DEVICE int quadrant_of(int k) { return k < 16 ? (k >> 3) * 2 + (k >> 1 & 1) : (k - 16 & 15) >> 1 & 3; }
// The partition of quadrant q that has its block (dx, dy), with sub_mb_type `sub`
DEVICE int partition_at(int q, int sub, int dx, int dy) {
  return sub == SUB_8x8 ? 32 + q : sub == SUB_8x4 ? 16 + 2 * q + dy : sub == SUB_4x8 ? 24 + 2 * q + dx : 4 * ((q & 2) + dy) + 2 * (q & 1) + dx;
}

// Best references and their vectors of all partitions -> m
DEVICE void load_searched(const Frame &f, Macroblock &m, int mb, int lam, const int *cost, const short2 *mv, const short2 *predictor, int lane) {
  const size_t n_mb = size_t(f.mb_width) * f.mb_height;
  const int most = most_ref_idx_bits(f.n_ref);
  if (lane < 9) {
    int best = RD_COST_MAX, ref = 0;
#pragma unroll 1
    for (int r = 0; r < f.n_ref; r++) {
      const int value = cost[(r * n_mb + mb) * 41 + 32 + lane] + lam * ref_idx_bits(r, most);
      if (value < best) best = value, ref = r;
    }
    m.ref[lane] = ref;
  }
  __syncwarp();
  for (int k = lane; k < 41; k += 32) {
    const int r = m.ref[k < 32 ? quadrant_of(k) : k - 32];
    const size_t at = r * n_mb + mb;
    const short2 v = mv[at * 41 + k], p = predictor[at];
    const int value = cost[at * 41 + k];
    m.satd[k] = value - lam * mvd_bits(v.x - p.x, v.y - p.y);
    m.cost[k] = value + (k < 32 ? 0 : lam * ref_idx_bits(r, most));
    m.searched[k] = v;
    if (k == 40) m.middle = p;
  }
  __syncwarp();
}

// sub_mb_type of each quadrant by estimates -> m.sub; the sums of estimates and of SATD over the quadrants
DEVICE int2 choose_quarters(const Frame &f, Macroblock &m, int lam, int lane) {
  int best = 0, satd = 0;
  if (lane < 4) {
    const int q = lane, fixed = lam * ref_idx_bits(m.ref[q], most_ref_idx_bits(f.n_ref));
    int chosen = SUB_8x8;
    best = m.cost[32 + q] + lam * sub_type_bits(SUB_8x8);
    satd = m.satd[32 + q];
    if (f.partition_mask & 8)
      for (int sub = SUB_8x4; sub <= (f.partition_mask & 16 ? SUB_4x4 : SUB_4x8); sub++) {
        int cost = fixed + lam * sub_type_bits(sub), distortion = 0;
        for (int i = 0; i < 4; i++) {
          const int dx = i & 1, dy = i >> 1, k = partition_at(q, sub, dx, dy);
          if ((sub == SUB_8x4 && dx) || (sub == SUB_4x8 && dy)) continue;
          cost += m.cost[k];
          distortion += m.satd[k];
        }
        if (cost < best) best = cost, satd = distortion, chosen = sub;
      }
    m.sub[q] = uint8_t(chosen);
  }
  __syncwarp();
  return make_int2(__reduce_add_sync(FULL_WARP, best), __reduce_add_sync(FULL_WARP, satd));
}

// The partition of a division that has the lane's block
DEVICE int partition_of_lane(const Macroblock &m, int shape, int lane) {
  const int q = quadrant_of_lane(lane);
  return shape == WHOLE ? 40 : shape == UPPER ? 36 + (q >> 1) : shape == LEFT ? 38 + (q & 1) : partition_at(q, m.sub[q], lane & 1, lane >> 2 & 1);
}

// Prediction of the lane's 4x4 block from `ref` at vector v, and differences to it -> c
DEVICE void differences(const Frame &f, Macroblock &m, int ref, short2 v, int mx, int my, const unsigned *source, int lane,
                        unsigned *predicted, int *c) {
  const int plane = lane >> 2 & 1, bx = lane & 3, by = lane >> 2 & 3, width = f.mb_width * 16, height = f.mb_height * 16;
  const int q = quadrant_of_lane(lane);
  __syncwarp();
  if (lane < 16) m.mv[lane] = v;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; i++) predicted[i] = 0;
  const size_t slot = f.ref_slots[ref];
  if (lane < 16) {
    const int wide = width + 2 * f.pad, high = height + 2 * f.pad;
    predict_luma(f.ref_luma + slot * 4 * wide * high, wide, high, f.pad, mx * 16, my * 16, bx, by, {bx, by, 1, 1}, v, predicted);
  } else if (lane < 24) {
    const int wide = chroma_width(width, f.pad), high = chroma_height(height, f.pad);
    predict_chroma(f.ref_chroma + (slot * 2 + plane) * wide * high, wide, high, f.pad / SUB_WIDTH_C, mx * MB_WIDTH_C,
                   my * MB_HEIGHT_C, q, m.mv, predicted);
  }
  if (lane < 24) weigh_block(f.weights, ref, lane < 16, plane, predicted);
#pragma unroll
  for (int p = 0; p < 16; p++) c[p] = byte_of(source[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
}

// The number of partitions of part i of a division, a half or a quadrant; the j-th of them
DEVICE int partitions_of(const Macroblock &m, int shape, int i) {
  return shape != QUARTERS || m.sub[i] == SUB_8x8 ? 1 : m.sub[i] == SUB_4x4 ? 4 : 2;
}
DEVICE int partition_of(const Macroblock &m, int shape, int i, int j) {
  if (shape != QUARTERS) return shape == WHOLE ? 40 : 34 + 2 * shape + i;
  return partition_at(i, m.sub[i], m.sub[i] == SUB_4x8 ? j : j & 1, m.sub[i] == SUB_8x4 ? j : j >> 1);
}

// Moves the vectors of division `shape`, whose true cost is `all`, as _refine of the twin. evaluate(shape, k, v): the true cost with
// vector v in partition k.
template <class Evaluate>
DEVICE void refine(const Frame &f, Macroblock &m, int shape, int all, int mb, int lam, int max_mv_y, int *search_cost, short2 *search_mv,
                   const short2 *predictor, int lane, const Evaluate &evaluate) {
  const int x0 = mb % f.mb_width * 16, y0 = mb / f.mb_width * 16;
#pragma unroll 1
  for (int t = 0; t < (shape == QUARTERS ? 16 : shape == WHOLE ? 4 : 8); t++) {  // four for each part
    const int i = t >> 2, j = t & 3;
    if (j >= partitions_of(m, shape, i)) continue;
    const int k = partition_of(m, shape, i, j), ref = m.ref[shape == QUARTERS ? i : k - 32];
    const size_t at = size_t(ref) * f.mb_width * f.mb_height + mb;
    const short2 middle = predictor[at];
#pragma unroll 1
    for (int round = 0; round < RD_ROUNDS; round++) {
      const short2 centre = m.searched[k];
      const int before = all + lam * mvd_bits(centre.x - middle.x, centre.y - middle.y);
      int best = before, moved = -1;
#pragma unroll 1
      for (int n = 0; n < 4; n++) {
        const short2 v = neighbour(centre, n);
        if (!inside(v.x, v.y, x0, y0, f.mb_width * 16, f.mb_height * 16, f.pad, max_mv_y)) continue;
        const int cost = evaluate(shape, k, v), with_bits = cost + lam * mvd_bits(v.x - middle.x, v.y - middle.y);
        if (with_bits < best) best = with_bits, moved = n, all = cost;
      }
      if (moved < 0) break;
      __syncwarp();
      if (lane == 0) {
        search_mv[at * 41 + k] = m.searched[k] = neighbour(centre, moved);
        search_cost[at * 41 + k] += best - before;
      }
      __syncwarp();
    }
  }
}

// Macroblock rows [row0, row0 + gridDim.y); arguments as the launcher says. PSY: psy_rd is not 0; ALL_VECTORS: subme is RD_DIVISIONS or more;
// Scaling: of scaling lists, see transform.cuh
template <bool PSY, bool ALL_VECTORS, class Scaling>
DEVICE void weigh_divisions(const Scaling &all_scaling, const Sample *__restrict__ src_y,
    const Sample *__restrict__ src_u, const Sample *__restrict__ src_v, const Sample *__restrict__ ref_luma,
    const Sample *__restrict__ ref_chroma, const int *__restrict__ ref_slots, const int *__restrict__ weights, int pad, int n_ref,
    const uint8_t *__restrict__ qp, int chroma_qp_offset, int partition_mask, int subme, int max_mv_y, int psy_rd, int transform_8x8_mode,
    int mb_width, int mb_height, int row0, int *search_cost, short2 *search_mv, const short2 *__restrict__ predictor, int *intra_cost,
    int *skip_limit) {
  SHARED(Macroblock, macroblocks, WARPS);
  const int lane = threadIdx.x & 31, mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0;
  if (mx >= mb_width) return;
  const int mb = my * mb_width + mx, qp_y = load_before_the_wait(qp + mb);
  Macroblock &m = macroblocks[threadIdx.x >> 5];
  fill_bits<true>(m.bits, N_INTER_CONTEXTS, 1, qp_y, lane);
  __syncwarp();
  wait_for_the_kernel_before();
  const Frame f = {src_y, src_u, src_v, ref_luma, ref_chroma, ref_slots, weights, pad, n_ref, mb_width, mb_height, partition_mask,
                   chroma_qp_offset, transform_8x8_mode};
  const int qp_c = QP_CHROMA[clip3(0, 51, qp_y + chroma_qp_offset)], lam = LAMBDA[qp_y];
  load_searched(f, m, mb, lam, search_cost, search_mv, predictor, lane);
  const int2 quarters = choose_quarters(f, m, lam, lane);
  const int shapes = partition_mask & 4 ? 4 : partition_mask & 2 ? 3 : 1;
  int estimate = RD_COST_MAX, distortion = 0;  // of division `lane`
  if (lane < shapes) {
    const int k = lane == WHOLE ? 40 : 34 + 2 * lane;
    estimate = lam * (lane == WHOLE ? BITS_16x16 : lane == QUARTERS ? BITS_8x8 : BITS_16x8);
    estimate += lane == QUARTERS ? quarters.x : m.cost[k] + (lane == WHOLE ? 0 : m.cost[k + 1]);
    distortion = lane == QUARTERS ? quarters.y : m.satd[k] + (lane == WHOLE ? 0 : m.satd[k + 1]);
    m.estimate[lane] = estimate;
    m.distortion[lane] = distortion;
  }
  const int least = __reduce_min_sync(FULL_WARP, estimate);
  const int best = __ffs(int(__ballot_sync(FULL_WARP, estimate == least))) - 1;
  const unsigned near = 1u | 1u << best | __ballot_sync(FULL_WARP, estimate < least + (least >> RD_GATE));
  __syncwarp();
  unsigned source[4];
  load_source(src_y, src_u, src_v, mb_width, mx, my, lane, source);
  const Psy psy = {psy_rd, PSY ? ac_energy(source) : 0};
  const auto scaling = of_block(all_scaling, SCALING_SET, lane < 16, lane >> 2 & 1);
  int without = 0;
  int moved = -1, whole = 0, cheapest = RD_COST_MAX, cheapest_moved = 0;  // moved: to which neighbour
#pragma unroll 1
  for (int step = 0; step < (!ALL_VECTORS && subme >= RD_VECTORS ? 8 : shapes); step++) {  // from 4 on: neighbours of the undivided vector
    const int n = step - 4, shape = n < 0 ? step : WHOLE;
    if (n < 0 && !(near >> shape & 1)) continue;
    const int k = partition_of_lane(m, shape, lane);
    const short2 centre = m.searched[k], middle = m.middle;
    if (n == 0) {
      if (whole + m.estimate[WHOLE] != cheapest) break;
      cheapest_moved = whole + m.distortion[WHOLE] + lam * mvd_bits(centre.x - middle.x, centre.y - middle.y);
    }
    const short2 v = neighbour(centre, n);
    if (n >= 0) {
      if (!inside(v.x, v.y, mx * 16, my * 16, mb_width * 16, mb_height * 16, pad, max_mv_y)) continue;
    }
    int c[16];
    unsigned predicted[4];
    differences(f, m, m.ref[shape == QUARTERS ? quadrant_of_lane(lane) : k - 32], v, mx, my, source, lane, predicted, c);
    const bool may_be_8x8 = transform_8x8_mode && (shape != QUARTERS || !*reinterpret_cast<const unsigned *>(m.sub));
    const ResidualCost residual = residual_cost<PSY>(scaling, c, predicted, true, may_be_8x8, {qp_y, qp_c, lam}, psy, m, lane);
    const int cost = residual.all;
    if (n >= 0) {
      const int all = cost + lam * mvd_bits(v.x - middle.x, v.y - middle.y);
      if (all < cheapest_moved) {
        cheapest_moved = all;
        moved = n;
      }
      continue;
    }
    const int extra = cost - m.distortion[shape];
    cheapest = min(cheapest, extra + m.estimate[shape]);
    if (lane == 0) m.extra[shape] = extra;
    if (shape == WHOLE) {
      whole = extra;
      without = extra - residual.without;
    }
  }
  __syncwarp();
  if constexpr (ALL_VECTORS) {
    const auto evaluate = [&](int shape, int k, short2 v) {
      const int k_of_lane = partition_of_lane(m, shape, lane);
      int c[16];
      unsigned predicted[4];
      differences(f, m, m.ref[shape == QUARTERS ? quadrant_of_lane(lane) : k_of_lane - 32], k_of_lane == k ? v : m.searched[k_of_lane], mx, my, source, lane,
                  predicted, c);
      const bool may_be_8x8 = transform_8x8_mode && (shape != QUARTERS || !*reinterpret_cast<const unsigned *>(m.sub));
      return residual_cost<PSY>(scaling, c, predicted, true, may_be_8x8, {qp_y, qp_c, lam}, psy, m, lane).all;
    };
#pragma unroll 1
    for (int shape = 0; shape < shapes; shape++)
      if (near >> shape & 1 && m.extra[shape] + m.estimate[shape] <= cheapest + (cheapest >> RD_NEAR))
        refine(f, m, shape, m.extra[shape] + m.distortion[shape], mb, lam, max_mv_y, search_cost, search_mv, predictor, lane, evaluate);
    __syncwarp();
  }
  const int added = m.extra[best] - whole;
  if (lane == 0) {
    skip_limit[mb] = without;
    if (intra_cost[mb] < INTER_IS_CHEAPER) intra_cost[mb] += added + lam * RD_BITS_INTRA;
    if (moved >= 0) {
      const size_t of_whole = (size_t(m.ref[8]) * mb_width * mb_height + mb) * 41 + 40;
      search_mv[of_whole] = neighbour(m.searched[40], moved);
      search_cost[of_whole] = cheapest_moved - whole;
    }
  }
  if (lane < 6) {  // partitions 36, 38 and 0, 16, 24, 32
    const int shape = lane == 0 ? UPPER : lane == 1 ? LEFT : QUARTERS, k = lane == 0 ? 36 : lane == 1 ? 38 : lane == 2 ? 0 : 8 * (lane - 1);
    const int extra = near >> shape & 1 ? m.extra[shape] - whole : added;
    if (shape < shapes)
#pragma unroll 1
      for (int r = 0; r < n_ref; r++) search_cost[(size_t(r) * mb_width * mb_height + mb) * 41 + k] += extra;
  }
}

#define NO_MORE
#define SCALING , const short *__restrict__ scaling
#define RD_CANDIDATES(name, psy, all_vectors, scaling, more)                                                                                         \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, all_vectors ? RESIDENT_BLOCKS : 4) name(const Sample *__restrict__ src_y, const Sample *__restrict__ src_u,\
      const Sample *__restrict__ src_v, const Sample *__restrict__ ref_luma, const Sample *__restrict__ ref_chroma,                    \
      const int *__restrict__ ref_slots, const int *__restrict__ weights, int pad, int n_ref, const uint8_t *__restrict__ qp,          \
      int chroma_qp_offset, int partition_mask, int subme, int max_mv_y, int psy_rd, int transform_8x8_mode, int mb_width,             \
      int mb_height, int row0, int *search_cost, short2 *search_mv, const short2 *__restrict__ predictor, int *intra_cost,             \
      int *skip_limit more) {                                                                                                          \
    weigh_divisions<psy, all_vectors>(scaling, src_y, src_u, src_v, ref_luma, ref_chroma, ref_slots, weights, pad, n_ref, qp, chroma_qp_offset,       \
                         partition_mask, subme, max_mv_y, psy_rd, transform_8x8_mode, mb_width, mb_height, row0, search_cost,          \
                         search_mv, predictor, intra_cost, skip_limit);                                                                \
  }
