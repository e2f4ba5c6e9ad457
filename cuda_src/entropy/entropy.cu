// Slice data by CAVLC (7.3.4, 7.3.5, 9.1, 9.2), all macroblocks at once: the bits of each, their positions, then the bytes.
//
// total_coeff, types and vectors of neighbours are known, so that only bit positions depend on earlier macroblocks. A row has
// mb_width + 1 entries: its macroblocks, and the bits after the last one if a slice ends there. An entry has ROOM words; the
// first bit is the highest of a word. `lengths` are in bits, with ALIGNED if the samples of I_PCM follow at the next byte.
// Samples of 8 bits only: words of four samples.
#include "entropy/entropy_launch.cuh"
#include "entropy/b_macroblock.cuh"
#include "entropy/cavlc.cuh"
#include "entropy/macroblock_state.cuh"
#include "entropy/bit_positions.cuh"
#include "inter/mv_prediction.cuh"

constexpr int ROOM = ENTRY_BYTES / 4;
constexpr unsigned ALIGNED = 1u << 31;
constexpr int SAMPLES = 8;  // the samples of I_PCM are in words from SAMPLES on
constexpr int TOO_LONG = 1 << 16;

// mb_skip_run before a macroblock, and QP'Y of the last one that had any residual. The whole warp
DEVICE void look_back(const State &s, int mb, int first_mb, int &run, int &qp) {
  const int lane = threadIdx.x & 31;
  run = mb - first_mb;
  qp = __ldg(s.frame_params);
  bool ran = false;
  for (int end = mb; end > first_mb; end -= 32) {
    const int i = end - 1 - lane, mb_type = i < first_mb ? SKIP : int(s.mb_type[i]);
    const unsigned coded = __ballot_sync(FULL_WARP, mb_type != SKIP);
    const unsigned residual = __ballot_sync(FULL_WARP, has_residual(s, i, mb_type));
    if (coded && !ran) run = mb - (end - 1 - (__ffs(int(coded)) - 1)) - 1;
    ran |= coded != 0;
    if (residual) {
      qp = s.qp[end - 1 - (__ffs(int(residual)) - 1)];
      return;
    }
  }
}

// 9.2.1: row of coeff_token for block (bx, by) of a plane of 2^log2_width blocks a row, first at `base` of total_coeff
DEVICE int count_class(const State &s, const CurrentMb &o, int base, int log2_width, int bx, int by) {
  const int last = (1 << log2_width) - 1;
  const uint8_t *counts = s.total_coeff + 24 * size_t(o.mb) + base;
  const bool a = bx > 0 || o.left, b = by > 0 || o.above;
  int count = 0;
  if (a) count += bx > 0 ? counts[(by << log2_width) + bx - 1] : counts[-24 + (by << log2_width) + last];
  if (b) count += by > 0 ? counts[((by - 1) << log2_width) + bx] : counts[-24 * s.mb_width + (last << log2_width) + bx];
  const int nc = a && b ? (count + 1) >> 1 : count;
  return (nc >= 2) + (nc >= 4) + (nc >= 8);
}

// 8.4.1.3: the difference of a lane's partition to its predictor, x and y
DEVICE void put_mvd(const State &s, const CurrentMb &o, int bx, int by, int bw, int bh, Code &x, Code &y) {
  const auto at = [&](int dx, int dy) {
    return motion_of(neighbour_block(o.mb, bx + dx, by + dy, s.mb_width, o.first_mb), s.ref_idx, s.mv);
  };
  const Motion current = at(0, 0), a = at(-1, 0), b = at(0, -1);
  Motion c = {-2, 0};
  if (corner_available(bx, by, bw)) c = at(bw, -1);
  if (c.ref == -2) c = at(-1, -1);
  const unsigned p = choose_predictor(bx, by, bw, bh, current.ref, a, b, c);
  append_se(x, x_of(current.v) - x_of(p));
  append_se(y, y_of(current.v) - y_of(p));
}

