// Intra macroblocks: choice of type and modes in I pictures, coding and reconstruction in the order of their dependencies
// (8.3, 8.5).
//
// One launch; a block takes a part of a row by ticket: every PARTS'th run of neighbouring intra macroblocks. A macroblock
// waits for the intra macroblocks among the three above it, so in a row of intra macroblocks a block follows the row above at a
// distance of two macroblocks. Data for the row below is published in words that contain the number of the launch. Four warps
// share a macroblock and synchronise once. In an I picture one warp chooses and codes Intra_4x4, one Intra_16x16, one chroma,
// and the last writes the macroblock before to memory and prepares the next. In a P picture, where intra_modes gives the luma
// modes, one warp codes luma, one prepares the next macroblock, one codes chroma, and the last writes the macroblock before.
// By true cost, P pictures are coded as I pictures.
// With the 8x8 transform (LARGE) macroblocks may be Intra_8x8; in an I picture a fifth warp chooses and codes this.
// Samples of 8 bits only: words of four samples.
#include "decisions/common.cuh"
#include "decisions/intra.cuh"
#include "decisions/quantise.cuh"
#include "intra/intra_by_cost.cuh"
#include "intra/intra_fixed_modes.cuh"
#include "intra/intra_row_exchange.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int RESIDENT = 3;  // minimum blocks a multiprocessor: here four would leave the compiler too few registers
#else
constexpr int RESIDENT = 4;
#endif
template <bool GIVEN, bool LARGE>
constexpr int THREADS = LARGE && !GIVEN ? THREADS_OF_CHOICE : THREADS_OF_ONE;
constexpr int TURN = 1, ENDED = 2;  // their words in `progress`
struct Choice {
  bool four, pcm, eight;  // Intra_4x4, I_PCM, Intra_8x8; none: Intra_16x16
};
// A macroblock in all types but Intra_8x8, and in this; only LARGE kernels have the latter
struct Both {
  const Macroblock *macroblock;
  const Macroblock8x8 *eight;
};

// The word at the right edge of a finished macroblock: row 0..15 of luma, or 0..7 of a chroma plane
template <bool LARGE>
DEVICE unsigned last_word(const Both &both, Choice choice, int row) {
  const Macroblock &m = *both.macroblock;
  if (choice.pcm) return word_at(m.source + 16 * row + 12);
  if (LARGE && choice.eight) return word_at(both.eight->tile + (row + 1) * TILE_8x8 + 20);
  return choice.four ? word_at(m.tile + (row + 1) * TILE + 16) : word_at(m.luma + 16 * row + 12);
}
DEVICE unsigned last_chroma_word(const Macroblock &m, Choice choice, int plane, int row) {
  return word_at((choice.pcm ? m.source + 256 : m.chroma) + 64 * plane + 8 * row + 4);
}

// Block 0..26 of its levels; null: none
template <bool LARGE>
DEVICE const short *levels_of(const Both &both, Choice choice, int block) {
  const Macroblock &m = *both.macroblock;
  const bool four = choice.four;
  if (LARGE && choice.eight && block <= LUMA_DC && (block < 16 || block == LUMA_DC))
    return block < 16 ? both.eight->levels + 16 * block : nullptr;
  if (block < 16) return four ? m.levels_4x4 + 16 * digit(PLACE_OF_BLOCK, block) : m.levels_16x16 + 16 * block;
  if (block == LUMA_DC) return four ? nullptr : m.levels_16x16 + 16 * 16;
  return m.levels_chroma + 16 * (block < LUMA_DC ? block - 16 : block - LUMA_DC + 7);
}

