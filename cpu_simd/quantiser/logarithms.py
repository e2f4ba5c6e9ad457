"""Logarithms and powers of 2 in integers, for decisions about QPs that are the same on every machine."""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ..decisions.adaptation import EXP2_TABLE, FRACTION_BITS, LOG2_SHIFT, LOG2_TABLE, ROW_BITS

_LOG2_RISE, _EXP2_RISE = np.diff(LOG2_TABLE), np.diff(EXP2_TABLE)  # to the next row


@helper
def _between(table, rise, at):
    """int32: interpolation in a table; at: uint32, row and FRACTION_BITS of a fraction."""
    row, fraction = np.uint32(at >> np.uint32(FRACTION_BITS)), np.int32(at & np.uint32((1 << FRACTION_BITS) - 1))
    more = np.int32(np.int32(rise[row] * fraction) + np.int32(1 << (FRACTION_BITS - 1))) >> np.int32(FRACTION_BITS)
    return np.int32(table[row] + np.int32(more))


@helper
def _digit(value, bits):
    """`bits`, or 0 if value, uint32, has no more bits."""
    return np.uint32(bits) if value >= np.uint32(1 << bits) else np.uint32(0)


@helper
def log2(value):
    """int32: log2 of an integer in 1 .. 2^31 - 1, in 1 / 65536, within 2 of these."""
    rest, exponent = np.uint32(value), np.uint32(0)
    for bits in (16, 8, 4, 2, 1):
        digit = _digit(rest, bits)
        rest, exponent = np.uint32(rest >> digit), np.uint32(exponent + digit)
    left = np.uint32(np.uint32(value) << np.uint32(np.uint32(31) - exponent))
    mantissa = np.uint32(left & np.uint32((1 << 31) - 1))  # below the leading 1
    between = _between(LOG2_TABLE, _LOG2_RISE, np.uint32(mantissa >> np.uint32(31 - ROW_BITS - FRACTION_BITS)))
    return np.int32(np.int32(exponent << np.uint32(LOG2_SHIFT)) + between)


@helper
def exp2(value, shift):
    """int32: 2^(value - shift) in 1 / 65536, within 5 of these for results up to 2^3. value: int32 from 0 on, in 1 / 65536;
    shift: int.
    """
    fraction = np.uint32(np.uint32(value) & np.uint32((1 << LOG2_SHIFT) - 1))
    between = _between(EXP2_TABLE, _EXP2_RISE, np.uint32(fraction << np.uint32(ROW_BITS + FRACTION_BITS - LOG2_SHIFT)))
    left = np.int32(np.int32(np.int32(value) >> np.int32(LOG2_SHIFT)) - np.int32(shift))
    larger = np.int32(between << np.int32(max(left, np.int32(0))))
    return np.int32(larger >> np.int32(max(np.int32(-left), np.int32(0))))


@closed_kernel
def log2_values(values, results):
    """log2 of each value. values, results (out): int64[n]."""
    for k in range(values.size):
        results[k] = log2(values[k])


@closed_kernel
def exp2_values(values, results):
    """exp2 of each value. values, results (out): int64[n]."""
    for k in range(values.size):
        results[k] = exp2(values[k], 0)