// 7.3.5.1, 8.3.1.1: prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode of a lane's block
DEVICE void put_mode(const State &s, const CurrentMb &o, int raster, Code &c) {
  const int predicted = predicted_mode(s, o, raster), mode = s.intra4x4_mode[16 * size_t(o.mb) + raster];
  if (mode == predicted) append(c, 1, 1);
  else append(c, unsigned(mode - (mode > predicted)), 4);
}

// 7.3.5: whether transform_size_8x8_flag follows coded_block_pattern
DEVICE bool has_transform_flag(const State &s, const CurrentMb &o, bool inter) {
  if (!s.transform_8x8_mode || !inter || !(o.pattern & 15)) return false;
  return o.mb_type != P_8x8 || !*reinterpret_cast<const unsigned *>(s.sub_mb_type + 4 * size_t(o.mb));  // all SUB_8x8
}

// What a lane has of all that comes before residual(): lane 0 types, lane 1 references, 2 to 17 modes or vectors of the
// blocks in decoding order, 18 the rest. In two codes, in sequence
DEVICE void put_head(const State &s, const CurrentMb &o, int run, int qp_before, Code &c, Code &after) {
  const int lane = threadIdx.x & 31, offset = IS_B ? B_INTRA_OFFSET : s.n_ref ? P_INTRA_OFFSET : 0, k = lane - 2;
  const bool inter = o.mb_type > LAST_INTRA && o.mb_type != SKIP;
  const uint8_t *sub = s.sub_mb_type + 4 * size_t(o.mb);
  const unsigned refs = inter ? *reinterpret_cast<const unsigned *>(s.ref_idx + 4 * size_t(o.mb)) : 0;
  const bool ref0 = s.n_ref > 1 && o.mb_type == P_8x8 && refs == 0;
  const int wide = o.mb_type == P_8x16 || o.mb_type == P_8x8 ? 2 : 4, high = o.mb_type == P_16x8 || o.mb_type == P_8x8 ? 2 : 4;
  if (lane == 0) {
    if (s.n_ref) append_ue(c, unsigned(run));
    if (o.mb_type == I_16x16)
      append_ue(after, unsigned(offset + 1 + s.intra16x16_mode[o.mb] + 4 * (o.pattern >> 4) + (o.pattern & 15 ? 12 : 0)));
    else if (!inter) append_ue(after, unsigned(offset + (o.mb_type == I_PCM ? I_PCM_TYPE : I_NxN_TYPE)));
    else if (IS_B) append_ue(after, unsigned(b_mb_type(s, o)));
    else append_ue(after, unsigned(ref0 ? P_8x8REF0_TYPE : o.mb_type - P_16x16 + P_16x16_TYPE));
    if (o.mb_type == (IS_B ? B_8x8 : P_8x8))
      for (int q = 0; q < 4; q++) append_ue(after, sub[q]);
    if (s.transform_8x8_mode && (o.mb_type == I_4x4 || o.mb_type == I_8x8)) append(after, o.mb_type == I_8x8, 1);
  } else if (IS_B && lane == 1) {
    for (int q = 0; inter && q < 4; q++) {
      if (!begins_partition(o.mb_type, q)) continue;
      if (s.n_ref > 1 && has_vector(s, o.mb, o.mb_type, q, 0)) append_te(c, refs_of(s, o.mb, 0)[q], s.n_ref - 1);
      if (s.n_ref1 > 1 && has_vector(s, o.mb, o.mb_type, q, 1)) append_te(after, refs_of(s, o.mb, 1)[q], s.n_ref1 - 1);
    }
  } else if (!IS_B && lane == 1 && inter && s.n_ref > 1 && !ref0) {
    for (int q = 0; q < 4; q++)
      if ((q & 1) * 2 % wide == 0 && (q >> 1) * 2 % high == 0) append_te(c, int(refs >> (8 * q) & 255), s.n_ref - 1);
  } else if (k >= 0 && k < 16) {
    const int raster = int(BLOCK_TO_RASTER_DIGITS >> (4 * k) & 15), bx = raster & 3, by = raster >> 2;
    if (o.mb_type == I_4x4 || (o.mb_type == I_8x8 && k % 4 == 0)) put_mode(s, o, raster, c);
    if (IS_B && inter) {  // the quadrants of list 0, then of list 1
      const int q = k & 3, list = k >> 2;
      if (list < 2 && begins_partition(o.mb_type, q) && has_vector(s, o.mb, o.mb_type, q, list)) {
        const unsigned mvd = b_difference(s, o.mb, o.first_mb, q, list);
        append_se(c, x_of(mvd));
        append_se(after, y_of(mvd));
      }
    } else if (inter) {
      const int sub_type = o.mb_type == P_8x8 ? sub[k >> 2] : SUB_8x8;
      const int bw = sub_type == SUB_4x8 || sub_type == SUB_4x4 ? 1 : wide, bh = sub_type == SUB_8x4 || sub_type == SUB_4x4 ? 1 : high;
      if (bx % bw == 0 && by % bh == 0) put_mvd(s, o, bx, by, bw, bh, c, after);
    }
  } else if (lane == 18 && o.mb_type != I_PCM) {
    if (!inter) append_ue(c, s.intra_chroma_mode[o.mb]);
    if (o.mb_type != I_16x16) append_ue(c, unsigned(inter ? CBP_INTER_CODE[o.pattern] : CBP_INTRA_CODE[o.pattern]));
    if (has_transform_flag(s, o, inter)) append(c, s.transform_8x8[o.mb], 1);
    if (o.pattern || o.mb_type == I_16x16) append_se(c, (int(s.qp[o.mb]) - qp_before + 26 + 52) % 52 - 26);  // 7.4.5: QPY wraps
  }
}