// Whether the macroblock becomes I_PCM; each warp computes it. LISTS: with scaling lists that are not flat. ranges: whether residual
// samples may leave their range
template <bool LARGE, bool LISTS>
DEVICE Choice choose(const Both &both, bool four, bool eight, bool ranges, int lane) {
  const Macroblock &m = *both.macroblock;
  Choice choice = {four, m.clipped[1] || (!four && m.clipped[0]), LARGE && eight};
  int all = (four ? m.all_4x4 : m.all_16x16) + m.all_chroma, sum = (four ? m.sum_4x4 : m.sum_16x16) + m.sum_chroma;
  if (LARGE && eight) {
    choice.pcm = m.clipped[1] || both.eight->clipped;
    all = both.eight->all + m.all_chroma;
    sum = both.eight->sum + m.sum_chroma;
  }
  if (ranges && (m.beyond_chroma || (LARGE && eight ? both.eight->beyond : four ? m.beyond_4x4 : m.beyond_16x16))) choice.pcm = true;
  // bits_at_most says no more than 41 a block, 7 a level and 2 a unit of magnitude, unless a level is clipped
  const bool many = all > FEW_LEVELS && 41 * N_LEVEL_BLOCKS + 7 * all + 2 * sum > PCM_BITS;
  if (LISTS || many) {
    const short *levels = lane < N_LEVEL_BLOCKS ? levels_of<LARGE>(both, choice, lane) : nullptr;
    int c[16];
#pragma unroll
    for (int i = 0; i < 16; i++) c[digit(ZIGZAG_4x4_DIGITS, i)] = levels ? levels[i] : 0;
    if (many && __reduce_add_sync(FULL_WARP, unsigned(bits_at_most(c))) > unsigned(PCM_BITS)) choice.pcm = true;
    if (LISTS) {  // with them levels of all blocks may be clipped
      int largest = 0;
#pragma unroll
      for (int i = 0; i < 16; i++) largest = max(largest, abs(c[i]));
      if (__any_sync(FULL_WARP, largest >= CLIPPED<ListScaling>)) choice.pcm = true;
    }
  }
  return choice;
}

// Publishes the data that the row below waits for
template <bool LARGE>
DEVICE void publish(const Both &both, Choice choice, Published *to, unsigned turn, int lane) {
  const Macroblock &m = *both.macroblock;
  if (lane >= PACKET) return;
  unsigned v = splat4(2);
  if (lane < 4) {
    const Sample *from = choice.pcm ? m.source + 16 * 15 : choice.four ? m.tile + 16 * TILE + 4 : m.luma + 16 * 15;
    if (LARGE && choice.eight && !choice.pcm) from = both.eight->tile + 16 * TILE_8x8 + 8;
    v = word_at(from + 4 * lane);
  } else if (lane < 8) {
    v = word_at((choice.pcm ? m.source + 256 : m.chroma) + 32 * (lane & 2) + 56 + 4 * (lane & 1));
  } else if (choice.four && !choice.pcm) {
    v = *reinterpret_cast<const unsigned *>(m.modes + 8 * 4 + 4);
  } else if (LARGE && choice.eight && !choice.pcm) {
    v = *reinterpret_cast<const unsigned *>(both.eight->modes + 8 * 4 + 4);
  }
  publish(to + lane, v, turn);
}

// Samples and modes for the neighbour to the right and for later stages
template <bool LARGE>
DEVICE void write_samples(const Picture &p, const Both &both, Choice choice, int mx, int my, int lane) {
  const Macroblock &m = *both.macroblock;
  const int row = lane >> 2, word = 4 * (lane & 3), stride = p.width / SUB_WIDTH_C;
#pragma unroll
  for (int i = 0; i < 16; i += 8) {
    const Sample *from = choice.pcm ? m.source + 16 * (row + i) : choice.four ? m.tile + (row + i + 1) * TILE + 4 : m.luma + 16 * (row + i);
    if (LARGE && choice.eight && !choice.pcm) from = both.eight->tile + (row + i + 1) * TILE_8x8 + 8;
    *reinterpret_cast<unsigned *>(p.rec_y + size_t(16 * my + row + i) * p.width + 16 * mx + word) = word_at(from + word);
  }
  const unsigned v = word_at((choice.pcm ? m.source + 256 : m.chroma) + 4 * lane);
  Sample *plane = lane & 16 ? p.rec_v : p.rec_u;
  *reinterpret_cast<unsigned *>(plane + size_t(MB_HEIGHT_C * my + (lane >> 1 & 7)) * stride + MB_WIDTH_C * mx + 4 * (lane & 1)) = v;
  if (lane < 4) {
    unsigned modes = choice.four && !choice.pcm ? *reinterpret_cast<const unsigned *>(m.modes + 8 * (lane + 1) + 4) : splat4(2);
    if (LARGE && choice.eight && !choice.pcm) modes = *reinterpret_cast<const unsigned *>(both.eight->modes + 8 * (lane + 1) + 4);
    reinterpret_cast<unsigned *>(p.intra4x4_mode + 16 * size_t(my * p.mb_width + mx))[lane] = modes;
  }
}

