// Full search and step search of 32x32 blocks, kernel by kernel as papers 000 and 002 built them up: a launch a candidate, a
// thread a candidate, a CUDA block a candidate with threads in z. `block` uint8[32, 32] and `area` uint8[stride, stride] are cut
// from the frames; candidate (dx, dy) begins at area[dy][dx]; a block at the picture's end has `columns` x `rows` samples.
#include "papers/fsbm_launch.cuh"
#include "simd.cuh"

constexpr int B = 32;

DEVICE int difference(const uint8_t *a, const uint8_t *b) { return abs(int(*a) - int(*b)); }

// Whether the block displaced to column dx and row dy of an area that begins at (x, y) leaves the picture
DEVICE bool leaves(int x, int y, int dx, int dy, int columns, int rows, int width, int height) {
  return x + dx < 0 || y + dy < 0 || x + dx + columns > width || y + dy + rows > height;
}

DEVICE int whole_sad(const uint8_t *block, const uint8_t *area, int stride, int dx, int dy, int columns, int rows) {
  int sad = 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) sad += difference(block + i * B + j, area + (dy + i) * stride + dx + j);
  return sad;
}

// getBlock: `stride` x `stride` samples of frame uint8[height, width] from (x, y) on, edges repeated. Grid: rows.
extern "C" __global__ void get_block(const uint8_t *frame, int width, int height, int x, int y, int stride, uint8_t *out) {
  const uint8_t *row = frame + size_t(clip3(0, height - 1, y + int(blockIdx.x))) * width;
  for (int i = threadIdx.x; i < stride; i += blockDim.x) out[blockIdx.x * stride + i] = row[clip3(0, width - 1, x + i)];
}

// One candidate: a thread a sample, 32 CUDA blocks of 32 threads, each a sum. partial int32[32].
extern "C" __global__ void sad_rows(const uint8_t *block, const uint8_t *area, int stride, int dx, int dy, int columns, int rows,
                                    int *partial) {
  const int x = threadIdx.x, y = blockIdx.y;
  int sad = 0;
  if (x < columns && y < rows) sad = difference(block + y * B + x, area + (dy + y) * stride + dx + x);
  sad = __reduce_add_sync(FULL_WARP, sad);
  if (x == 0) partial[y] = sad;
}

// A thread a candidate: CUDA block y has the candidates of row first + y. results int32[n, n].
extern "C" __global__ void sad_all(const uint8_t *block, const uint8_t *area, int stride, int first, int columns, int rows,
                                   int *results) {
  const int dx = threadIdx.x, dy = blockIdx.y + first;
  results[dy * blockDim.x + dx] = whole_sad(block, area, stride, dx, dy, columns, rows);
}

// The same with the `if`: the area begins at (x, y) of the picture.
extern "C" __global__ void sad_inside(const uint8_t *block, const uint8_t *area, int stride, int columns, int rows, int x, int y,
                                      int width, int height, int *results) {
  const int dx = threadIdx.x, dy = blockIdx.y;
  const bool out = leaves(x, y, dx, dy, columns, rows, width, height);
  results[dy * blockDim.x + dx] = out ? COST_OUTSIDE : whole_sad(block, area, stride, dx, dy, columns, rows);
}

// Algorithm 1: a CUDA block a candidate, 32 threads in z that take a column each.
extern "C" __global__ void sad_z(const uint8_t *block, const uint8_t *area, int stride, int columns, int rows, int x, int y, int width,
                                 int height, int *results) {
  SHARED(volatile int, sad, B);
  const int dx = blockIdx.x, dy = blockIdx.y, j = threadIdx.z;
  int *result = results + dy * gridDim.x + dx;
  if (leaves(x, y, dx, dy, columns, rows, width, height)) {
    if (j == 0) *result = COST_OUTSIDE;
    return;
  }
  int sum = 0;
  if (j < columns)
    for (int i = 0; i < rows; i++) sum += difference(block + i * B + j, area + (dy + i) * stride + dx + j);
  sad[j] = sum;
  for (int half = B / 2; half; half >>= 1) {
    __syncwarp();
    if (j < half) sad[j] = sad[j] + sad[j + half];
  }
  if (j == 0) *result = sad[0];
}

// The smallest of `count` keys of a CUDA block's threads; blockDim.x a power of two, at most 128
DEVICE unsigned block_minimum(unsigned key) {
  SHARED(unsigned, keys, 128);
  const int t = threadIdx.x;
  keys[t] = key;
  for (int half = blockDim.x / 2; half; half >>= 1) {
    __syncthreads();
    if (t < half) keys[t] = min(keys[t], keys[t + half]);
  }
  return keys[0];
}

// BestResult on the GPU, first kernel: of each row of results from `first` on. lines uint32[n], SAD << 14 | number.
extern "C" __global__ void row_minimum(const int *results, int first, unsigned *lines) {
  const int n = blockDim.x, at = (first + int(blockIdx.x)) * n + int(threadIdx.x);
  const unsigned best = block_minimum(unsigned(results[at]) << 14 | unsigned(at));
  if (threadIdx.x == 0) lines[first + blockIdx.x] = best;
}

// Second kernel: of the lines.
extern "C" __global__ void last_minimum(const unsigned *lines, unsigned *best) {
  const unsigned key = block_minimum(lines[threadIdx.x]);
  if (threadIdx.x == 0) *best = key;
}

// One iteration of the step search: CUDA block of grid x grid threads, a candidate each, `apart` samples from each other about
// column and row (cx, cy) of the area. results int32[grid, grid].
extern "C" __global__ void step_block(const uint8_t *block, const uint8_t *area, int stride, int cx, int cy, int apart, int columns,
                                      int rows, int x, int y, int width, int height, int *results) {
  const int grid = blockDim.x, dx = cx + (int(threadIdx.x) - grid / 2) * apart, dy = cy + (int(threadIdx.y) - grid / 2) * apart;
  const bool out = leaves(x, y, dx, dy, columns, rows, width, height);
  results[threadIdx.y * grid + threadIdx.x] = out ? COST_OUTSIDE : whole_sad(block, area, stride, dx, dy, columns, rows);
}

// Algorithm 2: a CUDA block a candidate, in y and z of the grid; 256 threads that take four samples each.
extern "C" __global__ void step_z(const uint8_t *block, const uint8_t *area, int stride, int cx, int cy, int apart, int columns,
                                  int rows, int x, int y, int width, int height, int *results) {
  SHARED(int, sad, 256);
  const int grid = gridDim.y, t = threadIdx.x, i = t >> 3;
  const int dx = cx + (int(blockIdx.y) - grid / 2) * apart, dy = cy + (int(blockIdx.z) - grid / 2) * apart;
  int *result = results + blockIdx.z * grid + blockIdx.y;
  if (leaves(x, y, dx, dy, columns, rows, width, height)) {
    if (t == 0) *result = COST_OUTSIDE;
    return;
  }
  int sum = 0;
  for (int j = 4 * (t & 7); j < 4 * (t & 7) + 4; j++)
    if (i < rows && j < columns) sum += difference(block + i * B + j, area + (dy + i) * stride + dx + j);
  sad[t] = sum;
  for (int half = 128; half; half >>= 1) {
    __syncthreads();
    if (t < half) sad[t] += sad[t + half];
  }
  if (t == 0) *result = sad[0];
}
