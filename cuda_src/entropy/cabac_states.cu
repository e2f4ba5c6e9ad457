// CABAC, first half: the state of the context of each bin (9.3.4.2.1 without the ranges), for all bins of a slice at once.
//
// Bins are sorted by context, in order; each context begins at a multiple of PIECE. A thread finds the states of a piece: it
// first goes through the WARM_UP pieces before it from both extreme states. Transitions keep the order of states, so once both
// are one state, it is the state whatever came before; else it begins twice as far back, at most at the context's first bin.
// Bypass and terminating bins are not sorted.
#include "entropy/cabac.cuh"

constexpr int SORTERS = THREADS / 32, ROUNDS = CHUNK / THREADS;  // warps of a block of threads
constexpr unsigned LOWEST = 62 << 1, HIGHEST = 62 << 1 | 1;  // states: pStateIdx << 1 | valMPS

// Bins of each context in each chunk. counts: uint32[chunks, COLUMNS]
extern "C" __global__ void __launch_bounds__(THREADS) count_contexts(const int2 *slice_chunks, const int *chunk_bins,
    const uint16_t *bins, unsigned *counts) {
  wait_for_the_kernel_before();
  SHARED(unsigned, sums, COLUMNS);
  const Chunks c = chunks_of_slice(slice_chunks);
  for (int k = int(blockIdx.x); k < c.count; k += int(gridDim.x)) {
    const size_t chunk = size_t(c.first + k);
    const int end = chunk_bins[chunk];
    int contexts[ROUNDS];  // loaded at once: the additions below would keep loads apart
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      const int i = THREADS * j + int(threadIdx.x), context = bins[chunk * CHUNK + i] >> 1;
      contexts[j] = i < end ? context : BYPASS;
    }
    for (int i = int(threadIdx.x); i < COLUMNS; i += THREADS) sums[i] = 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ROUNDS; j++)
      if (contexts[j] < BYPASS) atomicAdd(sums + column_of(contexts[j]), 1u);
    __syncthreads();
    for (int i = int(threadIdx.x); i < COLUMNS; i += THREADS) counts[chunk * COLUMNS + i] = sums[i];
    __syncthreads();
  }
}

// Sums of the counts over the chunks before, in place, and totals: uint32[slices, COLUMNS]. grid: COLUMNS / 32, slices
extern "C" __global__ void __launch_bounds__(SUMMERS) sum_contexts(const int2 *slice_chunks, unsigned *counts,
    unsigned *totals) {
  wait_for_the_kernel_before();
  SHARED(unsigned, sums, 32 * 32);
  const Chunks c = chunks_of_slice(slice_chunks);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, column = 32 * int(blockIdx.x) + lane;
  const int each = (c.count + 31) / 32, first = min(warp * each, c.count), last = min(first + each, c.count);
  unsigned *column_counts = counts + size_t(c.first) * COLUMNS + column;
  unsigned sum = 0, before = 0, all = 0;
#pragma unroll 8
  for (int k = first; k < last; k++) sum += column_counts[size_t(k) * COLUMNS];
  sums[32 * warp + lane] = sum;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < 32; w++) {
    const unsigned v = sums[32 * w + lane];
    if (w < warp) before += v;
    all += v;
  }
#pragma unroll 8
  for (int k = first; k < last; k++) {
    const unsigned v = column_counts[size_t(k) * COLUMNS];
    column_counts[size_t(k) * COLUMNS] = before;
    before += v;
  }
  if (warp == 0) totals[c.slice * COLUMNS + column] = all;
}

// The first sorted place of each context, relative to the slice, by the first warp; the end of all
DEVICE unsigned place_contexts(const unsigned *totals, unsigned *begins) {
  constexpr int EACH = COLUMNS / 32;
  const int lane = threadIdx.x & 31;
  unsigned sizes[EACH], sum = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    sizes[i] = (totals[EACH * lane + i] + PIECE - 1) / PIECE * PIECE;
    sum += sizes[i];
  }
  unsigned upto = sum;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const unsigned v = __shfl_up_sync(FULL_WARP, upto, unsigned(d));
    if (lane >= d) upto += v;
  }
  unsigned at = upto - sum;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    begins[EACH * lane + i] = at;
    at += sizes[i];
  }
  return __shfl_sync(FULL_WARP, upto, 31);
}

