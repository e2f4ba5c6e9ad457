// CABAC, second half: from the states of the bins of a slice to its bytes (9.3.4), all bins at once.
//
// 1. map_ranges: after an LPS codIRange is one of four values, so that a segment that begins at an LPS is a map from
//    qCodIRangeIdx to the range and the shifted bits at its end; four threads find it. The bins of a chunk before its first LPS
//    are a map of all 255 ranges. The maps of a chunk are composed.
// 2. compose_chunks: the maps of all chunks composed: the range and the bit position of each chunk.
// 3. add_codes: each segment again, from its true range: what its bins add to codILow, in cells of 16 bits, which hold more
//    than 16 bits until 4.
// 4. write_bytes: carries, and the bytes. A carry beyond the next cell only passes cells in which all bits are 1.
#include "entropy/cabac.cuh"

constexpr int MAP_ROUNDS = CHUNK / MAPPERS;
constexpr int LEAST_RANGE = 256;
constexpr int MOST_SHIFT = 7;             // of a bin
constexpr int CHUNK_CELLS = CHUNK * MOST_SHIFT / 16 + 8;

static_assert(RANGES <= MAPPERS, "a thread for each range");

// The composition of two maps at a qCodIRangeIdx, given the first one's value and the second one's there; range 0: no LPS
DEVICE Range after(const Range &before, const Range &next) {
  return {next.range ? next.range : before.range, before.bits + next.bits};
}
DEVICE int quarter_after(const Range &map, int q) { return map.range ? quarter(map.range) : q; }
DEVICE Range from_lane(const Range &r, int lane) { return {__shfl_sync(FULL_WARP, r.range, lane), __shfl_sync(FULL_WARP, r.bits, lane)}; }

// The maps of the segments before a thread's own and up to it, within its chunk; threads: segment, qCodIRangeIdx at the chunk's
// first LPS. warp_maps: shared, Range[MAPPERS / 8]
DEVICE void compose_segments(const Range &segment_map, Range *warp_maps, Range &before, Range &upto) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, q = lane & 3;
  Range map = segment_map;
#pragma unroll
  for (int d = 4; d < 32; d *= 2) {
    const Range earlier = from_lane(map, lane >= d ? lane - d : lane);
    const Range composed = after(earlier, from_lane(map, (lane & ~3) + quarter_after(earlier, q)));
    if (lane >= d) map = composed;
  }
  if (lane >= 28) warp_maps[4 * warp + q] = map;
  __syncthreads();
  Range warps_before = {0, 0};
  for (int w = 0; w < warp; w++) warps_before = after(warps_before, warp_maps[4 * w + quarter_after(warps_before, q)]);
  const int at = (lane & ~3) + quarter_after(warps_before, q);
  const Range here = from_lane(map, at), left = from_lane(map, at >= 4 ? at - 4 : at);
  upto = after(warps_before, here);
  before = lane >= 4 ? after(warps_before, left) : warps_before;
}

