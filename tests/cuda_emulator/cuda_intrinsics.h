// The built-in variables and functions of device code that the kernels use, in plain C++; part of cuda_emulator.h.
#pragma once

#define threadIdx (emu::current->thread)
#define blockIdx (emu::current->block->index)
#define blockDim (emu::launch->block)
#define gridDim (emu::launch->grid)

inline void __syncthreads() { emu::block_barrier(0, false); }
inline int __syncthreads_or(int v) { return emu::block_barrier(v != 0, false) != 0; }
inline int __syncthreads_count(int v) { return int(emu::block_barrier(v, true)); }
inline void __syncwarp(unsigned mask = ~0u) { unsigned p; emu::exchange(mask, 0, p); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) { emu::spin(); }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }

template <class T> T __shfl_sync(unsigned m, T v, int src, int width = 32) {
  return emu::from_lane(m, v, int(emu::lane() & ~unsigned(width - 1)) + (src & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned m, T v, int x, int = 32) { return emu::from_lane(m, v, int(emu::lane()) ^ x); }
template <class T> T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32) {
  unsigned l = emu::lane();
  return emu::from_lane(m, v, (l & (width - 1)) + d < unsigned(width) ? int(l + d) : int(l));
}
template <class T> T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32) {
  unsigned l = emu::lane();
  return emu::from_lane(m, v, (l & (width - 1)) >= d ? int(l - d) : int(l));
}
inline unsigned __ballot_sync(unsigned m, int v) {
  return emu::fold(m, v ? 1u << emu::lane() : 0u, [](unsigned a, unsigned b) { return a | b; });
}
inline int __any_sync(unsigned m, int v) { return __ballot_sync(m, v) != 0; }
inline int __all_sync(unsigned m, int v) { return __ballot_sync(m, !v) == 0; }
template <class T> T __reduce_min_sync(unsigned m, T v) { return emu::fold(m, v, [](T a, T b) { return a < b ? a : b; }); }
template <class T> T __reduce_max_sync(unsigned m, T v) { return emu::fold(m, v, [](T a, T b) { return a > b ? a : b; }); }
template <class T> T __reduce_add_sync(unsigned m, T v) { return emu::fold(m, v, [](T a, T b) { return T(a + b); }); }
inline unsigned __reduce_or_sync(unsigned m, unsigned v) { return emu::fold(m, v, [](unsigned a, unsigned b) { return a | b; }); }

template <class T> T atomicAdd(T *p, T v) { T o = *p; *p = T(o + v); return o; }
template <class T> T atomicMin(T *p, T v) { T o = *p; *p = o < v ? o : v; return o; }
template <class T> T atomicMax(T *p, T v) { T o = *p; *p = o > v ? o : v; return o; }
template <class T> T atomicOr(T *p, T v) { T o = *p; *p = o | v; return o; }
template <class T> T atomicAnd(T *p, T v) { T o = *p; *p = o & v; return o; }
template <class T> T atomicCAS(T *p, T old, T v) { T o = *p; if (o == old) *p = v; return o; }
template <class T> T atomicExch(T *p, T v) { T o = *p; *p = v; return o; }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return unsigned(((uint64_t(hi) << 32) | lo) >> (s & 31)); }
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) { return unsigned(((uint64_t(hi) << 32) | lo) >> (s < 32 ? s : 32)); }
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return unsigned((((uint64_t(hi) << 32) | lo) << (s & 31)) >> 32); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  uint64_t v = (uint64_t(b) << 32) | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned n = s >> (4 * i) & 7;  // no signs, unlike the instruction
    r |= unsigned(v >> (8 * n) & 255) << (8 * i);
  }
  return r;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += int8_t(a >> (8 * i)) * int8_t(b >> (8 * i));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> (8 * i) & 255) * (b >> (8 * i) & 255);
  return c;
}

// A texture object: point sampling, coordinates clamped, elements as they are
using cudaTextureObject_t = unsigned long long;
struct EmulatedTexture { const unsigned char *samples; int64_t width, height, pitch; };
template <class T> T tex2D(cudaTextureObject_t object, float x, float y) {
  const EmulatedTexture &t = *reinterpret_cast<const EmulatedTexture *>(object);
  const int64_t i = std::clamp<int64_t>(int64_t(floorf(x)), 0, t.width - 1), j = std::clamp<int64_t>(int64_t(floorf(y)), 0, t.height - 1);
  T v;
  memcpy(&v, t.samples + j * t.pitch + i * int64_t(sizeof(T)), sizeof(T));
  return v;
}
