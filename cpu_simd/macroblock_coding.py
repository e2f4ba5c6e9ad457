"""Steps that intra and inter macroblocks share: samples to lanes and back, levels to scan order, chroma, I_PCM."""

import numpy as np

from ..standard.jit import kernel
from ..standard.macroblock import CB_DC, I_PCM, LUMA_DC, N_LEVEL_BLOCKS
from ..standard.tables import ZIGZAG_4x4
from .transform import (
    LANES,
    MAX_LEVEL,
    chroma_qp,
    code_chroma_dc,
    forward_4x4,
    inverse_4x4,
    quantise_4x4,
    scale_4x4,
    scale_chroma_dc,
)

PCM_BITS = 384 * 8 + 8  # samples and mb_type
_FEW_LEVELS = 60  # no macroblock with so few levels reaches PCM_BITS


@kernel
def load_lanes(plane, x0, y0, log2_width, blocks, lanes, at):
    """Samples of `blocks` 4x4 blocks, 2^log2_width of them a row, from (x0, y0) -> int16 lanes from lane `at` on."""
    width = 1 << log2_width
    for by in range(blocks >> log2_width):
        for i in range(4):
            y = y0 + 4 * by + i
            r = 4 * i * LANES + at + by * width
            for bx in range(width):
                for j in range(4):
                    lanes[r + j * LANES + bx] = plane[y, x0 + 4 * bx + j]


@kernel
def store_lanes(prediction, residual, plane, x0, y0, log2_width, blocks, at):
    """8.5.14: Clip1(prediction + residual) of `blocks` 4x4 blocks into the plane; int16 and int32 lanes."""
    width = 1 << log2_width
    for by in range(blocks >> log2_width):
        for i in range(4):
            y = y0 + 4 * by + i
            r = 4 * i * LANES + at + by * width
            for bx in range(width):
                for j in range(4):
                    k = r + j * LANES + bx
                    plane[y, x0 + 4 * bx + j] = min(255, max(0, int(prediction[k]) + int(residual[k])))


@kernel
def subtract_lanes(source, prediction, difference, n):
    """difference = source - prediction for n lanes of int16."""
    for p in range(16):
        for k in range(n):
            r = p * LANES + k
            difference[r] = np.int16(source[r] - prediction[r])


@kernel
def scan_lane(lanes, k, first, out):
    """8.5.6: levels of lane k from scan position `first` on -> out int16[16]; returns the number of non-zero levels."""
    count = 0
    out[0] = 0
    for i in range(first, 16):
        level = lanes[ZIGZAG_4x4[i] * LANES + k]
        out[i] = level
        count += level != 0
    return count


@kernel
def code_chroma(
    source, prediction, difference, coefficients, dc, qp, chroma_qp_offset, dead_zone, threshold, levels, total_coeff
):
    """Transforms, quantises and rescales the 4 Cb and 4 Cr blocks in lanes 0..7; levels and total_coeff of one macroblock.

    Leaves the residual in `coefficients` and returns the chroma part of coded_block_pattern (0, 1, 2). AC levels whose
    cheap score stays below `threshold` in a plane are dropped (0: never); not part of the standard.
    """
    qp_c = chroma_qp(qp, chroma_qp_offset)
    subtract_lanes(source, prediction, difference, 8)
    forward_4x4(difference, coefficients, 8)
    for k in range(8):
        dc[k] = coefficients[k]
    empty = quantise_4x4(coefficients, 8, qp_c, dead_zone, 1)
    code_chroma_dc(dc, 0, qp_c, dead_zone)
    code_chroma_dc(dc, 4, qp_c, dead_zone)
    any_dc = False
    for k in range(8):
        levels[CB_DC + (k >> 2), k & 3] = dc[k]
        any_dc |= dc[k] != 0
        if empty:
            total_coeff[16 + k] = 0
            levels[16 + k] = 0
        else:
            total_coeff[16 + k] = scan_lane(coefficients, k, 1, levels[16 + k])
    if not empty and threshold > 0:
        empty = True
        for plane in range(16, 24, 4):
            score = 0
            for k in range(plane, plane + 4):
                score += cheap_score(levels[k], total_coeff[k])
            if score < threshold:
                for k in range(plane, plane + 4):
                    levels[k] = 0
                    total_coeff[k] = 0
                    for p in range(1, 16):
                        coefficients[p * LANES + k - 16] = 0
            else:
                empty = False
    if empty and not any_dc:
        for p in range(16):
            for k in range(8):
                coefficients[p * LANES + k] = 0
        return 0
    scale_4x4(coefficients, 8, qp_c, 1)
    scale_chroma_dc(dc, 0, qp_c)
    scale_chroma_dc(dc, 4, qp_c)
    for k in range(8):
        coefficients[k] = dc[k]
    inverse_4x4(coefficients, 8)
    return 1 if empty else 2