// codes: uint8 of each place; prefixes: uint32[chunks, RANGES], packed range at the chunk's first LPS, or its end, for each range
// at its begin; starts: uint32[chunks, 4, SEGMENTS], packed range at the begin of each segment by qCodIRangeIdx at the first LPS,
// range 0: that of the first LPS; bodies: uint32[chunks, 4], the same at the chunk's end. ranges: uint32[65], see bin_of
extern "C" __global__ void __launch_bounds__(MAPPERS) map_ranges(const int2 *slice_chunks, const int *chunk_bins,
    const int *chunk_begins, const uint16_t *bins, const unsigned *counts, const unsigned *context_begins, const uint16_t *ranks,
    const uint8_t *states,
    const unsigned *ranges, uint8_t *codes, unsigned *prefixes, unsigned *starts, unsigned *bodies) {
  wait_for_the_kernel_before();
  SHARED(unsigned, base, COLUMNS);
  SHARED(unsigned, range_of, BYPASS_CODE / 2 + 1);
  SHARED(Bin, shared_bins, PADDED_CHUNK);
  SHARED(unsigned, masks, SEGMENTS);
  SHARED(Range, warp_maps, MAPPERS / 8);
  const Chunks c = chunks_of_slice(slice_chunks);
  const int tid = int(threadIdx.x), lane = tid & 31, segment = tid >> 2, q = tid & 3;
  if (int(blockIdx.x) >= c.count) return;
  const uint8_t *slice_states = states + sorted_place(c);
  if (tid < int(BYPASS_CODE / 2 + 1)) range_of[tid] = __ldg(ranges + tid);
  for (int k = int(blockIdx.x); k < c.count; k += int(gridDim.x)) {
    const size_t chunk = size_t(c.first + k);
    const int end = chunk_bins[chunk];
    const bool begins = chunk_begins[chunk] >= 0;
    for (int i = tid; i < COLUMNS; i += MAPPERS) base[i] = context_begins[c.slice * COLUMNS + i] + counts[chunk * COLUMNS + i];
    __syncthreads();
    unsigned symbols[MAP_ROUNDS], states_before[MAP_ROUNDS];  // loaded at once: the stores below would keep loads apart
#pragma unroll
    for (int j = 0; j < MAP_ROUNDS; j++) {
      const int i = MAPPERS * j + tid;
      symbols[j] = bins[chunk * CHUNK + i];
      states_before[j] = ranks[chunk * CHUNK + i];
      if (i >= end) symbols[j] = BYPASS << 1;
    }
#pragma unroll
    for (int j = 0; j < MAP_ROUNDS; j++) {
      const bool sorted = symbols[j] < unsigned(BYPASS << 1);
      states_before[j] = slice_states[sorted ? base[column_of(int(symbols[j] >> 1))] + states_before[j] : 0];
    }
#pragma unroll
    for (int j = 0; j < MAP_ROUNDS; j++) {
      const int i = MAPPERS * j + tid;
      const unsigned context = symbols[j] >> 1, bin_value = symbols[j] & 1;
      unsigned code = (states_before[j] & ~1u) | ((states_before[j] & 1) ^ bin_value);
      if (context >= unsigned(BYPASS)) code = (context == unsigned(BYPASS) ? BYPASS_CODE : TERMINATE_CODE) | bin_value;
      codes[chunk * CHUNK + i] = uint8_t(code);
      const Bin bin = bin_of(code, range_of);
      shared_bins[padded(i)] = bin;
      const unsigned lps = __ballot_sync(FULL_WARP, bin.flags & IS_LPS);
      if (lane == 0) masks[i >> 5] = lps;
    }
    __syncthreads();
    const int first = begins ? 0 : first_lps(masks, 0, end);
    if (!begins && tid < FIRST_RANGE + 1 - LEAST_RANGE) {
      Range r = {LEAST_RANGE + tid, 0};
      for (int i = 0; i < first; i++) step(shared_bins[padded(i)], r);
      prefixes[chunk * RANGES + tid] = packed(r);
    }
    const int from = segment ? first_lps(masks, segment, end) : first, to = segment + 1 < SEGMENTS ? first_lps(masks, segment + 1,
    end) : end;
    Range r = {begins && segment == 0 ? FIRST_RANGE : LEAST_RANGE + 64 * q, 0};
    for (int i = from; i < to; i++) step(shared_bins[padded(i)], r);
    if (from >= to) r = {0, 0};
    Range before, upto;
    compose_segments(r, warp_maps, before, upto);
    starts[chunk * RANGES + SEGMENTS * q + segment] = packed(before);
    if (segment == SEGMENTS - 1) bodies[4 * chunk + q] = packed(upto);
    __syncthreads();
  }
}

// What chunks do, for each of four values of qCodIRangeIdx at the last chunk's first LPS that has an LPS
struct Maps {
  unsigned map[4];  // qCodIRangeIdx at the last of them, shifted bits << 2
  DEVICE unsigned at(unsigned q) const { return q & 2 ? (q & 1 ? map[3] : map[2]) : (q & 1 ? map[1] : map[0]); }
};
DEVICE unsigned then(unsigned before, const Maps &next) {
  const unsigned v = next.at(before & 3);
  return (before & ~3u) + v;
}
DEVICE Maps scan_maps(Maps m) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    Maps composed;
#pragma unroll
    for (int q = 0; q < 4; q++) composed.map[q] = then(__shfl_up_sync(FULL_WARP, m.map[q], unsigned(d)), m);
    if (lane >= d) m = composed;
  }
  return m;
}