DEVICE uint4 load_source(const Picture &p, int mx, int my, int lane) {
  uint4 s = make_uint4(0, 0, 0, 0);
  if (lane < 16) return __ldg(reinterpret_cast<const uint4 *>(p.src_y + size_t(16 * my + lane) * p.width + 16 * mx));
  if (lane < 24) {  // two rows of eight
    const Sample *from = (lane < 20 ? p.src_u : p.src_v) + size_t(MB_HEIGHT_C * my + 2 * (lane & 3)) * (p.width / SUB_WIDTH_C) +
                         MB_WIDTH_C * mx;
    const uint2 a = __ldg(reinterpret_cast<const uint2 *>(from)), b = __ldg(reinterpret_cast<const uint2 *>(from + p.width / SUB_WIDTH_C));
    s = make_uint4(a.x, a.y, b.x, b.y);
  }
  return s;
}
// The next macroblock: source samples of each lane, and the given mode of block lane & 15
struct Coming {
  uint4 source;
  int mode;
};
template <bool GIVEN>
DEVICE Coming load(const Picture &p, int mx, int my, int lane) {
  if (mx >= p.mb_width) return {make_uint4(0, 0, 0, 0), 0};
  return {load_source(p, mx, my, lane), GIVEN ? __ldg(p.intra_modes + 16 * (size_t(my) * p.mb_width + mx) + (lane & 15)) : 0};
}
template <bool GIVEN, bool LARGE>
DEVICE void prepare(Macroblock &m, Macroblock8x8 *eight, Sample *origin, const Coming &coming, const Around &around, uint4 *plan, int lane, const LanePlace &lane_place) {
  if (lane < 24) reinterpret_cast<uint4 *>(m.source)[lane] = coming.source;
  if (GIVEN && lane < 16) m.modes[8 * (lane >> 2) + 12 + (lane & 3)] = static_cast<signed char>(coming.mode);
  __syncwarp();
  look_ahead(m, lane, !GIVEN);
  if constexpr (LARGE && !GIVEN) look_ahead_8x8(*eight, m.source, lane);
  if (LARGE && GIVEN && lane < 16) eight->modes[8 * (lane >> 2) + 12 + (lane & 3)] = static_cast<signed char>(coming.mode - AS_8x8);
  __syncwarp();
  if (GIVEN && coming.mode < AS_16x16) plan_4x4(m, origin, around, coming.mode, plan, lane, lane_place);
}