// A lane's block of residual() (7.3.5.3): which of its levels are not 0, after position `first`; false if it is not coded
DEVICE bool find_block(const State &s, const CurrentMb &o, int &first, int &most, int &nc_class, int &block) {
  const int lane = threadIdx.x & 31;
  const bool whole = o.mb_type == I_16x16;
  block = lane == 0 ? LUMA_DC : lane <= 16 ? lane - 1 : lane == 17 ? CB_DC : lane == 18 ? CR_DC : lane - 3;
  first = 0;
  most = 16;
  nc_class = NC_CLASS_CHROMA_DC;
  if (lane == 0) {
    nc_class = count_class(s, o, 0, 2, 0, 0);
    return whole;
  }
  if (lane <= 16) {
    const int raster = int(BLOCK_TO_RASTER_DIGITS >> (4 * block) & 15);
    first = whole;
    most = 16 - first;
    nc_class = count_class(s, o, 0, 2, raster & 3, raster >> 2);
    return o.pattern >> (block >> 2) & 1;
  }
  if (lane <= 18) {
    most = 4;
    return o.pattern >> 4;
  }
  if (lane > 26) return false;
  first = 1;
  most = 15;
  nc_class = count_class(s, o, block & ~3, 1, block & 1, block >> 1 & 1);
  return o.pattern >> 5;
}

