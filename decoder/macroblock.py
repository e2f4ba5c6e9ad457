"""7.3.5: the macroblock layer, parsed into arrays; the same walk for CAVLC and CABAC."""

import numpy as np

from ..jit.intrinsics import inlined
from ..jit.kernel import helper
from ..standard.cabac_contexts import UNIT
from ..standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    I_PCM,
    P_SKIP,
    B_8x8,
    B_8x16,
    B_16x8,
    B_16x16,
    I_4x4,
    I_8x8,
    I_16x16,
    P_8x8,
    P_8x16,
    P_16x8,
    P_16x16,
)
from ..standard.tables import B_INTRA_OFFSET, B_MB_TYPES, B_SUB_MB_TYPES, P_INTRA_OFFSET, I_16x16_TYPES
from . import elements as read
from .bitreader import fail
from .cabac import spent
from .errors import E_CHROMA_MODE, E_MVD, E_OVERLAP, E_QP_DELTA, E_REF_IDX, E_SUB_MB_TYPE, E_TOO_MANY
from .layout import (
    KIND_CHROMA,
    KIND_CODED,
    KIND_LUMA,
    KIND_MOTION,
    P_CABAC,
    P_N_MB,
    P_REFS_0,
    P_SLICE_ID,
    P_SLICE_TYPE,
    S_ERROR,
    S_MB,
    S_QP,
    S_QP_DELTA,
    SLICE_B,
    SLICE_I,
    SLICE_P,
    SUB_DIRECT,
    P_DIRECT_8x8,
    P_TRANSFORM_8x8,
)
from .neighbours import mb_position, set_vectors
from .residual import residual

MAX_MVD = 16384  # quarter samples; twice the range of vectors (A.3)


@helper
def set_sub_types(sub_type, mb, value):
    """The same sub-macroblock type in all quadrants."""
    for q in range(4):
        sub_type[mb, q] = value


@helper
def set_nonzero(nonzero, nonzero_chroma, y, x, value):
    """The same number of levels in all blocks of the macroblock (x, y)."""
    for j in range(4):
        for i in range(4):
            nonzero[4 * y + j, 4 * x + i] = value
            nonzero_chroma[j >> 1, 2 * y + (j & 1), 2 * x + (i & 1)] = value


@helper
def begin_macroblock(s, p, m, mb):
    """Take the macroblock into the slice; False when it may not be decoded."""
    s[S_MB] = mb
    if mb >= p[P_N_MB]:
        fail(s, E_TOO_MANY)
        return False
    if m.slice_id[mb] >= 0:
        fail(s, E_OVERLAP)
        return False
    m.slice_id[mb] = p[P_SLICE_ID]
    m.qp[mb] = s[S_QP]
    return True


@helper
def set_ref_idx(ref_idx, y8, x8, height, width, value):
    """Fill a partition of the ref_idx grid (units of 8x8 blocks)."""
    for y in range(y8, y8 + height):
        for x in range(x8, x8 + width):
            ref_idx[y, x] = value


@helper
def skipped_macroblock(s, p, m, ref_idx, mb):
    """7.3.4: a macroblock of P_Skip or B_Skip."""
    if not begin_macroblock(s, p, m, mb):
        return
    s[S_QP_DELTA] = 0
    if p[P_SLICE_TYPE] == SLICE_B:
        m.mb_type[mb] = B_SKIP
        set_sub_types(m.sub_type, mb, SUB_DIRECT)
    else:
        m.mb_type[mb] = P_SKIP
        y, x = mb_position(p, mb)
        set_ref_idx(ref_idx[0], 2 * y, 2 * x, 2, 2, 0)


@helper
def read_ref_idx(data, s, p, m, ref_idx, mb, k, quadrant):
    """7.3.5.1: ref_idx_l0 or ref_idx_l1 (list k) of the partition that begins in a quadrant."""
    refs = p[P_REFS_0 + k]
    if refs <= 1:
        return 0
    value = read.ref_idx(data, s, p, m.contexts, m.slice_id, ref_idx[k], mb, quadrant, refs)
    if value >= refs or value < 0:
        fail(s, E_REF_IDX)
        return 0
    return value


@helper
def read_mvd(data, s, p, m, mb, k, y4, x4, height, width):
    """7.3.5.1: mvd_l0 or mvd_l1 (list k) of a partition at the 4x4 block (x4, y4) of the macroblock."""
    mvd = m.mvd[k]
    y, x = mb_position(p, mb)
    y4, x4 = y4 + 4 * y, x4 + 4 * x
    dx = read.mvd(data, s, p, m.contexts, m.slice_id, mvd, mb, y4, x4, 0)
    dy = read.mvd(data, s, p, m.contexts, m.slice_id, mvd, mb, y4, x4, 1)
    if abs(dx) > MAX_MVD or abs(dy) > MAX_MVD:
        fail(s, E_MVD)
        dx = dy = 0
    set_vectors(mvd, y4, x4, height, width, dx, dy)


