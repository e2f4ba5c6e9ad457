"""CAVLC in kernels: bits into a buffer, Exp-Golomb codes (9.1), residual blocks (9.2) written or only counted.

A bit sink is the output uint8[] and `sink` int64[3]: bits not stored yet (right-aligned; higher ones are stale), their
number (below 32), and the byte at which they will be stored.
"""

import numpy as np

from ..standard.cavlc import (
    COEFF_TOKEN,
    NC_CLASS_CHROMA_DC,
    RUN_BEFORE,
    TOTAL_ZEROS,
    TOTAL_ZEROS_CHROMA_DC,
)
from ..standard.jit import helper
from .vector import bit_length

BITS, COUNT, BYTE = range(3)


@helper
def open_sink(out, position, sink):
    """Go on at bit `position` of out, whose earlier bits stay."""
    sink[BYTE] = position >> 3
    sink[COUNT] = position & 7
    sink[BITS] = np.int64(out[position >> 3]) >> (8 - (position & 7))


@helper
def close_sink(out, sink):
    """Store what is left, the last byte filled with zeros; returns the bit position. The sink can go on afterwards."""
    count = sink[COUNT]
    at = sink[BYTE]
    while count >= 8:
        count -= 8
        out[at] = sink[BITS] >> count
        at += 1
    if count > 0:
        out[at] = sink[BITS] << (8 - count)
    sink[COUNT] = count
    sink[BYTE] = at
    return at * 8 + count


@helper
def push(out, bits, count, at, length, code):
    """Append `length` (0..32) bits; the sink is in bits, count, at, and returned so: it stays in registers."""
    bits = (bits << length) | code
    count += length
    if count >= 32:
        count -= 32
        word = bits >> count
        out[at] = word >> 24
        out[at + 1] = word >> 16
        out[at + 2] = word >> 8
        out[at + 3] = word
        at += 4
    return bits, count, at


@helper
def put(out, sink, length, code):
    """u(length) with length 0..32."""
    sink[BITS], sink[COUNT], sink[BYTE] = push(out, sink[BITS], sink[COUNT], sink[BYTE], length, code)


@helper
def put_ue(out, sink, value):
    """9.1: ue(v), codeNum below 2^32 - 1."""
    length = bit_length(value + 1)
    put(out, sink, length - 1, 0)
    put(out, sink, length, value + 1)


@helper
def put_se(out, sink, value):
    """9.1.1: se(v)."""
    put_ue(out, sink, 2 * value - 1 if value > 0 else -2 * value)


@helper
def put_te(out, sink, value, largest):
    """9.1: te(v) with range 0..largest."""
    if largest > 1:
        put_ue(out, sink, value)
    else:
        put(out, sink, 1, 1 - value)


@helper
def level_code(code, suffix_length):
    """9.2.2.1: level_prefix and level_suffix of levelCode as (length, code); level_prefix is at most 15."""
    if suffix_length == 0:
        if code < 14:
            return code + 1, 1
        if code < 30:
            return 19, 16 + code - 14
        return 28, 4096 + code - 30
    if code < 15 << suffix_length:
        return (code >> suffix_length) + 1 + suffix_length, (1 << suffix_length) | (code & ((1 << suffix_length) - 1))
    return 28, 4096 + code - (15 << suffix_length)


@helper
def next_suffix_length(suffix_length, level):
    """9.2.2: suffixLength for the level after this one."""
    suffix_length = max(suffix_length, 1)
    if abs(level) > 3 << (suffix_length - 1) and suffix_length < 6:
        suffix_length += 1
    return suffix_length


@helper
def scan(levels, mb, block, first, total, nonzero):
    """Non-zero levels of a block, the last one first: nonzero[0, k] = level, nonzero[1, k] = position from `first` on.

    levels: int16[n_mb, 27, 16]; total: how many there are; nonzero: int64[2, 16]. Returns the number of trailing ones.
    """
    k = 0
    for i in range(15, first - 1, -1):
        level = np.int64(levels[mb, block, i])
        if level != 0:
            nonzero[0, k] = level
            nonzero[1, k] = i - first
            k += 1
            if k == total:
                break
    ones = 0
    while ones < min(3, total) and abs(nonzero[0, ones]) == 1:
        ones += 1
    return ones


