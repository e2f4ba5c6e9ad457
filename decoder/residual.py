"""7.3.5.3: residual data of a macroblock, block by block, into its levels."""

import numpy as np

from ..jit.intrinsics import inlined
from ..jit.kernel import helper
from ..standard.macroblock import BLOCK_TO_RASTER, LAST_INTRA
from ..standard.tables import ZIGZAG_4x4, ZIGZAG_8x8
from .cabac import spent
from .layout import KIND_CHROMA, KIND_LUMA, P_CABAC, P_MB_WIDTH, S_VALUES
from .neighbours import is_above, is_left, mb_position
from .residual_cabac import (
    CAT_CHROMA_AC,
    CAT_CHROMA_DC,
    CAT_LUMA_AC,
    CAT_LUMA_DC,
    CAT_LUMA_4x4,
    CAT_LUMA_8x8,
    coded_block_flag,
    residual_block_cabac,
)
from .residual_cavlc import residual_block_cavlc
from .transform import BLOCKS, LANES

# Where the levels of a block go in its macroblock's (transform.py), by scan index: rows of SCANS, int32[N_SCANS, 16].
# 4x4 blocks lie beside each other, 16 luma blocks in raster order, then from BLOCKS on 4 Cb and 4 Cr: position by
# position, 16 apart. 8x8 blocks lie one after another, as rasters of 64. A DC level lies at position 0 of its block.
SCAN_4x4, SCAN_AC, SCAN_LUMA_DC, SCAN_CHROMA_DC, SCAN_8x8, N_SCANS = 0, 1, 2, 3, 4, 8
SCANS = np.zeros((N_SCANS, 16), np.int32)
SCANS[SCAN_4x4] = LANES * ZIGZAG_4x4
SCANS[SCAN_AC, :15] = LANES * ZIGZAG_4x4[1:]
SCANS[SCAN_LUMA_DC] = ZIGZAG_4x4  # 8.5.2
SCANS[SCAN_CHROMA_DC, :4] = np.arange(4)  # 8.5.11.1: raster order
for _k in range(4):
    SCANS[SCAN_8x8 + _k] = ZIGZAG_8x8[_k::4]  # 7.3.5.3.2: CAVLC interleaves four blocks


@helper
def total_coeff_context(nonzero, y4, x4, left, above):
    """9.2.1: nC of the block at (x4, y4), from the blocks to its left and above where they are available."""
    if left and above:
        return (np.int64(nonzero[y4, x4 - 1]) + np.int64(nonzero[y4 - 1, x4]) + 1) >> 1
    if left:
        return np.int64(nonzero[y4, x4 - 1])
    if above:
        return np.int64(nonzero[y4 - 1, x4])
    return 0


@helper
def residual_luma_cavlc(data, s, nonzero, y4, x4, left, above, cbp, is_16x16, is_8x8, levels):
    """7.3.5.3.1: residual_luma() with CAVLC; (x4, y4): first block of the macroblock in the grid `nonzero`."""
    inlined()
    if is_16x16:
        context = total_coeff_context(nonzero, y4, x4, left, above)
        residual_block_cavlc(data, s, context, 16, levels, 0, SCANS[SCAN_LUMA_DC])
    for block in range(16):
        if not cbp >> (block >> 2) & 1:
            continue
        raster = BLOCK_TO_RASTER[block]
        y, x = y4 + (raster >> 2), x4 + (raster & 3)
        context = total_coeff_context(nonzero, y, x, left or raster & 3 > 0, above or raster >= 4)
        if is_8x8:
            scan, base, size = SCAN_8x8 + (block & 3), 64 * (block >> 2), 16
        elif is_16x16:
            scan, base, size = SCAN_AC, raster, 15
        else:
            scan, base, size = SCAN_4x4, raster, 16
        nonzero[y, x] = residual_block_cavlc(data, s, context, size, levels, base, SCANS[scan])


@helper
def residual_chroma_cavlc(data, s, nonzero, y8, x8, left, above, cbp, levels):
    """7.3.5.3: chroma part of residual() with CAVLC; `nonzero` uint8[2, H8, W8]."""
    inlined()
    for c in range(2):
        residual_block_cavlc(data, s, -1, 4, levels, BLOCKS + 4 * c, SCANS[SCAN_CHROMA_DC])
    if cbp >> 4 & 2:
        for c in range(2):
            for block in range(4):
                y, x = y8 + (block >> 1), x8 + (block & 1)
                context = total_coeff_context(nonzero[c], y, x, left or block & 1 > 0, above or block >= 2)
                base = BLOCKS + 4 * c + block
                nonzero[c, y, x] = residual_block_cavlc(data, s, context, 15, levels, base, SCANS[SCAN_AC])


@helper
def block_coded(nonzero, y4, x4, available, outside):
    """9.3.3.1.1.9: coded_block_flag of the block (x4, y4), or what stands in for it."""
    if not available:
        return outside
    return 1 if nonzero[y4, x4] else 0


@helper
def luma_dc_cabac(data, s, c, coded_a, coded_b, levels):
    """7.3.5.3.1: Intra16x16DCLevel; coded_block_flag."""
    inlined()
    if not coded_block_flag(data, s, c, CAT_LUMA_DC, np.int64(coded_a), np.int64(coded_b)):
        return 0
    residual_block_cabac(data, s, c, CAT_LUMA_DC, 16, levels, 0, SCANS[SCAN_LUMA_DC], s[S_VALUES:])
    return 1


