"""Logarithms and powers in integers: decisions about QPs come out alike on every machine."""

from fractions import Fraction
from functools import cache

import numpy as np

LOG2_SHIFT = 16  # of logarithms: they are in 1 / 65536
QP_SHIFT = 8  # of QPs with a fraction: they are in 1 / 256
_MANTISSA = 48  # bits
_TABLE_BITS = 8  # of the mantissa that choose a row of the tables; the others interpolate
# log2(1 + i / 256) and 2^(i / 256), in 1 / 65536
_LOG2 = np.array([round(np.log2(1 + i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int64)
_EXP2 = np.array([round(2 ** (i / 256) * (1 << LOG2_SHIFT)) for i in range(257)], np.int64)


@cache
def log2_fixed(number: int) -> int:
    """log2 of a positive integer in 1 / 65536, at most one too small."""
    shift = number.bit_length() - 1
    mantissa = number << (_MANTISSA - shift) if shift <= _MANTISSA else number >> (shift - _MANTISSA)
    found = shift
    for _ in range(LOG2_SHIFT):  # a digit each: the square of the mantissa reaches 2 if it is 1
        mantissa = mantissa * mantissa >> _MANTISSA
        digit = mantissa >> (_MANTISSA + 1)
        mantissa >>= digit
        found = 2 * found + digit
    return found


def log2_of(number: float | Fraction) -> int:
    """log2_fixed of a positive number that is exact as a fraction, such as an option."""
    exact = Fraction(number)
    return log2_fixed(exact.numerator) - log2_fixed(exact.denominator)


def fixed(number: float | Fraction, shift: int) -> int:
    """The nearest integer to number * 2^shift."""
    return round(Fraction(number) * (1 << shift))


def scaled(number: int, by: int, shift: int) -> int:
    """number * by / 2^shift, rounded to nearest."""
    return (number * by + (1 << (shift - 1))) >> shift


def log2_array(values: np.ndarray) -> np.ndarray:
    """int64: log2 of integers 1 .. 2^31 - 1, in 1 / 65536, within 2 of these."""
    values = values.astype(np.int64)
    exponent = np.zeros(values.shape, np.int64)
    for step in (16, 8, 4, 2, 1):
        exponent += step * (values >> exponent + step > 0)
    mantissa = values << 31 - exponent & (1 << 31) - 1  # below the leading 1
    return (exponent << LOG2_SHIFT) + _between(_LOG2, mantissa >> 31 - _TABLE_BITS - 15)


def exp2_array(values: np.ndarray) -> np.ndarray:
    """int64: 2^value in 1 / 65536, within 5 of these; values: 0 .. 3 * 65536, in 1 / 65536."""
    fraction = values & (1 << LOG2_SHIFT) - 1
    return _between(_EXP2, fraction << _TABLE_BITS + 15 - LOG2_SHIFT) << (values >> LOG2_SHIFT)


def _between(table: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Interpolation in a table; at: row and 15 bits of a fraction."""
    row, fraction = at >> 15, at & (1 << 15) - 1
    return table[row] + ((table[row + 1] - table[row]) * fraction + (1 << 14) >> 15)
