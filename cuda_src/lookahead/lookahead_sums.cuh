// Sums of the costs of a frame's macroblocks, without those at its border: see FrameCosts in host_costs.py.
#pragma once
#include "simd.cuh"

// Whether a macroblock is part of the sum: not at the border, unless the frame has no others
DEVICE bool counts(int mx, int my, int mb_width, int mb_height) {
  const bool whole = mb_width <= 2 || mb_height <= 2;
  return whole || (mx > 0 && my > 0 && mx < mb_width - 1 && my < mb_height - 1);
}

// Adds the costs of the warps of a block, in shared memory, to *sum; integers, whose order does not matter
template <int N>
DEVICE void add_of_warps(const int *costs, unsigned long long *sum) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  int total = 0;
#pragma unroll
  for (int i = 0; i < N; i++) total += costs[i];
  if (total) atomicAdd(sum, (unsigned long long)total);
}
