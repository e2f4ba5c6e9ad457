"""Stage entropy: CAVLC slice data (7.3.4, 7.3.5, 9.1, 9.2) from a slice's macroblock arrays; check for emulation prevention.

scheduler/arrays.py has the state arrays, their indices and units.
"""

import numpy as np

from ..jit.kernel import closed_kernel, helper, quick_kernel
from ..standard.cavlc import NC_CLASS, NC_CLASS_CHROMA_DC
from ..standard.macroblock import (
    BLOCK_TO_RASTER,
    I_PCM,
    P_SKIP,
    I_4x4,
    I_16x16,
    P_8x8,
    P_8x16,
    P_16x8,
    P_16x16,
    SUB_4x8,
    SUB_8x4,
    SUB_8x8,
)
from ..standard.tables import (
    CBP_INTER_CODE,
    CBP_INTRA_CODE,
    I_PCM_TYPE,
    P_INTRA_OFFSET,
    I_NxN_TYPE,
    P_8x8REF0_TYPE,
    P_16x16_TYPE,
)
from .cavlc import BYTE, COUNT, close_sink, open_sink, put, put_block, put_se, put_te, put_ue
from .layout import CB_AC, CB_DC, CR_DC, LUMA_DC
from .mv_prediction import predict_mv
from .simd.lanes import zero_pairs

# Upper bound of a macroblock: 384 levels of 28 bits, tokens, zeros and runs of 27 blocks, 32 vector differences.
MACROBLOCK_BYTES = 2048
# A.3.1: macroblock_layer() has at most 3200 bits; the rest is for the mb_skip_run before it and for alignment.
_LEGAL_MACROBLOCK_BYTES = 410

# 7.3.5.3: the order of the blocks of `levels` in residual()
RESIDUAL_ORDER = np.array([LUMA_DC, *range(16), CB_DC, CR_DC, *range(16, 24)], np.int64)


def slice_buffer_bytes(n_mb: int) -> int:
    """Size of a buffer that holds the header and data of every legal slice of n_mb macroblocks (A.3.1)."""
    return 1024 + _LEGAL_MACROBLOCK_BYTES * n_mb + MACROBLOCK_BYTES


@helper
def count_class(total_coeff, mb, base, log2_width, bx, by, left, above, mb_width):
    """9.2.1: row of COEFF_TOKEN for block (bx, by) of a plane with 2^log2_width blocks a row, the first at index `base`.

    total_coeff: uint8[n_mb, 24]; left, above: whether those macroblocks are available.
    """
    last = (1 << log2_width) - 1
    neighbours = 0
    count = 0
    if bx > 0:
        count += np.int64(total_coeff[mb, base + (by << log2_width) + bx - 1])
        neighbours += 1
    elif left:
        count += np.int64(total_coeff[mb - 1, base + (by << log2_width) + last])
        neighbours += 1
    if by > 0:
        count += np.int64(total_coeff[mb, base + ((by - 1) << log2_width) + bx])
        neighbours += 1
    elif above:
        count += np.int64(total_coeff[mb - mb_width, base + (last << log2_width) + bx])
        neighbours += 1
    return NC_CLASS[(count + 1) >> 1 if neighbours == 2 else count]


@helper
def put_residual(out, sink, mb, kind, cbp, levels, total_coeff, left, above, mb_width):
    """7.3.5.3: residual(): luma by 8x8 quadrants, then chroma DC, then chroma AC."""
    luma_first = 1 if kind == I_16x16 else 0
    for block in RESIDUAL_ORDER:
        first = 1
        most = 15
        nc_class = NC_CLASS_CHROMA_DC
        if block < CB_AC:
            if cbp >> (block >> 2) & 1 == 0:
                continue
            first = luma_first
            most = 16 - luma_first
            raster = BLOCK_TO_RASTER[block]
            nc_class = count_class(total_coeff, mb, 0, 2, raster & 3, raster >> 2, left, above, mb_width)
        elif block < LUMA_DC:
            if cbp >> 4 < 2:
                break
            nc_class = count_class(total_coeff, mb, block & ~3, 1, block & 1, block >> 1 & 1, left, above, mb_width)
        elif block == LUMA_DC:
            if kind != I_16x16:
                continue
            first = 0
            most = 16
            nc_class = count_class(total_coeff, mb, 0, 2, 0, 0, left, above, mb_width)
        else:
            if cbp >> 4 == 0:
                break
            first = 0
            most = 4
        put_block(out, sink, levels, mb, block, first, most, nc_class)