// All other data of a macroblock, for later stages
template <bool LARGE>
DEVICE void write_state(const Picture &p, const Both &both, Choice choice, size_t mb, int lane) {
  const Macroblock &m = *both.macroblock;
  const bool eight = LARGE && choice.eight, nxn = choice.four || eight;
  uint4 *to = reinterpret_cast<uint4 *>(p.levels + mb * N_LEVEL_BLOCKS * 16);
  for (int i = lane; i < 2 * N_LEVEL_BLOCKS; i += 32) {
    const short *from = choice.pcm ? nullptr : levels_of<LARGE>(both, choice, i >> 1);
    to[i] = from ? reinterpret_cast<const uint4 *>(from)[i & 1] : make_uint4(0, 0, 0, 0);
  }
  int count = 0;
  if (lane < 16) count = eight ? both.eight->count[lane] : choice.four ? m.count_4x4[lane] : m.count_16x16[lane];
  else if (lane < 24) count = m.count_chroma[lane - 16];
  const unsigned votes = __ballot_sync(FULL_WARP, lane < 16 && count);
  int luma = votes ? 15 : 0;
  if (nxn) luma = (votes & 0x33 ? 1 : 0) | (votes & 0xcc ? 2 : 0) | (votes & 0x3300 ? 4 : 0) | (votes & 0xcc00 ? 8 : 0);
  if (lane < 24) p.total_coeff[mb * 24 + lane] = choice.pcm ? 16 : uint8_t(count);
  if (lane == 0) {
    p.transform_8x8[mb] = eight && !choice.pcm;
    p.mb_type[mb] = choice.pcm ? I_PCM : eight ? I_8x8 : choice.four ? I_4x4 : I_16x16;
    p.intra16x16_mode[mb] = choice.pcm || nxn ? 0 : uint8_t(m.mode_16x16);
    p.intra_chroma_mode[mb] = choice.pcm ? 0 : uint8_t(m.mode_chroma);
    p.cbp[mb] = choice.pcm ? 47 : uint8_t(luma + 16 * m.cbp_chroma);
  }
}

