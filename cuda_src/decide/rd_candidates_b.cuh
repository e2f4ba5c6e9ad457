// True costs of the choices of each macroblock in a B frame: twin of cpu_simd/decide/rd_candidates_b.py, which explains it.
//
// One warp a macroblock. The choices are weighed a lane each; then for direct prediction, and for each division that is near the
// best by estimates, one lane a 4x4 block as in rd_cost.cuh.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decide/rd_candidates_b_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/decide.cuh"
#include "inter/bi_prediction.cuh"
#include "inter/mv_prediction.cuh"
#include "decide/rd_cost.cuh"

constexpr int DIRECT = N_B_CHOICES;  // DIRECT: the estimated direct prediction among the choices

// Of one macroblock, in shared memory
struct alignas(16) Macroblock : Residue {
  int ref[N_B_CHOICES + 1][2];  // entries of both lists, -1: not used
  short2 mv[N_B_CHOICES + 1][2];
};

// The choices, see Candidates in cpu_simd/bundles.py
struct Choices {
  const int *cost;
  const signed char *ref;
  const short2 *mv;
  int *extra;
};

// 8.4.1.2.2: MinPositive
DEVICE int min_positive(int x, int y) { return x >= 0 && y >= 0 ? min(x, y) : max(x, y); }

// Direct prediction as the neighbours' best undivided choices let expect it -> m. Lanes 0 to 2 look at A, B, C.
DEVICE void estimate_direct(const Choices &choices, Macroblock &m, int mx, int my, int mb_width, int lam, int lane) {
  const int mb = my * mb_width + mx, above = mb - mb_width;
  int at = -1;
  if (lane == 0 && mx > 0) at = mb - 1;
  if (lane == 1 && my > 0) at = above;
  if (lane == 2 && my > 0) at = mx < mb_width - 1 ? above + 1 : mx > 0 ? above - 1 : -1;
  Motion motions[2] = {{-2, 0}, {-2, 0}};
  if (at >= 0) {
    int best = RD_COST_MAX, chosen = B_WHOLE;
    for (int k = 0; k < 3; k++) {
      const int cost = choices.cost[size_t(at) * N_B_CHOICES + B_WHOLE + k] + lam * RD_B_BITS[k];
      if (cost < best) best = cost, chosen = B_WHOLE + k;
    }
    const size_t first = (size_t(at) * N_B_CHOICES + chosen) * 2;
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const int ref = choices.ref[first + n];
      const short2 v = choices.mv[first + n];
      motions[n] = {max(ref, -1), ref < 0 ? 0 : vector_of(v.x, v.y)};
    }
  }
  int refs[2];
  unsigned vectors[2];
#pragma unroll
  for (int n = 0; n < 2; n++) {
    const auto of = [&](int k) { return Motion{__shfl_sync(FULL_WARP, motions[n].ref, k), __shfl_sync(FULL_WARP, motions[n].v, k)}; };
    const Motion a = of(0), b = of(1), c = of(2);
    refs[n] = max(-1, min_positive(a.ref, min_positive(b.ref, c.ref)));
    vectors[n] = refs[n] < 0 ? 0 : choose_predictor(0, 0, 4, 4, refs[n], a, b, c);
  }
  if (refs[0] < 0 && refs[1] < 0) refs[0] = refs[1] = 0;
  if (lane == 0)
#pragma unroll
    for (int n = 0; n < 2; n++) {
      m.ref[DIRECT][n] = refs[n];
      m.mv[DIRECT][n] = make_short2(short(x_of(vectors[n])), short(y_of(vectors[n])));
    }
  __syncwarp();
}

// The first choice of a division, and how many it has
DEVICE int first_choice(int shape) {
  return shape < B_EXTRA_16x8 ? B_WHOLE + shape : shape == B_EXTRA_16x8 ? B_16x8_PARTITION : shape == B_EXTRA_8x16 ? B_8x16_PARTITION : B_QUADRANT;
}
DEVICE int count_choices(int shape) { return shape < B_EXTRA_16x8 ? 1 : shape == B_EXTRA_8x8 ? 4 : 2; }

