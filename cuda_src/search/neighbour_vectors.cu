// Vectors of the neighbours and of the other partitions, tried for every partition after the search: twin of
// cpu_simd/search/neighbour_vectors.py, which explains it.
//
// One warp a macroblock. Each lane collects one vector; then the lower and the upper lanes measure a vector each, a lane a 4x4
// block, and keep the best for the seven partitions that hold the block.
// Samples of 8 bits only: words of four samples.
#include "search/neighbour_vectors_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/search.cuh"
#include "inter/motion_compensation.cuh"
#include "inter/mv_prediction.cuh"
#include "search/partition_layers.cuh"
#include "costs/block_probe.cuh"

constexpr int ORDER = 5;       // bits of a key below the cost: 0 for the vector of before, then by order of the trials

// Where the block of this lane is predicted
struct BlockReference {
  const Sample *luma;
  unsigned plane_size;
  int stride, at;
};

// One vector in the lower lanes and one in the upper ones: lowers the keys of the partitions that it suits best. rate: lam * bits
DEVICE void weigh(const Source &source, const BlockReference &reference, unsigned v, bool legal, int rate, int order, int *keys) {
  unsigned samples[4];
  const int block_cost = int(predicted(source, threadIdx.x & 15, reference.luma, reference.plane_size, reference.stride, reference.at, x_of(v), y_of(v), true, samples));
  const auto with = [](int sum, int lanes) { return sum + __shfl_xor_sync(FULL_WARP, sum, lanes); };
  const int pair = with(block_cost, 1), quadrant = with(pair, 4), half = with(quadrant, 2);
  const int sums[LAYERS] = {block_cost, pair, with(block_cost, 4), quadrant, half, with(quadrant, 8), with(half, 8)};
#pragma unroll
  for (int l = 0; l < LAYERS; l++)
    if (legal) keys[l] = min(keys[l], (sums[l] + rate) << ORDER | order);
}

