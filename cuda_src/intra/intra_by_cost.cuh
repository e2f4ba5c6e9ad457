// Intra macroblocks by true cost: twin of cpu_simd/intra/intra_by_cost.py and intra_cost.py, which explain it.
//
// One warp chooses and codes Intra_4x4, half a warp a block; one Intra_8x8, eight lanes the block in a mode; one chroma, eight lanes
// a mode. The two likeliest modes of a luma block are coded at once, all of chroma. Scaling lists are flat. Costs are in units of 1 / 256 bit.
// Samples of 8 bits only: words of four samples.
#pragma once
#include "decisions/common.cuh"
#include "decisions/intra.cuh"
#include "decisions/quantise.cuh"
#include "intra/intra_8x8.cuh"
#include "residual/transform_choice.cuh"

static_assert(INTRA_TRIALS == 2, "lanes and shared memory are for two modes");

DEVICE int cost_of(int error, int bits, int qp) {
  const long long cost = (long long)(error) * INTRA_ERROR[qp] >> 16;
  return int(cost < RD_MOST ? cost : RD_MOST) + bits;
}
// Bits of a bin of mb_type; element: see type_bits in cpu_simd/intra/intra_cost.py
DEVICE int type_bits(const unsigned *bits, int element, bool value) { return bin_bits(bits[AT_INTRA_TYPE + element], value); }
// prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode
DEVICE int intra_mode_bits(const unsigned *bits, int mode, int predicted) {
  const int rem = mode - (mode > predicted);
  const unsigned flag = bits[AT_PREV_MODE], bin = bits[AT_REM_MODE];
  return mode == predicted ? bin_bits(flag, true) : bin_bits(flag, false) + bin_bits(bin, rem & 1) + bin_bits(bin, rem & 2) + bin_bits(bin, rem & 4);
}
DEVICE int square_of_difference(int a, int b) { return (a - b) * (a - b); }

// Bits of a level of a 4x4 block and of its position; coded, larger: masks of the block's levels by scan position
DEVICE int bits_in_4x4(const unsigned *bits, int size, int scan, unsigned coded, unsigned larger) {
  if (!size) return 0;
  const int total = magnitude_bits(bits + AT_LEVEL_2, size, __popc((coded & ~larger) >> scan >> 1), __popc(larger >> scan >> 1));
  if (scan == 15) return total;
  const unsigned flag = bits[AT_SIGNIFICANT_2 + scan];
  return total + bin_bits(flag, true) - bin_bits(flag, false) + bin_bits(bits[AT_LAST_2 + scan], !(coded >> scan >> 1));
}

// A block of Intra_4x4 in a mode: of one sample and level in each lane of a half of the warp, and the cost
struct Block4x4 {
  int mode, level, sample, residual, cost;
};

