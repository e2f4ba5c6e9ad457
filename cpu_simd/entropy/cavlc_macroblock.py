"""macroblock_layer() by CAVLC (7.3.5, 9.1, 9.2): the values of macroblock_syntax.py as code words of cavlc.py."""

import numpy as np

from ...jit.intrinsics import inlined
from ...jit.kernel import helper
from ...standard.cavlc import NC_CLASS, NC_CLASS_CHROMA_DC
from ...standard.macroblock import BLOCK_TO_RASTER, I_PCM, LAST_INTRA, I_4x4, I_8x8, I_16x16, P_8x8, P_16x16
from ...standard.sample_format import BIT_DEPTH, MB_HEIGHT_C, MB_WIDTH_C, SUB_HEIGHT_C, SUB_WIDTH_C
from ...standard.tables import B_INTRA_OFFSET, CBP_INTER_CODE, CBP_INTRA_CODE, P_INTRA_OFFSET, P_8x8REF0_TYPE, P_16x16_TYPE
from ..inter.mv_prediction import predict_mv
from ..layout import CB_AC, LUMA_DC
from .cavlc import COUNT, bit_position, put, put_block, put_se, put_te, put_ue
from .cavlc_b import put_b_inter
from .macroblock_syntax import (
    RESIDUAL_ORDER,
    intra_mb_type,
    only_8x8_partitions,
    partition_size,
    qp_delta,
    rem_intra4x4_mode,
    sub_partition_size,
)


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
def put_residual(out, sink, limit, mb, mb_type, cbp, levels, total_coeff, left, above, mb_width):
    """7.3.5.3: residual(): luma by 8x8 quadrants, then chroma DC, then chroma AC.

    Ends after the block that passes bit `limit` of out, so that at most 64 bytes are written beyond it.
    """
    luma_first = 1 if mb_type == I_16x16 else 0
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
            if mb_type != I_16x16:
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
        if bit_position(sink) > limit:
            return


@helper
def put_intra(out, sink, mb, mb_type, pattern, offset, m, transform_8x8_mode, left, above, mb_width):
    """7.3.5, 7.3.5.1: mb_type, prediction modes and coded_block_pattern of an intra macroblock; of I_PCM only mb_type.

    offset: number of the slice type's mb_type before those of intra macroblocks.
    """
    is_nxn = mb_type == I_4x4 or mb_type == I_8x8
    put_ue(out, sink, offset + intra_mb_type(mb_type, pattern, np.int64(m.intra16x16_mode[mb])))
    if mb_type == I_PCM:
        return
    if is_nxn:
        if transform_8x8_mode:
            put(out, sink, 1, mb_type == I_8x8)  # transform_size_8x8_flag
        for k in range(0, 16, 4 if mb_type == I_8x8 else 1):
            rem = rem_intra4x4_mode(m.intra4x4_mode, mb, k, left, above, mb_width)
            if rem < 0:
                put(out, sink, 1, 1)  # prev_intra4x4_pred_mode_flag
            else:
                put(out, sink, 4, rem)
    put_ue(out, sink, np.int64(m.intra_chroma_mode[mb]))
    if is_nxn:
        put_ue(out, sink, np.int64(CBP_INTRA_CODE[pattern]))


@helper
def put_inter(out, sink, mb, mb_type, n_ref, sub_mb_type, ref_idx, mv, mb_width, first_mb):
    """7.3.5, 7.3.5.1, 7.3.5.2: mb_type, sub_mb_type, ref_idx_l0 and mvd_l0 of a P macroblock.

    P_8x8 with all four references 0 is written as P_8x8ref0, which saves the indices.
    """
    wide, high = partition_size(mb_type)
    refs = ref_idx[mb, 0] | ref_idx[mb, 1] | ref_idx[mb, 2] | ref_idx[mb, 3]
    ref0 = n_ref > 1 and mb_type == P_8x8 and refs == 0
    put_ue(out, sink, P_8x8REF0_TYPE if ref0 else mb_type - P_16x16 + P_16x16_TYPE)
    if mb_type == P_8x8:
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
            if mb_type == P_8x8:
                bw, bh = sub_partition_size(sub_mb_type[mb, q])
            for by in range(y, y + high, bh):
                for bx in range(x, x + wide, bw):
                    ref = np.int64(ref_idx[mb, q])
                    px, py = predict_mv(mb, bx, by, bw, bh, ref, ref_idx, mv, mb_width, first_mb)
                    put_se(out, sink, np.int64(mv[mb, by * 4 + bx, 0]) - px)
                    put_se(out, sink, np.int64(mv[mb, by * 4 + bx, 1]) - py)


