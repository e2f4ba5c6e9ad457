"""Third walk over a slice: prediction and residual of every macroblock into the picture (8.3, 8.4.2, 8.5)."""

import numpy as np

from ..jit.intrinsics import inlined
from ..jit.kernel import closed_kernel, helper
from ..standard.macroblock import BLOCK_TO_RASTER, I_PCM, I_8x8, I_16x16
from ..standard.sample_format import Sample
from .errors import E_INTRA_NEIGHBOUR
from .inter_pred import BLOCK, Work, predict_inter
from .intra_pred import (
    DC,
    MODE_NEEDS,
    MODE_NEEDS_CHROMA,
    MODE_NEEDS_16x16,
    filter_edge_8x8,
    gather_edge,
    predict_16x16,
    predict_chroma,
    predict_square,
)
from .layout import (
    LEVELS_PER_MB,
    P_CONSTRAINED_INTRA,
    P_END_MB,
    P_FIRST_MB,
    P_MB_WIDTH,
    P_SLOT,
    is_intra,
)
from .neighbours import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT, is_above, is_left, mb_position, neighbours
from .transform import (
    BLOCKS,
    COEFFICIENTS,
    add_block,
    add_chroma,
    add_luma,
    add_residual_8x8,
    chroma_residual,
    luma_residual,
)


@helper
def intra_neighbours(p, slice_id, mb_type, mb):
    """8.3.1.2: macroblocks around `mb` whose samples may be used for intra prediction, as LEFT | ABOVE | ..."""
    mb_width = p[P_MB_WIDTH]
    available = neighbours(p, slice_id, mb)
    if p[P_CONSTRAINED_INTRA]:
        if available & LEFT and not is_intra(mb_type[mb - 1]):
            available &= ~LEFT
        if available & ABOVE and not is_intra(mb_type[mb - mb_width]):
            available &= ~ABOVE
        if available & ABOVE_RIGHT and not is_intra(mb_type[mb - mb_width + 1]):
            available &= ~ABOVE_RIGHT
        if available & ABOVE_LEFT and not is_intra(mb_type[mb - mb_width - 1]):
            available &= ~ABOVE_LEFT
    return available


@helper
def block_neighbours(available, x, y, size):
    """6.4.11.4, 6.4.11.2: what is available around the block at (x, y) of its macroblock, in units of its size.

    `available` is that of the macroblock; size: blocks along a side (4 or 2).
    """
    result = 0
    if x > 0 or available & LEFT:
        result |= LEFT
    if y > 0 or available & ABOVE:
        result |= ABOVE
    corner = ABOVE if x > 0 else LEFT if y > 0 else ABOVE_LEFT  # the macroblock it lies in
    if (x > 0 and y > 0) or available & corner:
        result |= ABOVE_LEFT
    if y == 0:
        if available & (ABOVE_RIGHT if x == size - 1 else ABOVE):
            result |= ABOVE_RIGHT
    elif x < size - 1 and not (x & 1 and y & 1):
        result |= ABOVE_RIGHT  # decoded before this block
    return result


@helper
def intra_block_mode(p, m, mb, y4, x4, inner_left, inner_above):
    """8.3.1.1, 8.3.2.1: Intra4x4PredMode or Intra8x8PredMode of the block whose first 4x4 block is (x4, y4)."""
    rem = m.intra_mode[y4, x4]
    left, above = inner_left, inner_above
    if not left:
        left = is_left(p, m.slice_id, mb)
        left = left and (not p[P_CONSTRAINED_INTRA] or is_intra(m.mb_type[mb - 1]))
    if not above:
        above = is_above(p, m.slice_id, mb)
        above = above and (not p[P_CONSTRAINED_INTRA] or is_intra(m.mb_type[mb - p[P_MB_WIDTH]]))
    predicted = DC  # dcPredModePredictedFlag
    if left and above:
        predicted = min(m.intra_mode[y4, x4 - 1], m.intra_mode[y4 - 1, x4])
    if rem < 0:
        return predicted
    return rem + (rem >= predicted)


@helper
def keep(plane, kept, y, x, size):
    """The prediction of a square of samples, for the observer."""
    for j in range(y, y + size):
        for i in range(x, x + size):
            kept[j, i] = plane[j, i]


@helper
def keep_macroblock(p, mb, planes, traces):
    """The same of a macroblock."""
    y, x = mb_position(p, mb)
    slot = p[P_SLOT]
    keep(planes.y[slot], traces.y, 16 * y, 16 * x, 16)
    keep(planes.u[slot], traces.u, 8 * y, 8 * x, 8)
    keep(planes.v[slot], traces.v, 8 * y, 8 * x, 8)