@kernel
def cheap_score(levels, count):
    """What the levels of a block (int16[16], scan order) are worth keeping: 9 a level above 1, else by the run before it.

    Not part of the standard. Isolated ones far up the scan cost many bits and give little: 3, 2, 2, 1, 1, 1 for runs
    of 0 to 5 zeros, nothing beyond.
    """
    score = 0
    run = 0
    for i in range(16):
        if count == 0:
            break
        level = abs(int(levels[i]))
        if level > 1:
            return 9
        if level == 1:
            count -= 1
            if run == 0:
                score += 3
            elif run < 3:
                score += 2
            elif run < 6:
                score += 1
            run = 0
        else:
            run += 1
    return score


@kernel
def bits_at_most(levels):
    """9.2: an upper bound of the residual bits of a macroblock's levels int16[27, 16]; very many if a level was clipped.

    coeff_token and total_zeros at their longest, the levels as 9.2.2.1 writes them, run_before by its longest codes.
    """
    bits = 0
    for block in range(N_LEVEL_BLOCKS):
        count = 0
        last = 0
        for i in range(16):
            if levels[block, i] != 0:
                count += 1
                last = i
        if count == 0:
            continue
        bits += 16 + 9 + 3 * count + last + 1 - count
        suffix_length = -1
        ones = 0  # trailing ones
        for i in range(last, -1, -1):
            level = abs(int(levels[block, i]))
            if level == 0:
                continue
            if level == 1 and ones < 3 and suffix_length < 0:
                ones += 1
                bits += 1
                continue
            if level >= MAX_LEVEL:
                return 1 << 20
            if suffix_length < 0:
                suffix_length = 1 if count > 10 and ones < 3 else 0
            code = 2 * level - 1
            if suffix_length == 0 and code < 30:
                bits += code + 1 if code < 14 else 19
            elif code < 15 << suffix_length:
                bits += (code >> suffix_length) + 1 + suffix_length
            else:
                bits += 28
            suffix_length = max(1, suffix_length)
            if level > 3 << (suffix_length - 1) and suffix_length < 6:
                suffix_length += 1
    return bits


@kernel
def pcm_is_cheaper(levels, total_coeff):
    """Whether I_PCM is needed or costs fewer bits than the levels of a macroblock; not part of the standard.

    Keeps macroblock_layer( ) below the 3200 bits of A.3.1 as well.
    """
    count = 0
    for k in range(24):
        count += int(total_coeff[k])
    clipped = False
    for k in range(LUMA_DC, N_LEVEL_BLOCKS):
        for i in range(16):
            level = abs(int(levels[k, i]))
            count += level != 0
            clipped |= level >= MAX_LEVEL
    return clipped or (count > _FEW_LEVELS and bits_at_most(levels) > PCM_BITS)


@kernel
def code_pcm(src_y, src_u, src_v, x0, y0, rec_y, rec_u, rec_v, levels, total_coeff):
    """7.3.5: I_PCM: the reconstruction is the source; levels int16[27, 16], total_coeff uint8[24] of the macroblock."""
    for i in range(16):
        for j in range(16):
            rec_y[y0 + i, x0 + j] = src_y[y0 + i, x0 + j]
    for i in range(8):
        for j in range(8):
            rec_u[y0 // 2 + i, x0 // 2 + j] = src_u[y0 // 2 + i, x0 // 2 + j]
            rec_v[y0 // 2 + i, x0 // 2 + j] = src_v[y0 // 2 + i, x0 // 2 + j]
    levels[:] = 0
    total_coeff[:] = 16
    return I_PCM
