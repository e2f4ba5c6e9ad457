"""9.2: CAVLC parsing of a block of transform coefficient levels, by look-up tables made of the standard's codes."""

import numpy as np

from ..jit.intrinsics import inlined, outlined
from ..jit.kernel import helper
from ..standard.cavlc import (
    COEFF_TOKEN_LOOKUP,
    NC_CLASS,
    NC_CLASS_CHROMA_DC,
    RUN_BEFORE_LOOKUP,
    TOTAL_ZEROS_CHROMA_DC_LOOKUP,
    TOTAL_ZEROS_LOOKUP,
)
from .bitreader import fail
from .errors import E_COEFF_TOKEN, E_END, E_LEVEL, E_RUN_BEFORE, E_TOTAL_ZEROS
from .layout import S_END, S_POS, S_VALUES
from .unaligned import leading_zeros32, peek32


@helper
def coeff_token(data, s, context):
    """9.2.1: TotalCoeff << 2 | TrailingOnes, or -1; context nC, -1 for chroma DC."""
    inlined()
    position = s[S_POS]
    word = peek32(data, position) >> 16
    table = NC_CLASS_CHROMA_DC if context < 0 else np.int64(NC_CLASS[context])
    entry = np.int64(COEFF_TOKEN_LOOKUP[table, word >> 6 if word >= 1024 else 1024 + word])
    if entry == 0:
        fail(s, E_COEFF_TOKEN)
        return -1
    s[S_POS] = position + (entry >> 8)
    return entry & 255


@helper
def level_values(data, s, total, ones, values):
    """9.2.2: levelVal[total], highest frequency first, into `values`."""
    inlined()
    position = s[S_POS]
    word = peek32(data, position)
    for i in range(ones):
        values[i] = 1 - 2 * (word >> (31 - i) & 1)
    position += ones
    suffix_length = 1 if total > 10 and ones < 3 else 0
    for i in range(ones, total):
        word = peek32(data, position)
        prefix = leading_zeros32(word)
        if prefix > 18:
            fail(s, E_LEVEL)
            return
        position += prefix + 1
        size = suffix_length
        if prefix >= 15:
            size = prefix - 3
        elif prefix == 14 and suffix_length == 0:
            size = 4
        code = min(15, prefix) << suffix_length
        if size:
            code += peek32(data, position) >> (32 - size)
            position += size
        if prefix >= 15 and suffix_length == 0:
            code += 15
        if prefix >= 16:
            code += (1 << (prefix - 3)) - 4096
        if i == ones and ones < 3:
            code += 2
        value = (-code - 1) >> 1 if code & 1 else (code + 2) >> 1
        if abs(value) > 32767:
            fail(s, E_LEVEL)
            return
        values[i] = value
        if suffix_length == 0:
            suffix_length = 1
        if abs(value) > 3 << (suffix_length - 1) and suffix_length < 6:
            suffix_length += 1
    s[S_POS] = position


@helper
def place_levels(data, s, total, size, values, levels, base, scan):
    """9.2.3, 9.2.4: total_zeros and runs; puts the levels at base + scan[coefficient index]."""
    inlined()
    position = s[S_POS]
    left = 0
    if total < size:
        word = peek32(data, position)
        if size == 4:
            entry = np.int64(TOTAL_ZEROS_CHROMA_DC_LOOKUP[total, word >> 29])
        else:
            entry = np.int64(TOTAL_ZEROS_LOOKUP[total, word >> 23])
        left = entry & 15
        if entry == 0 or left + total > size:
            fail(s, E_TOTAL_ZEROS)
            return
        position += entry >> 4
    index = left + total - 1
    levels[base + scan[index]] = values[0]
    for i in range(1, total):
        if left > 0:
            entry = np.int64(RUN_BEFORE_LOOKUP[min(left, 7), peek32(data, position) >> 21])
            run = entry & 15
            if entry == 0 or run > left:
                fail(s, E_RUN_BEFORE)
                return
            position += entry >> 4
            left -= run
            index -= run
        index -= 1
        levels[base + scan[index]] = values[i]
    s[S_POS] = position


@helper
def residual_block_cavlc(data, s, context, size, levels, base, scan):
    """7.3.5.3.2, 9.2: residual_block_cavlc() of at most `size` levels; TotalCoeff."""
    outlined()
    token = coeff_token(data, s, context)
    if token <= 0:
        return 0
    total, ones = token >> 2, token & 3
    if total > size or ones > total:
        fail(s, E_COEFF_TOKEN)
        return 0
    values = s[S_VALUES:]
    level_values(data, s, total, ones, values)
    place_levels(data, s, total, size, values, levels, base, scan)
    if s[S_POS] > s[S_END]:
        fail(s, E_END)
        return 0
    return total
