"""Intra macroblocks: choice of type and modes in I frames, coding and reconstruction in raster order (8.3, 8.5)."""

import numpy as np

from ...jit.atomics import fetch_add, store_release
from ...jit.intrinsics import inlined
from ...jit.kernel import closed_kernel, helper
from ...standard.macroblock import BLOCK_TO_RASTER, LAST_INTRA, I_4x4, I_8x8, I_16x16
from ...standard.sample_format import MB_SAMPLES, SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from ...standard.tables import ZIGZAG_4x4
from ..costs.bit_costs import i_frame_mode_bits, mode_4x4_bits
from ..costs.cabac_bits import I_SLICE, P_SLICE, LUMA_AC_16x16, LUMA_DC_16x16
from ..costs.cost import strip_satd
from ..decisions.common import BY_COST, BY_COST_INTRA, LAMBDA
from ..decisions.intra import ABOVE_RIGHT_INSIDE, AS_8x8, AS_16x16, BITS_4x4, N_MODES_4x4
from ..decisions.quantise import DEAD_ZONE_INTRA, TRELLIS_INTRA
from ..entropy.macroblock_syntax import predicted_intra_mode
from ..layout import LUMA_DC, N_LEVEL_BLOCKS, SCALING_FINER
from ..quantiser.trellis import LONGEST, choose_dc
from ..residual.macroblock_coding import (
    AS_ROUNDED,
    BY_CABAC,
    Buffers,
    Rounding,
    by_cabac,
    clear_levels,
    code_block,
    code_chroma,
    code_pcm,
    forward_chosen,
    load_macroblock,
    pcm_is_cheaper,
    quantise_chosen,
    rounding_method,
    scan_luma,
    store_chroma,
    store_luma,
)
from ..residual.residual_range import leaves_16_bits
from ..residual.transform import (
    BUFFER,
    COEFFICIENTS,
    LUMA,
    ScalingLists,
    chroma_qp,
    dc_multiplier,
    quantise_dc,
    reconstruct_strips,
    scale_luma_dc,
    transform_luma_dc,
)
from ..residual.transform_choice import N_CHOICE_BITS, N_QPS, table_of_qp
from ..simd.lanes import block_satd, sums_of_4
from ..simd.vector import add, load_4_u8x4, load_u8x16, load_u16x16, splat_u16x16, store, sub, widen
from ..wavefront import wait_for_above
from .intra_8x8 import KEPT, code_8x8, keep_luma, restore_luma
from .intra_by_cost import best_4x4, best_8x8, best_chroma
from .intra_cost import Scale, cost_16x16, error_16x16
from .intra_prediction import (
    Around,
    Predictions,
    predict_4x4,
    predict_16x16,
    predict_chroma,
)
from .intra_prediction_8x8 import EDGE_8x8


@helper
def _row_difference(source, at, predicted, to):
    return sub(widen(load_u8x16(source, at)), widen(load_u8x16(predicted, to)))


@helper
def _best_mode(source, at, predictions, n_strips, usable, luma, lam):
    """The mode with the lowest SATD + lam * bits among the `usable` (bit mask) of four modes, and its cost.

    source: buffer, read from `at` on; predictions: n_strips * 64 samples a mode; luma: 1 for the modes
    of I_16x16, 0 for those of chroma.
    """
    best, best_cost = 0, 1 << 30
    for mode in range(4):
        if (usable >> mode) & 1:
            total = splat_u16x16(0)
            for strip in range(n_strips):
                s, p = at + 64 * strip, 64 * (n_strips * mode + strip)
                total = add(
                    total,
                    strip_satd(
                        _row_difference(source, s, predictions, p),
                        _row_difference(source, s + 16, predictions, p + 16),
                        _row_difference(source, s + 32, predictions, p + 32),
                        _row_difference(source, s + 48, predictions, p + 48),
                    ),
                )
            a, b, c, d = sums_of_4(total)
            cost = a + b + c + d + lam * i_frame_mode_bits(luma, mode)
            if cost < best_cost:
                best, best_cost = mode, cost
    return best, best_cost