struct Composed {
  const int *__restrict__ begins;
  const unsigned *__restrict__ prefixes, *__restrict__ bodies;
};
DEVICE unsigned pick(const uint4 &v, int i) { return i & 2 ? (i & 1 ? v.w : v.z) : (i & 1 ? v.y : v.x); }
// codIRange at the begin of a chunk, by qCodIRangeIdx at the first LPS of the last chunk before that has one
DEVICE void ranges_at(const Composed &s, size_t chunk, int *ranges) {
  size_t last = chunk - 1;
  while (!unpacked(s.bodies[4 * last]).range) last--;  // the first chunk of a slice has one
  const uint4 bodies = *reinterpret_cast<const uint4 *>(s.bodies + 4 * last);
#pragma unroll
  for (int q = 0; q < 4; q++) ranges[q] = unpacked(pick(bodies, q)).range;
  for (last++; last < chunk; last++)
#pragma unroll
    for (int q = 0; q < 4; q++) ranges[q] = unpacked(s.prefixes[last * RANGES + ranges[q] - LEAST_RANGE]).range;
}
// From the begin of a chunk to its end, N ways at once
template <int N>
DEVICE void pass_chunk(const Composed &s, size_t chunk, int *range, int *q, int *bits) {
  const uint4 bodies = *reinterpret_cast<const uint4 *>(s.bodies + 4 * chunk);
  const bool begins = s.begins[chunk] >= 0;
  Range r[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    r[i] = unpacked(s.prefixes[chunk * RANGES + range[i] - LEAST_RANGE]);
    if (begins) r[i] = {FIRST_RANGE, 0};
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    const Range body = unpacked(pick(bodies, quarter(r[i].range)));
    if (body.range) q[i] = quarter(r[i].range);
    range[i] = body.range ? body.range : r[i].range;
    bits[i] += r[i].bits + body.bits;
  }
}

// Range and position of each chunk. chunk_starts: int2[chunks]: codIRange, bit position in the slice of the highest bit of codILow;
// cells: of each slice that are used, set to 0. sizes, totals: int32[slices]: bits up to the stop bit, bins; -1, 0 without room
extern "C" __global__ void __launch_bounds__(COMPOSERS, 1) compose_chunks(const int2 *slice_chunks, const int *slices,
    const int *frame_params,
    int mb_width, const int *chunk_bins, const int *chunk_begins, const unsigned *prefixes, const unsigned *bodies,
    int2 *chunk_starts, unsigned *cells, int *sizes, int *totals) {
  wait_for_the_kernel_before();
  SHARED(Maps, warp_maps, 32);
  SHARED(BitAdvance, warp_advances, 32);
  SHARED(int, bins, 1);
  const Chunks c = chunks_of_slice(slice_chunks);
  const Composed s = {chunk_begins, prefixes, bodies};
  const int tid = int(threadIdx.x), lane = tid & 31, warp = tid >> 5;
  const int each = (c.count + COMPOSERS - 1) / COMPOSERS, first = min(tid * each, c.count), last = min(first + each, c.count);
  if (tid == 0) *bins = 0;
  int entering[4] = {FIRST_RANGE, FIRST_RANGE, FIRST_RANGE, FIRST_RANGE};
  if (first && first < last) ranges_at(s, size_t(c.first + first), entering);
  int ranges[4] = {entering[0], entering[1], entering[2], entering[3]}, quarters[4] = {0, 1, 2, 3}, bits[4] = {0, 0, 0, 0};
  for (int k = first; k < last; k++) pass_chunk<4>(s, size_t(c.first + k), ranges, quarters, bits);
  Maps m;
#pragma unroll
  for (int q = 0; q < 4; q++) m.map[q] = unsigned(quarters[q]) | unsigned(bits[q]) << 2;
  m = scan_maps(m);
  if (lane == 31) warp_maps[warp] = m;
  __syncthreads();
  if (warp == 0) {
    const Maps sums = scan_maps(warp_maps[lane]);
    __syncwarp();
    warp_maps[lane] = sums;
  }
  __syncthreads();
  unsigned before = warp ? warp_maps[warp - 1].map[0] : 0;
  Maps left;
#pragma unroll
  for (int q = 0; q < 4; q++) left.map[q] = __shfl_up_sync(FULL_WARP, m.map[q], 1u);
  if (lane) before = then(before, left);

  // positions: a code word after I_PCM begins after the last three bits of the one before, and the samples
  BitAdvance advance = {0, -1};
  int own_bins = 0;
  for (int pass = 0; pass < 2; pass++) {
    int q = int(before & 3), all, position = 0;
    int range = q & 2 ? (q & 1 ? entering[3] : entering[2]) : (q & 1 ? entering[1] : entering[0]);
    if (pass) position = apply_in_block(frame_params[HEADER_BITS + c.slice] - 1, advance, warp_advances, all);
    for (int k = first; k < last; k++) {
      const size_t chunk = size_t(c.first + k);
      if (chunk_begins[chunk] > 0) {
        if (pass) position = apply(position, past_samples());
        else advance = compose(advance, past_samples());
      }
      if (chunk_begins[chunk] >= 0) range = FIRST_RANGE;
      if (pass) chunk_starts[chunk] = make_int2(range, position);
      else own_bins += chunk_bins[chunk];
      int shifted = 0;
      pass_chunk<1>(s, chunk, &range, &q, &shifted);
      if (pass) position += shifted;
      else advance = compose(advance, BitAdvance{shifted, -1});
    }
    if (pass == 0) {
      atomicAdd(bins, own_bins);
      continue;
    }
    const int size = all + LAST_BITS, entries = entry_at(slices[c.slice + 1], mb_width) - entry_at(slices[c.slice], mb_width);
    const bool fits = c.count > 0 && size <= room_of(entries);
    if (tid == 0) {
      sizes[c.slice] = fits ? size : -1;
      totals[c.slice] = fits ? *bins : 0;
    }
    uint4 *slice_cells = reinterpret_cast<uint4 *>(cells + first_cell(entry_at(slices[c.slice], mb_width), c.slice));
    for (int i = tid; fits && i < size / 64 + 2; i += COMPOSERS) slice_cells[i] = make_uint4(0, 0, 0, 0);
  }
}

