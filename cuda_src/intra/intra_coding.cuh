// 8.3, 8.5: one warp chooses the modes of an intra macroblock and codes it: as Intra_4x4, as Intra_16x16, its chroma.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/common.cuh"
#include "decisions/intra.cuh"
#include "decisions/quantise.cuh"
#include "costs/bit_costs.cuh"
#include "intra/intra_prediction.cuh"
#include "quantiser/trellis.cuh"

constexpr int TILE = 24;  // bytes a row: corner in 3, the macroblock in 4..19, above right in 20..23
constexpr int SIDE = 20;  // bytes a column of blocks: what is left of it from the row above on, from byte 3 on
constexpr int NO_LIMIT = 1 << 30;

// One macroblock in shared memory
struct alignas(16) Macroblock {
  Sample predicted[32];           // two blocks in work, see intra_fixed_modes.cuh
  Sample source[384];             // 16 rows of 16, Cb 8 rows of 8, Cr
  Transformed transformed[16];    // of the source's blocks, raster; and its coefficients
  short coefficients[16 * 16];
  Sample tile[17 * TILE + 8];     // as Intra_4x4, with the samples above
  Sample luma[256], chroma[128];  // as Intra_16x16; chroma
  short levels_4x4[18 * 16], levels_16x16[17 * 16], levels_chroma[10 * 16];
  uint8_t count_4x4[16], count_16x16[16], count_chroma[8];
  Sample sides[5 * SIDE];    // of the columns of blocks of Intra_4x4; the last: the macroblock's right column
  signed char modes[5 * 8];  // Intra_4x4 modes, (by + 1) * 8 + bx + 4; with those around, -1: not available
  int cost_4x4, cost_16x16, mode_16x16, mode_chroma, cbp_chroma, clipped[2], beyond_4x4, beyond_16x16, beyond_chroma;  // beyond: see is_beyond
  int all_4x4, all_16x16, all_chroma;  // levels that are not 0
  int sum_4x4, sum_16x16, sum_chroma;  // of the levels' magnitudes
  unsigned grey;  // four samples of SAMPLE_MIDDLE
  int limit;  // cost of Intra_16x16 once it is known
};
// Samples and modes above the macroblock, as each warp wants them
struct Above {
  unsigned a, b, c;
};

DEVICE unsigned word_at(const Sample *p) { return *reinterpret_cast<const unsigned *>(p); }