@helper
def _code_16x16(mb, buffers, qp, rounding, residual):
    """8.3.3, 8.5.2: codes the luma of an Intra_16x16 macroblock with cleared levels; returns its luma cbp (0 or 15)."""
    _, predicted, out, quantised, dc, values, scratch, _ = buffers
    levels, total_coeff = residual.levels, residual.total_coeff
    forward_chosen(buffers, 0, 4, LUMA_AC_16x16, qp, rounding)
    coded = quantise_chosen(buffers, 0, 4, LUMA_AC_16x16, qp, True, rounding)
    for k in range(16):
        values[k] = quantised[COEFFICIENTS + 64 * (k >> 2) + 4 * (k & 3)]
    transform_luma_dc(values)
    multiplier = dc_multiplier(rounding.scaling, LUMA, qp)
    if by_cabac(rounding):
        choose_dc(values, 0, ZIGZAG_4x4, 16, qp, LUMA_DC_16x16, multiplier, rounding, scratch)
    else:
        for i in range(16):
            values[i] = quantise_dc(values[i], qp, rounding.dead_zone, multiplier, rounding.scaling.finer)
    for i in range(16):
        levels[mb, LUMA_DC, i] = values[ZIGZAG_4x4[i]]
    scan_luma(quantised, coded, mb, levels, total_coeff)
    scale_luma_dc(values, qp, rounding.scaling)
    for i in range(64):
        dc[i] = 0
    for k in range(16):
        dc[4 * k] = values[k]
    reconstruct_strips(quantised, dc, predicted, 0, 4, qp, rounding.scaling, out)
    return 15 if coded else 0


@helper
def _code_4x4(buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, given, intra_modes):
    """8.3.1, 8.5.1: chooses modes of and codes the 16 blocks of an Intra_4x4 macroblock in decoding order.

    predicted: Predictions. Modes come from intra_modes if `given`, else from the lowest
    SATD + lam * bits, the lower number on a tie. Returns the luma part of coded_block_pattern, or -1 as soon as the cost of
    modes that are not given reaches `limit`.
    """
    left, top, right, corner = around
    source, scratch = buffers.source, buffers.scratch
    predictions, edge = predicted.samples, predicted.edge
    levels, total_coeff = residual.levels, residual.total_coeff
    mb_width, lam = rec_y.shape[1] // 16, LAMBDA[qp]
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    cost = lam * BITS_4x4
    cbp = 0
    stride = rec_y.shape[1]
    for block in range(16):
        k = np.int64(BLOCK_TO_RASTER[block])
        bx, by = k & 3, k >> 2
        x, y = x0 + 4 * bx, y0 + 4 * by
        above_right = (ABOVE_RIGHT_INSIDE >> k) & 1 != 0
        if by == 0:
            above_right = right if bx == 3 else top
        left_k, top_k = left or bx > 0, top or by > 0
        corner_k = left_k and top_k if k else corner
        best, best_cost = 2, 1 << 30
        wanted = (1 << N_MODES_4x4) - 1
        if given:
            best = np.int64(intra_modes[mb, k])
            wanted = 1 << best
        usable = predict_4x4(rec_y, x, y, left_k, top_k, corner_k, above_right, wanted, edge, predictions)
        at = 64 * by + 4 * bx
        samples = load_4_u8x4(source, at, at + 16, at + 32, at + 48)
        if not given:
            predicted_mode = predicted_intra_mode(intra4x4_mode, mb, k, left, top, mb_width)
            wide = widen(samples)
            for mode in range(N_MODES_4x4):
                if (usable >> mode) & 1:
                    mode_cost = block_satd(sub(wide, widen(load_u8x16(predictions, 16 * mode))))
                    mode_cost += lam * mode_4x4_bits(mode, predicted_mode)
                    if mode_cost < best_cost:
                        best, best_cost = mode, mode_cost
            cost += best_cost
            if cost >= limit:
                return -1
        intra4x4_mode[mb, k] = best
        total_coeff[mb, k] = code_block(
            samples,
            load_u8x16(predictions, 16 * best),
            qp,
            rounding,
            levels,
            16 * (N_LEVEL_BLOCKS * mb + block),
            rec_y,
            y * stride + x,
            stride,
            scratch,
        )
        if total_coeff[mb, k] != 0:
            cbp |= 1 << (block >> 2)
    return cbp