@helper
def put_intra4x4_modes(out, sink, mb, intra4x4_mode, left, above, mb_width):
    """7.3.5.1, 8.3.1.1: prev_intra4x4_pred_mode_flag and rem_intra4x4_pred_mode of the 16 blocks."""
    for k in range(16):
        raster = BLOCK_TO_RASTER[k]
        bx = raster & 3
        by = raster >> 2
        predicted = 2
        if (bx > 0 or left) and (by > 0 or above):
            a = intra4x4_mode[mb, raster - 1] if bx > 0 else intra4x4_mode[mb - 1, raster + 3]
            b = intra4x4_mode[mb, raster - 4] if by > 0 else intra4x4_mode[mb - mb_width, raster + 12]
            predicted = min(np.int64(a), np.int64(b))
        mode = np.int64(intra4x4_mode[mb, raster])
        if mode == predicted:
            put(out, sink, 1, 1)
        else:
            put(out, sink, 4, mode - (mode > predicted))


@helper
def put_inter(out, sink, mb, kind, n_ref, sub_mb_type, ref_idx, mv, mb_width, first_mb):
    """7.3.5, 7.3.5.1, 7.3.5.2: mb_type, sub_mb_type, ref_idx_l0 and mvd_l0 of a P macroblock.

    P_8x8 with all four references 0 is written as P_8x8ref0, which saves the indices.
    """
    wide = 2 if kind == P_8x16 or kind == P_8x8 else 4  # partitions, in 4x4 blocks
    high = 2 if kind == P_16x8 or kind == P_8x8 else 4
    refs = ref_idx[mb, 0] | ref_idx[mb, 1] | ref_idx[mb, 2] | ref_idx[mb, 3]
    ref0 = n_ref > 1 and kind == P_8x8 and refs == 0
    put_ue(out, sink, P_8x8REF0_TYPE if ref0 else kind - P_16x16 + P_16x16_TYPE)
    if kind == P_8x8:
        for q in range(4):
            put_ue(out, sink, np.int64(sub_mb_type[mb, q]))
    if n_ref > 1 and not ref0:
        for y in range(0, 4, high):
            for x in range(0, 4, wide):
                put_te(out, sink, np.int64(ref_idx[mb, y + (x >> 1)]), n_ref - 1)
    for y in range(0, 4, high):
        for x in range(0, 4, wide):
            q = y + (x >> 1)
            bw = wide
            bh = high
            if kind == P_8x8:
                bw = 2 if sub_mb_type[mb, q] == SUB_8x8 or sub_mb_type[mb, q] == SUB_8x4 else 1
                bh = 2 if sub_mb_type[mb, q] == SUB_8x8 or sub_mb_type[mb, q] == SUB_4x8 else 1
            for by in range(y, y + high, bh):
                for bx in range(x, x + wide, bw):
                    px, py = predict_mv(
                        mb, bx, by, bw, bh, np.int64(ref_idx[mb, q]), ref_idx, mv, mb_width, first_mb
                    )
                    put_se(out, sink, np.int64(mv[mb, by * 4 + bx, 0]) - px)
                    put_se(out, sink, np.int64(mv[mb, by * 4 + bx, 1]) - py)


