"""Syntax elements of the macroblock layer by their names (7.3.5), read as the slice's entropy coding says."""

from ..jit.kernel import helper
from ..standard.sample_format import BIT_DEPTH, MB_SAMPLES
from ..standard.tables import CBP_INTER, CBP_INTRA
from . import cabac, elements_cabac
from .bitreader import fail, se, te, u, ue
from .errors import E_CBP, E_MB_TYPE
from .layout import P_CABAC, P_MB_WIDTH, P_SLICE_TYPE, S_POS, SLICE_I, SLICE_P
from .neighbours import is_above, is_left, mb_position


@helper
def mb_type(data, s, p, c, slice_id, types, mb):
    """mb_type, numbered as in the table of the slice type (7-11, 7-13, 7-14), intra types behind."""
    slice_type = p[P_SLICE_TYPE]
    if p[P_CABAC]:
        left, above = is_left(p, slice_id, mb), is_above(p, slice_id, mb)
        return elements_cabac.mb_type(data, s, c, slice_type, types, mb, p[P_MB_WIDTH], left, above)
    number = ue(data, s)
    if number > (25 if slice_type == SLICE_I else 30 if slice_type == SLICE_P else 48):
        fail(s, E_MB_TYPE)
        return 0
    return number


@helper
def sub_mb_type(data, s, p, c):
    """sub_mb_type (Tables 7-17, 7-18); not checked."""
    if p[P_CABAC]:
        return elements_cabac.sub_mb_type(data, s, c, p[P_SLICE_TYPE])
    return ue(data, s)


@helper
def transform_size_8x8_flag(data, s, p, c, slice_id, transform_8x8, mb):
    """transform_size_8x8_flag."""
    if p[P_CABAC]:
        left, above = is_left(p, slice_id, mb), is_above(p, slice_id, mb)
        return elements_cabac.transform_size_8x8_flag(data, s, c, transform_8x8, mb, p[P_MB_WIDTH], left, above)
    return u(data, s, 1)


@helper
def intra_pred_mode(data, s, p, c):
    """prev_intra4x4_pred_mode_flag or its 8x8 sister: -1 when set, else rem_intra_pred_mode."""
    if p[P_CABAC]:
        return elements_cabac.intra_pred_mode(data, s, c)
    if u(data, s, 1):
        return -1
    return u(data, s, 3)


@helper
def intra_chroma_pred_mode(data, s, p, c, slice_id, chroma_mode, mb):
    """intra_chroma_pred_mode; not checked."""
    if p[P_CABAC]:
        left, above = is_left(p, slice_id, mb), is_above(p, slice_id, mb)
        return elements_cabac.intra_chroma_pred_mode(data, s, c, chroma_mode, mb, p[P_MB_WIDTH], left, above)
    return ue(data, s)


@helper
def ref_idx(data, s, p, c, slice_id, refs_of_list, mb, quadrant, refs):
    """ref_idx_l0, ref_idx_l1 of a list with `refs` entries; not checked."""
    if p[P_CABAC]:
        y, x = mb_position(p, mb)
        y8, x8 = 2 * y + (quadrant >> 1), 2 * x + (quadrant & 1)
        left = quadrant & 1 > 0 or is_left(p, slice_id, mb)
        above = quadrant >= 2 or is_above(p, slice_id, mb)
        return elements_cabac.ref_idx(data, s, c, refs_of_list, y8, x8, left, above)
    return te(data, s, refs - 1)


@helper
def mvd(data, s, p, c, slice_id, mvd_of_list, mb, y4, x4, component):
    """mvd_l0, mvd_l1: component 0 = x, 1 = y, of the block at (x4, y4) of the picture; not checked."""
    if p[P_CABAC]:
        left = x4 & 3 > 0 or is_left(p, slice_id, mb)
        above = y4 & 3 > 0 or is_above(p, slice_id, mb)
        return elements_cabac.mvd(data, s, c, mvd_of_list, y4, x4, component, left, above)
    return se(data, s)


@helper
def coded_block_pattern(data, s, p, c, slice_id, cbp, mb, is_intra):
    """coded_block_pattern: bits 0-3 luma quadrants, bits 4-5 chroma."""
    if p[P_CABAC]:
        left, above = is_left(p, slice_id, mb), is_above(p, slice_id, mb)
        return elements_cabac.coded_block_pattern(data, s, c, cbp, mb, p[P_MB_WIDTH], left, above)
    code = ue(data, s)
    if code > 47:
        fail(s, E_CBP)
        return 0
    return CBP_INTRA[code] if is_intra else CBP_INTER[code]


@helper
def mb_qp_delta(data, s, p, c):
    """mb_qp_delta; not checked."""
    if p[P_CABAC]:
        return elements_cabac.mb_qp_delta(data, s, c)
    return se(data, s)


@helper
def pcm_samples(data, s, p, samples):
    """pcm_alignment_zero_bit and MB_SAMPLES pcm_sample_luma, pcm_sample_chroma."""
    if p[P_CABAC]:
        s[S_POS] = cabac.position(s)
    s[S_POS] = (s[S_POS] + 7) & ~7  # encoders exist that do not write zeros here
    for i in range(MB_SAMPLES):
        samples[i] = u(data, s, BIT_DEPTH)
    if p[P_CABAC]:
        cabac.start(data, s)
