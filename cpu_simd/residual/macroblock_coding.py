"""Coding steps common to intra and inter macroblocks: sample buffers, levels in scan order, chroma, I_PCM."""

from collections import namedtuple

import numpy as np

from ...jit.kernel import helper
from ...standard.cavlc import MAX_LEVEL
from ...standard.macroblock import I_PCM, RASTER_TO_BLOCK
from ...standard.sample_format import MB_HEIGHT_C, MB_SAMPLES, SUB_HEIGHT_C, SUB_WIDTH_C
from ..costs.cabac_bits import CHROMA_AC, CHROMA_DC, LUMA_4x4
from ..decisions.quantise import FEW_LEVELS, PCM_BITS
from ..layout import CB_DC, LUMA_DC, N_LEVEL_BLOCKS
from ..quantiser.rdo_quant import HALF, weigh_8x8, weigh_blocks
from ..quantiser.trellis import AS_SENT, choose_dc, factor_of, lower_8x8, lower_block, lower_blocks
from ..simd.blocks import count_nonzero, high_8, join, less, load_block, low_8, nonzero_groups, zigzag
from ..simd.lanes import bit_length, nonzero_lanes, sums_of_4
from ..simd.vector import absolute, add, load_u8x8, load_u8x16, load_u16x16, max_s, splat_u16x16, store
from .transform import (
    CB,
    COEFFICIENTS,
    dc_multiplier,
    forward_strips,
    hadamard_2x2,
    quantise_block,
    quantise_dc,
    quantise_kept,
    reconstruct_block,
    reconstruct_strips,
    scale_chroma_dc,
)
from .transform_8x8 import quantise_kept_8x8

# Samples and coefficients of the macroblock that is coded, as transform.py has them; scratch.
Buffers = namedtuple("Buffers", (
    "source",  # Sample[MB_SAMPLES]
    "predicted",  # Sample[MB_SAMPLES]
    "out",  # Sample[MB_SAMPLES], the reconstruction
    "quantised",  # int16[BUFFER]
    "dc",  # int32[96]
    "values",  # int64[16]
    "scratch",  # int16[2 * LONGEST]
    "quantised_8x8",  # int16[BUFFER], see transform_8x8.py
))  # fmt: skip

AS_ROUNDED, BY_CAVLC, BY_CABAC = range(3)
# decimate_score of a level by the run of zeros before it; of eight positions by the mask of their levels, then the same
# without the first of them
_SCORE_OF_RUN = np.array([3, 2, 2, 1, 1, 1, *[0] * 10], np.uint8)


def _score(mask: int) -> tuple[int, int]:
    positions = [i for i in range(8) if mask >> i & 1]
    scores = [int(_SCORE_OF_RUN[i - before - 1]) for before, i in zip([-1, *positions], positions)]
    return sum(scores), sum(scores[1:])


_SCORES = np.array([_score(mask) for mask in range(256)], np.uint8).T.ravel()
DECIMATE_MOST = 9  # score of a level above one: more than any threshold

# How levels are chosen, and their steps.
Rounding = namedtuple("Rounding", (
    "method",  # AS_ROUNDED: by the dead zone alone; BY_CAVLC: by distortion and bits, see rdo_quant; BY_CABAC: see trellis
    "dead_zone",  # of luma, where AS_ROUNDED, see ROUNDING in decisions/quantise.py
    "chroma_dead_zone",
    "factor",  # cost of distortion, see trellis
    "bits",  # int32[N_BITS], of cabac_bits.fill_bits
    "scaling",  # ScalingLists of transform.py
    "cabac",  # of CodingTools, None: kernels are compiled without the trellis
))  # fmt: skip


@helper
def rounding_method(tools, without_cabac):
    """`method` of a Rounding; tools: CodingTools; without_cabac: that of levels chosen for CAVLC."""
    if not tools.trellis:
        return np.int64(AS_ROUNDED)
    return np.int64(BY_CABAC if tools.cabac else without_cabac)


@helper
def by_cabac(rounding):
    """Whether levels are chosen by distortion and bits of CABAC."""
    return bool(rounding.cabac) and rounding.method == BY_CABAC


@helper
def dead_zone_of(category, rounding):
    """The dead zone by which levels are rounded before any are chosen; category: ctxBlockCat."""
    return HALF if rounding.method else rounding.chroma_dead_zone if category == CHROMA_AC else rounding.dead_zone


@helper
def forward_chosen(buffers, strip0, strip1, category, qp, rounding):
    """forward_strips before quantise_chosen; returns whether this may leave levels."""
    first, dead_zone = 0 if category == LUMA_4x4 else 1, dead_zone_of(category, rounding)
    return forward_strips(
        buffers.source, buffers.predicted, strip0, strip1, first, qp, dead_zone, rounding.scaling, buffers.quantised
    )


