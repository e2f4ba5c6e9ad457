"""Bits of a frame's vectors and levels, counted once more from the arrays that its slices are written from.

Not part of the standard. With CAVLC code words are counted. With CABAC a bin takes log2(codIRange / r) bits, r: its share of
codIRange before renormalisation (9.3.4.2). As log2(2 r) is log2(r) + 1 here too, the bits of all bins add up to what the
engine shifts out, within one bit a slice.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.cabac_contexts import (
    ABS_LEVEL_BASE,
    CODED_BLOCK_BASE,
    CTX_MB_QP_DELTA,
    CTX_MVD_X,
    CTX_SUB_MB_TYPE_B,
    CTX_SUB_MB_TYPE_P,
    FIRST_RANGE,
    LAST_BASE,
    LOG2,
    SIGNIFICANT_BASE,
    UNIT,
)
from ...standard.macroblock import I_PCM, LAST_INTRA, I_4x4, I_16x16, P_16x16
from ..layout import BYPASS, ENTRY_BYTES, MOST_BINS
from ..simd.lanes import bit_length
from .cabac import CONTEXT_MASK, N_STATES, NEXT_STATE, PAIRED_BIT, RANGES, start_contexts
from .cabac_macroblock import has_qp_delta, macroblock_bins, put_differences, put_end_of_slice
from .cabac_slice import STATES_I
from .cavlc import bit_position, open_sink
from .cavlc_macroblock import put_p_or_b, put_residual
from .macroblock_syntax import b_mb_type, skip_type

OTHER, VECTORS, LUMA, CHROMA, N_KINDS = range(5)  # kinds of bits


def _kinds():
    """uint8[N_STATES]: the kind of a bin by ctxIdx."""
    result = np.full(N_STATES, OTHER, np.uint8)
    result[CTX_SUB_MB_TYPE_P : CTX_SUB_MB_TYPE_P + 3] = VECTORS
    result[CTX_SUB_MB_TYPE_B : CTX_SUB_MB_TYPE_B + 4] = VECTORS
    result[CTX_MVD_X:CTX_MB_QP_DELTA] = VECTORS  # mvd, ref_idx
    for category, size in enumerate((16, 15, 16, 4, 15, 64)):
        kind = CHROMA if category in (3, 4) else LUMA
        counts = (4, size - 1, size - 1, 9 if category == 3 else 10) if size < 64 else (0, 15, 9, 10)
        for bases, count in zip((CODED_BLOCK_BASE, SIGNIFICANT_BASE, LAST_BASE, ABS_LEVEL_BASE), counts):
            result[bases[category] : bases[category] + count] = kind
    return result


KIND_OF_CONTEXT = _kinds()


@helper
def _count_bins(bins, end, contexts, codi_range, kinds):
    """Adds the bits of symbols 0 .. end - 1 to kinds, bypass bins with those before; returns codIRange after them."""
    kind = np.int64(OTHER)
    for i in range(end):
        symbol = np.int64(bins[i])
        context = symbol >> 1 & CONTEXT_MASK
        if context == BYPASS:
            kinds[kind] += UNIT
            continue
        kind = np.int64(KIND_OF_CONTEXT[context])
        probability = np.int64(contexts[context])
        contexts[context] = NEXT_STATE[(probability << 1) | (symbol & 1)]
        share = RANGES[probability] >> (codi_range >> 2 & 48) & 255
        if (probability ^ symbol) & 1 == 0:
            share = codi_range - share
        kinds[kind] += np.int64(LOG2[codi_range]) - np.int64(LOG2[share]) + UNIT * (symbol >> PAIRED_BIT & 1)
        codi_range = share << (9 - bit_length(share))
    return codi_range


@helper
def _count_pcm(kinds):
    """7.3.5: the samples of I_PCM count as levels."""
    kinds[LUMA] += UNIT * 8 * 256
    kinds[CHROMA] += UNIT * 8 * 128


@helper
def _count_cabac(first_mb, end_mb, mb_width, entries, frame_params, transform_8x8_mode, m, scratch, kinds):
    """The slice of macroblocks first_mb .. end_mb - 1; entries, scratch (bins, contexts, mvd): see put_cabac_slice."""
    bins, contexts, mvd = scratch
    n_ref, n_ref1 = entries
    previous_qp, after_delta = np.int64(frame_params[0]), False
    start_contexts(contexts, np.int64(frame_params[1]) if n_ref > 0 else STATES_I, previous_qp)
    codi_range = np.int64(FIRST_RANGE)
    for mb in range(first_mb, end_mb):
        if n_ref > 0:
            put_differences(mb, first_mb, mb_width, n_ref1, m, mvd)
        n = macroblock_bins(bins, 0, mb, first_mb, mb_width, entries, transform_8x8_mode, previous_qp, after_delta, mvd, m)
        if m.mb_type[mb] == I_PCM:
            _count_bins(bins, n, contexts, codi_range, kinds)
            _count_pcm(kinds)
            codi_range = np.int64(FIRST_RANGE)
            n = 0
        n = put_end_of_slice(bins, n, mb == end_mb - 1)
        codi_range = _count_bins(bins, n, contexts, codi_range, kinds)
        after_delta = False
        if has_qp_delta(m, mb, skip_type(n_ref1)):
            after_delta = m.qp[mb] != previous_qp
            previous_qp = np.int64(m.qp[mb])


@helper
def _mb_type_bits(m, mb, n_ref1):
    """Bits of mb_type of an inter macroblock; P_8x8ref0 takes as many as P_8x8."""
    if n_ref1 is not None:
        if n_ref1 > 0:
            return 2 * bit_length(b_mb_type(m, mb) + 1) - 1
    return 2 * bit_length(np.int64(m.mb_type[mb]) - P_16x16 + 1) - 1


@helper
def _count_cavlc(first_mb, end_mb, mb_width, entries, m, out, sink, kinds):
    """The slice of macroblocks first_mb .. end_mb - 1. Each kind of a macroblock is written to `out` on its own.

    entries: Entries; out: uint8[2 ENTRY_BYTES]; sink: see cavlc.py.
    """
    limit = 8 * ENTRY_BYTES
    n_ref, n_ref1 = entries
    skip = skip_type(n_ref1)
    for mb in range(first_mb, end_mb):
        mb_type, pattern = np.int64(m.mb_type[mb]), np.int64(m.cbp[mb])
        left, above = mb % mb_width > 0 and mb > first_mb, mb - mb_width >= first_mb
        if mb_type == skip:
            continue
        if mb_type == I_PCM:
            _count_pcm(kinds)
            continue
        if mb_type > LAST_INTRA:
            open_sink(out, 0, sink)
            put_p_or_b(out, sink, mb, mb_type, n_ref, n_ref1, m, mb_width, first_mb)
            kinds[VECTORS] += UNIT * (bit_position(sink) - _mb_type_bits(m, mb, n_ref1))
        if pattern & 15 or mb_type == I_16x16:
            open_sink(out, 0, sink)
            put_residual(out, sink, limit, mb, mb_type, pattern & 15, m.levels, m.total_coeff, left, above, mb_width)
            kinds[LUMA] += UNIT * bit_position(sink)
        if pattern >> 4:
            open_sink(out, 0, sink)
            put_residual(out, sink, limit, mb, I_4x4, pattern & 48, m.levels, m.total_coeff, left, above, mb_width)
            kinds[CHROMA] += UNIT * bit_position(sink)


@closed_kernel
def bits_by_kind(slice_starts, frame_params, entries, mb_width, macroblocks, tools, kinds):
    """Bits of a frame in UNITs: of OTHER syntax of macroblocks (CABAC only), VECTORS with ref_idx and sub_mb_type, levels.

    slice_starts, frame_params, entries, mb_width, macroblocks, tools: as write_slices has them, whose slices fit their
    places; kinds: int64[N_KINDS] out. Levels are with coded_block_flag or coeff_token, those of I_PCM its samples.
    """
    n_mb = len(macroblocks.mb_type)
    cabac = tools.cabac != 0
    n_ref, n_ref1 = entries
    out, sink = np.zeros(2 * ENTRY_BYTES, np.uint8), np.zeros(3, np.int64)
    bins, contexts = np.empty(MOST_BINS if cabac else 0, np.uint16), np.empty(N_STATES, np.uint8)
    mvd = np.empty((n_mb if cabac and n_ref > 0 else 0, 16, 2), np.int16)
    mvd1 = np.empty((n_mb if cabac and n_ref1 else 0, 16, 2), np.int16)
    for k in range(N_KINDS):
        kinds[k] = 0
    for n in range(len(slice_starts) - 1):
        first_mb, end_mb = np.int64(slice_starts[n]), np.int64(slice_starts[n + 1])
        if cabac:
            scratch = bins, contexts, (mvd, mvd1)
            mode = tools.transform_8x8_mode
            _count_cabac(first_mb, end_mb, mb_width, entries, frame_params, mode, macroblocks, scratch, kinds)
        else:
            _count_cavlc(first_mb, end_mb, mb_width, entries, macroblocks, out, sink, kinds)
