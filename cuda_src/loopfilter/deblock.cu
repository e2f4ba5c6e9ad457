// 8.7: the deblocking filter, as independent tiles.
//
// Tiles: two warps filter 2x2 macroblocks, one luma and one chroma, from un-deblocked samples and the halo that decides their
// final samples (10 samples up and left, 6 down, 3 right), so that no tile waits for another. A schedule from deblock.py gives the lines of
// the edges and the steps in which they may run at once; it is derived from the data flow of the filter.
// Samples of 8 bits only: words of four samples.
#include "loopfilter/deblock_lines.cuh"
#include "simd.cuh"
#include "tables.cuh"

constexpr int NEAR = TILE + 2;  // macroblocks a side of a tile with those around
constexpr int SAMPLES = LUMA_ROWS * LUMA_STRIDE + 2 * CHROMA_ROWS * CHROMA_STRIDE;

// 8.7.2.2: alpha, beta and tC0 for bS 1..3 of an edge between QPs a and b, in one word: 8, 8, 3 x 5 bits
DEVICE unsigned thresholds(int a, int b, int alpha_offset, int beta_offset) {
  int average = (a + b + 1) >> 1, ia = clip3(0, 51, average + alpha_offset), ib = clip3(0, 51, average + beta_offset);
  return unsigned(ALPHA[ia] & 255) | unsigned(BETA[ib]) << 8 | unsigned(TC0[1][ia]) << 16 | unsigned(TC0[2][ia]) << 21 |
         unsigned(TC0[3][ia]) << 26;
}

struct State {
  const uint8_t *mb_type, *total_coeff, *transform_8x8, *qp;
  const signed char *ref_idx;
  const short2 *mv;
  int duplicates;  // entries of RefPicList0 up to this number are one frame
};

// List 1 of B frames, and the slots of the entries of both lists
struct SecondList {
  const int *slots;  // of list 0, then from n_ref on of list 1
  const signed char *ref_idx;
  const short2 *mv;
  int n_ref;
};

// 8.7.2.1: which 4x4 blocks are of transform blocks with levels, as bits: 0..15 of macroblock mb, raster; 16..23 the right two columns
// of macroblock `left`, 24..31 the lower two rows of `above`, raster. The four blocks of a quadrant hold the levels of an 8x8 block.
DEVICE unsigned coded_blocks(const State &s, int mb, int left, int above, int lane) {
  const int of_left = (lane >> 1 & 3) * 4 + 2 + (lane & 1), of_above = 8 + (lane & 7);
  const int at = lane < 16 ? mb * 24 + lane : lane < 24 ? left * 24 + of_left : above * 24 + of_above;
  const bool large = s.transform_8x8[mb], large_left = s.transform_8x8[left], large_above = s.transform_8x8[above];
  unsigned coded = __ballot_sync(FULL_WARP, s.total_coeff[at]);
  if (large) {
    const unsigned pairs = (coded | coded >> 1) & 0x5555, quadrants = (pairs | pairs >> 4) & 0x0505;
    coded = (coded & 0xffff0000u) | quadrants * 0x33;
  }
  if (large_left) coded |= (coded & 0xf << 16 ? 0xf << 16 : 0) | (coded & 0xf << 20 ? 0xf << 20 : 0);
  if (large_above) coded |= (coded & 0x33u << 24 ? 0x33u << 24 : 0) | (coded & 0xccu << 24 ? 0xccu << 24 : 0);
  return coded;
}

DEVICE bool apart(short2 a, short2 b) { return abs(a.x - b.x) >= 4 || abs(a.y - b.y) >= 4; }

// Slots of the references of block b of a macroblock in both lists, -1 where one is not used
DEVICE int2 frames_of(const State &s, const SecondList &second, int mb, int b) {
  const int at = mb * 4 + (b >> 3) * 2 + (b >> 1 & 1), r0 = s.ref_idx[at], r1 = second.ref_idx[at];
  return make_int2(r0 < 0 ? -1 : second.slots[r0], r1 < 0 ? -1 : second.slots[second.n_ref + r1]);
}

// 8.7.2.1 in B slices: whether blocks have other reference frames, from whichever list, or vectors apart; unused vectors are 0
DEVICE bool moved_in_lists(const State &s, const SecondList &second, int mp, int bp, int mq, int bq) {
  const int2 p = frames_of(s, second, mp, bp), q = frames_of(s, second, mq, bq);
  if (!((p.x == q.x && p.y == q.y) || (p.x == q.y && p.y == q.x))) return true;
  const short2 p0 = s.mv[mp * 16 + bp], p1 = second.mv[mp * 16 + bp], q0 = s.mv[mq * 16 + bq], q1 = second.mv[mq * 16 + bq];
  const bool straight = apart(p0, q0) || apart(p1, q1), crossed = apart(p0, q1) || apart(p1, q0);
  return p.x == p.y ? straight && crossed : p.x == q.x ? straight : crossed;
}