@helper
def quantise_chosen(buffers, strip0, strip1, category, qp, with_ratios, rounding):
    """quantise_kept with levels chosen as `rounding` says; category: ctxBlockCat, those of AC leave the DC out.

    with_ratios: whether the ratios, by which levels are chosen, are not there yet.
    """
    quantised, scratch = buffers.quantised, buffers.scratch
    first, dead_zone = 0 if category == LUMA_4x4 else 1, dead_zone_of(category, rounding)
    with_ratios = with_ratios and rounding.method != AS_ROUNDED
    coded = quantise_kept(strip0, strip1, first, qp, dead_zone, with_ratios, rounding.scaling, quantised)
    if rounding.method == BY_CAVLC:
        return weigh_blocks(quantised, coded, 4 * strip0, 4 * strip1, first, scratch)
    if by_cabac(rounding):
        factor = factor_of(category, qp, rounding)
        return lower_blocks(quantised, coded, 4 * strip0, 4 * strip1, first, category, factor, rounding, scratch)
    return coded


@helper
def quantise_chosen_8x8(buffers, qp, rounding):
    """quantise_kept_8x8 with levels chosen as `rounding` says; the ratios are there."""
    dead_zone = HALF if rounding.method else rounding.dead_zone
    coded = quantise_kept_8x8(qp, dead_zone, False, rounding.scaling, buffers.quantised_8x8)
    if rounding.method == BY_CAVLC:
        return weigh_8x8(buffers.quantised_8x8, coded, buffers.scratch)
    if by_cabac(rounding):
        return lower_8x8(buffers.quantised_8x8, coded, rounding, buffers.scratch)
    return coded


