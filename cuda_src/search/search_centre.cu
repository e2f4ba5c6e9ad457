// Centre of the search window of each macroblock (not part of the standard): makes coarse planes and searches them, a block of
// threads for 4x4 macroblocks and a lane a column of candidates; then compares eleven centres a macroblock by SAD.
// Samples of 8 bits only: words of four samples.
#include "search/search_centre_launch.cuh"
#include "decisions/common.cuh"
#include "decisions/search.cuh"
#include "costs/bit_costs.cuh"
#include "tables.cuh"

constexpr int CENTRES = 11;
// The 8x8 coarse samples about a macroblock are four cells of 4x4, shared with its neighbours: SADs are of cells
constexpr int CELL_ROWS = 4 * (HIGH + 1);
constexpr int PARTS = 4, PART = 2 * COARSE_Y / PARTS;         // rows of candidates; a warp has a part and two columns of macroblocks
constexpr int WINDOW = CELL_ROWS + 2 * COARSE_Y - 1, ROW = 16;  // rows of coarse samples, words

// Means of 4x4 samples with borders, four a thread, for coarse rows [y0, y1). Grid: words of a row, rows, 2 (source, reference).
extern "C" __global__ void subsample(const Sample *source, int source_stride, const Sample *reference, int reference_stride,
    int pad, Sample *coarse_source, Sample *coarse_reference, int width, int height, int y0, int y1) {
  wait_for_the_kernel_before();
  const int x = int(blockIdx.x * blockDim.x + threadIdx.x), y = y0 + int(blockIdx.y * blockDim.y + threadIdx.y);
  const int words = width / 4, border = COARSE_PAD / 4;
  if (x >= words || y >= y1) return;
  const int cx = clip3(0, words - 2 * border - 1, x - border), cy = clip3(0, height - 2 * COARSE_PAD - 1, y - COARSE_PAD);
  const bool second = blockIdx.z;
  const int stride = second ? reference_stride : source_stride;
  const Sample *p = second ? reference + size_t(pad) * stride + pad : source;
  p += size_t(COARSE_SCALE * cy) * stride + 4 * COARSE_SCALE * cx;
  unsigned total[4] = {8, 8, 8, 8};
#pragma unroll
  for (int i = 0; i < COARSE_SCALE; i++) {
    const uint4 w = __ldg(reinterpret_cast<const uint4 *>(p + size_t(i) * stride));
    total[0] = __dp4a(w.x, 0x01010101u, total[0]);
    total[1] = __dp4a(w.y, 0x01010101u, total[1]);
    total[2] = __dp4a(w.z, 0x01010101u, total[2]);
    total[3] = __dp4a(w.w, 0x01010101u, total[3]);
  }
  const unsigned first = total[0] >> 4, last = total[3] >> 4;
  unsigned mean = first | total[1] >> 4 << 8 | total[2] >> 4 << 16 | last << 24;
  if (x < border) mean = first * 0x01010101u;
  if (x >= words - border) mean = last * 0x01010101u;
  *reinterpret_cast<unsigned *>((second ? coarse_reference : coarse_source) + size_t(y) * width + 4 * x) = mean;
}

DEVICE unsigned word_at(const Sample *p) { return __ldg(reinterpret_cast<const unsigned *>(p)); }

// Eight samples at any alignment, and the SAD to two words. Reads up to the end of the third word.
DEVICE unsigned sad8(const Sample *p, uint2 source_words) {
  const unsigned offset = unsigned(reinterpret_cast<uintptr_t>(p) & 3);
  p -= offset;
  const unsigned middle = word_at(p + 4);
  return sad4(unaligned(word_at(p), middle, offset), source_words.x, sad4(unaligned(middle, word_at(p + 8), offset), source_words.y, 0));
}

DEVICE int clamp(int value, int low, int high) { return max(low, min(high, value)); }

// Range of the vectors of a macroblock, the candidate from the frame before, and its lambda
struct alignas(16) SearchArea {
  short low_x, high_x, low_y, high_y, before_x, before_y;
  int lam;
  DEVICE int clamp_x(int x) const { return clamp(x, low_x, high_x); }
  DEVICE int clamp_y(int y) const { return clamp(y, low_y, high_y); }
};