// Lanes with the same column as this one, among those with a column
DEVICE unsigned lanes_alike(int column, bool sorted) {
  unsigned same = __ballot_sync(FULL_WARP, sorted);
#pragma unroll
  for (int bit = 0; bit < 9; bit++) {
    const unsigned set = __ballot_sync(FULL_WARP, column >> bit & 1);
    same &= column >> bit & 1 ? set : ~set;
  }
  return same;
}

// Sorts bins by context. context_begins: uint32[slices, COLUMNS], a context's first sorted place in its slice; sorted_ends:
// int32[slices]; ranks: uint16 of each place, among those of its chunk and context; sorted: uint8, binVal; piece_columns: uint16
extern "C" __global__ void __launch_bounds__(THREADS) sort_bins(const int2 *slice_chunks, const int *chunk_bins,
    const uint16_t *bins, const unsigned *counts, const unsigned *totals, unsigned *context_begins, int *sorted_ends, uint16_t *ranks,
    uint8_t *sorted, uint16_t *piece_columns) {
  wait_for_the_kernel_before();
  SHARED(unsigned, begins, COLUMNS);
  SHARED(unsigned, base, COLUMNS);
  SHARED(uint16_t, before, SORTERS * COLUMNS);
  const Chunks c = chunks_of_slice(slice_chunks);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, tid = int(threadIdx.x);
  if (int(blockIdx.x) >= c.count) {
    if (blockIdx.x == 0 && tid == 0) sorted_ends[c.slice] = 0;
    return;
  }
  const size_t own_sorted = sorted_place(c);
  if (warp == 0) {
    const unsigned end = place_contexts(totals + c.slice * COLUMNS, begins);
    if (blockIdx.x == 0 && lane == 0) sorted_ends[c.slice] = int(end);
  }
  __syncthreads();
  if (blockIdx.x == 0)
    for (int i = tid; i < COLUMNS; i += THREADS) context_begins[c.slice * COLUMNS + i] = begins[i];
  for (int k = int(blockIdx.x); k < c.count; k += int(gridDim.x)) {
    const size_t chunk = size_t(c.first + k);
    const int end = chunk_bins[chunk], first = CHUNK / SORTERS * warp + lane;
    for (int i = tid; i < COLUMNS; i += THREADS) base[i] = begins[i] + counts[chunk * COLUMNS + i];
    for (int i = tid; i < SORTERS * COLUMNS; i += THREADS) before[i] = 0;
    __syncthreads();
    uint16_t *warp_counts = before + warp * COLUMNS;
    int columns[ROUNDS], rank[ROUNDS];  // columns: with binVal in the highest bit; -1: not sorted
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      const int i = first + 32 * j, symbol = bins[chunk * CHUNK + i];
      columns[j] = i < end && symbol < BYPASS << 1 ? column_of(symbol >> 1) << 1 | (symbol & 1) : -1;
    }
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      const bool is_sorted = columns[j] >= 0;
      const int column = is_sorted ? columns[j] >> 1 : 0;
      const unsigned alike = lanes_alike(column, is_sorted);
      const int earlier = warp_counts[column];
      rank[j] = earlier + __popc(alike & ((1u << lane) - 1));
      __syncwarp();
      if (is_sorted && alike >> lane == 1) warp_counts[column] = uint16_t(earlier + __popc(alike));  // the last of them
      __syncwarp();
    }
    __syncthreads();
    for (int i = tid; i < COLUMNS; i += THREADS) {
      unsigned sum = 0;
#pragma unroll
      for (int w = 0; w < SORTERS; w++) {
        const unsigned v = before[w * COLUMNS + i];
        before[w * COLUMNS + i] = uint16_t(sum);
        sum += v;
      }
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ROUNDS; j++) {
      if (columns[j] < 0) continue;
      const int column = columns[j] >> 1;
      const unsigned in_chunk = warp_counts[column] + unsigned(rank[j]), at = base[column] + in_chunk;
      ranks[chunk * CHUNK + first + 32 * j] = uint16_t(in_chunk);
      sorted[own_sorted + at] = uint8_t(columns[j] & 1);
      if (at % PIECE == 0) piece_columns[(own_sorted + at) / PIECE] = uint16_t(column);
    }
    __syncthreads();
  }
}

