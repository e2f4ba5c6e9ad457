// Intra macroblocks: choice of type and modes, coding and reconstruction in the order of their dependencies (8.3, 8.5).
//
// One launch; a block takes a part of a row by ticket: every PARTS'th run of neighbouring intra macroblocks. A macroblock
// waits for the intra ones among the three above it, so in a row of nothing else a block follows the row above at two
// macroblocks' distance. What those below wait for goes in words that say of themselves that they are there. Four warps share
// a macroblock: one chooses and codes it as Intra_4x4, one as Intra_16x16, one its chroma, and the last writes the macroblock
// before to memory meanwhile and loads the source of the next. They meet once a macroblock.
#include "intra_coding.cuh"

constexpr int THREADS = 128;
constexpr int PCM_BITS = 384 * 8 + 8, FEW_LEVELS = 60;
constexpr int PARTS = 8;  // as the launcher has it
constexpr int TURN = 1, ENDED = 2, PACKETS = 32;  // where in `progress` they are
constexpr int PACKET = 9;    // words of a macroblock: the last row of luma, of Cb, of Cr, the last row of modes
typedef unsigned long long Published;  // a word, and in the upper half the launch that it is of

struct Picture {
  int width, mb_width;
  const uint8_t *mb_type;
  uint8_t *rec_y, *rec_u, *rec_v;
  signed char *intra4x4_mode;
};
struct Choice {
  bool four, pcm;
};

DEVICE unsigned from_l2(const uint8_t *p) { return __ldcg(reinterpret_cast<const unsigned *>(p)); }

DEVICE Published published(const Published *from) {
#ifdef H264LITE_EMULATED
  return *const_cast<const volatile Published *>(from);
#else
  Published v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
#endif
}
DEVICE void publish(Published *to, unsigned v, unsigned turn) {
#ifdef H264LITE_EMULATED
  *const_cast<volatile Published *>(to) = Published(turn) << 32 | v;
#else
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(Published(turn) << 32 | v) : "memory");
#endif
}
// A word above a macroblock: on its way, from there if it is published
struct Word {
  const Published *from;
  Published v;
};
struct Row {  // the macroblocks above
  const uint8_t *types;
  const signed char *modes;
  const Published *packets;  // null: all is in memory
  unsigned turn;
};
DEVICE Word word_above(const Picture &p, const Row &row, bool wanted, int column, int number, const uint8_t *at) {
  Word w = {nullptr, Published(row.turn) << 32};
  if (!wanted || column < 0 || column >= p.mb_width) return w;
  const bool inter = row.types[column] > I_PCM;
  if (!inter && row.packets) {
    w.from = row.packets + PACKET * column + number;
    w.v = published(w.from);
  } else {
    unsigned v = splat4(2);
    if (number < 8) v = from_l2(at);
    else if (!inter) v = from_l2(reinterpret_cast<const uint8_t *>(row.modes) + 16 * column + 12);
    w.v |= v;
  }
  return w;
}
struct Words {
  Word a, b, c;
};
DEVICE Words words_above(const Picture &p, const Row &row, int warp, int lane, int mx, int my) {
  const bool chroma = warp == 2;
  const uint8_t *plane = chroma ? (lane & 4 ? p.rec_v : p.rec_u) : p.rec_y;
  const int size = chroma ? 8 : 16, width = chroma ? p.width / 2 : p.width, number = chroma ? 4 + (lane >> 1 & 2) : 0;
  const uint8_t *at = plane + size_t(size * my - 1) * width + size * mx;
  if (warp == 0) {  // lanes 0..5 the words from the corner on, lane 6 the modes
    const int column = lane == 0 ? mx - 1 : lane == 5 ? mx + 1 : mx;
    const Word none = {nullptr, Published(row.turn) << 32};
    return {word_above(p, row, lane < 7, column, lane == 6 ? 8 : (lane + 3) & 3, at - 4 + 4 * lane), none, none};
  }
  // of luma the word of this lane's block column, of chroma both words of this lane's plane; the corner
  const int k = chroma ? 0 : lane & 3;
  return {word_above(p, row, true, mx, number + k, at + 4 * k), word_above(p, row, chroma, mx, number + 1, at + 4),
          word_above(p, row, true, mx - 1, number + (chroma ? 1 : 3), at - 4)};
}
DEVICE bool missing(const Word &w, unsigned turn) { return unsigned(w.v >> 32) != turn; }
DEVICE Above wait_for(Words w, int warp, unsigned turn) {
  while (__any_sync(FULL_WARP, missing(w.a, turn) || missing(w.b, turn) || missing(w.c, turn))) {
    __nanosleep(20);
    if (missing(w.a, turn)) w.a.v = published(w.a.from);
    if (missing(w.b, turn)) w.b.v = published(w.b.from);
    if (missing(w.c, turn)) w.c.v = published(w.c.from);
  }
  return warp == 1 ? Above{unsigned(w.a.v), unsigned(w.c.v), 0} : Above{unsigned(w.a.v), unsigned(w.b.v), unsigned(w.c.v)};
}

