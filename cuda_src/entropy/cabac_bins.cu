// CABAC: the bins of all macroblocks of a frame at once, a warp an entry (entropy.cu): their number, where they begin, then the bins.
//
// An entry is a macroblock, with end_of_slice_flag of the one before; or the last end_of_slice_flag, after the last row of a
// slice. Up to MOST_KEPT bins are kept while entry_starts is computed; those of larger entries are made again.
#include "entropy/cabac.cuh"
#include "entropy/cabac_entry.cuh"
#include "entropy/bit_positions.cuh"

constexpr unsigned PCM = 1u << 31;  // of a count: the samples of I_PCM follow
using BinAdvance = Advance<CHUNK>;

// counts: uint32[entries], with PCM; kept: uint16[entries, MOST_KEPT]
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) make_bins(STATE_PARAMETERS, int entries, unsigned *counts, uint16_t *kept) {
  wait_for_the_kernel_before();
  SHARED(uint16_t, memory, WARPS * MOST_KEPT);
  const State s = STATE;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, entry = int(blockIdx.x) * WARPS + warp;
  if (entry >= entries) return;
  const Entry e = entry_of(s, entry, entries);
  uint16_t *entry_bins = memory + warp * MOST_KEPT;
  const int count = make_entry(s, e, entry_bins, MOST_KEPT);
  __syncwarp();
  if (lane == 0) counts[entry] = unsigned(count) | (e.macroblock.mb_type == I_PCM ? PCM : 0);
  if (count <= MOST_KEPT && 8 * lane < count)
    reinterpret_cast<uint4 *>(kept + size_t(entry) * MOST_KEPT)[lane] = reinterpret_cast<const uint4 *>(entry_bins)[lane];
}

DEVICE BinAdvance advance_of(unsigned count) { return {int(count & ~PCM), count & PCM ? 0 : -1}; }

// Tells the chunks that an entry begins or ends. at: its first bin in the slice; first: the slice's first chunk
DEVICE void tell_chunks(const unsigned *counts, int first, int entry, int at, int pitch, bool ends, int *chunk_bins, int *chunk_begins) {
  const int count = int(counts[entry] & ~PCM);
  const int before = entry - (entry % pitch == 0 ? 2 : 1);  // the macroblock before
  for (int k = (at + CHUNK - 1) / CHUNK; k * CHUNK < at + count; k++) {
    const bool after_samples = at && k * CHUNK == at && counts[before] & PCM;
    chunk_begins[first + k] = k == 0 ? 0 : after_samples ? 1 + before / pitch * (pitch - 1) + before % pitch : -1;
  }
  for (int k = at / CHUNK; (k + 1) * CHUNK <= at + count; k++) chunk_bins[first + k] = CHUNK;
  if ((ends || counts[entry] & PCM) && (at + count) % CHUNK) chunk_bins[first + (at + count) / CHUNK] = (at + count) % CHUNK;
}

#ifndef B_SLICES  // it serves all slices
// The first bin of each entry, int32[entries], from the slice's first one on; and the chunks: see cabac.py. A block a slice
extern "C" __global__ void __launch_bounds__(SUMMERS) place_bins(const int *slices, int mb_width, int entries_per_chunk,
    const unsigned *counts, int *entry_starts, int *chunk_bins, int *chunk_begins, int2 *slice_chunks) {
  wait_for_the_kernel_before();
  SHARED(BinAdvance, warps, 32);
  const int slice = int(blockIdx.x), pitch = mb_width + 1, begin = entry_at(slices[slice], mb_width), end = entry_at(slices[slice + 1], mb_width);
  const int each = (end - begin + SUMMERS - 1) / SUMMERS, first = begin + int(threadIdx.x) * each, last = min(first + each, end);
  BinAdvance advance = {0, -1};
  for (int e = first; e < last; e++) advance = compose(advance, advance_of(counts[e]));
  int all, at = apply_in_block(0, advance, warps, all);
  const int chunks = (all + CHUNK - 1) / CHUNK;
  const int first_chunk = begin / entries_per_chunk;
  const bool fits = chunks <= end / entries_per_chunk - first_chunk;
  for (int e = first; e < last; e++) {
    entry_starts[e] = at;
    if (fits && counts[e]) tell_chunks(counts, first_chunk, e, at, pitch, e + 1 == end, chunk_bins, chunk_begins);
    at = apply(at, advance_of(counts[e]));
  }
  if (threadIdx.x == 0) slice_chunks[slice] = make_int2(first_chunk, fits ? chunks : 0);
}

#endif