// Four bins, a byte each, as four bits
DEVICE unsigned nibble(unsigned bytes) { return (bytes & 0x01010101u) * 0x01020408u >> 24 & 15; }
// The bins of a piece as 32 bits
DEVICE unsigned bits_of_piece(const uint8_t *piece) {
  const uint4 *p = reinterpret_cast<const uint4 *>(piece);
  const uint4 a = p[0], b = p[1];
  return nibble(a.x) | nibble(a.y) << 4 | nibble(a.z) << 8 | nibble(a.w) << 12 | nibble(b.x) << 16 | nibble(b.y) << 20 |
         nibble(b.z) << 24 | nibble(b.w) << 28;
}
// The states after each of four bins, a byte each; the last is the highest
DEVICE unsigned four_steps(const unsigned *next, unsigned state, unsigned bits, int i) { return next[state << 4 | (bits >> (4 * i) & 15)]; }
DEVICE unsigned through_piece(const unsigned *next, unsigned state, unsigned bits) {
#pragma unroll
  for (int i = 0; i < 8; i++) state = four_steps(next, state, bits, i) >> 24;
  return state;
}

// The states before each sorted bin. next_states: uint32[2048], see four_steps; states: uint8, as `sorted`
extern "C" __global__ void __launch_bounds__(WALKERS) walk_states(const int2 *slice_chunks, const int *frame_params, int n_ref,
    const int *sorted_ends, const unsigned *context_begins, const uint16_t *piece_columns, const unsigned *next_states,
    const short *initial, const uint8_t *sorted, uint8_t *states) {
  wait_for_the_kernel_before();
  SHARED(unsigned, next, 2048);
  SHARED(unsigned, pieces, WALKERS + WARM_UP);
  const Chunks c = chunks_of_slice(slice_chunks);
  const int tid = int(threadIdx.x), end = (sorted_ends[c.slice] + PIECE - 1) / PIECE;
  if (int(blockIdx.x) * WALKERS >= end) return;
  const size_t own_sorted = sorted_place(c);
  const uint4 *table = reinterpret_cast<const uint4 *>(next_states);
  for (int i = tid; i < 2048 / 4; i += WALKERS) reinterpret_cast<uint4 *>(next)[i] = __ldg(table + i);
  for (int first = int(blockIdx.x) * WALKERS; first < end; first += int(gridDim.x) * WALKERS) {
    const int piece = first + tid;
    __syncthreads();
    if (piece < end) pieces[WARM_UP + tid] = bits_of_piece(sorted + own_sorted + size_t(piece) * PIECE);
    if (tid < WARM_UP && first + tid >= WARM_UP)
      pieces[tid] = bits_of_piece(sorted + own_sorted + size_t(first + tid - WARM_UP) * PIECE);
    __syncthreads();
    if (piece >= end) continue;
    const int column = piece_columns[own_sorted / PIECE + size_t(piece)];
    const int begin = int(context_begins[c.slice * COLUMNS + column] / PIECE);
    const unsigned start = initial_state(initial, frame_params, n_ref, context_of(column));
    const int back = min(piece - begin, WARM_UP);
    const bool whole = back == piece - begin;
    unsigned low = whole ? start : LOWEST, high = whole ? start : HIGHEST;
    for (int i = WARM_UP + tid - back; i < WARM_UP + tid; i++) {
      low = through_piece(next, low, pieces[i]);
      high = through_piece(next, high, pieces[i]);
    }
    for (int more = 2 * WARM_UP; low != high; more *= 2) {
      const int from = max(piece - more, begin);
      low = from == begin ? start : LOWEST;
      high = from == begin ? start : HIGHEST;
      for (int i = from; i < piece; i++) {
        const unsigned bits = bits_of_piece(sorted + own_sorted + size_t(i) * PIECE);
        low = through_piece(next, low, bits);
        high = through_piece(next, high, bits);
      }
    }
    const unsigned bits = pieces[WARM_UP + tid];
    unsigned words[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const unsigned after = four_steps(next, low, bits, i);
      words[i] = after << 8 | low;
      low = after >> 24;
    }
    uint4 *out = reinterpret_cast<uint4 *>(states + own_sorted + size_t(piece) * PIECE);
    out[0] = make_uint4(words[0], words[1], words[2], words[3]);
    out[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
}