// The word at the right edge of a finished macroblock: row 0..15 of luma, or 0..7 of a chroma plane
DEVICE unsigned last_word(const Macroblock &m, Choice choice, int row) {
  if (choice.pcm) return word_at(m.source + 16 * row + 12);
  return choice.four ? word_at(m.tile + (row + 1) * TILE + 16) : word_at(m.luma + 16 * row + 12);
}
DEVICE unsigned last_chroma_word(const Macroblock &m, Choice choice, int plane, int row) {
  return word_at((choice.pcm ? m.source + 256 : m.chroma) + 64 * plane + 8 * row + 4);
}

// Block 0..26 of its levels; null: none
DEVICE const short *levels_of(const Macroblock &m, bool four, int block) {
  if (block < 16) return (four ? m.levels_4x4 : m.levels_16x16) + 16 * block;
  if (block == LUMA_DC) return four ? nullptr : m.levels_16x16 + 16 * 16;
  return m.levels_chroma + 16 * (block < LUMA_DC ? block - 16 : block - LUMA_DC + 7);
}

// Which type it takes; by every warp for itself
DEVICE Choice choose(const Macroblock &m, int lane) {
  Choice choice = {m.cost_4x4 < m.cost_16x16, m.clipped[1] != 0};
  unsigned count = lane == 24 ? unsigned(m.dc_chroma) : 0;
  if (lane < 16) count = choice.four ? m.count_4x4[lane] : m.count_16x16[lane];
  else if (lane < 24) count = m.count_chroma[lane - 16];
  else if (lane == 25 && !choice.four) count = unsigned(m.dc_16x16);
  if (!choice.four && m.clipped[0]) choice.pcm = true;
  const int all = int(__reduce_add_sync(FULL_WARP, count)), sum = (choice.four ? m.sum_4x4 : m.sum_16x16) + m.sum_chroma;
  // bits_at_most says no more than 41 a block, 7 a level and 2 a unit of magnitude, unless a level is clipped
  if (all > FEW_LEVELS && 41 * N_LEVEL_BLOCKS + 7 * all + 2 * sum > PCM_BITS) {
    const short *levels = lane < N_LEVEL_BLOCKS ? levels_of(m, choice.four, lane) : nullptr;
    int c[16];
#pragma unroll
    for (int i = 0; i < 16; i++) c[digit(ZIGZAG_4x4_DIGITS, i)] = levels ? levels[i] : 0;
    if (__reduce_add_sync(FULL_WARP, unsigned(bits_at_most(c))) > unsigned(PCM_BITS)) choice.pcm = true;
  }
  return choice;
}

// What those below wait for
DEVICE void publish(const Macroblock &m, Choice choice, Published *to, unsigned turn, int lane) {
  if (lane >= PACKET) return;
  unsigned v = splat4(2);
  if (lane < 4) {
    const uint8_t *from = choice.pcm ? m.source + 16 * 15 : choice.four ? m.tile + 16 * TILE + 4 : m.luma + 16 * 15;
    v = word_at(from + 4 * lane);
  } else if (lane < 8) {
    v = word_at((choice.pcm ? m.source + 256 : m.chroma) + 32 * (lane & 2) + 56 + 4 * (lane & 1));
  } else if (choice.four && !choice.pcm) {
    v = *reinterpret_cast<const unsigned *>(m.modes + 8 * 4 + 4);
  }
  publish(to + lane, v, turn);
}

