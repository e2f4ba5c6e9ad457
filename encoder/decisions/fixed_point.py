"""Logarithms in integers: decisions about QPs come out alike on every machine."""

from fractions import Fraction
from functools import cache

LOG2_SHIFT = 16  # of logarithms: they are in 1 / 65536
QP_SHIFT = 8  # of QPs with a fraction: they are in 1 / 256
_MANTISSA = 48  # bits


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