// The bins in their order: uint16[chunks, CHUNK]. grid: any number, slices
extern "C" __global__ void __launch_bounds__(32 * WARPS, 3) gather_bins(STATE_PARAMETERS, int entries, const int *slices,
    const int2 *slice_chunks,
    const unsigned *counts, const int *entry_starts, const uint16_t *kept, uint16_t *bins) {
  wait_for_the_kernel_before();
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, slice = int(blockIdx.y), pitch = mb_width + 1;
  const int2 chunks = slice_chunks[slice];
  if (chunks.y == 0) return;
  const int begin = entry_at(slices[slice], mb_width), end = entry_at(slices[slice + 1], mb_width);
  uint16_t *slice_bins = bins + size_t(chunks.x) * CHUNK;
  for (int entry = begin + int(blockIdx.x) * WARPS + warp; entry < end; entry += int(gridDim.x) * WARPS) {
    const int count = int(counts[entry] & ~PCM);
    uint16_t *to = slice_bins + entry_starts[entry];
    if (count > MOST_KEPT) {
      const State s = STATE;
      make_entry(s, entry_of(s, entry, entries), to, count);
      continue;
    }
    const uint16_t *from = kept + size_t(entry) * MOST_KEPT;
    for (int i = lane; i < count; i += 32) to[i] = from[i];
  }
}

// Slices that have more bins than places, bin after bin, a warp a slice: exact and slow, for noise at the lowest QP.
// bins: uint16[slices, MOST_BINS], scratch; cells, sizes, totals: as compose_chunks and add_codes leave them
extern "C" __global__ void __launch_bounds__(32, 1) code_bin_by_bin(STATE_PARAMETERS, int entries, const int *slices,
    const int2 *slice_chunks,
    const unsigned *ranges, const unsigned *next_states, const short *initial, const Sample *source_y, const Sample *source_u,
    const Sample *source_v, uint16_t *bins, unsigned *cells, int *sizes, int *totals) {
  wait_for_the_kernel_before();
  SHARED(uint8_t, contexts, COLUMNS);
  const int lane = threadIdx.x & 31, slice = int(blockIdx.x), pitch = mb_width + 1;
  if (slice_chunks[slice].y) return;
  const State s = STATE;
  const Samples samples = {source_y, source_u, source_v, mb_width};
  const int begin = entry_at(slices[slice], mb_width), end = entry_at(slices[slice + 1], mb_width), most = room_of(end - begin) + 16;
  unsigned *slice_cells = cells + first_cell(begin, slice);
  uint16_t *slice_bins = bins + size_t(slice) * MOST_BINS;
  for (int i = lane; i < (end - begin) * CELLS + SPARE_CELLS; i += 32) slice_cells[i] = 0;
  for (int i = lane; i < COLUMNS; i += 32)
    if (context_of(i) < N_CONTEXTS) contexts[i] = uint8_t(initial_state(initial, frame_params, n_ref, context_of(i)));
  Added out = {slice_cells, 0};
  Range r = {FIRST_RANGE, frame_params[HEADER_BITS + slice] - 1 + 16};  // the position in place of bits
  int total = 0;
  for (int entry = begin; entry < end && r.bits + LAST_BITS <= most; entry++) {
    const Entry e = entry_of(s, entry, entries);
    __syncwarp();
    const int count = make_entry(s, e, slice_bins, MOST_BINS);
    __syncwarp();
    for (int i = 0; lane == 0 && i < count && r.bits + LAST_BITS <= most; i++) {
      const int symbol = slice_bins[i], context = symbol >> 1, value = symbol & 1;
      unsigned code = (context == BYPASS ? BYPASS_CODE : TERMINATE_CODE) | unsigned(value);
      if (context < BYPASS) {
        uint8_t &state = contexts[column_of(context)];
        code = (state & ~1u) | ((state ^ unsigned(value)) & 1);
        state = uint8_t(next_states[state << 4 | value]);
      }
      const Bin bin = bin_of(code, ranges);
      const int at = r.bits + REGISTER_BITS - 1 + (bin.ranges == 0), added = step(bin, r);
      if (added) out.add(added, at);
    }
    total += count;
    r = {__shfl_sync(FULL_WARP, r.range, 0), __shfl_sync(FULL_WARP, r.bits, 0)};
    const bool is_pcm = e.coded && e.macroblock.mb_type == I_PCM;
    if (r.bits + LAST_BITS > most || !(is_pcm || e.ends)) continue;
    if (lane == 0) out.mark(r.bits + LAST_BITS - 1);
    if (!is_pcm) continue;
    r = {FIRST_RANGE, apply(r.bits, past_samples())};
    if (r.bits + LAST_BITS <= most) samples.add(slice_cells, (r.bits + 1 - 16) / 8 - PCM_SAMPLES, e.macroblock.mb, lane, 32);
  }
  const bool fits = r.bits + LAST_BITS <= most;
  if (lane == 0) {
    sizes[slice] = fits ? r.bits - 16 + LAST_BITS : -1;
    totals[slice] = fits ? total : 0;
  }
}
