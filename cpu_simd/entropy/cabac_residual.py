"""CABAC: the bins of residual() (7.3.5.3): coded_block_flag, significance maps, levels; elementary binarisations (9.3.2)."""

import numpy as np

from ...jit.intrinsics import inlined, outlined
from ...jit.kernel import helper
from ...standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    CAT_CHROMA_AC,
    CAT_CHROMA_DC,
    CAT_LUMA_AC,
    CAT_LUMA_DC,
    CODED_BLOCK_BASE,
    LAST_BASE,
    LEVEL_PREFIX,
    SIGNIFICANT_BASE,
    CAT_LUMA_4x4,
    CAT_LUMA_8x8,
    LAST_INC_8x8,
    SIGNIFICANT_INC_8x8,
)
from ...standard.macroblock import BLOCK_TO_RASTER, I_PCM, LAST_INTRA, I_16x16
from ..layout import BYPASS, CB_AC, CB_DC, LUMA_DC
from ..simd.lanes import bit_count, bit_length
from ..simd.vector import add, load_like, splat_u16x8, splat_u16x16, store
from .cabac import PAIRED, PAIRED_BIT
from .cavlc import nonzero_levels

# ctxBlockCat (Table 9-42)

# Flags of blocks in and around a macroblock: block (bx, by) is bit 9 + bx + 8 by of an integer, so that its left and its
# upper neighbour lie 1 and 8 bits below.
_FIRST, _DOWN = 9, 8


