"""CABAC: the arithmetic encoding engine (9.3.4.2 to 9.3.4.5) over bins in coding order.

A bin is a uint16: ctxIdx << 1 | binVal, with BYPASS and TERMINATE in place of ctxIdx (layout.py). The engine is `state`
int64[4]: codILow with the bits above it that are not stored yet, the number of these bits less FULL, codIRange, and the byte
offset where they will be stored. codILow is kept twice as large as in the standard, so that bypass bins, which add codIRange
after a shift, take the same steps as others. A carry goes into the bytes that are stored, so that no outstanding bits are
counted. `contexts` uint8[N_STATES]: pStateIdx << 1 | valMPS by ctxIdx.
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cabac_contexts import INITIAL_M_N, N_CONTEXTS, NEXT_LPS, RANGE_LPS
from .layout import BYPASS, TERMINATE
from .simd.lanes import bit_length

LOW, PENDING, RANGE, BYTE = range(4)
N_STATES = TERMINATE + 1
FULL = 32  # bits that are stored at once
REGISTER = 11  # bits of codILow: ten in the standard, and twice that

# States besides those of Table 9-45: of BYPASS, where both bins leave codIRange; of TERMINATE (pStateIdx 63)
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
    """uint32[65]: rangeTabLPS (Table 9-44) of a pStateIdx, a byte for each qCodIRangeIdx; 0 for BYPASS."""
    result = np.zeros(65, np.uint32)
    result[:64] = [sum(int(value) << 8 * q for q, value in enumerate(row)) for row in RANGE_LPS]
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
    """9.3.4.2 to 9.3.4.5: encodes bins[0] .. bins[end - 1]; a terminating bin of 1 can only be the last, see finish_engine.

    Bytes beyond out[last] + 4 are lost; state[BYTE] then exceeds `last`.
    """
    low, pending, codi_range, at = state[LOW], state[PENDING], state[RANGE], state[BYTE]
    for i in range(end):
        symbol = np.int64(bins[i])
        probability = np.int64(contexts[symbol >> 1])
        contexts[symbol >> 1] = NEXT_STATE[(probability << 1) | (symbol & 1)]
        is_lps = (probability ^ symbol) & 1
        bypass = probability >> 7
        range_lps = (np.int64(RANGES[probability >> 1]) >> ((codi_range >> 3) & 24)) & 255
        codi_range -= range_lps
        low += (codi_range & -is_lps) << (1 - bypass)
        codi_range += (range_lps - codi_range) & -(is_lps & ~bypass)
        shift = 9 - bit_length(codi_range)
        codi_range <<= shift
        low <<= shift + bypass
        pending += shift + bypass
        if pending >= 0:
            word = low >> (pending + REGISTER)
            low &= (1 << (pending + REGISTER)) - 1
            pending -= FULL
            store_bytes(out, min(at, last), word, 4)
            at += 4
    state[LOW], state[PENDING], state[RANGE], state[BYTE] = low, pending, codi_range, at


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
