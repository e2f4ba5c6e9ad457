"""7.3.4: first walk over a slice: slice_data(), parsed into arrays."""

from ..standard.jit import kernel
from .bitreader import fail, ue
from .errors import E_END, E_SKIP_RUN
from .layout import (
    P_END_MB,
    P_FIRST_MB,
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
def parse_slice(data, s, p, m, motion):
    """7.3.4: slice_data(); sets p[P_END_MB]; errors stay in the state."""
    s[S_MB] = p[P_FIRST_MB]
    s[S_QP] = p[P_QP]
    s[S_QP_DELTA] = 0
    p[P_END_MB] = slice_data_cavlc(data, s, p, m, motion.ref_idx[p[P_SLOT]])