@helper
def put_pcm(out, sink, mb, mb_width, rec_y, rec_u, rec_v):
    """7.3.5: pcm_alignment_zero_bit and the samples of an I_PCM macroblock."""
    put(out, sink, -sink[COUNT] & 7, 0)
    x0 = mb % mb_width * 16
    y0 = mb // mb_width * 16
    for i in range(16):
        for j in range(16):
            put(out, sink, 8, np.int64(rec_y[y0 + i, x0 + j]))
    for i in range(8):
        for j in range(8):
            put(out, sink, 8, np.int64(rec_u[y0 // 2 + i, x0 // 2 + j]))
    for i in range(8):
        for j in range(8):
            put(out, sink, 8, np.int64(rec_v[y0 // 2 + i, x0 // 2 + j]))


@closed_kernel
def write_slice_data(
    out,
    position,
    first_mb,
    end_mb,
    mb_width,
    n_ref,
    slice_qp,
    mb_type,
    sub_mb_type,
    ref_idx,
    mv,
    intra4x4_mode,
    intra16x16_mode,
    intra_chroma_mode,
    cbp,
    qp,
    levels,
    total_coeff,
    rec_y,
    rec_u,
    rec_v,
    mb_bits,
):
    """7.3.4: slice_data() of macroblocks first_mb .. end_mb - 1 and rbsp_slice_trailing_bits(), by CAVLC.

    out: uint8[], written from bit `position` on (after the slice header); n_ref: active references, 0 in an
    I slice; slice_qp: SliceQPY. mb_bits int32[n_mb]: bits of each macroblock_layer(); 0 where skipped. Returns the bit
    position after the trailing bits, or -1 if `out` is too small (slice_buffer_bytes is enough for legal macroblocks).
    """
    sink = np.zeros(3, np.int64)
    open_sink(out, position, sink)
    previous_qp = slice_qp
    skip_run = 0
    for mb in range(first_mb, end_mb):
        if sink[BYTE] + MACROBLOCK_BYTES > out.size:
            return -1
        kind = np.int64(mb_type[mb])
        mb_bits[mb] = 0
        if kind == P_SKIP:
            skip_run += 1
            continue
        if n_ref > 0:
            put_ue(out, sink, skip_run)
            skip_run = 0
        start = sink[BYTE] * 8 + sink[COUNT]
        left = mb % mb_width > 0
        above = mb - mb_width >= first_mb
        pattern = np.int64(cbp[mb])
        intra_offset = P_INTRA_OFFSET if n_ref > 0 else 0
        if kind == I_PCM:
            put_ue(out, sink, intra_offset + I_PCM_TYPE)
            put_pcm(out, sink, mb, mb_width, rec_y, rec_u, rec_v)
        else:
            if kind == I_16x16:
                luma = 12 if pattern & 15 else 0
                put_ue(out, sink, intra_offset + 1 + np.int64(intra16x16_mode[mb]) + 4 * (pattern >> 4) + luma)
                put_ue(out, sink, np.int64(intra_chroma_mode[mb]))
            elif kind == I_4x4:
                put_ue(out, sink, intra_offset + I_NxN_TYPE)
                put_intra4x4_modes(out, sink, mb, intra4x4_mode, left, above, mb_width)
                put_ue(out, sink, np.int64(intra_chroma_mode[mb]))
                put_ue(out, sink, np.int64(CBP_INTRA_CODE[pattern]))
            else:
                put_inter(out, sink, mb, kind, n_ref, sub_mb_type, ref_idx, mv, mb_width, first_mb)
                put_ue(out, sink, np.int64(CBP_INTER_CODE[pattern]))
            if pattern > 0 or kind == I_16x16:
                delta = np.int64(qp[mb]) - previous_qp
                put_se(out, sink, (delta + 26) % 52 - 26)  # 7.4.5: -26..25, QPY wraps
                previous_qp = np.int64(qp[mb])
                put_residual(out, sink, mb, kind, pattern, levels, total_coeff, left, above, mb_width)
        mb_bits[mb] = sink[BYTE] * 8 + sink[COUNT] - start
    if skip_run > 0:
        put_ue(out, sink, skip_run)
    put(out, sink, 1, 1)
    put(out, sink, -sink[COUNT] & 7, 0)
    return close_sink(out, sink)


@quick_kernel
def begin_slice(data, header, size):
    """7.4.1: ORs the header into slice data; returns whether the `size` bytes then need emulation prevention.

    data: uint8[], may be longer than `size`; the last of the `size` bytes is not 0 (stop bit), and the header's bits are 0.
    header: uint8[].
    """
    for i in range(len(header)):
        data[i] |= header[i]
    i = 0
    while i + 33 <= size:
        if zero_pairs(data, i) != 0:
            for j in range(i, min(i + 32, size - 2)):
                if data[j] == 0 and data[j + 1] == 0 and data[j + 2] <= 3:
                    return True
        i += 32
    for j in range(i, size - 2):
        if data[j] == 0 and data[j + 1] == 0 and data[j + 2] <= 3:
            return True
    return False