def _maps(significant, last):
    """uint16[n, 16, 8]: the symbols of four positions by their four significant_coeff_flag, as many as there are, in order.

    significant, last: ctxIdx of both flags of all positions, four for each n.
    """
    result = np.zeros((len(significant) // 4, 16, 8), np.uint16)
    for n in range(len(result)):
        for pattern in range(16):
            symbols = []
            for k in range(4):
                flag = pattern >> k & 1
                symbols += [int(significant[4 * n + k]) << 1 | flag] + [int(last[4 * n + k]) << 1] * flag
            result[n, pattern, : len(symbols)] = symbols
    return result


# Of 4x4 blocks with both contexts relative to that of the first significant_coeff_flag, alike in all categories; of 8x8
# blocks, whose last position has no flags
MAPS = _maps(np.arange(16), np.arange(16) + (LAST_BASE - SIGNIFICANT_BASE)[0])
MAPS_8x8 = _maps(
    SIGNIFICANT_BASE[CAT_LUMA_8x8] + np.r_[SIGNIFICANT_INC_8x8, 0], LAST_BASE[CAT_LUMA_8x8] + np.r_[LAST_INC_8x8, 0]
)


@helper
def put_bin(bins, at, context, value):
    """9.3.1: a bin with ctxIdx `context` or TERMINATE."""
    bins[np.uint64(at)] = context << 1 | value
    return at + 1


@helper
def put_bypass(bins, at, value):
    """9.3.1: a bypass bin."""
    bins[np.uint64(at)] = BYPASS << 1 | PAIRED | value << (PAIRED_BIT + 1)
    return at + 1


@helper
def put_exp_golomb(bins, at, value, k):
    """9.3.2.3: the suffix of a UEGk binarisation: Exp-Golomb code of order k, bypass bins."""
    while value >= 1 << k:
        at = put_bypass(bins, at, 1)
        value -= 1 << k
        k += 1
    at = put_bypass(bins, at, 0)
    while k > 0:
        k -= 1
        at = put_bypass(bins, at, value >> k & 1)
    return at


@helper
def put_level(bins, at, level, first, others):
    """9.3.2.3: coeff_abs_level_minus1 and coeff_sign_flag; contexts: of the first bin, of the other bins of the prefix.

    Writes sixteen symbols, more than it needs, in place of a loop.
    """
    size = abs(level)
    sign = np.int64(level < 0)
    store(bins, at, splat_u16x16(others << 1 | 1))
    bins[np.uint64(at)] = first << 1 | 1
    if size > LEVEL_PREFIX:
        at = put_exp_golomb(bins, at + LEVEL_PREFIX, size - 1 - LEVEL_PREFIX, 0)
        return put_bypass(bins, at, sign)
    context = first if size == 1 else others
    bins[np.uint64(at + size - 1)] = context << 1 | PAIRED | sign << (PAIRED_BIT + 1)
    return at + size


@helper
def level_contexts(category, ones, larger):
    """9.3.3.1.3: ctxIdx of the first bin and of other bins of a level, after so many levels of one and larger ones."""
    base = np.int64(ABS_LEVEL_BASE[category])
    first = base + (0 if larger > 0 else min(4, 1 + ones))
    return first, base + 5 + min(larger, 3 if category == CAT_CHROMA_DC else 4)


@helper
def put_levels(bins, at, levels, mb, block, first, mask, category):
    """7.3.5.3.3: the levels of a block, downwards; mask, category: see put_block. block: of an 8x8 block its first one."""
    ones = 0
    larger = 0
    while mask != 0:
        i = bit_length(mask) - 1
        mask ^= np.int64(1) << i
        if category == CAT_LUMA_8x8:
            level = np.int64(levels[mb, block + (i & 3), i >> 2])
        else:
            level = np.int64(levels[mb, block, first + i])
        context, others = level_contexts(category, ones, larger)
        at = put_level(bins, at, level, context, others)
        is_one = abs(level) == 1
        ones += is_one
        larger += not is_one
    return at


@helper
def end_map(bins, at, mask, end, last):
    """7.3.5.3.3: the place after the significance map that begins at `at`, whose last_significant_coeff_flag is set.

    end: the number of positions with flags: all up to `last`, but not the last one of the block.
    """
    at += end + bit_count(mask & ((np.int64(1) << end) - 1))
    bins[np.uint64(at - 1)] |= np.int64(last < end)
    return at


@helper
def put_block(bins, at, levels, mb, block, first, mask, most, category):
    """7.3.5.3.3: residual_block_cabac() after coded_block_flag, of `most` levels from position `first` on.

    mask: nonzero_levels of the block, not 0; category: ctxBlockCat, not that of 8x8 blocks.
    """
    outlined()
    last = bit_length(mask) - 1
    end = min(last + 1, most - 1)
    position = at
    for i in range(0, end, 4):
        pattern = mask >> i & 15
        contexts = splat_u16x8(np.int64(SIGNIFICANT_BASE[category]) << 1)
        store(bins, position, add(load_like(contexts, MAPS, 32 * i + 8 * pattern), contexts))
        position += 4 + bit_count(pattern)
    at = end_map(bins, at, mask, end, last)
    return put_levels(bins, at, levels, mb, block, first, mask, category)


@helper
def spread(mask):
    """16 bits -> every fourth of 64."""
    mask = (mask | mask << 24) & 0x000000FF000000FF
    mask = (mask | mask << 12) & 0x000F000F000F000F
    mask = (mask | mask << 6) & 0x0303030303030303
    return (mask | mask << 3) & 0x1111111111111111


@helper
def put_block_8x8(bins, at, levels, mb, quadrant):
    """7.3.5.3.3: residual_block_cabac() of an 8x8 block, which has no coded_block_flag in 4:2:0."""
    outlined()
    mask = np.int64(0)
    for k in range(4):
        mask |= spread(nonzero_levels(levels, mb, 4 * quadrant + k, 0, 16)) << k
    last = bit_length(mask) - 1
    end = min(last + 1, 63)
    position = at
    for i in range(0, end, 4):
        pattern = mask >> i & 15
        store(bins, position, load_like(splat_u16x8(0), MAPS_8x8, 32 * i + 8 * pattern))
        position += 4 + bit_count(pattern)
    at = end_map(bins, at, mask, end, last)
    return put_levels(bins, at, levels, mb, 4 * quadrant, 0, mask, CAT_LUMA_8x8)


@helper
def put_flagged(bins, at, levels, mb, block, first, most, category, around):
    """7.3.5.3.3: coded_block_flag and block. around: flags of the left block (1) and the upper one (2).

    Returns (at, coded_block_flag).
    """
    mask = nonzero_levels(levels, mb, block, first, most)
    at = put_bin(bins, at, np.int64(CODED_BLOCK_BASE[category]) + around, mask != 0)
    if mask == 0:
        return at, 0
    return put_block(bins, at, levels, mb, block, first, mask, most, category), 1


@helper
def luma_flag(m, mb, raster):
    """9.3.3.1.1.9: coded_block_flag of a 4x4 luma block of a neighbour; of an 8x8 block: its bit of coded_block_pattern."""
    if m.transform_8x8[mb]:
        return np.int64(m.cbp[mb]) >> ((raster >> 3) * 2 + (raster >> 1 & 1)) & 1
    return np.int64(m.total_coeff[mb, raster] != 0)


@helper
def luma_flags_around(m, mb, is_intra, left, above, mb_width):
    """9.3.3.1.1.9: coded_block_flag of the luma blocks to the left and above, bits as at _FIRST."""
    flags = np.int64(0)
    for k in range(4):
        coded = luma_flag(m, mb - 1, 4 * k + 3) if left else is_intra
        flags |= coded << (_FIRST - 1 + _DOWN * k)
        coded = luma_flag(m, mb - mb_width, 12 + k) if above else is_intra
        flags |= coded << (_FIRST - _DOWN + k)
    return flags


@helper
def chroma_flags_around(m, mb, base, is_intra, left, above, mb_width):
    """9.3.3.1.1.9: the same of the chroma AC blocks of a plane, whose counts begin at `base`."""
    flags = np.int64(0)
    for k in range(2):
        coded = np.int64(m.total_coeff[mb - 1, base + 2 * k + 1] != 0) if left else is_intra
        flags |= coded << (_FIRST - 1 + _DOWN * k)
        coded = np.int64(m.total_coeff[mb - mb_width, base + 2 + k] != 0) if above else is_intra
        flags |= coded << (_FIRST - _DOWN + k)
    return flags


@helper
def dc_flag(m, mb, block, available, is_intra):
    """9.3.3.1.1.9: coded_block_flag of the DC block `block` of a neighbour, or what stands in for it.

    Levels of DC blocks are 0 where they are not coded.
    """
    if not available:
        return is_intra
    mb_type = m.mb_type[mb]
    if mb_type == I_PCM:
        return 1
    if block == LUMA_DC:
        return np.int64(mb_type == I_16x16 and nonzero_levels(m.levels, mb, block, 0, 16) != 0)
    return np.int64(m.cbp[mb] >> 4 != 0 and nonzero_levels(m.levels, mb, block, 0, 4) != 0)


@helper
def put_luma(bins, at, mb, m, is_intra, left, above, mb_width):
    """7.3.5.3.1: residual_luma() but for the DC block."""
    inlined()
    pattern = np.int64(m.cbp[mb])
    if m.transform_8x8[mb]:
        for q in range(4):
            if pattern >> q & 1:
                at = put_block_8x8(bins, at, m.levels, mb, q)
        return at
    flags = luma_flags_around(m, mb, is_intra, left, above, mb_width)
    first = 1 if m.mb_type[mb] == I_16x16 else 0
    category = CAT_LUMA_AC if first else CAT_LUMA_4x4
    for block in range(16):
        if pattern >> (block >> 2) & 1:
            raster = np.int64(BLOCK_TO_RASTER[block])
            bit = _FIRST + (raster & 3) + _DOWN * (raster >> 2)
            around = (flags >> (bit - 1) & 1) + 2 * (flags >> (bit - _DOWN) & 1)
            at, coded = put_flagged(bins, at, m.levels, mb, block, first, 16 - first, category, around)
            flags |= coded << bit
    return at


@helper
def put_dc(bins, at, mb, m, block, most, category, is_intra, left, above, mb_width):
    """7.3.5.3: coded_block_flag and levels of a DC block."""
    around = dc_flag(m, mb - 1, block, left, is_intra) + 2 * dc_flag(m, mb - mb_width, block, above, is_intra)
    at, _ = put_flagged(bins, at, m.levels, mb, block, 0, most, category, around)
    return at


@helper
def put_chroma_ac(bins, at, mb, m, is_intra, left, above, mb_width):
    """7.3.5.3: the chroma AC blocks, Cb then Cr."""
    inlined()
    for base in range(CB_AC, LUMA_DC, 4):
        flags = chroma_flags_around(m, mb, base, is_intra, left, above, mb_width)
        for k in range(4):
            bit = _FIRST + (k & 1) + _DOWN * (k >> 1)
            around = (flags >> (bit - 1) & 1) + 2 * (flags >> (bit - _DOWN) & 1)
            at, coded = put_flagged(bins, at, m.levels, mb, base + k, 1, 15, CAT_CHROMA_AC, around)
            flags |= coded << bit
    return at


@helper
def put_residual(bins, at, mb, m, left, above, mb_width):
    """7.3.5.3: residual() of macroblock mb."""
    inlined()
    mb_type = m.mb_type[mb]
    is_intra = np.int64(mb_type <= LAST_INTRA)
    if mb_type == I_16x16:
        at = put_dc(bins, at, mb, m, LUMA_DC, 16, CAT_LUMA_DC, is_intra, left, above, mb_width)
    if m.cbp[mb] & 15:
        at = put_luma(bins, at, mb, m, is_intra, left, above, mb_width)
    if m.cbp[mb] >> 4:
        for block in range(CB_DC, CB_DC + 2):
            at = put_dc(bins, at, mb, m, block, 4, CAT_CHROMA_DC, is_intra, left, above, mb_width)
        if m.cbp[mb] >> 4 == 2:
            at = put_chroma_ac(bins, at, mb, m, is_intra, left, above, mb_width)
    return at