// Macroblock rows [row0, row0 + gridDim.y); before: vectors of undivided macroblocks before this round, every step-th element;
// after: where they go; other arguments as the launcher says
extern "C" __global__ void __launch_bounds__(32 * WARPS, 8) neighbour_vectors(const Sample *__restrict__ src,
    const Sample *__restrict__ luma, int pad, const uint8_t *__restrict__ qp, int max_mv_y, int again, int mb_width, int mb_height, int row0,
    unsigned *predictor, unsigned *whole_mv, int *cost, unsigned *mv) {
  SHARED(Source, sources, WARPS);
  const int lane = threadIdx.x & 31, block = lane & 15, mx = int(blockIdx.x) * WARPS + int(threadIdx.x >> 5), my = int(blockIdx.y) + row0;
  if (mx >= mb_width) return;
  const int mb = my * mb_width + mx, lam = LAMBDA[load_before_the_wait(qp + mb)], x0 = 16 * mx, y0 = 16 * my;
  const int stride = mb_width * 16 + 2 * pad, height = mb_height * 16 + 2 * pad;
  Source &source = sources[threadIdx.x >> 5];
  wait_for_the_kernel_before();
  const BlockReference reference = {luma, unsigned(stride) * height, stride, (y0 + 4 * (block >> 2) + pad) * stride + x0 + 4 * (block & 3) + pad};
  if (lane < 16) {
    unsigned rows[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      rows[i] = __ldg(reinterpret_cast<const unsigned *>(src + size_t(y0 + 4 * (block >> 2) + i) * mb_width * 16 + x0 + 4 * (block & 3)));
    keep_source(source, lane, rows, true);
  }
  __syncwarp();
  // the vectors to try, one a lane
  const unsigned *before = again ? whole_mv : mv + 40;
  const int step = again ? 1 : 41;
  const int j = lane <= 4 ? lane - 1 : lane, dx = j % 3 - 1, dy = j / 3 - 1;
  const bool around = lane >= 1 && lane <= 8, of_partition = !again && lane > 8 && lane < N_VECTORS;
  const bool present = around && mx + dx >= 0 && mx + dx < mb_width && my + dy >= 0 && my + dy < mb_height;
  unsigned v = 0;
  if (present) v = before[size_t(mb + dy * mb_width + dx) * step];
  if (of_partition) v = mv[size_t(mb) * 41 + 32 + lane - 9];
  const unsigned neighbours = __ballot_sync(FULL_WARP, present);
  const unsigned a = __shfl_sync(FULL_WARP, v, 4), b = __shfl_sync(FULL_WARP, v, 2), c = __shfl_sync(FULL_WARP, v, neighbours & 8 ? 3 : 1);
  const unsigned middle = neighbours & 4 ? median(a, b, c) : a, old = predictor[mb];
  if (lane == 0) v = middle;
  const bool legal = (lane == 0 || present || of_partition) && inside(x_of(v), y_of(v), x0, y0, mb_width * 16, mb_height * 16, pad, max_mv_y);
  const unsigned all = __ballot_sync(FULL_WARP, legal);
  bool first = legal;
#pragma unroll
  for (int i = 0; i < N_VECTORS - 1; i++) {
    const unsigned other = __shfl_sync(FULL_WARP, v, i);
    if (i < lane && all >> i & 1 && other == v) first = false;
  }
  // the partitions that hold the lane's block
  int keys[LAYERS];
  unsigned best[LAYERS];
#pragma unroll
  for (int l = 0; l < LAYERS; l++) {
    const size_t at = size_t(mb) * 41 + layer_of(l, block).partition;
    best[l] = l == LAYERS - 1 ? before[size_t(mb) * step] : mv[at];
    keys[l] = (cost[at] + lam * (difference_bits(best[l], middle) - difference_bits(best[l], old))) << ORDER;
  }
  const auto rate_of = [&](unsigned vector) { return lam * difference_bits(vector, middle); };
  const auto keep_best = [&](auto vector_of_order) {
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
      keys[l] = min(keys[l], __shfl_xor_sync(FULL_WARP, keys[l], 16));
      const int order = keys[l] & ((1 << ORDER) - 1);
      const unsigned vector = vector_of_order(order);
      if (order) best[l] = vector;
      keys[l] -= order;
    }
  };
  unsigned rest = __ballot_sync(FULL_WARP, first);
  while (rest) {
    const int one = __ffs(int(rest)) - 1;
    rest &= rest - 1;
    const int two = rest ? __ffs(int(rest)) - 1 : one, from = lane < 16 ? one : two;
    rest &= rest - 1;
    const unsigned tried = __shfl_sync(FULL_WARP, v, from);
    weigh(source, reference, tried, true, rate_of(tried), from + 1, keys);
  }
  keep_best([&](int order) { return __shfl_sync(FULL_WARP, v, (order - 1) & 31); });
  if (again) {  // what lies around the best undivided vector
    const unsigned centre = best[LAYERS - 1];
    const auto nearby = [&](int i) {
      const int n = i + (i >= 4);
      return vector_of(x_of(centre) + n % 3 - 1, y_of(centre) + n / 3 - 1);
    };
#pragma unroll 1
    for (int i = lane >> 4; i < 8; i += 2) {
      const unsigned tried = nearby(i);
      const bool may = inside(x_of(tried), y_of(tried), x0, y0, mb_width * 16, mb_height * 16, pad, max_mv_y);
      weigh(source, reference, may ? tried : 0, may, rate_of(tried), i + 1, keys);
    }
    keep_best([&](int order) { return nearby(order - 1); });
  }
  if (lane >= 16) return;
#pragma unroll
  for (int l = 0; l < LAYERS; l++) {
    const Layer layer = layer_of(l, block);
    if ((block & 3) % layer.width || (block >> 2) % layer.height) continue;
    const size_t at = size_t(mb) * 41 + layer.partition;
    cost[at] = keys[l] >> ORDER;
    if (l < LAYERS - 1 || again) mv[at] = best[l];
    else whole_mv[mb] = best[l];
  }
  if (lane == 0) predictor[mb] = middle;
}

// The undivided vectors of whole_mv into mv: macroblocks [first, end), a thread each
extern "C" __global__ void take_whole(const unsigned *__restrict__ whole_mv, int first, int end, unsigned *mv) {
  const int mb = first + int(blockIdx.x * blockDim.x + threadIdx.x);
  wait_for_the_kernel_before();
  if (mb < end) mv[size_t(mb) * 41 + 40] = whole_mv[mb];
}