@helper
def put_block(out, sink, levels, mb, block, first, most, total, nc_class, nonzero):
    """7.3.5.3.2, 9.2: residual_block_cavlc(): block `block` of levels int16[n_mb, 27, 16] from position `first` on.

    most: maxNumCoeff; total: TotalCoeff(coeff_token), which must be right; nc_class: row of COEFF_TOKEN.
    nonzero: int64[2, 16], scratch.
    """
    bits, count, at = sink[BITS], sink[COUNT], sink[BYTE]
    if total == 0:
        length, code = COEFF_TOKEN[nc_class, 0, 0, 0], COEFF_TOKEN[nc_class, 0, 0, 1]
        sink[BITS], sink[COUNT], sink[BYTE] = push(out, bits, count, at, length, code)
        return
    ones = scan(levels, mb, block, first, total, nonzero)
    length, code = np.int64(COEFF_TOKEN[nc_class, total, ones, 0]), np.int64(COEFF_TOKEN[nc_class, total, ones, 1])
    for k in range(ones):
        code = code * 2 + (nonzero[0, k] < 0)
    bits, count, at = push(out, bits, count, at, length + ones, code)
    suffix_length = 1 if total > 10 and ones < 3 else 0
    for k in range(ones, total):
        level = nonzero[0, k]
        code = 2 * abs(level) - 2 + (level < 0)
        if k == ones and ones < 3:
            code -= 2
        length, code = level_code(code, suffix_length)
        bits, count, at = push(out, bits, count, at, length, code)
        suffix_length = next_suffix_length(suffix_length, level)
    zeros_left = nonzero[1, 0] + 1 - total
    if total < most:
        if most == 4:
            length, code = TOTAL_ZEROS_CHROMA_DC[total, zeros_left, 0], TOTAL_ZEROS_CHROMA_DC[total, zeros_left, 1]
        else:
            length, code = TOTAL_ZEROS[total, zeros_left, 0], TOTAL_ZEROS[total, zeros_left, 1]
        bits, count, at = push(out, bits, count, at, length, code)
    k = 0
    while zeros_left > 0 and k < total - 1:
        run = nonzero[1, k] - nonzero[1, k + 1] - 1
        row = min(zeros_left, 7)
        bits, count, at = push(out, bits, count, at, RUN_BEFORE[row, run, 0], RUN_BEFORE[row, run, 1])
        zeros_left -= run
        k += 1
    sink[BITS], sink[COUNT], sink[BYTE] = bits, count, at


@helper
def residual_block_bits(levels, mb, block, first, most, total, nc_class, nonzero):
    """9.2: how many bits put_block writes for the same arguments."""
    if total == 0:
        return np.int64(COEFF_TOKEN[nc_class, 0, 0, 0])
    ones = scan(levels, mb, block, first, total, nonzero)
    bits = np.int64(COEFF_TOKEN[nc_class, total, ones, 0]) + ones
    suffix_length = 1 if total > 10 and ones < 3 else 0
    for k in range(ones, total):
        level = nonzero[0, k]
        code = 2 * abs(level) - 2 + (level < 0)
        if k == ones and ones < 3:
            code -= 2
        bits += level_code(code, suffix_length)[0]
        suffix_length = next_suffix_length(suffix_length, level)
    zeros_left = nonzero[1, 0] + 1 - total
    if total < most:
        bits += TOTAL_ZEROS_CHROMA_DC[total, zeros_left, 0] if most == 4 else TOTAL_ZEROS[total, zeros_left, 0]
    k = 0
    while zeros_left > 0 and k < total - 1:
        run = nonzero[1, k] - nonzero[1, k + 1] - 1
        bits += RUN_BEFORE[min(zeros_left, 7), run, 0]
        zeros_left -= run
        k += 1
    return bits


__all__ = [
    "BITS",
    "BYTE",
    "COUNT",
    "NC_CLASS_CHROMA_DC",
    "close_sink",
    "open_sink",
    "put",
    "put_block",
    "put_se",
    "put_te",
    "put_ue",
    "residual_block_bits",
]
