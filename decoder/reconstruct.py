"""Third walk over a slice: prediction and residual of every macroblock into the picture (8.3, 8.4.2, 8.5)."""

import numpy as np

from ..standard.jit import helper, kernel
from ..standard.macroblock import BLOCK_TO_RASTER, I_PCM, I_4x4, I_16x16
from ..standard.tables import QP_CHROMA
from .errors import E_INTRA_NEIGHBOUR, E_NO_REFERENCE
from .inter_pred import (
    SCRATCH_COLUMNS,
    SCRATCH_ROWS,
    average_with,
    predict_chroma,
    predict_luma,
    weigh_one,
    weigh_two,
)
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
    predict_square,
)
from .intra_pred import predict_chroma as predict_chroma_intra
from .layout import (
    LEVELS_PER_MB,
    P_CB_OFFSET,
    P_CHROMA_DENOM,
    P_CONSTRAINED_INTRA,
    P_END_MB,
    P_FIRST_MB,
    P_LUMA_DENOM,
    P_MB_WIDTH,
    P_SLOT,
    P_WEIGHTING,
    WEIGHT_DEFAULT,
    WEIGHT_EXPLICIT,
    WEIGHT_IMPLICIT,
    I_8x8,
)
from .macroblock import neighbours
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
def intra_nxn(p, m, mb, plane, scale_4x4, scale_8x8, edges, d):
    """8.3.1, 8.3.2, 8.5.1, 8.5.3: luma of an I_4x4 or I_8x8 macroblock, block by block; 0 or an error."""
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
        if size == 2:
            if m.cbp[mb] >> (block >> 2) & 1:
                add_residual_8x8(plane, y, x, levels, 16 * block, scale_8x8[0, qp % 6], qp, d)
        elif m.nonzero[y4 + by, x4 + bx]:
            add_residual_4x4(plane, y, x, levels, 16 * block, scale_4x4[0, qp % 6], qp, False, d)
    return 0


@helper
def intra_16x16(p, m, mb, plane, scale_4x4, d):
    """8.3.3, 8.5.2: luma of an I_16x16 macroblock; 0 or an error."""
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
            by, bx = y + 4 * (raster >> 2), x + 4 * (raster & 3)
            add_residual_4x4(plane, by, bx, levels, 16 * block, scale, qp, True, d)
    return 0


@helper
def residual_luma_inter(p, m, mb, plane, scale_4x4, scale_8x8, d):
    """8.5.1, 8.5.3: luma residual of an inter macroblock, added to its prediction."""
    mb_width = p[P_MB_WIDTH]
    y4, x4 = mb // mb_width * 4, mb % mb_width * 4
    qp = np.int64(m.qp[mb])
    levels = m.levels[mb]
    for block in range(16):
        if not m.cbp[mb] >> (block >> 2) & 1:
            continue
        raster = BLOCK_TO_RASTER[block]
        by, bx = y4 + (raster >> 2), x4 + (raster & 3)
        if m.transform_8x8[mb]:
            if block & 3 == 0:
                add_residual_8x8(plane, 4 * by, 4 * bx, levels, 16 * block, scale_8x8[1, qp % 6], qp, d)
        elif m.nonzero[by, bx]:
            add_residual_4x4(plane, 4 * by, 4 * bx, levels, 16 * block, scale_4x4[3, qp % 6], qp, False, d)


@helper
def residual_chroma(p, m, mb, plane, c, scale_4x4, d):
    """8.5.4: residual of chroma plane c (0 Cb, 1 Cr), added to its prediction."""
    mb_width = p[P_MB_WIDTH]
    y8, x8 = mb // mb_width * 2, mb % mb_width * 2
    qp = QP_CHROMA[min(51, max(0, np.int64(m.qp[mb]) + p[P_CB_OFFSET + c]))]
    scale = scale_4x4[1 + c + (0 if is_intra(m.mb_type[mb]) else 3), qp % 6]
    levels = m.levels[mb]
    chroma_dc(levels, 256 + 64 * c, scale, qp)
    for block in range(4):
        by, bx = y8 + (block >> 1), x8 + (block & 1)
        base = 256 + 64 * c + 16 * block
        if levels[base] or m.nonzero_chroma[c, by, bx]:
            add_residual_4x4(plane, 4 * by, 4 * bx, levels, base, scale, qp, True, d)


