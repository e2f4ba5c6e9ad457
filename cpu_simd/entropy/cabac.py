"""CABAC: the arithmetic encoding engine (9.3.4.2 to 9.3.4.5) over bins in coding order.

A symbol is a uint16: ctxIdx << 1 | binVal, with TERMINATE in place of ctxIdx before end_of_slice_flag and I_PCM (layout.py).
A bypass bin belongs to the symbol before it, since most are signs: PAIRED is set, and the bit above it is the bin. BYPASS in
place of ctxIdx stands for no other bin. The engine is `state` int64[4]: codILow with the bits above it that are not stored,
the number of these bits less FULL, codIRange, and the byte offset where they will be stored. A carry goes into the bytes that
are stored, so that no outstanding bits are counted. `contexts` uint8[N_STATES]: pStateIdx << 1 | valMPS by ctxIdx.
"""

import numpy as np

from ...jit.kernel import helper
from ...standard.cabac_contexts import INITIAL_M_N, N_CONTEXTS, NEXT_LPS, RANGE_LPS
from ..layout import BYPASS, TERMINATE

LOW, PENDING, RANGE, BYTE = range(4)
N_STATES = TERMINATE + 1
FULL = 32  # bits that are stored at once
REGISTER = 10  # bits of codILow
CONTEXT_MASK = 2047  # of symbol >> 1
PAIRED_BIT = 12
PAIRED = 1 << PAIRED_BIT

# States besides those of Table 9-45: of BYPASS, an MPS that takes nothing of codIRange; of TERMINATE (pStateIdx 63)
STATE_TERMINATE, STATE_BYPASS = 126, 128


def _next_states():
    """uint8[260]: the state after `state << 1 | bin`."""
    result = np.full(260, STATE_BYPASS, np.uint8)
    for state in range(128):
        index, mps = state >> 1, state & 1
        after_mps = min(index + 1, 62) if index < 63 else 63
        result[state << 1 | mps] = after_mps << 1 | mps
        result[state << 1 | mps ^ 1] = int(NEXT_LPS[index]) << 1 | (mps ^ (index == 0))
    return result


def _ranges():
    """int64[130] by state, 16 bits for each qCodIRangeIdx: rangeTabLPS (Table 9-44), above it the shift to renormalise it."""
    result = np.zeros(130, np.int64)
    for state in range(128):
        for q, value in enumerate(RANGE_LPS[state >> 1].tolist()):
            result[state] |= (value | (9 - value.bit_length()) << 8) << 16 * q
    return result


NEXT_STATE = _next_states()
RANGES = _ranges()


@helper
def start_contexts(contexts, init, slice_qp):
    """9.3.1.1: the initial states; init: cabac_init_idc, or 3 in I slices."""
    qp = min(51, max(0, slice_qp))
    for i in range(N_CONTEXTS):
        value = min(126, max(1, (np.int64(INITIAL_M_N[init, i, 0]) * qp >> 4) + np.int64(INITIAL_M_N[init, i, 1])))
        contexts[i] = (63 - value) << 1 if value <= 63 else (value - 64) << 1 | 1
    contexts[BYPASS] = STATE_BYPASS
    contexts[TERMINATE] = STATE_TERMINATE


@helper
def start_engine(state, at):
    """9.3.4.1: the engine begins at byte `at`; the first bit, always 0, is not stored."""
    state[LOW] = 0
    state[PENDING] = -1 - FULL
    state[RANGE] = 510
    state[BYTE] = at


@helper
def encode_bins(bins, end, contexts, state, out, last):
    """9.3.4.2 to 9.3.4.5: encodes symbols 0 .. end - 1; a terminating bin of 1 can only be the last, see finish_engine.

    Bytes beyond out[last] + 4 are lost; state[BYTE] then exceeds `last`.
    """
    low, pending, codi_range, at = state[LOW], state[PENDING], state[RANGE], state[BYTE]
    for i in range(end):
        symbol = np.int64(bins[i])
        context = symbol >> 1 & CONTEXT_MASK
        probability = np.int64(contexts[context])
        contexts[context] = NEXT_STATE[(probability << 1) | (symbol & 1)]
        step = RANGES[probability] >> (codi_range >> 2 & 48)
        range_lps = step & 255
        shift_lps = step >> 8 & 7
        is_lps = (probability ^ symbol) & 1
        codi_range -= range_lps
        low += codi_range & -is_lps
        shift_mps = np.int64(codi_range < 256)
        codi_range <<= shift_mps
        codi_range = range_lps << shift_lps if is_lps else codi_range
        shift = shift_lps if is_lps else shift_mps
        shift += symbol >> PAIRED_BIT & 1
        low = (low << shift) + (codi_range & -(symbol >> (PAIRED_BIT + 1)))
        pending += shift
        if pending >= 0:
            word = low >> (pending + REGISTER)
            low &= (1 << (pending + REGISTER)) - 1
            pending -= FULL
            store_bytes(out, min(at, last), word, 4)
            at += 4
    state[LOW], state[PENDING], state[RANGE], state[BYTE] = low, pending, codi_range, at


@helper
def count_bins(bins, end):
    """The number of bins in symbols 0 .. end - 1."""
    count = np.int64(0)
    for i in range(end):
        symbol = np.int64(bins[i])
        count += (symbol >> PAIRED_BIT & 1) + (symbol >> 1 & CONTEXT_MASK != BYPASS)
    return count


@helper
def store_bytes(out, at, value, count):
    """Stores `count` bytes, and adds a carry above them to the bytes before."""
    if value >> 8 * count:
        i = at - 1
        while out[i] == 255:
            out[i] = 0
            i -= 1
        out[i] += 1
    for i in range(count):
        out[at + i] = value >> 8 * (count - 1 - i)


@helper
def finish_engine(state, out, last):
    """9.3.4.5, EncodeFlush after a terminating bin of 1, the last bit 1, then zeros up to a byte.

    Returns the bit position after the 1, the stop bit after end_of_slice_flag. Stores at most five bytes from out[last] on.
    """
    count = state[PENDING] + FULL + 3
    value = (state[LOW] >> (REGISTER - 3)) | 1
    padding = -count & 7
    store_bytes(out, min(state[BYTE], last), value << padding, (count + padding) >> 3)
    return 8 * state[BYTE] + count