// Source lanes of inverse_pass: values 0 and 2, and of 1 and 3 the halved one and the other
struct Butterfly {
  int first, third, half, whole, sign_third, sign_half, sign_whole;
};
// What a lane knows for good: it stands for mode lane & 15 while modes are tried, for sample or coefficient (x, y) after that
struct LanePlace {
  int x, y, scan, needs;     // needs: 1 the left column, 2 the row above, 4: no mode
  unsigned across, down[4];  // weights of the forward transform
  Butterfly row, column;     // of the inverse transform
  unsigned words, bytes[2], late;  // how its mode makes its rows, see RECIPES
};
// The rows of each mode from words of the sixteen that lanes hold: the edge s in 0..3, filtered f in 4..7, h in 8..11 (see
// filter_edge), DC in 12. Digit 2 i and 2 i + 1: of which words row i is made; 16 bits each: of which bytes of the two. In mode
// 6 the upper halves of rows 1 and 2 are the lower halves of rows 0 and 1.
struct Recipe {
  unsigned words, bytes[2];
};
__constant__ Recipe RECIPES[9] = {
    {0x21212121, {0x54325432, 0x54325432}}, {0x00000011, {0x33330000, 0x11112222}}, {0xcccccccc, {0x32103210, 0x32103210}},
    {0x76766665, {0x32106543, 0x54324321}}, {0x54545565, {0x32104321, 0x54326543}}, {0x455965a9, {0x43214321, 0x32173214}},
    {0x48485859, {0x00437650, 0x72610072}}, {0x66a965a9, {0x65435432, 0x32106543}}, {0x48484848, {0x51626273, 0x00000051}},
};
// A value that the compiler would otherwise recompute at each use
DEVICE int kept(int v, int lane) { return __shfl_sync(FULL_WARP, v, lane); }
DEVICE unsigned forward_weights(int i) { return i == 0 ? 0x01010101u : i == 1 ? 0xfeff0102u : i == 2 ? 0x01ffff01u : 0xff02fe01u; }
DEVICE Butterfly butterfly_of(int i, int first, int step, int lane) {
  const bool outer = i == 0 || i == 3;
  const int one = kept(first + step, lane), three = kept(first + 3 * step, lane), sign = kept(i < 2 ? 1 : -1, lane);
  const int third = kept(first + 2 * step, lane), same = kept(outer ? 1 : -1, lane), sign_whole = kept(outer ? sign : -sign, lane);
  return {first, third, outer ? three : one, outer ? one : three, same, sign, sign_whole};
}
DEVICE LanePlace place_of(int lane) {
  LanePlace s;
  const int j = lane & 15;
  s.x = j & 3;
  s.y = j >> 2;
  s.across = unsigned(kept(int(forward_weights(s.x)), lane));
#pragma unroll
  for (int i = 0; i < 4; i++) s.down[i] = unsigned(kept(static_cast<signed char>(forward_weights(s.y) >> (8 * i)), lane));
  int scan = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) scan = digit(ZIGZAG_4x4_DIGITS, i) == j ? i : scan;
  s.scan = kept(scan, lane);
  s.row = butterfly_of(s.x, kept(lane & 28, lane), 1, lane);
  s.column = butterfly_of(s.y, kept(lane & 19, lane), 4, lane);
  const int both = NEEDS_ALL >> j & 1;
  const Recipe recipe = RECIPES[min(j, 8)];
  s.words = recipe.words;
  s.bytes[0] = recipe.bytes[0];
  s.bytes[1] = recipe.bytes[1];
  s.late = unsigned(kept(j == 6 ? 0x5410 : 0x3210, lane));
  s.needs = kept((NEEDS_LEFT >> j & 1) | both | (NEEDS_TOP >> j & 1 | both) << 1 | (j > 8) << 2, lane);
  return s;
}

// Quantisation and scaling at a lane's position
template <class Scaling>
struct Quantiser {
  int qp, factor, scale, shift, rounding;
  DEVICE int scaled(int level) const { return Scaling::ANY ? shifted(level * scale, qp) : level * scale; }  // 8.5.12.1
};
DEVICE Quantiser<ListScaling> quantiser_of(const ListScaling &all_scaling, int qp, int dead_zone, int lane) {
  const ListScaling scaling = of_block(all_scaling, 0, true, 0);
  const int shift = kept(15 + qp / 6 - scaling.finer(), lane), offset = 16 * (lane >> 2 & 3) + (lane & 3);
  return {qp, __ldg(scaling.multipliers(qp).from + offset), __ldg(scaling.factors(qp).from + offset), shift, rounding_of(dead_zone, shift)};
}
DEVICE Quantiser<FlatScaling> quantiser_of(FlatScaling, int qp, int dead_zone, int lane) {
  const int position = position_class(lane & 15), column = position == 0 ? 0 : position == 1 ? 5 : 1;
  const int shift = kept(15 + qp / 6, lane);
  return {qp, QUANT_MF[qp % 6][column], NORM_ADJUST_4x4[qp % 6][column] << (qp / 6), shift, rounding_of(dead_zone, shift)};
}

// 8.5.12.2 for a row or a column, its value i in lane i: even + odd, or even - odd
DEVICE int inverse_pass(int v, const Butterfly &b) {
  const int half = __shfl_sync(FULL_WARP, v, b.half) >> 1, first = __shfl_sync(FULL_WARP, v, b.first);
  const int third = __shfl_sync(FULL_WARP, v, b.third), whole = __shfl_sync(FULL_WARP, v, b.whole);
  return first + b.sign_third * third + b.sign_half * half + b.sign_whole * whole;
}

