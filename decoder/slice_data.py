"""7.3.4: first walk over a slice: slice_data(), parsed into arrays."""

from ..jit.inlining import inlined
from ..jit.kernel import closed_kernel, helper
from . import cabac
from .bitreader import fail, ue
from .elements_cabac import mb_skip_flag
from .errors import E_END, E_SKIP_RUN
from .layout import (
    P_CABAC,
    P_END_MB,
    P_FIRST_MB,
    P_MB_WIDTH,
    P_N_MB,
    P_QP,
    P_SLICE_TYPE,
    P_SLOT,
    S_END,
    S_ERROR,
    S_MB,
    S_POS,
    S_QP,
    S_QP_DELTA,
    SLICE_I,
)
from .macroblock import macroblock_layer, skipped_macroblock
from .neighbours import is_above, is_left


@helper
def skip_run(data, s, p, m, ref_idx, mb):
    """7.3.4: mb_skip_run (CAVLC) and its macroblocks; the address behind them."""
    inlined()
    run = ue(data, s)
    if run > p[P_N_MB] - mb:
        fail(s, E_SKIP_RUN)
    for _ in range(run):
        if s[S_ERROR]:
            return mb
        skipped_macroblock(s, p, m, ref_idx, mb)
        mb += 1
    return mb


@helper
def is_skipped(data, s, p, m, mb):
    """7.3.4: mb_skip_flag (CABAC)."""
    inlined()
    if mb >= p[P_N_MB]:
        return False
    mb_width = p[P_MB_WIDTH]
    left, above = is_left(p, m.slice_id, mb), is_above(p, m.slice_id, mb)
    return mb_skip_flag(data, s, m.contexts, p[P_SLICE_TYPE], m.mb_type, mb, mb_width, left, above) != 0


@closed_kernel
def parse_slice(data, s, p, m, motion):
    """7.3.4: slice_data(); sets p[P_END_MB]; an error stays in the state."""
    ref_idx = motion.ref_idx[p[P_SLOT]]
    s[S_QP] = p[P_QP]
    s[S_QP_DELTA] = 0
    is_cabac = p[P_CABAC] != 0
    mb = p[P_FIRST_MB]
    s[S_MB] = mb
    more = s[S_POS] < s[S_END]
    if is_cabac:
        cabac.start(data, s)  # behind cabac_alignment_one_bit; reads ahead, beyond the end of a short slice
    while more and s[S_ERROR] == 0:
        begin = cabac.position(s) if is_cabac else s[S_POS]
        skipped = False
        if p[P_SLICE_TYPE] != SLICE_I:
            if is_cabac:
                skipped = is_skipped(data, s, p, m, mb)
            else:
                mb = skip_run(data, s, p, m, ref_idx, mb)
                if s[S_ERROR] or s[S_POS] >= s[S_END]:
                    break
        if skipped:
            skipped_macroblock(s, p, m, ref_idx, mb)
        else:
            macroblock_layer(data, s, p, m, ref_idx, mb)
        if s[S_ERROR]:
            break
        m.bits[mb] = (cabac.position(s) if is_cabac else s[S_POS]) - begin
        mb += 1
        more = not cabac.terminate(data, s) if is_cabac else s[S_POS] < s[S_END]
    if (cabac.position(s) - 1 if is_cabac else s[S_POS]) > s[S_END]:
        fail(s, E_END)
    p[P_END_MB] = mb
