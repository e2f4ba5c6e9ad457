// CAVLC in a lane: Exp-Golomb codes (9.1) and residual blocks (9.2), as cpu_simd/entropy/cavlc.py has them.
#pragma once
#include "simd.cuh"
#include "tables.cuh"

// Right-aligned bits; at most 64
struct Code {
  unsigned long long bits = 0;
  int length = 0;
};

DEVICE void append(Code &c, unsigned value, int length) {
  c.bits = c.bits << length | value;
  c.length += length;
}
// 9.1: ue(v) of less than 2^16 in one piece, larger ones with their zeros before
DEVICE void append_ue(Code &c, unsigned value) {
  const int length = 32 - __clz(int(value + 1));
  c.bits <<= length - 1;
  c.length += length - 1;
  append(c, value + 1, length);
}
DEVICE void append_se(Code &c, int value) { append_ue(c, unsigned(value > 0 ? 2 * value - 1 : -2 * value)); }
DEVICE void append_te(Code &c, int value, int largest) {
  if (largest > 1) append_ue(c, unsigned(value));
  else append(c, unsigned(1 - value), 1);
}

// Puts a code at bit `at` of words that are 0 there and of which other lanes write other bits; the first bit is a word's highest
DEVICE void store(unsigned *words, int at, const Code &c) {
  if (c.length == 0) return;
  const unsigned long long left = c.bits << (64 - c.length);
  const int shift = at & 31, last = (at + c.length - 1) >> 5;
  unsigned *w = words + (at >> 5);
  const unsigned high = unsigned(left >> 32), low = unsigned(left);
  atomicOr(w, high >> shift);
  if (last > at >> 5) atomicOr(w + 1, __funnelshift_r(low, high, unsigned(shift)));
  if (last > (at >> 5) + 1) atomicOr(w + 2, __funnelshift_r(0u, low, unsigned(shift)));
}

// Receives the codes of a block: counts them, or stores them from bit `at` on
struct Counted {
  int bits = 0;
  DEVICE void put(unsigned, int length) { bits += length; }
};
struct Stored {
  unsigned *words;
  int at;
  DEVICE void put(unsigned value, int length) {
    store(words, at, {value, length});
    at += length;
  }
};

// 9.2.2.1: level_prefix and level_suffix of levelCode; level_prefix is at most 15
template <class Sink>
DEVICE void put_level(Sink &sink, int code, int suffix_length) {
  const int escape = suffix_length ? 15 << suffix_length : 30;
  if (code >= escape) sink.put(unsigned(4096 + code - escape), 28);
  else if (suffix_length) sink.put(1u << suffix_length | unsigned(code & ((1 << suffix_length) - 1)), (code >> suffix_length) + 1 + suffix_length);
  else if (code < 14) sink.put(1, code + 1);
  else sink.put(unsigned(16 + code - 14), 19);
}

// 7.3.5.3.2: residual_block_cavlc() of the levels that are not 0, bits of `mask`. most: maxNumCoeff; nc_class: row of coeff_token
template <class Sink>
DEVICE void put_block(Sink &sink, const short *__restrict__ levels, unsigned mask, int most, int nc_class) {
  const int total = __popc(mask);
  int ones = 0;
  unsigned signs = 0, rest = mask;
  while (rest && ones < 3) {
    const int last = 31 - __clz(int(rest)), level = __ldg(levels + last);
    if (abs(level) != 1) break;
    signs = 2 * signs + (level < 0);
    ones++;
    rest ^= 1u << last;
  }
  const unsigned token = unsigned(COEFF_TOKEN_CODES[nc_class][total][ones]);
  sink.put((token & 0xffff) << ones | signs, int(token >> 16) + ones);
  if (!total) return;
  int suffix_length = total > 10 && ones < 3, less = ones < 3 ? 2 : 0;
  while (rest) {
    const int last = 31 - __clz(int(rest)), level = __ldg(levels + last);
    put_level(sink, 2 * abs(level) - 2 + (level < 0) - less, suffix_length);
    less = 0;
    suffix_length = max(suffix_length, 1);
    if (abs(level) > 3 << (suffix_length - 1) && suffix_length < 6) suffix_length++;
    rest ^= 1u << last;
  }
  int last = 31 - __clz(int(mask)), zeros = last + 1 - total;
  if (total < most) {
    const int code = most == 4 ? TOTAL_ZEROS_CHROMA_DC_CODES[total][zeros] : TOTAL_ZEROS_CODES[total][zeros];
    sink.put(unsigned(code & 255), code >> 8);
  }
  unsigned before = 0;  // 9.2.3: run_before of all that have one, at most 27 bits
  int length = 0;
  for (rest = mask ^ 1u << last; zeros > 0 && rest;) {
    const int here = 31 - __clz(int(rest)), run = last - here - 1, code = RUN_BEFORE_CODES[min(zeros, 7)][run];
    before = before << (code >> 8) | unsigned(code & 255);
    length += code >> 8;
    zeros -= run;
    rest ^= 1u << here;
    last = here;
  }
  sink.put(before, length);
}