// 8.7.2.1: bS of the edge between 4x4 blocks bp of macroblock mp and bq of mq; at_edge: between macroblocks; coded: either is coded
template <bool B>
DEVICE unsigned strength(const State &s, const SecondList &second, int mp, int bp, int mq, int bq, bool at_edge, bool coded) {
  if (s.mb_type[mp] <= LAST_INTRA || s.mb_type[mq] <= LAST_INTRA) return at_edge ? 4 : 3;
  if (coded) return 2;
  if (B) return moved_in_lists(s, second, mp, bp, mq, bq);
  int rp = (bp >> 3) * 2 + (bp >> 1 & 1), rq = (bq >> 3) * 2 + (bq >> 1 & 1);
  if (max(int(s.ref_idx[mp * 4 + rp]), s.duplicates) != max(int(s.ref_idx[mq * 4 + rq]), s.duplicates)) return 1;
  return apart(s.mv[mp * 16 + bp], s.mv[mq * 16 + bq]);
}

struct Where {
  const int *slice_first_mb;
  int mb_width, chroma_qp_offset, alpha_offset, beta_offset, disable_idc, row0;
};

// records uint32[n_mb, 12] of macroblock rows [row0, row0 + gridDim.y). One warp a macroblock; lane = direction, edge, block.
template <bool B>
DEVICE void write_records(const State &s, const SecondList &second, const Where &where, unsigned *records) {
  const auto [slice_first_mb, mb_width, chroma_qp_offset, alpha_offset, beta_offset, disable_idc, row0] = where;
  const uint8_t *mb_type = s.mb_type, *qp = s.qp;
  const int lane = threadIdx.x & 31, mx = int(blockIdx.x) * int(blockDim.x >> 5) + int(threadIdx.x >> 5);
  const int my = int(blockIdx.y) + row0, mb = my * mb_width + mx;
  if (mx >= mb_width) return;
  const bool left = disable_idc != 1 && mx > 0 && (disable_idc != 2 || mb > slice_first_mb[mb]);
  const bool above = disable_idc != 1 && my > 0 && (disable_idc != 2 || mb - mb_width >= slice_first_mb[mb]);
  const int direction = lane >> 4, edge = lane >> 2 & 3, k = lane & 3;
  const bool large = s.transform_8x8[mb];  // 8.7: then luma has no edges 1 and 3; chroma has only 0 and 2 in any case
  const bool exists = edge ? disable_idc != 1 && !(large && edge & 1) : direction ? above : left;
  const unsigned coded = coded_blocks(s, mb, left ? mb - 1 : mb, above ? mb - mb_width : mb, lane);
  unsigned bs = 0;
  if (exists) {
    int bq = direction ? edge * 4 + k : k * 4 + edge;
    int mp = edge ? mb : direction ? mb - mb_width : mb - 1;
    int bp = direction ? ((edge + 3) & 3) * 4 + k : k * 4 + ((edge + 3) & 3);
    const int before = edge ? bp : direction ? 28 + k : 17 + 2 * k;  // of bp in `coded`
    bs = strength<B>(s, second, mp, bp, mb, bq, edge == 0, (coded >> bq | coded >> before) & 1);
  }
  unsigned word = bs << (4 * (lane & 7));
  for (int d = 1; d < 8; d *= 2) word |= __shfl_xor_sync(FULL_WARP, word, d);
  unsigned *to = records + size_t(mb) * RECORD;
  if ((lane & 7) == 0) to[lane >> 3] = word;
  if (lane < 6) {
    int edge_class = lane % 3, other = edge_class == 0 ? (left ? mb - 1 : mb) : edge_class == 1 ? (above ? mb - mb_width : mb) : mb;
    int a = mb_type[mb] == I_PCM ? 0 : qp[mb], b = mb_type[other] == I_PCM ? 0 : qp[other];
    if (lane >= 3) {
      a = QP_CHROMA[clip3(0, 51, a + chroma_qp_offset)];
      b = QP_CHROMA[clip3(0, 51, b + chroma_qp_offset)];
    }
    to[4 + lane] = thresholds(a, b, alpha_offset, beta_offset);
  }
}

