// CABAC of whole slices, all bins at once: the sizes of their parts, and a step of the engine (9.3.4.2).
//
// A slice has a chunk of places for each of its entries (entropy.cu), which begin at chunk `first`; its bins lie in order from
// the first place on. After I_PCM they go on at the next chunk: a code word, from one start of the engine to the next, begins at
// a chunk. A block of threads takes chunks of its slice in turn, as many as the slice has: their number is known on the GPU only.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

constexpr int CHUNK = 2048;                           // bins, at most
constexpr int SEGMENT = 32, SEGMENTS = CHUNK / SEGMENT;  // bins from one possible start of a segment to the next
constexpr int COLUMNS = 320;                          // contexts, without those of fields
constexpr int PIECE = 32, WARM_UP = 12;               // bins whose states a thread finds; pieces before it that it reads
constexpr int SORTED_CHUNKS = COLUMNS * PIECE / CHUNK;  // room of a slice for contexts that begin at a piece
constexpr int CELLS = ENTRY_BYTES / 2, SPARE_CELLS = 8;  // of 16 bits: of an entry, and more of a slice
constexpr int FIRST_FIELD_CONTEXT = 277, FIELD_CONTEXTS = 122;

// Codes of bins: pStateIdx << 1 | whether it is the LPS, with pStateIdx 63 for terminating bins; or bypass bins
constexpr unsigned TERMINATE_CODE = 126, BYPASS_CODE = 128;

struct Chunks {
  int slice, first, count;
};
DEVICE Chunks own_chunks(const int *slices, int mb_width, const int *n_chunks) {
  const int slice = int(blockIdx.y);
  return {slice, slices[slice] * (mb_width + 1), n_chunks[slice]};
}
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

// A bin: rangeTabLPS of its state, a byte for each qCodIRangeIdx, 0 in bypass bins; and its kind
struct alignas(8) Bin {
  unsigned ranges, kind;
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
  const int added = bin.kind ? r.range : 0;
  if (bin.kind & IS_LPS) r.range = lps;
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
