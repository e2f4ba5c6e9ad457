// QP offsets of adaptive quantisation, and what costs are worth under them: twin of cpu_simd/quantiser/aq_offsets.py, whose formulas
// and integers these are.
#include "quantiser/aq_offsets_launch.cuh"
#include "decisions/adaptation.cuh"
#include "decisions/lookahead.cuh"
#include "simd.cuh"

// In shared memory: lanes look up different rows
struct Logarithms {
  int log2[1 << ROW_BITS | 1], exp2[1 << ROW_BITS | 1];
};

DEVICE int between(const int *table, unsigned at) {
  const int row = int(at >> FRACTION_BITS), fraction = int(at & ((1u << FRACTION_BITS) - 1)), rise = table[row + 1] - table[row];
  return table[row] + ((rise * fraction + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS);
}
// Of an integer from 1 on
DEVICE int log2_of(const Logarithms &tables, unsigned value) {
  const int exponent = 31 - __clz(int(value));
  const unsigned mantissa = (value << (31 - exponent)) & 0x7fffffffu;
  return (exponent << LOG2_SHIFT) + between(tables.log2, mantissa >> (31 - ROW_BITS - FRACTION_BITS));
}
DEVICE int exp2_of(const Logarithms &tables, int value, int shift) {
  const unsigned fraction = unsigned(value) & ((1u << LOG2_SHIFT) - 1);
  const int mantissa = between(tables.exp2, fraction << (ROW_BITS + FRACTION_BITS - LOG2_SHIFT)), left = (value >> LOG2_SHIFT) - shift;
  return mantissa << max(left, 0) >> max(-left, 0);
}

DEVICE int by_variance(const Logarithms &tables, int energy, int strength) {
  const int above = log2_of(tables, unsigned(max(energy, 1))) - NEUTRAL;
  const int offset = ((above >> 8) * SLOPE + ((above & 255) * SLOPE >> 8)) >> 8;
  return (offset * strength + (ONE >> 1)) >> LOG2_SHIFT;
}
DEVICE int eighth_root(const Logarithms &tables, int energy) {
  return exp2_of(tables, log2_of(tables, unsigned(energy) + 1) >> 3, 0);
}
DEVICE int by_frame(long long root, long long mean, long long of_frame, int mode, int strength) {
  long long offset = ((mean * (root - mean)) >> LOG2_SHIFT) + of_frame;
  if (mode == DARK_FINER) offset += ONE - ((long long)NEUTRAL_SQUARE * ONE << LOG2_SHIFT) / ((root * root) >> LOG2_SHIFT);
  return int((offset * strength + (ONE >> 1)) >> LOG2_SHIFT);
}
DEVICE int error_weight(const Logarithms &tables, int offset) {
  const int finer = ENOUGH - min(max(offset, -ENOUGH), ENOUGH);
  const int change = int((unsigned(finer) << (LOG2_SHIFT - QP_SHIFT)) / unsigned(DOUBLING)) - (1 << (LOG2_SHIFT - QP_SHIFT));
  return exp2_of(tables, min(max(change, 0), 2 * MOST_CHANGE), MOST_WEIGHT_LOG2);
}

// The sum over the threads of a block, in all of them; sums: shared, one word a warp
DEVICE long long sum_of_block(long long value, long long *sums) {
#pragma unroll
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(FULL_WARP, value, step);
  __syncthreads();  // the sums before are read
  if (!(threadIdx.x & 31)) sums[threadIdx.x >> 5] = value;
  __syncthreads();
  long long total = 0;
#pragma unroll
  for (int warp = 0; warp < THREADS / 32; warp++) total += sums[warp];
  return total;
}

// energy, offsets, weights: int[n_mb]. Grid: blocks of THREADS macroblocks, or with mean values of the frame one block.
extern "C" __global__ void __launch_bounds__(THREADS) aq_offsets(const int *__restrict__ energy, int n_mb, int mode, int strength,
    int *__restrict__ offsets, int *__restrict__ weights) {
  SHARED(Logarithms, shared, 1);
  SHARED(long long, sums, THREADS / 32);
  const Logarithms &tables = *shared;
  for (int k = int(threadIdx.x); k <= 1 << ROW_BITS; k += THREADS) {
    shared->log2[k] = LOG2_TABLE[k];
    shared->exp2[k] = EXP2_TABLE[k];
  }
  wait_for_the_kernel_before();
  __syncthreads();
  const int first = int(blockIdx.x) * THREADS + int(threadIdx.x), step = int(gridDim.x) * THREADS;
  long long mean = 0, of_frame = 0;
  if (mode != BY_VARIANCE) {
    long long roots = 0, squares = 0;
    for (int mb = first; mb < n_mb; mb += step) {
      const long long root = eighth_root(tables, energy[mb]);
      roots += root;
      squares += (root * root) >> LOG2_SHIFT;
    }
    mean = sum_of_block(roots, sums) / n_mb;
    of_frame = (sum_of_block(squares, sums) / n_mb - (long long)NEUTRAL_SQUARE * ONE) >> 1;
  }
  for (int mb = first; mb < n_mb; mb += step) {
    const int offset = mode == BY_VARIANCE ? by_variance(tables, energy[mb], strength)
                                           : by_frame(eighth_root(tables, energy[mb]), mean, of_frame, mode, strength);
    offsets[mb] = offset;
    weights[mb] = error_weight(tables, offset);
  }
}