// The choices -> m; SATD and estimated cost of division `lane` < B_EXTRA_DIRECT, RD_COST_MAX if the partitions are not allowed
DEVICE int2 load_choices(const Choices &choices, Macroblock &m, int mb, int n_ref, int n_ref1, int partition_mask, int lam, int lane) {
  int satd = 0, cost = 0;  // of choice `lane`
  if (lane < N_B_CHOICES) {
    const size_t at = size_t(mb) * N_B_CHOICES + lane;
    int bits = 0, used = 0;
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const int ref = choices.ref[2 * at + n];
      const short2 v = choices.mv[2 * at + n], p = m.mv[DIRECT][n];
      if (ref >= 0) bits += ref_idx_bits(ref, most_ref_idx_bits(n ? n_ref1 : n_ref)) + mvd_bits(v.x - p.x, v.y - p.y), used++;
      m.ref[lane][n] = ref;
      m.mv[lane][n] = v;
    }
    if (used == 2 && lane < B_WHOLE) bits += RD_B_BOTH;
    satd = choices.cost[at];
    cost = satd + lam * bits;
  }
  const int first = first_choice(lane), count = count_choices(lane);
  int2 sum = {0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int distortion = __shfl_sync(FULL_WARP, satd, (first + i) & 31), estimate = __shfl_sync(FULL_WARP, cost, (first + i) & 31);
    if (i < count) sum.x += distortion, sum.y += estimate;
  }
  const bool allowed = lane < B_EXTRA_16x8 || partition_mask & (lane == B_EXTRA_8x8 ? 4 : 2);
  sum.y = lane < B_EXTRA_DIRECT && allowed ? sum.y + lam * RD_B_BITS[min(lane, B_EXTRA_DIRECT)] : RD_COST_MAX;
  __syncwarp();
  return sum;
}

// The choice that predicts quadrant q in division `shape`
DEVICE int choice_of(int shape, int q) {
  return shape < B_EXTRA_16x8 ? B_WHOLE + shape : shape == B_EXTRA_16x8 ? B_16x8_PARTITION + (q >> 1) : shape == B_EXTRA_8x16 ? B_8x16_PARTITION + (q & 1)
         : shape == B_EXTRA_8x8 ? B_QUADRANT + q : DIRECT;
}

// The kernel's arguments, as the launcher says
struct Frame {
  const Sample *src_y, *src_u, *src_v;
  BothLists references;
  const uint8_t *qp;
  int chroma_qp_offset, partition_mask, psy_rd, transform_8x8_mode, mb_width, row0;
  Choices choices;
  int *intra_cost, *skip_limit;
};

// What moved vectors are written to, from subme RD_B_DIVISIONS on
struct NotMoved {
  static constexpr bool ANY = false;
};
struct Moved {
  static constexpr bool ANY = true;
  short2 *choices, *whole;  // of the choices, of which halves and quadrants; of undivided choices [n_mb][3][2]
  int max_mv_y;
};

// Moves the vectors of division `shape`, whose true cost is `all`, as _refine of the twin; returns the true cost. evaluate(shape, c, n, v):
// it with vector v of choice c in list n.
template <class Evaluate>
DEVICE int refine(const BothLists &references, Macroblock &m, int shape, int all, int mx, int my, int lam, int max_mv_y, int lane,
                  const Evaluate &evaluate) {
  const int first = first_choice(shape);
#pragma unroll 1
  for (int c = first; c < first + count_choices(shape); c++) {
    bool goes_on = true;
#pragma unroll 1
    for (int round = 0; round < RD_ROUNDS && goes_on; round++) {
      goes_on = false;
#pragma unroll 1
      for (int n = 0; n < 2; n++) {
        if (m.ref[c][n] < 0) continue;
        const short2 centre = m.mv[c][n], middle = m.mv[DIRECT][n];
        int best = all + lam * mvd_bits(centre.x - middle.x, centre.y - middle.y), moved = -1;
#pragma unroll 1
        for (int d = 0; d < 4; d++) {
          const short2 v = neighbour(centre, d);
          if (!inside(v.x, v.y, mx * 16, my * 16, references.width, references.height, references.pad, max_mv_y)) continue;
          const int cost = evaluate(shape, c, n, v), with_bits = cost + lam * mvd_bits(v.x - middle.x, v.y - middle.y);
          if (with_bits < best) best = with_bits, moved = d, all = cost;
        }
        if (moved < 0) continue;
        goes_on = true;
        __syncwarp();
        if (lane == 0) m.mv[c][n] = neighbour(centre, moved);
        __syncwarp();
      }
    }
  }
  return all;
}