@helper
def _code_nxn(buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, intra_modes, wanted):
    """Codes the luma of macroblock mb as Intra_4x4 (bit 0 of `wanted`) or Intra_8x8 (bit 1), whichever costs less.

    Bit 2: the modes are given. Returns the luma part of coded_block_pattern and the type; -1 if neither costs less than
    `limit`.
    """
    inlined()
    given = wanted & 4 != 0
    mb_width = rec_y.shape[1] // 16
    x0, y0 = 16 * (mb % mb_width), 16 * (mb // mb_width)
    luma = np.int64(-1)
    if wanted & 2:
        luma, limit = code_8x8(
            buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, given, intra_modes
        )
        if wanted & 1 == 0:
            return luma, I_8x8
        if luma >= 0:
            keep_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, predicted.kept)
    if wanted & 1:
        luma_4x4 = _code_4x4(
            buffers, mb, around, limit, qp, rounding, intra4x4_mode, rec_y, predicted, residual, given, intra_modes
        )
        if luma_4x4 >= 0:
            return np.int64(luma_4x4), I_4x4
        if luma >= 0:
            restore_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, predicted.kept)
    return luma, I_8x8


@helper
def _code_chroma(buffers, mb, usable, lam, qp_c, rounding, predictions, residual):
    """8.3.4, 8.5.4: as best_chroma with the mode of the lowest SATD + lam * bits; levels must be cleared."""
    mode, _ = _best_mode(buffers.source, 256, predictions, 2, usable, 0, lam)
    for i in range(0, 128, 16):
        store(buffers.predicted, 256 + i, load_u8x16(predictions, 128 * mode + i))
    return mode, code_chroma(buffers, qp_c, rounding, 0, mb, residual)


@helper
def _set_modes_of_none(mb, intra_choice):
    """The modes of a macroblock that is predicted in no mode."""
    for k in range(16):
        intra_choice.intra4x4_mode[mb, k] = 2
    intra_choice.intra16x16_mode[mb] = 0
    intra_choice.intra_chroma_mode[mb] = 0