// As code_4x4 by true cost
DEVICE void best_4x4(Macroblock &m, const Around &around, const Quantiser<FlatScaling> &quantiser, int lane, const LanePlace &lane_place, Weighing &weighing) {
  const int j = lane & 15, half = lane >> 4, at = lane_place.y * TILE + lane_place.x, qp = quantiser.qp, lam = LAMBDA[qp];
  const FlatScaling flat;
  const unsigned *bits = weighing.bits;
  const int lefts = kept(around.left ? 0xffff : 0xeeee, lane), tops = kept(around.top ? 0xffff : 0xfff0, lane);
  const int rights = kept(ABOVE_RIGHT_INSIDE | (around.top ? 7 : 0) | (around.right ? 8 : 0), lane);
  const int usable = usable_in(around, lefts, tops, lane_place.needs);
  int cost = 0, magnitudes = 0, all = 0, largest = 0;
#pragma unroll 1
  for (int step = 0; step < 10; step++) {
    const Ahead now = ahead_of(m, step, lane);
    const int k = now.k, by = k >> 2, bx = k & 3;
    Sample *block = m.tile + (4 * by + 1) * TILE + 4 + 4 * bx, *side = m.sides + bx * SIDE + 4 * by;
    const int a = m.modes[(by + 1) * 8 + bx + 3], b = m.modes[by * 8 + bx + 4], least = min(a, b), predicted = least < 0 ? 2 : least;
    unsigned row[4];
    predict_step(block, side, lefts >> k & 1, tops >> k & 1, rights >> k & 1, lane_place, lane, row);
    unsigned key = (satd_4x4(now.source, row) + unsigned(lam * mode_4x4_bits(j == predicted))) << 4 | unsigned(j);
    if (!(usable >> k & 1)) key = ~0u;
    const bool two = step >= 2 && step < 8, active = !half || two;
    const int source = m.source[16 * (4 * by + lane_place.y) + 4 * bx + lane_place.x];
    // from here on each lane has one coefficient or sample of the block in each mode
    Block4x4 trials[INTRA_TRIALS];
    int coefficients[INTRA_TRIALS], words[INTRA_TRIALS];
    bool tried[INTRA_TRIALS];
#pragma unroll
    for (int n = 0; n < INTRA_TRIALS; n++) {
      const unsigned best_0 = __reduce_min_sync(FULL_WARP, half ? ~0u : key), best_1 = __reduce_min_sync(FULL_WARP, half ? key : ~0u);
      const unsigned best = half ? best_1 : best_0;
      tried[n] = best != ~0u;
      trials[n].mode = int(best & 15);
      if (key == best) key = ~0u;
      unsigned word = 0;
      int c = now.coefficient;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const unsigned r = __shfl_sync(FULL_WARP, row[i], (lane & 16) + trials[n].mode);
        word = lane_place.y == i ? r : word;
        c -= int(lane_place.down[i]) * dot4(r, lane_place.across, 0);
      }
      words[n] = int(word);
      coefficients[n] = c;
      weighing.ratios[32 * half + 16 * n + lane_place.scan] = uint16_t(min(abs(c) * quantiser.factor >> (quantiser.shift - 6), LARGEST_RATIO));
    }
    __syncwarp();
    const unsigned path = choose_levels(weighing.ratios + 32 * half + 16 * (j & 1), 1, 16, bits, contexts_4x4(bits, false), flat.cost(TRELLIS_INTRA, 0),
                                        j < INTRA_TRIALS && active);
    unsigned counts = 0;
#pragma unroll
    for (int n = 0; n < INTRA_TRIALS; n++) {
      const int c = coefficients[n];
      int level = (abs(c) * quantiser.factor + (1 << (quantiser.shift - 1))) >> quantiser.shift;
      level -= __shfl_sync(FULL_WARP, path, (lane & 16) + n) >> lane_place.scan & 1;
      const unsigned coded = __reduce_add_sync(FULL_WARP, unsigned(level > 0) << lane_place.scan << (16 * half)) >> (16 * half) & 0xffff;
      const unsigned larger = __reduce_add_sync(FULL_WARP, unsigned(level > 1) << lane_place.scan << (16 * half)) >> (16 * half) & 0xffff;
      int share = bits_in_4x4(bits, level, lane_place.scan, coded, larger);
      if (j == 0) {
        share += mean_bits(bits + AT_CODED_2, coded) + intra_mode_bits(bits, trials[n].mode, predicted);
        if (coded) share += int(bits[ZEROS_2 + min(32 - __clz(int(coded)), 15)]);
      }
      counts |= unsigned(__popc(coded)) << (8 * n);
      level = c < 0 ? -level : level;
      const int residual = (inverse_pass(inverse_pass(level * quantiser.scale, lane_place.row), lane_place.column) + 32) >> 6;
      const int sample = clip1(byte_of(unsigned(words[n]), lane_place.x) + residual);
      trials[n].level = level;
      trials[n].sample = sample;
      trials[n].residual = residual;
      const int value = cost_of(sum_16(square_of_difference(sample, source)), sum_16(share), qp);
      trials[n].cost = tried[n] ? value : NO_LIMIT;
    }
    const bool second = trials[1].cost < trials[0].cost;
    const Block4x4 best = second ? trials[1] : trials[0];
    if (active) {
      cost += best.cost;
      magnitudes += abs(best.level);
      largest = max(largest, abs(best.residual));
      all += best.level != 0;
      block[at] = Sample(best.sample);
      if (lane_place.x == 3) side[SIDE + 4 + lane_place.y] = Sample(best.sample);
      m.levels_4x4[levels_at(step, lane) + lane_place.scan] = short(best.level);
      if (j == 0) {
        m.modes[(by + 1) * 8 + bx + 4] = static_cast<signed char>(best.mode);
        m.count_4x4[k] = uint8_t(counts >> (8 * second) & 255);
      }
    }
    __syncwarp();
  }
  int rest = 0;  // coded_block_pattern; the flags of a quadrant without levels are not sent
  if (lane < 4) {
    const uint8_t *count = m.count_4x4 + 8 * (lane >> 1) + 2 * (lane & 1);
    const bool coded = count[0] | count[1] | count[4] | count[5];
    rest = mean_bits(bits + AT_CODED_5, coded) - (coded ? 0 : 4 * mean_bits(bits + AT_CODED_2, false));
  }
  if (j == 0) rest += cost;
  const int total = int(__reduce_add_sync(FULL_WARP, unsigned(rest)));
  magnitudes = __reduce_add_sync(FULL_WARP, magnitudes);
  all = __reduce_add_sync(FULL_WARP, all);
  const bool beyond = __any_sync(FULL_WARP, largest > MOST_RESIDUAL);
  if (lane == 0) {
    m.beyond_4x4 = beyond;
    m.cost_4x4 = total + type_bits(bits, 0, false);
    m.all_4x4 = all;
    m.sum_4x4 = magnitudes;
  }
}

