// Plays a CUDA device in plain C++, so that the kernels of cuda_src/ run without a GPU.
//
// Every CUDA thread is a coroutine with a stack of its own; it hands over where a real thread may have to wait: at
// __syncthreads, at __syncwarp and the warp operations, and in the loops that wait for another block (__nanosleep).
// All runs in one thread of the operating system, in an order that the seed of the launch decides (0 ascending,
// 1 descending, otherwise random): what is missing a barrier gives another result in another order. Shared memory
// starts as garbage. A block whose threads all wait only for other blocks makes room for the next one, so persistent
// kernels progress; a barrier that not every thread reaches ends the launch with an error instead of hanging.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

struct dim3 { unsigned x, y, z; };
template <class T, int A> struct alignas(A) Pair { T x, y; };
template <class T, int A> struct alignas(A) Quad { T x, y, z, w; };
using uint2 = Pair<unsigned, 8>;   using int2 = Pair<int, 8>;   using short2 = Pair<short, 4>;   using uchar2 = Pair<unsigned char, 2>;
using uint4 = Quad<unsigned, 16>;  using int4 = Quad<int, 16>;  using short4 = Quad<short, 8>;   using uchar4 = Quad<unsigned char, 4>;
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline short2 make_short2(short x, short y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

namespace emu {

constexpr size_t STACK_BYTES = 128 << 10;
constexpr size_t STEP_BYTES = 5 << 6;  // between the ends of stacks, which else share few lines of the cache
constexpr size_t SHARED_BYTES = 228 << 10;  // what a multiprocessor of an H100 has
constexpr unsigned RESIDENT = 64;           // blocks that may be on the way at once

struct Block;
struct Fiber {
  void *sp = nullptr;
  char *stack = nullptr;
  const unsigned *gate = nullptr;  // waits while *gate == closed
  unsigned closed = 0;
  bool done = false;
  dim3 thread{};
  unsigned linear = 0;
  Block *block = nullptr;
};
struct WarpGate { unsigned mask, lanes, arrived, generation, folded; uint64_t value[2][32], result; };
struct Warp { std::vector<std::unique_ptr<WarpGate>> gates; };
struct Block {
  dim3 index{};
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  unsigned live = 0, arrived = 0, generation = 0;
  uint64_t collected[2] = {0, 0};  // operands of __syncthreads_or and __syncthreads_count
  std::vector<unsigned> order;
  size_t at = 0;      // the thread that runs, by its place in `order`
  bool spun = false;  // one of those that ran since the first in `order` waits for another block
  char *shared = nullptr;
  size_t used = 0;
  std::vector<std::pair<const void *, char *>> statics;
};
struct Launch {
  void *kernel;
  dim3 grid, block;
  size_t dynamic_bytes;
  int64_t args[48];
  uint64_t progress, random;
};
inline Fiber *current = nullptr;
inline void *scheduler_sp = nullptr;
inline Launch *launch = nullptr;
inline std::vector<char *> stack_pool, shared_pool;

extern "C" void emu_switch(void **save, void *load);
#if defined(__x86_64__)
asm(R"(
.text
.type emu_switch, @function
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
inline void *first_frame(char *top, void (*entry)()) {
  void **sp = reinterpret_cast<void **>(top) - 2;  // the entry finds the stack as after a call
  *sp = reinterpret_cast<void *>(entry);
  sp -= 6;
  return sp;
}
#elif defined(__aarch64__)
asm(R"(
.text
.type emu_switch, %function
emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
inline void *first_frame(char *top, void (*entry)()) {
  char *sp = top - 160;
  memset(sp, 0, 160);
  reinterpret_cast<void **>(sp)[11] = reinterpret_cast<void *>(entry);
  return sp;
}
#else
#error "the emulator switches stacks on x86-64 and AArch64 only"
#endif

inline unsigned random_below(unsigned n) {
  launch->random = launch->random * 6364136223846793005ull + 1442695040888963407ull;
  return unsigned((launch->random >> 33) % n);
}

inline Fiber *next_from(Block &b, size_t at) {  // that can go on; nullptr: none till the last in `order`
  for (; at < b.order.size(); at++) {
    Fiber &f = b.fibers[b.order[at]];
    if (f.done || (f.gate && *f.gate == f.closed)) continue;
    b.at = at;
    return &f;
  }
  return nullptr;
}

inline void hand_over() {  // to the next thread at once, which takes half the switches of a way over the scheduler
  Fiber *self = current, *next = next_from(*self->block, self->block->at + 1);
  if (next) current = next;
  emu_switch(&self->sp, next ? next->sp : scheduler_sp);
}

inline void wait_while(const unsigned *gate, unsigned closed) {
  current->gate = gate;
  current->closed = closed;
  hand_over();
  current->gate = nullptr;
}

inline void spin() { current->block->spun = true; hand_over(); }

inline void fiber_main() {
  using A = int64_t;  // every argument is an integer or a pointer: one register or one slot of the stack each
  const int64_t *a = launch->args;
  auto kernel = reinterpret_cast<void (*)(A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
                                          A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A)>(launch->kernel);
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17],
         a[18], a[19], a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33], a[34],
         a[35], a[36], a[37], a[38], a[39], a[40], a[41], a[42], a[43], a[44], a[45], a[46], a[47]);
  current->done = true;
  current->block->live--;
  launch->progress++;
  hand_over();
}

template <class T> T take(std::vector<T> &pool, size_t bytes) {
  if (pool.empty()) return static_cast<T>(aligned_alloc(4096, bytes));
  T p = pool.back();
  pool.pop_back();
  return p;
}

inline std::unique_ptr<Block> start_block(unsigned n, unsigned seed) {
  auto b = std::make_unique<Block>();
  const dim3 &g = launch->grid, &t = launch->block;
  b->index = {n % g.x, n / g.x % g.y, n / g.x / g.y};
  unsigned count = t.x * t.y * t.z;
  b->fibers.resize(count);
  b->warps.resize((count + 31) / 32);
  b->live = count;
  b->shared = take(shared_pool, SHARED_BYTES);
  b->used = (launch->dynamic_bytes + 63) / 64 * 64;
  memset(b->shared, 0xa5, b->used);
  for (unsigned i = 0; i < count; i++) {
    Fiber &f = b->fibers[i];
    f.block = b.get();
    f.linear = i;
    f.thread = {i % t.x, i / t.x % t.y, i / t.x / t.y};
    f.stack = take(stack_pool, STACK_BYTES);
    f.sp = first_frame(f.stack + STACK_BYTES - i * STEP_BYTES % (STACK_BYTES / 4), fiber_main);
    b->order.push_back(seed == 1 ? count - 1 - i : i);
  }
  if (seed > 1)
    for (unsigned i = count; i > 1; i--) std::swap(b->order[i - 1], b->order[random_below(i)]);
  return b;
}

inline void end_block(Block &b) {
  for (Fiber &f : b.fibers) stack_pool.push_back(f.stack);
  shared_pool.push_back(b.shared);
}

enum Outcome { FINISHED, STALLED, DEADLOCK };

inline Outcome run_block(Block &b) {  // until it ends, or until nothing in it moves without another block
  for (int waits = 0;;) {
    uint64_t before = launch->progress;
    b.spun = false;
    Fiber *first = next_from(b, 0);
    if (first) {
      current = first;
      emu_switch(&scheduler_sp, first->sp);  // until the last in `order` has run
    }
    if (!b.live) return FINISHED;
    if (!first) return DEADLOCK;
    waits += b.spun;
    if (b.spun && (launch->progress == before || waits > 64)) return STALLED;  // also if it waits with warp operations
  }
}

inline int run(unsigned seed) {
  unsigned total = launch->grid.x * launch->grid.y * launch->grid.z, started = 0, stalls = 0;
  std::vector<std::unique_ptr<Block>> active;
  uint64_t last = 0;
  size_t turn = 0;
  while (started < total || !active.empty()) {
    bool fresh = started < total && active.size() < RESIDENT && turn >= active.size();
    if (fresh) {
      unsigned n = seed == 1 && total <= RESIDENT ? total - 1 - started : started;
      active.push_back(start_block(n, seed));
      started++;
      turn = active.size() - 1;
    }
    if (turn >= active.size()) turn = 0;
    Outcome o = run_block(*active[turn]);
    if (o == DEADLOCK) {
      fprintf(stderr, "emulated launch: a barrier that not every thread reaches, block %u,%u,%u\n", active[turn]->index.x,
              active[turn]->index.y, active[turn]->index.z);
      for (auto &b : active) end_block(*b);
      return 1;
    }
    if (o == FINISHED) {
      end_block(*active[turn]);
      active.erase(active.begin() + turn);
      turn = started < total ? active.size() : 0;  // the next block, or again those that wait
      if (!active.empty() && turn >= active.size() && started >= total) turn = 0;
    } else {
      turn++;
    }
    stalls = launch->progress == last ? stalls + 1 : 0;
    last = launch->progress;
    if (stalls > 2000000) {
      fprintf(stderr, "emulated launch: %zu blocks wait for each other without end\n", active.size());
      for (auto &b : active) end_block(*b);
      return 2;
    }
  }
  return 0;
}

// ---- shared memory
template <class T> T *static_shared(const void *id, size_t count) {
  Block &b = *current->block;
  for (auto &s : b.statics)
    if (s.first == id) return reinterpret_cast<T *>(s.second);
  size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  if (b.used + bytes > SHARED_BYTES) { fprintf(stderr, "emulated launch: more shared memory than a multiprocessor has\n"); abort(); }
  char *p = b.shared + b.used;
  memset(p, 0xa5, bytes);
  b.used += bytes;
  b.statics.push_back({id, p});
  return reinterpret_cast<T *>(p);
}

// ---- barriers and warp operations
inline unsigned lane() { return current->linear & 31; }

inline uint64_t block_barrier(unsigned value, bool count) {
  Block &b = *current->block;
  unsigned g = b.generation;
  uint64_t &sum = b.collected[g & 1];
  if (b.arrived == 0) sum = 0;
  sum = count ? sum + (value != 0) : sum | value;
  if (++b.arrived == b.live) { b.arrived = 0; b.generation++; launch->progress++; }
  else wait_while(&b.generation, g);
  return sum;
}

template <class T> WarpGate &exchange(unsigned mask, T value, unsigned &gen) {
  static_assert(sizeof(T) <= 8, "values of a warp operation have at most 8 bytes");
  Warp &w = current->block->warps[current->linear >> 5];
  unsigned size = std::min<unsigned>(32, unsigned(current->block->fibers.size()) - (current->linear & ~31u));
  if (size < 32) mask &= (1u << size) - 1;
  WarpGate *g = nullptr;
  for (auto &x : w.gates) if (x->mask == mask) g = x.get();
  if (!g) {
    w.gates.emplace_back(new WarpGate{mask, unsigned(__builtin_popcount(mask)), 0, 0, ~0u, {}, 0});
    g = w.gates.back().get();
  }
  gen = g->generation;
  memcpy(&g->value[gen & 1][lane()], &value, sizeof(T));
  if (++g->arrived == g->lanes) { g->arrived = 0; g->generation++; launch->progress++; }
  else wait_while(&g->generation, gen);
  return *g;
}
template <class T, class F> T fold(unsigned mask, T value, F f) {
  unsigned gen;
  WarpGate &g = exchange(mask, value, gen);
  T r{};
  if (g.folded != gen) {  // by the first lane that goes on; the next result waits for all lanes to have left this one
    bool first = true;
    for (unsigned i = 0; i < 32; i++)
      if (g.mask >> i & 1) {
        T v;
        memcpy(&v, &g.value[gen & 1][i], sizeof(T));
        r = first ? v : f(r, v);
        first = false;
      }
    g.folded = gen;
    memcpy(&g.result, &r, sizeof(T));
  }
  memcpy(&r, &g.result, sizeof(T));
  return r;
}
template <class T> T from_lane(unsigned mask, T value, int source) {
  unsigned gen;
  WarpGate &g = exchange(mask, value, gen);
  T v;
  memcpy(&v, &g.value[gen & 1][source & 31], sizeof(T));
  return v;
}

}  // namespace emu

#include "cuda_intrinsics.h"

extern "C" __attribute__((visibility("default"))) int emulated_launch(void *kernel, unsigned gx, unsigned gy, unsigned gz,
    unsigned bx, unsigned by, unsigned bz, uint64_t dynamic_bytes, const int64_t *args, unsigned n_args, unsigned seed) {
  emu::Launch l{kernel, {gx, gy, gz}, {bx, by, bz}, size_t(dynamic_bytes), {}, 0, seed * 2654435761ull + 1};
  if (n_args > 48 || dynamic_bytes > emu::SHARED_BYTES || bx * by * bz > 1024 || !(bx * by * bz) || !(gx * gy * gz)) return 3;
  std::copy(args, args + n_args, l.args);
  emu::launch = &l;
  return emu::run(seed);
}