// The end of the last bin of [from, to) that adds to codILow. masks: such bins
DEVICE int last_added(const unsigned *masks, int from, int to) {
  while (to > from) {
    const int w = (to - 1) >> 5;
    const unsigned mask = masks[w] & (~0u >> (31 - ((to - 1) & 31)));
    if (mask) return max(32 * w + 32 - __clz(int(mask)), from);
    to = 32 * w;
  }
  return from;
}

// What bins add. cells: uint32, see CELLS; grid: any number, slices
extern "C" __global__ void __launch_bounds__(ADDERS) add_codes(const int2 *slice_chunks, const int *slices, int mb_width,
    const int *chunk_bins,
    const int *chunk_begins, const uint8_t *codes, const unsigned *ranges, const unsigned *prefixes, const unsigned *starts,
    const int2 *chunk_starts, const int *sizes, const Sample *source_y, const Sample *source_u, const Sample *source_v,
    unsigned *cells) {
  wait_for_the_kernel_before();
  SHARED(unsigned, range_of, BYPASS_CODE / 2 + 1);
  SHARED(Bin, shared_bins, PADDED_CHUNK);
  SHARED(unsigned, lps, SEGMENTS);
  SHARED(unsigned, adding, SEGMENTS);
  SHARED(unsigned, sums, CHUNK_CELLS);
  const Chunks c = chunks_of_slice(slice_chunks);
  const int tid = int(threadIdx.x), lane = tid & 31;
  if (int(blockIdx.x) >= c.count || sizes[c.slice] < 0) return;
  unsigned *slice_cells = cells + first_cell(entry_at(slices[c.slice], mb_width), c.slice);
  if (tid < int(BYPASS_CODE / 2 + 1)) range_of[tid] = __ldg(ranges + tid);
  for (int k = int(blockIdx.x); k < c.count; k += int(gridDim.x)) {
    const size_t chunk = size_t(c.first + k);
    const int end = chunk_bins[chunk], begins = chunk_begins[chunk];
    const bool ends = k + 1 == c.count || chunk_begins[chunk + 1] >= 0;
    const int2 start = chunk_starts[chunk];
    const int low_cell = ((start.y + REGISTER_BITS - 1 + 16) >> 4) - 1;
    unsigned chunk_codes[CHUNK / ADDERS];
#pragma unroll
    for (int j = 0; j < CHUNK / ADDERS; j++) chunk_codes[j] = codes[chunk * CHUNK + ADDERS * j + tid];
    for (int i = tid; i < CHUNK_CELLS; i += ADDERS) sums[i] = 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < CHUNK / ADDERS; j++) {
      const int i = ADDERS * j + tid;
      const Bin bin = bin_of(chunk_codes[j], range_of);
      shared_bins[padded(i)] = bin;
      const unsigned is_lps = __ballot_sync(FULL_WARP, bin.flags & IS_LPS), adds = __ballot_sync(FULL_WARP, bin.flags != 0);
      if (lane == 0) lps[i >> 5] = is_lps;
      if (lane == 0) adding[i >> 5] = adds;
    }
    __syncthreads();
    if (tid <= SEGMENTS) {  // the last of them has the bins before the first LPS
      const int first = begins >= 0 ? 0 : first_lps(lps, 0, end);
      Range r = {start.x, 0};
      int from = 0, to = first;
      if (tid < SEGMENTS) {
        if (begins < 0) r = unpacked(prefixes[chunk * RANGES + start.x - LEAST_RANGE]);
        const Range before = unpacked(starts[chunk * RANGES + SEGMENTS * quarter(r.range) + tid]);
        r = {before.range ? before.range : r.range, r.bits + before.bits};
        from = tid ? first_lps(lps, tid, end) : first;
        to = tid + 1 < SEGMENTS ? first_lps(lps, tid + 1, end) : end;
      }
      const int stop = last_added(adding, from, to);
      Added out = {sums, low_cell};
      const int position = start.y + 16;
      for (int i = from; i < stop; i++) {
        const Bin bin = shared_bins[padded(i)];
        const int at = position + r.bits + REGISTER_BITS - 1 + (bin.ranges == 0), added = step(bin, r);
        if (added) out.add(added, at);
      }
      if (ends && from < to && to == end) out.mark(position + r.bits + LAST_BITS - 1);
    }
    __syncthreads();
    for (int i = tid; i < CHUNK_CELLS; i += ADDERS)
      if (sums[i]) atomicAdd(slice_cells + low_cell + i, sums[i]);
    if (begins > 0) {
      const Samples samples = {source_y, source_u, source_v, mb_width};
      samples.add(slice_cells, (start.y + 1) / 8 - PCM_SAMPLES, begins - 1, tid, ADDERS);
    }
    __syncthreads();
  }
}

