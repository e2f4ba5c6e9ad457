"""9.3.1.2, 9.3.3.2: the arithmetic decoding engine of CABAC.

codIOffset is kept with s[S_BITS] more bits of the stream below it, at least 8 between two calls; `c` uint8[N_CONTEXTS]
holds the contexts, pStateIdx << 1 | valMPS.
"""

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from ..standard.cabac_contexts import LOG2, NEXT_LPS, RANGE_LPS, UNIT
from .bitreader import fail
from .errors import E_CABAC
from .layout import S_BITS, S_END, S_OFFSET, S_POS, S_RANGE
from .unaligned import peek32

BEYOND = 64  # bits that may be looked at behind the end of the slice

# 9.3.3.2.2: by how much RenormD shifts a range below 512.
SHIFTS = np.array([9] + [9 - int(i).bit_length() for i in range(1, 512)], np.uint8)

# The next state, by pStateIdx << 1 | valMPS (9.3.3.2.1.1): after the more probable bin, and after the other.
AFTER_MPS = np.array([min(i >> 1, 61) + 1 << 1 | i & 1 for i in range(126)] + [126, 127], np.uint8)
AFTER_LPS = np.array([int(NEXT_LPS[i >> 1]) << 1 | (i & 1) ^ (i < 2) for i in range(128)], np.uint8)


@helper
def start(data, s):
    """9.3.1.2: initialise the engine at a byte boundary."""
    outlined()
    s[S_POS] = (s[S_POS] + 7) & ~7
    if s[S_POS] > s[S_END] + BEYOND:
        fail(s, E_CABAC)
        return
    s[S_RANGE] = 510
    s[S_OFFSET] = peek32(data, s[S_POS]) >> 7
    s[S_BITS] = 16
    s[S_POS] += 25


@helper
def refill(data, s):
    """16 more bits below codIOffset."""
    outlined()
    more = np.int64(0)
    if s[S_POS] > s[S_END] + BEYOND:
        fail(s, E_CABAC)
    else:
        more = peek32(data, s[S_POS]) >> 16
        s[S_POS] += 16
    s[S_OFFSET] = s[S_OFFSET] << 16 | more
    s[S_BITS] += 16


@helper
def decision(data, s, c, context):
    """9.3.3.2.1: DecodeDecision: one bin with a context."""
    outlined()
    state = c[context]
    rng = s[S_RANGE]
    bits = s[S_BITS]
    lps = np.int64(RANGE_LPS[state >> 1, (rng >> 6) & 3])
    rng -= lps
    scaled = rng << bits
    value = np.int64(state & 1)
    if s[S_OFFSET] < scaled:
        c[context] = AFTER_MPS[state]
    else:
        s[S_OFFSET] -= scaled
        rng = lps
        value ^= 1
        c[context] = AFTER_LPS[state]
    shift = np.int64(SHIFTS[rng])
    s[S_RANGE] = rng << shift
    s[S_BITS] = bits - shift
    if bits - shift < 8:
        refill(data, s)
    return value


@helper
def bypass(data, s):
    """9.3.3.2.3: DecodeBypass: one bin without a context."""
    outlined()
    bits = s[S_BITS] - 1
    scaled = s[S_RANGE] << bits
    value = np.int64(0)
    if s[S_OFFSET] >= scaled:
        s[S_OFFSET] -= scaled
        value = np.int64(1)
    s[S_BITS] = bits
    if bits < 8:
        refill(data, s)
    return value


@helper
def bypass_exp_golomb(data, s, k):
    """9.3.2.3: the Exp-Golomb suffix of order k of a UEGk binarisation; -1 if it is longer than any legal one."""
    value = np.int64(0)
    while bypass(data, s):
        value += 1 << k
        k += 1
        if k > 15:
            return np.int64(-1)
    while k > 0:
        k -= 1
        value += bypass(data, s) << k
    return value


@helper
def terminate(data, s):
    """9.3.3.2.2.3: DecodeTerminate: end_of_slice_flag, and the bin that says I_PCM."""
    rng = s[S_RANGE] - 2
    if s[S_OFFSET] >= rng << s[S_BITS]:
        return True
    shift = np.int64(SHIFTS[rng])
    s[S_RANGE] = rng << shift
    s[S_BITS] -= shift
    if s[S_BITS] < 8:
        refill(data, s)
    return False


@helper
def position(s):
    """Bits of the RBSP that the engine of the standard, which looks nine bits ahead, has read."""
    return s[S_POS] - s[S_BITS]


@helper
def shifted_out(s):
    """Bits of the RBSP that decisions so far have shifted out of codIOffset."""
    return position(s) - 9


@helper
def spent(s, is_cabac):
    """Bits of the RBSP that syntax elements so far have taken, in 1 / UNIT bits; with CABAC by codIRange (9.3.4.2)."""
    if is_cabac:
        return UNIT * position(s) - np.int64(LOG2[s[S_RANGE]])
    return UNIT * s[S_POS]