@helper
def pcm(p, m, mb, y_plane, u_plane, v_plane):
    """8.3.5: samples of an I_PCM macroblock; its levels are cleared."""
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
def weigh(p, references, ref0, ref1, c, out, oy, ox, second, height, width):
    """8.4.2.3: joins or weighs predictions of component c (0 Y, 1 Cb, 2 Cr) of a block; a list not used: ref -1."""
    mode = p[P_WEIGHTING]
    weights = references.weights
    log_denom = p[P_LUMA_DENOM] if c == 0 else p[P_CHROMA_DENOM]
    if ref0 >= 0 and ref1 >= 0:
        if mode == WEIGHT_DEFAULT or (mode == WEIGHT_IMPLICIT and references.implicit[ref0, ref1] == 32):
            average_with(second, 0, 0, height, width, out, oy, ox)
        elif mode == WEIGHT_IMPLICIT:
            weight1 = references.implicit[ref0, ref1]
            weigh_two(out, oy, ox, second, height, width, 5, 64 - weight1, weight1, 0)
        else:
            offset = (weights[0, ref0, c, 1] + weights[1, ref1, c, 1] + 1) >> 1
            weight0, weight1 = weights[0, ref0, c, 0], weights[1, ref1, c, 0]
            weigh_two(out, oy, ox, second, height, width, log_denom, weight0, weight1, offset)
    elif mode == WEIGHT_EXPLICIT:
        k = 0 if ref0 >= 0 else 1
        ref = max(ref0, ref1)
        weight, offset = weights[k, ref, c, 0], weights[k, ref, c, 1]
        if weight != 1 << log_denom or offset != 0:
            weigh_one(out, oy, ox, height, width, log_denom, weight, offset)


@helper
def inter_block(p, planes, motion, references, y4, x4, size_y, size_x, scratch, rows, other, second):
    """8.4.2: prediction of size_x x size_y 4x4 blocks with the same motion, the first at (x4, y4); 0 or an error."""
    slot = p[P_SLOT]
    height, width = 4 * size_y, 4 * size_x
    y, x = 4 * y4, 4 * x4
    ref0 = np.int64(motion.ref_idx[slot, 0, y4 >> 1, x4 >> 1])
    ref1 = np.int64(motion.ref_idx[slot, 1, y4 >> 1, x4 >> 1])
    for k in range(2):
        ref = ref0 if k == 0 else ref1
        if ref < 0:
            continue
        source = references.slots[k, ref]
        if source < 0:
            return E_NO_REFERENCE
        mvx, mvy = np.int64(motion.mv[slot, k, y4, x4, 0]), np.int64(motion.mv[slot, k, y4, x4, 1])
        if k == 0 or ref0 < 0:
            predict_luma(
                planes.y[source], y, x, height, width, mvx, mvy, planes.y[slot], y, x, scratch, rows, other
            )
            h, w, cy, cx = height >> 1, width >> 1, y >> 1, x >> 1
            predict_chroma(planes.u[source], cy, cx, h, w, mvx, mvy, planes.u[slot], cy, cx, scratch)
            predict_chroma(planes.v[source], cy, cx, h, w, mvx, mvy, planes.v[slot], cy, cx, scratch)
        else:
            predict_luma(planes.y[source], y, x, height, width, mvx, mvy, second[0], 0, 0, scratch, rows, other)
            h, w, cy, cx = height >> 1, width >> 1, y >> 1, x >> 1
            predict_chroma(planes.u[source], cy, cx, h, w, mvx, mvy, second[1], 0, 0, scratch)
            predict_chroma(planes.v[source], cy, cx, h, w, mvx, mvy, second[2], 0, 0, scratch)
    if p[P_WEIGHTING] != WEIGHT_DEFAULT or (ref0 >= 0 and ref1 >= 0):
        weigh(p, references, ref0, ref1, 0, planes.y[slot], y, x, second[0], height, width)
        h, w, cy, cx = height >> 1, width >> 1, y >> 1, x >> 1
        weigh(p, references, ref0, ref1, 1, planes.u[slot], cy, cx, second[1], h, w)
        weigh(p, references, ref0, ref1, 2, planes.v[slot], cy, cx, second[2], h, w)
    return 0


@helper
def same_motion(mv, ref_idx, y4, x4, height, width):
    """Whether all 4x4 blocks of an area move as its first; mv int16[2, H4, W4, 2], ref_idx int8[2, H8, W8]."""
    for k in range(2):
        ref = ref_idx[k, y4 >> 1, x4 >> 1]
        mvx, mvy = mv[k, y4, x4, 0], mv[k, y4, x4, 1]
        for y in range(y4, y4 + height):
            for x in range(x4, x4 + width):
                if mv[k, y, x, 0] != mvx or mv[k, y, x, 1] != mvy or ref_idx[k, y >> 1, x >> 1] != ref:
                    return False
    return True