// What neighbours to the right and later stages read: samples and modes
DEVICE void write_samples(const Picture &p, const Macroblock &m, Choice choice, int mx, int my, int lane) {
  const int row = lane >> 2, word = 4 * (lane & 3), half = p.width / 2;
#pragma unroll
  for (int i = 0; i < 16; i += 8) {
    const uint8_t *from = choice.pcm ? m.source + 16 * (row + i) : choice.four ? m.tile + (row + i + 1) * TILE + 4 : m.luma + 16 * (row + i);
    *reinterpret_cast<unsigned *>(p.rec_y + size_t(16 * my + row + i) * p.width + 16 * mx + word) = word_at(from + word);
  }
  const unsigned v = word_at((choice.pcm ? m.source + 256 : m.chroma) + 4 * lane);
  uint8_t *plane = lane & 16 ? p.rec_v : p.rec_u;
  *reinterpret_cast<unsigned *>(plane + size_t(8 * my + (lane >> 1 & 7)) * half + 8 * mx + 4 * (lane & 1)) = v;
  if (lane < 4) {
    const unsigned modes = choice.four && !choice.pcm ? *reinterpret_cast<const unsigned *>(m.modes + 8 * (lane + 1) + 4) : splat4(2);
    reinterpret_cast<unsigned *>(p.intra4x4_mode + 16 * size_t(my * p.mb_width + mx))[lane] = modes;
  }
}

DEVICE uint4 load_source(const uint8_t *y, const uint8_t *u, const uint8_t *v, int width, int mx, int my, int lane) {
  uint4 s = make_uint4(0, 0, 0, 0);
  if (lane < 16) return __ldg(reinterpret_cast<const uint4 *>(y + size_t(16 * my + lane) * width + 16 * mx));
  if (lane < 24) {  // two rows of eight
    const uint8_t *from = (lane < 20 ? u : v) + size_t(8 * my + 2 * (lane & 3)) * (width / 2) + 8 * mx;
    const uint2 a = __ldg(reinterpret_cast<const uint2 *>(from)), b = __ldg(reinterpret_cast<const uint2 *>(from + width / 2));
    s = make_uint4(a.x, a.y, b.x, b.y);
  }
  return s;
}

// All else of a macroblock, for the stages that follow
DEVICE void write_state(const Macroblock &m, Choice choice, size_t mb, int lane, uint8_t *mb_type, uint8_t *intra16x16_mode,
                        uint8_t *intra_chroma_mode, short *levels, uint8_t *total_coeff, uint8_t *cbp) {
  uint4 *to = reinterpret_cast<uint4 *>(levels + mb * N_LEVEL_BLOCKS * 16);
  for (int i = lane; i < 2 * N_LEVEL_BLOCKS; i += 32) {
    const short *from = choice.pcm ? nullptr : levels_of(m, choice.four, i >> 1);
    to[i] = from ? reinterpret_cast<const uint4 *>(from)[i & 1] : make_uint4(0, 0, 0, 0);
  }
  int count = 0;
  if (lane < 16) count = choice.four ? m.count_4x4[lane] : m.count_16x16[lane];
  else if (lane < 24) count = m.count_chroma[lane - 16];
  const unsigned votes = __ballot_sync(FULL_WARP, lane < 16 && count);
  int luma = votes ? 15 : 0;
  if (choice.four) luma = (votes & 0x33 ? 1 : 0) | (votes & 0xcc ? 2 : 0) | (votes & 0x3300 ? 4 : 0) | (votes & 0xcc00 ? 8 : 0);
  if (lane < 24) total_coeff[mb * 24 + lane] = choice.pcm ? 16 : uint8_t(count);
  if (lane == 0) {
    mb_type[mb] = choice.pcm ? I_PCM : choice.four ? I_4x4 : I_16x16;
    intra16x16_mode[mb] = choice.pcm || choice.four ? 0 : uint8_t(m.mode_16x16);
    intra_chroma_mode[mb] = choice.pcm ? 0 : uint8_t(m.mode_chroma);
    cbp[mb] = choice.pcm ? 47 : uint8_t(luma + 16 * m.cbp_chroma);
  }
}

