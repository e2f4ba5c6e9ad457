"""9.3.2, 9.3.3.1: syntax elements of the macroblock layer in CABAC: binarisation and choice of contexts.

`c`: contexts; `data`, `s`: reader; `left`, `above`: whether the macroblocks A and B are available (6.4.9).
"""

import numpy as np

from ..jit.kernel import helper
from ..standard.cabac_contexts import (
    CTX_CBP_CHROMA,
    CTX_CBP_LUMA,
    CTX_INTRA_CHROMA,
    CTX_MB_QP_DELTA,
    CTX_MB_TYPE_B,
    CTX_MB_TYPE_B_INTRA,
    CTX_MB_TYPE_I,
    CTX_MB_TYPE_P,
    CTX_MB_TYPE_P_INTRA,
    CTX_MVD_X,
    CTX_MVD_Y,
    CTX_PREV_INTRA_MODE,
    CTX_REF_IDX,
    CTX_REM_INTRA_MODE,
    CTX_SKIP_B,
    CTX_SKIP_P,
    CTX_SUB_MB_TYPE_B,
    CTX_SUB_MB_TYPE_P,
    CTX_TRANSFORM_8x8,
)
from ..standard.macroblock import B_DIRECT, B_SKIP, P_SKIP, I_4x4, I_8x8
from .bitreader import fail
from .cabac import bypass, bypass_exp_golomb, decision, terminate
from .errors import E_MVD, E_QP_DELTA, E_REF_IDX
from .layout import S_QP_DELTA, SLICE_B, SLICE_I, SLICE_P


@helper
def mb_skip_flag(data, s, c, slice_type, types, mb, mb_width, left, above):
    """9.3.3.1.1.1: mb_skip_flag."""
    context = CTX_SKIP_B if slice_type == SLICE_B else CTX_SKIP_P
    if left and types[mb - 1] != P_SKIP and types[mb - 1] != B_SKIP:
        context += 1
    if above and types[mb - mb_width] != P_SKIP and types[mb - mb_width] != B_SKIP:
        context += 1
    return decision(data, s, c, context)


@helper
def intra_mb_type_rest(data, s, c, context, in_i_slice):
    """Tables 9-36, 9-39: mb_type of an intra macroblock that is not I_NxN, behind the first bin."""
    if terminate(data, s):
        return 25
    step = 1 if in_i_slice else 0
    number = 1 + 12 * decision(data, s, c, context + 1)
    if decision(data, s, c, context + 2):
        number += 4 + 4 * decision(data, s, c, context + 2 + step)
    number += 2 * decision(data, s, c, context + 3 + step)
    return number + decision(data, s, c, context + 3 + 2 * step)


@helper
def mb_type_i(data, s, c, types, mb, mb_width, left, above):
    """9.3.3.1.1.3: mb_type of an I slice (Table 7-11)."""
    context = CTX_MB_TYPE_I
    if left and types[mb - 1] != I_4x4 and types[mb - 1] != I_8x8:
        context += 1
    if above and types[mb - mb_width] != I_4x4 and types[mb - mb_width] != I_8x8:
        context += 1
    if not decision(data, s, c, context):
        return 0
    return intra_mb_type_rest(data, s, c, CTX_MB_TYPE_I + 2, True)


@helper
def mb_type_p(data, s, c):
    """Table 9-37: mb_type of a P slice (Table 7-13, intra types behind)."""
    if decision(data, s, c, CTX_MB_TYPE_P):
        if not decision(data, s, c, CTX_MB_TYPE_P_INTRA):
            return 5
        return 5 + intra_mb_type_rest(data, s, c, CTX_MB_TYPE_P_INTRA, False)
    if decision(data, s, c, CTX_MB_TYPE_P + 1):
        return 2 - decision(data, s, c, CTX_MB_TYPE_P + 3)
    return 3 * decision(data, s, c, CTX_MB_TYPE_P + 2)


@helper
def mb_type_b(data, s, c, types, mb, mb_width, left, above):
    """9.3.3.1.1.3, Table 9-37: mb_type of a B slice (Table 7-14, intra types behind)."""
    context = CTX_MB_TYPE_B
    if left and types[mb - 1] != B_SKIP and types[mb - 1] != B_DIRECT:
        context += 1
    if above and types[mb - mb_width] != B_SKIP and types[mb - mb_width] != B_DIRECT:
        context += 1
    if not decision(data, s, c, context):
        return 0
    if not decision(data, s, c, CTX_MB_TYPE_B + 3):
        return 1 + decision(data, s, c, CTX_MB_TYPE_B + 5)
    value = decision(data, s, c, CTX_MB_TYPE_B + 4)
    for _ in range(3):
        value = 2 * value + decision(data, s, c, CTX_MB_TYPE_B + 5)
    if value < 8:
        return value + 3
    if value == 13:
        if not decision(data, s, c, CTX_MB_TYPE_B_INTRA):
            return 23
        return 23 + intra_mb_type_rest(data, s, c, CTX_MB_TYPE_B_INTRA, False)
    if value == 14:
        return 11
    if value == 15:
        return 22
    return 2 * value + decision(data, s, c, CTX_MB_TYPE_B + 5) - 4


@helper
def mb_type(data, s, c, slice_type, types, mb, mb_width, left, above):
    """mb_type, numbered as in the table of the slice type, intra types behind."""
    if slice_type == SLICE_I:
        return mb_type_i(data, s, c, types, mb, mb_width, left, above)
    if slice_type == SLICE_P:
        return mb_type_p(data, s, c)
    return mb_type_b(data, s, c, types, mb, mb_width, left, above)