// The bits of each entry, a warp an entry. lengths: uint32[entries], words: uint32[entries, ROOM]. Six blocks a multiprocessor
// leave enough registers on every architecture.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 6) code_macroblocks(const int *slice_first_mb, const int *frame_params, int n_ref,
    int mb_width, int entries, const Sample *source_y, const Sample *source_u, const Sample *source_v, const uint8_t *mb_type,
    const uint8_t *sub_mb_type, const signed char *ref_idx, const unsigned *mv, const signed char *intra4x4_mode,
    const uint8_t *intra16x16_mode, const uint8_t *intra_chroma_mode, const uint8_t *cbp, const uint8_t *qp, const short *levels,
    const uint8_t *total_coeff, const uint8_t *transform_8x8, int transform_8x8_mode LIST1_PARAMETERS, unsigned *lengths,
    unsigned *words) {
  wait_for_the_kernel_before();
  SHARED(unsigned, memory, WARPS * ROOM);
  const State s = {slice_first_mb, frame_params, n_ref, mb_width, mb_type, sub_mb_type, ref_idx, mv, intra4x4_mode,
                   intra16x16_mode, intra_chroma_mode, cbp, qp, levels, total_coeff, transform_8x8, transform_8x8_mode LIST1};
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, entry = int(blockIdx.x) * WARPS + warp;
  if (entry >= entries) return;
  unsigned *mb_words = memory + warp * ROOM, *out = words + size_t(entry) * ROOM;
  const int row = entry / (mb_width + 1), mx = entry % (mb_width + 1), mb = row * mb_width + mx, first_mb = slice_first_mb[row * mb_width];
  const bool behind_row = mx == mb_width;
  const bool ends = behind_row && (entry + 1 == entries || slice_first_mb[(row + 1) * mb_width] != first_mb);
  const CurrentMb o = {mb, first_mb, behind_row ? SKIP : int(mb_type[mb]), behind_row ? 0 : int(cbp[mb]), mx > 0, mb - mb_width >= first_mb};
  if (o.mb_type == SKIP && !ends) {
    if (lane == 0) lengths[entry] = 0;
    return;
  }
  for (int i = lane; i < ROOM; i += 32) mb_words[i] = 0;
  __syncwarp();
  int run, qp_before, length, all = 0;
  look_back(s, mb, first_mb, run, qp_before);
  Code c, after;
  if (!ends) put_head(s, o, run, qp_before, c, after);
  else if (lane == 0) {
    if (run) append_ue(c, unsigned(run));
    append(after, 1, 1);  // 7.3.2.11
  }
  int at = sum_before(c.length + after.length, length);
  store(mb_words, at, c);
  store(mb_words, at + c.length, after);
  if (o.mb_type != I_PCM && (o.pattern || o.mb_type == I_16x16)) {
    int first, most, nc_class, block;
    Counted counted;
    unsigned mask = 0;
    const bool coded = find_block(s, o, first, most, nc_class, block);
    const short *from = levels + (size_t(mb) * N_LEVEL_BLOCKS + block) * 16;
    if (coded) {
      mask = nonzero_levels(from) >> first & ((1u << most) - 1);
      put_block(counted, from + first, mask, most, nc_class);
    }
    at = length + sum_before(counted.bits, all);
    length += all;
    if (coded && length <= 32 * ROOM) {
      Stored stored = {mb_words, at};
      put_block(stored, from + first, mask, most, nc_class);
    }
  }
  __syncwarp();
  if (o.mb_type == I_PCM) {
    const int x = 16 * mx, y = 16 * row, width = 16 * mb_width;
    for (int i = lane; i < SAMPLE_BITS / 32; i += 32) {  // a word is four samples
      const Sample *p = source_y + size_t(y + i / 4) * width + x + 4 * (i & 3);
      if (i >= 64)
        p = (i < 80 ? source_u : source_v) + size_t(y / SUB_HEIGHT_C + (i >> 1 & 7)) * (width / SUB_WIDTH_C) + x / SUB_WIDTH_C +
            4 * (i & 1);
      out[SAMPLES + i] = __byte_perm(*reinterpret_cast<const unsigned *>(p), 0, 0x0123);
    }
  }
  for (int i = lane; i < min((length + 31) / 32, o.mb_type == I_PCM ? SAMPLES : ROOM); i += 32) out[i] = mb_words[i];
  if (lane == 0) lengths[entry] = length > 32 * ROOM ? TOO_LONG : unsigned(length) | (o.mb_type == I_PCM ? ALIGNED : 0);
}

#ifndef B_SLICES  // one of each serves all slices
DEVICE BitAdvance advance_of(unsigned length) { return {int(length & ~ALIGNED), length & ALIGNED ? SAMPLE_BITS : -1}; }

