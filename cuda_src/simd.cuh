// Device functions for special instructions of the GPU, each with a plain C++ version
// (H264LITE_EMULATED: compiled with g++ for the tests), and the few ways in which device code differs from C++.
// Samples of 8 bits only: what takes words of four samples (sad4, dot4, average4, byte_of, pack4, load_word).
#pragma once
#ifndef H264LITE_EMULATED
#include <cstdint>
#endif
#include "sample_format.cuh"

#define DEVICE __device__ __forceinline__
#define FULL_WARP 0xffffffffu

// SHARED(type, name, count): static shared memory; DYNAMIC_SHARED(type, name): what the launch asked for.
#ifdef H264LITE_EMULATED
#define SHARED(type, name, count)  \
  static char name##_identity;     \
  type *name = emu::static_shared<type>(&name##_identity, count)
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emu::current->block->shared)
#else
#define SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define DYNAMIC_SHARED(type, name)                                  \
  extern __shared__ __align__(16) unsigned char dynamic_shared_[];  \
  type *name = reinterpret_cast<type *>(dynamic_shared_)
#endif

// The same shared memory with its address in a register: the compiler would compute it again before each access
template <class T>
DEVICE T *in_register(T *shared) {
#ifndef H264LITE_EMULATED
  unsigned address;
  asm volatile("mov.u32 %0, %1;" : "=r"(address) : "r"(unsigned(__cvta_generic_to_shared(shared))));
  return reinterpret_cast<T *>(__cvta_shared_to_generic(address));
#else
  return shared;
#endif
}

// Once in each kernel that runtime/driver_calls.py may start while the kernel before it on its stream ends: afterwards all earlier
// kernels have ended and their writes are visible. Before it only arguments and load_before_the_wait().
DEVICE void wait_for_the_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A byte that no kernel of this stream writes, loaded while the kernel before ends. The compiler would move __ldg after the wait.
DEVICE int load_before_the_wait(const uint8_t *byte) {
#ifndef H264LITE_EMULATED
  unsigned value;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(byte) : "memory");
  return int(value);
#else
  return *byte;
#endif
}

DEVICE int clip3(int low, int high, int x) { return min(max(x, low), high); }
DEVICE int clip1(int x) { return min(max(x, 0), SAMPLE_MAX); }
DEVICE int byte_of(unsigned word, int i) { return int(word >> (8 * i) & 255); }

// c + the sum of absolute differences of four samples
DEVICE unsigned sad4(unsigned a, unsigned b, unsigned c) {
#ifdef H264LITE_EMULATED
  for (int i = 0; i < 4; i++) c += unsigned(abs(byte_of(a, i) - byte_of(b, i)));
  return c;
#else
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(c));
  return c;
#endif
}

// sum + four samples times four signed weights
DEVICE int dot4(unsigned samples, unsigned weights, int sum) {
#ifdef H264LITE_EMULATED
  for (int i = 0; i < 4; i++) sum += byte_of(samples, i) * int8_t(weights >> (8 * i));
#else
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(samples), "r"(weights));
#endif
  return sum;
}

// sum + two 16-bit numbers times the lower two of four weights
DEVICE unsigned dot2(unsigned numbers, unsigned weights, unsigned sum) {
#ifdef H264LITE_EMULATED
  sum += (numbers & 0xffff) * (weights & 255) + (numbers >> 16) * (weights >> 8 & 255);
#else
  asm("dp2a.lo.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(numbers), "r"(weights));
#endif
  return sum;
}

// four rounded-up averages (a + b + 1) >> 1
DEVICE unsigned average4(unsigned a, unsigned b) { return (a | b) - (((a ^ b) & 0xfefefefeu) >> 1); }

DEVICE unsigned min3(unsigned a, unsigned b, unsigned c) {
#ifdef H264LITE_EMULATED
  return min(a, min(b, c));
#else
  return __vimin3_u32(a, b, c);
#endif
}

// x * m + a on the multiply-add pipe; m comes as a kernel argument, else the compiler makes it a shift on the other pipe
DEVICE unsigned mad(unsigned x, unsigned m, unsigned a) { return x * m + a; }

// the four bytes that begin `offset` (0..3) bytes into lo
DEVICE unsigned unaligned(unsigned lo, unsigned hi, unsigned offset) { return __funnelshift_r(lo, hi, 8 * offset); }

// Rows of samples from any address on, in memory that is only read. A row of the plane is a number of words, so that all begin at
// the same place of a word. Four samples lie in two words, or all in the first: no word is read beyond them
struct Rows {
  const unsigned *first, *second;
  unsigned bits;
  int words;
};
DEVICE Rows rows_from(const Sample *p, int stride) {
  const unsigned offset = unsigned(reinterpret_cast<uintptr_t>(p) & 3);
  const unsigned *w = reinterpret_cast<const unsigned *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(3));
  return {w, w + (offset ? 1 : 0), 8 * offset, stride >> 2};  // no branch: loads one after another would wait for each other
}
DEVICE unsigned load_word(const Rows &rows, int i) {
  return __funnelshift_r(__ldg(rows.first + i * rows.words), __ldg(rows.second + i * rows.words), rows.bits);
}
DEVICE unsigned load_word(const Sample *p) { return load_word(rows_from(p, 0), 0); }

