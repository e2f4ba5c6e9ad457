// CABAC of slices that have more bins than places: bin after bin, a warp a slice. Exact and slow, for noise at the lowest QP.
#include "cabac.cuh"
#include "cabac_entry.cuh"

// bins: uint16[slices, MOST_BINS], scratch; cells, sizes, totals: as compose_chunks and add_codes leave them
extern "C" __global__ void __launch_bounds__(32, 1) code_serially(STATE_PARAMETERS, int entries, const int *slices, const int *n_chunks,
    const unsigned *ranges, const unsigned *next_states, const short *initial, const uint8_t *source_y, const uint8_t *source_u,
    const uint8_t *source_v, uint16_t *bins, unsigned *cells, int *sizes, int *totals) {
  wait_for_the_kernel_before();
  SHARED(uint8_t, contexts, COLUMNS);
  const int lane = threadIdx.x & 31, slice = int(blockIdx.x), pitch = mb_width + 1;
  if (n_chunks[slice]) return;
  const State s = STATE;
  const Samples samples = {source_y, source_u, source_v, mb_width};
  const int begin = slices[slice] * pitch, end = slices[slice + 1] * pitch, most = room_of(end - begin) + 16;
  unsigned *own_cells = cells + size_t(begin) * CELLS + slice * SPARE_CELLS;
  uint16_t *own = bins + size_t(slice) * MOST_BINS;
  for (int i = lane; i < (end - begin) * CELLS + SPARE_CELLS; i += 32) own_cells[i] = 0;
  for (int i = lane; i < COLUMNS; i += 32)
    if (context_of(i) < N_CONTEXTS) contexts[i] = uint8_t(initial_state(initial, frame_params, n_ref, context_of(i)));
  Added out = {own_cells, 0};
  Range r = {FIRST_RANGE, frame_params[HEADER_BITS + slice] - 1 + 16};  // the position in place of bits
  int total = 0;
  for (int entry = begin; entry < end && r.bits + LAST_BITS <= most; entry++) {
    const Entry e = entry_of(s, entry, entries);
    __syncwarp();
    const int count = make_entry(s, e, own, MOST_BINS);
    __syncwarp();
    for (int i = 0; lane == 0 && i < count && r.bits + LAST_BITS <= most; i++) {
      const int symbol = own[i], context = symbol >> 1, value = symbol & 1;
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
    const bool is_pcm = e.coded && e.own.kind == I_PCM;
    if (r.bits + LAST_BITS > most || !(is_pcm || e.ends)) continue;
    if (lane == 0) out.mark(r.bits + LAST_BITS - 1);
    if (!is_pcm) continue;
    r = {FIRST_RANGE, moved(r.bits, past_samples())};
    if (r.bits + LAST_BITS <= most) samples.add(own_cells, (r.bits + 1 - 16) / 8 - PCM_SAMPLES, e.own.mb, lane, 32);
  }
  const bool fits = r.bits + LAST_BITS <= most;
  if (lane == 0) {
    sizes[slice] = fits ? r.bits - 16 + LAST_BITS : -1;
    totals[slice] = fits ? total : 0;
  }
}