// Position of each entry in bits of its slice; a block of threads a slice. slices: int32[n + 1], first macroblocks, then n_mb;
// frame_params: int32[HEADER_BITS + n], from [HEADER_BITS] on bits of the headers. sizes: int32[n], bits of the slice with its header, -1: an entry
// is too long
extern "C" __global__ void __launch_bounds__(SCAN) place_macroblocks(const int *slices, const int *frame_params, int mb_width, const unsigned *lengths, int *positions,
    int *sizes) {
  wait_for_the_kernel_before();
  SHARED(BitAdvance, warps, 32);
  SHARED(int, too_long, 1);
  const int slice = int(blockIdx.x);
  const int begin = entry_at(slices[slice], mb_width), end = entry_at(slices[slice + 1], mb_width), header = frame_params[HEADER_BITS + slice];
  const int each = (end - begin + SCAN - 1) / SCAN, first = begin + int(threadIdx.x) * each, last = min(first + each, end);
  if (threadIdx.x == 0) *too_long = 0;
  __syncthreads();
  BitAdvance advance = {0, -1};
  for (int e = first; e < last; e++) {
    const unsigned length = lengths[e];
    if (length == TOO_LONG) *too_long = 1;
    advance = compose(advance, advance_of(length));
  }
  int all, position = apply_in_block(header, advance, warps, all);
  for (int e = first; e < last; e++) {
    positions[e] = position;
    position = apply(position, advance_of(lengths[e]));
  }
  if (threadIdx.x == SCAN - 1) sizes[slice] = *too_long ? -1 : all;
}

// The part of bits [begin, end) of a slice in its word `at`, in place. words: these bits, from the first word on
DEVICE unsigned bits_of(const unsigned *words, int begin, int end, int at) {
  const int from = max(begin, 32 * at), to = min(end, 32 * at + 32);
  if (from >= to) return 0;
  const int skip = from - begin, i = skip >> 5;
  const unsigned low = (to - 1 - begin) >> 5 > i ? words[i + 1] : 0;
  return (__funnelshift_l(low, words[i], unsigned(skip & 31)) & ~0u << (32 - (to - from))) >> (from - 32 * at);
}

// The bytes of each slice; grid: any number, slices. A thread finds the entries of its word. to: uint32[entries, ROOM], a
// slice from the words of its first entry on; may be host memory. The header's bits are 0
extern "C" __global__ void __launch_bounds__(PACK) pack_slices(const int *slices, const int *frame_params, int mb_width, const unsigned *lengths, const int *positions,
    const int *sizes, const unsigned *words, unsigned *to) {
  wait_for_the_kernel_before();
  const int slice = int(blockIdx.y), size = sizes[slice];
  const int begin = entry_at(slices[slice], mb_width), end = entry_at(slices[slice + 1], mb_width), header = frame_params[HEADER_BITS + slice];
  for (int at = int(blockIdx.x * PACK + threadIdx.x); 32 * at < size; at += int(gridDim.x) * PACK) {
    unsigned out = 0;
    for (int bit = max(32 * at, header); bit < min(32 * at + 32, size);) {
      int low = begin, high = end;  // the last entry that begins at or before `bit` has it: later ones are empty
      while (high - low > 1) {
        const int middle = (low + high) >> 1;
        if (positions[middle] <= bit) low = middle;
        else high = middle;
      }
      const int length = int(lengths[low] & ~ALIGNED), begins = positions[low];
      const unsigned *mb_words = words + size_t(low) * ROOM;
      out |= bits_of(mb_words, begins, begins + length, at);
      bit = begins + length;
      if (lengths[low] & ALIGNED) {
        const int samples = to_byte(bit);
        out |= bits_of(mb_words + SAMPLES, samples, samples + SAMPLE_BITS, at);
        bit = samples + SAMPLE_BITS;
      }
    }
    to[size_t(begin) * ROOM + at] = __byte_perm(out, 0, 0x0123);
  }
}
#endif