@helper
def load_macroblock(planes, x0, y0, out):
    """The samples of the macroblock at luma (x0, y0) -> out Sample[MB_SAMPLES], 24 rows of sixteen (transform.py)."""
    src_y, src_u, src_v = planes
    width = src_y.shape[1]
    stride = width // SUB_WIDTH_C
    at = y0 * width + x0
    for i in range(16):
        store(out, 16 * i, load_u8x16(src_y, at + i * width))
    at = (y0 // SUB_HEIGHT_C) * stride + x0 // SUB_WIDTH_C
    for i in range(MB_HEIGHT_C):
        store(out, 256 + 16 * i, join(load_u8x8(src_u, at + i * stride), load_u8x8(src_v, at + i * stride)))


@helper
def store_luma(samples, rec_y, x0, y0):
    """The luma of a buffer Sample[MB_SAMPLES] -> the plane at (x0, y0)."""
    width = rec_y.shape[1]
    for i in range(16):
        store(rec_y, (y0 + i) * width + x0, load_u8x16(samples, 16 * i))


@helper
def store_chroma(samples, rec_u, rec_v, x0, y0):
    """The chroma of a buffer Sample[MB_SAMPLES] -> both planes at chroma (x0, y0)."""
    width = rec_u.shape[1]
    for i in range(MB_HEIGHT_C):
        row = load_u8x16(samples, 256 + 16 * i)
        store(rec_u, (y0 + i) * width + x0, low_8(row))
        store(rec_v, (y0 + i) * width + x0, high_8(row))


@helper
def clear_levels(mb, residual):
    """Clears the levels, total_coeff and transform_8x8 of macroblock mb."""
    levels, total_coeff = residual.levels, residual.total_coeff
    zero = splat_u16x16(0)
    for block in range(N_LEVEL_BLOCKS):
        store(levels, 16 * (N_LEVEL_BLOCKS * mb + block), zero)
    for k in range(24):
        total_coeff[mb, k] = 0
    residual.transform_8x8[mb] = 0


@helper
def scan_luma(quantised, coded, mb, levels, total_coeff):
    """8.5.6: luma blocks with levels (bit mask `coded`, raster) of quantised int16[384] -> levels, total_coeff."""
    for k in range(16):
        if (coded >> k) & 1:
            block = zigzag(load_block(quantised, 64 * (k >> 2) + 4 * (k & 3)))
            store(levels, 16 * (N_LEVEL_BLOCKS * mb + RASTER_TO_BLOCK[k]), block)
            total_coeff[mb, k] = count_nonzero(block)


@helper
def _scan_chroma(quantised, coded, threshold, mb, levels, total_coeff):
    """8.5.6 for chroma AC; drops a plane's levels if their decimate_score is below `threshold`; whether any are left."""
    left = False
    for plane in range(2):
        score, has_levels = 0, False
        for k in range(4):
            column = 2 * plane + (k & 1)
            if (coded >> (16 + 4 * (k >> 1) + column)) & 1:
                n = 16 + 4 * plane + k
                block = zigzag(load_block(quantised, 256 + 64 * (k >> 1) + 4 * column))
                store(levels, 16 * (N_LEVEL_BLOCKS * mb + n), block)
                total_coeff[mb, n] = count_nonzero(block)
                score += decimate_score(mb, n, levels)
                has_levels = True
        if has_levels and score >= threshold:
            left = True
        elif has_levels:
            for n in range(16 + 4 * plane, 20 + 4 * plane):
                store(levels, 16 * (N_LEVEL_BLOCKS * mb + n), splat_u16x16(0))
                total_coeff[mb, n] = 0
            for i in range(8):
                for j in range(8):
                    quantised[256 + 16 * i + 8 * plane + j] = 0
    return left


@helper
def _code_chroma_dc(buffers, qp_c, rounding, mb, levels):
    """8.5.11.1: levels of both chroma DC blocks to `values` and `levels`, after forward_strips; whether any is not 0."""
    values, quantised, scaling = buffers.values, buffers.quantised, rounding.scaling
    dead_zone, any_dc = dead_zone_of(CHROMA_AC, rounding), False
    for k in (0, 4):  # Cb 0..3, Cr 4..7
        multiplier, largest = dc_multiplier(scaling, CB + (k >> 2), qp_c), np.int64(0)
        for i in range(4):
            values[k + i] = quantised[COEFFICIENTS + 256 + 64 * (i >> 1) + 2 * k + 4 * (i & 1)]
        hadamard_2x2(values, k)
        for i in range(k, k + 4):
            largest = max(largest, abs(values[i]))
        if quantise_dc(largest, qp_c, dead_zone, multiplier, scaling.finer) == 0:
            for i in range(k, k + 4):
                values[i] = 0
            continue
        if by_cabac(rounding):
            choose_dc(values, k, AS_SENT, 4, qp_c, CHROMA_DC, multiplier, rounding, buffers.scratch)
        else:
            for i in range(k, k + 4):
                values[i] = quantise_dc(values[i], qp_c, rounding.chroma_dead_zone, multiplier, scaling.finer)
        for i in range(4):
            levels[mb, CB_DC + (k >> 2), i] = values[k + i]
            any_dc |= values[k + i] != 0
    return any_dc


@helper
def code_chroma(buffers, qp_c, rounding, threshold, mb, residual):
    """8.5.4: transforms, quantises and reconstructs the chroma of macroblock mb, whose levels must be cleared.

    A plane's AC levels are dropped if their decimate_score is below `threshold` (not part of the standard). Returns the
    chroma part of coded_block_pattern (0, 1, 2).
    """
    _, predicted, out, quantised, dc, values, _, _ = buffers
    levels, total_coeff, scaling = residual.levels, residual.total_coeff, rounding.scaling
    may_have_ac = forward_chosen(buffers, 4, 6, CHROMA_AC, qp_c, rounding)
    any_dc = _code_chroma_dc(buffers, qp_c, rounding, mb, levels)
    any_ac = False
    if may_have_ac or any_dc:
        coded = quantise_chosen(buffers, 4, 6, CHROMA_AC, qp_c, True, rounding)
        any_ac = coded != 0 and _scan_chroma(quantised, coded, threshold, mb, levels, total_coeff)
    if not any_ac and not any_dc:
        for i in range(256, MB_SAMPLES, 16):
            store(out, i, load_u8x16(predicted, i))
        return 0
    scale_chroma_dc(values, 0, qp_c, scaling)
    scale_chroma_dc(values, 4, qp_c, scaling)
    for i in range(64, 96):
        dc[i] = 0
    for k in range(8):
        dc[64 + 16 * ((k >> 1) & 1) + 8 * (k >> 2) + 4 * (k & 1)] = values[k]
    reconstruct_strips(quantised, dc, predicted, 4, 6, qp_c, scaling, out)
    return 2 if any_ac else 1


@helper
def code_block(source, predicted, qp, rounding, levels, levels_at, rec, rec_at, stride, scratch):
    """Codes one 4x4 block of Intra_4x4 (u8x16, raster); returns its number of nonzero levels.

    Levels in zig-zag order to levels[levels_at..], the reconstruction to the plane rec from flat offset rec_at on.
    """
    dead_zone = HALF if rounding.method else rounding.dead_zone
    quantised, ratios = quantise_block(source, predicted, qp, dead_zone, rounding.scaling)
    if by_cabac(rounding):
        quantised = lower_block(quantised, ratios, LUMA_4x4, rounding, scratch)
    store(levels, levels_at, zigzag(quantised))
    reconstruct_block(quantised, predicted, qp, rounding.scaling, rec, rec_at, stride)
    return count_nonzero(quantised)


@helper
def decimate_score(mb, block, levels):
    """Score of a block's levels: DECIMATE_MOST if any magnitude exceeds 1, else a sum by the run of zeros before each level.

    Not part of the standard. Isolated levels of one late in the scan cost many bits and reduce distortion little: 3, 2, 2,
    1, 1, 1 for runs of 0 to 5 zeros, 0 for longer runs.
    """
    at = 16 * (N_LEVEL_BLOCKS * mb + block)
    if nonzero_groups(less(splat_u16x16(1), absolute(load_u16x16(levels, at)))) != 0:
        return DECIMATE_MOST
    mask = nonzero_lanes(levels, at)
    low, high = mask & 255, mask >> 8
    if high == 0:
        return np.int64(_SCORES[low])
    run = bit_length(high & -high) + 7 - bit_length(low)  # zeros before the first level of `high`
    return np.int64(_SCORES[low]) + np.int64(_SCORES[256 + high]) + np.int64(_SCORE_OF_RUN[run])


@helper
def bits_at_most(mb, levels):
    """9.2: an upper bound of the residual bits of macroblock mb; very large if a level was clipped.

    coeff_token, total_zeros and run_before at their longest codes, levels as in 9.2.2.1.
    """
    bits = 0
    for block in range(N_LEVEL_BLOCKS):
        count = 0
        last = 0
        for i in range(16):
            if levels[mb, block, i] != 0:
                count += 1
                last = i
        if count == 0:
            continue
        bits += 16 + 9 + 3 * count + last + 1 - count
        suffix_length = -1
        ones = 0  # trailing ones
        for i in range(last, -1, -1):
            level = abs(np.int64(levels[mb, block, i]))
            if level == 0:
                continue
            if level == 1 and ones < 3 and suffix_length < 0:
                ones += 1
                bits += 1
                continue
            if level >= MAX_LEVEL:
                return 1 << 20
            if suffix_length < 0:
                suffix_length = 1 if count > 10 and ones < 3 else 0
            code = 2 * level - 1
            if suffix_length == 0 and code < 30:
                bits += code + 1 if code < 14 else 19
            elif code < 15 << suffix_length:
                bits += (code >> suffix_length) + 1 + suffix_length
            else:
                bits += 28
            suffix_length = max(1, suffix_length)
            if level > 3 << (suffix_length - 1) and suffix_length < 6:
                suffix_length += 1
    return bits


@helper
def _bits_bound(mb, count, levels):
    """At least bits_at_most of `count` levels, from their sum: a level takes at most five bits and twice its magnitude."""
    total = splat_u16x16(0)
    for block in range(N_LEVEL_BLOCKS):
        total = add(total, absolute(load_u16x16(levels, 16 * (N_LEVEL_BLOCKS * mb + block))))
    a, b, c, d = sums_of_4(total)
    return N_LEVEL_BLOCKS * (16 + 9 + 16) + (2 + 5) * count + 2 * (a + b + c + d)


@helper
def _is_clipped(mb, first, end, least, levels):
    """Whether any level of blocks [first, end) of macroblock mb has a magnitude of `least` or more."""
    largest = splat_u16x16(0)
    for block in range(first, end):
        largest = max_s(largest, absolute(load_u16x16(levels, 16 * (N_LEVEL_BLOCKS * mb + block))))
    return nonzero_groups(less(splat_u16x16(least - 1), largest)) != 0


@helper
def pcm_is_cheaper(mb, has_scaling_lists, residual):
    """Whether I_PCM is required or takes fewer bits than the levels of a macroblock; not part of the standard.

    It also keeps macroblock_layer( ) below the 3200 bits of A.3.1. With flat scaling lists (has_scaling_lists None) the
    levels of 4x4 blocks are never clipped; with others they are, and rdo_quant lowers some.
    """
    levels, total_coeff = residual.levels, residual.total_coeff
    count = 0
    for k in range(24):
        count += np.int64(total_coeff[mb, k])
    for k in range(LUMA_DC, N_LEVEL_BLOCKS):
        count += count_nonzero(load_u16x16(levels, 16 * (N_LEVEL_BLOCKS * mb + k)))
    given = bool(has_scaling_lists)
    first = 0 if given or residual.transform_8x8[mb] else LUMA_DC
    if _is_clipped(mb, first, N_LEVEL_BLOCKS, MAX_LEVEL - given, levels):
        return True
    if count <= FEW_LEVELS or _bits_bound(mb, count, levels) <= PCM_BITS:
        return False
    return bits_at_most(mb, levels) > PCM_BITS


@helper
def code_pcm(mb, source, x0, y0, rec, residual):
    """7.3.5: I_PCM: copies the source (Sample[MB_SAMPLES]) to the reconstruction, clears levels, sets total_coeff to 16."""
    store_luma(source, rec.y, x0, y0)
    store_chroma(source, rec.u, rec.v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
    clear_levels(mb, residual)
    for k in range(24):
        residual.total_coeff[mb, k] = 16
    return I_PCM
