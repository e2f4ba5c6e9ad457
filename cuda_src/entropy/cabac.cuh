// CABAC of whole slices, all bins at once: the sizes of their parts, and a step of the engine (9.3.4.2).
//
// A slice has chunks of places from chunk `first` on, at most one for each of its entries (entropy.cu); its bins lie in order
// from the first place on. After I_PCM they go on at the next chunk: a code word, from one start of the engine to the next,
// begins at a chunk. Blocks of threads take the chunks of their slice in turn: the number is known on the GPU only.
// Samples of 8 bits only: a sample of I_PCM is a byte.
#pragma once
#include "entropy/cabac_launch.cuh"
#include "cabac_tables.cuh"
#include "entropy/bit_positions.cuh"
#include "tables.cuh"

constexpr int WARM_UP = 10;    // pieces before its own that a thread reads
constexpr int CELLS = ENTRY_BYTES / 2;  // of 16 bits, of an entry
constexpr int REGISTER_BITS = 10;  // of codILow
constexpr int LAST_BITS = 3;    // of codILow, which end a code word; the last is 1 (9.3.4.5)
constexpr int SPARE_BYTES = 8;  // of a slice's place that stay free, as on the CPU
constexpr int MARK = 24;        // from this bit of a cell on: 1 + the position of a bit to be set
constexpr int PCM_SAMPLES = SAMPLE_BITS / 8, INITIAL_I = 3;  // in place of cabac_init_idc
constexpr int FIRST_FIELD_CONTEXT = 277, FIELD_CONTEXTS = 122;

// Codes of bins: pStateIdx << 1 | whether it is the LPS, with pStateIdx 63 for terminating bins; or bypass bins
constexpr unsigned TERMINATE_CODE = 126, BYPASS_CODE = 128;

struct Chunks {
  int slice, first, count;
};
// Those of a block's slice. slice_chunks: int2[slices], the first and the number
DEVICE Chunks chunks_of_slice(const int2 *slice_chunks) {
  const int2 bounds = slice_chunks[blockIdx.y];
  return {int(blockIdx.y), bounds.x, bounds.y};
}
// The cells of a slice. entry: its first
DEVICE size_t first_cell(int entry, int slice) { return size_t(entry) * CELLS + slice * SPARE_CELLS; }
// The first byte of a slice among the sorted bins
DEVICE size_t sorted_place(const Chunks &c) { return size_t(c.first + SORTED_CHUNKS * c.slice) * CHUNK; }
DEVICE int column_of(int context) { return context < FIRST_FIELD_CONTEXT ? context : context - FIELD_CONTEXTS; }
DEVICE int context_of(int column) { return column < FIRST_FIELD_CONTEXT ? column : column + FIELD_CONTEXTS; }

// codIRange and the bits that were shifted out
struct Range {
  int range, bits;
};
DEVICE Range unpacked(unsigned v) { return {int(v & 511), int(v >> 9)}; }
DEVICE unsigned packed(const Range &r) { return unsigned(r.range) | unsigned(r.bits) << 9; }
DEVICE int quarter(int range) { return range >> 6 & 3; }  // qCodIRangeIdx

// A bin: rangeTabLPS of its state, a byte for each qCodIRangeIdx, 0 in bypass bins; and flags
struct alignas(8) Bin {
  unsigned ranges, flags;
};
constexpr unsigned IS_LPS = 1, IS_BYPASS_1 = 2;

DEVICE Bin bin_of(unsigned code, const unsigned *ranges) {
  return {ranges[code >> 1], code < BYPASS_CODE ? code & 1 : (code & 1) * IS_BYPASS_1};
}
// Padded, so that threads that read a segment's distance apart use different banks
DEVICE int padded(int i) { return i + (i >> 5); }
constexpr int PADDED_CHUNK = CHUNK + CHUNK / 32;

// 9.3.4.3, 9.3.4.4: codIRange after a bin, and what is added to codILow before the shift
DEVICE int step(const Bin &bin, Range &r) {
  const int lps = int(__byte_perm(0, bin.ranges, unsigned(r.range >> 6)));  // 4 to 7 choose from the second word
  r.range -= lps;
  const int added = bin.flags ? r.range : 0;
  if (bin.flags & IS_LPS) r.range = lps;
  const int shift = __clz(r.range) - 23;
  r.range <<= shift;
  r.bits += shift + (bin.ranges == 0);
  return added;
}

// The first LPS at or after a segment's first possible start, or `end`. masks: LPS of 32 bins each
DEVICE int first_lps(const unsigned *masks, int segment, int end) {
  for (int w = segment; w < SEGMENTS; w++)
    if (masks[w]) return 32 * w + __ffs(int(masks[w])) - 1;
  return end;
}

// From the end of a code word to the bit before the next one, after I_PCM
DEVICE BitAdvance past_samples() { return {LAST_BITS, SAMPLE_BITS - 1}; }
// The most bits of a slice
DEVICE int room_of(int entries) { return 8 * (entries * ENTRY_BYTES - SPARE_BYTES); }

// 9.3.1.1. initial: int16[4, contexts, 2], (m, n) by cabac_init_idc and in I slices
DEVICE unsigned initial_state(const short *initial, const int *frame_params, int n_ref, int context) {
  const int table = n_ref ? frame_params[1] : INITIAL_I, qp = frame_params[0];
  const short *mn = initial + 2 * (table * N_CONTEXTS + context);
  const int value = clip3(1, 126, (mn[0] * clip3(0, 51, qp) >> 4) + mn[1]);
  return value <= 63 ? unsigned(63 - value) << 1 : unsigned(value - 64) << 1 | 1;
}

// What bins add to codILow, in cells of 16 bits; bit positions are those of the slice plus 16
struct Added {
  unsigned *cells;
  int first_cell;
  DEVICE void add(int value, int lowest) {
    const unsigned v = unsigned(value) << (15 - (lowest & 15));
    unsigned *cell = cells + (lowest >> 4) - first_cell;
    atomicAdd(cell, v & 0xffff);
    if (v >> 16) atomicAdd(cell - 1, v >> 16);
  }
  // the bit at `bit` is to be set
  DEVICE void mark(int bit) { atomicAdd(cells + (bit >> 4) - first_cell, unsigned(1 + (bit & 15)) << MARK); }
};

// 7.3.5: the samples of I_PCM
struct Samples {
  const Sample *__restrict__ y, *__restrict__ u, *__restrict__ v;
  int mb_width;
  // Into the cells of a slice, from a byte of it on; by so many threads
  DEVICE void add(unsigned *cells, int byte, int mb, int thread, int threads) const {
    const int x = 16 * (mb % mb_width), row = 16 * (mb / mb_width), width = 16 * mb_width;
    for (int i = thread; i < PCM_SAMPLES; i += threads) {
      const Sample *p = y + size_t(row + i / 16) * width + x + (i & 15);
      if (i >= 256)
        p = (i < 320 ? u : v) + size_t(row / SUB_HEIGHT_C + (i >> 3 & 7)) * (width / SUB_WIDTH_C) + x / SUB_WIDTH_C + (i & 7);
      const int at = byte + i + 2;
      atomicAdd(cells + (at >> 1), unsigned(*p) << (at & 1 ? 0 : 8));
    }
  }
};