// The intra macroblocks of a block's part of a row, one after the other; the same in every warp
struct Walk {
  const uint8_t *types;
  int mb_width, part, lane, base, runs;  // runs: that have begun before
  unsigned mask;
  bool inside;  // the column before `base` is of a run
  DEVICE int next() {
    while (!mask) {
      base += 32;
      if (base >= mb_width) return mb_width;
      const unsigned intra = __ballot_sync(FULL_WARP, base + lane < mb_width && types[base + lane] <= I_PCM);
      const unsigned starts = intra & ~(intra << 1 | unsigned(inside));
      const int run = runs + __popc(starts & ((2u << lane) - 1)) - 1;
      mask = intra & __ballot_sync(FULL_WARP, run % PARTS == part);
      runs += __popc(starts);
      inside = intra >> 31;
    }
    const int at = base + __ffs(int(mask)) - 1;
    mask &= mask - 1;
    return at;
  }
};

// Planes and state arrays as the launcher says; macroblock rows [row0, row0 + gridDim.x / PARTS). progress: 0 before the first
// launch; counters of tickets, launches and blocks that have ended, then (PACKETS) what each intra macroblock of these rows
// publishes, with the number of the launch, so that nobody has to clear it.
extern "C" __global__ void __launch_bounds__(THREADS) intra(const uint8_t *__restrict__ src_y, const uint8_t *__restrict__ src_u,
    const uint8_t *__restrict__ src_v, const int *__restrict__ slice_first_mb, int lam, int chroma_qp_offset, int row0, int mb_width,
    uint8_t *mb_type, signed char *intra4x4_mode, uint8_t *intra16x16_mode, uint8_t *intra_chroma_mode,
    const uint8_t *__restrict__ qp, uint8_t *rec_y, uint8_t *rec_u, uint8_t *rec_v, short *levels, uint8_t *total_coeff,
    uint8_t *cbp, int *progress) {
  wait_for_the_kernel_before();
  SHARED(Macroblock, buffers, 3);  // of the macroblock in work, the one before (its edge, and still being written), the next
  SHARED(uint8_t, chroma_left, 16);
  SHARED(int, ticket, 2);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (threadIdx.x == 0) {
    ticket[0] = atomicAdd(progress, 1);
    ticket[1] = progress[TURN] + 1;
    buffers[0].limit = NO_LIMIT;
  }
  for (int i = threadIdx.x; i < 3 * 2 * 16; i += THREADS) buffers[i >> 5].levels_chroma[8 * 16 + (i & 31)] = 0;
  __syncthreads();
  const unsigned turn = unsigned(ticket[1]);
  const int row = *ticket / PARTS, part = *ticket % PARTS, my = row0 + row, width = 16 * mb_width;
  Published *packets = reinterpret_cast<Published *>(progress + PACKETS) + size_t(PACKET) * row * mb_width;
  const size_t first = size_t(my) * mb_width;
  const bool top = int(first) - mb_width >= slice_first_mb[my];
  const Row above_row = {mb_type + first - mb_width, intra4x4_mode + 16 * (first - mb_width),
                         row ? packets - size_t(PACKET) * mb_width : nullptr, turn};
  const Picture picture = {width, mb_width, mb_type, rec_y, rec_u, rec_v, intra4x4_mode};
  for (int mx = part * THREADS + threadIdx.x; mx < mb_width; mx += PARTS * THREADS)
    if (mb_type[first + mx] > I_PCM) {
      reinterpret_cast<uint4 *>(intra4x4_mode)[first + mx] = make_uint4(splat4(2), splat4(2), splat4(2), splat4(2));
      intra16x16_mode[first + mx] = 0;
      intra_chroma_mode[first + mx] = 0;
    }
  Walk walk = {mb_type + first, mb_width, part, lane, -32, 0, 0, false};
  int mx = walk.next(), before = -2;
  if (warp == 3 && mx < mb_width) {
    const uint4 s = load_source(src_y, src_u, src_v, width, mx, my, lane);
    if (lane < 24) reinterpret_cast<uint4 *>(buffers[0].source)[lane] = s;
    __syncwarp();
    look_ahead(buffers[0], lane);
  }
  __syncthreads();
  const Sample own = sample_of(lane);
  Quantiser quantiser = {-1, 0, 0, 0, 0};
  int qp_y = mx < mb_width ? qp[first + mx] : 0;
  Choice choice = {false, false};
  const Word none = {nullptr, Published(turn) << 32};
  Words words = {none, none, none};
  if (top && warp < 3 && mx < mb_width) words = words_above(picture, above_row, warp, lane, mx, my);
  for (int n = 0; mx < mb_width; n++) {
    Macroblock &m = buffers[n % 3], &previous = buffers[(n + 2) % 3];
    const int next = walk.next(), next_qp = next < mb_width ? qp[first + next] : 0;
    if (warp < 3) {
      const Around around = {mx > 0, top, top && mx + 1 < mb_width};
      const bool adjacent = before == mx - 1;  // else the macroblock to the left is an inter one
      const Above above = wait_for(words, warp, turn);
      if (top && next < mb_width) words = words_above(picture, above_row, warp, lane, next, my);
      unsigned word = 0;
      if (warp < 2) {
        if (adjacent) word = last_word(previous, choice, lane & 15);
        else if (mx > 0) word = from_l2(rec_y + size_t(16 * my + (lane & 15)) * width + 16 * mx - 4);
        if (warp == 0) {
          if (lane < 16) m.sides[4 + lane] = uint8_t(word >> 24);
          else if (lane < 20)
            m.modes[(lane - 15) * 8 + 3] = mx == 0 ? -1 : adjacent && choice.four && !choice.pcm ? previous.modes[(lane - 15) * 8 + 7] : 2;
          if (lane < 4) m.sides[lane * SIDE + 3] = uint8_t(above.a >> 24);
          if (lane < 6) *reinterpret_cast<unsigned *>(m.tile + 4 * lane) = above.a;
          else if (lane == 6) *reinterpret_cast<unsigned *>(m.modes + 4) = top ? above.a : ~0u;
          __syncwarp();
          if (qp_y != quantiser.qp) quantiser = quantiser_of(qp_y, lane);
          code_4x4(m, around, quantiser, lam, lane, own);
        } else {
          code_16x16(m, around, above, int(word >> 24), qp_y, lam, lane, own.scan);
        }
      } else {
        const int plane = lane >> 3 & 1, row = lane & 7;
        if (adjacent) word = last_chroma_word(previous, choice, plane, row);
        else if (mx > 0) word = from_l2((plane ? rec_v : rec_u) + size_t(8 * my + row) * (width / 2) + 8 * mx - 4);
        if (lane < 16) chroma_left[lane] = uint8_t(word >> 24);
        __syncwarp();
        const int qp_c = QP_CHROMA[clip3(0, 51, qp_y + chroma_qp_offset)];
        code_chroma(m, around, above, chroma_left + 8 * (lane >> 2 & 1), qp_c, lam, lane);
      }
    } else {
      if (next < mb_width) {
        const uint4 s = load_source(src_y, src_u, src_v, width, next, my, lane);
        if (lane < 24) reinterpret_cast<uint4 *>(buffers[(n + 1) % 3].source)[lane] = s;
        __syncwarp();
        look_ahead(buffers[(n + 1) % 3], lane);
      }
      if (lane == 0) buffers[(n + 1) % 3].limit = NO_LIMIT;
    }
    __syncthreads();
    choice = choose(m, lane);
    if (warp == 3) {
      publish(m, choice, packets + PACKET * mx, turn, lane);
      write_samples(picture, m, choice, mx, my, lane);
      write_state(m, choice, first + mx, lane, mb_type, intra16x16_mode, intra_chroma_mode, levels, total_coeff, cbp);
    }
    before = mx;
    mx = next;
    qp_y = next_qp;
  }
  if (threadIdx.x == 0 && atomicAdd(progress + ENDED, 1) == int(gridDim.x) - 1) {  // nobody takes a ticket any more
    progress[0] = progress[ENDED] = 0;
    progress[TURN] = int(turn);
  }
}