// 16 bits and a carry: a cell, and what the next one has beyond 16 bits
DEVICE unsigned with_next(const unsigned *cells, int i) { return (cells[i] & 0xffff) + (cells[i + 1] >> 16 & 255); }
DEVICE unsigned marked(unsigned cell) { return cell >> MARK ? 0x8000u >> ((cell >> MARK) - 1) : 0; }

// The bytes of each slice; grid: any number, slices. to: uint32[entries, ENTRY_BYTES / 4], may be host memory
extern "C" __global__ void __launch_bounds__(WRITERS) write_bytes(const int *slices, int mb_width, const int *sizes,
    const unsigned *cells, unsigned *to) {
  wait_for_the_kernel_before();
  const int slice = int(blockIdx.y), size = sizes[slice], entry = entry_at(slices[slice], mb_width);
  const unsigned *slice_cells = cells + first_cell(entry, slice) + 1;  // without the cell before the slice
  for (int at = int(blockIdx.x * WRITERS + threadIdx.x); 32 * at < size; at += int(gridDim.x) * WRITERS) {
    int k = 2 * at + 2;
    unsigned v = with_next(slice_cells, k);
    while (v == 0xffff) v = with_next(slice_cells, ++k);
    const unsigned low = with_next(slice_cells, 2 * at + 1) + (v >> 16), high = with_next(slice_cells, 2 * at) + (low >> 16);
    const unsigned out = (high & 0xffff) << 16 | (low & 0xffff) | marked(slice_cells[2 * at]) << 16 | marked(slice_cells[2 * at + 1]);
    to[size_t(entry) * (ENTRY_BYTES / 4) + at] = __byte_perm(out, 0, 0x0123);
  }
}