// Data of a macroblock's blocks that does not depend on neighbours, with or without mode choice; one warp, a lane a block
DEVICE void look_ahead(Macroblock &m, int lane, bool choosing) {
  if (lane >= 16) return;
  unsigned rows[4];
  int v[16];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    rows[i] = *reinterpret_cast<const unsigned *>(m.source + 64 * (lane >> 2) + 4 * (lane & 3) + 16 * i);
#pragma unroll
    for (int x = 0; x < 4; x++) v[4 * i + x] = byte_of(rows[i], x);
  }
  if (choosing) m.transformed[lane] = transformed(rows);
  forward_4x4(v);
#pragma unroll
  for (int i = 0; i < 16; i += 2)
    *reinterpret_cast<unsigned *>(m.coefficients + 16 * lane + i) = (unsigned(v[i]) & 0xffff) | unsigned(v[i + 1]) << 16;
}

// The ten steps of an Intra_4x4 macroblock: which block (raster) the lane's half of the warp has in each; where its levels
// are: the first half's by step, then the second's of steps 2..7
DEVICE int block_of(int step, int lane) {
  return int(0xfeba763210ull >> (4 * step) & 15) + (lane & 16 && step >= 2 && step < 8 ? 2 : 0);
}
DEVICE int levels_at(int step, int lane) { return 16 * (step + (lane >> 1 & 8)); }
constexpr unsigned long long PLACE_OF_BLOCK = 0x9876fedc5432ba10ull;   // digit luma4x4BlkIdx: of its levels
constexpr unsigned long long PLACE_OF_RASTER = 0x98fe76dc54ba3210ull;  // digit of the raster number

// Of a block: its place (raster), its source, the source's coefficient of this lane
struct Ahead {
  int k, coefficient;
  Transformed source;
};
DEVICE Ahead ahead_of(const Macroblock &m, int step, int lane) {
  const int k = block_of(step, lane);
  return {k, m.coefficients[16 * k + (lane & 15)], m.transformed[k]};
}

// The rows of the lane's mode, from the edge s
DEVICE void predict_mode(const LanePlace &lane_place, const unsigned *s, int dc, int lane, unsigned *row) {
  const bool odd = lane & 1, high = lane & 2;  // a lane filters word lane & 3
  const unsigned at = high ? (odd ? s[3] : s[2]) : odd ? s[1] : s[0], next = high ? (odd ? 0 : s[3]) : odd ? s[2] : s[1];
  const unsigned last = high ? (odd ? s[2] : s[1]) : s[0];
  const unsigned before = __byte_perm(last, at, 0x6543), after = __byte_perm(at, next, 0x4321);
  const unsigned f = average4(average4_down(before, after), at), h = average4(at, after);
  const unsigned word = lane & 8 ? (lane & 4 ? splat4(dc) : h) : lane & 4 ? f : at;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned a = __shfl_sync(FULL_WARP, word, int(lane_place.words >> (8 * i)), 16);
    const unsigned b = __shfl_sync(FULL_WARP, word, int(lane_place.words >> (8 * i + 4)), 16);
    row[i] = __byte_perm(a, b, lane_place.bytes[i >> 1] >> (16 * (i & 1)) & 0xffff);
  }
  row[1] = __byte_perm(row[1], row[0], lane_place.late);
  row[2] = __byte_perm(row[2], row[1], lane_place.late);
}

// The same of a block in m.tile, with `side` to the left of it
DEVICE void predict_step(const Sample *block, const Sample *side, bool has_left, bool has_top, bool has_right, const LanePlace &lane_place, int lane,
                         unsigned *row) {
  const unsigned corner = word_at(side), left = word_at(side + 4), above = word_at(block - TILE), over = word_at(block - TILE + 4);
  const unsigned beyond = has_right ? over : __byte_perm(above, 0, 0x3333);
  unsigned s[4];
  s[0] = __byte_perm(left, 0, 0x1233);
  s[1] = __byte_perm(__byte_perm(left, corner, 0x4470), above, 0x5410);
  s[2] = unaligned(above, beyond, 2);
  s[3] = __byte_perm(beyond, 0, 0x3332);
  const unsigned ones = 0x01010101u, sum = __dp4a(has_left ? left : 0u, ones, __dp4a(has_top ? above : 0u, ones, 0u));
  const int dc = has_left && has_top ? int(sum + 4) >> 3 : has_left || has_top ? int(sum + 2) >> 2 : SAMPLE_MIDDLE;
  predict_mode(lane_place, s, dc, lane, row);
}