@helper
def inter_macroblock(p, mb, planes, motion, references, scratch, rows, other, second):
    """8.4.2: prediction of an inter macroblock, in the largest blocks of uniform motion; 0 or an error."""
    mb_width = p[P_MB_WIDTH]
    y4, x4 = mb // mb_width * 4, mb % mb_width * 4
    mv, ref_idx = motion.mv[p[P_SLOT]], motion.ref_idx[p[P_SLOT]]
    if same_motion(mv, ref_idx, y4, x4, 4, 4):
        return inter_block(p, planes, motion, references, y4, x4, 4, 4, scratch, rows, other, second)
    for q in range(4):
        y, x = y4 + (q >> 1) * 2, x4 + (q & 1) * 2
        size = 2 if same_motion(mv, ref_idx, y, x, 2, 2) else 1
        for j in range(0, 2, size):
            for i in range(0, 2, size):
                error = inter_block(
                    p, planes, motion, references, y + j, x + i, size, size, scratch, rows, other, second
                )
                if error:
                    return error
    return 0


@helper
def reconstruct_macroblock(p, m, mb, planes, scale_4x4, scale_8x8, edges, d):
    """8.3, 8.5: prediction of an intra macroblock and residual of any; 0 or an error."""
    slot = p[P_SLOT]
    mb_type = m.mb_type[mb]
    error = 0
    if mb_type == I_PCM:
        pcm(p, m, mb, planes.y[slot], planes.u[slot], planes.v[slot])
        return 0
    if is_intra(mb_type):
        if mb_type == I_16x16:
            error = intra_16x16(p, m, mb, planes.y[slot], scale_4x4, d)
        else:
            error = intra_nxn(p, m, mb, planes.y[slot], scale_4x4, scale_8x8, edges, d)
        available = intra_neighbours(p, m.slice_id, m.mb_type, mb)
        mode = m.chroma_mode[mb]
        if MODE_NEEDS_CHROMA[mode] & ~available:
            error = E_INTRA_NEIGHBOUR
        if error:
            return error
        y, x = mb // p[P_MB_WIDTH] * 8, mb % p[P_MB_WIDTH] * 8
        predict_chroma_intra(planes.u[slot], y, x, mode, available)
        predict_chroma_intra(planes.v[slot], y, x, mode, available)
    elif m.cbp[mb] & 15:
        residual_luma_inter(p, m, mb, planes.y[slot], scale_4x4, scale_8x8, d)
    if m.cbp[mb] >> 4:
        residual_chroma(p, m, mb, planes.u[slot], 0, scale_4x4, d)
        residual_chroma(p, m, mb, planes.v[slot], 1, scale_4x4, d)
    return 0


@kernel
def reconstruct_slice(p, m, planes, motion, references, scale_4x4, scale_8x8):
    """8.3, 8.4.2, 8.5: all macroblocks of a parsed slice whose motion is known; (error or 0, macroblock)."""
    scratch = np.empty((SCRATCH_ROWS, SCRATCH_COLUMNS), np.uint8)
    other = np.empty((SCRATCH_ROWS, SCRATCH_COLUMNS), np.uint8)
    second = np.empty((3, SCRATCH_ROWS, SCRATCH_COLUMNS), np.uint8)
    rows = np.empty((SCRATCH_ROWS, 16), np.int32)
    edges = np.empty((2, 25), np.int32)
    d = np.empty(64, np.int32)
    mb_width = p[P_MB_WIDTH]
    for mb in range(p[P_FIRST_MB], p[P_END_MB]):
        error = 0
        if not is_intra(m.mb_type[mb]):
            error = inter_macroblock(p, mb, planes, motion, references, scratch, rows, other, second)
        if m.mb_type[mb] != I_4x4 and m.mb_type[mb] != I_8x8:
            y4, x4 = mb // mb_width * 4, mb % mb_width * 4
            for block in range(16):
                m.intra_mode[y4 + (block >> 2), x4 + (block & 3)] = DC
        if error == 0:
            error = reconstruct_macroblock(p, m, mb, planes, scale_4x4, scale_8x8, edges, d)
        if error:
            return error, mb
    return 0, 0
