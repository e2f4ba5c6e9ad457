// Device functions behind which the card's own instructions hide, each with its meaning in plain C++ beside it
// (H264LITE_EMULATED: compiled with g++ for the tests), and the few ways in which device code differs from C++.
#pragma once
#ifndef H264LITE_EMULATED
#include <cstdint>
#endif

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

DEVICE int clip3(int low, int high, int x) { return min(max(x, low), high); }
DEVICE int clip255(int x) { return min(max(x, 0), 255); }
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

DEVICE unsigned pack4(int a, int b, int c, int d) {
  return unsigned(a) | unsigned(b) << 8 | unsigned(c) << 16 | unsigned(d) << 24;
}

// a flag that another block raises: the writer's earlier stores are visible to whoever has seen the flag
DEVICE int load_acquire(const int *flag) {
#ifdef H264LITE_EMULATED
  return *const_cast<const volatile int *>(flag);
#else
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  return v;
#endif
}
DEVICE void store_release(int *flag, int v) {
#ifdef H264LITE_EMULATED
  *const_cast<volatile int *>(flag) = v;
#else
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
#endif
}
DEVICE void wait_at_least(const int *flag, int value) {
  while (load_acquire(flag) < value) __nanosleep(32);
}

// 9.1.1: number of bits of the signed Exp-Golomb code of v
DEVICE int se_bits(int v) {
  unsigned code = v > 0 ? unsigned(2 * v) : unsigned(-2 * v + 1);  // codeNum + 1
  return 2 * (31 - __clz(int(code))) + 1;
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
// max(a + b, c)
DEVICE unsigned add_max2(unsigned a, unsigned b, unsigned c) {
#ifdef H264LITE_EMULATED
  return max2(add2(a, b), c);
#else
  return __viaddmax_s16x2(a, b, c);
#endif
}
// sum + max(|low|, |high|) of both halves of two words: with x the larger and n the smaller, max(x, -n) = max(x + n, 0) - n.
// (A negation of two halves would take the compiler seven instructions.)
DEVICE unsigned add_larger_magnitudes(unsigned sum, unsigned v, unsigned w) {
  const unsigned low = __byte_perm(v, w, 0x5410), high = __byte_perm(v, w, 0x7632), n = min2(low, high);
  return sub2(add2(sum, add_max2(max2(low, high), n, 0)), n);
}

// Distortion of a 4x4 block between two sets of four rows: SAD, or half the sum of the absolute Hadamard coefficients.
DEVICE unsigned sad_4x4(const unsigned *a, const unsigned *b) {
  return sad4(a[3], b[3], sad4(a[2], b[2], sad4(a[1], b[1], sad4(a[0], b[0], 0))));
}
// Four rows as halves of words: columns 0 and 2, columns 1 and 3
struct Halves {
  unsigned even[4], odd[4];
};
DEVICE Halves halves_of(const unsigned *rows) {
  Halves h;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    h.even[i] = rows[i] & 0x00ff00ffu;
    h.odd[i] = __byte_perm(rows[i], 0, 0x4341);
  }
  return h;
}
// |a + b| + |a - b| = 2 max(|a|, |b|) saves the last butterfly and the half
DEVICE unsigned satd_4x4(const Halves &a, const unsigned *rows) {
  const Halves b = halves_of(rows);
  unsigned e[4], o[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    e[i] = sub2(a.even[i], b.even[i]);
    o[i] = sub2(a.odd[i], b.odd[i]);
  }
  unsigned h[8];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    h[i] = add2(e[i], o[i]);
    h[4 + i] = sub2(e[i], o[i]);
  }
  unsigned sum = 0;
#pragma unroll
  for (int g = 0; g < 8; g += 4) {
    const unsigned s0 = add2(h[g], h[g + 2]), s1 = add2(h[g + 1], h[g + 3]), d0 = sub2(h[g], h[g + 2]), d1 = sub2(h[g + 1], h[g + 3]);
    sum = add_larger_magnitudes(sum, add2(s0, s1), sub2(s0, s1));
    sum = add_larger_magnitudes(sum, add2(d0, d1), sub2(d0, d1));
  }
  return (sum & 0xffff) + (sum >> 16);
}
DEVICE unsigned satd_4x4(const unsigned *a, const unsigned *b) { return satd_4x4(halves_of(a), b); }