@helper
def residual_energy(p, mb, plane, kept):
    """Sum of squares of the luma samples of a macroblock minus their prediction."""
    y, x = mb_position(p, mb)
    total = np.int32(0)
    for j in range(16 * y, 16 * y + 16):
        for i in range(16 * x, 16 * x + 16):
            difference = np.int32(plane[j, i]) - np.int32(kept[j, i])
            total += np.int32(difference * difference)
    return total


@helper
def intra_nxn(p, m, mb, plane, flat, origin, factors_4x4, factors_8x8, edges, d, rest, kept):
    """8.3.1, 8.3.2, 8.5.1, 8.5.3: luma of an I_4x4 or I_8x8 macroblock, block by block; 0 or an error.

    plane uint8[H, W]; it begins at flat[origin], too. kept: likewise for the prediction, or empty.
    """
    row, column = mb_position(p, mb)
    y4, x4 = 4 * row, 4 * column
    stride = 16 * p[P_MB_WIDTH]
    available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
    size = 2 if m.mb_type[mb] == I_8x8 else 1  # of a block, in 4x4 blocks
    n, count = 4 * size, 4 // size
    qp, cbp, levels = m.qp[mb], m.cbp[mb], m.levels[mb]
    if size == 1 and cbp & 15:
        luma_residual(levels, factors_4x4[0, 0, qp], False, d, rest)
    for block in range(0, 16, size * size):
        raster = BLOCK_TO_RASTER[block]
        by, bx = raster >> 2, raster & 3
        mode = intra_block_mode(p, m, mb, y4 + by, x4 + bx, bx > 0, by > 0)
        for j in range(size):
            for i in range(size):
                m.intra_mode[y4 + by + j, x4 + bx + i] = mode
        around = block_neighbours(available, bx // size, by // size, count)
        if MODE_NEEDS[mode] & ~around:
            return E_INTRA_NEIGHBOUR
        y, x = 4 * (y4 + by), 4 * (x4 + bx)
        edge = edges[0]
        gather_edge(plane, y, x, n, around, edge)
        if size == 2:
            filter_edge_8x8(edge, around, edges[1])
            edge = edges[1]
        predict_square(plane, y, x, n, mode, around, edge)
        if kept.size:
            keep(plane, kept, y, x, n)
        at = origin + y * stride + x
        if not cbp >> (block >> 2) & 1:
            continue
        if size == 2:
            add_residual_8x8(flat, at, stride, levels, 16 * block, factors_8x8[0, qp], d)
        else:
            add_block(flat, at, stride, rest, raster)
    return 0


@helper
def intra_16x16(p, m, mb, plane):
    """8.3.3: prediction of luma of an I_16x16 macroblock; 0 or an error."""
    inlined()
    y, x = mb_position(p, mb)
    available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
    mode = m.intra16x16_mode[mb]
    if MODE_NEEDS_16x16[mode] & ~available:
        return E_INTRA_NEIGHBOUR
    predict_16x16(plane, 16 * y, 16 * x, mode, available)
    return 0


@helper
def residual_luma(p, m, mb, flat, origin, factors_4x4, factors_8x8, d, rest):
    """8.5.1 to 8.5.3: luma residual added to a prediction of the whole macroblock, in the plane at flat[origin]."""
    y, x = mb_position(p, mb)
    stride = 16 * p[P_MB_WIDTH]
    at = origin + 16 * (y * stride + x)
    qp, cbp, levels = m.qp[mb], m.cbp[mb], m.levels[mb]
    if m.transform_8x8[mb]:
        for q in range(4):
            if cbp >> q & 1:
                to = at + 8 * ((q >> 1) * stride + (q & 1))
                add_residual_8x8(flat, to, stride, levels, 64 * q, factors_8x8[1, qp], d)
        return
    is_16x16 = m.mb_type[mb] == I_16x16
    luma_residual(levels, factors_4x4[0 if is_16x16 else 1, 0, qp], is_16x16, d, rest)
    add_luma(flat, at, stride, rest)


@helper
def residual_chroma(p, m, mb, u_flat, v_flat, origin, factors_4x4, d, rest):
    """8.5.4: chroma residual added to the prediction, in the planes at u_flat[origin] and v_flat[origin]."""
    y, x = mb_position(p, mb)
    stride = 8 * p[P_MB_WIDTH]
    at = origin + 8 * (y * stride + x)
    factors = factors_4x4[0 if is_intra(m.mb_type[mb]) else 1, 1, m.qp[mb]]
    chroma_residual(m.levels[mb], factors, m.cbp[mb] >> 5, d, rest)
    add_chroma(u_flat, at, stride, rest, 0)
    add_chroma(v_flat, at, stride, rest, 1)


@helper
def pcm(p, m, mb, y_plane, u_plane, v_plane):
    """8.3.5: samples of an I_PCM macroblock; its levels are cleared."""
    inlined()
    y, x = mb_position(p, mb)
    y0, x0 = 16 * y, 16 * x
    levels = m.levels[mb]
    for i in range(256):
        y_plane[y0 + (i >> 4), x0 + (i & 15)] = levels[i]
    for i in range(64):
        u_plane[(y0 >> 1) + (i >> 3), (x0 >> 1) + (i & 7)] = levels[256 + i]
        v_plane[(y0 >> 1) + (i >> 3), (x0 >> 1) + (i & 7)] = levels[320 + i]
    for i in range(LEVELS_PER_MB):
        levels[i] = 0


@helper
def reconstruct_macroblock(p, m, mb, planes, flat, factors_4x4, factors_8x8, edges, d, rest, traces):
    """8.3, 8.5: prediction of an intra macroblock and residual of any; 0 or an error."""
    inlined()
    slot = p[P_SLOT]
    mb_type, cbp = m.mb_type[mb], m.cbp[mb]
    origin = slot * planes.y.shape[1] * planes.y.shape[2]
    if mb_type == I_PCM:
        pcm(p, m, mb, planes.y[slot], planes.u[slot], planes.v[slot])
        if traces.y.size:
            keep_macroblock(p, mb, planes, traces)
        return 0
    if is_intra(mb_type):
        if mb_type == I_16x16:
            error = intra_16x16(p, m, mb, planes.y[slot])
        else:
            error = intra_nxn(p, m, mb, planes.y[slot], flat[0], origin, factors_4x4, factors_8x8, edges, d, rest, traces.y)
        available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
        mode = m.chroma_mode[mb]
        if MODE_NEEDS_CHROMA[mode] & ~available:
            error = E_INTRA_NEIGHBOUR
        if error:
            return error
        y, x = mb_position(p, mb)
        predict_chroma(planes.u[slot], 8 * y, 8 * x, mode, available)
        predict_chroma(planes.v[slot], 8 * y, 8 * x, mode, available)
        if traces.y.size:
            keep(planes.u[slot], traces.u, 8 * y, 8 * x, 8)
            keep(planes.v[slot], traces.v, 8 * y, 8 * x, 8)
            if mb_type == I_16x16:
                keep(planes.y[slot], traces.y, 16 * y, 16 * x, 16)
    if mb_type == I_16x16 or (cbp & 15 and not is_intra(mb_type)):
        residual_luma(p, m, mb, flat[0], origin, factors_4x4, factors_8x8, d, rest)
    if cbp >> 4:
        residual_chroma(p, m, mb, flat[1], flat[2], origin >> 2, factors_4x4, d, rest)
    return 0


@closed_kernel
def reconstruct_slice(p, m, planes, motion, references, factors_4x4, factors_8x8, traces):
    """8.3, 8.4.2, 8.5: all macroblocks of a parsed slice whose motion is known; (error or 0, macroblock).

    traces: layout.Traces, written unless they are empty.
    """
    work = Work(
        np.empty(BLOCK, Sample),
        np.empty(BLOCK, Sample),
        np.empty(BLOCK, Sample),
        np.empty(BLOCK, Sample),
        np.empty(BLOCK, np.int16),
    )
    edges = np.empty((2, 25), np.int32)
    d, rest = np.empty(COEFFICIENTS, np.int16), np.empty(BLOCKS, np.int16)
    slot = p[P_SLOT]
    flat = (planes.y.ravel(), planes.u.ravel(), planes.v.ravel())
    size = (planes.y.shape[1], planes.y.shape[2])
    mv, ref_idx = motion.mv[slot], motion.ref_idx[slot]
    for mb in range(p[P_FIRST_MB], p[P_END_MB]):
        error = 0
        mb_type = m.mb_type[mb]
        y, x = mb_position(p, mb)
        if not is_intra(mb_type):
            error = predict_inter(p, flat, size, slot, mv, ref_idx, references, 4 * y, 4 * x, mb_type, work)
            if traces.y.size:
                keep_macroblock(p, mb, planes, traces)
        if error == 0 and (is_intra(mb_type) or m.cbp[mb]):
            error = reconstruct_macroblock(p, m, mb, planes, flat, factors_4x4, factors_8x8, edges, d, rest, traces)
            if traces.y.size and error == 0:
                traces.energy[mb] = residual_energy(p, mb, planes.y[slot], traces.y)
        if error:
            return error, mb
    return 0, 0
