"""Transforms, quantisation and scaling of 4x4 blocks (8.5), on many blocks side by side.

Layout: "lanes". An array of 16 * LANES values holds position p (raster y * 4 + x) of block k at [p * LANES + k], so that
every loop over blocks runs over neighbouring values. Residuals are int16, coefficients and levels int32.
"""

import numpy as np

from ..standard.jit import kernel
from ..standard.tables import QP_CHROMA, QUANT_MF, level_scale_4x4

LANES = 32

# The largest level that CAVLC can write in every context without level_prefix 16 and above (9.2.2.1), which the
# Baseline profile does not know.
MAX_LEVEL = 2063

# Dead zone: a level rounds up from 1 - 1 / DEAD_ZONE on (not part of the standard).
DEAD_ZONE_INTRA = 3
DEAD_ZONE_INTER = 6

LEVEL_SCALE = level_scale_4x4()  # int32[6, 16]: [qP % 6, raster], flat scaling lists


@kernel
def chroma_qp(qp, chroma_qp_offset):
    """8.5.8: QP_C of a luma QP and chroma_qp_index_offset."""
    return int(QP_CHROMA[min(51, max(0, qp + chroma_qp_offset))])


@kernel
def forward_4x4(residual, coefficients, n):
    """Forward core transform of n blocks (the inverse of 8.5.12.2 but for scaling); int16 lanes -> int32 lanes."""
    for i in range(4):
        r = 4 * i * LANES
        for k in range(n):
            a = np.int32(residual[r + k])
            b = np.int32(residual[r + LANES + k])
            c = np.int32(residual[r + 2 * LANES + k])
            d = np.int32(residual[r + 3 * LANES + k])
            s = np.int32(a + d)
            t = np.int32(b + c)
            u = np.int32(b - c)
            v = np.int32(a - d)
            coefficients[r + k] = s + t
            coefficients[r + LANES + k] = v + v + u
            coefficients[r + 2 * LANES + k] = s - t
            coefficients[r + 3 * LANES + k] = v - u - u
    for j in range(4):
        r = j * LANES
        for k in range(n):
            a = coefficients[r + k]
            b = coefficients[r + 4 * LANES + k]
            c = coefficients[r + 8 * LANES + k]
            d = coefficients[r + 12 * LANES + k]
            s = np.int32(a + d)
            t = np.int32(b + c)
            u = np.int32(b - c)
            v = np.int32(a - d)
            coefficients[r + k] = s + t
            coefficients[r + 4 * LANES + k] = v + v + u
            coefficients[r + 8 * LANES + k] = s - t
            coefficients[r + 12 * LANES + k] = v - u - u


@kernel
def inverse_4x4(coefficients, n):
    """8.5.12.2: inverse transform of n scaled blocks with the final rounding, in place; int32 lanes, a residual each."""
    for i in range(4):
        r = 4 * i * LANES
        for k in range(n):
            a = coefficients[r + k]
            b = coefficients[r + LANES + k]
            c = coefficients[r + 2 * LANES + k]
            d = coefficients[r + 3 * LANES + k]
            s = np.int32(a + c)
            t = np.int32(a - c)
            u = np.int32((b >> 1) - d)
            v = np.int32(b + (d >> 1))
            coefficients[r + k] = s + v
            coefficients[r + LANES + k] = t + u
            coefficients[r + 2 * LANES + k] = t - u
            coefficients[r + 3 * LANES + k] = s - v
    for j in range(4):
        r = j * LANES
        for k in range(n):
            a = coefficients[r + k]
            b = coefficients[r + 4 * LANES + k]
            c = coefficients[r + 8 * LANES + k]
            d = coefficients[r + 12 * LANES + k]
            s = np.int32(a + c + 32)
            t = np.int32(a - c + 32)
            u = np.int32((b >> 1) - d)
            v = np.int32(b + (d >> 1))
            coefficients[r + k] = np.int32(s + v) >> 6
            coefficients[r + 4 * LANES + k] = np.int32(t + u) >> 6
            coefficients[r + 8 * LANES + k] = np.int32(t - u) >> 6
            coefficients[r + 12 * LANES + k] = np.int32(s - v) >> 6


