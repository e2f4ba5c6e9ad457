"""Bit lengths of Exp-Golomb codes, and motion vector costs: what a decision weighs against distortion."""

from ..standard.jit import kernel
from .vector import bit_length


@kernel
def ue_bits(code_num):
    """9.1: length in bits of ue(v)."""
    return 2 * bit_length(code_num + 1) - 1


@kernel
def se_bits(value):
    """9.1.1: length in bits of se(v)."""
    return 2 * bit_length(abs(value)) + 1


@kernel
def mvd_bits(x, y, px, py):
    """Bits of the two motion vector differences of (x, y) against the predictor (px, py), quarter samples."""
    return se_bits(x - px) + se_bits(y - py)


@kernel
def te_bits(value, n_ref):
    """9.1: length in bits of te(v) as ref_idx_l0 uses it: nothing with one reference, one bit with two."""
    if n_ref <= 1:
        return 0
    if n_ref == 2:
        return 1
    return ue_bits(value)