// The best candidates of a part of the rows for two columns of macroblocks: SAD + lam * bits above their rank in raster order.
// cells: rows of cells, three words; row: window's words that the lane reads first, offset: what of them; areas: of the columns'
// macroblocks, [HIGH][WIDE]; least_of_part: [HIGH][WIDE][PARTS].
DEVICE void search_part(const uint4 *cells, const unsigned *row, unsigned offset, const SearchArea *areas, int part, int lane,
    unsigned *least_of_part) {
  unsigned u[8][3], above[PART][2], bits[PART];
  const unsigned rank = unsigned(32 * PART * part + lane);  // of the part's first row
  const auto load_row = [&](int k) {
    const unsigned *p = row + k * ROW, a = p[0], b = p[1], c = p[2], d = p[3];
    u[k][0] = unaligned(a, b, offset);
    u[k][1] = unaligned(b, c, offset);
    u[k][2] = unaligned(c, d, offset);
  };
#pragma unroll
  for (int i = 0; i < PART; i++) {
    bits[i] = unsigned(mvd_bits(lane - COARSE_X, PART * part + i - COARSE_Y));
    above[i][0] = above[i][1] = 0;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) load_row(k);
#pragma unroll 1
  for (int j = 0; j <= HIGH; j++) {
    uint4 s[4];
#pragma unroll
    for (int k = 0; k < 4; k++) s[k] = cells[k];
    const SearchArea *of = areas + max(j - 1, 0) * WIDE;
    const unsigned lam[2] = {unsigned(of[0].lam), unsigned(of[1].lam)};
    unsigned best[2] = {~0u, ~0u};
#pragma unroll
    for (int i = 0; i < PART; i++) {
      if (i < 4) load_row(i + 4);
      unsigned cell[3] = {0, 0, 0};
#pragma unroll
      for (int k = 0; k < 4; k++) {
        cell[0] = sad4(u[i + k][0], s[k].x, cell[0]);
        cell[1] = sad4(u[i + k][1], s[k].y, cell[1]);
        cell[2] = sad4(u[i + k][2], s[k].z, cell[2]);
      }
#pragma unroll
      for (int n = 0; n < 2; n++) {
        const unsigned pair = cell[n] + cell[n + 1];
        best[n] = min(best[n], (mad(lam[n], bits[i], above[i][n] + pair) << 10) + 32 * i);
        above[i][n] = pair;
      }
    }
    if (j > 0) {
#pragma unroll
      for (int n = 0; n < 2; n++) {
        const unsigned least = __reduce_min_sync(FULL_WARP, best[n] + rank);
        if (lane == 0) least_of_part[((j - 1) * WIDE + n) * PARTS] = least;
      }
    }
    cells += 4;
    row += 4 * ROW;
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int n = 0; n < 3; n++) u[k][n] = u[k + 4][n];
  }
}

// a / b rounded down for |a| < 2^19, 0 < b <= 16: an error of a millionth of the quotient is less than its distance from a whole number
DEVICE int floor_divide(int a, int b) { return int(floorf(fast_ratio(float(a) + 0.5f, float(b)))); }

// Motion of the whole frame; a load that stays behind the wait for the kernel that writes it
DEVICE int2 whole_motion(const short2 *camera) {
  const int packed = *reinterpret_cast<const volatile int *>(camera);
  return make_int2(short(packed), packed >> 16);
}

