"""Third walk over a slice: prediction and residual of every macroblock into the picture (8.3, 8.4.2, 8.5)."""

import numpy as np

from ..standard.jit import closed_kernel, helper
from ..standard.macroblock import BLOCK_TO_RASTER, I_PCM, I_4x4, I_16x16
from ..standard.tables import QP_CHROMA
from .errors import E_INTRA_NEIGHBOUR
from .inter_pred import BLOCK, Work, predict_inter
from .intra_pred import (
    ABOVE,
    ABOVE_LEFT,
    ABOVE_RIGHT,
    DC,
    LEFT,
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
    P_CB_OFFSET,
    P_CONSTRAINED_INTRA,
    P_END_MB,
    P_FIRST_MB,
    P_MB_WIDTH,
    P_SLOT,
    I_8x8,
)
from .macroblock import neighbours
from .outline import inlined
from .transform import add_residual_4x4, add_residual_8x8, chroma_dc, luma_dc


@helper
def is_intra(mb_type):
    """Whether a macroblock is predicted within the picture."""
    return mb_type <= I_PCM or mb_type == I_8x8


@helper
def intra_neighbours(p, slice_id, mb_type, mb):
    """8.3.1.2: macroblocks around `mb` whose samples may be used for intra prediction, as LEFT | ABOVE | ..."""
    mb_width = p[P_MB_WIDTH]
    available = neighbours(mb, mb_width, slice_id)
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
    mb_width = p[P_MB_WIDTH]
    x, y = mb % mb_width, mb // mb_width
    if not left:
        left = x > 0 and m.slice_id[mb - 1] == m.slice_id[mb]
        left = left and (not p[P_CONSTRAINED_INTRA] or is_intra(m.mb_type[mb - 1]))
    if not above:
        above = y > 0 and m.slice_id[mb - mb_width] == m.slice_id[mb]
        above = above and (not p[P_CONSTRAINED_INTRA] or is_intra(m.mb_type[mb - mb_width]))
    predicted = DC  # dcPredModePredictedFlag
    if left and above:
        predicted = min(m.intra_mode[y4, x4 - 1], m.intra_mode[y4 - 1, x4])
    if rem < 0:
        return predicted
    return rem + (rem >= predicted)


@helper
def intra_nxn(p, m, mb, plane, flat, origin, scale_4x4, scale_8x8, edges, d):
    """8.3.1, 8.3.2, 8.5.1, 8.5.3: luma of an I_4x4 or I_8x8 macroblock, block by block; 0 or an error.

    plane uint8[H, W]; it begins at flat[origin], too.
    """
    mb_width = p[P_MB_WIDTH]
    y4, x4 = mb // mb_width * 4, mb % mb_width * 4
    available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
    size = 2 if m.mb_type[mb] == I_8x8 else 1  # of a block, in 4x4 blocks
    n, count = 4 * size, 4 // size
    qp = np.int64(m.qp[mb])
    levels = m.levels[mb]
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
        stride = 16 * mb_width
        at = origin + y * stride + x
        if size == 2:
            if m.cbp[mb] >> (block >> 2) & 1:
                add_residual_8x8(flat, at, stride, levels, 16 * block, scale_8x8[0, qp % 6], qp, d)
        elif m.nonzero[y4 + by, x4 + bx]:
            add_residual_4x4(flat, at, stride, levels, 16 * block, scale_4x4[0, qp % 6], qp, False, d)
    return 0


@helper
def intra_16x16(p, m, mb, plane, flat, origin, scale_4x4, d):
    """8.3.3, 8.5.2: luma of an I_16x16 macroblock; 0 or an error."""
    inlined()
    mb_width = p[P_MB_WIDTH]
    y, x = mb // mb_width * 16, mb % mb_width * 16
    available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
    mode = m.intra16x16_mode[mb]
    if MODE_NEEDS_16x16[mode] & ~available:
        return E_INTRA_NEIGHBOUR
    predict_16x16(plane, y, x, mode, available)
    qp = np.int64(m.qp[mb])
    scale = scale_4x4[0, qp % 6]
    levels = m.levels[mb]
    luma_dc(levels, scale, qp, d)
    for block in range(16):
        raster = BLOCK_TO_RASTER[block]
        if levels[16 * block] or m.nonzero[(y >> 2) + (raster >> 2), (x >> 2) + (raster & 3)]:
            at = origin + (y + 4 * (raster >> 2)) * 16 * mb_width + x + 4 * (raster & 3)
            add_residual_4x4(flat, at, 16 * mb_width, levels, 16 * block, scale, qp, True, d)
    return 0


@helper
def residual_luma_inter(p, m, mb, flat, origin, scale_4x4, scale_8x8, d):
    """8.5.1, 8.5.3: luma residual of an inter macroblock, added to its prediction in the plane at flat[origin]."""
    inlined()
    mb_width = p[P_MB_WIDTH]
    y4, x4 = mb // mb_width * 4, mb % mb_width * 4
    stride = 16 * mb_width
    qp = np.int64(m.qp[mb])
    levels, cbp, is_8x8 = m.levels[mb], m.cbp[mb], m.transform_8x8[mb]
    for block in range(16):
        if not cbp >> (block >> 2) & 1:
            continue
        raster = BLOCK_TO_RASTER[block]
        by, bx = y4 + (raster >> 2), x4 + (raster & 3)
        at = origin + 4 * (by * stride + bx)
        if is_8x8:
            if block & 3 == 0:
                add_residual_8x8(flat, at, stride, levels, 16 * block, scale_8x8[1, qp % 6], qp, d)
        elif m.nonzero[by, bx]:
            add_residual_4x4(flat, at, stride, levels, 16 * block, scale_4x4[3, qp % 6], qp, False, d)


