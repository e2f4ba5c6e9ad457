"""CAVLC kernels: bit writer, Exp-Golomb codes (9.1), residual blocks (9.2) written or only counted.

The bit writer is the output uint8[] and `sink` int64[3]: pending bits (right-aligned; higher bits are stale), their
number (below 32), and the byte offset where they will be stored.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cavlc import COEFF_TOKEN, RUN_BEFORE, TOTAL_ZEROS, TOTAL_ZEROS_CHROMA_DC
from ..layout import N_LEVEL_BLOCKS
from ..simd.lanes import bit_count, bit_length, nonzero_lanes

BITS, COUNT, BYTE = range(3)


@helper
def open_sink(out, position, sink):
    """Starts the sink at bit `position` of out; earlier bits are kept."""
    sink[BYTE] = position >> 3
    sink[COUNT] = position & 7
    sink[BITS] = np.int64(out[position >> 3]) >> (8 - (position & 7))


@helper
def close_sink(out, sink):
    """Stores the pending bits, the last byte padded with zeros; returns the bit position. The sink stays usable."""
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
def bit_position(sink):
    """The bit position of the sink."""
    return sink[BYTE] * 8 + sink[COUNT]


@helper
def push(out, bits, count, at, length, code):
    """Appends `length` (0..32) bits; the sink is passed and returned as (bits, count, at), so that it stays in registers."""
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
    """9.1: ue(v), codeNum at most 2^32 - 2."""
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
    """9.2.2: suffixLength of the next level."""
    suffix_length = max(suffix_length, 1)
    if abs(level) > 3 << (suffix_length - 1) and suffix_length < 6:
        suffix_length += 1
    return suffix_length


@helper
def nonzero_levels(levels, mb, block, first, most):
    """Bit mask of the positions of nonzero levels, relative to position `first`.

    levels: int16[n_mb, 27, 16], block `block` of macroblock mb; most: maxNumCoeff, later levels are ignored.
    """
    mask = nonzero_lanes(levels, (mb * N_LEVEL_BLOCKS + block) * 16)
    return mask >> first & ((1 << most) - 1)


@helper
def trailing_ones(levels, mb, block, first, mask):
    """9.2.1: TrailingOnes, and the signs of these levels as bits, the last level's sign first."""
    ones = 0
    signs = 0
    while mask != 0 and ones < 3:
        last = bit_length(mask) - 1
        level = np.int64(levels[mb, block, first + last])
        if abs(level) != 1:
            break
        signs = signs * 2 + (level < 0)
        ones += 1
        mask ^= 1 << last
    return ones, signs


@helper
def runs(mask, zeros_left):
    """9.2.3: the concatenated run_before codes of a block's levels, as (length, code); at most 27 bits."""
    length = 0
    code = 0
    last = bit_length(mask) - 1
    mask ^= 1 << last
    while zeros_left > 0 and mask != 0:
        here = bit_length(mask) - 1
        run = last - here - 1
        row = min(zeros_left, 7)
        length += RUN_BEFORE[row, run, 0]
        code = code << RUN_BEFORE[row, run, 0] | RUN_BEFORE[row, run, 1]
        zeros_left -= run
        mask ^= 1 << here
        last = here
    return length, code


@helper
def put_block(out, sink, levels, mb, block, first, most, nc_class):
    """7.3.5.3.2, 9.2: residual_block_cavlc(): block `block` of levels int16[n_mb, 27, 16] from position `first` on.

    most: maxNumCoeff; nc_class: row of COEFF_TOKEN.
    """
    bits, count, at = sink[BITS], sink[COUNT], sink[BYTE]
    mask = nonzero_levels(levels, mb, block, first, most)
    total = bit_count(mask)
    ones, signs = trailing_ones(levels, mb, block, first, mask)
    length = COEFF_TOKEN[nc_class, total, ones, 0] + ones
    bits, count, at = push(out, bits, count, at, length, COEFF_TOKEN[nc_class, total, ones, 1] << ones | signs)
    if total > 0:
        suffix_length = 1 if total > 10 and ones < 3 else 0
        rest = mask
        for k in range(total):
            last = bit_length(rest) - 1
            rest ^= 1 << last
            if k >= ones:
                level = np.int64(levels[mb, block, first + last])
                code = 2 * abs(level) - 2 + (level < 0)
                if k == ones and ones < 3:
                    code -= 2
                length, code = level_code(code, suffix_length)
                bits, count, at = push(out, bits, count, at, length, code)
                suffix_length = next_suffix_length(suffix_length, level)
        zeros = bit_length(mask) - total
        if total < most:
            length, code = total_zeros_code(most, total, zeros)
            bits, count, at = push(out, bits, count, at, length, code)
        if zeros > 0:
            length, code = runs(mask, zeros)
            bits, count, at = push(out, bits, count, at, length, code)
    sink[BITS], sink[COUNT], sink[BYTE] = bits, count, at


@helper
def total_zeros_code(most, total, zeros):
    """9.2.3: total_zeros as (length, code); most: maxNumCoeff, 4 for chroma DC."""
    if most == 4:
        return TOTAL_ZEROS_CHROMA_DC[total, zeros, 0], TOTAL_ZEROS_CHROMA_DC[total, zeros, 1]
    return TOTAL_ZEROS[total, zeros, 0], TOTAL_ZEROS[total, zeros, 1]