// The intra macroblocks of a block's part of a row, in order; the same in each warp
struct Walk {
  const uint8_t *types;
  int mb_width, part, lane, base, runs;  // runs: that have begun before
  unsigned mask;
  bool inside;  // the column before `base` is of a run
  DEVICE int next() {
    while (!mask) {
      base += 32;
      if (base >= mb_width) return mb_width;
      const unsigned intra = __ballot_sync(FULL_WARP, base + lane < mb_width && types[base + lane] <= LAST_INTRA);
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

// The next macroblock, with its QP and the given modes of its first four blocks
struct Item {
  int mx, qp;
  unsigned modes;
};
template <bool GIVEN>
DEVICE Item take(Walk &walk, const Picture &p, size_t first) {
  Item item = {walk.next(), 0, 0};
  if (item.mx < p.mb_width) {
    item.qp = __ldg(p.qp + first + item.mx);
    if (GIVEN) item.modes = __ldg(reinterpret_cast<const unsigned *>(p.intra_modes + 16 * (first + item.mx)));
  }
  return item;
}
DEVICE bool is_4x4(const Item &item) { return (item.modes & 255) < AS_16x16; }
DEVICE bool is_8x8(const Item &item) { return (item.modes & 255) >= AS_8x8; }
// Of the words above, warp 0 of a P picture needs those above right for block 3 in a mode that points there alone, and no modes;
// for Intra_8x8, whose reference samples are filtered, in all modes of the block but three
template <bool GIVEN, bool LARGE>
DEVICE int words_wanted(const Item &item) {
  const unsigned last = item.modes >> 24;
  if (!GIVEN) return LARGE ? 8 : 7;
  if (LARGE && is_8x8(item)) return last == AS_8x8 + 1 || last == AS_8x8 + 6 || last == AS_8x8 + 8 ? 5 : 7;
  return last == DOWN_LEFT || last == VERTICAL_LEFT ? 6 : 5;
}

// The edge of Intra_4x4: words above, and `word` to the left of this lane's row
DEVICE void set_edge(Macroblock &m, const Above &above, unsigned word, int lane) {
  if (lane < 16) m.sides[4 + lane] = m.tile[(lane + 1) * TILE + 3] = Sample(word >> 24);
  if (lane < 4) m.sides[lane * SIDE + 3] = Sample(above.a >> 24);
  if (lane < 6) *reinterpret_cast<unsigned *>(m.tile + 4 * lane) = above.a;
}

// Shared by the threads of a block
struct Shared {
  Macroblock *buffers;  // the current macroblock, the one before (its edge, and still being written), the next
  uint4 *plans;         // of the current macroblock and the next
  Sample *chroma_left;
  Macroblock8x8 *eights;  // as buffers
  Weighing *weighing;     // of each warp
};
// The modes around a macroblock in an I picture: of the row above in one lane, of the column to the left in four
DEVICE void set_modes(signed char *modes, bool top, unsigned above, bool left, const signed char *before, int lane, int modes_lane) {
  if (lane == modes_lane) *reinterpret_cast<unsigned *>(modes + 4) = top ? above : ~0u;
  if (lane >= 16 && lane < 20) modes[(lane - 15) * 8 + 3] = !left ? -1 : before ? before[(lane - 15) * 8 + 7] : 2;
}

// A block's part of macroblock row `my`. packets: its published words; above: the words it waits for
template <bool GIVEN, bool LARGE, bool WEIGHED, bool BY_COST, class Scaling>
DEVICE void code_part(const Picture &p, const Scaling &scaling, const Shared &shared, int my, int part, const RowSlices &slices, const Row &above_row, Published *packets) {
  constexpr int AHEAD = GIVEN ? 1 : 3;  // the warp that prepares the next macroblock
  const int dead_zone = WEIGHED ? fraction_of(DEAD_ZONE_INTRA) : p.dead_zone;  // not used where levels are chosen: a register less
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mb_width = p.mb_width;
  const bool fifth = LARGE && !GIVEN && warp == 4;  // it takes the edge that warp 0 takes
  const int edge = fifth ? 0 : warp;
  const size_t first = size_t(my) * mb_width;
  Sample *const origin = reinterpret_cast<Sample *>(shared.buffers);
  const LanePlace lane_place = place_of(lane);
  const Trial trial = LARGE && !GIVEN ? trial_of(lane) : Trial{};
  Walk walk = {p.mb_type + first, mb_width, part, lane, -32, 0, 0, false};
  Item item = take<GIVEN>(walk, p, first), next = take<GIVEN>(walk, p, first);
  Coming coming = {make_uint4(0, 0, 0, 0), 0};
  if (warp == AHEAD && item.mx < mb_width) {
    const Around around = slices.around(item.mx);
    prepare<GIVEN, LARGE>(shared.buffers[0], shared.eights, origin, load<GIVEN>(p, item.mx, my, lane), around, shared.plans, lane, lane_place);
    coming = load<GIVEN>(p, next.mx, my, lane);
  }
  const bool codes = warp != 3 && !(GIVEN && warp == 1);
  const unsigned turn = above_row.turn;
  const Word none = {nullptr, Published(turn) << 32};
  Words words = {none, none, none};
  unsigned beside = 0;
  if (codes && item.mx < mb_width) {
    if (slices.around(item.mx).top) words = words_above<LARGE>(p, above_row, edge, lane, item.mx, my, words_wanted<GIVEN, LARGE>(item));
    beside = word_left(p, edge, lane, item.mx, my);
  }
  __syncthreads();
  Quantiser<Scaling> quantiser = {-1, 0, 0, 0, 0};
  Choice choice = {false, false, false};
  int before = -2;
  for (int n = 0; item.mx < mb_width; n++) {
    Macroblock &m = shared.buffers[n % 3], &previous = shared.buffers[(n + 2) % 3], &following = shared.buffers[(n + 1) % 3];
    Macroblock8x8 *const eight = LARGE ? shared.eights + n % 3 : nullptr, *const eight_before = LARGE ? shared.eights + (n + 2) % 3 : nullptr;
    Macroblock8x8 *const eight_after = LARGE ? shared.eights + (n + 1) % 3 : nullptr;
    const int mx = item.mx, qp_c = QP_CHROMA[clip3(0, 51, item.qp + p.chroma_qp_offset)];
    const Item after = take<GIVEN>(walk, p, first);
    if (codes) {
      const Around around = slices.around(mx);
      const bool adjacent = before == mx - 1;  // else the macroblock to the left is an inter one
      unsigned word = beside;
      if (adjacent) word = edge < 2 ? last_word<LARGE>({&previous, eight_before}, choice, lane & 15) : last_chroma_word(previous, choice, lane >> 3 & 1, lane & 7);
      const Above above = wait_for(words, edge, turn);
      if (next.mx < mb_width) {
        words = {none, none, none};
        if (slices.around(next.mx).top) words = words_above<LARGE>(p, above_row, edge, lane, next.mx, my, words_wanted<GIVEN, LARGE>(next));
        if (next.mx > mx + 1) beside = word_left(p, edge, lane, next.mx, my);
      }
      const signed char *modes_before = !adjacent || choice.pcm ? nullptr : choice.four ? previous.modes : nullptr;
      if (LARGE && adjacent && choice.eight && !choice.pcm) modes_before = eight_before->modes;
      Weighing *weighing = WEIGHED ? shared.weighing + warp : nullptr;
      if (WEIGHED) set_qp(*weighing, item.qp, p.slice, lane);
      if (warp == 2) {
        if (lane < 16) shared.chroma_left[lane] = Sample(word >> 24);
        __syncwarp();
        const Sample *left = shared.chroma_left + 8 * (lane >> 2 & 1);
        if constexpr (BY_COST) best_chroma(m, around, above, left, qp_c, item.qp, lane, *weighing);
        else code_chroma<WEIGHED>(scaling, m, around, above, left, qp_c, item.qp, lane, weighing);
      } else if (LARGE && (fifth || (GIVEN && is_8x8(item)))) {
        if constexpr (LARGE) {
          set_edge_8x8(*eight, above.a, word, lane);
          if (!GIVEN) set_modes(eight->modes, around.top, above.a, around.left, modes_before, lane, 7);
          __syncwarp();
          if constexpr (GIVEN) code_given_8x8(scaling, *eight, m.source, around, item.qp, dead_zone, lane);
          else if (!around.corner && around.left && around.top) eight->cost = NO_LIMIT;  // the edge is filtered otherwise
          else if constexpr (BY_COST) best_8x8(*eight, m.source, around, item.qp, trial, lane, *weighing);
          else code_8x8<WEIGHED>(scaling, *eight, m.source, around, &m.limit, item.qp, dead_zone, trial, lane, weighing);
        }
      } else if (GIVEN && !is_4x4(item)) {
        const Above columns = {__shfl_sync(FULL_WARP, above.a, 1 + (lane & 3)), __shfl_sync(FULL_WARP, above.a, 0), 0};
        code_given_16x16(scaling, m, around, columns, int(word >> 24), int(item.modes & 3), item.qp, dead_zone, lane, lane_place.scan);
      } else if (warp == 0) {
        set_edge(m, above, word, lane);
        if (!GIVEN) set_modes(m.modes, around.top, above.a, around.left, modes_before, lane, LARGE ? 7 : 6);
        __syncwarp();
        if (item.qp != quantiser.qp) quantiser = quantiser_of(scaling, item.qp, dead_zone, lane);
        if constexpr (GIVEN) code_given_4x4(m, origin, shared.plans + PLAN * (n & 1), quantiser, lane, lane_place);
        else if constexpr (BY_COST) best_4x4(m, around, quantiser, lane, lane_place, *weighing);
        else code_4x4<WEIGHED>(scaling, m, around, quantiser, LAMBDA[item.qp], lane, lane_place, weighing);
      } else {
        code_16x16<WEIGHED>(scaling, m, around, above, int(word >> 24), item.qp, dead_zone, LAMBDA[item.qp], lane, lane_place.scan, weighing);
        if constexpr (BY_COST) find_cost_16x16(m, item.qp, lane, weighing->bits);
      }
    }
    if (warp == AHEAD && next.mx < mb_width) {
      const Around around = slices.around(next.mx);
      prepare<GIVEN, LARGE>(following, eight_after, origin, coming, around, shared.plans + PLAN * (n + 1 & 1), lane, lane_place);
      coming = load<GIVEN>(p, after.mx, my, lane);
      if (lane == 0) following.limit = NO_LIMIT;
    }
    __syncthreads();
    const Both both = {&m, eight};
    bool as_4x4 = GIVEN ? is_4x4(item) : m.cost_4x4 < m.cost_16x16, as_8x8 = LARGE && GIVEN && is_8x8(item);
    if (LARGE && !GIVEN) {
      as_4x4 = m.cost_4x4 < min(eight->cost, m.cost_16x16);
      as_8x8 = !as_4x4 && eight->cost < m.cost_16x16;
    }
    choice = choose<LARGE, Scaling::ANY>(both, as_4x4, as_8x8, Scaling::ANY || max(item.qp, qp_c) >= RANGE_QP, lane);
    if (warp == 3) {
      publish<LARGE>(both, choice, packets + PACKET * mx, turn, lane);
      write_samples<LARGE>(p, both, choice, mx, my, lane);
      write_state<LARGE>(p, both, choice, first + mx, lane);
    }
    before = mx;
    item = next;
    next = after;
  }
}

// Planes and state arrays as the launcher says; macroblock rows [row0, row0 + gridDim.x / PARTS). progress: 0 before the first
// launch; counters of tickets, launches and blocks that have ended, then (PACKETS) what each intra macroblock of these rows
// publishes, with the number of the launch, so that it need not be cleared.
// The kernels: `intra` for I pictures, `intra_fixed_modes` for P pictures; the same with the 8x8 transform. WEIGHED: levels of I pictures
// are chosen by the trellis. BY_COST: so are those of P pictures, and types and modes of both by true cost (intra_by_cost.cuh).
// Scaling: of scaling lists, see transform.cuh.
template <bool GIVEN, bool LARGE, bool WEIGHED, bool BY_COST, class Scaling>
DEVICE void code_rows(const Picture &p, const Scaling &scaling, const int *__restrict__ slice_first_mb, int row0, int *progress) {
  SHARED(Macroblock, buffers, 3);
  SHARED(uint4, plans, GIVEN ? 2 * PLAN : 1);
  SHARED(Sample, chroma_left, 16);
  SHARED(int, ticket, 2);
  constexpr int N = THREADS<GIVEN, LARGE>;
  Macroblock8x8 *eights = nullptr;
  if constexpr (LARGE) {
    SHARED(Macroblock8x8, memory, 3);
    eights = memory;
  }
  Weighing *weighing = nullptr;
  if constexpr (WEIGHED) {
    SHARED(Weighing, memory, N / 32);
    weighing = memory;
    if (threadIdx.x < N / 32) weighing[threadIdx.x].qp = -1;
  }
  if (threadIdx.x == 0) {
    ticket[0] = atomicAdd(progress, 1);
    ticket[1] = progress[TURN] + 1;
  }
  for (int i = threadIdx.x; i < 3 * 2 * 16; i += N) buffers[i >> 5].levels_chroma[8 * 16 + (i & 31)] = 0;
  if (threadIdx.x < 3) {
    buffers[threadIdx.x].grey = splat4(SAMPLE_MIDDLE);
    buffers[threadIdx.x].limit = NO_LIMIT;
  }
  __syncthreads();
  const unsigned turn = unsigned(ticket[1]);
  const int row = *ticket / PARTS, part = *ticket % PARTS, my = row0 + row, mb_width = p.mb_width;
  Published *packets = reinterpret_cast<Published *>(progress + PACKETS) + size_t(PACKET) * row * mb_width;
  const size_t first = size_t(my) * mb_width;
  const RowSlices slices = slices_of_row(slice_first_mb, int(first), mb_width);
  const Row above = {p.mb_type + first - mb_width, p.intra4x4_mode + 16 * (first - mb_width),
                     row ? packets - size_t(PACKET) * mb_width : nullptr, turn};
  for (int mx = part * N + threadIdx.x; mx < mb_width; mx += PARTS * N)
    if (p.mb_type[first + mx] > LAST_INTRA) {
      reinterpret_cast<uint4 *>(p.intra4x4_mode)[first + mx] = make_uint4(splat4(2), splat4(2), splat4(2), splat4(2));
      p.intra16x16_mode[first + mx] = 0;
      p.intra_chroma_mode[first + mx] = 0;
    }
  code_part<GIVEN, LARGE, WEIGHED, BY_COST>(p, scaling, {buffers, plans, chroma_left, eights, weighing}, my, part, slices, above, packets);
  if (threadIdx.x == 0 && atomicAdd(progress + ENDED, 1) == int(gridDim.x) - 1) {  // no block takes a ticket any more
    progress[0] = progress[ENDED] = 0;
    progress[TURN] = int(turn);
  }
}
#define NO_MORE
#define SCALING , const short *__restrict__ scaling
#define INTRA(name, given, large, weighed, by_cost, scaling, more, resident)                                                                                                     \
  extern "C" __global__ void __launch_bounds__(THREADS<given, large>, resident) name(const Sample *__restrict__ src_y, const Sample *__restrict__ src_u, \
      const Sample *__restrict__ src_v, const int *__restrict__ slice_first_mb, int chroma_qp_offset, int dead_zone, int slice,              \
      const uint8_t *__restrict__ intra_modes, int row0, int mb_width, uint8_t *mb_type, signed char *intra4x4_mode,               \
      uint8_t *intra16x16_mode, uint8_t *intra_chroma_mode, const uint8_t *__restrict__ qp, Sample *rec_y, Sample *rec_u,          \
      Sample *rec_v, short *levels, uint8_t *total_coeff, uint8_t *transform_8x8, uint8_t *cbp, int *progress more) {                                           \
    wait_for_the_kernel_before();                                                                                                 \
    const Picture p = {16 * mb_width, mb_width, chroma_qp_offset, dead_zone, slice, src_y, src_u, src_v, intra_modes, qp, mb_type,              \
                       intra16x16_mode, intra_chroma_mode, rec_y, rec_u, rec_v, total_coeff, transform_8x8, cbp, intra4x4_mode, levels};          \
    code_rows<given, large, weighed, by_cost>(p, scaling, slice_first_mb, row0, progress);                                                                           \
  }
INTRA(intra, false, false, false, false, FlatScaling{}, NO_MORE, RESIDENT)
INTRA(intra_fixed_modes, true, false, false, false, FlatScaling{}, NO_MORE, RESIDENT)
INTRA(intra_8x8, false, true, false, false, FlatScaling{}, NO_MORE, 2)
INTRA(intra_fixed_modes_8x8, true, true, false, false, FlatScaling{}, NO_MORE, 3)
INTRA(intra_trellis, false, false, true, false, FlatScaling{}, NO_MORE, 3)
INTRA(intra_8x8_trellis, false, true, true, false, FlatScaling{}, NO_MORE, 1)
INTRA(intra_cost, false, false, true, true, FlatScaling{}, NO_MORE, 3)
INTRA(intra_8x8_cost, false, true, true, true, FlatScaling{}, NO_MORE, 1)
INTRA(intra_lists, false, false, false, false, (ListScaling{scaling, 0}), SCALING, 2)
INTRA(intra_fixed_modes_lists, true, false, false, false, (ListScaling{scaling, 0}), SCALING, 2)
INTRA(intra_8x8_lists, false, true, false, false, (ListScaling{scaling, 0}), SCALING, 2)
INTRA(intra_fixed_modes_8x8_lists, true, true, false, false, (ListScaling{scaling, 0}), SCALING, 2)
INTRA(intra_trellis_lists, false, false, true, false, (ListScaling{scaling, 0}), SCALING, 2)
INTRA(intra_8x8_trellis_lists, false, true, true, false, (ListScaling{scaling, 0}), SCALING, 1)