@helper
def sub_mb_type(data, s, c, slice_type):
    """Table 9-38: sub_mb_type."""
    if slice_type == SLICE_P:
        if decision(data, s, c, CTX_SUB_MB_TYPE_P):
            return 0
        if not decision(data, s, c, CTX_SUB_MB_TYPE_P + 1):
            return 1
        return 3 - decision(data, s, c, CTX_SUB_MB_TYPE_P + 2)
    if not decision(data, s, c, CTX_SUB_MB_TYPE_B):
        return 0
    if not decision(data, s, c, CTX_SUB_MB_TYPE_B + 1):
        return 1 + decision(data, s, c, CTX_SUB_MB_TYPE_B + 3)
    number = 3
    if decision(data, s, c, CTX_SUB_MB_TYPE_B + 2):
        if decision(data, s, c, CTX_SUB_MB_TYPE_B + 3):
            return 11 + decision(data, s, c, CTX_SUB_MB_TYPE_B + 3)
        number = 7
    number += 2 * decision(data, s, c, CTX_SUB_MB_TYPE_B + 3)
    return number + decision(data, s, c, CTX_SUB_MB_TYPE_B + 3)


@helper
def transform_size_8x8_flag(data, s, c, transform_8x8, mb, mb_width, left, above):
    """9.3.3.1.1.10: transform_size_8x8_flag."""
    context = CTX_TRANSFORM_8x8
    if left:
        context += transform_8x8[mb - 1]
    if above:
        context += transform_8x8[mb - mb_width]
    return decision(data, s, c, context)


@helper
def intra_pred_mode(data, s, c):
    """prev_intra4x4_pred_mode_flag or its 8x8 sister: -1 when set, else rem_intra_pred_mode."""
    if decision(data, s, c, CTX_PREV_INTRA_MODE):
        return -1
    mode = decision(data, s, c, CTX_REM_INTRA_MODE)
    mode += 2 * decision(data, s, c, CTX_REM_INTRA_MODE)
    return mode + 4 * decision(data, s, c, CTX_REM_INTRA_MODE)


@helper
def intra_chroma_pred_mode(data, s, c, chroma_mode, mb, mb_width, left, above):
    """9.3.3.1.1.8: intra_chroma_pred_mode; chroma_mode is 0 where a macroblock has none."""
    context = CTX_INTRA_CHROMA
    if left and chroma_mode[mb - 1] != 0:
        context += 1
    if above and chroma_mode[mb - mb_width] != 0:
        context += 1
    mode = 0
    while mode < 3 and decision(data, s, c, context):
        mode += 1
        context = CTX_INTRA_CHROMA + 3
    return mode


@helper
def ref_idx(data, s, c, refs_of_list, y8, x8, left, above):
    """9.3.3.1.1.6: ref_idx of the 8x8 block (x8, y8); left, above: whether the blocks there are available."""
    inc = 0
    if left and refs_of_list[y8, x8 - 1] > 0:
        inc += 1
    if above and refs_of_list[y8 - 1, x8] > 0:
        inc += 2
    value = 0
    while decision(data, s, c, CTX_REF_IDX + inc):
        value += 1
        inc = (inc >> 2) + 4
        if value > 32:
            fail(s, E_REF_IDX)
            return 0
    return value


@helper
def mvd(data, s, c, mvd_of_list, y4, x4, component, left, above):
    """9.3.3.1.1.7, 9.3.2.3: mvd (0 = x, 1 = y) of the 4x4 block (x4, y4); left, above as in ref_idx."""
    total = 0
    if left:
        total += abs(np.int64(mvd_of_list[y4, x4 - 1, component]))
    if above:
        total += abs(np.int64(mvd_of_list[y4 - 1, x4, component]))
    base = CTX_MVD_Y if component else CTX_MVD_X
    if not decision(data, s, c, base + (0 if total < 3 else 1 if total <= 32 else 2)):
        return np.int64(0)
    value, context = 1, 3
    while value < 9 and decision(data, s, c, base + context):
        value += 1
        context = min(context + 1, 6)
    if value == 9:
        more = bypass_exp_golomb(data, s, 3)
        if more < 0:
            fail(s, E_MVD)
            return np.int64(0)
        value += more
    return -value if bypass(data, s) else value


@helper
def coded_block_pattern(data, s, c, cbp, mb, mb_width, left, above):
    """9.3.3.1.1.4: coded_block_pattern: bits 0-3 luma quadrants, bits 4-5 chroma."""
    cbp_a = np.int64(cbp[mb - 1]) if left else 15
    cbp_b = np.int64(cbp[mb - mb_width]) if above else 15
    value = 0
    for q in range(4):
        coded_a = value >> (q - 1) & 1 if q & 1 else cbp_a >> (q + 1) & 1
        coded_b = value >> (q - 2) & 1 if q & 2 else cbp_b >> (q + 2) & 1
        value |= decision(data, s, c, CTX_CBP_LUMA + (1 - coded_a) + 2 * (1 - coded_b)) << q
    chroma_a, chroma_b = cbp_a >> 4, cbp_b >> 4
    inc = (1 if chroma_a else 0) + (2 if chroma_b else 0)
    if decision(data, s, c, CTX_CBP_CHROMA + inc):
        inc = (1 if chroma_a == 2 else 0) + (2 if chroma_b == 2 else 0)
        value |= (1 + decision(data, s, c, CTX_CBP_CHROMA + 4 + inc)) << 4
    return value


@helper
def mb_qp_delta(data, s, c):
    """9.3.3.1.1.5: mb_qp_delta."""
    inc = 1 if s[S_QP_DELTA] else 0
    code = 0
    while decision(data, s, c, CTX_MB_QP_DELTA + inc):
        code += 1
        inc = 2 + (inc >> 1)
        if code > 104:
            fail(s, E_QP_DELTA)
            return 0
    return (code + 1) >> 1 if code & 1 else -(code >> 1)
