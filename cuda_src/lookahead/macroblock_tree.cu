// The macroblock tree: what frames owe to their references, and QP offsets. Twin of cpu_simd/lookahead/macroblock_tree.py: sums are of
// integers, so that the order of macroblocks and frames does not count. One macroblock a thread. Parts of frames are taken by
// ticket in the order of jobs: a frame's turn comes when all frames that give to it have ended, which come before it.
#include "lookahead/macroblock_tree_launch.cuh"
#include "decisions/lookahead.cuh"
#include "simd.cuh"

// A row of the table of macroblock_tree.py; pointers may be null
struct TreeJob {
  const uint16_t *intra;
  const int *error_weights;   // in 1 / 65536; null: that of all is 1
  const uint16_t *cost;     // null: of an I frame, which gives nothing
  const int16_t *vectors;   // two a macroblock without lists, else four
  const uint8_t *lists;     // null: all from the earlier frame
  const long long *amount;
  unsigned long long *gifts0, *gifts1;  // null: of a frame that has left
  int *offsets;
  long long weight, strength, after, noise, unused[3];  // after: jobs before it that must have ended
};

// The square of the worth of an error of a macroblock
DEVICE long long square_of(const TreeJob &job, int mb) {
  if (!job.error_weights) return 1ll << SQUARE_SHIFT;
  const long long error_weight = job.error_weights[mb], square = error_weight * error_weight >> SQUARE_SHIFT;
  return square > 1 ? square : 1;
}

// What a macroblock is worth by itself
DEVICE long long mb_error(long long square) {
  const long long error = square >> (SQUARE_SHIFT - AMOUNT_SHIFT);
  return error > 1 ? error : 1;
}

// Cost of a residual half of which quantisation leaves out
DEVICE long long hidden_cost(long long noise, long long square) {
  const long long hidden = (noise << SQUARE_SHIFT) / square;
  return hidden < MOST_HIDDEN ? hidden : MOST_HIDDEN;
}

// To the up to four macroblocks that macroblock (mx, my) covers, moved by (x, y)
DEVICE void give(long long amount, int mx, int my, int x, int y, int mb_width, int mb_height, unsigned long long *gifts) {
  if (!gifts || !amount) return;
  const int left = 16 * mx + x, top = 16 * my + y, right = left & 15, below = top & 15;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int column = (left >> 4) + (i & 1), row = (top >> 4) + (i >> 1);
    const int area = (i >> 1 ? below : 16 - below) * (i & 1 ? right : 16 - right);
    if (area && column >= 0 && column < mb_width && row >= 0 && row < mb_height)
      atomicAdd(gifts + row * mb_width + column, (unsigned long long)((amount * area + 128) >> 8));
  }
}

// What a macroblock owes to the references of its frame
DEVICE void propagate(const TreeJob &job, int mb, int mb_width, int mb_height) {
  const int cost = job.cost[mb], saved = int(job.intra[mb]) - cost;
  if (saved <= 0) return;
  const long long square = square_of(job, mb);
  const long long left_out = hidden_cost(job.noise, square) + (saved << (COST_SHIFT - SAVED_SHIFT));
  const long long share = (left_out << SHARE_SHIFT) / (left_out + ((long long)cost << COST_SHIFT));
  const long long owed = (mb_error(square) + __ldcg(job.amount + mb)) * share >> SHARE_SHIFT;  // others have added to it
  const int lists = job.lists ? job.lists[mb] : 1, mx = mb % mb_width, my = mb / mb_width;
  const int16_t *vectors = job.vectors + (job.lists ? 4 : 2) * size_t(mb);
  const long long second = lists == 2 ? owed : lists == 3 ? (owed * job.weight) >> WEIGHT_SHIFT : 0;
  if (lists != 2) give(owed - second, mx, my, vectors[0], vectors[1], mb_width, mb_height, job.gifts0);
  if (lists != 1) give(second, mx, my, vectors[2], vectors[3], mb_width, mb_height, job.gifts1);
}

// progress: int[2], zeros before the launch: tickets taken, and parts that have ended
extern "C" __global__ void __launch_bounds__(THREADS) tree_propagate(const TreeJob *jobs, int n_jobs, int mb_width, int mb_height,
                                                                     int *progress) {
  SHARED(int, taken, 1);
  wait_for_the_kernel_before();
  const int n_mb = mb_width * mb_height, parts = (n_mb + THREADS - 1) / THREADS;
  while (true) {
    if (threadIdx.x == 0) {
      *taken = atomicAdd(progress, 1);
      if (*taken < n_jobs * parts) wait_at_least(progress + 1, int(jobs[*taken / parts].after) * parts);
    }
    __syncthreads();
    const int ticket = *taken;
    if (ticket >= n_jobs * parts) return;
    const int mb = ticket % parts * THREADS + int(threadIdx.x);
    const TreeJob &job = jobs[ticket / parts];
    if (mb < n_mb && job.cost) propagate(job, mb, mb_width, mb_height);
    __syncthreads();
    if (threadIdx.x == 0) add_release(progress + 1, 1);
  }
}

// log2 of a positive integer, in 1 / 65536; table: of 1 + i / 1024
DEVICE long long log2_of(long long value, const int *__restrict__ table) {
  int exponent = 0;
#pragma unroll
  for (int step = 32; step; step >>= 1)
    if (value >> (exponent + step)) exponent += step;
  const long long mantissa = exponent >= TREE_TABLE_BITS ? value >> (exponent - TREE_TABLE_BITS) : value << (TREE_TABLE_BITS - exponent);
  return ((long long)exponent << TREE_LOG2_SHIFT) + table[mantissa - (1 << TREE_TABLE_BITS)];
}

extern "C" __global__ void __launch_bounds__(THREADS) tree_offsets(const TreeJob *jobs, int n_mb, const int *__restrict__ table) {
  wait_for_the_kernel_before();
  const TreeJob &job = jobs[blockIdx.y];
  const int mb = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (mb >= n_mb) return;
  const long long error = mb_error(square_of(job, mb)), gain = log2_of(error + job.amount[mb], table) - log2_of(error, table);
  job.offsets[mb] = -int((gain * job.strength + (1 << (TREE_LOG2_SHIFT - 1))) >> TREE_LOG2_SHIFT);
}