@helper
def _code_16x16_instead(mb, mode, buffers, qp, rounding, intra_choice, rec_y, residual):
    """_code_16x16 after smaller blocks cost more, with type, mode and reconstruction."""
    mb_width = rec_y.shape[1] // 16
    intra_choice.mb_type[mb] = I_16x16
    _set_modes_of_none(mb, intra_choice)
    intra_choice.intra16x16_mode[mb] = mode
    clear_levels(mb, residual)
    luma = _code_16x16(mb, buffers, qp, rounding, residual)
    store_luma(buffers.out, rec_y, 16 * (mb % mb_width), 16 * (mb // mb_width))
    return luma


@helper
def _by_cost(buffers, mb, around, mode, q, rounding, intra_choice, rec_y, predicted, residual, scale, large):
    """Chooses the type of macroblock mb with cleared levels by true cost (intra_cost.py), and codes its luma.

    mode: Intra16x16PredMode, whose prediction is in buffers; large: whether it may be Intra_8x8. Writes type and modes.
    Returns the luma part of coded_block_pattern.
    """
    inlined()
    intra4x4_mode, stride = intra_choice.intra4x4_mode, rec_y.shape[1]
    x0, y0 = 16 * (mb % (stride // 16)), 16 * (mb // (stride // 16))
    luma, mb_type = np.int64(_code_16x16(mb, buffers, q, rounding, residual)), I_16x16
    store_luma(buffers.out, rec_y, x0, y0)
    error = error_16x16(buffers.source, rec_y, y0 * stride + x0, stride)
    least = cost_16x16(scale, mb, mode, error, luma, q, residual)
    dc = load_u16x16(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + LUMA_DC))
    for k in range(16):
        intra4x4_mode[mb, k] = 2
    for n in range(2):
        if n == 0 and not large:
            continue
        keep_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, predicted.kept)
        clear_levels(mb, residual)
        if n == 0:
            cbp, cost = best_8x8(buffers, mb, around, least, q, rounding, intra4x4_mode, rec_y, predicted, residual, scale)
        else:
            cbp, cost = best_4x4(buffers, mb, around, least, q, rounding, intra4x4_mode, rec_y, predicted, residual, scale)
        if cbp >= 0:
            luma, least, mb_type = cbp, cost, I_4x4 if n else I_8x8
        else:
            restore_luma(mb, x0, y0, rec_y, intra4x4_mode, residual, predicted.kept)
    if mb_type == I_16x16:
        store(residual.levels, 16 * (N_LEVEL_BLOCKS * mb + LUMA_DC), dc)
        intra_choice.intra16x16_mode[mb] = mode
    intra_choice.mb_type[mb] = mb_type
    return luma


@helper
def _code_pcm_instead(mb, source_mb, x0, y0, rec, residual, intra_choice):
    """code_pcm after other types take more bits, with type and modes."""
    _set_modes_of_none(mb, intra_choice)
    intra_choice.mb_type[mb] = code_pcm(mb, source_mb, x0, y0, rec, residual)
    residual.cbp[mb] = 47


@helper
def _given_modes(first, tools):
    """Intra16x16PredMode, whether the macroblock may be Intra_4x4, whether Intra_8x8, by the first of its intra_modes."""
    return first % AS_16x16, first < AS_16x16, bool(tools.transform_8x8_mode) and first >= AS_8x8


@helper
def _keep(predictions, at, predicted):
    """Copies the prediction of a macroblock's luma."""
    for i in range(0, 256, 16):
        store(predicted, i, load_u8x16(predictions, at + i))


@closed_kernel
def intra(source, slice_order, n_ref, intra_modes, first_mb, end_mb, intra_choice, quantiser, tools, rec, residual):
    """8.3, 8.5: codes every intra macroblock of the slice [first_mb, end_mb) in raster order, shared with all other threads
    that call this with the same arguments: each takes rows, and stays behind the row above.

    Bundles: Planes source and rec, SliceOrder, IntraChoice, Quantiser, CodingTools, Residual. mb_type marks intra macroblocks
    on entry (any intra type) and receives their final type, I_8x8 only with transform_8x8_mode and intra_8x8. In a P frame
    (n_ref > 0) type and luma modes come from intra_modes: uint8[n_mb, 16], see intra_estimate; other choices except I_PCM are
    made by SATD + lam * bits. From subme BY_COST on (in P and B frames BY_COST_INTRA), if levels are chosen for CABAC and
    scaling lists are flat, true cost chooses (intra_by_cost.py). Needs the reconstruction of inter macroblocks.
    """
    mb_type, intra4x4_mode, _, intra_chroma_mode = intra_choice
    qp, chroma_qp_offset, scaling_table, has_scaling_lists = quantiser
    scaling = ScalingLists(scaling_table, np.int64(0), np.int64(scaling_table[SCALING_FINER]), has_scaling_lists)
    rec_y, rec_u, rec_v = rec
    cbp = residual.cbp
    mb_width = source.y.shape[1] // 16
    source_mb, out, edge = np.zeros(MB_SAMPLES, Sample), np.zeros(MB_SAMPLES, Sample), np.zeros(EDGE_8x8, Sample)
    predicted, predictions = np.zeros(MB_SAMPLES, Sample), np.zeros(1024, Sample)
    quantised, scratch, dc = np.zeros(BUFFER, np.int16), np.zeros(2 * LONGEST, np.int16), np.zeros(96, np.int32)
    bits, bits_qp = np.zeros(N_CHOICE_BITS, np.int32), np.int64(-1)
    kept, known = np.empty((N_QPS, N_CHOICE_BITS), np.int32), np.int64(0)
    method = rounding_method(tools, AS_ROUNDED)
    by_cost = bool(tools.cabac) and not bool(has_scaling_lists) and method == BY_CABAC
    by_cost = by_cost and tools.subme >= (BY_COST_INTRA if n_ref > 0 else BY_COST)
    if n_ref > 0 and not by_cost:
        method = np.int64(AS_ROUNDED)  # levels by bits gain 0.1 % alone
    dead_zones = np.int64(tools.dead_zone_intra), np.int64(DEAD_ZONE_INTRA)
    rounding = Rounding(method, *dead_zones, np.int64(TRELLIS_INTRA), bits, scaling, tools.cabac)
    values, quantised_8x8 = np.zeros(16, np.int64), np.zeros(BUFFER, np.int16)
    buffers = Buffers(source_mb, predicted, out, quantised, dc, values, scratch, quantised_8x8)
    of_modes = Predictions(predictions, edge, np.zeros(KEPT, np.uint8))
    scale = Scale(np.int64(P_SLICE if n_ref else I_SLICE), bits, np.zeros(64, np.int16), np.zeros(N_MODES_4x4, np.int64))
    given, large = n_ref > 0 and not by_cost, bool(tools.transform_8x8_mode) and tools.intra_8x8 != 0
    (slice_first_mb, progress), row0 = slice_order, first_mb // mb_width
    taken = 1 + source.y.shape[0] // 16 + row0
    my = row0 + fetch_add(progress, taken, 1)
    while my * mb_width < end_mb:
        for mx in range(mb_width):
            mb = my * mb_width + mx
            first = np.int64(slice_first_mb[mb])
            _set_modes_of_none(mb, intra_choice)
            if mb_type[mb] <= LAST_INTRA:
                wait_for_above(progress, my, mx, mb_width, first, row0)
                x0, y0 = 16 * mx, 16 * my
                left, top = mx > 0 and mb > first, mb - mb_width >= first
                corner = left and mb - mb_width > first
                usable = 4 | (1 if top else 0) | (2 if left else 0) | (8 if corner else 0)
                q, lam = np.int64(qp[mb]), LAMBDA[qp[mb]]
                if by_cabac(rounding) and q != bits_qp:
                    known = table_of_qp(bits, scale.slice_type, q, kept, known)
                    bits_qp = q
                load_macroblock(source, x0, y0, source_mb)
                clear_levels(mb, residual)
                mode, cost, as_4x4, as_8x8 = 2, 1 << 30, True, large and (corner or not left or not top)
                if given:
                    mode, as_4x4, as_8x8 = _given_modes(np.int64(intra_modes[mb, 0]), tools)
                    usable = 1 << mode
                if not given or not (as_4x4 or as_8x8):
                    predict_16x16(rec_y, x0, y0, left, top, usable, predictions)
                    if not given:
                        mode, cost = _best_mode(source_mb, 0, predictions, 4, usable, 1, lam)
                    _keep(predictions, 256 * mode, predicted)
                around = Around(left, top, top and mx + 1 < mb_width, corner)
                if by_cost:
                    luma = _by_cost(
                        buffers, mb, around, mode, q, rounding, intra_choice, rec_y, of_modes, residual, scale, as_8x8
                    )
                else:
                    sizes = (1 if as_4x4 else 0) | (2 if as_8x8 else 0) | 4 * given
                    luma, mb_type[mb] = _code_nxn(
                        buffers, mb, around, cost, q, rounding, intra4x4_mode, rec_y, of_modes, residual, intra_modes, sizes
                    )
                    if luma < 0:
                        luma = _code_16x16_instead(mb, mode, buffers, q, rounding, intra_choice, rec_y, residual)
                residual.transform_8x8[mb] = mb_type[mb] == I_8x8
                predict_chroma(rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C, left, top, predictions)
                usable = 1 | (2 if left else 0) | (4 if top else 0) | (8 if corner else 0)
                q_c = chroma_qp(q, chroma_qp_offset)
                if by_cost:
                    mode, chroma = best_chroma(buffers, mb, usable, q, q_c, rounding, predictions, residual, scale)
                else:
                    mode, chroma = _code_chroma(buffers, mb, usable, lam, q_c, rounding, predictions, residual)
                intra_chroma_mode[mb] = mode
                store_chroma(out, rec_u, rec_v, x0 // SUB_WIDTH_C, y0 // SUB_HEIGHT_C)
                cbp[mb] = luma + 16 * chroma
                if pcm_is_cheaper(mb, has_scaling_lists, residual) or leaves_16_bits(mb, q, q_c, scaling, buffers, residual):
                    _code_pcm_instead(mb, source_mb, x0, y0, rec, residual, intra_choice)
            store_release(progress, 1 + my, mx + 1)
        my = row0 + fetch_add(progress, taken, 1)