@helper
def mb_pred_inter(data, s, p, m, ref_idx, mb, height, width, mode0, mode1):
    """7.3.5.1: references and vector differences of one or two partitions of height x width 4x4 blocks."""
    n_partitions = 16 // (height * width)
    row, column = mb_position(p, mb)
    y8, x8 = 2 * row, 2 * column
    step_y = 2 if height == 2 else 0
    step_x = 2 if width == 2 else 0
    for k in range(2):
        for partition in range(n_partitions):
            if (mode1 if partition else mode0) >> k & 1:
                quadrant = partition * (step_y + step_x // 2)
                value = read_ref_idx(data, s, p, m, ref_idx, mb, k, quadrant)
                y = y8 + partition * step_y // 2
                set_ref_idx(ref_idx[k], y, x8 + partition * step_x // 2, height // 2, width // 2, value)
    for k in range(2):
        for partition in range(n_partitions):
            if (mode1 if partition else mode0) >> k & 1:
                read_mvd(data, s, p, m, mb, k, partition * step_y, partition * step_x, height, width)


@helper
def sub_mb_pred(data, s, p, m, ref_idx, mb, ref_is_0):
    """7.3.5.2: sub-macroblock types, references and vector differences of P_8x8 and B_8x8."""
    row, column = mb_position(p, mb)
    y8, x8 = 2 * row, 2 * column
    is_b = p[P_SLICE_TYPE] == SLICE_B
    modes = 0  # prediction modes of the quadrants, 2 bits each
    for q in range(4):
        value = read.sub_mb_type(data, s, p, m.contexts)
        if value < 0 or value > (12 if is_b else 3):
            fail(s, E_SUB_MB_TYPE)
            return
        if not is_b:
            m.sub_type[mb, q] = value
            modes |= 1 << 2 * q
        elif value == 0:
            m.sub_type[mb, q] = SUB_DIRECT
        else:
            width, height = B_SUB_MB_TYPES[value, 1], B_SUB_MB_TYPES[value, 2]
            m.sub_type[mb, q] = (2 if width == 4 else 0) + (1 if height == 4 else 0)
            modes |= B_SUB_MB_TYPES[value, 3] << 2 * q
    for k in range(2):
        for q in range(4):
            if modes >> (2 * q + k) & 1:
                value = 0 if ref_is_0 else read_ref_idx(data, s, p, m, ref_idx, mb, k, q)
                ref_idx[k, y8 + (q >> 1), x8 + (q & 1)] = value
    for k in range(2):
        for q in range(4):
            if modes >> (2 * q + k) & 1:
                sub_type = m.sub_type[mb, q]
                height = 1 if sub_type & 1 else 2
                width = 1 if sub_type & 2 else 2
                for y in range(0, 2, height):
                    for x in range(0, 2, width):
                        y4 = (q >> 1) * 2 + y
                        read_mvd(data, s, p, m, mb, k, y4, (q & 1) * 2 + x, height, width)


@helper
def intra_macroblock(data, s, p, m, mb, number):
    """7.3.5, 7.3.5.1: prediction of an intra macroblock, `number` as in Table 7-11; coded_block_pattern or -1."""
    inlined()
    cbp = -1
    row, column = mb_position(p, mb)
    y4, x4 = 4 * row, 4 * column
    if number == 0:
        size = 1
        m.mb_type[mb] = I_4x4
        if p[P_TRANSFORM_8x8] and read.transform_size_8x8_flag(data, s, p, m.contexts, m.slice_id, m.transform_8x8, mb):
            m.transform_8x8[mb] = 1
            m.mb_type[mb] = I_8x8
            size = 2
        for block in range(0, 16, size * size):
            mode = read.intra_pred_mode(data, s, p, m.contexts)
            y = y4 + (block >> 3) * 2 + (block >> 1 & 1)
            x = x4 + (block >> 2 & 1) * 2 + (block & 1)
            for j in range(size):
                for i in range(size):
                    m.intra_mode[y + j, x + i] = mode
    else:
        m.mb_type[mb] = I_16x16
        m.intra16x16_mode[mb] = I_16x16_TYPES[number, 0]
        cbp = I_16x16_TYPES[number, 1] << 4 | I_16x16_TYPES[number, 2]
    mode = read.intra_chroma_pred_mode(data, s, p, m.contexts, m.slice_id, m.chroma_mode, mb)
    if mode > 3:
        fail(s, E_CHROMA_MODE)
        mode = 0
    m.chroma_mode[mb] = mode
    return cbp


@helper
def inter_macroblock(data, s, p, m, ref_idx, mb, number):
    """7.3.5: prediction of an inter macroblock, `number` as in Table 7-13, 7-14; whether it may be 8x8 transformed."""
    inlined()
    if p[P_SLICE_TYPE] == SLICE_P:
        if number >= 3:
            m.mb_type[mb] = P_8x8
            sub_mb_pred(data, s, p, m, ref_idx, mb, number == 4)
            return m.sub_type[mb, 0] + m.sub_type[mb, 1] + m.sub_type[mb, 2] + m.sub_type[mb, 3] == 0
        m.mb_type[mb] = P_16x16 if number == 0 else P_16x8 if number == 1 else P_8x16
        mb_pred_inter(data, s, p, m, ref_idx, mb, 2 if number == 1 else 4, 2 if number == 2 else 4, 1, 1)
        return True
    if number == 0:
        m.mb_type[mb] = B_DIRECT
        set_sub_types(m.sub_type, mb, SUB_DIRECT)
        return p[P_DIRECT_8x8] != 0
    if number == 22:
        m.mb_type[mb] = B_8x8
        sub_mb_pred(data, s, p, m, ref_idx, mb, False)
        possible = True
        for q in range(4):
            sub_type = m.sub_type[mb, q]
            if sub_type == SUB_DIRECT:
                possible = possible and p[P_DIRECT_8x8] != 0
            elif sub_type != 0:
                possible = False
        return possible
    width, height = np.int64(B_MB_TYPES[number, 1]) // 4, np.int64(B_MB_TYPES[number, 2]) // 4
    m.mb_type[mb] = B_16x16 if number <= 3 else B_16x8 if height == 2 else B_8x16
    mode0, mode1 = np.int64(B_MB_TYPES[number, 3]), np.int64(B_MB_TYPES[number, 4])
    mb_pred_inter(data, s, p, m, ref_idx, mb, height, width, mode0, mode1)
    return True


@helper
def pcm_macroblock(data, s, p, m, mb):
    """7.3.5: samples of an I_PCM macroblock, kept as levels."""
    inlined()
    m.mb_type[mb] = I_PCM
    m.qp[mb] = 0
    m.cbp[mb] = 47
    m.dc_coded[mb] = 7
    s[S_QP_DELTA] = 0
    y, x = mb_position(p, mb)
    set_nonzero(m.nonzero, m.nonzero_chroma, y, x, 16)
    m.bits_by_kind[mb, KIND_LUMA], m.bits_by_kind[mb, KIND_CHROMA] = UNIT * 8 * 256, UNIT * 8 * 128
    read.pcm_samples(data, s, p, m.levels[mb])


@helper
def macroblock_layer(data, s, p, m, ref_idx, mb):
    """7.3.5: macroblock_layer(); `ref_idx` int8[2, H8, W8] of the current picture."""
    inlined()
    if not begin_macroblock(s, p, m, mb):
        return
    number = read.mb_type(data, s, p, m.contexts, m.slice_id, m.mb_type, mb)
    slice_type = p[P_SLICE_TYPE]
    intra = number
    if slice_type != SLICE_I:
        intra = number - (P_INTRA_OFFSET if slice_type == SLICE_P else B_INTRA_OFFSET)
    if s[S_ERROR]:
        m.mb_type[mb] = I_PCM
        return
    if intra == 25:
        pcm_macroblock(data, s, p, m, mb)
        return
    cbp = -1
    possible_8x8 = False
    is_cabac, kinds = p[P_CABAC] != 0, m.bits_by_kind[mb]
    begun = spent(s, is_cabac)
    if intra >= 0:
        cbp = intra_macroblock(data, s, p, m, mb, intra)
        begun = spent(s, is_cabac)
    else:
        possible_8x8 = inter_macroblock(data, s, p, m, ref_idx, mb, number)
        ended = spent(s, is_cabac)
        kinds[KIND_MOTION], begun = ended - begun, ended
    is_16x16 = cbp >= 0
    if not is_16x16:
        cbp = read.coded_block_pattern(data, s, p, m.contexts, m.slice_id, m.cbp, mb, intra >= 0)
    m.cbp[mb] = cbp
    if cbp & 15 and possible_8x8 and p[P_TRANSFORM_8x8]:
        m.transform_8x8[mb] = read.transform_size_8x8_flag(data, s, p, m.contexts, m.slice_id, m.transform_8x8, mb)
    if cbp == 0 and not is_16x16:
        s[S_QP_DELTA] = 0
        kinds[KIND_CODED] = spent(s, is_cabac) - begun
        return
    delta = read.mb_qp_delta(data, s, p, m.contexts)
    if delta < -26 or delta > 25:
        fail(s, E_QP_DELTA)
        return
    s[S_QP_DELTA] = delta
    s[S_QP] = (s[S_QP] + delta + 52) % 52
    m.qp[mb] = s[S_QP]
    ended = spent(s, is_cabac)
    kinds[KIND_CODED] = ended - begun
    if s[S_ERROR] == 0:
        residual(data, s, p, m, mb, cbp, is_16x16, ended)