// 8.3.1, 8.5.1: chooses and codes the blocks of an Intra_4x4 macroblock in ten steps, each half of the warp a block (block
// k and block k + 2 from the third step to the eighth): a block follows those to its left, above and above right. Ends
// early when the cost reaches that of Intra_16x16.
// WEIGHED: levels are chosen by the trellis, by what `w` has.
template <bool WEIGHED, class Scaling>
DEVICE void code_4x4(const Scaling &scaling, Macroblock &m, const Around &around, const Quantiser<Scaling> &quantiser, int lam, int lane, const LanePlace &lane_place, Weighing *weighing) {
  const int j = lane & 15, half = lane >> 4, at = lane_place.y * TILE + lane_place.x;
  // blocks, as bits, that have a left column, a row above, samples above right; blocks in which this lane's mode is usable
  const int lefts = kept(around.left ? 0xffff : 0xeeee, lane), tops = kept(around.top ? 0xffff : 0xfff0, lane);
  const int rights = kept(ABOVE_RIGHT_INSIDE | (around.top ? 7 : 0) | (around.right ? 8 : 0), lane);
  const int usable = usable_in(around, lefts, tops, lane_place.needs);
  int cost = lam * BITS_4x4, limit = NO_LIMIT, magnitudes = 0, all = 0, largest = 0;
  Ahead next = ahead_of(m, 0, lane);
#pragma unroll 1
  for (int step = 0; step < 10 && cost < limit; step++) {
    const Ahead now = next;
    const int k = now.k, by = k >> 2, bx = k & 3;
    Sample *block = m.tile + (4 * by + 1) * TILE + 4 + 4 * bx, *side = m.sides + bx * SIDE + 4 * by;
    const int a = m.modes[(by + 1) * 8 + bx + 3], b = m.modes[by * 8 + bx + 4], least = min(a, b), predicted = least < 0 ? 2 : least;
    limit = lane == 0 ? atomicMin(&m.limit, NO_LIMIT) : 0;
    unsigned row[4];
    predict_step(block, side, lefts >> k & 1, tops >> k & 1, rights >> k & 1, lane_place, lane, row);
    unsigned key = (satd_4x4(now.source, row) + unsigned(lam * mode_4x4_bits(j == predicted))) << 4 | unsigned(j);
    if (!(usable >> k & 1)) key = ~0u;
    const unsigned best_0 = __reduce_min_sync(FULL_WARP, half ? ~0u : key), best_1 = __reduce_min_sync(FULL_WARP, half ? key : ~0u);
    const int mode = int((half ? best_1 : best_0) & 15), chosen = (lane & 16) + mode;
    const bool two = step >= 2 && step < 8, active = !half || two;
    cost += int(best_0 >> 4) + (two ? int(best_1 >> 4) : 0);
    // from here on each lane has one coefficient or sample
    unsigned word = 0;
    int c = now.coefficient;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const unsigned r = __shfl_sync(FULL_WARP, row[i], chosen);
      word = lane_place.y == i ? r : word;
      c -= int(lane_place.down[i]) * dot4(r, lane_place.across, 0);
    }
    int level;
    if constexpr (WEIGHED) {
      uint16_t *ratios = weighing->ratios + 16 * half;
      level = (abs(c) * quantiser.factor + (1 << (quantiser.shift - 1))) >> quantiser.shift;
      if (Scaling::ANY) level = min(level, MAX_LEVEL);
      ratios[lane_place.scan] = uint16_t(min(abs(c) * quantiser.factor >> (quantiser.shift - 6), LARGEST_RATIO));
      __syncwarp();
      const unsigned path = choose_levels(ratios, 1, 16, weighing->bits, contexts_4x4(weighing->bits, false),
                                          of_block(scaling, 0, true, 0).cost(TRELLIS_INTRA, 0), j == 0 && active);
      level -= __shfl_sync(FULL_WARP, path, lane & 16) >> lane_place.scan & 1;
    } else {
      level = (abs(c) * quantiser.factor + quantiser.rounding) >> quantiser.shift;
      if (Scaling::ANY) level = min(level, MAX_LEVEL);
    }
    magnitudes += active ? level : 0;
    all += active && level;
    level = c < 0 ? -level : level;
    const unsigned coded = __ballot_sync(FULL_WARP, level != 0) >> (16 * half) & 0xffff;
    c = inverse_pass(quantiser.scaled(level), lane_place.row);
    next = ahead_of(m, min(step + 1, 9), lane);
    c = inverse_pass(c, lane_place.column);
    limit = __shfl_sync(FULL_WARP, limit, 0);
    if (active) {
      const int residual = (c + 32) >> 6;
      largest = max(largest, abs(residual));
      const Sample sample = Sample(clip1(byte_of(word, lane_place.x) + residual));
      block[at] = sample;
      if (lane_place.x == 3) side[SIDE + 4 + lane_place.y] = sample;
      m.levels_4x4[levels_at(step, lane) + lane_place.scan] = short(level);
      if (j == 0) {
        m.modes[(by + 1) * 8 + bx + 4] = static_cast<signed char>(mode);
        m.count_4x4[k] = uint8_t(__popc(coded));
      }
    }
    __syncwarp();
  }
  magnitudes = __reduce_add_sync(FULL_WARP, magnitudes);
  all = __reduce_add_sync(FULL_WARP, all);
  const bool beyond = __any_sync(FULL_WARP, largest > MOST_RESIDUAL);
  if (lane == 0) {
    m.beyond_4x4 = beyond;
    m.cost_4x4 = cost;
    m.all_4x4 = all;
    m.sum_4x4 = magnitudes;
  }
}