// Macroblock rows [row0, row0 + gridDim.y). PSY: psy_rd is not 0; Scaling: of scaling lists, see transform.cuh; Vectors: NotMoved or
// Moved
template <bool PSY, class Scaling, class Vectors>
DEVICE void weigh_choices(const Scaling &all_scaling, const Frame &f, const Vectors &vectors) {
  SHARED(Macroblock, macroblocks, WARPS);
  const int lane = threadIdx.x & 31, mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + f.row0;
  if (mx >= f.mb_width) return;
  const int mb = my * f.mb_width + mx, qp_y = load_before_the_wait(f.qp + mb);
  Macroblock &m = macroblocks[threadIdx.x >> 5];
  fill_bits<true>(m.bits, N_INTER_CONTEXTS, 2, qp_y, lane);
  __syncwarp();
  wait_for_the_kernel_before();
  const Scales scales = {qp_y, QP_CHROMA[clip3(0, 51, qp_y + f.chroma_qp_offset)], int(LAMBDA[qp_y])};
  const int lam = scales.lam;
  estimate_direct(f.choices, m, mx, my, f.mb_width, lam, lane);
  int2 satd_and_cost = load_choices(f.choices, m, mb, f.references.n_ref, f.references.n_ref1, f.partition_mask, lam, lane);
  unsigned source[4];
  load_source(f.src_y, f.src_u, f.src_v, f.mb_width, mx, my, lane, source);
  const Psy psy = {f.psy_rd, PSY ? ac_energy(source) : 0};
  const auto scaling = of_block(all_scaling, SCALING_SET, lane < 16, lane >> 2 & 1);
  int best = 0, excess = 0, without = 0;  // excess: of division `lane`, its true cost less SATD
  unsigned near = 0;
#pragma unroll 1
  for (int step = 0; step < N_B_EXTRAS; step++) {
    const int shape = step == 0 ? B_EXTRA_DIRECT : step - 1;
    if (step > 0 && !(near >> shape & 1)) continue;
    const int k = choice_of(shape, quadrant_of_lane(lane));
    unsigned predicted[4];
    predict_both(f.references, {{m.ref[k][0], m.ref[k][1]}, {m.mv[k][0], m.mv[k][1]}}, mx, my, lane, predicted);
    if (step == 0) {
      const int satd = __reduce_add_sync(FULL_WARP, lane < 16 ? int(satd_4x4(source, predicted)) : 0);
      if (lane == B_EXTRA_DIRECT) satd_and_cost = make_int2(satd, satd + lam * RD_B_BITS[B_EXTRA_DIRECT]);
      const int least = __reduce_min_sync(FULL_WARP, satd_and_cost.y);
      const unsigned equal = __ballot_sync(FULL_WARP, satd_and_cost.y == least);
      best = equal >> B_EXTRA_DIRECT & 1 ? B_EXTRA_DIRECT : __ffs(int(equal)) - 1;
      near = 1u << best | __ballot_sync(FULL_WARP, satd_and_cost.y < least + (least >> RD_GATE));
    }
    int c[16];
#pragma unroll
    for (int p = 0; p < 16; p++) c[p] = byte_of(source[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
    const ResidualCost cost =
        residual_cost<PSY>(scaling, c, predicted, near >> shape & 1, f.transform_8x8_mode != 0, scales, psy, m, lane);
    if (lane == shape) excess = cost.all - satd_and_cost.x;
    if (step == 0) without = cost.without;
  }
  const int of_best = __shfl_sync(FULL_WARP, excess, best);
  int gain = 0;  // of division `lane`
  if constexpr (Vectors::ANY) {
    const auto evaluate = [&](int shape, int choice, int n, short2 v) {
      const int k = choice_of(shape, quadrant_of_lane(lane));
      unsigned predicted[4];
      const bool is_it = k == choice;
      predict_both(f.references, {{m.ref[k][0], m.ref[k][1]}, {is_it && n == 0 ? v : m.mv[k][0], is_it && n == 1 ? v : m.mv[k][1]}}, mx,
                   my, lane, predicted);
      int c[16];
#pragma unroll
      for (int p = 0; p < 16; p++) c[p] = byte_of(source[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
      return residual_cost<PSY>(scaling, c, predicted, true, f.transform_8x8_mode != 0, scales, psy, m, lane).all;
    };
    const int all = near >> lane & 1 ? satd_and_cost.y + excess : RD_COST_MAX, least = __reduce_min_sync(FULL_WARP, all);
    const unsigned chosen = __ballot_sync(FULL_WARP, all <= least + (least >> RD_NEAR));
#pragma unroll 1
    for (int shape = 0; shape < B_EXTRA_DIRECT; shape++) {
      if (!(chosen >> shape & 1)) continue;
      const int before = __shfl_sync(FULL_WARP, excess + satd_and_cost.x, shape);
      const int after = refine(f.references, m, shape, before, mx, my, lam, vectors.max_mv_y, lane, evaluate);
      if (lane == shape) gain = after - before;
    }
    if (lane < 2 * B_WHOLE) vectors.choices[size_t(mb) * 2 * N_B_CHOICES + lane] = m.mv[lane >> 1][lane & 1];
    else if (lane < 2 * N_B_CHOICES) vectors.whole[size_t(mb) * 6 + lane - 2 * B_WHOLE] = m.mv[lane >> 1][lane & 1];
  }
  if (lane < N_B_EXTRAS) f.choices.extra[size_t(mb) * N_B_EXTRAS + lane] = (near >> lane & 1 ? excess : of_best) + gain;
  if (lane == 0) {
    f.skip_limit[mb] = without - lam * RD_B_SKIP;
    if (f.intra_cost[mb] < INTER_IS_CHEAPER) f.intra_cost[mb] += of_best + lam * RD_BITS_INTRA;
  }
}

#define NO_MORE
#define SCALING , const short *__restrict__ scaling
// resident: least blocks of a multiprocessor; b_mv: `const short2 *` where vectors are not moved, else `short2 *`
#define RD_CANDIDATES_B(name, resident, psy, scaling, vectors, mv_type, more)                                                                   \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, resident) name(const Sample *__restrict__ src_y, const Sample *__restrict__ src_u,\
      const Sample *__restrict__ src_v, const Sample *__restrict__ ref_luma, const Sample *__restrict__ ref_chroma,                    \
      const int *__restrict__ ref_slots, const int *__restrict__ bi_weights, int pad, int n_ref, int n_ref1,                           \
      const uint8_t *__restrict__ qp, int chroma_qp_offset, int partition_mask, int psy_rd, int transform_8x8_mode, int mb_width,      \
      int mb_height, int row0, const int *__restrict__ b_cost, const signed char *__restrict__ b_ref, mv_type b_mv,                    \
      int *b_extra, int *intra_cost, int *skip_limit more) {                                                                           \
    weigh_choices<psy>(scaling, {src_y, src_u, src_v,                                                                                  \
                               {ref_luma, ref_chroma, ref_slots, bi_weights, pad, n_ref, n_ref1, 16 * mb_width, 16 * mb_height},       \
                               qp, chroma_qp_offset, partition_mask, psy_rd, transform_8x8_mode, mb_width, row0,                       \
                               {b_cost, b_ref, b_mv, b_extra}, intra_cost, skip_limit}, vectors);                                      \
  }