// The sum over the eight lanes that have a block
DEVICE int sum_8(int v) {
#pragma unroll
  for (int step = 4; step; step >>= 1) v += __shfl_xor_sync(FULL_WARP, v, step);
  return v;
}
DEVICE Long over_8(Long mask) {
#pragma unroll
  for (int step = 4; step; step >>= 1) mask |= __shfl_xor_sync(FULL_WARP, mask, step);
  return mask;
}

// Bits of the levels of an 8x8 block with its bit of coded_block_pattern; level: of row lane & 7, at offsets of PLACING
DEVICE int bits_of_8x8(const unsigned *bits, const int *level, const Bytes &offsets, int lane) {
  Long coded = 0, larger = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int at = scan_position(offsets.at(k));
    coded |= Long(level[k] != 0) << at;
    larger |= Long(abs(level[k]) > 1) << at;
  }
  coded = over_8(coded);
  larger = over_8(larger);
  int share = 0;
#pragma unroll 1
  for (int k = 0; k < 8; k++) {
    const int at = scan_position(offsets.at(k));
    int size = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) size = i == k ? abs(level[i]) : size;
    if (!size) continue;
    const int after = __popcll(coded >> at >> 1), of_larger = __popcll(larger >> at >> 1);
    share += magnitude_bits(bits + AT_LEVEL_5, size, after - of_larger, of_larger);
    if (at == 63) continue;
    const int increments = increments_8x8(at);
    const unsigned flag = bits[AT_SIGNIFICANT_5 + (increments & 15)];
    share += bin_bits(flag, true) - bin_bits(flag, false) + bin_bits(bits[AT_LAST_5 + (increments >> 4)], after == 0);
  }
  if (!(lane & 7)) {
    share += mean_bits(bits + AT_CODED_5, coded != 0);
    if (coded) share += int(bits[ZEROS_5 + min(64 - __clzll((long long)(coded)), 63)]);
  }
  return sum_8(share);
}