DEVICE unsigned pack4(int a, int b, int c, int d) {
  return unsigned(a) | unsigned(b) << 8 | unsigned(c) << 16 | unsigned(d) << 24;
}

// reads a flag of another block: the writer's earlier stores are visible to a thread that has seen the flag
DEVICE int load_acquire(const int *flag) {
#ifdef H264LITE_EMULATED
  return *const_cast<const volatile int *>(flag);
#else
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  return v;
#endif
}
// the same for readers that bypass the L1 cache for the flagged data: an acquiring load would empty the L1 cache
DEVICE int load_past_l1(const int *flag) {
#ifdef H264LITE_EMULATED
  return *const_cast<const volatile int *>(flag);
#else
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  return v;
#endif
}
// a word for other blocks that needs no flag: in the upper half a number says that it is there
typedef unsigned long long Published;
DEVICE Published published(const Published *from) {
#ifdef H264LITE_EMULATED
  return *const_cast<const volatile Published *>(from);
#else
  Published v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
#endif
}
DEVICE void publish(Published *to, unsigned v, unsigned number) {
#ifdef H264LITE_EMULATED
  *const_cast<volatile Published *>(to) = Published(number) << 32 | v;
#else
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(Published(number) << 32 | v) : "memory");
#endif
}
// adds after the writer's earlier stores; a fence would also empty a cache
DEVICE void add_release(int *to, int v) {
#ifdef H264LITE_EMULATED
  atomicAdd(to, v);
#else
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
#endif
}
DEVICE void store_release(int *flag, int v) {
#ifdef H264LITE_EMULATED
  *const_cast<volatile int *>(flag) = v;
#else
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
#endif
}
// orders earlier stores of this thread, and stores that it has seen, before its later stores
DEVICE void fence() {
#ifndef H264LITE_EMULATED
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}
// the same within a block
DEVICE void fence_block() {
#ifndef H264LITE_EMULATED
  asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
}
// atomic operations of one lane on shared memory (the compiler merges the CUDA functions over lanes)
DEVICE void set_bits(unsigned *shared, unsigned bits) {
#ifdef H264LITE_EMULATED
  atomicOr(shared, bits);
#else
  asm volatile("red.relaxed.cta.shared.or.b32 [%0], %1;" ::"r"(unsigned(__cvta_generic_to_shared(shared))), "r"(bits) : "memory");
#endif
}
DEVICE void clear_bits(unsigned *shared, unsigned bits) {
#ifdef H264LITE_EMULATED
  atomicAnd(shared, ~bits);
#else
  asm volatile("red.relaxed.cta.shared.and.b32 [%0], %1;" ::"r"(unsigned(__cvta_generic_to_shared(shared))), "r"(~bits) : "memory");
#endif
}
DEVICE void wait_at_least(const int *flag, int value) {
  while (load_acquire(flag) < value) __nanosleep(32);
}

// a / b, the last bits of it aside
DEVICE float fast_ratio(float a, float b) {
#ifdef H264LITE_EMULATED
  return a / b;
#else
  return __fdividef(a, b);
#endif
}

// Operations of float32 that round each result: the compiler fuses none of them
DEVICE float add_rounded(float a, float b) {
#ifdef H264LITE_EMULATED
  return a + b;
#else
  return __fadd_rn(a, b);
#endif
}
DEVICE float multiply_rounded(float a, float b) {
#ifdef H264LITE_EMULATED
  return a * b;
#else
  return __fmul_rn(a, b);
#endif
}
DEVICE float float_of_bits(unsigned bits) {
#ifdef H264LITE_EMULATED
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
#else
  return __uint_as_float(bits);
#endif
}
DEVICE unsigned bits_of_float(float value) {
#ifdef H264LITE_EMULATED
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
#else
  return __float_as_uint(value);
#endif
}

// two signed 16-bit numbers a word
DEVICE unsigned add2(unsigned a, unsigned b) {
#ifdef H264LITE_EMULATED
  return ((a + b) & 0xffffu) | (((a >> 16) + (b >> 16)) << 16);
#else
  return __vadd2(a, b);
#endif
}
DEVICE unsigned sub2(unsigned a, unsigned b) {
#ifdef H264LITE_EMULATED
  return ((a - b) & 0xffffu) | (((a >> 16) - (b >> 16)) << 16);
#else
  return __vsub2(a, b);
#endif
}
DEVICE unsigned max2(unsigned a, unsigned b) {
#ifdef H264LITE_EMULATED
  short al = short(a), bl = short(b), ah = short(a >> 16), bh = short(b >> 16);
  return uint16_t(al > bl ? al : bl) | unsigned(uint16_t(ah > bh ? ah : bh)) << 16;
#else
  return __vmaxs2(a, b);
#endif
}
DEVICE unsigned min2(unsigned a, unsigned b) {
#ifdef H264LITE_EMULATED
  return sub2(0, max2(sub2(0, a), sub2(0, b)));
#else
  return __vmins2(a, b);
#endif
}
// -1 where a half is negative, else 0
DEVICE unsigned signs2(unsigned a) {
#ifdef H264LITE_EMULATED
  return (a & 0x8000 ? 0xffffu : 0) | (a >> 31 ? 0xffff0000u : 0);
#else
  unsigned signs;  // __byte_perm knows no signs
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(a));
  return signs;