// Arguments as the launcher says; macroblock rows [row0, row1). Grid: macroblocks by WIDE, by HIGH.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) search_centre(const Sample *__restrict__ source,
    const Sample *__restrict__ reference, int width, int height, int pad, const Sample *__restrict__ coarse_source,
    const Sample *__restrict__ coarse_reference, const signed char *__restrict__ previous_ref_idx,
    const short2 *__restrict__ previous_mv, const int *__restrict__ of_reference, const int *__restrict__ distances, const short2 *camera, const uint8_t *__restrict__ qp,
    int merange, int max_mv_y, int row0, int row1, short2 *centre, short2 *predictor) {
  SHARED(unsigned, window, WINDOW * ROW);
  SHARED(uint4, cells, 2 * CELL_ROWS);
  SHARED(uint4, least_of_parts, WIDE * HIGH);
  SHARED(SearchArea, areas, WIDE * HIGH);
  const int thread = int(threadIdx.x), lane = thread & 31, warp = thread >> 5, mb_width = width / 16;
  const int first_x = WIDE * int(blockIdx.x), first_y = HIGH * int(blockIdx.y) + row0;
  {  // all loads are issued before the first store; samples beyond the coarse plane belong to no macroblock
    const int stride = width / COARSE_SCALE + 2 * COARSE_PAD, last = height / COARSE_SCALE + 2 * COARSE_PAD - 1;
    const int x = COARSE_PAD + 4 * first_x - 4, y = COARSE_PAD + 4 * first_y - 2;
    constexpr int CELL_WORDS = 8 * CELL_ROWS, ROUNDS = (WINDOW * ROW + 32 * WARPS - 1) / (32 * WARPS);
    const int i = thread >> 3, side = thread >> 2 & 1, n = thread & 3;  // words of cells; the fourth is unused
    const int m = min(max(thread - CELL_WORDS, 0), WIDE * HIGH - 1), mx = min(first_x + m % WIDE, mb_width - 1);
    const int my = min(first_y + m / WIDE, row1 - 1), mb = my * mb_width + mx;
    const int lam = LAMBDA[load_before_the_wait(qp + mb)];
    wait_for_the_kernel_before();
    const int2 moved = whole_motion(camera);
    unsigned low = 0, high = 0, loaded[ROUNDS];
    if (thread < CELL_WORDS) {
      const Sample *p = coarse_source + (min(y + i, last) * stride + min(x + 8 * side + 4 * n, stride - 8));
      low = word_at(p);
      high = word_at(p + 4);
    } else if (thread < CELL_WORDS + WIDE * HIGH) {
      low = unsigned(previous_ref_idx[4 * mb]);
      high = __ldg(reinterpret_cast<const unsigned *>(previous_mv + 16 * mb));
    }
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
      const int word = thread % ROW, line = min(k * (32 * WARPS / ROW) + thread / ROW, WINDOW - 1);
      loaded[k] = word_at(coarse_reference + (min(y + moved.y - COARSE_Y + line, last) * stride + min(x + moved.x - COARSE_X + 4 * word, stride - 4)));
    }
#pragma unroll
    for (int k = 0; k < ROUNDS; k++)
      if (k < ROUNDS - 1 || thread < WINDOW * ROW - k * 32 * WARPS) window[k * 32 * WARPS + thread] = loaded[k];
    if (thread < CELL_WORDS) {
      reinterpret_cast<unsigned *>(cells)[4 * (CELL_ROWS * side + i) + n] = unaligned(low, high, 2);
    } else if (thread < CELL_WORDS + WIDE * HIGH) {
      SearchArea area;
      area.lam = lam;
      const int distance = __ldg(of_reference), border = pad - max(merange, SMALLEST_WINDOW) - 3, steps = int(low) < 0 ? 0 : __ldg(distances + low);
      const int times = steps > 0 && max(steps, abs(distance)) <= MOST_DISTANCE ? distance : 0;
      area.low_x = short(max(-16 * mx - border, -2047 + merange));
      area.high_x = short(min(width - 15 - 16 * mx + border, 2047 - merange));
      area.low_y = short(max(-16 * my - border, min(0, merange + 1 - max_mv_y)));
      area.high_y = short(min(height - 15 - 16 * my + border, max(0, max_mv_y - merange - 1)));
      area.before_x = short(area.clamp_x((floor_divide(short(high) * times, max(steps, 1)) + 2) >> 2));
      area.before_y = short(area.clamp_y((floor_divide((int(high) >> 16) * times, max(steps, 1)) + 2) >> 2));
      areas[m] = area;
    }
  }
  __syncthreads();
  search_part(cells + CELL_ROWS * (warp & 1), window + PART * (warp >> 1) * ROW + 2 * (warp & 1) + ((lane + 2) >> 2),
      unsigned(lane + 2) & 3, areas + 2 * (warp & 1), warp >> 1, lane,
      reinterpret_cast<unsigned *>(least_of_parts + 2 * (warp & 1)) + (warp >> 1));
  __syncthreads();
  const int2 moved = whole_motion(camera);
  const int stride = width + 2 * pad, row = lane >> 1, half = 8 * (lane & 1);
  source += row * width + half;
  reference += (row + pad) * stride + pad + half;
  // A lane has a candidate: nine about the coarse vector, zero, that of the frame before; the last two have priority
  const int across = 2 * (lane % 3) - 2, down = 2 * (lane / 3) - 2, order = lane < 9 ? lane + 2 : lane < CENTRES ? lane - 9 : 1 << 28;