// As code_block_8x8 in the modes of both groups of eight lanes, of which that of lower cost stays. mode: of the lane's group; tried:
// whether it may be; mode_bits: of it. Returns the group and the cost.
DEVICE int2 best_block_8x8(Macroblock8x8 &m, const Sample *source, Sample *block, int q, int mode, bool tried, int mode_bits, const Bytes &offsets,
                           const RowQuantiser<Factors> &quantiser, int qp, int lane, Weighing &weighing) {
  constexpr unsigned BOTH = 0xffff;
  const Bytes choice = load_bytes(VALUES_8x8.of[mode][lane & 7]);
  const int column = lane & 7, group = lane >> 3 & 1;
  uint16_t *ratios = weighing.ratios + 64 * group;
  int x[8] = {}, level[8] = {};
  if (lane < 16) {
#pragma unroll
    for (int k = 0; k < 8; k++) x[k] = int(source[16 * k + column]) - m.values[choice.at(k)];
    forward_8(x);
    transpose_8(x, m.exchange, lane, BOTH);
    forward_8(x);
#pragma unroll
    for (int k = 0; k < 8; k++)
      ratios[scan_position(offsets.at(k))] = uint16_t(min(abs(x[k]) * quantiser.factors.at(k) >> (quantiser.shift - 6), LARGEST_RATIO));
  }
  __syncwarp();
  const Long path = choose_levels_8x8<false>(ratios, weighing.bits, contexts_8x8(weighing.bits), FlatScaling{}.cost_8x8(TRELLIS_INTRA * TRELLIS_8x8 >> 2, 0), lane);
  int error = 0;
  unsigned samples[2] = {0, 0};
  if (lane < 16) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
      level[k] = quantise(quantiser, k, x[k]);
      if (path >> scan_position(offsets.at(k)) & 1) level[k] -= level[k] > 0 ? 1 : -1;
      x[k] = scale(quantiser, k, level[k]);
    }
    inverse_8(x);
    transpose_8(x, m.exchange, lane, BOTH);
    inverse_8(x);
#pragma unroll
    for (int k = 0; k < 8; k++) {
      x[k] = (x[k] + 32) >> 6;
      const int sample = clip1(int(m.values[choice.at(k)]) + x[k]);
      error += square_of_difference(sample, source[16 * k + column]);
      samples[k >> 2] |= unsigned(sample) << (8 * (k & 3));
    }
  }
  const int total = bits_of_8x8(weighing.bits, level, offsets, lane) + mode_bits;
  error = sum_8(error);
  const int cost = tried ? cost_of(error, total, qp) : NO_LIMIT;
  const int first = __shfl_sync(FULL_WARP, cost, 0), second = __shfl_sync(FULL_WARP, cost, 8), best = second < first;
  if (lane < 16 && group == best) {
    note_beyond(m, x);
    short *levels = m.levels + 64 * q;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      levels[offsets.at(k)] = short(level[k]);
      block[TILE_8x8 * k + column] = Sample(samples[k >> 2] >> (8 * (k & 3)));
    }
  }
  __syncwarp();
  return make_int2(best, best ? second : first);
}

// As code_8x8 by true cost
DEVICE void best_8x8(Macroblock8x8 &m, const Sample *source, const Around &around, int qp, const Trial &trial, int lane, Weighing &weighing) {
  const RowQuantiser quantiser = row_quantiser(FlatScaling{}, 0, qp, fraction_of(DEAD_ZONE_NEAREST), lane & 7);
  const int lam = LAMBDA[qp];
  const Bytes offsets = load_bytes(PLACING.of[lane & 7]);
  int cost = type_bits(weighing.bits, 0, false);
#pragma unroll 1
  for (int q = 0; q < 4; q++) {
    const int x = 8 * (q & 1), y = 8 * (q >> 1), at = first_mode(q), least = min(m.modes[at - 1], m.modes[at - 8]);
    const int predicted = least < 0 ? 2 : least;
    const Neighbours n = neighbours_of(around, q);
    const Sample *block_source = source + 16 * y + x;
    Sample *block = m.tile + (1 + y) * TILE_8x8 + 8 + x;
    int w[8];
    load_columns(block_source, lane, w);
    make_values(m.values, block[place_of_reference(n, TILE_8x8, lane)], n, lane);
    const unsigned key = try_mode(w, m.values, n, trial, predicted, lam, lane), dc = try_dc(m.spectra[q], m.values[DC_8x8], predicted, lam);
    const unsigned first = __reduce_min_sync(FULL_WARP, key), second = __reduce_min_sync(FULL_WARP, key == first ? ~0u : key);
    const unsigned mine = lane >> 3 & 1 ? max(first, min(second, dc)) : min(first, dc);  // the likeliest mode, the next
    const bool tried = mine != ~0u;
    const int mode = tried ? int(mine & 15) : MODE_DC;
    const int2 best = best_block_8x8(m, block_source, block, q, mode, tried, intra_mode_bits(weighing.bits, mode, predicted), offsets, quantiser, qp,
                                     lane, weighing);
    cost += best.y;
    const int chosen = __shfl_sync(FULL_WARP, mode, 8 * best.x);
    if (lane < 4) m.modes[at + (lane & 1) + 8 * (lane >> 1)] = static_cast<signed char>(chosen);
    __syncwarp();
  }
  count_8x8(m, lane);
  if (lane == 0) m.cost = cost;
}