#endif
}
// max(a + b, c)
DEVICE unsigned add_max2(unsigned a, unsigned b, unsigned c) {
#ifdef H264LITE_EMULATED
  return max2(add2(a, b), c);
#else
  return __viaddmax_s16x2(a, b, c);
#endif
}
// Distortion of a 4x4 block between two sets of four rows: SAD.
DEVICE unsigned sad_4x4(const unsigned *a, const unsigned *b) {
  return sad4(a[3], b[3], sad4(a[2], b[2], sad4(a[1], b[1], sad4(a[0], b[0], 0))));
}

// SATD. The additions of the Hadamard transform go to the pipe of the multipliers, which stands idle otherwise: a row's
// transform is four dot products, two of them a word, less that of the other block's row. Halves carry a bias and are never
// negative, so that whole words may be added and subtracted.
constexpr unsigned BIAS = 1024, BOTH_HALVES = 0x10001u;
__constant__ unsigned HIGH_HALF = 65536;  // no constant to the compiler, which would shift instead

template <int HALF>
DEVICE unsigned transform_row(unsigned row, unsigned sum) {
  constexpr unsigned LOW = HALF ? 0x01ffff01u : 0x01010101u, HIGH = HALF ? 0xff01ff01u : 0xffff0101u;
  return mad(unsigned(dot4(row, HIGH, 0)), HIGH_HALF, unsigned(dot4(row, LOW, int(sum))));
}
// The bias less the transforms of a block's rows, as satd_4x4 takes it
struct alignas(16) Transformed {
  unsigned first[4], second[4];
};
DEVICE Transformed transformed(const unsigned *rows) {
  Transformed t;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    t.first[i] = BIAS * BOTH_HALVES - transform_row<0>(rows[i], 0);
    t.second[i] = BIAS * BOTH_HALVES - transform_row<1>(rows[i], 0);
  }
  return t;
}
// sum + max(|a|, |b|) + 2 BIAS of both halves, a and b with twice the bias: with x the larger and n the smaller, without
// bias, max(x, -n) = max(x + n, 0) - n
DEVICE unsigned add_larger_magnitudes(unsigned sum, unsigned a, unsigned b) {
  const unsigned n = min2(a, b);
  return sum + add_max2(max2(a, b), n, 4 * BIAS * BOTH_HALVES) - n;
}
// Half the sum of the absolute Hadamard coefficients, over both halves of a word, each with 8 BIAS:
// |a + b| + |a - b| = 2 max(|a|, |b|) saves the last butterfly and the half
DEVICE unsigned satd_halves(const Transformed &a, const unsigned *rows) {
  unsigned sum = 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    unsigned r[4];
#pragma unroll
    for (int i = 0; i < 4; i++) r[i] = half ? transform_row<1>(rows[i], a.second[i]) : transform_row<0>(rows[i], a.first[i]);
    sum = add_larger_magnitudes(sum, r[0] + r[2], r[1] + r[3]);
    sum = add_larger_magnitudes(sum, r[0] - r[2] + 2 * BIAS * BOTH_HALVES, r[1] - r[3] + 2 * BIAS * BOTH_HALVES);
  }
  return sum;
}
DEVICE unsigned satd_4x4(const Transformed &a, const unsigned *rows) {
  const unsigned sum = satd_halves(a, rows);
  return (sum & 0xffff) + (sum >> 16) - 16 * BIAS;
}
// The SATDs of two predictions of a block, at most 8160 each, the first in the lower half
DEVICE unsigned satd_4x4_pair(const Transformed &a, const unsigned *low, const unsigned *high) {
  const unsigned one = satd_halves(a, low), two = satd_halves(a, high);
  return __byte_perm(one, two, 0x5410) + __byte_perm(one, two, 0x7632) - 16 * BIAS * BOTH_HALVES;
}
DEVICE unsigned satd_4x4(const unsigned *a, const unsigned *b) { return satd_4x4(transformed(a), b); }
// AC energy of a block: the sum of the absolute Hadamard coefficients without the DC
DEVICE int ac_energy(const unsigned *rows) {
  const unsigned none[4] = {0, 0, 0, 0};
  return 2 * int(satd_4x4(none, rows)) - dot4(rows[0], 0x01010101u, dot4(rows[1], 0x01010101u, dot4(rows[2], 0x01010101u, dot4(rows[3], 0x01010101u, 0))));
}