extern "C" __global__ void deblock_strengths(const uint8_t *mb_type, const signed char *ref_idx, const short2 *mv,
    const uint8_t *total_coeff, const uint8_t *transform_8x8, int duplicates, const uint8_t *qp, const int *slice_first_mb, int mb_width, int chroma_qp_offset,
    int alpha_offset, int beta_offset, int disable_idc, int row0, unsigned *records) {
  wait_for_the_kernel_before();
  const State s = {mb_type, total_coeff, transform_8x8, qp, ref_idx, mv, duplicates};
  write_records<false>(s, {}, {slice_first_mb, mb_width, chroma_qp_offset, alpha_offset, beta_offset, disable_idc, row0}, records);
}

// The same in B frames
extern "C" __global__ void deblock_strengths_b(const uint8_t *mb_type, const signed char *ref_idx, const short2 *mv,
    const uint8_t *total_coeff, const uint8_t *transform_8x8, int n_ref, const int *slots, const signed char *ref_idx1, const short2 *mv1, const uint8_t *qp,
    const int *slice_first_mb, int mb_width, int chroma_qp_offset, int alpha_offset, int beta_offset, int disable_idc, int row0, unsigned *records) {
  wait_for_the_kernel_before();
  const State s = {mb_type, total_coeff, transform_8x8, qp, ref_idx, mv, 0};
  const SecondList second = {slots, ref_idx1, mv1, n_ref};
  write_records<true>(s, second, {slice_first_mb, mb_width, chroma_qp_offset, alpha_offset, beta_offset, disable_idc, row0}, records);
}

// Runs the steps of a schedule: uint32[steps, 32], one line a lane, ~0 for none. A line: bits 0-11 place of q0 in the tile,
// 12 direction, 13-14 block along the edge, 15-16 edge, 17-20 macroblock of the neighbourhood (NEAR y + x).
template <bool LUMA>
DEVICE void run_schedule(Sample *samples, int stride, const unsigned *records, const unsigned *schedule, int steps, int lane) {
  unsigned next = __ldg(schedule + lane);
  for (int step = 0; step < steps; step++) {
    const unsigned line = next;
    if (step + 1 < steps) next = __ldg(schedule + (step + 1) * 32 + lane);
    if (line != ~0u) {
      const int direction = line >> 12 & 1, edge = line >> 15 & 3;
      const unsigned *record = records + (line >> 17) * RECORD;
      const unsigned bs = strength_of(record, direction, edge, line >> 13 & 3);
      if (bs) filter_line<LUMA>(samples + (line & 4095), direction ? stride : 1, bs, record[(LUMA ? 4 : 7) + edge_class_of(direction, edge)]);
    }
    __syncwarp();
  }
}

// Loads the luma samples that the lines of a tile read, from (x, y) on, 16 samples a lane and four lanes a row; lines never read samples
// outside the frame. x - 4 is a multiple of 16. All loads are issued before the first store.
DEVICE void load_luma(const Sample *plane, int width, int height, int x, int y, Sample *to, int lane) {
  constexpr int TIMES = (LUMA_ROWS + 7) / 8;
  const int quarter = lane & 3, px = x - 4 + 16 * quarter;
  uint4 v[TIMES];
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    const int r = (lane >> 2) + 8 * i, py = y + r;
    v[i] = make_uint4(0, 0, 0, 0);
    if (r < LUMA_ROWS && px >= 0 && px < width && py >= 0 && py < height)
      v[i] = __ldg(reinterpret_cast<const uint4 *>(plane + size_t(py) * width + px));
  }
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    const int r = (lane >> 2) + 8 * i;
    unsigned *at = reinterpret_cast<unsigned *>(to + r * LUMA_STRIDE) + 4 * quarter - 1;
    if (r >= LUMA_ROWS) break;
    if (quarter > 0) at[0] = v[i].x;
    if (quarter < 3) {
      at[1] = v[i].y;
      at[2] = v[i].z;
      at[3] = v[i].w;
    }
  }
}

// The same of both chroma planes, 8 samples a lane; x - 4 is a multiple of 8
DEVICE void load_chroma(const Sample *u, const Sample *v, int width, int height, int x, int y, Sample *to, int lane) {
  constexpr int TIMES = 2 * CHROMA_ROWS / 8;
  const int quarter = lane & 3, px = x - 4 + 8 * quarter;
  uint2 w[TIMES];
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    const int r = (lane >> 2) + 8 * i, plane = r >= CHROMA_ROWS, py = y + r - plane * CHROMA_ROWS;
    w[i] = make_uint2(0, 0);
    if (px >= 0 && px < width && py >= 0 && py < height)
      w[i] = __ldg(reinterpret_cast<const uint2 *>((plane ? v : u) + size_t(py) * width + px));
  }