// The cost of a macroblock that is coded as Intra_16x16 -> m.cost_16x16; a lane a 4x4 block, lane 16 the DC block
DEVICE void find_cost_16x16(Macroblock &m, int qp, int lane, const unsigned *bits) {
  __syncwarp();
  const bool ac = lane < 16;
  const short *levels = m.levels_16x16 + 16 * min(lane, 16);
  int c[16];
#pragma unroll
  for (int i = 0; i < 16; i++) c[digit(ZIGZAG_4x4_DIGITS, i)] = levels[i];
  const Masks masks = masks_of(c);
  int total = block_bits(c, masks, ac ? 1 : 0, bits + (ac ? AT_SIGNIFICANT_1 - 1 : AT_SIGNIFICANT_0), bits + (ac ? AT_LAST_1 - 1 : AT_LAST_0),
                         bits + (ac ? AT_LEVEL_1 : AT_LEVEL_0));
  total += mean_bits(bits + (ac ? AT_CODED_1 : AT_CODED_0), masks.coded != 0);
  const bool any = __any_sync(FULL_WARP, ac && masks.coded);
  total = __reduce_add_sync(FULL_WARP, lane == 16 || (ac && any) ? total : 0);
  int error = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) error += square_of_difference(m.luma[32 * i + lane], m.source[32 * i + lane]);
  error = __reduce_add_sync(FULL_WARP, error);
  total += type_bits(bits, 0, true) + type_bits(bits, 1, any) + type_bits(bits, 2, m.mode_16x16 >> 1) + type_bits(bits, 3, m.mode_16x16 & 1);
  if (lane == 0) m.cost_16x16 = cost_of(error, total, qp);
}