#pragma unroll 1
  for (int i = 0; i < WIDE * HIGH / WARPS; i++) {
    const int m = warp + i * WARPS, mx = first_x + m % WIDE, my = first_y + m / WIDE;
    const bool inside = mx < mb_width && my < row1;
    const int left = 16 * min(mx, mb_width - 1), top = 16 * min(my, row1 - 1);
    const SearchArea area = areas[m];
    const uint4 f = least_of_parts[m];
    const int rank = int(min(min(f.x, f.y), min(f.z, f.w)) & 1023);
    const int middle_x = COARSE_SCALE * (moved.x + (rank & 31) - COARSE_X), middle_y = COARSE_SCALE * (moved.y + (rank >> 5) - COARSE_Y);
    const uint2 source_words = __ldg(reinterpret_cast<const uint2 *>(source + (top * width + left)));
    // Of three columns the last two lie in the same words, a multiple of 4 and two more unless clamped, the first in them or a
    // word before
    const int x0 = area.clamp_x(middle_x - 2), x1 = area.clamp_x(middle_x), x2 = area.clamp_x(middle_x + 2), word = x1 & ~3;
    const bool same = x0 >= word;
    const Sample *corner = reference + (top * stride + left);
    unsigned v[CENTRES];
#pragma unroll
    for (int k = 0; k < 3; k++) {
      const Sample *p = corner + (area.clamp_y(middle_y + 2 * k - 2) * stride + word);
      const unsigned a = word_at(p - 4), b = word_at(p), c = word_at(p + 4), d = word_at(p + 8);
      v[3 * k] = sad4(unaligned(same ? b : a, same ? c : b, x0 & 3), source_words.x, sad4(unaligned(same ? c : b, same ? d : c, x0 & 3), source_words.y, 0));
      v[3 * k + 1] = sad4(unaligned(b, c, x1 & 3), source_words.x, sad4(unaligned(c, d, x1 & 3), source_words.y, 0));
      v[3 * k + 2] = sad4(unaligned(b, c, x2 & 3), source_words.x, sad4(unaligned(c, d, x2 & 3), source_words.y, 0));
    }
    const uint2 there = __ldg(reinterpret_cast<const uint2 *>(corner));
    v[9] = sad4(there.x, source_words.x, sad4(there.y, source_words.y, 0));
    v[10] = sad8(corner + (area.before_y * stride + area.before_x), source_words);
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < CENTRES; k += 2) {  // sums of 256 samples' differences: two a word
      const unsigned both = __reduce_add_sync(FULL_WARP, k + 1 < CENTRES ? v[k] + v[k + 1] * 65536 : v[k]);
      if ((lane & ~1) == k) sum = both;
    }
    int x = area.clamp_x(middle_x + across), y = area.clamp_y(middle_y + down);
    if (lane >= 9) {
      x = lane == 9 ? 0 : area.before_x;
      y = lane == 9 ? 0 : area.before_y;
    }
    const int value = int(sum >> (16 * (lane & 1)) & 0xffff);
    const int key = (value + area.lam * mvd_bits(4 * x, 4 * y)) * 16 + order;
    if (key == __reduce_min_sync(FULL_WARP, key) && inside) {
      const int mb = my * mb_width + mx;
      centre[mb] = make_short2(short(x), short(y));
      predictor[mb] = make_short2(short(4 * x), short(4 * y));
    }
  }
}