@helper
def put_p_or_b(out, sink, mb, mb_type, n_ref, n_ref1, m, mb_width, first_mb):
    """7.3.5, 7.3.5.1, 7.3.5.2: mb_type and motion of an inter macroblock; n_ref, n_ref1: see write_slices."""
    if n_ref1 is not None:  # None is known while Numba finds types: put_b_inter is not compiled
        if n_ref1 > 0:
            put_b_inter(out, sink, mb, n_ref, n_ref1, m, mb_width, first_mb)
            return
    put_inter(out, sink, mb, mb_type, n_ref, m.sub_mb_type, m.ref_idx, m.mv, mb_width, first_mb)


@helper
def put_pcm(out, sink, mb, mb_width, source):
    """7.3.5: pcm_alignment_zero_bit and the samples of an I_PCM macroblock."""
    put(out, sink, -sink[COUNT] & 7, 0)
    x0 = mb % mb_width * 16
    y0 = mb // mb_width * 16
    for i in range(16):
        for j in range(16):
            put(out, sink, BIT_DEPTH, np.int64(source.y[y0 + i, x0 + j]))
    for i in range(MB_HEIGHT_C):
        for j in range(MB_WIDTH_C):
            put(out, sink, BIT_DEPTH, np.int64(source.u[y0 // SUB_HEIGHT_C + i, x0 // SUB_WIDTH_C + j]))
    for i in range(MB_HEIGHT_C):
        for j in range(MB_WIDTH_C):
            put(out, sink, BIT_DEPTH, np.int64(source.v[y0 // SUB_HEIGHT_C + i, x0 // SUB_WIDTH_C + j]))


@helper
def put_macroblock(out, sink, limit, mb, first_mb, mb_width, entries, previous_qp, source, m, transform_8x8_mode):
    """7.3.5: macroblock_layer() of a macroblock that is not skipped. Returns QP_Y,PRED of the next one.

    limit: see put_residual; entries: Entries; previous_qp: QP_Y,PRED; source: Planes;
    m: Macroblocks; transform_8x8_mode: the flag.
    """
    inlined()
    n_ref, n_ref1 = entries
    mb_type = np.int64(m.mb_type[mb])
    pattern = np.int64(m.cbp[mb])
    left = mb % mb_width > 0 and mb > first_mb
    above = mb - mb_width >= first_mb
    if mb_type <= LAST_INTRA:
        offset = B_INTRA_OFFSET if n_ref1 else P_INTRA_OFFSET if n_ref > 0 else 0
        put_intra(out, sink, mb, mb_type, pattern, offset, m, transform_8x8_mode, left, above, mb_width)
    else:
        put_p_or_b(out, sink, mb, mb_type, n_ref, n_ref1, m, mb_width, first_mb)
        put_ue(out, sink, np.int64(CBP_INTER_CODE[pattern]))
        if transform_8x8_mode and pattern & 15 and only_8x8_partitions(m.sub_mb_type, mb, mb_type):
            put(out, sink, 1, np.int64(m.transform_8x8[mb]))
    if mb_type == I_PCM:
        put_pcm(out, sink, mb, mb_width, source)
        return previous_qp
    if pattern == 0 and mb_type != I_16x16:
        return previous_qp
    put_se(out, sink, qp_delta(np.int64(m.qp[mb]), previous_qp))
    put_residual(out, sink, limit, mb, mb_type, pattern, m.levels, m.total_coeff, left, above, mb_width)
    return np.int64(m.qp[mb])
