"""CABAC: slice data (7.3.4) from macroblock arrays, macroblock by macroblock: bins, then the engine.

A macroblock keeps to the 3200 bits of A.3.1 by the rule of I_PCM (macroblock_coding.py), whose bits are those of CAVLC: CABAC
takes hardly more (benchmarks/results). Memory depends on no such rule: what a slice's place cannot hold is not stored.
"""
# Samples of 8 bits only: a sample of I_PCM is a byte.

from collections import namedtuple

import numpy as np

from ...jit.intrinsics import inlined, outlined
from ...jit.kernel import helper
from ...standard.macroblock import I_PCM
from ...standard.sample_format import BIT_DEPTH, MB_HEIGHT_C, MB_SAMPLES, MB_WIDTH_C, SUB_HEIGHT_C, SUB_WIDTH_C
from ..layout import MOST_BINS
from .cabac import BYTE, FULL, PENDING, count_bins, encode_bins, finish_engine, start_contexts, start_engine
from .cabac_macroblock import has_qp_delta, macroblock_bins, put_differences, put_end_of_slice
from .macroblock_syntax import skip_type

BATCH = 2048  # symbols from which on the engine takes them
BINS_ROOM = BATCH + MOST_BINS
STATES_I = 3  # in place of cabac_init_idc: the initial states of I slices
SPARE = 8  # bytes of a slice's place that stay free
PCM_BYTES = MB_SAMPLES * BIT_DEPTH // 8

# Scratch of a frame.
Scratch = namedtuple("Scratch", (
    "bins",  # uint16[BINS_ROOM]
    "contexts",  # uint8[N_STATES]
    "engine",  # int64[4], see cabac.py
    "mvd",  # int16[n_mb, 16, 2] of both lists, see put_differences
))  # fmt: skip


@helper
def put_pcm_samples(out, at, mb, mb_width, source):
    """7.3.5: the samples of an I_PCM macroblock from byte `at` on."""
    x0 = mb % mb_width * 16
    y0 = mb // mb_width * 16
    for i in range(16):
        for j in range(16):
            out[at + 16 * i + j] = source.y[y0 + i, x0 + j]
    for i in range(MB_HEIGHT_C):
        for j in range(MB_WIDTH_C):
            out[at + 256 + 8 * i + j] = source.u[y0 // SUB_HEIGHT_C + i, x0 // SUB_WIDTH_C + j]
            out[at + 320 + 8 * i + j] = source.v[y0 // SUB_HEIGHT_C + i, x0 // SUB_WIDTH_C + j]


@helper
def put_pcm(out, last, n, mb, mb_width, source, scratch):
    """7.3.5: the n bins up to mb_type of I_PCM, alignment and samples; the engine begins anew. False: no place is left."""
    inlined()
    encode_bins(scratch.bins, n, scratch.contexts, scratch.engine, out, last)
    at = (finish_engine(scratch.engine, out, last) + 7) >> 3
    if at + PCM_BYTES > last:
        return False
    put_pcm_samples(out, at, mb, mb_width, source)
    start_engine(scratch.engine, at + PCM_BYTES)
    return True


@helper
def put_cabac_slice(out, header, first_mb, end_mb, mb_width, entries, frame_params, tools, source, m, scratch, mb_ends):
    """7.3.4, 7.3.2.11: macroblocks first_mb .. end_mb - 1 and the stop bit, from bit `header` of out on, the first of a byte.

    entries: Entries; mb_ends: see SliceCounts. Returns the bit position after the stop bit, -1 if fewer than SPARE bytes of
    out are left; and the number of all bins (BinCountsInNALunits, 7.4.2.10).
    """
    outlined()
    bins, contexts, engine, mvd = scratch
    n_ref, n_ref1 = entries
    last = len(out) - SPARE
    previous_qp = np.int64(frame_params[0])
    after_delta = False
    start_contexts(contexts, np.int64(frame_params[1]) if n_ref > 0 else STATES_I, previous_qp)
    start_engine(engine, header >> 3)
    n = 0
    count = 0
    for mb in range(first_mb, end_mb):
        if n_ref > 0:
            put_differences(mb, first_mb, mb_width, n_ref1, m, mvd)
        n = macroblock_bins(
            bins, n, mb, first_mb, mb_width, entries, tools.transform_8x8_mode, previous_qp, after_delta, mvd, m
        )
        if m.mb_type[mb] == I_PCM:
            if not put_pcm(out, last, n, mb, mb_width, source, scratch):
                return np.int64(-1), np.int64(0)
            count += count_bins(bins, n)
            n = 0
        after_delta = False
        if has_qp_delta(m, mb, skip_type(n_ref1)):
            after_delta = m.qp[mb] != previous_qp
            previous_qp = np.int64(m.qp[mb])
        n = put_end_of_slice(bins, n, mb == end_mb - 1)
        if mb_ends is not None:  # None is known while Numba finds types
            encode_bins(bins, n, contexts, engine, out, last)
            count += count_bins(bins, n)
            n = 0
            mb_ends[mb] = 8 * engine[BYTE] + engine[PENDING] + FULL
        if n >= BATCH or mb == end_mb - 1:
            encode_bins(bins, n, contexts, engine, out, last)
            count += count_bins(bins, n)
            n = 0
            if engine[BYTE] > last:
                return np.int64(-1), np.int64(0)
    position = finish_engine(engine, out, last)
    return position if (position + 7) >> 3 <= last else np.int64(-1), np.int64(count)