@helper
def residual_chroma(p, m, mb, flat, origin, c, scale_4x4, d):
    """8.5.4: residual of chroma plane c (0 Cb, 1 Cr), which begins at flat[origin], added to its prediction."""
    mb_width = p[P_MB_WIDTH]
    y8, x8 = mb // mb_width * 2, mb % mb_width * 2
    stride = 8 * mb_width
    qp = np.int64(QP_CHROMA[min(51, max(0, np.int64(m.qp[mb]) + p[P_CB_OFFSET + c]))])
    scale = scale_4x4[1 + c + (0 if is_intra(m.mb_type[mb]) else 3), qp % 6]
    levels = m.levels[mb]
    chroma_dc(levels, 256 + 64 * c, scale, qp)
    for block in range(4):
        by, bx = y8 + (block >> 1), x8 + (block & 1)
        base = 256 + 64 * c + 16 * block
        if levels[base] or m.nonzero_chroma[c, by, bx]:
            add_residual_4x4(flat, origin + 4 * (by * stride + bx), stride, levels, base, scale, qp, True, d)


@helper
def pcm(p, m, mb, y_plane, u_plane, v_plane):
    """8.3.5: samples of an I_PCM macroblock; its levels are cleared."""
    inlined()
    mb_width = p[P_MB_WIDTH]
    y0, x0 = mb // mb_width * 16, mb % mb_width * 16
    levels = m.levels[mb]
    for i in range(256):
        y_plane[y0 + (i >> 4), x0 + (i & 15)] = levels[i]
    for i in range(64):
        u_plane[(y0 >> 1) + (i >> 3), (x0 >> 1) + (i & 7)] = levels[256 + i]
        v_plane[(y0 >> 1) + (i >> 3), (x0 >> 1) + (i & 7)] = levels[320 + i]
    for i in range(LEVELS_PER_MB):
        levels[i] = 0


@helper
def reconstruct_macroblock(p, m, mb, planes, flat, scale_4x4, scale_8x8, edges, d):
    """8.3, 8.5: prediction of an intra macroblock and residual of any; 0 or an error."""
    inlined()
    slot = p[P_SLOT]
    mb_type = m.mb_type[mb]
    origin = slot * planes.y.shape[1] * planes.y.shape[2]
    error = 0
    if mb_type == I_PCM:
        pcm(p, m, mb, planes.y[slot], planes.u[slot], planes.v[slot])
        return 0
    if is_intra(mb_type):
        if mb_type == I_16x16:
            error = intra_16x16(p, m, mb, planes.y[slot], flat[0], origin, scale_4x4, d)
        else:
            error = intra_nxn(p, m, mb, planes.y[slot], flat[0], origin, scale_4x4, scale_8x8, edges, d)
        available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
        mode = m.chroma_mode[mb]
        if MODE_NEEDS_CHROMA[mode] & ~available:
            error = E_INTRA_NEIGHBOUR
        if error:
            return error
        y, x = mb // p[P_MB_WIDTH] * 8, mb % p[P_MB_WIDTH] * 8
        predict_chroma(planes.u[slot], y, x, mode, available)
        predict_chroma(planes.v[slot], y, x, mode, available)
    elif m.cbp[mb] & 15:
        residual_luma_inter(p, m, mb, flat[0], origin, scale_4x4, scale_8x8, d)
    if m.cbp[mb] >> 4:
        residual_chroma(p, m, mb, flat[1], origin >> 2, 0, scale_4x4, d)
        residual_chroma(p, m, mb, flat[2], origin >> 2, 1, scale_4x4, d)
    return 0


@closed_kernel
def reconstruct_slice(p, m, planes, motion, references, scale_4x4, scale_8x8):
    """8.3, 8.4.2, 8.5: all macroblocks of a parsed slice whose motion is known; (error or 0, macroblock)."""
    work = Work(
        np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8),
        np.empty(BLOCK, np.int16),
    )  # fmt: skip
    edges = np.empty((2, 25), np.int32)
    d = np.empty(64, np.int32)
    mb_width, slot = p[P_MB_WIDTH], p[P_SLOT]
    flat = (planes.y.ravel(), planes.u.ravel(), planes.v.ravel())
    size = (planes.y.shape[1], planes.y.shape[2])
    mv, ref_idx = motion.mv[slot], motion.ref_idx[slot]
    for mb in range(p[P_FIRST_MB], p[P_END_MB]):
        error = 0
        kind = m.mb_type[mb]
        y4, x4 = mb // mb_width * 4, mb % mb_width * 4
        if not is_intra(kind):
            error = predict_inter(p, flat, size, slot, mv, ref_idx, references, y4, x4, kind, work)
        if kind != I_4x4 and kind != I_8x8:
            for y in range(y4, y4 + 4):
                for x in range(x4, x4 + 4):
                    m.intra_mode[y, x] = DC
        if error == 0 and (is_intra(kind) or m.cbp[mb]):
            error = reconstruct_macroblock(p, m, mb, planes, flat, scale_4x4, scale_8x8, edges, d)
        if error:
            return error, mb
    return 0, 0
