"""AC energy of luma, for decisions that keep the energy of the source (psy-RD); not part of the standard.

The energy of a 4x4 block is the sum of the magnitudes of its Hadamard coefficients without the DC. A reconstruction with less
energy than the source looks blurred, one with more noisy, at the same squared error.
"""

from ...jit.kernel import helper
from ..simd.lanes import sums_of_4
from ..simd.vector import add, load_u8x16, load_u16x16, widen
from .cost import row_16, strip_satd


@helper
def _of_strip(r0, r1, r2, r3):
    """Energies of two quadrants' halves: a row of four 4x4 blocks, four rows u16x16."""
    a, b, c, d = sums_of_4(strip_satd(r0, r1, r2, r3))
    s, t, u, v = sums_of_4(add(add(r0, r1), add(r2, r3)))
    return 2 * (a + b) - s - t, 2 * (c + d) - u - v


@helper
def luma_energy(samples, energy):
    """Energies of the quadrants of samples Sample[MB_SAMPLES] (transform.py) -> energy int64[4]."""
    for k in range(4):
        energy[k] = 0
    for strip in range(4):
        at = 64 * strip
        left, right = _of_strip(
            widen(load_u8x16(samples, at)),
            widen(load_u8x16(samples, at + 16)),
            widen(load_u8x16(samples, at + 32)),
            widen(load_u8x16(samples, at + 48)),
        )
        energy[2 * (strip >> 1)] += left
        energy[2 * (strip >> 1) + 1] += right


@helper
def energy_difference(samples, energy):
    """Sum of the differences of the quadrants of samples Sample[MB_SAMPLES] to `energy`, of luma_energy."""
    total = 0
    for half in range(2):
        left, right = -energy[2 * half], -energy[2 * half + 1]
        for strip in range(2 * half, 2 * half + 2):
            at = 64 * strip
            a, b = _of_strip(
                widen(load_u8x16(samples, at)),
                widen(load_u8x16(samples, at + 16)),
                widen(load_u8x16(samples, at + 32)),
                widen(load_u8x16(samples, at + 48)),
            )
            left, right = left + a, right + b
        total += abs(left) + abs(right)
    return total


@helper
def predicted_difference(target, at, x, y):
    """The same of the macroblock predicted at vector (x, y) to the source; see whole_distortion of mode_decision.py."""
    current, ref_luma, offsets = target
    stride = ref_luma.shape[3]
    base = at + (y >> 2) * stride + (x >> 2)
    f = (y & 3) * 4 + (x & 3)
    a, b = base + offsets[0, f], base + offsets[1, f]
    total = 0
    for half in range(2):
        left = right = 0
        for strip in range(2 * half, 2 * half + 2):
            row, current_at = 4 * strip * stride, 64 * strip
            p, q = _of_strip(
                row_16(ref_luma, a, b, row),
                row_16(ref_luma, a, b, row + stride),
                row_16(ref_luma, a, b, row + 2 * stride),
                row_16(ref_luma, a, b, row + 3 * stride),
            )
            s, t = _of_strip(
                load_u16x16(current, current_at),
                load_u16x16(current, current_at + 16),
                load_u16x16(current, current_at + 32),
                load_u16x16(current, current_at + 48),
            )
            left, right = left + p - s, right + q - t
        total += abs(left) + abs(right)
    return total