@kernel
def quantise_4x4(coefficients, n, qp, dead_zone, first):
    """Levels of n blocks in place, from position `first` on (1 leaves the DC alone). True if all of them are zero.

    level = (|W| * MF + f) >> (15 + qp / 6) with f = 2^(15 + qp / 6) / dead_zone; not part of the standard. |W| <= 9180,
    MF <= 13107 and f <= 2^23 / 3 stay within 31 bits.
    """
    shift = np.int32(15 + qp // 6)
    rounding = np.int32((1 << (15 + qp // 6)) // dead_zone)
    largest = np.int32(MAX_LEVEL)
    m = qp % 6
    seen = np.int32(0)
    for p in range(first, 16):
        factor = np.int32(QUANT_MF[m, p])
        r = p * LANES
        for k in range(n):
            w = coefficients[r + k]
            level = min(np.int32(np.int32(abs(w) * factor) + rounding) >> shift, largest)
            seen |= level
            coefficients[r + k] = -level if w < 0 else level
    return seen == 0


@kernel
def scale_4x4(levels, n, qp, first):
    """8.5.12.1: scaling of the levels of n blocks, in place, from position `first` on (1: the DC was scaled before)."""
    m = qp % 6
    shift = np.int32(qp // 6)
    for p in range(first, 16):
        # LevelScale is a multiple of 16 with flat lists, so the rounding shift right by 4 - qP / 6 loses nothing.
        factor = np.int32((LEVEL_SCALE[m, p] >> 4) << shift)
        r = p * LANES
        for k in range(n):
            levels[r + k] = np.int32(levels[r + k] * factor)


@kernel
def quantise_dc(value, qp, dead_zone):
    """Level of one DC coefficient after its second transform (twice the step of quantise_4x4's position 0)."""
    shift = 16 + qp // 6
    level = min((abs(value) * int(QUANT_MF[qp % 6, 0]) + (1 << shift) // dead_zone) >> shift, MAX_LEVEL)
    return -level if value < 0 else level


@kernel
def hadamard_4x4(c):
    """8.5.10: the 4x4 Hadamard transform f = A c A, in place; c int64[16], raster."""
    for i in range(4):
        s, t = c[4 * i] + c[4 * i + 1], c[4 * i] - c[4 * i + 1]
        u, v = c[4 * i + 2] + c[4 * i + 3], c[4 * i + 2] - c[4 * i + 3]
        c[4 * i], c[4 * i + 1], c[4 * i + 2], c[4 * i + 3] = s + u, s - u, t - v, t + v
    for j in range(4):
        s, t = c[j] + c[4 + j], c[j] - c[4 + j]
        u, v = c[8 + j] + c[12 + j], c[8 + j] - c[12 + j]
        c[j], c[4 + j], c[8 + j], c[12 + j] = s + u, s - u, t - v, t + v


@kernel
def code_luma_dc(c, qp):
    """Intra16x16 DC: transforms and quantises c (int64[16], the DC of each block in raster order); c becomes levels."""
    hadamard_4x4(c)
    for i in range(16):
        # Halving rounds to the larger magnitude's side alike for both signs.
        half = (abs(c[i]) + 1) >> 1
        c[i] = quantise_dc(-half if c[i] < 0 else half, qp, DEAD_ZONE_INTRA)


@kernel
def scale_luma_dc(c, qp):
    """8.5.10: levels of the Intra16x16 DC block (int64[16], raster) -> scaled DC of each block, in place."""
    hadamard_4x4(c)
    factor = int(LEVEL_SCALE[qp % 6, 0])
    for i in range(16):
        if qp >= 36:
            c[i] = (c[i] * factor) << (qp // 6 - 6)
        else:
            c[i] = (c[i] * factor + (1 << (5 - qp // 6))) >> (6 - qp // 6)


@kernel
def hadamard_2x2(c, at):
    """8.5.11.1: the 2x2 transform of chroma DC, in place; c int64, four values from `at` on, raster."""
    s, t = c[at] + c[at + 1], c[at] - c[at + 1]
    u, v = c[at + 2] + c[at + 3], c[at + 2] - c[at + 3]
    c[at], c[at + 1], c[at + 2], c[at + 3] = s + u, t + v, s - u, t - v


@kernel
def code_chroma_dc(c, at, qp_c, dead_zone):
    """Transforms and quantises the chroma DC values c[at..at + 3] (int64, raster); they become levels."""
    hadamard_2x2(c, at)
    for i in range(at, at + 4):
        c[i] = quantise_dc(c[i], qp_c, dead_zone)


@kernel
def scale_chroma_dc(c, at, qp_c):
    """8.5.11.2: levels c[at..at + 3] of a chroma DC block -> scaled DC of each block, in place."""
    hadamard_2x2(c, at)
    factor = int(LEVEL_SCALE[qp_c % 6, 0])
    for i in range(at, at + 4):
        c[i] = ((c[i] * factor) << (qp_c // 6)) >> 5


@kernel
def satd_lanes(difference, scratch, satd, n):
    """SATD of n 4x4 blocks: half the sum of the absolute Hadamard coefficients (it is even); not part of the standard.

    difference int16 lanes; scratch int16 lanes; satd int16[LANES], at most 8160 a block.
    """
    for i in range(4):
        r = 4 * i * LANES
        for k in range(n):
            a = np.int16(difference[r + k] + difference[r + LANES + k])
            b = np.int16(difference[r + k] - difference[r + LANES + k])
            c = np.int16(difference[r + 2 * LANES + k] + difference[r + 3 * LANES + k])
            d = np.int16(difference[r + 2 * LANES + k] - difference[r + 3 * LANES + k])
            scratch[r + k] = a + c
            scratch[r + LANES + k] = a - c
            scratch[r + 2 * LANES + k] = b + d
            scratch[r + 3 * LANES + k] = b - d
    for k in range(n):
        satd[k] = 0
    for j in range(4):
        r = j * LANES
        for k in range(n):
            a = np.int16(scratch[r + k] + scratch[r + 4 * LANES + k])
            b = np.int16(scratch[r + k] - scratch[r + 4 * LANES + k])
            c = np.int16(scratch[r + 8 * LANES + k] + scratch[r + 12 * LANES + k])
            d = np.int16(scratch[r + 8 * LANES + k] - scratch[r + 12 * LANES + k])
            # |a + c| + |a - c| = 2 max(|a|, |c|)
            e = max(np.int16(abs(a)), np.int16(abs(c)))
            f = max(np.int16(abs(b)), np.int16(abs(d)))
            satd[k] = np.int16(satd[k] + np.int16(e + f))