// 8.5.10: the 4x4 Hadamard transform, value i in lane i of each half
DEVICE int hadamard_4x4(int v, int lane) {
#pragma unroll
  for (int step = 1; step <= 4; step *= 4) {
    const int first = lane & ~(3 * step), i = lane / step & 3;
    const int a = __shfl_sync(FULL_WARP, v, first), b = __shfl_sync(FULL_WARP, v, first + step);
    const int c = __shfl_sync(FULL_WARP, v, first + 2 * step), d = __shfl_sync(FULL_WARP, v, first + 3 * step);
    const int s = i < 2 ? a + b : a - b, t = i == 0 || i == 3 ? c + d : -c - d;
    v = i < 2 ? s + t : i == 2 ? s - (c - d) : s + (c - d);
  }
  return v;
}

// 8.5.2: codes an Intra_16x16 macroblock, a lane a 4x4 block k (both halves of the warp the same one): its source, its prediction
template <bool WEIGHED, class Scaling>
DEVICE void code_predicted_16x16(const Scaling &all_scaling, Macroblock &m, const unsigned *source_rows, const unsigned *predicted, int qp, int dead_zone, int lane, int scan,
                                 Weighing *weighing) {
  const int k = lane & 15, bx = k & 3, by = k >> 2;
  const auto scaling = of_block(all_scaling, 0, true, 0);
  int v[16];
#pragma unroll
  for (int p = 0; p < 16; p++) v[p] = byte_of(source_rows[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
  forward_4x4(v);
  int dc = hadamard_4x4(v[0], lane);
  dc = dc < 0 ? -((1 - dc) >> 1) : (dc + 1) >> 1;
  if constexpr (WEIGHED) {  // lane 16: the DC block
    if (lane < 16) {
      store_ratios(scaling, v, qp, weighing->ratios + lane);
      weighing->ratios[32 * scan + 16] = uint16_t(dc_ratio(scaling, dc, qp));
    }
    __syncwarp();
    const BlockContexts at = contexts_16x16(weighing->bits, lane < 16);
    unsigned path = choose_levels(weighing->ratios + (lane < 16 ? 32 + lane : 16), 32, lane < 16 ? 15 : 16, weighing->bits, at,
                                  lane < 16 ? scaling.cost(TRELLIS_INTRA, 1) : scaling.dc_cost(TRELLIS_INTRA), lane <= 16);
    const bool dc_lower = __shfl_sync(FULL_WARP, path, 16) >> scan & 1;
    path = __shfl_sync(FULL_WARP, path, k);
    dc = quantise_dc(scaling, dc, qp, fraction_of(DEAD_ZONE_NEAREST));
    if (dc_lower) dc -= dc > 0 ? 1 : -1;
    v[0] = 0;
    quantise_lowered(scaling, v, qp, path << 1);
  } else {
    dc = quantise_dc(scaling, dc, qp, dead_zone);
    quantise_4x4(scaling, v, qp, dead_zone, true);
  }
  const unsigned dc_coded = __ballot_sync(FULL_WARP, dc) & 0xffff, clipped = __ballot_sync(FULL_WARP, abs(dc) >= MAX_LEVEL);
  const int count = count_levels(v), all = __reduce_add_sync(FULL_WARP, lane < 16 ? count : 0) + __popc(dc_coded);
  if (lane < 16) {
    store_levels(m.levels_16x16 + 16 * digit(RASTER_TO_BLOCK_DIGITS, k), v);
    m.levels_16x16[16 * 16 + scan] = short(dc);
    m.count_16x16[k] = uint8_t(count);
  }
  const int sum = __reduce_add_sync(FULL_WARP, lane < 16 ? sum_of_magnitudes(v) + abs(dc) : 0);
  const int factor = scaling.dc_scale(qp), scaled = hadamard_4x4(dc, lane) * factor;
  scale_4x4(scaling, v, qp);
  v[0] = qp >= 36 ? scaled << (qp / 6 - 6) : (scaled + (1 << (5 - qp / 6))) >> (6 - qp / 6);
  if (lane < 16) reconstruct(v, predicted, m.luma + 64 * by + 4 * bx, 16);
  const bool beyond = __any_sync(FULL_WARP, lane < 16 && is_beyond(v));
  if (lane == 0) {
    m.beyond_16x16 = beyond;
    m.all_16x16 = all;
    m.sum_16x16 = sum;
    m.clipped[0] = clipped != 0;
  }
}

// 8.3.3, 8.5.2: chooses the mode of an Intra_16x16 macroblock and codes it. left: of lane k the sample to the left of row k.
template <bool WEIGHED, class Scaling>
DEVICE void code_16x16(const Scaling &scaling, Macroblock &m, const Around &around, const Above &above, int left, int qp, int dead_zone, int lam, int lane, int scan,
                       Weighing *weighing) {
  const int k = lane & 15, bx = k & 3, by = k >> 2;
  const bool second = lane & 16;
  unsigned source_rows[4];
#pragma unroll
  for (int i = 0; i < 4; i++) source_rows[i] = word_at(m.source + 64 * by + 16 * i + 4 * bx);
  const int t = around.top ? byte_of(__shfl_sync(FULL_WARP, above.a, k >> 2), k & 3) : 0, l = around.left ? left : 0;
  const int mean = mean_16x16(around.left, around.top, l, t);
  // the first half of the warp tries vertical and DC, the second horizontal and plane
  unsigned first_rows[4], second_rows[4];
  plane_16x16(l, t, int(above.b >> 24), lane, second_rows);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned side = splat4(__shfl_sync(FULL_WARP, l, 4 * by + i));
    first_rows[i] = second ? side : above.a;
    if (!second) second_rows[i] = splat4(mean);
  }
  const unsigned one = unsigned(sum_16(int(satd_4x4(source_rows, first_rows))) + lam * i_frame_mode_bits(1, 0)) << 2 | unsigned(second);
  const unsigned two = unsigned(sum_16(int(satd_4x4(source_rows, second_rows))) + lam * i_frame_mode_bits(1, 2)) << 2 | 2 | unsigned(second);
  unsigned best = ~0u;
  if (second ? around.left : around.top) best = one;
  if (!second || around.corner) best = min(best, two);
  best = min(best, __shfl_xor_sync(FULL_WARP, best, 16));
  if (lane == 0) atomicMin(&m.limit, int(best >> 2));
  const int mode = int(best & 3);
  unsigned predicted[4];
#pragma unroll
  for (int i = 0; i < 4; i++) predicted[i] = __shfl_sync(FULL_WARP, mode & 2 ? second_rows[i] : first_rows[i], k + 16 * (mode & 1));
  if (lane == 0) {
    m.cost_16x16 = int(best >> 2);
    m.mode_16x16 = mode;
  }
  code_predicted_16x16<WEIGHED>(scaling, m, source_rows, predicted, qp, dead_zone, lane, scan, weighing);
}

// 8.3.4: the rows of a 4x4 block of chroma: mode lane >> 3, block lane & 3 of plane lane >> 2 & 1. left: the eight samples to the left of
// this lane's plane.
DEVICE void predict_chroma(const Around &around, const Above &above, const Sample *left, int lane, unsigned *row) {
  const int q = lane & 3, bx = q & 1, by = q >> 1;
  const bool use_top = around.top && !(q == 2 && around.left);
  const bool use_left = around.left && !(q == 1 && around.top);
  const unsigned sides[2] = {word_at(left), word_at(left + 4)};
  const unsigned over = bx ? above.b : above.a, side = by ? sides[1] : sides[0];
  const int total = int(__dp4a(use_top ? over : 0u, 0x01010101u, __dp4a(use_left ? side : 0u, 0x01010101u, 0u)));
  const int mean = use_top && use_left ? (total + 4) >> 3 : use_top || use_left ? (total + 2) >> 2 : SAMPLE_MIDDLE;
  const int corner = int(above.c >> 24);
  int b = -4 * corner, c = -4 * corner;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    b += (i - 3) * byte_of(i < 4 ? above.a : above.b, i & 3);
    c += (i - 3) * byte_of(sides[i >> 2], i & 3);
  }
  b = (34 * b + 32) >> 6;
  c = (34 * c + 32) >> 6;
  const int mode = lane >> 3, base = 16 * (byte_of(sides[1], 3) + byte_of(above.b, 3)) + 16;
  predict_plane(base + b * (4 * bx - 3) + c * (4 * by - 3), b, c, row);
#pragma unroll
  for (int i = 0; i < 4; i++) row[i] = mode == 0 ? splat4(mean) : mode == 1 ? splat4(byte_of(side, i)) : mode == 2 ? over : row[i];
}
DEVICE bool chroma_mode_usable(const Around &around, int mode) {
  return mode == 0 || (mode == 1 ? around.left : mode == 2 ? around.top : around.corner);
}

