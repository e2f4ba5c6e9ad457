"""AC energy of the macroblocks of a source frame, for adaptive quantisation; not part of the standard."""

from ...jit.kernel import closed_kernel, helper
from ...standard.sample_format import MB_HEIGHT_C, MB_WIDTH_C
from ..simd.blocks import join
from ..simd.lanes import squares_of_pairs, sum_of_lanes, sums_of_4
from ..simd.vector import add, load_u8x8, load_u8x16, splat_i32x8, splat_u16x16, widen


@helper
def _luma(plane, x, y):
    """The energy of 16x16 samples from (x, y) on."""
    height, width = plane.shape
    total, squares = splat_u16x16(0), splat_i32x8(0)
    for i in range(16):
        row = widen(load_u8x16(plane, min(y + i, height - 1) * width + x))
        total, squares = add(total, row), add(squares, squares_of_pairs(row))
    a, b, c, d = sums_of_4(total)
    return sum_of_lanes(squares) - ((a + b + c + d) ** 2 >> 8)


@helper
def _chroma(cb, cr, x, y):
    """The energies of 8x8 samples of both planes from (x, y) on, added."""
    height, width = cb.shape
    total, squares = splat_u16x16(0), splat_i32x8(0)
    for i in range(8):
        at = min(y + i, height - 1) * width + x
        row = widen(join(load_u8x8(cb, at), load_u8x8(cr, at)))
        total, squares = add(total, row), add(squares, squares_of_pairs(row))
    a, b, c, d = sums_of_4(total)
    return sum_of_lanes(squares) - ((a + b) ** 2 >> 6) - ((c + d) ** 2 >> 6)


@closed_kernel
def ac_energies(source, row0, row1, energy):
    """Energies of macroblock rows [row0, row1): squared differences of the samples of Y, Cb, Cr to their means, summed.

    source: Planes as wide as the coded ones; the last row goes on below. energy: int32[n_mb] out, each sum rounded up by less
    than 1 a plane, below 2^23.
    """
    mb_width = source.y.shape[1] // 16
    for my in range(row0, row1):
        for mx in range(mb_width):
            luma = _luma(source.y, 16 * mx, 16 * my)
            energy[my * mb_width + mx] = luma + _chroma(source.u, source.v, MB_WIDTH_C * mx, MB_HEIGHT_C * my)