// As code_chroma by true cost, all modes at once: eight lanes a mode
DEVICE void best_chroma(Macroblock &m, const Around &around, const Above &above, const Sample *left, int qp, int qp_y, int lane, Weighing &weighing) {
  const int plane = lane >> 2 & 1, q = lane & 3, mode = lane >> 3, first_sample = 64 * plane + 32 * (q >> 1) + 4 * (q & 1), group = lane & 24;
  const FlatScaling flat;
  const unsigned *bits = weighing.bits;
  uint16_t *ratios = weighing.ratios;
  unsigned source_rows[4], predicted[4];
#pragma unroll
  for (int i = 0; i < 4; i++) source_rows[i] = word_at(m.source + 256 + first_sample + 8 * i);
  predict_chroma(around, above, left, lane, predicted);
  int v[16];
#pragma unroll
  for (int p = 0; p < 16; p++) v[p] = byte_of(source_rows[p >> 2], p & 3) - byte_of(predicted[p >> 2], p & 3);
  forward_4x4(v);
  int dc = hadamard_2x2(v[0], lane);
  const auto cost_of_error = flat.dc_cost(chroma_factor(TRELLIS_INTRA, qp_y, qp));
  store_ratios(flat, v, qp, ratios + lane);
  const unsigned path = choose_levels(ratios + 32 + lane, 32, 15, bits, contexts_4x4(bits, true), cost_of_error, true);
  __syncwarp();
  ratios[32 * q + (lane >> 2)] = uint16_t(dc_ratio(flat, dc, qp));
  __syncwarp();
  const unsigned dc_path = choose_levels(ratios + (lane & 7), 32, 4, bits, contexts_chroma_dc(bits), cost_of_error, lane < 8);
  const bool dc_lower = __shfl_sync(FULL_WARP, dc_path, lane >> 2) >> q & 1;
  dc = quantise_dc(flat, dc, qp, fraction_of(DEAD_ZONE_NEAREST));
  if (dc_lower) dc -= dc > 0 ? 1 : -1;
  v[0] = 0;
  quantise_lowered(flat, v, qp, path << 1);
  v[0] = 0;
  const int count = count_levels(v);
  const bool any_ac = __ballot_sync(FULL_WARP, count) >> group & 255, any_dc = __ballot_sync(FULL_WARP, dc) >> group & 255;
  int levels[4], total = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) levels[k] = __shfl_sync(FULL_WARP, dc, (lane & ~3) + k);
  if (any_ac) {
    const Masks masks = masks_of(v);
    total = mean_bits(bits + AT_CODED_4, count) + block_bits(v, masks, 1, bits + AT_SIGNIFICANT_4 - 1, bits + AT_LAST_4 - 1, bits + AT_LEVEL_4);
  }
  if (q == 0 && (any_ac || any_dc)) total += mean_bits(bits + AT_CODED_3, levels[0] | levels[1] | levels[2] | levels[3]) + dc_bits(levels, bits);
  if (!(lane & 7)) {
    const unsigned first = bits[AT_CHROMA_MODE], next = bits[AT_CHROMA_MODE + 1];
    total += bin_bits(first, mode) + (mode > 0 ? bin_bits(next, mode > 1) : 0) + (mode > 1 ? bin_bits(next, mode > 2) : 0);
    total += mean_bits(bits + AT_CHROMA_PATTERN, any_ac || any_dc);
    if (any_ac || any_dc) total += mean_bits(bits + AT_CHROMA_PATTERN + 4, any_ac);
  }
  // levels and reconstruction of the own block
  const int magnitudes = sum_of_magnitudes(v) + abs(dc);
  const int scaled = ((hadamard_2x2(dc, lane) * flat.dc_scale(qp)) << (qp / 6)) >> 5;
  int c[16], error = 0;
#pragma unroll
  for (int p = 0; p < 16; p++) c[p] = v[p];
  scale_4x4(flat, c, qp);
  c[0] = scaled;
  inverse_4x4(c);
  bool beyond = is_beyond(c);
#pragma unroll
  for (int p = 0; p < 16; p++) {
    c[p] = clip1(byte_of(predicted[p >> 2], p & 3) + c[p]);
    error += square_of_difference(c[p], byte_of(source_rows[p >> 2], p & 3));
  }
  error = sum_8(error);
  total = sum_8(total);
  const unsigned key = unsigned(cost_of(error, total, qp_y)) << 2 | unsigned(mode);
  const int best = int(__reduce_min_sync(FULL_WARP, chroma_mode_usable(around, mode) ? key : ~0u) & 3);
  const bool mine = mode == best;
  const unsigned dc_coded = __ballot_sync(FULL_WARP, mine && dc), clipped = __ballot_sync(FULL_WARP, mine && abs(dc) >= MAX_LEVEL);
  beyond = __any_sync(FULL_WARP, mine && beyond);
  const int all = __reduce_add_sync(FULL_WARP, mine ? count : 0), sum = __reduce_add_sync(FULL_WARP, mine ? magnitudes : 0);
  if (mine) {
    const int k = lane & 7;
    store_levels(m.levels_chroma + 16 * k, v);
    m.levels_chroma[16 * (8 + plane) + q] = short(dc);
    m.count_chroma[k] = uint8_t(count);
#pragma unroll
    for (int i = 0; i < 4; i++)
      *reinterpret_cast<unsigned *>(m.chroma + first_sample + 8 * i) = pack4(c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3]);
  }
  if (lane == 0) {
    m.mode_chroma = best;
    m.beyond_chroma = beyond;
    m.cbp_chroma = all ? 2 : dc_coded ? 1 : 0;
    m.all_chroma = all + __popc(dc_coded);
    m.sum_chroma = sum;
    m.clipped[1] = clipped != 0;
  }
}
