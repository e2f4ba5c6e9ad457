"""Logarithms and powers of 2 in integers, for decisions about QPs that are the same on every machine."""

import numpy as np

from ...jit.kernel import closed_kernel, helper

LOG2_SHIFT = 16  # of logarithms: they are in 1 / 65536
QP_SHIFT = 8  # of QPs with a fraction: they are in 1 / 256
_TABLE_BITS, _BITS = 8, 15  # of a mantissa: those that choose a row of a table, and those that interpolate to the next one
# log2(1 + i / 256) and 2^(i / 256), in 1 / 65536
_LOG2 = np.array([round(np.log2(1 + i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int64)
_EXP2 = np.array([round(2 ** (i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int64)


@helper
def _between(table, at):
    """Interpolation in a table; at: row and _BITS of a fraction."""
    row, fraction = at >> _BITS, at & ((1 << _BITS) - 1)
    return table[row] + (((table[row + 1] - table[row]) * fraction + (1 << (_BITS - 1))) >> _BITS)


@helper
def log2(value):
    """log2 of an int64 in 1 .. 2^31 - 1, in 1 / 65536, within 2 of these."""
    exponent = np.int64(0)
    step = np.int64(16)
    while step:
        if value >> (exponent + step):
            exponent += step
        step >>= 1
    mantissa = (value << (31 - exponent)) & ((1 << 31) - 1)  # below the leading 1
    return (exponent << LOG2_SHIFT) + _between(_LOG2, mantissa >> (31 - _TABLE_BITS - _BITS))


@helper
def exp2(value):
    """2^value in 1 / 65536, within 5 of these for values in 0 .. 3 * 65536; value: int64 from 0 on, in 1 / 65536."""
    fraction = value & ((1 << LOG2_SHIFT) - 1)
    return _between(_EXP2, fraction << (_TABLE_BITS + _BITS - LOG2_SHIFT)) << (value >> LOG2_SHIFT)


@closed_kernel
def log2_values(values, results):
    """log2 of each value. values, found (out): int64[n]."""
    for k in range(values.size):
        results[k] = log2(values[k])


@closed_kernel
def exp2_values(values, results):
    """exp2 of each value. values, found (out): int64[n]."""
    for k in range(values.size):
        results[k] = exp2(values[k])
