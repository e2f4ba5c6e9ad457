"""Logarithms and powers in integers: decisions about QPs come out alike on every machine."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...cpu_simd.decisions import adaptation
from ...cpu_simd.quantiser import logarithms

LOG2_SHIFT, QP_SHIFT = adaptation.LOG2_SHIFT, adaptation.QP_SHIFT
_MANTISSA = 48  # bits


@lru_cache(4096)
def log2_fixed(number: int) -> int:
    """log2 of a positive integer in 1 / 65536, at most one too small."""
    shift = number.bit_length() - 1
    mantissa = number << (_MANTISSA - shift) if shift <= _MANTISSA else number >> (shift - _MANTISSA)
    log2 = shift
    for _ in range(LOG2_SHIFT):  # a digit each: the square of the mantissa reaches 2 if it is 1
        mantissa = mantissa * mantissa >> _MANTISSA
        digit = mantissa >> (_MANTISSA + 1)
        mantissa >>= digit
        log2 = 2 * log2 + digit
    return log2


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


def exp2_array(values: np.ndarray) -> np.ndarray:
    """int64, as values: 2^value in 1 / 65536, within 5 of these; values: 0 .. 3 * 65536, in 1 / 65536."""
    results = np.empty(values.size, np.int64)
    logarithms.exp2_values(values.astype(np.int64).reshape(-1), results)
    return results.reshape(values.shape)