// 8.3.4, 8.5.4: chooses the mode and codes the chroma. A lane tries mode lane >> 3 for block lane & 3 of plane lane >> 2 & 1;
// then each eight lanes code the same. left: the eight samples to the left of this lane's plane.
// qp, qp_y: QP_C, QP_Y.
template <bool WEIGHED, class Scaling>
DEVICE void code_chroma(const Scaling &all_scaling, Macroblock &m, const Around &around, const Above &above, const Sample *left, int qp, int qp_y, int lane, Weighing *weighing) {
  const int lam = LAMBDA[qp_y];
  const int plane = lane >> 2 & 1, q = lane & 3, bx = q & 1, by = q >> 1, first_sample = 64 * plane + 32 * by + 4 * bx;
  const auto scaling = of_block(all_scaling, 0, false, plane);
  unsigned source_rows[4], row[4];
#pragma unroll
  for (int i = 0; i < 4; i++) source_rows[i] = word_at(m.source + 256 + first_sample + 8 * i);
  predict_chroma(around, above, left, lane, row);
  const int mode = lane >> 3;
  int cost = int(satd_4x4(source_rows, row));
#pragma unroll
  for (int step = 4; step; step >>= 1) cost += __shfl_xor_sync(FULL_WARP, cost, step);
  cost += lam * i_frame_mode_bits(0, mode);
  const int best = int(__reduce_min_sync(FULL_WARP, chroma_mode_usable(around, mode) ? unsigned(cost) << 2 | unsigned(mode) : ~0u) & 3);
  unsigned predicted[4];
#pragma unroll
  for (int i = 0; i < 4; i++) predicted[i] = __shfl_sync(FULL_WARP, row[i], 8 * best + (lane & 7));
  int v[16];
#pragma unroll
  for (int p = 0; p < 16; p++) v[p] = byte_of(source_rows[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
  forward_4x4(v);
  int dc = hadamard_2x2(v[0], lane);
  if constexpr (WEIGHED) {  // lanes 8 and 9: the DC blocks
    const bool ac = lane < 8;
    const int factor = chroma_factor(TRELLIS_INTRA, qp_y, qp);
    if (ac) {
      store_ratios(scaling, v, qp, weighing->ratios + lane);
      weighing->ratios[32 * q + 8 + plane] = uint16_t(dc_ratio(scaling, dc, qp));
    }
    __syncwarp();
    const BlockContexts at = ac ? contexts_4x4(weighing->bits, true) : contexts_chroma_dc(weighing->bits);
    unsigned path = choose_levels(weighing->ratios + (ac ? 32 + lane : lane), 32, ac ? 15 : 4, weighing->bits, at,
                                  ac ? scaling.cost(factor, 1) : of_block(all_scaling, 0, false, lane & 1).dc_cost(factor), lane < 10);
    const bool dc_lower = __shfl_sync(FULL_WARP, path, 8 + plane) >> q & 1;
    path = __shfl_sync(FULL_WARP, path, lane & 7);
    dc = quantise_dc(scaling, dc, qp, fraction_of(DEAD_ZONE_NEAREST));
    if (dc_lower) dc -= dc > 0 ? 1 : -1;
    v[0] = 0;
    quantise_lowered(scaling, v, qp, path << 1);
  } else {
    dc = quantise_dc(scaling, dc, qp, fraction_of(DEAD_ZONE_INTRA));
    quantise_4x4(scaling, v, qp, fraction_of(DEAD_ZONE_INTRA), true);
  }
  const int count = count_levels(v);
  const unsigned dc_coded = __ballot_sync(FULL_WARP, dc) & 0xff, clipped = __ballot_sync(FULL_WARP, abs(dc) >= MAX_LEVEL);
  const int coded = __reduce_add_sync(FULL_WARP, lane < 8 ? count : 0);
  if (lane < 8) {
    store_levels(m.levels_chroma + 16 * lane, v);
    m.levels_chroma[16 * (8 + plane) + q] = short(dc);
    m.count_chroma[lane] = uint8_t(count);
  }
  const int sum = __reduce_add_sync(FULL_WARP, lane < 8 ? sum_of_magnitudes(v) + abs(dc) : 0);
  const int scaled = ((hadamard_2x2(dc, lane) * scaling.dc_scale(qp)) << (qp / 6)) >> 5;
  scale_4x4(scaling, v, qp);
  v[0] = scaled;
  if (lane < 8) reconstruct(v, predicted, m.chroma + first_sample, 8);
  const bool beyond = __any_sync(FULL_WARP, lane < 8 && is_beyond(v));
  if (lane == 0) {
    m.beyond_chroma = beyond;
    m.mode_chroma = best;
    m.cbp_chroma = coded ? 2 : dc_coded ? 1 : 0;
    m.all_chroma = coded + __popc(dc_coded);
    m.sum_chroma = sum;
    m.clipped[1] = clipped != 0;
  }
}
