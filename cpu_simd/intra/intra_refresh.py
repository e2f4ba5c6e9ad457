"""Intra refresh: makes macroblocks of a P frame intra, so that a decoder has clean samples up to the end of a bar.

Not part of the standard. Columns of macroblocks before the bar are clean in the reference too, but for the samples that the
deblocking filter changes at their border. With the bar they are clean after the frame, whatever the others are.
"""

import numpy as np

from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import LAST_INTRA, I_16x16, SUB_8x8
from ...standard.sample_format import Sample
from ..decisions.common import INTER_IS_CHEAPER, LAMBDA
from ..decisions.intra import (
    ABOVE_RIGHT,
    DEBLOCKED,
    HORIZONTAL,
    TAPS,
    TO_DOWN_LEFT,
    TO_HORIZONTAL_DOWN,
    TO_HORIZONTAL_UP,
    TO_VERTICAL_LEFT,
    VERTICAL,
    AS_8x8,
)
from .intra_estimate import COSTS_4x4, Scratch, best_modes
from .intra_prediction_8x8 import EDGE_8x8


@helper
def reads_beyond(mv, mb, x0, limit):
    """8.4.2.2: whether a vector of macroblock mb, at luma column x0, needs samples of the reference from column `limit` on.

    Chroma reaches as far as luma at most, also with a limit that DEBLOCKED has lowered.
    """
    for k in range(16):
        x = np.int64(mv[mb, k, 0])
        last = x0 + 4 * (k & 3) + 3 + (x >> 2) + (TAPS if x & 3 else 0)
        if last >= limit:
            return True
    return False


@helper
def without_above_right(modes):
    """8.3.1.2, 8.3.2.2: replaces modes that read samples above right of the macroblock; they are as intra_modes.

    The filter of Intra_8x8 reads them in all modes but three: such macroblocks become Intra_4x4.
    """
    mode = modes[ABOVE_RIGHT]
    if mode >= AS_8x8:
        mode -= AS_8x8
        if mode == HORIZONTAL or mode == TO_HORIZONTAL_DOWN or mode == TO_HORIZONTAL_UP:
            return
        for k in range(16):
            modes[k] -= AS_8x8
    if mode == TO_DOWN_LEFT or mode == TO_VERTICAL_LEFT:
        modes[ABOVE_RIGHT] = VERTICAL


@closed_kernel
def intra_refresh(source, qp, slice_first_mb, tools, refresh_columns, disable_idc, row0, row1, motion, intra_modes):
    """Makes macroblocks of the bar intra, and those before it that are predicted from samples that are not clean.

    source: Sample[H, W]; qp: uint8[n_mb], QP_Y; slice_first_mb: int32[n_mb]; tools: CodingTools; refresh_columns:
    int32[2], columns of macroblocks [begin, end) of the bar; disable_idc: disable_deblocking_filter_idc; [row0, row1):
    macroblock rows; motion: Motion of the mode decision. Writes types and motion, I_16x16 for "intra, intra_modes says how",
    and of these macroblocks intra_modes: uint8[n_mb, 16], see intra_estimate. Those of the last column of the bar do not
    read the macroblock above right, which may not be clean.
    """
    mb_type, sub_mb_type, ref_idx, mv = motion.mb_type, motion.sub_mb_type, motion.ref_idx, motion.mv
    mb_width = source.shape[1] // 16
    current, edges = np.empty(256, np.int16), np.zeros((2, 17), np.int64)
    edge, costs = np.zeros(EDGE_8x8, Sample), np.zeros(COSTS_4x4, np.int16)
    samples, predictions = np.zeros(256, Sample), np.zeros(576, Sample)
    modes, modes_8x8 = np.zeros(16, np.int64), np.zeros(16, np.int64)
    scratch = Scratch(current, edges, edge, costs, samples, predictions, modes, modes_8x8)
    begin, end = np.int64(refresh_columns[0]), np.int64(refresh_columns[1])
    limit = 16 * begin - (0 if disable_idc == 1 else DEBLOCKED)
    for my in range(row0, row1):
        for mx in range(end):
            mb = my * mb_width + mx
            if mx < begin and (mb_type[mb] <= LAST_INTRA or not reads_beyond(mv, mb, 16 * mx, limit)):
                continue
            best_modes(source, mb, slice_first_mb, LAMBDA[qp[mb]], np.int64(INTER_IS_CHEAPER), tools, scratch)
            if mx == end - 1 and end < mb_width and mb - mb_width >= slice_first_mb[mb]:
                without_above_right(modes)
            for k in range(16):
                intra_modes[mb, k] = modes[k]
                mv[mb, k, 0] = 0
                mv[mb, k, 1] = 0
            for q in range(4):
                sub_mb_type[mb, q] = SUB_8x8
                ref_idx[mb, q] = -1
            mb_type[mb] = I_16x16
