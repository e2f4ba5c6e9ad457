"""7.3.4: first walk over a slice: slice_data(), parsed into arrays."""

from ..standard.jit import kernel
from . import cabac
from .bitreader import fail, u, ue
from .elements_cabac import mb_skip_flag
from .errors import E_CABAC, E_END, E_SKIP_RUN
from .layout import (
    P_CABAC,
    P_END_MB,
    P_FIRST_MB,
    P_MB_WIDTH,
    P_N_MB,
    P_QP,
    P_SLICE_ID,
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


@kernel
def slice_data_cavlc(data, s, p, m, ref_idx):
    """7.3.4: macroblocks of a slice coded with CAVLC; the address behind the last one."""
    mb = p[P_FIRST_MB]
    while s[S_POS] < s[S_END]:
        start = s[S_POS]
        if p[P_SLICE_TYPE] != SLICE_I:
            run = ue(data, s)
            if run > p[P_N_MB] - mb:
                fail(s, E_SKIP_RUN)
            if s[S_ERROR]:
                return mb
            for _ in range(run):
                skipped_macroblock(s, p, m, ref_idx, mb)
                if s[S_ERROR]:
                    return mb
                mb += 1
            if s[S_POS] >= s[S_END]:
                return mb
        macroblock_layer(data, s, p, m, ref_idx, mb)
        if s[S_POS] > s[S_END]:
            fail(s, E_END)
        if s[S_ERROR]:
            return mb
        m.bits[mb] = s[S_POS] - start
        mb += 1
    return mb


@kernel
def slice_data_cabac(data, s, p, m, ref_idx):
    """7.3.4: macroblocks of a slice coded with CABAC; the address behind the last one."""
    while s[S_POS] & 7:
        if not u(data, s, 1):
            fail(s, E_CABAC)  # cabac_alignment_one_bit
    cabac.start(data, s)
    mb = p[P_FIRST_MB]
    mb_width = p[P_MB_WIDTH]
    while s[S_ERROR] == 0:
        start = cabac.position(s)
        skipped = False
        if mb < p[P_N_MB] and p[P_SLICE_TYPE] != SLICE_I:
            left = mb % mb_width > 0 and m.slice_id[mb - 1] == p[P_SLICE_ID]
            above = mb >= mb_width and m.slice_id[mb - mb_width] == p[P_SLICE_ID]
            kind = p[P_SLICE_TYPE]
            skipped = mb_skip_flag(data, s, m.contexts, kind, m.mb_type, mb, mb_width, left, above) != 0
        if skipped:
            skipped_macroblock(s, p, m, ref_idx, mb)
        else:
            macroblock_layer(data, s, p, m, ref_idx, mb)
        if s[S_ERROR]:
            return mb
        m.bits[mb] = cabac.position(s) - start
        mb += 1
        if cabac.terminate(data, s):
            if cabac.position(s) > s[S_END] + 1:
                fail(s, E_CABAC)
            return mb
    return mb


@kernel
def parse_slice(data, s, p, m, motion):
    """7.3.4: slice_data(); sets p[P_END_MB]; errors stay in the state."""
    s[S_MB] = p[P_FIRST_MB]
    s[S_QP] = p[P_QP]
    s[S_QP_DELTA] = 0
    ref_idx = motion.ref_idx[p[P_SLOT]]
    if p[P_CABAC]:
        p[P_END_MB] = slice_data_cabac(data, s, p, m, ref_idx)
    else:
        p[P_END_MB] = slice_data_cavlc(data, s, p, m, ref_idx)