#pragma unroll
  for (int i = 0; i < TIMES; i++) {
    unsigned *at = reinterpret_cast<unsigned *>(to + ((lane >> 2) + 8 * i) * CHROMA_STRIDE) + 2 * quarter - 1;
    if (quarter > 0) at[0] = w[i].x;
    if (quarter < 3) at[1] = w[i].y;
  }
}

// The tile's own samples of a plane, `size` a macroblock: from its place in shared memory to (x, y) of the plane
DEVICE void store_tile(const Sample *from, int from_stride, int size, int width, int height, int x, int y, Sample *to, int stride,
                       int lane) {
  const int words = TILE * size / 4;  // a power of two
  for (int i = lane; i < TILE * size * words; i += 32) {
    const int r = i / words, c = 4 * (i % words);
    if (x + c < width && y + r < height)
      *reinterpret_cast<unsigned *>(to + size_t(y + r) * stride + x + c) = *reinterpret_cast<const unsigned *>(from + r * from_stride + c);
  }
}

// rec_* Sample[H, W] and Sample[H/2, W/2]; out_* with border and stride; macroblock rows [row0, row1).
extern "C" __global__ void __launch_bounds__(64 * BLOCK_TILES) deblock_tiles(const Sample *__restrict__ rec_y,
    const Sample *__restrict__ rec_u, const Sample *__restrict__ rec_v, const unsigned *__restrict__ records,
    const unsigned *__restrict__ luma_schedule, int luma_steps, const unsigned *__restrict__ chroma_schedule, int chroma_steps,
    int mb_width, int mb_height, int row0, int row1, Sample *out_y, int y_stride, Sample *out_u, Sample *out_v, int c_stride) {
  wait_for_the_kernel_before();
  SHARED(Sample, all_samples, BLOCK_TILES * SAMPLES);
  SHARED(unsigned, all_records, BLOCK_TILES * NEAR * NEAR * RECORD);
  const int lane = threadIdx.x & 31, tile = threadIdx.x >> 6;
  const bool second = threadIdx.x >> 5 & 1;  // chroma
  const int mx = TILE * (int(blockIdx.x) * BLOCK_TILES + tile), my = TILE * int(blockIdx.y) + row0;
  Sample *luma = all_samples + tile * SAMPLES, *chroma = luma + LUMA_ROWS * LUMA_STRIDE;
  unsigned *near = all_records + tile * NEAR * NEAR * RECORD;
  for (int i = threadIdx.x & 63; i < 3 * NEAR * NEAR; i += 64) {  // three vectors of four words a macroblock
    int n = i / 3, x = mx + n % NEAR - 1, y = my + n / NEAR - 1;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (x >= 0 && x < mb_width && y >= 0 && y < mb_height)
      v = __ldg(reinterpret_cast<const uint4 *>(records + (size_t(y) * mb_width + x) * RECORD) + i % 3);
    reinterpret_cast<uint4 *>(near)[i] = v;
  }
  const int width = mb_width * 16, height = mb_height * 16;
  if (second) {
    load_chroma(rec_u, rec_v, width / SUB_WIDTH_C, height / SUB_HEIGHT_C, mx * MB_WIDTH_C - CHROMA_LEFT,
                my * MB_HEIGHT_C - CHROMA_TOP, chroma, lane);
  } else {
    load_luma(rec_y, width, height, mx * 16 - LUMA_LEFT, my * 16 - LUMA_TOP, luma, lane);
  }
  __syncthreads();
  if (second) {
    run_schedule<false>(chroma, CHROMA_STRIDE, near, chroma_schedule, chroma_steps, lane);
    for (int p = 0; p < 2; p++)
      store_tile(chroma + (p * CHROMA_ROWS + CHROMA_TOP) * CHROMA_STRIDE + CHROMA_LEFT, CHROMA_STRIDE, MB_WIDTH_C,
                 width / SUB_WIDTH_C, MB_HEIGHT_C * row1, MB_WIDTH_C * mx, MB_HEIGHT_C * my, p ? out_v : out_u, c_stride, lane);
  } else {
    run_schedule<true>(luma, LUMA_STRIDE, near, luma_schedule, luma_steps, lane);
    store_tile(luma + LUMA_TOP * LUMA_STRIDE + LUMA_LEFT, LUMA_STRIDE, 16, width, 16 * row1, 16 * mx, 16 * my, out_y, y_stride, lane);
  }
}
