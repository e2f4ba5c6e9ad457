"""7.3.4: first walk over a slice: slice_data(), parsed into arrays.

Bits of macroblocks are differences of positions, and their sum is the size of slice_data() without cabac_alignment_one_bit.
An mb_skip_run counts for the macroblock behind it, at the end of a slice for its last one. With CABAC a macroblock ends at a
fraction of a bit: `bits` has the bits that the engine has shifted out by then, the last of a slice those that end it, too.
"""

from ..jit.intrinsics import inlined
from ..jit.kernel import closed_kernel, helper
from ..standard.cabac_contexts import UNIT
from . import cabac
from .bitreader import fail, ue
from .elements_cabac import mb_skip_flag
from .errors import E_END, E_SKIP_RUN
from .layout import (
    KIND_TYPE,
    N_KINDS,
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


@helper
def add_bits(m, mb, bits, units):
    """Bits of a macroblock, and those of KIND_TYPE, which are the rest of its `units` of 1 / UNIT bits."""
    m.bits[mb] += bits
    for k in range(N_KINDS):
        if k != KIND_TYPE:
            units -= m.bits_by_kind[mb, k]
    m.bits_by_kind[mb, KIND_TYPE] = units


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
    begin = s[S_POS]
    if is_cabac:
        begin = (begin + 7) & ~7
        cabac.start(data, s)  # behind cabac_alignment_one_bit; reads ahead, beyond the end of a short slice
    begun = UNIT * begin
    while more and s[S_ERROR] == 0:
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
        more = not cabac.terminate(data, s) if is_cabac else s[S_POS] < s[S_END]
        end, ended = s[S_END], UNIT * s[S_END]
        if more:
            end, ended = cabac.shifted_out(s) if is_cabac else s[S_POS], cabac.spent(s, is_cabac)
        add_bits(m, mb, end - begin, ended - begun)
        begin, begun = end, ended
        mb += 1
    if not is_cabac and begin < s[S_POS] and mb > p[P_FIRST_MB] and s[S_ERROR] == 0:  # mb_skip_run at the end
        m.bits[mb - 1] += s[S_POS] - begin
        m.bits_by_kind[mb - 1, KIND_TYPE] += UNIT * (s[S_POS] - begin)
    if (cabac.position(s) - 1 if is_cabac else s[S_POS]) > s[S_END]:
        fail(s, E_END)
    p[P_END_MB] = mb