@helper
def residual_luma_cabac(data, s, m, y4, x4, left, above, outside, cbp, is_16x16, is_8x8, levels):
    """7.3.5.3.1: residual_luma() with CABAC, but for DC; m: Macroblocks, other arguments as of residual_luma_cavlc."""
    inlined()
    c, nonzero = m.contexts, m.nonzero
    if is_8x8:
        for q in range(4):
            if cbp >> q & 1:
                y, x = y4 + (q >> 1) * 2, x4 + (q & 1) * 2
                base = 64 * q
                count = residual_block_cabac(data, s, c, CAT_LUMA_8x8, 64, levels, base, ZIGZAG_8x8, s[S_VALUES:])
                for k in range(4):
                    nonzero[y + (k >> 1), x + (k & 1)] = count
        return
    category = CAT_LUMA_AC if is_16x16 else CAT_LUMA_4x4
    size = 15 if is_16x16 else 16
    scan = SCANS[SCAN_AC if is_16x16 else SCAN_4x4]
    for block in range(16):
        if not cbp >> (block >> 2) & 1:
            continue
        raster = BLOCK_TO_RASTER[block]
        y, x = y4 + (raster >> 2), x4 + (raster & 3)
        coded_a = block_coded(nonzero, y, x - 1, left or raster & 3 > 0, outside)
        coded_b = block_coded(nonzero, y - 1, x, above or raster >= 4, outside)
        if coded_block_flag(data, s, c, category, coded_a, coded_b):
            nonzero[y, x] = residual_block_cabac(data, s, c, category, size, levels, raster, scan, s[S_VALUES:])


@helper
def chroma_dc_cabac(data, s, c, coded_a, coded_b, levels):
    """7.3.5.3: ChromaDCLevel of both planes; coded_block_flag of Cb << 1 | of Cr << 2; those around alike."""
    inlined()
    coded = 0
    for k in range(2):
        if coded_block_flag(data, s, c, CAT_CHROMA_DC, coded_a >> (1 + k) & 1, coded_b >> (1 + k) & 1):
            coded |= 2 << k
            base = BLOCKS + 4 * k
            residual_block_cabac(data, s, c, CAT_CHROMA_DC, 4, levels, base, SCANS[SCAN_CHROMA_DC], s[S_VALUES:])
    return coded


@helper
def residual_chroma_cabac(data, s, c, nonzero, y8, x8, left, above, outside, levels):
    """7.3.5.3: ChromaACLevel of both planes; `nonzero` uint8[2, H8, W8]."""
    inlined()
    scan = SCANS[SCAN_AC]
    for k in range(2):
        for block in range(4):
            y, x = y8 + (block >> 1), x8 + (block & 1)
            coded_a = block_coded(nonzero[k], y, x - 1, left or block & 1 > 0, outside)
            coded_b = block_coded(nonzero[k], y - 1, x, above or block >= 2, outside)
            if coded_block_flag(data, s, c, CAT_CHROMA_AC, coded_a, coded_b):
                base = BLOCKS + 4 * k + block
                count = residual_block_cabac(data, s, c, CAT_CHROMA_AC, 15, levels, base, scan, s[S_VALUES:])
                nonzero[k, y, x] = count


@helper
def residual(data, s, p, m, mb, cbp, is_16x16, begun):
    """7.3.5.3: residual(); begun: bits spent before, in 1 / UNIT bits."""
    inlined()
    mb_width = p[P_MB_WIDTH]
    y, x = mb_position(p, mb)
    y8, x8 = 2 * y, 2 * x
    left, above = is_left(p, m.slice_id, mb), is_above(p, m.slice_id, mb)
    levels = m.levels[mb]
    is_8x8 = m.transform_8x8[mb] != 0
    is_cabac, luma_end = p[P_CABAC] != 0, begun
    if is_cabac:
        # what stands in for blocks that are not available (9.3.3.1.1.9)
        outside = 1 if m.mb_type[mb] <= LAST_INTRA else 0
        c, dc = m.contexts, m.dc_coded
        if cbp & 15 or is_16x16:
            dc_a = dc[mb - 1] & 1 if left else outside
            dc_b = dc[mb - mb_width] & 1 if above else outside
            if is_16x16:
                dc[mb] |= luma_dc_cabac(data, s, c, dc_a, dc_b, levels)
            residual_luma_cabac(data, s, m, 2 * y8, 2 * x8, left, above, outside, cbp, is_16x16, is_8x8, levels)
            luma_end = spent(s, is_cabac)
        if cbp >> 4:
            dc_a = np.int64(dc[mb - 1]) if left else 7 * outside
            dc_b = np.int64(dc[mb - mb_width]) if above else 7 * outside
            dc[mb] |= chroma_dc_cabac(data, s, c, dc_a, dc_b, levels)
            if cbp >> 4 & 2:
                residual_chroma_cabac(data, s, c, m.nonzero_chroma, y8, x8, left, above, outside, levels)
    else:
        if cbp & 15 or is_16x16:
            residual_luma_cavlc(data, s, m.nonzero, 2 * y8, 2 * x8, left, above, cbp, is_16x16, is_8x8, levels)
            luma_end = spent(s, is_cabac)
        if cbp >> 4:
            residual_chroma_cavlc(data, s, m.nonzero_chroma, y8, x8, left, above, cbp, levels)
    m.bits_by_kind[mb, KIND_LUMA] = luma_end - begun
    m.bits_by_kind[mb, KIND_CHROMA] = spent(s, is_cabac) - luma_end
